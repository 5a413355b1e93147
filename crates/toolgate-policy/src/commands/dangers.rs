//! What is denied in every preset: the table of dangers, and the dangers that only the analysis of a command shows.

use std::sync::LazyLock;

use serde::Deserialize;
use toolgate_contract::{Access, WorkspacePath};

use super::PathContext;
use super::arguments::{ParsedArguments, ParsedFlag};
use super::simple_command::{Argument, Danger, SimpleCommand, Touch};
use super::word_pattern::WordPattern;
use crate::path_glob::PathSet;
use crate::sensitive_paths::find_sensitive;

/// One entry of the table, as written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct DangerEntry {
    reason: String,
    command: String,
    #[serde(default)]
    flags: Vec<String>,
    #[serde(default)]
    operands: Vec<String>,
    /// With one of these words the command is harmless.
    #[serde(default)]
    unless: Vec<String>,
    #[serde(default)]
    fixed: bool,
    #[serde(default)]
    examples: Vec<String>,
    #[serde(default)]
    harmless: Vec<String>,
}

struct DangerPattern {
    entry: DangerEntry,
    words: Vec<WordPattern>,
    /// Flags, each with the pattern that its value must match, if any.
    flags: Vec<(String, Option<WordPattern>)>,
    operands: Vec<WordPattern>,
}

static TABLE: LazyLock<Vec<DangerPattern>> = LazyLock::new(|| {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct DangerTable {
        danger: Vec<DangerEntry>,
    }
    let table: DangerTable =
        serde_json::from_str(include_str!(concat!(env!("OUT_DIR"), "/dangers.json"))).expect("the table is tested");
    table.danger.into_iter().map(DangerPattern::new).collect()
});

/// Programs that transform text before it is run.
const DECODERS: &[&str] = &[
    "base64", "base32", "basenc", "xxd", "openssl", "gpg", "uudecode", "rev", "gunzip", "zcat", "gzip", "bunzip2",
    "xz", "unxz", "zstd", "od",
];

/// Whether a path is on the list of sensitive paths.
pub(super) fn is_sensitive(place: &WorkspacePath) -> bool {
    find_sensitive(Access::Read, place, &PathSet::default()).is_some()
}

/// Every example of the table: its rule, the command, and whether it is dangerous.
pub(super) fn examples() -> impl Iterator<Item = (String, &'static str, bool)> {
    TABLE.iter().flat_map(|known| {
        let dangerous = known.entry.examples.iter().map(|example| (example, true));
        let all = dangerous.chain(known.entry.harmless.iter().map(|example| (example, false)));
        all.map(|(example, dangerous)| (known.rule(), example.as_str(), dangerous))
    })
}

/// Checks a command against the table. `parsed` are its arguments, if a form of it is known.
pub(super) fn from_table(
    part: &mut SimpleCommand,
    name: &str,
    arguments: &[Argument],
    parsed: Option<&ParsedArguments>,
) {
    for known in TABLE.iter().filter(|known| known.matches(name, arguments, parsed)) {
        let danger = Danger { rule: known.rule(), reason: known.entry.reason.clone(), fixed: known.entry.fixed };
        if !part.dangers.contains(&danger) {
            part.dangers.push(danger);
        }
    }
}

impl DangerPattern {
    fn new(entry: DangerEntry) -> Self {
        let flag = |flag: &String| match flag.split_once(' ') {
            Some((name, value)) => (name.to_owned(), Some(WordPattern::new(value))),
            None => (flag.clone(), None),
        };
        Self {
            words: entry.command.split_whitespace().map(WordPattern::new).collect(),
            flags: entry.flags.iter().map(flag).collect(),
            operands: entry.operands.iter().map(|operand| WordPattern::new(operand)).collect(),
            entry,
        }
    }

    fn rule(&self) -> String {
        format!("deny dangerous command {}", self.entry.command)
    }

