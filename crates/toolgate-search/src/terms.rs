//! Cuts text into terms: the words that are counted and looked up. An identifier gives its parts (`parseHttpHeader` and
//! `parse_http_header` give `parse`, `http`, `header`) and, where it has several, one term for the whole of it. Words lose
//! common endings. Chinese, Japanese and Korean text, which has no spaces, gives every pair of neighbouring characters.
//! A term is a number, the hash of its letters, so that an index holds no text.

/// A term: 40 bits of a hash.
pub(crate) type Term = u64;

/// The bits of a term that count.
const TERM_BITS: u64 = (1 << 40) - 1;
/// Longer words are data, such as a key or an encoded image, and nobody asks for them.
const LONGEST_WORD: usize = 64;

/// How a term was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TermKind {
    /// A word, or a part of an identifier.
    Word,
    /// A whole identifier of several parts.
    Whole,
}

/// Calls `each` for every term of a text, in order.
pub(crate) fn each_term(text: &str, mut each: impl FnMut(Term, TermKind)) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let byte = bytes[at];
        if is_word_byte(byte) {
            let end = bytes[at..].iter().position(|byte| !is_word_byte(*byte)).map_or(bytes.len(), |run| at + run);
            identifier(&bytes[at..end], &mut each);
            at = end;
        } else if byte < 0x80 {
            at += 1;
        } else {
            let run = other_script(&text[at..]);
            letters(&text[at..at + run], &mut each);
            at += run.max(text[at..].chars().next().map_or(1, char::len_utf8));
        }
    }
}

/// The terms of a text.
pub(crate) fn terms(text: &str) -> Vec<Term> {
    let mut found = Vec::new();
    each_term(text, |term, _| found.push(term));
    found
}

/// The term of a word, with common endings removed.
pub(crate) fn word_term(word: &str) -> Term {
    let lower = word.to_lowercase();
    hash(stem(lower.as_bytes()))
}

/// The term of a whole identifier whose parts, joined in lower case, are these letters.
pub(crate) fn whole_term(letters: &str) -> Term {
    hash(letters.as_bytes())
}

/// The term of a name as it is written, which no word of a text has: `Open`, `open` and `OPEN` are three.
pub(crate) fn exact_term(name: &str) -> Term {
    let marked = [b"=", name.as_bytes()].concat();
    hash(&marked)
}

fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// The terms of one identifier in ASCII.
fn identifier(word: &[u8], each: &mut impl FnMut(Term, TermKind)) {
    let mut whole = [0_u8; LONGEST_WORD];
    let (mut length, mut parts) = (0, 0);
    for name in word.split(|byte| *byte == b'_').filter(|name| !name.is_empty()) {
        let mut rest = name;
        while !rest.is_empty() {
            let (part, after) = rest.split_at(part_length(rest));
            rest = after;
            let end = length + part.len();
            if end > LONGEST_WORD {
                return;
            }
            for (to, from) in whole[length..end].iter_mut().zip(part) {
                *to = from.to_ascii_lowercase();
            }
            let lower = &whole[length..end];
            // One digit or letter says nothing by itself, as in `i` or `x1`.
            if lower.len() > 1 {
                each(hash(stem(lower)), TermKind::Word);
            }
            length = end;
            parts += 1;
        }
    }
    if parts > 1 {
        each(hash(&whole[..length]), TermKind::Whole);
    }
}

/// How long the first part of a name is: `HTTPServer` begins with `HTTP`, `httpServer2` with `http`, `sha256` is one.
fn part_length(name: &[u8]) -> usize {
    let is_upper = |at: usize| name.get(at).is_some_and(u8::is_ascii_uppercase);
    let is_lower = |at: usize| name.get(at).is_some_and(|byte| byte.is_ascii_lowercase());
    let mut at = 1;
    if is_upper(0) {
        while is_upper(at) && !is_lower(at + 1) {
            at += 1;
        }
    }
    while at < name.len() && !is_upper(at) {
        at += 1;
    }
    at
}

/// How many bytes of letters of other scripts the text begins with.
fn other_script(text: &str) -> usize {
    text.char_indices().find(|(_, c)| c.is_ascii() || !c.is_alphanumeric()).map_or(text.len(), |(at, _)| at)
}

/// The terms of letters outside of ASCII: words, and pairs of characters in scripts without spaces.
fn letters(text: &str, each: &mut impl FnMut(Term, TermKind)) {
    let mut previous: Option<char> = None;
    let mut word = String::new();
    let mut is_pair = false;
    for c in text.chars() {
        if !is_ideographic(c) {
            alone(previous.take().filter(|_| !is_pair), each);
            word.extend(c.to_lowercase());
            continue;
        }
        finish(&mut word, each);
        is_pair = previous.is_some();
        if let Some(first) = previous {
            each(hash_characters(&[first, c]), TermKind::Word);
        }
        previous = Some(c);
    }
    alone(previous.filter(|_| !is_pair), each);
    finish(&mut word, each);
}

/// A character without a neighbour is a term by itself.
fn alone(character: Option<char>, each: &mut impl FnMut(Term, TermKind)) {
    if let Some(character) = character {
        each(hash_characters(&[character]), TermKind::Word);
    }
}

fn finish(word: &mut String, each: &mut impl FnMut(Term, TermKind)) {
    if !word.is_empty() && word.len() <= LONGEST_WORD {
        each(hash(word.as_bytes()), TermKind::Word);
    }
    word.clear();
}

