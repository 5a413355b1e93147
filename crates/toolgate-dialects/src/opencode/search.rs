//! Finding files and searching in them.

use serde_json::{Value, json};

use crate::dialect::{EnterFault, NativeCall, Returned, ShownResult};
use crate::matches::{matched_lines, texts};
use crate::memory::DialectMemory;
use crate::parameter::Arguments;

/// Results that this client shows at most.
const MOST_RESULTS: i64 = 100;
const CUT: &str = "\n\n(Results are truncated. Consider using a more specific path or pattern.)";

pub(super) fn enter_glob(args: &Arguments, memory: &DialectMemory) -> Result<NativeCall, EnterFault> {
    let call = json!({
        "pattern": args.word("pattern"),
        "path": memory.native_or_here(args.text("path")),
        "kind": "file",
        "order": "newest",
        "limit": MOST_RESULTS,
        "hidden": true,
    });
    Ok(NativeCall::new("find", call))
}

pub(super) fn leave_glob(returned: &mut Returned<'_>) -> ShownResult {
    let paths = texts(returned.field("paths"));
    if paths.is_empty() {
        return ShownResult::ok("No files found");
    }
    let lines: Vec<String> = paths.into_iter().map(|path| returned.memory.absolute(path)).collect();
    ShownResult::ok(lines.join("\n") + cut(returned))
}

fn cut(returned: &Returned<'_>) -> &'static str {
    if returned.is("has_more") { CUT } else { "" }
}

pub(super) fn enter_grep(args: &Arguments, memory: &DialectMemory) -> Result<NativeCall, EnterFault> {
    let call = json!({
        "pattern": args.word("pattern"),
        "path": memory.native_or_here(args.text("path")),
        "glob": args.text("include").map(|glob| vec![glob]),
        "context": 0,
        "order": "newest",
        "limit": MOST_RESULTS,
        "hidden": true,
    });
    Ok(NativeCall::new("grep", call))
}

pub(super) fn leave_grep(returned: &mut Returned<'_>) -> ShownResult {
    let matches = returned.list("matches");
    if matches.is_empty() {
        return ShownResult::ok("No files found");
    }
    let of_file = |found: &[Value]| {
        let path = returned.memory.absolute(found[0]["path"].as_str().unwrap_or_default());
        let lines = found.iter().flat_map(matched_lines).map(|line| format!("  Line {}: {}\n", line.number, line.text));
        format!("{path}:\n{}", lines.collect::<Vec<_>>().join("\n"))
    };
    let files: Vec<String> = matches.chunk_by(|a, b| a["path"] == b["path"]).map(of_file).collect();
    ShownResult::ok(format!("Found {} matches\n{}{}", matches.len(), files.join("\n\n"), cut(returned)))
}
