//! The cells of a notebook in the format `nbformat` 4.

use std::ops::Range;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::ser::PrettyFormatter;
use serde_json::{Map, Value, json};
use toolgate_contract::{ErrorCode, ToolError, sha256};

use super::json_spans::{field, items};

/// The format that every notebook of the last ten years has.
const FORMAT: i64 = 4;
/// The first minor version in which cells have ids.
const FORMAT_WITH_IDS: i64 = 5;
/// Characters of a new id.
const ID_CHARACTERS: usize = 8;

/// The kind of a cell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CellType {
    #[default]
    Code,
    Markdown,
    Raw,
}

/// A cell as it is shown.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ShownCell {
    /// Its id; `cell-N` where it has none, counted from 0.
    id: String,
    /// Its kind.
    cell_type: String,
    /// Its source.
    source: String,
    /// The texts that it printed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    outputs: Vec<String>,
}

/// A change of one cell.
pub(super) enum CellEdit<'a> {
    /// Replaces its source, and perhaps its kind.
    Replace { cell: &'a str, source: &'a str, cell_type: Option<CellType> },
    /// Adds one after another, or as the first.
    Insert { after: Option<&'a str>, source: &'a str, cell_type: CellType },
    /// Removes one.
    Delete { cell: &'a str },
}

/// A notebook, and where its cells are in its text.
pub(super) struct Notebook<'a> {
    path: &'a str,
    text: &'a str,
    json: Value,
    array: Range<usize>,
    spans: Vec<Range<usize>>,
}

impl<'a> Notebook<'a> {
    /// Reads a notebook.
    pub(super) fn parse(path: &'a str, text: &'a str) -> Result<Self, ToolError> {
        let wrong = |why: String| ToolError::invalid_args(format!("`{path}` is no notebook that can be used: {why}."));
        let json: Value = serde_json::from_str(text).map_err(|fault| wrong(fault.to_string()))?;
        match json["nbformat"].as_i64() {
            Some(FORMAT) => {}
            Some(other) => return Err(wrong(format!("it has the format {other}; only {FORMAT} is known"))),
            None => return Err(wrong("it doesn't say its format (`nbformat`)".into())),
        }
        let array = field(text, "cells").filter(|_| json["cells"].is_array());
        let array = array.ok_or_else(|| wrong("it has no list of `cells`".into()))?;
        let spans = items(text, &array);
        Ok(Self { path, text, json, array, spans })
    }

    /// How many cells there are.
    pub(super) fn len(&self) -> usize {
        self.spans.len()
    }

    /// All cells.
    pub(super) fn cells(&self) -> Vec<ShownCell> {
        (0..self.len()).map(|index| self.shown(index)).collect()
    }

    /// One cell.
    pub(super) fn cell(&self, id: &str) -> Result<ShownCell, ToolError> {
        Ok(self.shown(self.find(id)?))
    }

    fn shown(&self, index: usize) -> ShownCell {
        let cell = &self.json["cells"][index];
        let outputs = cell["outputs"].as_array().into_iter().flatten().filter_map(output_text).collect();
        ShownCell {
            id: self.id(index),
            cell_type: cell["cell_type"].as_str().unwrap_or_default().to_owned(),
            source: joined(&cell["source"]),
            outputs,
        }
    }

    fn id(&self, index: usize) -> String {
        self.json["cells"][index]["id"].as_str().map_or_else(|| format!("cell-{index}"), str::to_owned)
    }

    fn find(&self, id: &str) -> Result<usize, ToolError> {
        (0..self.len()).find(|index| self.id(*index) == id).ok_or_else(|| {
            ToolError::new(ErrorCode::NotFound, format!("`{}` has no cell `{id}`.", self.path))
                .with_hint("Read the notebook to see the ids of its cells.")
        })
    }

    /// The text of the notebook after a change, and the id of the cell.
    pub(super) fn edited(&self, edit: &CellEdit<'_>) -> Result<(String, String), ToolError> {
        match edit {
            CellEdit::Replace { cell, source, cell_type } => {
                let index = self.find(cell)?;
                let new = self.replaced(index, source, *cell_type);
                Ok((self.spliced(self.spans[index].clone(), &self.written(&new)), (*cell).to_owned()))
            }
            CellEdit::Insert { after, source, cell_type } => {
                let before = after.map(|id| self.find(id)).transpose()?;
                let new = self.new_cell(source, *cell_type);
                let at = before.map_or(0, |index| index + 1);
                let id = new["id"].as_str().map_or_else(|| format!("cell-{at}"), str::to_owned);
                Ok((self.with_inserted(before, &self.written(&new)), id))
            }
            CellEdit::Delete { cell } => Ok((self.without(self.find(cell)?), (*cell).to_owned())),
        }
    }

