//! Cuts text into the tokens of a model's vocabulary, as its `tokenizer.json` says: the normalization and the WordPiece of
//! BERT, which the published model2vec weights have. A reader of our own, since `model2vec-rs` with its
//! `tokenizers` brings 141 crates along; a tokenizer of another kind is refused by its name.

use std::collections::HashMap;

use serde::Deserialize;
use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;

/// The part of `tokenizer.json` that is used.
#[derive(Deserialize)]
struct TokenizerFile {
    normalizer: Option<NormalizerFile>,
    pre_tokenizer: Option<TypedPart>,
    model: ModelFile,
}

#[derive(Deserialize)]
struct TypedPart {
    r#type: String,
}

#[derive(Deserialize)]
struct NormalizerFile {
    r#type: String,
    #[serde(default)]
    lowercase: bool,
    strip_accents: Option<bool>,
}

#[derive(Deserialize)]
struct ModelFile {
    r#type: Option<String>,
    unk_token: Option<String>,
    #[serde(default = "default_prefix")]
    continuing_subword_prefix: String,
    #[serde(default = "default_longest")]
    max_input_chars_per_word: usize,
    vocab: serde_json::Value,
}

fn default_prefix() -> String {
    "##".into()
}

fn default_longest() -> usize {
    100
}

/// A vocabulary of whole words and of parts that continue a word.
#[derive(Debug)]
pub(crate) struct WordPieces {
    words: HashMap<Box<str>, u32>,
    continuations: HashMap<Box<str>, u32>,
    /// The token of words that the vocabulary doesn't have; it says nothing.
    unknown: Option<u32>,
    /// The longest entry, in bytes.
    longest_piece: usize,
    /// Words with more characters aren't looked up.
    longest_word: usize,
    lowercase: bool,
    strip_accents: bool,
    /// One more than the highest token.
    pub(crate) size: u32,
}

impl WordPieces {
    /// Reads a `tokenizer.json`. The error says what isn't supported.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, String> {
        let file: TokenizerFile =
            serde_json::from_slice(bytes).map_err(|error| format!("`tokenizer.json` can't be read: {error}"))?;
        let TokenizerFile { normalizer, pre_tokenizer, model } = file;
        let unsupported = |what: &str, kind: &str, known: &str| {
            Err(format!("its {what} is `{kind}`, and only `{known}` is supported"))
        };
        match model.r#type.as_deref() {
            Some("WordPiece") | None => {}
            Some(other) => return unsupported("tokenizer", other, "WordPiece"),
        }
        match pre_tokenizer.as_ref().map(|part| part.r#type.as_str()) {
            Some("BertPreTokenizer") => {}
            other => return unsupported("pre-tokenizer", other.unwrap_or("none"), "BertPreTokenizer"),
        }
        let (lowercase, strip_accents) = match &normalizer {
            None => (false, false),
            Some(part) if part.r#type == "BertNormalizer" => {
                (part.lowercase, part.strip_accents.unwrap_or(part.lowercase))
            }
            Some(part) => return unsupported("normalizer", &part.r#type, "BertNormalizer"),
        };
        let vocabulary: HashMap<Box<str>, u32> =
            serde_json::from_value(model.vocab).map_err(|error| format!("its vocabulary can't be read: {error}"))?;
        let prefix = model.continuing_subword_prefix;
        let unknown = model.unk_token.and_then(|token| vocabulary.get(token.as_str()).copied());
        let size = vocabulary.values().max().map_or(0, |highest| highest.saturating_add(1));
        let longest_piece = vocabulary.keys().map(|piece| piece.len()).max().unwrap_or(0);
        let (mut words, mut continuations) = (HashMap::new(), HashMap::new());
        for (piece, token) in vocabulary {
            match piece.strip_prefix(&prefix).filter(|rest| !rest.is_empty() && !prefix.is_empty()) {
                Some(rest) => drop(continuations.insert(rest.into(), token)),
                None => drop(words.insert(piece, token)),
            }
        }
        let longest_word = model.max_input_chars_per_word;
        Ok(Self { words, continuations, unknown, longest_piece, longest_word, lowercase, strip_accents, size })
    }

    /// Calls `each` for the tokens of a text, until it says that there are enough.
    pub(crate) fn each_token(&self, text: &str, mut each: impl FnMut(u32) -> bool) {
        let (mut word, mut pieces) = (String::new(), Vec::new());
        let mut finish = |word: &mut String| {
            self.cut(word, &mut pieces);
            word.clear();
            pieces.drain(..).all(&mut each)
        };
        let normalized = |word: &mut String, c: char| match c.is_ascii() {
            true => word.push(if self.lowercase { c.to_ascii_lowercase() } else { c }),
            false => self.push_normalized(word, c),
        };
        for c in text.chars() {
            let is_alone = is_punctuation(c) || is_han(c);
            if is_alone || c.is_whitespace() {
                if !word.is_empty() && !finish(&mut word) {
                    return;
                }
                if is_alone {
                    normalized(&mut word, c);
                    if !finish(&mut word) {
                        return;
                    }
                }
            } else if !c.is_control() && c != '\u{FFFD}' {
                normalized(&mut word, c);
            }
        }
        if !word.is_empty() {
            finish(&mut word);
        }
    }

    fn push_normalized(&self, word: &mut String, c: char) {
        let mut push = |c: char| match self.lowercase {
            true => word.extend(c.to_lowercase()),
            false => word.push(c),
        };
        match self.strip_accents {
            true => std::iter::once(c).nfd().filter(|c| !is_combining_mark(*c)).for_each(&mut push),
            false => push(c),
        }
    }

    /// Cuts a word into the longest pieces that the vocabulary has; nothing if a part of it has none.
    fn cut(&self, word: &str, pieces: &mut Vec<u32>) {
        if word.len() > self.longest_word && word.chars().count() > self.longest_word {
            return;
        }
        let mut rest = word;
        while !rest.is_empty() {
            let known = if rest.len() == word.len() { &self.words } else { &self.continuations };
            let mut end = rest.floor_char_boundary(self.longest_piece.min(rest.len()));
            let token = loop {
                match known.get(&rest[..end]) {
                    Some(token) if end > 0 => break Some(*token),
                    _ if end <= 1 => break None,
                    _ => end = rest.floor_char_boundary(end - 1),
                }
            };
            let Some(token) = token.filter(|token| Some(*token) != self.unknown) else {
                pieces.clear();
                return;
            };
            pieces.push(token);
            rest = &rest[end..];
        }
    }
}

