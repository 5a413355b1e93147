//! Reading, searching and changing files.

use serde_json::{Value, json};
use toolgate_contract::ToolError;

use super::envelope::{Output, envelope};
use crate::dialect::{EnterFault, NativeCall, Returned, ShownResult};
use crate::matches::texts;
use crate::memory::DialectMemory;
use crate::parameter::Arguments;
use crate::redaction::refuse_mask;

/// The most results and the most bytes of a native call.
const MOST_RESULTS: i64 = 1000;
const MOST_BYTES: i64 = 50_000;

fn limit(args: &Arguments) -> Option<i64> {
    args.integer("limit").map(|limit| limit.min(MOST_RESULTS))
}

/// Lines, each with its end.
fn lines(lines: impl Iterator<Item = String>) -> Output {
    Output::printed(lines.map(|line| line + "\n").collect::<String>())
}

pub(super) fn enter_ls(args: &Arguments, memory: &DialectMemory) -> Result<NativeCall, EnterFault> {
    let call = json!({
        "path": memory.native_or_here(args.text("path")),
        "recursive": args.is("recursive"),
        "limit": limit(args),
        "cursor": args.text("cursor"),
    });
    Ok(NativeCall::new("list", call))
}

pub(super) fn leave_ls(returned: &mut Returned<'_>) -> ShownResult {
    let field = if returned.args.is("recursive") { "path" } else { "name" };
    let entry = |entry: &Value| {
        let slash = if entry["kind"] == "folder" { "/" } else { "" };
        format!("{}{slash}", entry[field].as_str().unwrap_or_default().trim_end_matches('/'))
    };
    envelope(returned, lines(returned.list("entries").iter().map(entry)))
}

pub(super) fn enter_find(args: &Arguments, memory: &DialectMemory) -> Result<NativeCall, EnterFault> {
    let call = json!({
        "path": memory.native_or_here(args.text("path")),
        "pattern": args.word("name_pattern"),
        "max_depth": args.integer("max_depth").map(|depth| depth.min(i64::from(u32::MAX))),
        "limit": limit(args),
        "cursor": args.text("cursor"),
    });
    Ok(NativeCall::new("find", call))
}

pub(super) fn leave_find(returned: &mut Returned<'_>) -> ShownResult {
    envelope(returned, lines(texts(returned.field("paths")).into_iter().map(str::to_owned)))
}

pub(super) fn enter_grep(args: &Arguments, memory: &DialectMemory) -> Result<NativeCall, EnterFault> {
    let call = json!({
        "path": memory.native_or_here(args.text("path")),
        "pattern": args.word("pattern"),
        "glob": args.text("glob").map(|glob| vec![glob]),
        "context": 0,
        "limit": limit(args),
        "cursor": args.text("cursor"),
    });
    Ok(NativeCall::new("grep", call))
}

pub(super) fn leave_grep(returned: &mut Returned<'_>) -> ShownResult {
    let found = |found: &Value| {
        let text = |name: &str| found[name].as_str().unwrap_or_default();
        format!("{}:{}:{}", text("path"), found["line"].as_u64().unwrap_or_default(), text("text"))
    };
    envelope(returned, lines(returned.list("matches").iter().map(found)))
}

pub(super) fn enter_read(args: &Arguments, memory: &DialectMemory) -> Result<NativeCall, EnterFault> {
    let offset = match args.text("cursor") {
        None => args.integer("offset").unwrap_or(0),
        Some(cursor) => cursor
            .parse()
            .map_err(|_| ToolError::invalid_args(format!("`{cursor}` isn't the cursor of an earlier `read`.")))?,
    };
    let call = json!({
        "path": memory.native(args.word("path")),
        "offset_bytes": offset,
        "limit_bytes": args.integer("limit_bytes").unwrap_or(MOST_BYTES).min(MOST_BYTES),
    });
    Ok(NativeCall::new("read", call))
}

pub(super) fn leave_read(returned: &mut Returned<'_>) -> ShownResult {
    let next_page = returned.is("has_more").then(|| returned.number("end_byte").to_string());
    envelope(returned, Output { next_page, ..Output::printed(returned.text("content")) })
}

pub(super) fn enter_write(args: &Arguments, memory: &DialectMemory) -> Result<NativeCall, EnterFault> {
    refuse_mask(&[args.word("content")])?;
    let call = json!({
        "path": memory.native(args.word("path")),
        "content": args.word("content"),
        "mode": args.text("mode").unwrap_or("overwrite"),
    });
    Ok(NativeCall::new("write", call))
}

/// Shows how many bytes were written.
pub(super) fn leave_write(returned: &mut Returned<'_>) -> ShownResult {
    let bytes = returned.args.word("content").len();
    envelope(returned, Output::printed(bytes.to_string()))
}

pub(super) fn enter_edit(args: &Arguments, memory: &DialectMemory) -> Result<NativeCall, EnterFault> {
    let (find, replace) = (args.word("find"), args.word("replace"));
    refuse_mask(&[find, replace])?;
    let path = memory.native(args.word("path"));
    Ok(NativeCall::new("edit", json!({ "path": path, "find": find, "replace": replace, "all": args.is("all") })))
}

/// Shows how many places were replaced.
pub(super) fn leave_edit(returned: &mut Returned<'_>) -> ShownResult {
    let mut output = Output::printed(returned.number("replacements").to_string());
    output.stderr = returned.text("note").to_owned();
    envelope(returned, output)
}
