//! The rules, read from `rules.toml`. Each regex is compiled when its keyword is first met: most runs meet few of them.

use std::collections::BTreeMap;
use std::sync::{LazyLock, OnceLock};

use regex::bytes::{Regex, RegexBuilder};
use serde::Deserialize;

use crate::value_check::ValueCheck;

/// How far a rule looks to the left of its keyword.
pub(crate) const BEFORE: usize = 128;
/// How far a rule looks past its keyword.
pub(crate) const AFTER: usize = 512;

/// Every rule.
pub(crate) static RULES: LazyLock<Vec<SecretRule>> =
    LazyLock::new(|| parse(include_str!(concat!(env!("OUT_DIR"), "/rules.json"))));

/// One shape of secret.
pub(crate) struct SecretRule {
    #[cfg(test)]
    pub(crate) id: String,
    /// Where to look.
    pub(crate) keywords: Vec<String>,
    /// Whether the secret is a key's body, over many lines.
    pub(crate) block: bool,
    value: ValueCheck,
    regex: LazyRegex,
    /// What must stand before the keyword.
    before: Option<LazyRegex>,
    /// Whether that is just the start of a word, which a look at one byte mostly shows.
    at_word_start: bool,
    not_before: Option<LazyRegex>,
    #[cfg(test)]
    pub(crate) examples: (Vec<String>, Vec<String>),
}

impl SecretRule {
    /// The part of `text` that is secret, as a range of it. `text` starts at the keyword; `before` is what precedes it.
    pub(crate) fn secret(&self, before: &[u8], text: &[u8]) -> Option<(usize, usize)> {
        if !self.is_tried_after(before) {
            return None;
        }
        let captures = self.regex.get().captures(text)?;
        let secret = captures.iter().skip(1).flatten().next()?;
        self.value.accepts(secret.as_bytes()).then_some((secret.start(), secret.end()))
    }

    /// Whether the rule is tried on a keyword that this precedes.
    pub(crate) fn is_tried_after(&self, before: &[u8]) -> bool {
        self.fits_after(before) && !self.not_before.as_ref().is_some_and(|pattern| pattern.get().is_match(before))
    }

    fn fits_after(&self, before: &[u8]) -> bool {
        let outside_words = || before.last().is_none_or(|byte| !byte.is_ascii_alphanumeric());
        let matches = |pattern: &LazyRegex| pattern.get().is_match(before);
        self.at_word_start && outside_words() || self.before.as_ref().is_none_or(matches)
    }
}

/// A regex that is compiled when it is first needed.
struct LazyRegex {
    source: String,
    compiled: OnceLock<Regex>,
}

impl LazyRegex {
    fn new(source: String) -> Self {
        Self { source, compiled: OnceLock::new() }
    }

    fn get(&self) -> &Regex {
        self.compiled.get_or_init(|| compile(&self.source))
    }
}

fn compile(source: &str) -> Regex {
    RegexBuilder::new(source).unicode(false).build().expect("a test compiles every rule")
}

/// `rules.toml` as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RulesFile {
    fragments: BTreeMap<String, String>,
    rule: Vec<RuleSource>,
}

/// A rule as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(not(test), expect(dead_code, reason = "names are for readers, examples for the test"))]
struct RuleSource {
    id: String,
    #[serde(rename = "description")]
    _description: String,
    keywords: Vec<String>,
    #[serde(default)]
    endings: Vec<String>,
    before: Option<String>,
    not_before: Option<String>,
    regex: String,
    #[serde(default)]
    value: ValueCheck,
    #[serde(default)]
    block: bool,
    r#match: Vec<String>,
    no_match: Vec<String>,
}

fn parse(source: &str) -> Vec<SecretRule> {
    let RulesFile { fragments, rule } = serde_json::from_str(source).expect("rules.toml is checked by a test");
    let fill = |pattern: &str| {
        fragments.iter().fold(pattern.to_owned(), |text, (name, part)| text.replace(&format!("<{name}>"), part))
    };
    let leading = |pattern: &str| LazyRegex::new(format!("(?:{})\\z", fill(pattern)));
    rule.into_iter()
        .map(|written| SecretRule {
            keywords: with_endings(&written.keywords, &written.endings),
            block: written.block,
            value: written.value,
            regex: LazyRegex::new(format!("\\A(?:{})", fill(&written.regex))),
            at_word_start: written.before.is_none(),
            before: Some(written.before.as_deref().unwrap_or("<start>")).filter(|it| !it.is_empty()).map(leading),
            not_before: written.not_before.as_deref().map(leading),
            #[cfg(test)]
            id: written.id,
            #[cfg(test)]
            examples: (written.r#match, written.no_match),
        })
        .collect()
}

fn with_endings(keywords: &[String], endings: &[String]) -> Vec<String> {
    match endings {
        [] => keywords.to_vec(),
        _ => keywords.iter().flat_map(|word| endings.iter().map(move |ending| format!("{word}{ending}"))).collect(),
    }
}
