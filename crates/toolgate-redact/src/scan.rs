//! From keywords to secrets. One automaton finds every keyword and every known secret; a keyword's rules then look at a
//! bounded window around it. A secret therefore depends on its surroundings alone, never on where a chunk begins, which
//! is what lets a stream redact exactly as the whole text would be.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::key_body::KeyBody;
use crate::keywords::{KeywordMatch, Keywords};
use crate::rules::{AFTER, BEFORE, RULES, SecretRule};

/// Known secrets longer than this are looked for in pieces, so that a stream holds back little.
const LONGEST_PIECE: usize = 512;

/// Finds secrets.
pub(crate) struct Scanner {
    keywords: Keywords,
    /// What each keyword stands for.
    meanings: Vec<KeywordMeaning>,
}

enum KeywordMeaning {
    /// Rules to try, by their index.
    Keyword(Vec<usize>),
    /// A known secret, byte for byte.
    Known(Vec<u8>),
}

/// A keyword that was found, in positions of the whole text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeywordHit {
    pub(crate) start: usize,
    pub(crate) end: usize,
    keyword: usize,
}

/// Text as far as it is at hand.
#[derive(Clone, Copy)]
pub(crate) struct TextView<'a> {
    pub(crate) bytes: &'a [u8],
    /// The position of the first byte in the whole text.
    pub(crate) base: usize,
    /// Whether the text ends here.
    pub(crate) complete: bool,
}

impl<'a> TextView<'a> {
    pub(crate) fn end(&self) -> usize {
        self.base + self.bytes.len()
    }

    pub(crate) fn slice(&self, range: Range<usize>) -> &'a [u8] {
        &self.bytes[range.start - self.base..range.end - self.base]
    }
}

/// A stretch of text to replace.
#[derive(Clone)]
pub(crate) struct SecretSpan {
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// How it goes on past `end`, while that isn't settled.
    growth: Option<SpanGrowth>,
}

#[derive(Clone)]
enum SpanGrowth {
    /// A token longer than the window: on to the first byte that can't be in one.
    Token,
    /// A key's body.
    Body(KeyBody),
}

impl SecretSpan {
    /// A stretch whose end is known.
    pub(crate) fn settled(start: usize, end: usize) -> Self {
        Self { start, end, growth: None }
    }

    /// Whether its end is known.
    pub(crate) fn is_settled(&self) -> bool {
        self.growth.is_none()
    }

    /// Moves the end as far as the text at hand allows. Returns whether the end is settled.
    pub(crate) fn grow(&mut self, view: TextView<'_>) -> bool {
        match &mut self.growth {
            None => return true,
            Some(SpanGrowth::Token) => {
                let rest = view.slice(self.end..view.end());
                let length = rest.iter().position(|byte| !continues_token(*byte));
                self.end += length.unwrap_or(rest.len());
                if length.is_none() && !view.complete {
                    return false;
                }
            }
            Some(SpanGrowth::Body(body)) => {
                let open = body.read(view.slice(self.start + body.seen()..view.end()));
                self.end = self.start + body.length();
                if open && !view.complete {
                    return false;
                }
            }
        }
        self.growth = None;
        true
    }
}

/// Whether a token that filled its window goes on with this byte; what isn't ASCII stays whole.
fn continues_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_-.+/=~%".contains(&byte) || byte >= 0x80
}

impl Scanner {
    /// A scanner for every rule and for these known secrets.
    pub(crate) fn new<'a>(known: impl IntoIterator<Item = &'a str>) -> Self {
        let mut patterns: BTreeMap<String, KeywordMeaning> = BTreeMap::new();
        for (index, rule) in RULES.iter().enumerate() {
            for keyword in &rule.keywords {
                let meaning =
                    patterns.entry(keyword.to_ascii_lowercase()).or_insert(KeywordMeaning::Keyword(Vec::new()));
                if let KeywordMeaning::Keyword(rules) = meaning {
                    rules.push(index);
                }
            }
        }
        let pieces: Vec<&str> = known.into_iter().flat_map(pieces).collect();
        let (texts, mut meanings): (Vec<String>, Vec<KeywordMeaning>) = patterns.into_iter().unzip();
        meanings.extend(pieces.iter().map(|piece| KeywordMeaning::Known(piece.as_bytes().to_vec())));
        let texts: Vec<&str> = texts.iter().map(String::as_str).chain(pieces).collect();
        Self { keywords: Keywords::new(&texts), meanings }
    }

    /// Every keyword in `bytes`, in the order of their ends; `base` is the position of the first byte.
    pub(crate) fn hits(&self, bytes: &[u8], base: usize) -> impl Iterator<Item = KeywordHit> + use<> {
        let found = self.keywords.find(bytes).into_iter();
        found.map(move |KeywordMatch { keyword, start, end }| KeywordHit {
            start: base + start,
            end: base + end,
            keyword,
        })
    }

    /// How many bytes at the end of `bytes` may be the beginning of a keyword.
    pub(crate) fn unfinished(&self, bytes: &[u8]) -> usize {
        self.keywords.unfinished(bytes)
    }

    /// How many bytes at the end of `bytes` are the beginning of a known secret.
    pub(crate) fn begun_secret(&self, bytes: &[u8]) -> usize {
        let known = self.meanings.iter().filter_map(|meaning| match meaning {
            KeywordMeaning::Known(secret) => Some(secret.as_slice()),
            KeywordMeaning::Keyword(_) => None,
        });
        let begun = |secret: &[u8]| {
            let most = bytes.len().min(secret.len() - 1);
            (1..=most).rev().find(|length| bytes.ends_with(&secret[..*length])).unwrap_or(0)
        };
        known.map(begun).max().unwrap_or(0)
    }

    /// Whether some rule could find a secret after `hit`, whatever follows.
    pub(crate) fn may_lead(&self, hit: &KeywordHit, view: TextView<'_>) -> bool {
        let before = RuleWindow::new(*hit, view).before;
        match &self.meanings[hit.keyword] {
            KeywordMeaning::Known(_) => false,
            KeywordMeaning::Keyword(rules) => rules.iter().any(|&rule| RULES[rule].is_tried_after(before)),
        }
    }

    /// Whether enough of the text is at hand to decide about `hit`.
    pub(crate) fn is_ready(&self, hit: &KeywordHit, view: TextView<'_>) -> bool {
        view.complete
            || view.end() >= hit.end + AFTER
            || match &self.meanings[hit.keyword] {
                KeywordMeaning::Known(_) => true,
                KeywordMeaning::Keyword(rules) => {
                    rules.iter().all(|&rule| !RULES[rule].block) && view.slice(hit.end..view.end()).contains(&b'\n')
                }
            }
    }

    /// The secrets that `hit` leads to.
    pub(crate) fn spans<'a>(&'a self, hit: KeywordHit, view: TextView<'a>) -> impl Iterator<Item = SecretSpan> + 'a {
        let (known, rules) = match &self.meanings[hit.keyword] {
            KeywordMeaning::Known(secret) => (secret.as_slice() == view.slice(hit.start..hit.end), &[][..]),
            KeywordMeaning::Keyword(rules) => (false, rules.as_slice()),
        };
        let itself = known.then_some(SecretSpan::settled(hit.start, hit.end));
        let window = RuleWindow::new(hit, view);
        itself.into_iter().chain(rules.iter().filter_map(move |&rule| window.span(&RULES[rule])))
    }
}

