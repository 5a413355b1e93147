//! Files and requests.

use serde_json::{Value, json};

use crate::dialect::{EnterFault, NativeCall, Returned, ShownResult};
use crate::json_result::object;
use crate::memory::DialectMemory;
use crate::parameter::Arguments;
use crate::redaction::refuse_mask;

pub(super) fn enter_read(args: &Arguments, memory: &DialectMemory) -> Result<NativeCall, EnterFault> {
    let call = json!({ "path": memory.native(args.word("path")), "offset": args.integer("offset") });
    Ok(NativeCall::new("read", call))
}

/// A long file is shown in part. What stores the rest is the file itself.
pub(super) fn leave_read(returned: &mut Returned<'_>) -> ShownResult {
    let (has_more, is_cut) =
        (returned.is("has_more"), returned.number("cut_bytes") > 0 || returned.reply.truncated.is_some());
    let mut result = json!({
        "ok": true,
        "content_excerpt": returned.field("content"),
        "sha256": returned.field("sha256"),
        "truncated": has_more || is_cut,
    });
    if has_more || is_cut {
        result["storage_ref"] = returned.args.word("path").into();
    }
    if has_more {
        result["next_offset"] = (returned.number("end_line") + 1).into();
    }
    object(result)
}

pub(super) fn enter_list(args: &Arguments, memory: &DialectMemory) -> Result<NativeCall, EnterFault> {
    Ok(NativeCall::new("list", json!({ "path": memory.native_or_here(args.text("path")) })))
}

pub(super) fn leave_list(returned: &mut Returned<'_>) -> ShownResult {
    object(json!({ "ok": true, "entries": returned.field("entries"), "truncated": returned.is("has_more") }))
}

pub(super) fn enter_grep(args: &Arguments, memory: &DialectMemory) -> Result<NativeCall, EnterFault> {
    let call = json!({
        "pattern": args.word("pattern"),
        "path": memory.native_or_here(args.text("path")),
        "mode": if args.is("files_only") { "files" } else { "matches" },
        "context": 0,
    });
    Ok(NativeCall::new("grep", call))
}

pub(super) fn leave_grep(returned: &mut Returned<'_>) -> ShownResult {
    let truncated = returned.is("has_more");
    if returned.args.is("files_only") {
        return object(json!({ "ok": true, "files": returned.field("files"), "truncated": truncated }));
    }
    let excerpt = |found: &Value| json!({ "path": found["path"], "line": found["line"], "text": found["text"] });
    let matches: Vec<Value> = returned.list("matches").iter().map(excerpt).collect();
    object(json!({ "ok": true, "matches": matches, "truncated": truncated }))
}

pub(super) fn enter_write(args: &Arguments, memory: &DialectMemory) -> Result<NativeCall, EnterFault> {
    refuse_mask(&[args.word("content")])?;
    let call = json!({ "path": memory.native(args.word("path")), "content": args.word("content") });
    Ok(NativeCall::new("write", call))
}

pub(super) fn leave_write(returned: &mut Returned<'_>) -> ShownResult {
    object(json!({
        "ok": true,
        "path": returned.field("path"),
        "operation": returned.field("operation"),
        "bytes": returned.field("size"),
        "sha256": returned.field("sha256"),
    }))
}

pub(super) fn enter_delete(args: &Arguments, memory: &DialectMemory) -> Result<NativeCall, EnterFault> {
    Ok(NativeCall::new("delete", json!({ "path": memory.native(args.word("path")) })))
}

pub(super) fn leave_delete(returned: &mut Returned<'_>) -> ShownResult {
    object(json!({ "ok": true, "path": returned.field("path") }))
}

pub(super) fn enter_request(args: &Arguments, _: &DialectMemory) -> Result<NativeCall, EnterFault> {
    let call = json!({
        "url": args.word("url"), "method": args.text("method"), "headers": args.value("headers"), "body": args.text("body"),
    });
    Ok(NativeCall::new("fetch", call))
}

pub(super) fn leave_request(returned: &mut Returned<'_>) -> ShownResult {
    let mut result = json!({
        "ok": true,
        "status": returned.field("status"),
        "content_excerpt": returned.field("content"),
        "truncated": returned.reply.truncated.is_some(),
    });
    if let Some(artifact) = returned.artifact() {
        result["storage_ref"] = artifact.into();
    }
    object(result)
}
