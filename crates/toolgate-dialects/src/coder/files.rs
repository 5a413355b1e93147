//! Reading, searching and changing files.

use serde_json::{Value, json};
use toolgate_contract::ToolError;

use crate::dialect::{EnterFault, NativeCall, Returned, ShownResult};
use crate::json_result::{object, with_fields};
use crate::memory::DialectMemory;
use crate::parameter::Arguments;
use crate::redaction::refuse_mask;

/// Lines of a page where the model says nothing, and at most.
const DEFAULT_LINES: i64 = 50;
const MOST_LINES: i64 = 200;
/// Matches where the model says nothing, and at most.
const DEFAULT_MATCHES: i64 = 200;
const MOST_MATCHES: i64 = 1000;

pub(super) fn enter_read(args: &Arguments, memory: &DialectMemory) -> Result<NativeCall, EnterFault> {
    let offset = args.integer("offset").unwrap_or(1).max(1);
    let limit = args.integer("limit").filter(|limit| *limit > 0).unwrap_or(DEFAULT_LINES).min(MOST_LINES);
    let path = memory.native(args.word("path"));
    Ok(NativeCall::new("read", json!({ "path": path, "offset": offset, "limit": limit })))
}

pub(super) fn leave_read(returned: &mut Returned<'_>) -> ShownResult {
    let result = json!({ "ok": true, "path": returned.args.word("path") });
    object(with_fields(result, returned, &["content", "start_line", "end_line", "has_more"]))
}

pub(super) fn enter_write(args: &Arguments, memory: &DialectMemory) -> Result<NativeCall, EnterFault> {
    refuse_mask(&[args.word("content")])?;
    let call = json!({ "path": memory.native(args.word("path")), "content": args.word("content") });
    Ok(NativeCall::new("write", call))
}

pub(super) fn leave_write(returned: &mut Returned<'_>) -> ShownResult {
    let names = ["path", "operation", "size", "additions", "deletions", "diff"];
    object(with_fields(json!({ "ok": true }), returned, &names))
}

pub(super) fn enter_list(args: &Arguments, memory: &DialectMemory) -> Result<NativeCall, EnterFault> {
    Ok(NativeCall::new("list", json!({ "path": memory.native_or_here(args.text("path")) })))
}

pub(super) fn leave_list(returned: &mut Returned<'_>) -> ShownResult {
    let item = |entry: &Value| {
        json!({
            "name": entry["name"],
            "path": entry["path"],
            "is_dir": entry["kind"] == "folder",
            "size_bytes": entry["size"].as_u64().unwrap_or(0),
        })
    };
    let items: Vec<Value> = returned.list("entries").iter().map(item).collect();
    let path = returned.memory.native_or_here(returned.args.text("path"));
    object(marked(returned, json!({ "ok": true, "path": path, "items": items })))
}

/// The design has no pages of these results, so one that isn't whole says so.
fn marked(returned: &Returned<'_>, mut result: Value) -> Value {
    if returned.is("has_more") {
        result["truncated"] = true.into();
    }
    result
}

pub(super) fn enter_glob(args: &Arguments, _: &DialectMemory) -> Result<NativeCall, EnterFault> {
    Ok(NativeCall::new("find", json!({ "pattern": args.word("pattern"), "limit": MOST_MATCHES })))
}

pub(super) fn leave_glob(returned: &mut Returned<'_>) -> ShownResult {
    object(marked(returned, json!({ "ok": true, "matches": returned.field("paths") })))
}

pub(super) fn enter_grep(args: &Arguments, memory: &DialectMemory) -> Result<NativeCall, EnterFault> {
    let limit = args.integer("max_matches").unwrap_or(DEFAULT_MATCHES);
    if limit < 1 {
        return Err(ToolError::invalid_args("`max_matches` has to be at least 1.").into());
    }
    let call = json!({
        "pattern": args.word("pattern"),
        "path": memory.native_or_here(args.text("path")),
        "context": 0,
        "limit": limit.min(MOST_MATCHES),
    });
    Ok(NativeCall::new("grep", call))
}

pub(super) fn leave_grep(returned: &mut Returned<'_>) -> ShownResult {
    let found = |found: &Value| json!({ "path": found["path"], "line": found["line"], "text": found["text"] });
    let matches: Vec<Value> = returned.list("matches").iter().map(found).collect();
    object(marked(returned, json!({ "ok": true, "count": matches.len(), "matches": matches })))
}

pub(super) fn enter_patch(args: &Arguments, _: &DialectMemory) -> Result<NativeCall, EnterFault> {
    refuse_mask(&[args.word("patch")])?;
    Ok(NativeCall::new("patch", json!({ "patch": args.word("patch"), "dry_run": args.is("dry_run") })))
}

pub(super) fn leave_patch(returned: &mut Returned<'_>) -> ShownResult {
    let changed = |result: &Value| {
        let mut changed = json!({ "path": result["path"], "operation": result["operation"]["kind"] });
        if let Some(to) = result["operation"].get("to") {
            changed["to"] = to.clone();
        }
        if let Some(note) = result.get("note") {
            changed["note"] = note.clone();
        }
        changed
    };
    let results: Vec<Value> = returned.list("results").iter().map(changed).collect();
    object(json!({ "ok": true, "applied": returned.field("applied"), "results": results }))
}