    fn matches(&self, name: &str, arguments: &[Argument], parsed: Option<&ParsedArguments>) -> bool {
        let Some((program, rest)) = self.words.split_first() else { return false };
        if !program.is_match(name) {
            return false;
        }
        // Flags may be between the words that name a command.
        let mut plain = arguments.iter().filter(|argument| !argument.text.starts_with('-') || argument.text == "-");
        let is_word =
            |word: &WordPattern, argument: &Argument| argument.known().is_some_and(|text| word.is_match(text));
        if !rest.iter().all(|word| plain.next().is_some_and(|argument| is_word(word, argument))) {
            return false;
        }
        let has_word = |word: &String| arguments.iter().any(|argument| argument.text == *word);
        if self.entry.unless.iter().any(has_word) {
            return false;
        }
        if self.flags.is_empty() && self.operands.is_empty() {
            return true;
        }
        let is_operand = |argument: &Argument| self.operands.iter().any(|pattern| pattern.is_match(&argument.text));
        let operands = match parsed {
            Some(parsed) => parsed.operands.iter().any(is_operand),
            None => plain.any(is_operand),
        };
        // A process may be named by a number with a dash, which isn't the first argument.
        let dashed = arguments
            .iter()
            .skip(1)
            .any(|argument| argument.text.starts_with('-') && self.entry.operands.contains(&argument.text));
        operands || dashed || self.has_flag(arguments, parsed)
    }

    fn has_flag(&self, arguments: &[Argument], parsed: Option<&ParsedArguments>) -> bool {
        let fits = |pattern: &Option<WordPattern>, value: Option<&str>| match (pattern, value) {
            (None, _) => true,
            (Some(pattern), Some(value)) => pattern.is_match(value),
            (Some(_), None) => false,
        };
        let by_form = parsed.is_some_and(|parsed| {
            let is_flag = |(flag, pattern): &(String, Option<WordPattern>), given: &ParsedFlag| {
                is_named(&given.name, flag) && fits(pattern, given.value.as_ref().map(|value| value.text.as_str()))
            };
            parsed.flags.iter().any(|given| self.flags.iter().any(|flag| is_flag(flag, given)))
        });
        let by_text = |index: usize, text: &str| {
            let next = arguments.get(index + 1).map(|argument| argument.text.as_str());
            self.flags.iter().any(|(flag, pattern)| {
                let (name, attached) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
                let short = text.strip_prefix(flag.as_str()).filter(|rest| flag.len() == 2 && !rest.is_empty());
                match (is_named(name, flag), short) {
                    (true, _) => fits(pattern, attached.or(next)),
                    (false, Some(rest)) => pattern.is_some() && fits(pattern, Some(rest)),
                    // In a bundle with other flags; a form would have told them apart.
                    (false, None) => parsed.is_none() && pattern.is_none() && is_bundled(text, flag),
                }
            })
        };
        let texts = arguments.iter().map(|argument| argument.text.as_str()).take_while(|text| *text != "--");
        by_form || texts.enumerate().any(|(index, text)| text.starts_with('-') && by_text(index, text))
    }
}

/// Whether a name is this flag, complete or abbreviated.
fn is_named(name: &str, flag: &str) -> bool {
    name == flag || name.starts_with("--") && name.len() > 4 && flag.starts_with(name)
}

fn is_bundled(text: &str, flag: &str) -> bool {
    flag.len() == 2 && !text.starts_with("--") && text[1..].contains(&flag[1..])
}

/// Dangers of the paths that a command touches.
pub(super) fn dangers_of_touches(part: &mut SimpleCommand, paths: &PathContext, moves: bool, recursive: bool) {
    for touch in part.touches.clone() {
        let Touch::Path { access, path, pattern } = touch else { continue };
        if access != Access::Read && is_device(&path) {
            part.dangers.push(danger("deny writing to devices", "It overwrites a device, and all data on it."));
        }
        let is_lost = |directory: &str| match access {
            Access::Read => false,
            Access::Write => recursive && paths.is_vital_to_change(directory),
            Access::Delete => paths.is_vital(directory),
        };
        let directory = if pattern && !moves { all_of(&path) } else { (!pattern).then_some(path.as_str()) };
        if directory.is_some_and(is_lost) {
            let what = if access == Access::Delete { "deletes or moves away" } else { "changes everything in" };
            part.dangers.push(danger(
                "deny removing roots and home",
                &format!("It {what} `{}`, which the system or its user depends on.", paths.shown(&path)),
            ));
        }
    }
}

