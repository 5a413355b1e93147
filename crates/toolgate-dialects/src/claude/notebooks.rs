//! Jupyter notebooks.

use serde_json::json;

use super::files::{remember, unread};
use crate::dialect::{EnterFault, NativeCall, Returned, ShownResult};
use crate::fence::without_tags;
use crate::memory::DialectMemory;
use crate::parameter::ParameterKind::{Choice, Text};
use crate::parameter::{Arguments, Parameter};
use crate::redaction::refuse_mask;

/// The tag around each cell.
const CELL: &str = "cell";
const NOTEBOOK_PATH: Parameter = Parameter::required("notebook_path", Text, "The absolute path of the notebook");
pub(super) const READ: &[Parameter] = &[NOTEBOOK_PATH, Parameter::optional("cell_id", Text, "Show only this cell")];
pub(super) const EDIT: &[Parameter] = &[
    NOTEBOOK_PATH,
    Parameter::required("new_source", Text, "The new source of the cell"),
    Parameter::optional("cell_id", Text, "The cell; with insert, the one before the new one"),
    Parameter::optional("cell_type", Choice(&["code", "markdown"]), "The kind of the cell"),
    Parameter::optional("edit_mode", Choice(&["replace", "insert", "delete"]), "replace if left out"),
];

/// The native call that shows a notebook.
pub(super) fn show(path: &str, memory: &DialectMemory, cell: Option<&str>) -> NativeCall {
    NativeCall::new("notebook", json!({ "path": memory.native(path), "cell": cell }))
}

pub(super) fn enter_read(args: &Arguments, memory: &DialectMemory) -> Result<NativeCall, EnterFault> {
    Ok(show(args.word("notebook_path"), memory, args.text("cell_id")))
}

pub(super) fn leave_read(returned: &mut Returned<'_>) -> ShownResult {
    remember(returned, "notebook_path");
    cells(returned)
}

/// Each cell in a tag with its id, and below it what it printed.
pub(super) fn cells(returned: &Returned<'_>) -> ShownResult {
    let shown = returned.list("cells").iter().map(|cell| {
        let text = |name: &str| cell[name].as_str().unwrap_or_default();
        let kind = match text("cell_type") {
            "code" => String::new(),
            other => format!("<cell_type>{other}</cell_type>"),
        };
        let printed = cell["outputs"].as_array().into_iter().flatten().filter_map(|output| output.as_str());
        let printed: String = printed.map(|output| format!("\n{}", output.trim_end_matches('\n'))).collect();
        let (source, printed) = (without_tags(text("source"), &[CELL]), without_tags(&printed, &[CELL]));
        let id = text("id");
        format!("<{CELL} id=\"{id}\">{kind}{source}</{CELL} id=\"{id}\">{printed}")
    });
    ShownResult::ok(shown.collect::<Vec<_>>().join("\n"))
}

/// A notebook has to be read before it is changed, in every version.
pub(super) fn enter_edit(args: &Arguments, memory: &DialectMemory) -> Result<NativeCall, EnterFault> {
    refuse_mask(&[args.word("new_source")])?;
    let path = memory.native(args.word("notebook_path"));
    let seen = memory.seen(&path).ok_or_else(unread)?;
    let action = args.text("edit_mode").unwrap_or("replace");
    let call = json!({
        "path": path,
        "action": action,
        "cell": args.text("cell_id"),
        "source": (action != "delete").then(|| args.word("new_source")),
        "cell_type": args.text("cell_type").filter(|_| action != "delete"),
        "expected_sha256": seen,
    });
    Ok(NativeCall::new("notebook", call))
}

pub(super) fn leave_edit(returned: &mut Returned<'_>) -> ShownResult {
    remember(returned, "notebook_path");
    let (cell, source) = (returned.text("cell"), returned.args.word("new_source"));
    ShownResult::ok(match returned.args.text("edit_mode") {
        Some("insert") => format!("Inserted cell {cell} with {source}"),
        Some("delete") => format!("Deleted cell {cell}"),
        _ => format!("Updated cell {cell} with {source}"),
    })
}
