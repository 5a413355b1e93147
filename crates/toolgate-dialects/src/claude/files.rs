//! Reading and changing files.

use serde_json::json;
use toolgate_contract::{ErrorCode, ToolError};

use super::commands::{kilobytes, printed};
use super::failure::NO_CHANGES;
use super::{EDIT, FILE_PATH, notebooks};
use crate::changed_lines::{changed_lines, first_changed_line};
use crate::dialect::{Answered, EnterFault, NativeCall, Returned, ShownResult};
use crate::memory::DialectMemory;
use crate::new_file::{look_first, write_if_missing};
use crate::numbered::{LineStyle, numbered, with_final_line};
use crate::parameter::ParameterKind::Objects;
use crate::parameter::{Arguments, Parameter};
use crate::redaction::refuse_mask;

/// Lines that are read where the model says nothing.
const MOST_LINES: i64 = 2000;
/// Bytes of a file that is shown without saying which part of it.
const MOST_BYTES: u64 = 256 * 1024;

/// A line as versions before 2.1 show it.
const LINE_2_0: LineStyle = LineStyle::new("", 6, "→");

/// The tag around what this client itself tells its model. Lines of a file can't be taken for it, as they have numbers.
pub(super) const REMINDER: &str = "system-reminder";

pub(super) const EDIT_FILE: &[Parameter] = &[FILE_PATH, EDIT[0], EDIT[1], EDIT[2]];
pub(super) const MULTI_EDIT: &[Parameter] =
    &[FILE_PATH, Parameter::required("edits", Objects(EDIT), "The replacements, each on the result of the one before")];

pub(super) fn enter_read(args: &Arguments, memory: &DialectMemory) -> Result<NativeCall, EnterFault> {
    if args.text("pages").is_some() {
        return Err(ToolError::invalid_args("Pages of a PDF can't be read here.").into());
    }
    let is_part = args.integer("offset").is_some() || args.integer("limit").is_some();
    if args.word("file_path").ends_with(".ipynb") && !is_part {
        return Ok(notebooks::show(args.word("file_path"), memory, None));
    }
    // This client writes what a command in the background prints to a file; here the model reads it by the command's id.
    if is_process(args) {
        return Ok(NativeCall::new("process", json!({ "action": "read", "process": args.word("file_path") })));
    }
    // The model counts lines from 1 and sends 0 for the beginning.
    let offset = args.integer("offset").unwrap_or(1).max(1);
    let limit = args.integer("limit").unwrap_or(MOST_LINES).min(MOST_LINES);
    let path = memory.native(args.word("file_path"));
    Ok(NativeCall::new("read", json!({ "path": path, "offset": offset, "limit": limit })))
}

pub(super) fn leave_read(returned: &mut Returned<'_>) -> ShownResult {
    read(returned, &LineStyle::new("", 0, "\t"))
}

pub(super) fn leave_read_2_0(returned: &mut Returned<'_>) -> ShownResult {
    read(returned, &LINE_2_0)
}

fn is_process(args: &Arguments) -> bool {
    args.word("file_path").starts_with("proc_")
}

fn read(returned: &mut Returned<'_>, style: &LineStyle) -> ShownResult {
    if is_process(returned.args) {
        return printed(returned);
    }
    if !returned.field("cells").is_null() {
        remember(returned, "file_path");
        return notebooks::cells(returned);
    }
    let is_partial = ["offset", "limit", "allow_large"].iter().any(|name| returned.args.value(name).is_some());
    let bytes = u64::try_from(returned.number("bytes")).unwrap_or(0);
    if bytes > MOST_BYTES && !is_partial {
        return ShownResult::error(format!(
            "File content ({}) exceeds maximum allowed size (256KB). Read a part of it with `offset` and `limit`, search in \
             it, or set `allow_large`.",
            kilobytes(bytes)
        ));
    }
    remember(returned, "file_path");
    let (content, start) = (returned.text("content"), returned.number("start_line"));
    if content.is_empty() && returned.number("bytes") == 0 {
        return ShownResult::ok(reminder("Warning: the file exists but the contents are empty."));
    }
    if content.is_empty() {
        let (offset, total) = (returned.args.integer("offset").unwrap_or(1), returned.number("total_lines") + 1);
        return ShownResult::ok(reminder(&format!(
            "Warning: the file exists but is shorter than the provided offset ({offset}). The file has {total} lines."
        )));
    }
    // The line behind a final newline counts as one of those that were asked for.
    let has_room = returned.args.integer("limit").is_none_or(|limit| content.lines().count() < limit as usize);
    let is_end = has_room && !returned.field("has_more").as_bool().unwrap_or(false);
    let mut shown = numbered(with_final_line(content, is_end), start, style);
    shown.extend(goes_on(returned).map(|told| format!("\n{}", reminder(&told))));
    ShownResult::ok(shown)
}

