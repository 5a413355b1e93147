//! The native call of each tool.

use serde_json::{Value, json};

use crate::dialect::{EnterFault, NativeCall};
use crate::memory::DialectMemory;
use crate::parameter::Arguments;
use crate::redaction::refuse_mask;
use crate::shell::MOST_WAIT_MS;

/// The most lines of a file and the most matches of a search that a native call gives.
const MOST_LINES: i64 = 2000;
const MOST_MATCHES: i64 = 1000;

pub(super) fn enter_lints(args: &Arguments, memory: &DialectMemory) -> Result<NativeCall, EnterFault> {
    let paths: Vec<Value> =
        args.texts("paths").unwrap_or_default().iter().map(|path| json!(memory.native(path))).collect();
    Ok(NativeCall::new("lints", json!({ "paths": paths })))
}

pub(super) fn enter_list(args: &Arguments, memory: &DialectMemory) -> Result<NativeCall, EnterFault> {
    let ignore = args.texts("ignore_globs").unwrap_or_default();
    Ok(NativeCall::new("list", json!({ "path": memory.native(args.word("path")), "ignore": ignore })))
}

pub(super) fn enter_glob(args: &Arguments, memory: &DialectMemory) -> Result<NativeCall, EnterFault> {
    let path = memory.native_or_here(args.text("target_directory"));
    Ok(NativeCall::new("find", json!({ "pattern": args.word("glob_pattern"), "path": path })))
}

pub(super) fn enter_read(args: &Arguments, memory: &DialectMemory) -> Result<NativeCall, EnterFault> {
    let call = json!({
        "path": memory.native(args.word("path")),
        "offset": args.integer("offset"),
        "limit": args.integer("limit").map(|limit| limit.min(MOST_LINES)),
    });
    Ok(NativeCall::new("read", call))
}

pub(super) fn enter_patch(args: &Arguments, _: &DialectMemory) -> Result<NativeCall, EnterFault> {
    refuse_mask(&[args.word("patch_text")])?;
    Ok(NativeCall::new("patch", json!({ "patch": args.word("patch_text") })))
}

pub(super) fn enter_delete(args: &Arguments, memory: &DialectMemory) -> Result<NativeCall, EnterFault> {
    Ok(NativeCall::new("delete", json!({ "path": memory.native(args.word("path")) })))
}

pub(super) fn enter_grep(args: &Arguments, memory: &DialectMemory) -> Result<NativeCall, EnterFault> {
    let call = json!({
        "pattern": args.word("pattern"),
        "path": memory.native_or_here(args.text("path")),
        "glob": args.text("glob").map(|glob| vec![glob]),
        "multiline": args.is("multiline"),
        "ignore_case": args.is("-i"),
        "limit": args.integer("head_limit").map(|limit| limit.min(MOST_MATCHES)),
    });
    Ok(NativeCall::new("grep", call))
}

pub(super) fn enter_search(args: &Arguments, memory: &DialectMemory) -> Result<NativeCall, EnterFault> {
    let paths: Vec<String> =
        args.texts("target_directories").unwrap_or_default().iter().map(|path| memory.native(path)).collect();
    Ok(NativeCall::new("search", json!({ "query": args.word("query"), "paths": paths })))
}

pub(super) fn enter_run(args: &Arguments, _: &DialectMemory) -> Result<NativeCall, EnterFault> {
    let background = args.is("is_background");
    let call = json!({
        "command": args.word("command"),
        "background": background,
        "yield_ms": (!background).then_some(MOST_WAIT_MS),
    });
    Ok(NativeCall::new("shell", call))
}

/// The arguments are the native ones.
pub(super) fn enter_display(args: &Arguments, _: &DialectMemory) -> Result<NativeCall, EnterFault> {
    Ok(NativeCall::new("display", Value::Object(args.all())))
}

pub(super) fn enter_memory(args: &Arguments, _: &DialectMemory) -> Result<NativeCall, EnterFault> {
    let call = json!({
        "action": args.word("action"),
        "title": args.text("title"),
        "content": args.text("knowledge_to_store"),
        "id": args.text("existing_knowledge_id"),
    });
    Ok(NativeCall::new("memory", call))
}
