//! Language servers. The design counts lines and characters from 0, as the protocol does.

use std::path::Path;

use serde_json::{Value, json};
use toolgate_contract::file_uri;

use crate::dialect::{EnterFault, NativeCall, Returned, ShownResult};
use crate::json_result::object;
use crate::memory::DialectMemory;
use crate::parameter::Arguments;

pub(super) fn enter_diagnostics(args: &Arguments, memory: &DialectMemory) -> Result<NativeCall, EnterFault> {
    Ok(NativeCall::new("lsp_diagnostics", json!({ "paths": [memory.native(args.word("path"))] })))
}

pub(super) fn enter_definition(args: &Arguments, memory: &DialectMemory) -> Result<NativeCall, EnterFault> {
    Ok(NativeCall::new("lsp_definition", position(args, memory)))
}

pub(super) fn enter_hover(args: &Arguments, memory: &DialectMemory) -> Result<NativeCall, EnterFault> {
    Ok(NativeCall::new("lsp_hover", position(args, memory)))
}

fn position(args: &Arguments, memory: &DialectMemory) -> Value {
    let from_one = |name: &str| args.integer(name).unwrap_or(0).max(0).saturating_add(1);
    json!({
        "path": memory.native(args.word("path")), "line": from_one("line"), "column": from_one("character"),
    })
}

pub(super) fn leave_diagnostics(returned: &mut Returned<'_>) -> ShownResult {
    let from_zero = |item: &Value| {
        let mut item = item.clone();
        item["line"] = item["line"].as_u64().unwrap_or(1).saturating_sub(1).into();
        item
    };
    let diagnostics: Vec<Value> = returned.list("diagnostics").iter().map(from_zero).collect();
    let count = diagnostics.len();
    object(json!({ "ok": true, "diagnostics": diagnostics, "count": count, "server_status": status(returned) }))
}

pub(super) fn leave_definition(returned: &mut Returned<'_>) -> ShownResult {
    let location = returned.list("places").first().map(|place| {
        let from_zero = |name: &str| place[name].as_u64().unwrap_or(1).saturating_sub(1);
        let start = json!({ "line": from_zero("line"), "character": from_zero("column") });
        let path = returned.memory.absolute(place["path"].as_str().unwrap_or_default());
        let uri = file_uri(Path::new(&path));
        json!({ "uri": uri, "range": { "start": start, "end": start }, "text": place["text"] })
    });
    object(json!({ "ok": true, "location": location, "server_status": status(returned) }))
}

pub(super) fn leave_hover(returned: &mut Returned<'_>) -> ShownResult {
    let contents = field(returned, "contents");
    object(json!({ "ok": true, "contents": contents, "server_status": status(returned) }))
}

fn status(returned: &Returned<'_>) -> Value {
    field(returned, "server_status")
}

fn field(returned: &Returned<'_>, name: &str) -> Value {
    returned.reply.payload.as_ref().and_then(|payload| payload.get(name)).cloned().unwrap_or_default()
}