/// What a rule may look at around a keyword.
struct RuleWindow<'a> {
    hit: KeywordHit,
    before: &'a [u8],
    /// From the keyword on.
    text: &'a [u8],
    /// As `text`, to the end of the line.
    line: &'a [u8],
}

impl<'a> RuleWindow<'a> {
    fn new(hit: KeywordHit, view: TextView<'a>) -> Self {
        let before = view.slice(hit.start.saturating_sub(BEFORE).max(view.base)..hit.start);
        let text = view.slice(hit.start..view.end().min(hit.end + AFTER));
        let keyword = hit.end - hit.start;
        let line = text[keyword..].iter().position(|byte| *byte == b'\n').map_or(text, |end| &text[..=keyword + end]);
        Self { hit, before, text, line }
    }

    /// What one rule finds.
    fn span(&self, rule: &SecretRule) -> Option<SecretSpan> {
        let (start, end) = rule.secret(self.before, if rule.block { self.text } else { self.line })?;
        let (start, end) = (self.hit.start + start, self.hit.start + end);
        let growth = match rule.block {
            true => Some(SpanGrowth::Body(KeyBody::default())),
            false => (end == self.hit.end + AFTER).then_some(SpanGrowth::Token),
        };
        Some(SecretSpan { start, end, growth })
    }
}

/// A long secret as pieces that lie side by side, the last one as long as the others.
fn pieces(secret: &str) -> Vec<&str> {
    if secret.len() <= LONGEST_PIECE {
        return vec![secret];
    }
    let mut pieces = Vec::new();
    let mut rest = secret;
    while rest.len() > LONGEST_PIECE {
        let (piece, after) = rest.split_at(rest.floor_char_boundary(LONGEST_PIECE));
        pieces.push(piece);
        rest = after;
    }
    pieces.push(&secret[secret.ceil_char_boundary(secret.len() - LONGEST_PIECE)..]);
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::examples::expand;

    /// Whether the rule finds something in `text`.
    fn finds(scanner: &Scanner, rule: usize, text: &str) -> bool {
        let view = TextView { bytes: text.as_bytes(), base: 0, complete: true };
        scanner.hits(view.bytes, 0).any(|hit| match &scanner.meanings[hit.keyword] {
            KeywordMeaning::Keyword(rules) => {
                rules.contains(&rule) && RuleWindow::new(hit, view).span(&RULES[rule]).is_some()
            }
            KeywordMeaning::Known(_) => false,
        })
    }

    #[test]
    fn every_rule_agrees_with_its_examples() {
        let scanner = Scanner::new([]);
        let mut faults = Vec::new();
        for (index, rule) in RULES.iter().enumerate() {
            let (matching, others) = &rule.examples;
            assert!(!matching.is_empty() && !others.is_empty(), "{} needs examples of both kinds", rule.id);
            let wrong = |example: &&String, wanted| finds(&scanner, index, &expand(example)) != wanted;
            faults.extend(matching.iter().filter(|e| wrong(e, true)).map(|e| format!("{} misses {e}", rule.id)));
            faults.extend(others.iter().filter(|e| wrong(e, false)).map(|e| format!("{} takes {e}", rule.id)));
        }
        assert!(faults.is_empty(), "{}", faults.join("\n"));
    }

    #[test]
    fn pieces_cover_a_long_secret_without_splitting_a_character() {
        let secret = "é1".repeat(700);
        let pieces = pieces(&secret);
        assert!(pieces.iter().all(|piece| piece.len() <= LONGEST_PIECE && piece.len() > LONGEST_PIECE - 4));
        let covered: usize = pieces[..pieces.len() - 1].iter().map(|piece| piece.len()).sum();
        assert!(covered + pieces[pieces.len() - 1].len() >= secret.len());
    }
}
