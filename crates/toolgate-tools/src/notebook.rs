//! `notebook`: shows the cells of a Jupyter notebook, and replaces, inserts or deletes one. Every byte outside that cell stays
//! unchanged: a notebook is spliced, not written anew.

mod cells;
mod json_spans;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolgate_contract::{Blob, Effect, Hands, Permission, Preview, Risk, SideEffect, Spec, Tool, ToolError};

use self::cells::{CellEdit, CellType, Notebook, ShownCell};
use crate::support::hash_ahead::hash_ahead;
use crate::support::target_file::TargetFile;
use crate::support::text::{Diff, unified};

/// Shows and changes the cells of a notebook.
pub struct NotebookTool;

/// What to do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum NotebookAction {
    // Described with the argument: the list of tools has to stay short.
    #[default]
    Read,
    Replace,
    Insert,
    Delete,
}

/// The notebook and the cell.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// Path of the notebook, relative to the workspace.
    path: String,
    /// `insert` adds a cell after `cell`, or as the first.
    #[serde(default)]
    action: NotebookAction,
    /// The cell's id, as `read` shows it.
    #[serde(default)]
    cell: Option<String>,
    /// The new source.
    #[serde(default)]
    source: Option<String>,
    /// `code` for a new cell, if left out.
    #[serde(default)]
    cell_type: Option<CellType>,
    /// The version this is for, from `read`.
    #[serde(default)]
    expected_sha256: Option<String>,
}

/// The cells, or what was changed.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct Output {
    /// The cells.
    #[serde(skip_serializing_if = "Option::is_none")]
    cells: Option<Vec<ShownCell>>,
    /// The cell that was replaced, inserted or deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    cell: Option<String>,
    /// How many cells there are.
    total: usize,
    /// The unified diff.
    #[serde(skip_serializing_if = "Option::is_none")]
    diff: Option<String>,
    /// Hash of the file.
    sha256: String,
}

impl Tool for NotebookTool {
    type Args = Args;
    type Output = Output;

    const SPEC: Spec = Spec {
        name: "notebook",
        version: "1.0.0",
        description: "Show the cells of a Jupyter notebook (.ipynb), or replace, insert or delete one.",
        risk: Risk::High,
        permissions: &[Permission::FsRead, Permission::FsWrite],
        side_effects: &[SideEffect::WritesFiles],
        parallel: false,
    };

    fn effects(&self, args: &Args) -> Vec<Effect> {
        match args.action {
            NotebookAction::Read => vec![Effect::read(&args.path)],
            _ => vec![Effect::read(&args.path), Effect::write(&args.path)],
        }
    }

    fn preview(&self, args: &Args, hands: &dyn Hands) -> Result<Option<Preview>, ToolError> {
        if args.action == NotebookAction::Read {
            return Ok(None);
        }
        let found = TargetFile::load(hands, &args.path)?;
        let (text, _) = changed(&found, args)?;
        Ok(Some(Preview { diff: diff(&found, text.as_bytes()).text }))
    }

    async fn run(&self, args: Args, hands: &dyn Hands) -> Result<Output, ToolError> {
        let found = TargetFile::load(hands, &args.path)?;
        match args.action {
            NotebookAction::Read => read(&found, &args, hands),
            _ => change(found, &args, hands),
        }
    }
}

fn read(found: &TargetFile, args: &Args, hands: &dyn Hands) -> Result<Output, ToolError> {
    let text = text(found)?;
    let notebook = Notebook::parse(&found.path, text)?;
    let cells = match &args.cell {
        None => notebook.cells(),
        Some(id) => vec![notebook.cell(id)?],
    };
    let sha256 = found.content()?.sha256().to_owned();
    hands.saw(&found.place, &sha256);
    Ok(Output { cells: Some(cells), total: notebook.len(), sha256, ..Output::default() })
}

fn change(found: TargetFile, args: &Args, hands: &dyn Hands) -> Result<Output, ToolError> {
    let moved_on = found.check_version(hands, args.expected_sha256.as_deref())?;
    if let Some(what_happened) = moved_on {
        return Err(found.stale(&what_happened));
    }
    let (text, cell) = changed(&found, args)?;
    let total = Notebook::parse(&found.path, &text)?.len();
    let content = Blob::from(text.into_bytes());
    hash_ahead(&content);
    let diff = diff(&found, &content).text;
    let sha256 = content.sha256().to_owned();
    hands.change(vec![found.into_edit(content, None)])?;
    Ok(Output { cell: Some(cell), total, diff: Some(diff), sha256, ..Output::default() })
}

/// The changed notebook, and the id of the cell.
fn changed(found: &TargetFile, args: &Args) -> Result<(String, String), ToolError> {
    let notebook = Notebook::parse(&found.path, text(found)?)?;
    let missing = |name: &str| ToolError::invalid_args(format!("This action needs `{name}`."));
    let source = || args.source.as_deref().ok_or_else(|| missing("source"));
    let cell = || args.cell.as_deref().ok_or_else(|| missing("cell"));
    let edit = match args.action {
        NotebookAction::Insert => CellEdit::Insert {
            after: args.cell.as_deref(),
            source: source()?,
            cell_type: args.cell_type.unwrap_or_default(),
        },
        NotebookAction::Delete => CellEdit::Delete { cell: cell()? },
        NotebookAction::Replace | NotebookAction::Read => {
            CellEdit::Replace { cell: cell()?, source: source()?, cell_type: args.cell_type }
        }
    };
    notebook.edited(&edit)
}

fn text(found: &TargetFile) -> Result<&str, ToolError> {
    let invalid = |_| ToolError::invalid_args(format!("`{}` isn't UTF-8, so it is no notebook.", found.path));
    std::str::from_utf8(found.bytes()?).map_err(invalid)
}

fn diff(found: &TargetFile, new: &[u8]) -> Diff {
    unified(Some(&found.path), Some(&found.path), found.bytes.as_deref().unwrap_or_default(), new)
}
