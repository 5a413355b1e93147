//! Reading and changing files.

use serde_json::{Value, json};
use toolgate_contract::{ErrorCode, ToolError};

use crate::codex::apply_patch;
use crate::dialect::{Answered, EnterFault, NativeCall, Returned, ShownResult};
use crate::memory::DialectMemory;
use crate::new_file::{look_first, write_if_missing};
use crate::numbered::{LineStyle, numbered_between};
use crate::pages::{EntryRange, all_entries, json_size, next_page};
use crate::parameter::Arguments;
use crate::redaction::refuse_mask;

/// Lines that are read where the model says nothing.
const MOST_LINES: i64 = 2000;

pub(super) fn enter_read(args: &Arguments, memory: &DialectMemory) -> Result<NativeCall, EnterFault> {
    let limit = args.integer("limit").unwrap_or(MOST_LINES).min(MOST_LINES);
    let call = json!({ "path": path(args, memory), "offset": args.integer("offset").unwrap_or(1), "limit": limit });
    Ok(NativeCall { then: Some(list_directory), ..NativeCall::new("read", call) })
}

fn path(args: &Arguments, memory: &DialectMemory) -> String {
    memory.native(args.word("filePath"))
}

/// A directory is listed instead. Only the workspace knows that it is one.
fn list_directory(answered: &Answered<'_>) -> Result<Option<NativeCall>, EnterFault> {
    let is_directory = answered.reply.error.as_ref().is_some_and(|error| error.code == ErrorCode::NotAFile);
    match is_directory {
        true => list(answered.args, answered.memory).map(Some),
        false => Ok(None),
    }
}

fn list(args: &Arguments, memory: &DialectMemory) -> Result<NativeCall, EnterFault> {
    let call = NativeCall::new("list", json!({ "path": path(args, memory) }));
    Ok(NativeCall { then: Some(next_entries), ..call })
}

/// The entries that the model wants to see.
fn entry_range(args: &Arguments) -> EntryRange {
    EntryRange::new(args.integer("offset").unwrap_or(1) - 1, args.integer("limit").unwrap_or(MOST_LINES))
}

fn next_entries(answered: &Answered<'_>) -> Result<Option<NativeCall>, EnterFault> {
    next_page(answered, "entries", list, &|entries| entry_range(answered.args).is_full(entries, json_size))
}

pub(super) fn leave_read(returned: &mut Returned<'_>) -> ShownResult {
    let path = returned.memory.absolute(&path(returned.args, returned.memory));
    if !returned.field("entries").is_null() {
        return ShownResult::ok(directory(returned, &path));
    }
    if !returned.field("image").is_null() {
        return ShownResult::ok("Image read successfully");
    }
    let (content, total) = (returned.text("content"), returned.number("total_lines"));
    let offset = returned.args.integer("offset").unwrap_or(1);
    if content.is_empty() && offset > total.max(1) {
        return ShownResult::error(format!("Offset {offset} is out of range for this file ({total} lines)"));
    }
    let (first, last) = (returned.number("start_line"), returned.number("end_line"));
    let end = match returned.is("has_more") {
        true => format!("(Showing lines {first}-{last} of {total}. Use offset={} to continue.)", last + 1),
        false => format!("(End of file - total {total} lines)"),
    };
    let (before, after) =
        (format!("<path>{path}</path>\n<type>file</type>\n<content>\n"), format!("\n\n{end}\n</content>"));
    ShownResult::ok(match content.strip_suffix('\n').unwrap_or(content) {
        "" if total == 0 => before + &after,
        text => numbered_between(&before, text, first, &LineStyle::new("", 0, ": "), &after),
    })
}

fn directory(returned: &Returned<'_>, path: &str) -> String {
    let name = |entry: &&Value| {
        let slash = if entry["kind"] == "folder" { "/" } else { "" };
        format!("{}{slash}", entry["name"].as_str().unwrap_or_default())
    };
    let (range, entries) = (entry_range(returned.args), all_entries(returned, "entries"));
    let (shown, is_cut) = range.of(&entries, json_size);
    let names: Vec<String> = shown.iter().map(name).collect();
    let (count, known) = (shown.len(), entries.len());
    let next = range.skip + count + 1;
    let end = match (is_cut, returned.is("has_more")) {
        (false, false) => format!("({known} entries)"),
        (_, has_more) => {
            // How many there are altogether is known only at the end.
            let total = if has_more { format!("more than {known}") } else { known.to_string() };
            format!("(Showing {count} of {total} entries. Use 'offset' parameter to read beyond entry {next})")
        }
    };
    format!("<path>{path}</path>\n<type>directory</type>\n<entries>\n{}\n\n{end}\n</entries>", names.join("\n"))
}

pub(super) fn enter_edit(args: &Arguments, memory: &DialectMemory) -> Result<NativeCall, EnterFault> {
    let (old, new) = (args.word("oldString"), args.word("newString"));
    refuse_mask(&[old, new])?;
    if old == new {
        return Err(ToolError::invalid_args("No changes to apply: oldString and newString are the same.").into());
    }
    let path = path(args, memory);
    if old.is_empty() {
        // An empty text to replace means a new file.
        return Ok(look_first(&path, write_new));
    }
    let call = json!({ "path": path, "find": old, "replace": new, "all": args.is("replaceAll") });
    Ok(NativeCall::new("edit", call))
}

fn write_new(answered: &Answered<'_>) -> Result<Option<NativeCall>, EnterFault> {
    let exists = ToolError::invalid_args("There is a file already, so `oldString` can't be empty.")
        .with_hint("Give the text to replace, or use `write` to replace all of the file.");
    write_if_missing(answered, answered.args.word("filePath"), answered.args.word("newString"), exists.into())
}

pub(super) fn leave_edit(returned: &mut Returned<'_>) -> ShownResult {
    let note = returned.text("note");
    ShownResult::ok(if note.is_empty() {
        "Edit applied successfully.".to_owned()
    } else {
        format!("Edit applied successfully.\n{note}")
    })
}

pub(super) fn enter_write(args: &Arguments, memory: &DialectMemory) -> Result<NativeCall, EnterFault> {
    refuse_mask(&[args.word("content")])?;
    let call = json!({ "path": path(args, memory), "content": args.word("content"), "mode": "overwrite" });
    Ok(NativeCall::new("write", call))
}

pub(super) fn leave_write(_: &mut Returned<'_>) -> ShownResult {
    ShownResult::ok("Wrote file successfully.")
}

pub(super) fn enter_patch(args: &Arguments, _: &DialectMemory) -> Result<NativeCall, EnterFault> {
    apply_patch(args.word("patchText"))
}

pub(super) fn leave_patch(returned: &mut Returned<'_>) -> ShownResult {
    ShownResult::ok(crate::codex::patched_files(returned).trim_end())
}
