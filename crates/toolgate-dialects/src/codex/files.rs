//! Patches, images, and the file tools of January 2026.

use serde_json::{Value, json};
use toolgate_contract::{ToolError, file_uri_path};

use super::exec_output::wall_time;
use super::indented_block;
use crate::dialect::{Answered, EnterFault, NativeCall, Returned, ShownResult};
use crate::memory::{DialectMemory, path_from};
use crate::numbered::{LineStyle, numbered, shortened};
use crate::pages::{EntryRange, all_entries, json_size, next_page};
use crate::parameter::Arguments;
use crate::redaction::refuse_mask;

/// The most lines that a native call gives.
const MOST_LINES: i64 = 2000;
/// Lines as they are shown: cut at 500 characters.
const LINE: LineStyle = LineStyle { most_characters: 500, ..LineStyle::new("L", 0, ": ") };

pub(super) fn enter_patch(args: &Arguments, _: &DialectMemory) -> Result<NativeCall, EnterFault> {
    apply_patch(args.word("input"))
}

/// The native call of a patch in this client's format, which others have taken over.
pub(crate) fn apply_patch(text: &str) -> Result<NativeCall, EnterFault> {
    refuse_mask(&[text])?;
    Ok(NativeCall::new("patch", json!({ "patch": text, "semantics": "codex" })))
}

/// The patch of a command that does nothing but apply one: `apply_patch <<'EOF' … EOF`.
pub(super) fn heredoc_patch(command: &str) -> Option<&str> {
    let rest = command.trim().strip_prefix("apply_patch")?.trim_start().strip_prefix("<<")?;
    let (word, body) = rest.split_once('\n')?;
    let word = word.trim().trim_matches(['\'', '"']);
    let body = body.trim_end().strip_suffix(word).filter(|_| !word.is_empty())?;
    (body.ends_with('\n') && !body.lines().any(|line| line == word)).then_some(body)
}

pub(super) fn leave_patch(returned: &mut Returned<'_>) -> ShownResult {
    ShownResult::ok(patched(returned))
}

/// What a patch did: one line for each file.
pub(super) fn patched(returned: &Returned<'_>) -> String {
    format!("Exit code: 0\nWall time: {:.0} seconds\nOutput:\n{}", wall_time(returned), patched_files(returned))
}

/// The files that a patch changed, a letter and a path for each.
pub(crate) fn patched_files(returned: &Returned<'_>) -> String {
    let mut text = "Success. Updated the following files:\n".to_owned();
    for result in returned.field("results").as_array().into_iter().flatten() {
        let letter = match result["operation"]["kind"].as_str() {
            Some("create") => 'A',
            Some("delete") => 'D',
            _ => 'M',
        };
        // A file that was moved is shown by its new path.
        let path = result["operation"]["to"].as_str().or(result["path"].as_str());
        text += &format!("{letter} {}\n", path.unwrap_or_default());
        text.extend(result["note"].as_str().map(|note| format!("{note}\n")));
    }
    text
}

pub(super) fn enter_image(args: &Arguments, memory: &DialectMemory) -> Result<NativeCall, EnterFault> {
    Ok(NativeCall::new("image", json!({ "path": memory.native(args.word("path")) })))
}

pub(super) fn leave_image(_: &mut Returned<'_>) -> ShownResult {
    ShownResult::ok("attached local image path")
}

fn absolute(args: &Arguments, name: &str) -> Result<(), EnterFault> {
    let path = args.word(name);
    match path.starts_with('/') || file_uri_path(path).is_some() {
        true => Ok(()),
        false => Err(ToolError::invalid_args(format!("{name} must be an absolute path")).into()),
    }
}

fn at_least_one(args: &Arguments, name: &str, default: i64, message: &str) -> Result<i64, EnterFault> {
    let given = args.integer(name).unwrap_or(default);
    if given < 1 { Err(ToolError::invalid_args(message).into()) } else { Ok(given) }
}

