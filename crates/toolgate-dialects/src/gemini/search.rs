//! Finding files and searching in them.

use serde_json::{Value, json};

use crate::dialect::{Answered, EnterFault, NativeCall, Returned, ShownResult};
use crate::expression;
use crate::matches::{MatchLine, matched_lines, texts};
use crate::memory::{DialectMemory, path_from};
use crate::pages::{EntryRange, all_entries, json_size, next_page};
use crate::parameter::Arguments;

/// Results of a search where the model says nothing.
const DEFAULT_MATCHES: i64 = 100;
/// The most results that a native call gives.
const MOST_RESULTS: i64 = 1000;

pub(super) fn enter_glob(args: &Arguments, memory: &DialectMemory) -> Result<NativeCall, EnterFault> {
    let call = json!({
        "pattern": args.word("pattern"),
        "path": memory.native_or_here(args.text("dir_path")),
        "kind": "file",
        "order": "newest",
        "limit": MOST_RESULTS,
        "ignore_case": !args.is("case_sensitive"),
        "gitignore": args.flag("respect_git_ignore").unwrap_or(true),
        "hidden": true,
    });
    Ok(NativeCall::new("find", call))
}

pub(super) fn leave_glob(returned: &mut Returned<'_>) -> ShownResult {
    let (pattern, memory) = (returned.args.word("pattern"), &returned.memory);
    let within = memory.absolute(&memory.native_or_here(returned.args.text("dir_path")));
    let paths: Vec<String> = texts(returned.field("paths")).into_iter().map(|path| memory.absolute(path)).collect();
    if paths.is_empty() {
        return ShownResult::ok(format!("No files found matching pattern \"{pattern}\" within {within}"));
    }
    let more = if returned.is("has_more") { "\n(There are more; use a narrower pattern.)" } else { "" };
    ShownResult::ok(format!(
        "Found {} file(s) matching \"{pattern}\" within {within}, sorted by modification time (newest first):\n{}{more}",
        paths.len(),
        paths.join("\n")
    ))
}

pub(super) fn enter_grep(args: &Arguments, memory: &DialectMemory) -> Result<NativeCall, EnterFault> {
    let excludes = expression::given(args, "exclude_pattern", !args.is("case_sensitive"))?.is_some();
    // What is left out is known only once it was found, so all is looked for.
    let limit = if excludes { MOST_RESULTS } else { most_matches(args) };
    let no_ignore = args.is("no_ignore");
    let call = json!({
        "pattern": args.word("pattern"),
        "literal": args.is("fixed_strings"),
        "path": memory.native_or_here(args.text("dir_path")),
        "glob": args.text("include_pattern").map(|glob| vec![glob]),
        "ignore_case": !args.is("case_sensitive"),
        "context": args.integer("context"),
        "before": args.integer("before"),
        "after": args.integer("after"),
        "mode": list(args),
        "limit": limit.min(MOST_RESULTS),
        "gitignore": !no_ignore,
        "hidden": no_ignore,
    });
    Ok(NativeCall { then: Some(next_matches), ..NativeCall::new("grep", call) })
}

/// The list of a reply that has the results, which is named as the native mode is. Only lines of matches can be left out again.
fn list(args: &Arguments) -> &'static str {
    if args.is("names_only") && args.text("exclude_pattern").is_none() { "files" } else { "matches" }
}

/// The matches, or files, that the model wants to see.
fn range(args: &Arguments) -> EntryRange {
    EntryRange::new(0, most_matches(args))
}

fn next_matches(answered: &Answered<'_>) -> Result<Option<NativeCall>, EnterFault> {
    next_page(answered, list(answered.args), enter_grep, &|entries| {
        range(answered.args).is_full(&wanted(answered.args, entries), json_size)
    })
}

/// Matches that the model wants to see.
fn most_matches(args: &Arguments) -> i64 {
    args.integer("total_max_matches").unwrap_or(DEFAULT_MATCHES)
}

pub(super) fn leave_grep(returned: &mut Returned<'_>) -> ShownResult {
    let (args, entries) = (returned.args, all_entries(returned, list(returned.args)));
    let wanted = wanted(args, &entries);
    let (shown, is_cut) = range(args).of(&wanted, json_size);
    let path = args.text("dir_path").filter(|path| !path.is_empty()).unwrap_or(".");
    let filter = args.text("include_pattern").map(|glob| format!(" (filter: \"{glob}\")")).unwrap_or_default();
    let about = format!("for pattern \"{}\" in path \"{path}\"{filter}", args.word("pattern"));
    let limited = match is_cut || returned.is("has_more") {
        true => format!(" (results limited to {} matches for performance)", shown.len()),
        false => String::new(),
    };
    let base = returned.memory.native_or_here(args.text("dir_path"));
    let file =
        |entry: &&Value| path_from(entry.as_str().or(entry["path"].as_str()).unwrap_or_default(), &base).to_owned();
    let of_files: Vec<&[&Value]> = shown.chunk_by(|a, b| list(args) == "matches" && a["path"] == b["path"]).collect();
    if shown.is_empty() {
        return ShownResult::ok(format!("No matches found {about}."));
    }
    if args.is("names_only") {
        let files: Vec<String> = of_files.iter().map(|of_file| file(&of_file[0])).collect();
        let names = files.join("\n");
        return ShownResult::ok(format!("Found {} files with matches {about}{limited}:\n{names}", files.len()));
    }
    let (count, word) = (shown.len(), if shown.len() == 1 { "match" } else { "matches" });
    let texts: String =
        of_files.iter().map(|of_file| format!("File: {}\n{}---\n", file(&of_file[0]), lines(of_file))).collect();
    ShownResult::ok(format!("Found {count} {word} {about}{limited}:\n---\n{}", texts.trim_end_matches('\n')))
}

/// Those entries that the model didn't leave out, as many of each file as it says. Files themselves are all wanted.
fn wanted<'a>(args: &Arguments, entries: &[&'a Value]) -> Vec<&'a Value> {
    let exclude = expression::given(args, "exclude_pattern", !args.is("case_sensitive")).ok().flatten();
    let is_wanted = |found: &&&Value| {
        let text = found["text"].as_str().unwrap_or_default();
        exclude.as_ref().is_none_or(|exclude| !exclude.is_match(text))
    };
    let of_a_file = args.integer("max_matches_per_file").unwrap_or(i64::MAX);
    let of_a_file = usize::try_from(of_a_file).unwrap_or(usize::MAX);
    if list(args) == "files" {
        return entries.to_vec();
    }
    let files = entries.chunk_by(|a, b| a["path"] == b["path"]);
    files.flat_map(|of_file| of_file.iter().filter(is_wanted).take(of_a_file)).copied().collect()
}

/// The matches of a file: `L7: text`, and `L6- text` for what is around one.
fn lines(of_file: &[&Value]) -> String {
    let line = |line: MatchLine<'_>| {
        let mark = if line.is_match { ':' } else { '-' };
        format!("L{}{mark} {}\n", line.number, line.text)
    };
    of_file.iter().flat_map(|found| matched_lines(found)).map(line).collect()
}
