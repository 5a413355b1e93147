//! What a question asks for: its terms, and what its words say about the kind of file.

use crate::language::FileKind;
use crate::terms::{Term, TermKind, each_term, exact_term, whole_term, word_term};

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

/// The most words of a question that may be one identifier in the code: `default body limit` is `DefaultBodyLimit`.
const LONGEST_COMPOUND: usize = 3;

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
    /// Whether it is made of neighbouring words, so that a text without it lacks nothing.
    pub(crate) is_compound: bool,
}

impl QueryTerm {
    fn new(word: String, term: Term) -> Self {
        Self { word, term, weight: 1.0, is_whole: false, is_exact: false, is_compound: false }
    }
}

/// A question.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Query {
    pub(crate) terms: Vec<QueryTerm>,
    /// Whether it asks for one identifier and nothing else.
    pub(crate) is_symbol: bool,
    /// The kind of file that its words are about, if they say so.
    pub(crate) about: Option<FileKind>,
    /// Whether it asks for examples or measurements.
    pub(crate) wants_examples: bool,
}

impl Query {
    /// Reads a question.
    pub(crate) fn new(question: &str) -> Self {
        let mut query = Self {
            terms: Vec::new(),
            is_symbol: is_symbol(question),
            about: about(question),
            wants_examples: has_word_of(question, &["example", "demo", "sample", "benchmark", "bench"]),
        };
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
            let kind = QueryTerm { weight: WHOLE, is_exact: true, ..QueryTerm::new(word, term) };
            query.terms.push(kind);
        }
        query.add_compounds(question);
        query
    }

    /// Adds what neighbouring words are as one identifier.
    fn add_compounds(&mut self, question: &str) {
        let words: Vec<String> =
            question.split(|c: char| !c.is_ascii_alphanumeric()).map(str::to_ascii_lowercase).collect();
        for count in 2..=LONGEST_COMPOUND {
            for parts in words.windows(count) {
                let (first, last) = (parts[0].as_str(), parts[count - 1].as_str());
                if parts.iter().any(|part| part.len() < 2) || [first, last].iter().any(|end| STOP_WORDS.contains(end)) {
                    continue;
                }
                let joined = parts.concat();
                // The last word in both numbers: the code may have one, or several.
                let other = joined.strip_suffix('s').map_or_else(|| format!("{joined}s"), str::to_owned);
                for letters in [joined, other] {
                    let term = whole_term(&letters);
                    if self.terms.len() < MOST_TERMS && self.terms.iter().all(|known| known.term != term) {
                        let compound =
                            QueryTerm { is_whole: true, is_compound: true, ..QueryTerm::new(parts.join(" "), term) };
                        self.terms.push(compound);
                    }
                }
            }
        }
    }

    fn add(&mut self, word: &str, term: Term, kind: TermKind) {
        let (is_whole, has_room) = (kind == TermKind::Whole, self.terms.len() < MOST_TERMS);
        match self.terms.iter_mut().find(|known| known.term == term) {
            Some(known) => known.is_whole |= is_whole,
            None if has_room => {
                let weight = if is_whole { WHOLE } else { 1.0 };
                self.terms.push(QueryTerm { weight, is_whole, ..QueryTerm::new(word.to_owned(), term) });
            }
            None => {}
        }
    }
}

/// Whether a question is one identifier, such as `parse_header`, `Gate::perform`, `HttpServer`, `_open` or `open()`.
fn is_symbol(question: &str) -> bool {
    let question = question.trim();
    let name = question.trim_end_matches("()");
    let is_called = name.len() < question.len();
    let question = name;
    let is_identifier = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$' | ':' | '.' | '#' | '>' | '-');
    let looks_like_name = question.chars().skip(1).any(|c| c.is_uppercase() || matches!(c, '_' | ':' | '.'))
        || question.starts_with(|c: char| c.is_uppercase() || c == '_')
        || is_called;
    !question.is_empty() && question.chars().all(is_identifier) && looks_like_name
}

/// What kind of file a question's words are about.
fn about(question: &str) -> Option<FileKind> {
    const TESTS: [&str; 5] = ["test", "tests", "testing", "benchmark", "spec"];
    const DOCS: [&str; 9] =
        ["doc", "docs", "documentation", "readme", "changelog", "typo", "guide", "release", "tutorial"];
    let mut words = question.split(|c: char| !c.is_alphanumeric());
    words.find_map(|word| {
        if has_word_of(word, &TESTS) {
            Some(FileKind::Tests)
        } else {
            has_word_of(word, &DOCS).then_some(FileKind::Docs)
        }
    })
}

/// Whether a text has one of these words, in any form.
fn has_word_of(text: &str, words: &[&str]) -> bool {
    let mut own = text.split(|c: char| !c.is_alphanumeric()).map(word_term);
    own.any(|own| words.iter().any(|word| word_term(word) == own))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbouring_words_may_be_one_identifier() {
        let has = |question: &str, name: &str| {
            let query = Query::new(question);
            let mut whole = None;
            each_term(name, |term, kind| whole = (kind == TermKind::Whole).then_some(term).or(whole));
            query.terms.iter().any(|term| term.is_compound && Some(term.term) == whole)
        };
        assert!(has("the default body limit of requests", "DefaultBodyLimit"));
        assert!(has("default body limits", "default_body_limit") && has("body limit", "BodyLimits"));
        assert!(!has("limit of the body", "limitOfThe") && !has("default limit of a body", "DefaultBody"));
        let long = Query::new(&(0..200).map(|number| format!("word{number} ")).collect::<String>());
        assert!(long.terms.len() <= MOST_TERMS + 1, "each has a bit");
    }

    #[test]
    fn words_say_what_kind_of_file_is_meant() {
        for (question, about, wants_examples) in [
            ("where are retries decided", None, false),
            ("tests of the retry loop", Some(FileKind::Tests), false),
            ("typo in the guide", Some(FileKind::Docs), false),
            ("Examples of a websocket", None, true),
            ("benchmarks of parsing", Some(FileKind::Tests), true),
        ] {
            let query = Query::new(question);
            assert_eq!((query.about, query.wants_examples), (about, wants_examples), "{question}");
        }
    }

    #[test]
    fn one_identifier_is_told_from_a_word() {
        for name in ["parse_header", "Gate::perform", "HttpServer", "Server", "_open", "open()", "a.b"] {
            assert!(is_symbol(name), "{name}");
        }
        for words in ["open", "open the file", "", "()", "?"] {
            assert!(!is_symbol(words), "{words}");
        }
    }
}
