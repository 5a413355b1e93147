//! Words: quotes, escapes, and everything that a shell expands.

use super::parser::{ShellParser, ends_word, is_name, is_name_start};
use super::{ShellWord, SyntaxFault, SyntaxResult, WordPiece};

impl ShellParser<'_> {
    /// Parses one word. The caller has checked that one begins here.
    pub(super) fn word(&mut self) -> SyntaxResult<ShellWord> {
        let start = self.at;
        let mut pieces = WordBuilder::default();
        if self.peek() == Some(b'~') {
            self.tilde(&mut pieces);
        }
        while let Some(byte) = self.peek() {
            if matches!(byte, b'<' | b'>') && self.peek_at(1) == Some(b'(') {
                self.at += 2;
                pieces.push(WordPiece::Process(self.nested_list()?));
            } else if ends_word(byte) {
                break;
            } else {
                self.word_piece(byte, &mut pieces)?;
            }
        }
        if self.peek() == Some(b'(')
            && self.at > start
            && matches!(self.text.as_bytes()[self.at - 1], b'?' | b'*' | b'+' | b'@' | b'!')
        {
            return Err(SyntaxFault::Unsupported("an extended pattern"));
        }
        Ok(ShellWord { pieces: pieces.0, written: self.text[start..self.at].to_owned() })
    }

    fn word_piece(&mut self, byte: u8, pieces: &mut WordBuilder) -> SyntaxResult<()> {
        match byte {
            b'\'' => self.single_quoted(pieces)?,
            b'"' => self.double_quoted(pieces)?,
            b'\\' => self.escaped(pieces)?,
            b'$' => self.dollar(false, pieces)?,
            b'`' => self.backquoted(false, pieces)?,
            b'*' | b'?' => {
                self.at += 1;
                pieces.push(WordPiece::Glob(char::from(byte).to_string()));
            }
            b'[' => self.bracket(pieces),
            b'{' | b'}' | b',' => {
                self.at += 1;
                pieces.push(WordPiece::Brace(char::from(byte)));
            }
            _ => {
                let letter = self.take().ok_or(SyntaxFault::Unfinished("a word"))?;
                pieces.letter(letter);
            }
        }
        Ok(())
    }

    fn tilde(&mut self, pieces: &mut WordBuilder) {
        let name =
            self.rest()[1..].bytes().take_while(|byte| is_name(*byte) || matches!(byte, b'.' | b'-' | b'+')).count();
        match self.peek_at(1 + name) {
            None | Some(b'/') => {}
            Some(byte) if ends_word(byte) => {}
            _ => return,
        }
        pieces.push(WordPiece::Tilde(self.rest()[1..=name].to_owned()));
        self.at += 1 + name;
    }

    fn single_quoted(&mut self, pieces: &mut WordBuilder) -> SyntaxResult<()> {
        self.at += 1;
        let length = self.rest().find('\'').ok_or(SyntaxFault::Unfinished("a closing quote"))?;
        pieces.text(&self.rest()[..length]);
        self.at += length + 1;
        Ok(())
    }

    pub(super) fn double_quoted(&mut self, pieces: &mut WordBuilder) -> SyntaxResult<()> {
        self.at += 1;
        pieces.text("");
        while let Some(byte) = self.peek() {
            if byte == b'"' {
                self.at += 1;
                return Ok(());
            }
            self.quoted_piece(byte, b'"', pieces)?;
        }
        Err(SyntaxFault::Unfinished("a closing quote"))
    }

    /// A piece between double quotes, or in a here-document, where the quote itself isn't special.
    fn quoted_piece(&mut self, byte: u8, quote: u8, pieces: &mut WordBuilder) -> SyntaxResult<()> {
        match byte {
            b'$' => self.dollar(true, pieces),
            b'`' => self.backquoted(true, pieces),
            b'\\' => {
                self.at += 1;
                match self.peek() {
                    Some(b'\n') => self.at += 1,
                    Some(next) if matches!(next, b'$' | b'`' | b'\\') || next == quote => {
                        self.at += 1;
                        pieces.letter(char::from(next));
                    }
                    _ => pieces.letter('\\'),
                }
                Ok(())
            }
            _ => {
                let letter = self.take().ok_or(SyntaxFault::Unfinished("a closing quote"))?;
                pieces.letter(letter);
                Ok(())
            }
        }
    }

    /// The body of a here-document whose delimiter isn't quoted.
    pub(super) fn document_word(&mut self, body: &str) -> SyntaxResult<ShellWord> {
        let mut reader = ShellParser::new(body, self.depth)?;
        let mut pieces = WordBuilder::default();
        while let Some(byte) = reader.peek() {
            reader.quoted_piece(byte, b'$', &mut pieces)?;
        }
        Ok(ShellWord { pieces: pieces.0, written: String::new() })
    }

    fn escaped(&mut self, pieces: &mut WordBuilder) -> SyntaxResult<()> {
        self.at += 1;
        match self.take() {
            Some('\n') => {}
            Some(letter) => pieces.letter(letter),
            None => return Err(SyntaxFault::Unfinished("the character after a backslash")),
        }
        Ok(())
    }

    /// `[` begins a set if it is closed within the word; otherwise it is literal.
    fn bracket(&mut self, pieces: &mut WordBuilder) {
        let rest = self.rest();
        if self.at < self.no_set_before {
            self.at += 1;
            return pieces.letter('[');
        }
        let inner = rest[1..].bytes().take_while(|byte| !ends_word(*byte) && !b"]'\"\\$`".contains(byte)).count();
        if inner > 0 && rest.as_bytes().get(1 + inner) == Some(&b']') {
            pieces.push(WordPiece::Glob(rest[..inner + 2].to_owned()));
            self.at += inner + 2;
        } else {
            let word =
                rest.bytes().take_while(|byte| !matches!(byte, b' ' | b'\t' | b'\n' | b';' | b'|' | b'&')).count();
            let closes = rest[1..word].contains(']');
            if !closes {
                // A bracket before that position isn't closed either, so brackets aren't scanned again and again.
                self.no_set_before = self.at + word;
            }
            self.at += 1;
            match closes {
                true => pieces.push(WordPiece::Unread("[".to_owned())),
                false => pieces.letter('['),
            }
        }
    }

    /// The length of the name if an assignment begins here, and whether it appends.
    pub(super) fn assignment_ahead(&self) -> SyntaxResult<Option<(usize, bool)>> {
        let rest = self.rest().as_bytes();
        if !rest.first().is_some_and(|byte| is_name_start(*byte)) {
            return Ok(None);
        }
        let name = rest.iter().take_while(|byte| is_name(**byte)).count();
        match (rest.get(name), rest.get(name + 1)) {
            (Some(b'='), _) => Ok(Some((name, false))),
            (Some(b'+'), Some(b'=')) => Ok(Some((name, true))),
            (Some(b'['), _) => {
                let word = rest.iter().take_while(|byte| !ends_word(**byte) || **byte == b'(').collect::<Vec<_>>();
                match word.windows(2).any(|pair| *pair[0] == b']' && matches!(pair[1], b'=' | b'+')) {
                    true => Err(SyntaxFault::Unsupported("an array element")),
                    false => Ok(None),
                }
            }
            _ => Ok(None),
        }
    }
}

/// Pieces of a word, with neighbouring text joined.
#[derive(Default)]
pub(super) struct WordBuilder(pub(super) Vec<WordPiece>);

impl WordBuilder {
    pub(super) fn push(&mut self, piece: WordPiece) {
        self.0.push(piece);
    }

    pub(super) fn text(&mut self, text: &str) {
        match self.0.last_mut() {
            Some(WordPiece::Text(last)) => last.push_str(text),
            _ => self.0.push(WordPiece::Text(text.to_owned())),
        }
    }

    pub(super) fn letter(&mut self, letter: char) {
        self.text(letter.encode_utf8(&mut [0; 4]));
    }
}