fn hash_characters(characters: &[char]) -> Term {
    let text: String = characters.iter().collect();
    hash(text.as_bytes())
}

/// Scripts that are written without spaces between words.
fn is_ideographic(c: char) -> bool {
    matches!(u32::from(c),
        0x3040..=0x30FF // Hiragana, Katakana
        | 0x3400..=0x4DBF | 0x4E00..=0x9FFF | 0xF900..=0xFAFF | 0x20000..=0x323AF // Han
        | 0xAC00..=0xD7AF // Hangul
        | 0x0E00..=0x0E7F // Thai
    )
}

/// FNV-1a, mixed once more so that all bits depend on all letters. Whoever finds two words with one hash gains nothing
/// but a wrong rank.
fn hash(word: &[u8]) -> Term {
    let mut hash = 0xCBF2_9CE4_8422_2325_u64;
    for byte in word {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01B3);
    }
    hash ^= hash >> 32;
    hash = hash.wrapping_mul(0xD6E8_FEB8_6659_FD93);
    (hash ^ (hash >> 32)) & TERM_BITS
}

/// A word in lower case without a common English ending, so that `indexes`, `indexed` and `indexing` are one term. What is
/// left needn't be a word.
fn stem(word: &[u8]) -> &[u8] {
    let word = without_plural(word);
    let word = without_verb_ending(word);
    match word {
        [rest @ .., b'e'] if rest.len() >= 3 => rest,
        [rest @ .., b'y'] if rest.len() >= 4 && !is_vowel(rest[rest.len() - 1]) => rest,
        _ => word,
    }
}

fn without_plural(word: &[u8]) -> &[u8] {
    match word {
        [rest @ .., b'i', b'e', b's'] if rest.len() >= 3 => rest,
        [.., b's', b's'] | [.., b'u', b's'] | [.., b'i', b's'] => word,
        [rest @ .., b'e', b's'] if rest.len() >= 3 && matches!(rest[rest.len() - 1], b's' | b'x' | b'z') => rest,
        [rest @ .., b'h', b'e', b's'] if rest.len() >= 3 => &word[..rest.len() + 1],
        [rest @ .., b's'] if rest.len() >= 3 => rest,
        _ => word,
    }
}

fn without_verb_ending(word: &[u8]) -> &[u8] {
    let rest = match word {
        [rest @ .., b'i', b'n', b'g'] if rest.len() >= 3 => rest,
        [rest @ .., b'e', b'd'] if rest.len() >= 3 => rest,
        [rest @ .., b'a', b't', b'i', b'o', b'n'] if rest.len() >= 4 => return rest,
        [rest @ .., b'i', b'o', b'n'] if rest.len() >= 4 => return rest,
        [rest @ .., b'm', b'e', b'n', b't'] if rest.len() >= 4 => return rest,
        [rest @ .., b'e', b'r'] if rest.len() >= 4 => rest,
        _ => return word,
    };
    if !rest.iter().any(|byte| is_vowel(*byte)) {
        return word;
    }
    match rest {
        [shorter @ .., a, b] if a == b && !matches!(a, b'l' | b's' | b'z' | b'f') => &rest[..shorter.len() + 1],
        _ => rest,
    }
}

fn is_vowel(byte: u8) -> bool {
    matches!(byte, b'a' | b'e' | b'i' | b'o' | b'u' | b'y')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stemmed(word: &str) -> &str {
        std::str::from_utf8(stem(word.as_bytes())).unwrap()
    }

    #[test]
    fn forms_of_a_word_are_one_term() {
        for forms in [
            &["index", "indexes", "indexed", "indexing", "indexer"][..],
            &["handle", "handles", "handled", "handling", "handler", "handlers"],
            &["parse", "parser", "parsing", "parsed"],
            &["dependency", "dependencies"],
            &["run", "running", "runs"],
            &["patch", "patches", "patching"],
            &["configure", "configuration", "configured"],
        ] {
            let stems: Vec<&str> = forms.iter().map(|form| stemmed(form)).collect();
            assert!(stems.iter().all(|stem| stem == &stems[0]), "{forms:?} became {stems:?}");
        }
        for (word, expected) in
            [("class", "class"), ("status", "status"), ("this", "this"), ("string", "string"), ("id", "id")]
        {
            assert_eq!(stemmed(word), expected);
        }
    }

    #[test]
    fn an_identifier_gives_its_parts_and_itself() {
        let parts = |text: &str| {
            let mut found = Vec::new();
            each_term(text, |term, kind| found.push((term, kind)));
            found
        };
        assert_eq!(parts("parseHTTPHeader"), parts("parse_http_header"));
        assert_eq!(parts("parseHTTPHeader").len(), 4);
        assert_eq!(parts("SHA256"), parts("sha256"));
        assert_eq!(parts("x"), []);
        assert_eq!(parts(&"a1".repeat(40)), [], "data, not a word");
        assert_eq!(terms("Größe größe")[0], terms("größe")[0]);
    }

    #[test]
    fn scripts_without_spaces_give_pairs() {
        assert_eq!(terms("索引の更新").len(), 4);
        assert_eq!(terms("索引"), [terms("索引の更新")[0]]);
        assert_eq!(terms("索").len(), 1);
        assert_eq!(terms("读取file索引"), [terms("读取"), terms("file"), terms("索引")].concat());
    }
}