/// What is said where less is shown than was asked for: a page holds so many lines and bytes.
fn goes_on(returned: &Returned<'_>) -> Option<String> {
    let (first, last) = (returned.number("start_line"), returned.number("end_line"));
    let asked = returned.args.integer("limit").unwrap_or(i64::MAX);
    let is_cut = returned.is("has_more") && last - first + 1 < asked;
    let (total, next) = (returned.number("total_lines"), last + 1);
    is_cut.then(|| format!("The file has {total} lines; this is a part of it. Read on with offset {next}."))
}

fn reminder(text: &str) -> String {
    format!("<{REMINDER}>{text}</{REMINDER}>")
}

/// Remembers the version that the model has seen, by the path that it named.
pub(super) fn remember(returned: &mut Returned<'_>, parameter: &str) {
    let path = returned.memory.native(returned.args.word(parameter));
    let sha256 = returned.text("sha256");
    if !sha256.is_empty() {
        returned.memory.saw(path, sha256);
    }
}

pub(super) fn enter_edit(args: &Arguments, memory: &DialectMemory) -> Result<NativeCall, EnterFault> {
    let (old, new) = (args.word("old_string"), args.word("new_string"));
    refuse_mask(&[old, new])?;
    if old == new {
        return Err(ToolError::invalid_args(format!("{NO_CHANGES}old_string and new_string are the same.")).into());
    }
    let path = memory.native(args.word("file_path"));
    if old.is_empty() {
        // An empty text to replace means a new file.
        return Ok(look_first(&path, |answered| write_new(answered, "new_string")));
    }
    let args = json!({
        "path": path, "find": old, "replace": new, "all": args.is("replace_all"), "expected_sha256": memory.seen(&path),
    });
    Ok(NativeCall::new("edit", args))
}

/// Older versions refuse to change what wasn't read.
pub(super) fn enter_edit_read(args: &Arguments, memory: &DialectMemory) -> Result<NativeCall, EnterFault> {
    require_read(args, memory)?;
    enter_edit(args, memory)
}

pub(super) fn enter_multi_edit(args: &Arguments, memory: &DialectMemory) -> Result<NativeCall, EnterFault> {
    let edits = args.objects("edits");
    for edit in &edits {
        refuse_mask(&[edit.word("old_string"), edit.word("new_string")])?;
    }
    let edits: Vec<_> = edits
        .iter()
        .map(|edit| json!({ "find": edit.word("old_string"), "replace": edit.word("new_string"), "all": edit.is("replace_all") }))
        .collect();
    let path = memory.native(args.word("file_path"));
    Ok(NativeCall::new("edit", json!({ "path": path, "edits": edits, "expected_sha256": memory.seen(&path) })))
}

pub(super) fn enter_multi_edit_read(args: &Arguments, memory: &DialectMemory) -> Result<NativeCall, EnterFault> {
    require_read(args, memory)?;
    enter_multi_edit(args, memory)
}

fn require_read(args: &Arguments, memory: &DialectMemory) -> Result<(), EnterFault> {
    if memory.seen(&memory.native(args.word("file_path"))).is_some() || args.text("old_string") == Some("") {
        return Ok(());
    }
    Err(unread())
}

pub(super) fn leave_edit(returned: &mut Returned<'_>) -> ShownResult {
    let path = edited(returned);
    ShownResult::ok(
        match returned.args.is("replace_all") {
            true => format!("The file {path} has been updated. All occurrences were successfully replaced."),
            false => format!("The file {path} has been updated successfully."),
        } + &note(returned),
    )
}

pub(super) fn leave_edit_2_0(returned: &mut Returned<'_>) -> ShownResult {
    let path = edited(returned);
    let diff = returned.text("diff");
    let snippet = numbered(&changed_lines(diff), first_changed_line(diff), &LINE_2_0);
    ShownResult::ok(format!(
        "The file {path} has been updated. Here's the result of running `cat -n` on a snippet of the edited file:\n{snippet}{}",
        note(returned)
    ))
}

