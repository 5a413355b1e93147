//! Finding files and searching in them.

use serde_json::{Value, json};

use crate::dialect::{EnterFault, NativeCall, Returned, ShownResult};
use crate::expression::expression;
use crate::matches::{MatchLine, matched_lines, only_matches, texts};
use crate::memory::DialectMemory;
use crate::parameter::Arguments;

/// Files that a glob shows at most.
const MOST_FILES: i64 = 100;
/// Results of a search where the model says nothing.
const DEFAULT_RESULTS: i64 = 250;
/// The most results that a native call gives.
const MOST_RESULTS: i64 = 1000;
const CUT: &str = "(Results are truncated. Consider using a more specific path or pattern.)";

pub(super) fn enter_glob(args: &Arguments, memory: &DialectMemory) -> Result<NativeCall, EnterFault> {
    let path = memory.native_or_here(args.text("path"));
    let args = json!({
        "pattern": args.word("pattern"), "path": path, "kind": "file", "order": "newest", "limit": MOST_FILES, "gitignore": false,
        "hidden": true,
    });
    Ok(NativeCall::new("find", args))
}

pub(super) fn leave_glob(returned: &mut Returned<'_>) -> ShownResult {
    glob(returned, &|_, path| path.to_owned())
}

pub(super) fn leave_glob_absolute(returned: &mut Returned<'_>) -> ShownResult {
    glob(returned, &|memory, path| memory.absolute(path))
}

fn glob(returned: &Returned<'_>, shown: &dyn Fn(&DialectMemory, &str) -> String) -> ShownResult {
    let paths = texts(returned.field("paths"));
    if paths.is_empty() {
        return ShownResult::ok("No files found");
    }
    // This client shows the oldest first.
    let mut lines: Vec<String> = paths.iter().rev().map(|path| shown(returned.memory, path)).collect();
    lines.extend(has_more(returned).then(|| CUT.to_owned()));
    ShownResult::ok(lines.join("\n"))
}

fn has_more(returned: &Returned<'_>) -> bool {
    returned.field("has_more").as_bool().unwrap_or(false)
}

pub(super) fn enter_grep(args: &Arguments, memory: &DialectMemory) -> Result<NativeCall, EnterFault> {
    let multiline = args.is("multiline");
    let mode = match args.text("output_mode") {
        Some("content") => "matches",
        Some("count") => "counts",
        _ => "files",
    };
    let wanted = match args.integer("head_limit").unwrap_or(DEFAULT_RESULTS) {
        0 => MOST_RESULTS,
        limit => limit + args.integer("offset").unwrap_or(0),
    };
    let context = args.integer("-C").or(args.integer("context"));
    // Without a wish, the native tool would show some lines around few matches.
    let is_bare = mode == "matches" && args.integer("-A").or(args.integer("-B")).is_none();
    let native = json!({
        "pattern": pattern(args),
        "path": memory.native_or_here(args.text("path")),
        "glob": args.text("glob").map(|glob| vec![glob]),
        "type": args.text("type").map(|kind| vec![kind]),
        "ignore_case": args.is("-i"),
        "multiline": multiline,
        "context": context.or(is_bare.then_some(0)),
        "before": args.integer("-B"),
        "after": args.integer("-A"),
        "mode": mode,
        "limit": wanted.min(MOST_RESULTS),
        "hidden": true,
    });
    Ok(NativeCall::new("grep", native))
}

/// The pattern as it is searched for. In this client a dot matches newlines where a match may span lines.
fn pattern(args: &Arguments) -> String {
    let lines = if args.is("multiline") { "(?s)" } else { "" };
    format!("{lines}{}", args.word("pattern"))
}

pub(super) fn leave_grep(returned: &mut Returned<'_>) -> ShownResult {
    let (skip, limit) =
        (returned.args.integer("offset").unwrap_or(0), returned.args.integer("head_limit").unwrap_or(DEFAULT_RESULTS));
    let skip = usize::try_from(skip).unwrap_or(usize::MAX);
    let (text, is_cut) = match returned.args.text("output_mode") {
        Some("content") => (content(returned, skip), has_more(returned)),
        Some("count") => (counts(returned, skip), has_more(returned)),
        _ => (files(returned, skip), has_more(returned)),
    };
    let offset = if skip > 0 { format!(", offset: {skip}") } else { String::new() };
    let page = match is_cut || skip > 0 {
        true => format!("\n\n[Showing results with pagination = limit: {limit}{offset}]"),
        false => String::new(),
    };
    ShownResult::ok(text + &page)
}

fn files(returned: &Returned<'_>, skip: usize) -> String {
    let files: Vec<&str> = texts(returned.field("files")).into_iter().skip(skip).collect();
    match files.len() {
        0 => "No files found".to_owned(),
        1 => format!("Found 1 file\n{}", files[0]),
        count => format!("Found {count} files\n{}", files.join("\n")),
    }
}

fn counts(returned: &Returned<'_>, skip: usize) -> String {
    let counts: Vec<(&str, u64)> = returned
        .field("counts")
        .as_array()
        .into_iter()
        .flatten()
        .skip(skip)
        .map(|count| (count["path"].as_str().unwrap_or_default(), count["count"].as_u64().unwrap_or(0)))
        .collect();
    if counts.is_empty() {
        return "No matches found".to_owned();
    }
    let total: u64 = counts.iter().map(|(_, count)| count).sum();
    let lines: Vec<String> = counts.iter().map(|(path, count)| format!("{path}:{count}")).collect();
    let (files, occurrences) = (counts.len(), if total == 1 { "occurrence" } else { "occurrences" });
    let word = if files == 1 { "file" } else { "files" };
    format!("{}\n\nFound {total} total {occurrences} across {files} {word}.", lines.join("\n"))
}

fn content(returned: &Returned<'_>, skip: usize) -> String {
    let numbers = returned.args.flag("-n").unwrap_or(true);
    let matches = returned.field("matches").as_array().cloned().unwrap_or_default();
    // Where one file was named, its name isn't repeated.
    let named = returned.args.text("path").map(|path| returned.memory.native(path)).unwrap_or_default();
    let only =
        returned.args.is("-o").then(|| expression(&pattern(returned.args), returned.args.is("-i")).ok()).flatten();
    let lines = matches.iter().skip(skip).flat_map(|found| match &only {
        Some(expression) => shown_lines(found, only_matches(found, expression), numbers, &named),
        None => shown_lines(found, matched_lines(found), numbers, &named),
    });
    let lines: Vec<String> = lines.collect();
    if lines.is_empty() { "No matches found".to_owned() } else { lines.join("\n") }
}

/// Lines of a match: `path:7:text`, and `path-6-text` for what is around it.
fn shown_lines(found: &Value, lines: Vec<MatchLine<'_>>, numbers: bool, named: &str) -> Vec<String> {
    let path = found["path"].as_str().unwrap_or_default();
    let shown = |line: MatchLine<'_>| {
        let mark = if line.is_match { ':' } else { '-' };
        let number = if numbers { format!("{}{mark}", line.number) } else { String::new() };
        let path = if path == named { String::new() } else { format!("{path}{mark}") };
        format!("{path}{number}{}", line.text)
    };
    lines.into_iter().map(shown).collect()
}