fn danger(rule: &str, reason: &str) -> Danger {
    Danger { rule: rule.to_owned(), reason: reason.to_owned(), fixed: true }
}

/// The directory whose entire content a pattern names: `/etc` for `/etc/*`.
fn all_of(path: &str) -> Option<&str> {
    let (directory, name) = path.rsplit_once('/')?;
    let is_all = !name.is_empty() && name.chars().all(|letter| matches!(letter, '*' | '?' | '.' | '[' | ']' | '!'));
    is_all.then_some(if directory.is_empty() { "/" } else { directory })
}

fn is_device(path: &str) -> bool {
    let Some(name) = path.strip_prefix("/dev/") else { return false };
    !super::builtins::SINKS.contains(&path)
        && !["shm/", "fd/", "pts/", "mqueue/"].iter().any(|start| name.starts_with(start))
        && !matches!(name, "random" | "urandom" | "ptmx" | "tcp" | "udp")
}

/// Whether what a command prints comes from the network or out of a decoder.
pub(super) fn is_foreign(source: &SimpleCommand) -> bool {
    let name = source.words.first().and_then(Argument::known).unwrap_or_default();
    source.reaches_out() || DECODERS.contains(&name.rsplit('/').next().unwrap_or(name))
}

/// The danger of running such text.
pub(super) fn code_from_elsewhere() -> Danger {
    danger("deny running code from elsewhere", "It runs text that nobody could inspect before.")
}

/// The danger of a look at what other processes were given.
pub(super) fn environments_of_others() -> Danger {
    danger("deny reading processes' environments", "It shows the environments of processes, which hold their secrets.")
}

/// Words with which code in an argument may run the data that it reads.
const RUNS_DATA: &[&str] = &[
    "exec",
    "execSync",
    "execFileSync",
    "eval",
    "instance_eval",
    "class_eval",
    "system",
    "popen",
    "subprocess",
    "spawn",
    "spawnSync",
    "child_process",
    "Function",
    "runInThisContext",
    "runInNewContext",
    "runInContext",
    "__import__",
    "importlib",
    "pickle",
    "marshal",
    "runpy",
    "ctypes",
    "qx",
];

/// Whether code in an argument may run what it reads from its input.
pub(super) fn may_run_its_input(code: &Argument) -> bool {
    let words = |text: &str| {
        let mut words = text.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
        words.any(|word| RUNS_DATA.contains(&word))
    };
    code.known().is_none_or(words)
}

/// Modules of Python that read their input as data.
pub(super) const DATA_MODULES: &[&str] = &["json.tool", "base64", "gzip", "quopri", "tarfile", "zipfile", "calendar"];

/// Denies running code that comes straight from the network or a decoder.
pub(super) fn dangers_of_sources<'a>(part: &mut SimpleCommand, mut sources: impl Iterator<Item = &'a SimpleCommand>) {
    if let Some(source) = sources.find(|source| is_foreign(source)) {
        let reason = match source.reaches_out() {
            true => "It runs code straight from the network, before anyone can inspect it.",
            false => "It decodes text and runs it, before anyone can inspect it.",
        };
        part.dangers.push(danger("deny running code from elsewhere", reason));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_in_a_bundle_counts_where_no_form_tells_flags_apart() {
        for (flags, dangerous) in [("-F", true), ("-vF", true), ("-vnF", true), ("-vn", false), ("--F", false)] {
            let mut part = SimpleCommand::default();
            from_table(&mut part, "iptables", &[Argument::literal(flags)], None);
            assert_eq!(!part.dangers.is_empty(), dangerous, "{flags}");
        }
    }
}
