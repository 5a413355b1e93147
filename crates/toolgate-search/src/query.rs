//! What a question asks for: its terms, and what its words say about the kind of file.

use crate::language::FileKind;
use crate::terms::{Term, TermKind, each_term, exact_term, word_term};

/// Words that a question has and that say nothing about the code.
const STOP_WORDS: &[&str] = &[
    "a", "an", "and", "are", "as", "at", "be", "by", "can", "could", "do", "does", "for", "from", "has", "have", "how",
    "i", "if", "in", "into", "is", "it", "its", "me", "my", "of", "on", "or", "our", "so", "such", "than", "that",
    "the", "their", "them", "then", "there", "these", "they", "this", "to", "we", "was", "were", "what", "when",
    "where", "which", "who", "why", "will", "with", "would", "you", "your", "find", "show", "code",
];

/// Words that a question begins with and that code is full of: they say what to do, and little about where.
const WEAK_WORDS: &[&str] = &[
    "add",
    "allow",
    "change",
    "correct",
    "drop",
    "ensure",
    "fix",
    "handle",
    "implement",
    "improve",
    "make",
    "move",
    "remove",
    "rename",
    "replace",
    "support",
    "update",
    "use",
    "feat",
    "refactor",
    "chore",
    "minor",
    "some",
    "more",
    "not",
    "don",
    "doesn",
    "also",
    "only",
    "better",
    "new",
    "instead",
    "when",
    "after",
    "before",
];
/// What such a word counts beside others.
const WEAK: f32 = 0.4;
/// What a whole identifier of several parts counts beside its parts.
const WHOLE: f32 = 1.5;

/// The most terms of a question that are looked up.
const MOST_TERMS: usize = 63;

/// A term of a question.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct QueryTerm {
    /// The word of the question that it comes from.
    pub(crate) word: String,
    pub(crate) term: Term,
    /// How much it counts beside others.
    pub(crate) weight: f32,
    /// Whether it is a whole identifier of several parts.
    pub(crate) is_whole: bool,
    /// Whether it is the name of a definition, as it is written.
    pub(crate) is_exact: bool,
}

/// A question.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Query {
    pub(crate) terms: Vec<QueryTerm>,
    /// Whether it asks for one identifier and nothing else.
    pub(crate) is_symbol: bool,
    /// The kind of file that its words are about, if they say so.
    pub(crate) about: Option<FileKind>,
}

impl Query {
    /// Reads a question.
    pub(crate) fn new(question: &str) -> Self {
        let mut query = Self { terms: Vec::new(), is_symbol: is_symbol(question), about: about(question) };
        for word in question.split_whitespace() {
            let bare = word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
            if STOP_WORDS.contains(&bare.as_str()) {
                continue;
            }
            each_term(word, |term, kind| query.add(&bare, term, kind));
        }
        let weak: Vec<Term> = WEAK_WORDS.iter().map(|word| word_term(word)).collect();
        for known in query.terms.iter_mut().filter(|known| weak.contains(&known.term)) {
            known.weight *= WEAK;
        }
        // A question of stop words alone is about those words.
        if query.terms.is_empty() {
            each_term(question, |term, kind| query.add(question.trim(), term, kind));
        }
        if query.is_symbol {
            let name = question.trim().trim_end_matches("()");
            let last = name.rsplit([':', '.', '#', '>']).next().unwrap_or(name);
            let (word, term) = (name.to_lowercase(), exact_term(last));
            query.terms.push(QueryTerm { word, term, weight: WHOLE, is_whole: false, is_exact: true });
        }
        query
    }

    fn add(&mut self, word: &str, term: Term, kind: TermKind) {
        let (is_whole, has_room) = (kind == TermKind::Whole, self.terms.len() < MOST_TERMS);
        match self.terms.iter_mut().find(|known| known.term == term) {
            Some(known) => known.is_whole |= is_whole,
            None if has_room => {
                let weight = if is_whole { WHOLE } else { 1.0 };
                self.terms.push(QueryTerm { word: word.to_owned(), term, weight, is_whole, is_exact: false });
            }
            None => {}
        }
    }
}

/// Whether a question is one identifier, such as `parse_header`, `Gate::perform` or `HttpServer`.
fn is_symbol(question: &str) -> bool {
    let question = question.trim().trim_end_matches("()");
    let is_identifier = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$' | ':' | '.' | '#' | '>' | '-');
    let looks_like_name = question.chars().skip(1).any(|c| c.is_uppercase() || matches!(c, '_' | ':' | '.'))
        || question.starts_with(char::is_uppercase);
    !question.is_empty() && question.chars().all(is_identifier) && looks_like_name
}

/// What kind of file a question's words are about.
fn about(question: &str) -> Option<FileKind> {
    const TESTS: [&str; 5] = ["test", "tests", "testing", "benchmark", "spec"];
    const DOCS: [&str; 9] =
        ["doc", "docs", "documentation", "readme", "changelog", "typo", "guide", "release", "tutorial"];
    let mut words = question.split(|c: char| !c.is_alphanumeric()).map(word_term);
    let is_one_of = |words: &[&str], word: Term| words.iter().any(|known| word_term(known) == word);
    words.find_map(|word| {
        if is_one_of(&TESTS, word) { Some(FileKind::Tests) } else { is_one_of(&DOCS, word).then_some(FileKind::Docs) }
    })
}