pub(super) fn leave_multi_edit(returned: &mut Returned<'_>) -> ShownResult {
    let path = edited(returned);
    let edits = returned.args.objects("edits");
    let lines: Vec<String> = (1..)
        .zip(&edits)
        .map(|(number, edit)| {
            format!("{number}. Replaced \"{}\" with \"{}\"", edit.word("old_string"), edit.word("new_string"))
        })
        .collect();
    let count = edits.len();
    let edits = if count == 1 { "edit" } else { "edits" };
    ShownResult::ok(format!("Applied {count} {edits} to {path}:\n{}{}", lines.join("\n"), note(returned)))
}

/// Remembers the new version, and gives the path as the model knows it.
fn edited(returned: &mut Returned<'_>) -> String {
    remember(returned, "file_path");
    returned.memory.absolute(&returned.memory.native(returned.args.word("file_path")))
}

/// What the native tool has to say about a match that wasn't exact.
fn note(returned: &Returned<'_>) -> String {
    let note = returned.text("note");
    if note.is_empty() { String::new() } else { format!("\n{note}") }
}

pub(super) fn enter_write(args: &Arguments, memory: &DialectMemory) -> Result<NativeCall, EnterFault> {
    refuse_mask(&[args.word("content")])?;
    let path = memory.native(args.word("file_path"));
    let args = json!({ "path": path, "content": args.word("content"), "mode": "overwrite", "expected_sha256": memory.seen(&path) });
    Ok(NativeCall::new("write", args))
}

/// Older versions refuse to replace what wasn't read; a new file needs no look.
pub(super) fn enter_write_read(args: &Arguments, memory: &DialectMemory) -> Result<NativeCall, EnterFault> {
    let path = memory.native(args.word("file_path"));
    if memory.seen(&path).is_some() {
        return enter_write(args, memory);
    }
    refuse_mask(&[args.word("content")])?;
    Ok(look_first(&path, |answered| write_new(answered, "content")))
}

/// Writes the new file that an argument holds, unless the look before found one.
fn write_new(answered: &Answered<'_>, content: &str) -> Result<Option<NativeCall>, EnterFault> {
    write_if_missing(answered, answered.args.word("file_path"), answered.args.word(content), unread())
}

pub(super) fn unread() -> EnterFault {
    let error = ToolError::new(ErrorCode::StaleFile, "File has not been read yet. Read it first before writing to it.");
    EnterFault::Refused(error.with_details(json!({ "unread": true })))
}

pub(super) fn leave_write(returned: &mut Returned<'_>) -> ShownResult {
    let shown = leave_write_2_0(returned);
    ShownResult::ok(shown.text + " (file state is current in your context — no need to Read it back)")
}

pub(super) fn leave_write_2_0(returned: &mut Returned<'_>) -> ShownResult {
    let path = edited(returned);
    ShownResult::ok(match returned.text("operation") {
        "created" => format!("File created successfully at: {path}"),
        _ => format!("The file {path} has been updated successfully."),
    })
}

pub(super) fn enter_ls(args: &Arguments, memory: &DialectMemory) -> Result<NativeCall, EnterFault> {
    let (path, ignore) = (memory.native(args.word("path")), args.texts("ignore").unwrap_or_default());
    Ok(NativeCall::new("list", json!({ "path": path, "recursive": true, "ignore": ignore })))
}

const MORE_ENTRIES: &str =
    "There are more files and directories than are shown here. List a directory further down, or use Glob or Grep.\n\n";

pub(super) fn leave_ls(returned: &mut Returned<'_>) -> ShownResult {
    let base = returned.memory.native(returned.args.word("path"));
    let base = if base == "." { String::new() } else { format!("{base}/") };
    let mut text = if returned.is("has_more") { MORE_ENTRIES.to_owned() } else { String::new() };
    text += &format!("- {}/\n", returned.memory.absolute(base.trim_end_matches('/')));
    for entry in returned.field("entries").as_array().into_iter().flatten() {
        let path = entry["path"].as_str().unwrap_or_default();
        let inner = path.strip_prefix(base.as_str()).unwrap_or(path);
        let depth = inner.trim_end_matches('/').matches('/').count();
        let name = inner.trim_end_matches('/').rsplit('/').next().unwrap_or(inner);
        let slash = if entry["kind"] == "folder" || entry["kind"] == "directory" { "/" } else { "" };
        text += &format!("{}- {name}{slash}\n", "  ".repeat(depth + 1));
    }
    ShownResult::ok(text)
}
