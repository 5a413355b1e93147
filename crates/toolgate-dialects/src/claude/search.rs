//! Finding files and searching in them.

use serde_json::{Value, json};
use toolgate_contract::counted;

use crate::dialect::{Answered, EnterFault, NativeCall, Returned, ShownResult};
use crate::expression::expression;
use crate::matches::{MatchLine, matched_lines, only_matches, texts};
use crate::memory::DialectMemory;
use crate::pages::{EntryRange, all_entries, json_size, next_page};
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
    let (mode, range) = (mode(args), range(args));
    let wanted = i64::try_from(range.skip.saturating_add(range.count)).unwrap_or(MOST_RESULTS);
    let context = args.integer("-C").or(args.integer("context"));
    // Without a wish, the native tool would show some lines around few matches.
    let is_bare = mode == "matches" && args.integer("-A").or(args.integer("-B")).is_none();
    let native = json!({
        "pattern": pattern(args),
        "path": memory.native_or_here(args.text("path")),
        "glob": args.text("glob").map(|glob| vec![glob]),
        "type": args.text("type").map(|kind| vec![kind]),
        "ignore_case": args.is("-i"),
        "multiline": args.is("multiline"),
        "context": context.or(is_bare.then_some(0)),
        "before": args.integer("-B"),
        "after": args.integer("-A"),
        "mode": mode,
        "order": (mode == "files").then_some("newest"),
        "limit": wanted.min(MOST_RESULTS),
        "hidden": true,
    });
    Ok(NativeCall { then: Some(next_results), ..NativeCall::new("grep", native) })
}

/// The native mode, and the list of a reply that has its results.
fn mode(args: &Arguments) -> &'static str {
    match args.text("output_mode") {
        Some("content") => "matches",
        Some("count") => "counts",
        _ => "files",
    }
}

/// The results that the model wants to see: files, or lines.
fn range(args: &Arguments) -> EntryRange {
    let count = args.integer("head_limit").unwrap_or(DEFAULT_RESULTS);
    EntryRange::new(args.integer("offset").unwrap_or(0), if count == 0 { i64::MAX } else { count })
}

/// The pattern as it is searched for. In this client a dot matches newlines where a match may span lines.
fn pattern(args: &Arguments) -> String {
    let lines = if args.is("multiline") { "(?s)" } else { "" };
    format!("{lines}{}", args.word("pattern"))
}

fn next_results(answered: &Answered<'_>) -> Result<Option<NativeCall>, EnterFault> {
    let (args, memory) = (answered.args, answered.memory);
    next_page(answered, mode(args), enter_grep, &|entries| match mode(args) {
        "matches" => range(args).is_full(&content(args, memory, entries), String::len),
        _ => range(args).is_full(entries, json_size),
    })
}

const NO_ENTRIES: &str = "No entries at this offset";
/// What is said where not even all pages that one call reads lead to the offset.
const TOO_FAR: &str =
    "There are more results before this offset than one search goes through. Search for less at once.";

pub(super) fn leave_grep(returned: &mut Returned<'_>) -> ShownResult {
    let (args, range, has_more) = (returned.args, range(returned.args), has_more(returned));
    let entries = all_entries(returned, mode(args));
    if has_more && entries.len() <= range.skip && mode(args) != "matches" {
        return ShownResult::error(TOO_FAR);
    }
    if mode(args) == "matches" {
        let lines = content(args, returned.memory, &entries);
        if has_more && lines.len() <= range.skip {
            return ShownResult::error(TOO_FAR);
        }
        let (shown, is_cut) = range.of(&lines, String::len);
        return ShownResult::ok(match (shown, page(range, shown.len(), is_cut || has_more)) {
            ([], None) => "No matches found".to_owned(),
            (shown, None) => shown.join("\n"),
            ([], Some(page)) => format!("{NO_ENTRIES}\n\n[Showing results with pagination = {page}]"),
            (shown, Some(page)) => format!("{}\n\n[Showing results with pagination = {page}]", shown.join("\n")),
        });
    }
    let (shown, is_cut) = range.of(&entries, json_size);
    let page = page(range, shown.len(), is_cut || has_more);
    let is_count = mode(args) == "counts";
    ShownResult::ok(match is_count {
        true => counts(returned, shown, page),
        false => files(shown, page),
    })
}

/// Which part is shown, if it isn't all. Where fewer fit than were asked for, the next page begins behind these.
fn page(range: EntryRange, shown: usize, is_cut: bool) -> Option<String> {
    let limit = is_cut.then(|| format!("limit: {shown}"));
    let offset = (range.skip > 0).then(|| format!("offset: {}", range.skip));
    let parts: Vec<String> = limit.into_iter().chain(offset).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

fn files(shown: &[&Value], page: Option<String>) -> String {
    let files: Vec<&str> = shown.iter().filter_map(|file| file.as_str()).collect();
    let word = if files.len() == 1 { "file" } else { "files" };
    match (files.len(), page) {
        (0, None) => "No files found".to_owned(),
        (0, Some(page)) => format!("{NO_ENTRIES}. [Showing results with pagination = {page}]"),
        (count, page) => {
            let page = page.map(|page| format!(" {page}")).unwrap_or_default();
            format!("Found {count} {word}{page}\n{}", files.join("\n"))
        }
    }
}

/// The files that are shown, and how many matches there are in all of them.
fn counts(returned: &Returned<'_>, shown: &[&Value], page: Option<String>) -> String {
    let first = returned.earlier.first().unwrap_or(returned.reply).payload.as_ref();
    let total = |name: &str| first.and_then(|first| first["totals"][name].as_u64());
    let count = |file: &&Value| file["count"].as_u64().unwrap_or(0);
    let occurrences = total("matches").unwrap_or_else(|| shown.iter().map(count).sum());
    let files = total("files").unwrap_or(shown.len() as u64);
    if files == 0 {
        return "No matches found".to_owned();
    }
    let line = |file: &&Value| format!("{}:{}", file["path"].as_str().unwrap_or_default(), count(file));
    let lines = if shown.is_empty() { vec![NO_ENTRIES.to_owned()] } else { shown.iter().map(line).collect() };
    let page = page.map(|page| format!(" with pagination = {page}")).unwrap_or_default();
    let found = format!("{} across {}", counted(occurrences, "total occurrence"), counted(files, "file"));
    format!("{}\n\nFound {found}.{page}", lines.join("\n"))
}

/// The lines of matches, those around them, and a mark between lines that aren't next to each other.
fn content(args: &Arguments, memory: &DialectMemory, matches: &[&Value]) -> Vec<String> {
    let numbers = args.flag("-n").unwrap_or(true);
    // Where one file was named, its name isn't repeated.
    let named = args.text("path").map(|path| memory.native(path)).unwrap_or_default();
    let only = args.is("-o").then(|| expression(&pattern(args), args.is("-i")).ok()).flatten();
    let has_context =
        ["-A", "-B", "-C", "context"].iter().any(|name| args.integer(name).is_some_and(|lines| lines > 0));
    let (mut shown, mut last): (Vec<String>, Option<(&Value, i64)>) = (Vec::new(), None);
    for found in matches {
        let lines = match &only {
            Some(expression) => only_matches(found, expression),
            None => matched_lines(found),
        };
        let next = lines.first().map(|line| (&found["path"], line.number));
        if has_context && only.is_none() && last.is_some() && next != last {
            shown.push("--".to_owned());
        }
        last = lines.last().map(|line| (&found["path"], line.number + 1));
        shown.extend(shown_lines(found, lines, numbers, &named));
    }
    shown
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
