//! Reading, listing and changing files.

use serde_json::{Value, json};
use toolgate_contract::{ErrorCode, Reply, ToolError};

use crate::changed_lines::changed_lines;
use crate::dialect::{Answered, EnterFault, NativeCall, Returned, ShownResult};
use crate::matches::texts;
use crate::memory::DialectMemory;
use crate::new_file::{look_first, write_if_missing};
use crate::parameter::Arguments;
use crate::redaction::refuse_mask;

/// Files that one call reads.
const MOST_FILES: usize = 32;
/// The most lines that a native call gives.
const MOST_LINES: i64 = 2000;

pub(super) fn enter_read(args: &Arguments, memory: &DialectMemory) -> Result<NativeCall, EnterFault> {
    let (start, end) = (args.integer("start_line").unwrap_or(1), args.integer("end_line"));
    if end.is_some_and(|end| end < start) {
        return Err(ToolError::invalid_args("`start_line` can't be greater than `end_line`.").into());
    }
    let limit = end.map(|end| (end - start + 1).min(MOST_LINES));
    let call = json!({ "path": memory.native(args.word("file_path")), "offset": start, "limit": limit });
    Ok(NativeCall::new("read", call))
}

pub(super) fn leave_read(returned: &mut Returned<'_>) -> ShownResult {
    if !returned.field("image").is_null() {
        return ShownResult::ok("Binary content provided (1 item(s)).");
    }
    let (first, last) = (returned.number("start_line"), returned.number("end_line"));
    // This client shows line ends as newlines. To look for one byte is faster than to look for two.
    let content = match returned.text("content") {
        text if memchr::memchr(b'\r', text.as_bytes()).is_some() => text.replace("\r\n", "\n"),
        text => text.to_owned(),
    };
    let is_end = !returned.is("has_more");
    if is_end && first <= 1 {
        return ShownResult::ok(content);
    }
    // This client counts a line behind a final newline.
    let more_line = i64::from(!is_end || content.ends_with('\n') || content.is_empty());
    let total = returned.number("total_lines") + more_line;
    let next = match is_end {
        true => "This is the end of the file.".to_owned(),
        false => format!("To read more of the file, use start_line: {}.", last + 1),
    };
    ShownResult::ok(format!(
        "\nIMPORTANT: The file content has been truncated.\nStatus: Showing lines {first}-{last} of {total} total lines.\n\
         Action: {next}\n\n--- FILE CONTENT (truncated) ---\n{}",
        content.strip_suffix('\n').unwrap_or(&content)
    ))
}

/// Globs are looked up one after the other; then each file that was found is read.
pub(super) fn enter_many(args: &Arguments, memory: &DialectMemory) -> Result<NativeCall, EnterFault> {
    match args.texts("include").unwrap_or_default().first() {
        Some(pattern) => Ok(find(args, pattern, memory)),
        None => Err(ToolError::invalid_args("`include` is empty.").into()),
    }
}

fn find(args: &Arguments, pattern: &str, memory: &DialectMemory) -> NativeCall {
    let pattern = memory.native(pattern);
    // A path without `/` is one in the workspace, not a name at any depth.
    let pattern = if pattern.contains(['/', '*']) { pattern } else { format!("./{pattern}") };
    let call = json!({ "pattern": pattern, "kind": "file", "limit": MOST_FILES, "gitignore": respects_git(args) });
    NativeCall { then: Some(find_or_read), ..NativeCall::new("find", call) }
}

fn find_or_read(answered: &Answered<'_>) -> Result<Option<NativeCall>, EnterFault> {
    let include = answered.args.texts("include").unwrap_or_default();
    let replies: Vec<&Reply> = answered.earlier.iter().chain([answered.reply]).collect();
    if let Some(pattern) = include.get(replies.len()) {
        return Ok(Some(find(answered.args, pattern, answered.memory)));
    }
    let paths = found_files(answered.args, &replies[..include.len()]);
    if paths.is_empty() {
        return Err(ToolError::new(ErrorCode::NotFound, "No files matching the criteria were found.").into());
    }
    let next = paths.get(replies.len() - include.len());
    let read = |path: &&str| {
        let call = NativeCall::new("read", json!({ "path": path }));
        NativeCall { then: Some(find_or_read), is_part: true, ..call }
    };
    Ok(next.map(read))
}

/// The files that the look-ups found, each once, without the excluded ones.
fn found_files<'a>(args: &Arguments, replies: &[&'a Reply]) -> Vec<&'a str> {
    let exclude = args.texts("exclude").unwrap_or_default();
    let mut paths: Vec<&str> = Vec::new();
    for path in replies.iter().filter_map(|reply| reply.payload.as_ref()).flat_map(|found| texts(&found["paths"])) {
        if !paths.contains(&path) && !exclude.iter().any(|glob| is_excluded(path, glob)) {
            paths.push(path);
        }
    }
    paths.truncate(MOST_FILES);
    paths
}

/// Whether a path is meant by a simple glob: `dir/**`, `**/*.ext`, or the path itself.
fn is_excluded(path: &str, glob: &str) -> bool {
    let glob = glob.trim_start_matches("**/");
    match (glob.strip_suffix("/**").or_else(|| glob.strip_suffix('/')), glob.strip_prefix('*')) {
        (Some(directory), _) => path.starts_with(&format!("{directory}/")) || path.contains(&format!("/{directory}/")),
        (None, Some(end)) => path.ends_with(end),
        (None, None) => path == glob || path.ends_with(&format!("/{glob}")),
    }
}