    /// The cell with another source. Outputs of code were those of the old source, so they go.
    fn replaced(&self, index: usize, source: &str, cell_type: Option<CellType>) -> Value {
        let mut cell = self.json["cells"][index].as_object().cloned().unwrap_or_default();
        if let Some(cell_type) = cell_type {
            cell.insert("cell_type".into(), json!(cell_type));
        }
        cell.insert("source".into(), lines(source));
        match cell.get("cell_type").and_then(Value::as_str) {
            Some("code") => {
                cell.insert("execution_count".into(), Value::Null);
                cell.insert("outputs".into(), json!([]));
            }
            _ => {
                cell.shift_remove("execution_count");
                cell.shift_remove("outputs");
            }
        }
        cell.into()
    }

    fn new_cell(&self, source: &str, cell_type: CellType) -> Value {
        let mut cell = Map::new();
        cell.insert("cell_type".into(), json!(cell_type));
        if cell_type == CellType::Code {
            cell.insert("execution_count".into(), Value::Null);
        }
        if self.json["nbformat_minor"].as_i64().is_some_and(|minor| minor >= FORMAT_WITH_IDS) {
            cell.insert("id".into(), self.new_id(source).into());
        }
        cell.insert("metadata".into(), json!({}));
        if cell_type == CellType::Code {
            cell.insert("outputs".into(), json!([]));
        }
        cell.insert("source".into(), lines(source));
        cell.into()
    }

    /// An id that no cell has. It follows from the notebook and the source, so that a preview shows what a call writes.
    fn new_id(&self, source: &str) -> String {
        let taken: Vec<String> = (0..self.len()).map(|index| self.id(index)).collect();
        let mut hash = sha256(format!("{}\n{source}", self.text));
        while taken.iter().any(|id| *id == hash[..ID_CHARACTERS]) {
            hash = sha256(hash);
        }
        hash.truncate(ID_CHARACTERS);
        hash
    }

    fn spliced(&self, place: Range<usize>, new: &str) -> String {
        [&self.text[..place.start], new, &self.text[place.end..]].concat()
    }

    fn with_inserted(&self, after: Option<usize>, new: &str) -> String {
        let separator = self.separator();
        match (after, self.spans.first()) {
            (Some(index), _) => {
                let end = self.spans[index].end;
                self.spliced(end..end, &format!(",{separator}{new}"))
            }
            (None, Some(first)) => self.spliced(first.start..first.start, &format!("{new},{separator}")),
            (None, None) => {
                let end = if separator.is_empty() { String::new() } else { format!("\n{}", self.indent()) };
                self.spliced(self.array.clone(), &format!("[{separator}{new}{end}]"))
            }
        }
    }

    /// The notebook without a cell and the comma beside it.
    fn without(&self, index: usize) -> String {
        let place = match (self.spans.get(index + 1), index.checked_sub(1)) {
            (Some(next), _) => self.spans[index].start..next.start,
            (None, Some(before)) => self.spans[before].end..self.spans[index].end,
            (None, None) => self.array.start + 1..self.array.end - 1,
        };
        self.spliced(place, "")
    }

    /// What one level is indented by: that of the text's second line; nothing if it is one line.
    fn indent(&self) -> &str {
        let second = self.text.split_once('\n').map_or("", |(_, rest)| rest);
        let end = second.find(|letter: char| letter != ' ' && letter != '\t').unwrap_or(0);
        &second[..end]
    }

    /// What is between two cells, behind the comma.
    fn separator(&self) -> String {
        match self.indent() {
            "" => String::new(),
            indent => format!("\n{}", indent.repeat(2)),
        }
    }

    /// A cell as text, indented as the notebook is.
    fn written(&self, cell: &Value) -> String {
        let indent = self.indent();
        if indent.is_empty() {
            return cell.to_string();
        }
        let mut bytes = Vec::new();
        let formatter = PrettyFormatter::with_indent(indent.as_bytes());
        // Writing a JSON value into memory can't fail.
        let _ = cell.serialize(&mut serde_json::Serializer::with_formatter(&mut bytes, formatter));
        String::from_utf8_lossy(&bytes).replace('\n', &format!("\n{}", indent.repeat(2)))
    }
}

/// The text of a source, which is a text or a list of lines.
fn joined(source: &Value) -> String {
    match source {
        Value::Array(lines) => lines.iter().filter_map(Value::as_str).collect(),
        other => other.as_str().unwrap_or_default().to_owned(),
    }
}

/// A source as notebooks store it: a list of lines, each with its end.
fn lines(source: &str) -> Value {
    source.split_inclusive('\n').map(Value::from).collect()
}

/// The text of an output; none for pictures.
fn output_text(output: &Value) -> Option<String> {
    let text = match output["output_type"].as_str()? {
        "stream" => joined(&output["text"]),
        "error" => format!(
            "{}: {}",
            output["ename"].as_str().unwrap_or_default(),
            output["evalue"].as_str().unwrap_or_default()
        ),
        _ => joined(&output["data"]["text/plain"]),
    };
    (!text.is_empty()).then_some(text)
}