pub(super) fn enter_read(args: &Arguments, memory: &DialectMemory) -> Result<NativeCall, EnterFault> {
    absolute(args, "file_path")?;
    if by_indentation(args) {
        return indented_block::enter(args, memory);
    }
    let offset = at_least_one(args, "offset", 1, "offset must be a 1-indexed line number")?;
    let limit = at_least_one(args, "limit", MOST_LINES, "limit must be greater than zero")?;
    let path = memory.native(args.word("file_path"));
    Ok(NativeCall::new("read", json!({ "path": path, "offset": offset, "limit": limit.min(MOST_LINES) })))
}

fn by_indentation(args: &Arguments) -> bool {
    args.text("mode") == Some("indentation")
}

pub(super) fn leave_read(returned: &mut Returned<'_>) -> ShownResult {
    if by_indentation(returned.args) {
        return match indented_block::block(returned) {
            Ok(block) => {
                let line =
                    |(number, text): &(usize, &str)| format!("L{number}: {}", shortened(text, LINE.most_characters));
                let shown = block.lines.iter().map(line).collect::<Vec<_>>().join("\n");
                ShownResult::ok(shown + &block.next.map(goes_on).unwrap_or_default())
            }
            Err(fault) => ShownResult::error(fault),
        };
    }
    let content = returned.text("content");
    // An empty file has no first line either.
    if content.is_empty() {
        return ShownResult::error("offset exceeds file length");
    }
    let content = content.strip_suffix('\n').unwrap_or(content);
    let (first, last) = (returned.number("start_line"), returned.number("end_line"));
    let mut shown = numbered(content, first, &LINE);
    // A page holds so many bytes, which may be fewer lines than were asked for.
    if returned.is("has_more") && last - first + 1 < returned.args.integer("limit").unwrap_or(i64::MAX) {
        shown += &goes_on(usize::try_from(last + 1).unwrap_or_default());
    }
    ShownResult::ok(shown)
}

/// What follows lines that a page was too small for.
fn goes_on(next: usize) -> String {
    format!("\n(The file goes on: read on with offset {next}.)")
}

pub(super) fn enter_list(args: &Arguments, memory: &DialectMemory) -> Result<NativeCall, EnterFault> {
    absolute(args, "dir_path")?;
    at_least_one(args, "offset", 1, "offset must be a 1-indexed entry number")?;
    at_least_one(args, "limit", 25, "limit must be greater than zero")?;
    at_least_one(args, "depth", 2, "depth must be greater than zero")?;
    let call =
        json!({ "path": memory.native(args.word("dir_path")), "recursive": args.integer("depth").unwrap_or(2) > 1 });
    Ok(NativeCall { then: Some(next_entries), ..NativeCall::new("list", call) })
}

/// The entries that the model wants to see.
fn entry_range(args: &Arguments) -> EntryRange {
    EntryRange::new(args.integer("offset").unwrap_or(1) - 1, args.integer("limit").unwrap_or(25))
}

fn next_entries(answered: &Answered<'_>) -> Result<Option<NativeCall>, EnterFault> {
    next_page(answered, "entries", enter_list, &|entries| {
        entry_range(answered.args).is_full(&near_entries(answered.args, answered.memory, entries), json_size)
    })
}

/// An entry's path from the directory that is listed.
fn inner_path<'a>(entry: &'a Value, base: &str) -> &'a str {
    path_from(entry["path"].as_str().unwrap_or_default(), base)
}

/// Those that are no deeper than the model wants to see.
fn near_entries<'a>(args: &Arguments, memory: &DialectMemory, entries: &[&'a Value]) -> Vec<&'a Value> {
    let base = memory.native(args.word("dir_path"));
    let depth = usize::try_from(args.integer("depth").unwrap_or(2)).unwrap_or(1);
    let depth_of = |entry: &Value| inner_path(entry, &base).trim_end_matches('/').matches('/').count();
    entries.iter().filter(|entry| depth_of(entry) < depth).copied().collect()
}