pub(super) fn leave_many(returned: &mut Returned<'_>) -> ShownResult {
    let include = returned.args.texts("include").unwrap_or_default().len();
    let replies: Vec<&Reply> = returned.earlier.iter().chain([returned.reply]).collect();
    let (looked_up, read) = replies.split_at(include);
    let parts = found_files(returned.args, looked_up).into_iter().zip(read).map(|(path, reply)| {
        let content = reply.payload.as_ref().and_then(|page| page["content"].as_str());
        let text = content.or(reply.error.as_ref().map(|error| error.message.as_str())).unwrap_or_default();
        format!("--- {} ---\n\n{text}\n\n", returned.memory.absolute(path))
    });
    ShownResult::ok(parts.collect::<String>() + "--- End of content ---")
}

/// Whether what `.gitignore` names is left out, which is so unless the model says otherwise.
fn respects_git(args: &Arguments) -> bool {
    let options = args.value("file_filtering_options");
    options.and_then(|options| options["respect_git_ignore"].as_bool()).unwrap_or(true)
}

pub(super) fn enter_list(args: &Arguments, memory: &DialectMemory) -> Result<NativeCall, EnterFault> {
    let call = json!({
        "path": memory.native(args.word("dir_path")),
        "ignore": args.texts("ignore").unwrap_or_default(),
        "gitignore": respects_git(args),
    });
    Ok(NativeCall::new("list", call))
}

pub(super) fn leave_list(returned: &mut Returned<'_>) -> ShownResult {
    let path = returned.memory.absolute(&returned.memory.native(returned.args.word("dir_path")));
    let entries = returned.list("entries");
    if entries.is_empty() {
        return ShownResult::ok(format!("Directory {path} is empty."));
    }
    let name = |entry: &Value| entry["name"].as_str().unwrap_or_default().to_owned();
    let (folders, files): (Vec<&Value>, Vec<&Value>) = entries.iter().partition(|entry| entry["kind"] == "folder");
    let folders = folders.into_iter().map(|entry| format!("[DIR] {}", name(entry)));
    let files =
        files.into_iter().map(|entry| format!("{} ({} bytes)", name(entry), entry["size"].as_u64().unwrap_or(0)));
    let lines: Vec<String> = folders.chain(files).collect();
    let more =
        if returned.is("has_more") { "\n\n(There are more entries; list a directory further down.)" } else { "" };
    ShownResult::ok(format!("Directory listing for {path}:\n{}{more}", lines.join("\n")))
}

pub(super) fn enter_replace(args: &Arguments, memory: &DialectMemory) -> Result<NativeCall, EnterFault> {
    let (old, new, path) = (args.word("old_string"), args.word("new_string"), memory.native(args.word("file_path")));
    refuse_mask(&[old, new])?;
    let mut native = match old {
        // An empty text to replace means a new file.
        "" => look_first(&path, write_new),
        _ => NativeCall::new(
            "edit",
            json!({ "path": path, "find": old, "replace": new, "all": args.is("allow_multiple") }),
        ),
    };
    native.justification = Some(args.word("instruction").to_owned());
    Ok(native)
}

fn write_new(answered: &Answered<'_>) -> Result<Option<NativeCall>, EnterFault> {
    let exists = ToolError::invalid_args("Failed to edit, attempted to create a file that already exists.")
        .with_hint("Give the text to replace in `old_string`, or use `write_file` to replace all of the file.");
    write_if_missing(answered, answered.args.word("file_path"), answered.args.word("new_string"), exists.into())
}

pub(super) fn leave_replace(returned: &mut Returned<'_>) -> ShownResult {
    if returned.field("replacements").is_null() {
        return leave_write(returned);
    }
    let count = returned.number("replacements");
    let note = returned.text("note");
    ShownResult::ok(format!(
        "Successfully modified file: {} ({count} replacements). Here is the updated code:\n{}\n{note}",
        path(returned),
        changed_lines(returned.text("diff"))
    ))
}

fn path(returned: &Returned<'_>) -> String {
    returned.memory.absolute(&returned.memory.native(returned.args.word("file_path")))
}

pub(super) fn enter_write(args: &Arguments, memory: &DialectMemory) -> Result<NativeCall, EnterFault> {
    refuse_mask(&[args.word("content")])?;
    let path = memory.native(args.word("file_path"));
    Ok(NativeCall::new("write", json!({ "path": path, "content": args.word("content"), "mode": "overwrite" })))
}

pub(super) fn leave_write(returned: &mut Returned<'_>) -> ShownResult {
    let (path, code) = (path(returned), changed_lines(returned.text("diff")));
    ShownResult::ok(match returned.text("operation") {
        "created" => {
            format!("Successfully created and wrote to new file: {path}. Here is the updated code:\n{code}\n")
        }
        _ => format!("Successfully overwrote file: {path}. Here is the updated code:\n{code}\n"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simple_globs_leave_files_out() {
        for (path, glob, expected) in [
            ("node_modules/a.js", "**/node_modules/**", true),
            ("web/node_modules/a.js", "**/node_modules/**", true),
            ("src/a.rs", "**/*.rs", true),
            ("src/a.rs", "*.md", false),
            ("src/a.rs", "src/a.rs", true),
            ("src/aa.rs", "a.rs", false),
        ] {
            assert_eq!(is_excluded(path, glob), expected, "{path} {glob}");
        }
    }
}
