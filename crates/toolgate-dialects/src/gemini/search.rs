//! Finding files and searching in them.

use serde_json::{Value, json};

use crate::dialect::{EnterFault, NativeCall, Returned, ShownResult};
use crate::expression;
use crate::matches::{matched_lines, texts};
use crate::memory::DialectMemory;
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
        "mode": if args.is("names_only") && !excludes { "files" } else { "matches" },
        "limit": limit.min(MOST_RESULTS),
        "gitignore": !no_ignore,
        "hidden": no_ignore,
    });
    Ok(NativeCall::new("grep", call))
}

/// Matches that the model wants to see.
fn most_matches(args: &Arguments) -> i64 {
    args.integer("total_max_matches").unwrap_or(DEFAULT_MATCHES)
}

pub(super) fn leave_grep(returned: &mut Returned<'_>) -> ShownResult {
    let pattern = returned.args.word("pattern");
    let path = returned.args.text("dir_path").filter(|path| !path.is_empty()).unwrap_or(".");
    let about = format!("for pattern \"{pattern}\" in path \"{path}\"");
    let (matches, is_cut) = limited(returned);
    let mut files = texts(returned.field("files"));
    files.extend(matches.chunk_by(|a, b| a["path"] == b["path"]).filter_map(|of_file| of_file[0]["path"].as_str()));
    if files.is_empty() {
        return ShownResult::ok(format!("No matches found {about}."));
    }
    let more = if is_cut || returned.is("has_more") { "\n(There are more; narrow the search.)" } else { "" };
    if returned.args.is("names_only") {
        let count = files.len();
        return ShownResult::ok(format!("Found {count} files with matches {about}:\n{}{more}", files.join("\n")));
    }
    let (count, word) = (matches.len(), if matches.len() == 1 { "match" } else { "matches" });
    ShownResult::ok(format!("Found {count} {word} {about}:\n---\n{}{more}", by_file(&matches)))
}

/// The matches that the model wants to see, as many of each file and as many altogether as it says, and whether there are more.
fn limited<'a>(returned: &'a Returned<'_>) -> (Vec<&'a Value>, bool) {
    let args = returned.args;
    let exclude = expression::given(args, "exclude_pattern", !args.is("case_sensitive")).ok().flatten();
    let is_wanted = |found: &&Value| {
        let text = found["text"].as_str().unwrap_or_default();
        exclude.as_ref().is_none_or(|exclude| !exclude.is_match(text))
    };
    let number = |limit: i64| usize::try_from(limit).unwrap_or(usize::MAX);
    let of_a_file = number(args.integer("max_matches_per_file").unwrap_or(i64::MAX));
    let files = returned.list("matches").chunk_by(|a, b| a["path"] == b["path"]);
    let wanted = files.flat_map(|of_file| of_file.iter().filter(is_wanted).take(of_a_file));
    let mut wanted: Vec<&Value> = wanted.collect();
    let most = number(most_matches(args));
    let is_cut = wanted.len() > most;
    wanted.truncate(most);
    (wanted, is_cut)
}

/// The matches of each file under its name, `L7: text` for a match and `L6- text` for what is around it.
fn by_file(matches: &[&Value]) -> String {
    let mut text = String::new();
    for of_file in matches.chunk_by(|a, b| a["path"] == b["path"]) {
        text += &format!("File: {}\n", of_file[0]["path"].as_str().unwrap_or_default());
        for line in of_file.iter().flat_map(|found| matched_lines(found)) {
            let mark = if line.is_match { ':' } else { '-' };
            text += &format!("L{}{mark} {}\n", line.number, line.text);
        }
        text += "---\n";
    }
    text.trim_end_matches('\n').to_owned()
}