fn is_punctuation(c: char) -> bool {
    match c.is_ascii() {
        true => c.is_ascii_punctuation(),
        false => matches!(u32::from(c),
            0xA1 | 0xA7 | 0xAB | 0xB6 | 0xB7 | 0xBB | 0xBF
            | 0x2010..=0x2027 | 0x2030..=0x205E // dashes, quotation marks, ellipsis
            | 0x3001..=0x3003 | 0x3008..=0x3011 | 0x3014..=0x301F // punctuation of Chinese and Japanese
            | 0xFF01..=0xFF0F | 0xFF1A..=0xFF20 | 0xFF3B..=0xFF3D | 0xFF5B | 0xFF5D..=0xFF65
        ),
    }
}

/// Characters that are words by themselves for BERT.
fn is_han(c: char) -> bool {
    matches!(u32::from(c), 0x3400..=0x4DBF | 0x4E00..=0x9FFF | 0xF900..=0xFAFF | 0x20000..=0x2FA1F)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(model: &serde_json::Value) -> Result<WordPieces, String> {
        let file = json!({
            "normalizer": { "type": "BertNormalizer", "lowercase": true, "strip_accents": null },
            "pre_tokenizer": { "type": "BertPreTokenizer" },
            "model": model,
        });
        WordPieces::read(file.to_string().as_bytes())
    }

    fn tokens(pieces: &WordPieces, text: &str) -> Vec<u32> {
        let mut found = Vec::new();
        pieces.each_token(text, |token| {
            found.push(token);
            true
        });
        found
    }

    #[test]
    fn words_are_cut_into_the_longest_pieces_and_unknown_ones_left_out() {
        let vocabulary =
            json!({ "[UNK]": 0, "token": 1, "##iz": 2, "##ization": 3, "cafe": 4, "(": 5, "读": 6, "to": 7 });
        let pieces = read(&json!({ "type": "WordPiece", "unk_token": "[UNK]", "vocab": vocabulary })).unwrap();
        assert_eq!(tokens(&pieces, "Tokenization(Café)\ttokenx"), [1, 3, 5, 4], "`)` and `tokenx` aren't known");
        assert_eq!(tokens(&pieces, "读to"), [6, 7]);
        assert_eq!(
            tokens(&pieces, &format!("to{} to", "ken".repeat(100))),
            [7],
            "a word of 302 letters isn't looked up"
        );
        assert_eq!(pieces.size, 8);
    }

    #[test]
    fn another_kind_of_tokenizer_is_refused_by_its_name() {
        let said = read(&json!({ "type": "Unigram", "vocab": [] })).unwrap_err();
        assert!(said.contains("`Unigram`") && said.contains("WordPiece"), "{said}");
        assert!(WordPieces::read(b"{").unwrap_err().contains("tokenizer.json"));
    }
}