pub(super) fn leave_list(returned: &mut Returned<'_>) -> ShownResult {
    let (args, range) = (returned.args, entry_range(returned.args));
    let base = returned.memory.native(args.word("dir_path"));
    let entries = near_entries(args, returned.memory, &all_entries(returned, "entries"));
    let has_more = returned.is("has_more");
    if range.skip + 1 > entries.len().max(1) && !has_more {
        return ShownResult::error("offset exceeds directory entry count");
    }
    let (shown, is_cut) = range.of(&entries, json_size);
    let mut lines = vec![format!("Absolute path: {}", returned.memory.absolute(&base))];
    lines.extend(shown.iter().map(|entry| entry_line(inner_path(entry, &base), entry)));
    // Where not even all pages that one call reads lead to the offset, those before it are counted.
    let found = if shown.is_empty() { entries.len() } else { shown.len() };
    lines.extend((is_cut || has_more).then(|| format!("More than {found} entries found")));
    ShownResult::ok(lines.join("\n"))
}

/// An entry, two spaces a level, with a mark for what it is.
fn entry_line(path: &str, entry: &Value) -> String {
    let path = path.trim_end_matches('/');
    let name = path.rsplit('/').next().unwrap_or(path);
    let mark = match entry["kind"].as_str() {
        Some("folder") => "/",
        Some("link") => "@",
        Some("file") => "",
        _ => "?",
    };
    format!("{}{name}{mark}", "  ".repeat(path.matches('/').count()))
}

/// The most files that a model can ask for, and that a native call gives.
const MOST_FILES: i64 = 2000;
const PAGE_FILES: i64 = 1000;

pub(super) fn enter_grep(args: &Arguments, memory: &DialectMemory) -> Result<NativeCall, EnterFault> {
    let limit = at_least_one(args, "limit", 100, "limit must be greater than zero")?;
    let call = json!({
        "pattern": args.word("pattern"),
        "path": memory.native_or_here(args.text("path")),
        "glob": args.text("include").map(|glob| vec![glob]),
        "mode": "files",
        "order": "newest",
        "limit": limit.min(PAGE_FILES),
    });
    Ok(NativeCall { then: Some(next_files), ..NativeCall::new("grep", call) })
}

/// The files that the model wants to see.
fn file_range(args: &Arguments) -> EntryRange {
    EntryRange::new(0, args.integer("limit").unwrap_or(100).min(MOST_FILES))
}

fn next_files(answered: &Answered<'_>) -> Result<Option<NativeCall>, EnterFault> {
    next_page(answered, "files", enter_grep, &|files| file_range(answered.args).is_full(files, json_size))
}

pub(super) fn leave_grep(returned: &mut Returned<'_>) -> ShownResult {
    let range = file_range(returned.args);
    let entries = all_entries(returned, "files");
    let (shown, is_cut) = range.of(&entries, json_size);
    let mut files: Vec<String> =
        shown.iter().filter_map(|file| Some(returned.memory.absolute(file.as_str()?))).collect();
    if files.is_empty() {
        return ShownResult::error("No matches found.");
    }
    let is_less = files.len() < range.count && (is_cut || returned.is("has_more"));
    files.extend(is_less.then(|| format!("More than {} files match.", files.len())));
    ShownResult::ok(files.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_only_applies_a_patch_is_that_patch() {
        let patch = "*** Begin Patch\n*** Delete File: a\n*** End Patch\n";
        for word in ["EOF", "'EOF'", "\"EOF\"", "PATCH"] {
            let plain = word.trim_matches(['\'', '"']);
            assert_eq!(heredoc_patch(&format!("apply_patch <<{word}\n{patch}{plain}\n")), Some(patch), "{word}");
        }
        for command in [
            "apply_patch",
            "apply_patch <<EOF\nx\nEOF\nrm -rf a\nEOF",
            "cd a && apply_patch <<E\nx\nE",
            "apply_patch <<E\nx\nF",
        ] {
            assert_eq!(heredoc_patch(command), None, "{command}");
        }
    }
}
