//! The names of a form's options: complete, abbreviated and negated.
//!
//! GNU programs and git accept every unique prefix of a long option, and git's options have a negation, `--no-NAME`. So
//! a name is resolved against all names that the program has: those of the form itself, those of the other forms of
//! the same program, and those in `knowledge/options.toml`, which do no more than change what is printed. A name that
//! is ambiguous or unknown makes the command unknown.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{LazyLock, OnceLock};

use serde::Deserialize;

use super::forms::{CommandForm, FormKind, KNOWLEDGE};
use super::roles::{FlagRole, OperandRole};

/// Options that only change what is printed, as written in the table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct OptionList {
    /// Options without a value.
    #[serde(default)]
    switches: String,
    /// Options with a value that is plain text.
    #[serde(default)]
    text: String,
    /// Options with a value that is attached or missing.
    #[serde(default)]
    optional: String,
    /// Options whose value is a file that is read.
    #[serde(default)]
    read: String,
}

// `NEGATIONS`, the programs whose options have a negation, `--no-NAME`; `OPTION_TEXTS` and `OPTION_NAMES`, the lists and
// which of them each program has.
include!(concat!(env!("OUT_DIR"), "/options.rs"));

/// The options in `knowledge/options.toml` of a program or subcommand, each with its role.
fn listed(program: &str) -> Option<BTreeMap<&'static str, FlagRole>> {
    let found = OPTION_NAMES.binary_search_by_key(&program, |(name, _)| name).ok()?;
    let mut options = BTreeMap::new();
    for index in OPTION_NAMES[found].1 {
        let list = LISTS[*index].get_or_init(|| {
            serde_json::from_str(OPTION_TEXTS[*index]).unwrap_or_else(|fault| panic!("`options` is tested: {fault}"))
        });
        options.extend(list.roles());
    }
    Some(options)
}

/// The lists of the table, each parsed when it is first needed.
static LISTS: LazyLock<Vec<OnceLock<OptionList>>> =
    LazyLock::new(|| OPTION_TEXTS.iter().map(|_| OnceLock::new()).collect());

impl OptionList {
    fn roles(&self) -> impl Iterator<Item = (&str, FlagRole)> {
        let valued = |role| FlagRole { value: Some(role), ..FlagRole::default() };
        let attached = FlagRole { optional: true, ..valued(OperandRole::Text) };
        let groups = [
            (&self.switches, FlagRole::default()),
            (&self.text, valued(OperandRole::Text)),
            (&self.optional, attached),
            (&self.read, valued(OperandRole::Read)),
        ];
        groups.into_iter().flat_map(|(names, role)| names.split_whitespace().map(move |name| (name, role)))
    }
}

/// What a long option as written means.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum OptionName<'a> {
    /// This option, by its complete name.
    Exact(&'a str),
    /// This option, by a unique prefix of its name.
    Abbreviated(&'a str),
    /// `--no-NAME`: this option is off again.
    Negated(&'a str),
    /// A prefix of several names.
    Ambiguous,
    Unknown,
}

/// All options that a form can be called with.
#[derive(Debug, Default)]
pub(super) struct KnownOptions {
    /// Every name of the program. Those that only other forms describe have no role.
    names: BTreeMap<&'static str, Option<FlagRole>>,
    /// Options have a negation.
    negations: bool,
    /// All options of the program are listed.
    complete: bool,
    /// An unknown option makes the command unknown.
    pub(super) strict: bool,
    /// Some option makes the form do more than its operands show.
    pub(super) is_risky: bool,
}

impl KnownOptions {
    /// The options of `form`, which is named `program`; `all` are all forms of that name.
    pub(super) fn new(program: &str, form: &'static CommandForm, all: &[&'static CommandForm]) -> Self {
        let mut names: BTreeMap<&'static str, Option<FlagRole>> = BTreeMap::new();
        for other in all {
            names.extend(other.flags.names().chain(other.conditions()).map(|name| (name, None)));
        }
        let listed = listed(program);
        // What decides between forms is described by the forms alone.
        let decides = |name: &str| all.iter().any(|other| other.conditions().any(|condition| condition == name));
        let harmless = listed.iter().flatten().filter(|(name, _)| !decides(name));
        names.extend(harmless.map(|(name, role)| (*name, Some(*role))));
        names.extend(form.with.iter().map(|name| (name.as_str(), Some(FlagRole::default()))));
        names.extend(form.flags.iter().map(|(name, role)| (name, Some(role))));
        let first = program.split_whitespace().next().unwrap_or_default();
        let complete = listed.is_some() || form.lenient;
        let reads_only = form.kind == FormKind::Known && form.needs.is_empty() && form.hosts.is_empty();
        let strict = form.strict || reads_only && !form.lenient;
        let differs = |other: &CommandForm| other.kind == FormKind::Run || !other.needs.is_empty();
        let is_risky = form.strict
            || reads_only && !complete
            || !form.without.is_empty()
            || all.iter().any(|other| differs(other))
            || form.operands.is_risky()
            || names.values().flatten().any(|role| role.is_risky());
        Self { names, negations: NEGATIONS.contains(&first), complete, strict, is_risky }
    }

    /// The role of an option by its complete name.
    pub(super) fn role(&self, name: &str) -> Option<FlagRole> {
        self.names.get(name).copied().flatten()
    }

    /// Whether all options of the program are listed, so that an abbreviation can mean no other one.
    pub(super) fn is_complete(&self) -> bool {
        self.complete
    }

    /// Whether a file with the name of an option matches this pattern.
    pub(super) fn matches_any(&self, pattern: &str) -> bool {
        let glob = globset::Glob::new(pattern).map(|glob| glob.compile_matcher());
        glob.map_or(true, |glob| self.names.keys().any(|name| glob.is_match(name)))
    }

    /// Every name of the program, and whether the option takes a value in this form.
    fn names_and_values(&self) -> impl Iterator<Item = (&'static str, bool)> + '_ {
        let takes_value = |role: &FlagRole| role.takes_value() && !role.optional;
        self.names.iter().map(move |(name, role)| (*name, role.as_ref().is_some_and(takes_value)))
    }

    /// Resolves a long option as written, without its value.
    pub(super) fn resolve(&self, written: &str) -> OptionName<'_> {
        if let Some((name, _)) = self.names.get_key_value(written) {
            return OptionName::Exact(name);
        }
        let mut found: Vec<OptionName<'_>> = self.beginning_with(written).map(OptionName::Abbreviated).collect();
        if let Some(rest) = written.strip_prefix("--no-").filter(|_| self.negations) {
            let positive = format!("--{rest}");
            if let Some((name, _)) = self.names.get_key_value(positive.as_str()) {
                return OptionName::Negated(name);
            }
            found.extend(self.beginning_with(&positive).map(OptionName::Negated));
        }
        match found.len() {
            0 => OptionName::Unknown,
            1 => found.remove(0),
            _ => OptionName::Ambiguous,
        }
    }

    fn beginning_with<'a>(&'a self, start: &'a str) -> impl Iterator<Item = &'static str> + 'a {
        let from = (Bound::Included(start), Bound::Unbounded);
        self.names.range::<str, _>(from).map(|(name, _)| *name).take_while(move |name| name.starts_with(start))
    }
}

/// Every program and subcommand of which a known form exists, with all its options; `true` if one takes a value. The
/// oracle test makes commands of them.
pub fn program_options() -> BTreeMap<&'static str, BTreeMap<&'static str, bool>> {
    let mut programs: BTreeMap<&str, BTreeMap<&str, bool>> = BTreeMap::new();
    for known in KNOWLEDGE.all().filter(|known| known.form.kind == FormKind::Known) {
        let options = programs.entry(known.name).or_default();
        for (name, takes_value) in known.options().names_and_values() {
            *options.entry(name).or_default() |= takes_value;
        }
    }
    programs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_option_is_resolved_among_all_names_of_its_program() {
        for (program, words, written, expected) in [
            ("git", &["apply"][..], "--stat", OptionName::Exact("--stat")),
            ("git", &["apply"], "--appl", OptionName::Abbreviated("--apply")),
            ("git", &["apply"], "--no-check", OptionName::Negated("--check")),
            ("git", &["apply"], "--no-chec", OptionName::Negated("--check")),
            ("git", &["apply"], "--s", OptionName::Ambiguous),
            ("git", &["apply"], "--unheard", OptionName::Unknown),
            ("git", &["config"], "--remove-s", OptionName::Abbreviated("--remove-section")),
            ("xz", &[], "--compr", OptionName::Abbreviated("--compress")),
            ("sort", &[], "--outp", OptionName::Abbreviated("--output")),
            ("sort", &[], "--no-output", OptionName::Unknown),
        ] {
            let forms = KNOWLEDGE.forms(program).iter().filter(|known| known.words == words);
            let mut resolved = forms.map(|known| known.options().resolve(written)).peekable();
            assert!(resolved.peek().is_some(), "{program} {words:?}");
            assert!(resolved.all(|name| name == expected), "{program} {words:?} {written}");
        }
    }

    #[test]
    fn every_listed_program_has_a_form() {
        for (program, _) in OPTION_NAMES {
            let mut words = program.split_whitespace();
            let name = words.next().unwrap();
            let words: Vec<&str> = words.collect();
            assert!(KNOWLEDGE.forms(name).iter().any(|known| known.words == words), "{program}");
        }
    }
}
