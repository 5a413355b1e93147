//! Everything that begins with a dollar sign or a backquote.

use std::rc::Rc;

use super::parser::{ShellParser, is_name, is_name_start};
use super::tree::NestedList;
use super::word::WordBuilder;
use super::{CommandList, ExpansionOperator, SyntaxFault, SyntaxResult, WordPiece};

/// Operators of `${name…}`, longest first.
const OPERATORS: &[(&str, ExpansionOperator)] = &[
    (":-", ExpansionOperator::Default),
    (":=", ExpansionOperator::Assign),
    (":+", ExpansionOperator::Alternative),
    (":?", ExpansionOperator::Default),
    ("-", ExpansionOperator::Default),
    ("=", ExpansionOperator::Assign),
    ("+", ExpansionOperator::Alternative),
    ("?", ExpansionOperator::Default),
    ("#", ExpansionOperator::Edit),
    ("%", ExpansionOperator::Edit),
    ("/", ExpansionOperator::Edit),
    ("^", ExpansionOperator::Edit),
    (",", ExpansionOperator::Edit),
];

impl ShellParser<'_> {
    pub(super) fn dollar(&mut self, quoted: bool, pieces: &mut WordBuilder) -> SyntaxResult<()> {
        self.at += 1;
        let Some(byte) = self.peek() else {
            pieces.letter('$');
            return Ok(());
        };
        match byte {
            b'(' if self.peek_at(1) == Some(b'(') && self.is_arithmetic() => {
                self.at += 2;
                let (expression, nested) = self.arithmetic_text()?;
                pieces.push(WordPiece::Arithmetic(expression, nested));
            }
            b'(' => {
                self.at += 1;
                pieces.push(WordPiece::Substitution { script: self.nested_list()?, quoted });
            }
            b'{' => {
                self.at += 1;
                pieces.push(self.deeper(|reader| reader.expansion(quoted))?);
            }
            b'[' => return Err(SyntaxFault::Unsupported("arithmetic in brackets")),
            b'\\' if self.peek_at(1) == Some(b'\n') => {
                return Err(SyntaxFault::Unsupported("an expansion over two lines"));
            }
            b'\'' if !quoted => self.escape_quoted(pieces)?,
            b'"' if !quoted => self.double_quoted(pieces)?,
            b'?' | b'$' | b'#' | b'!' => {
                self.at += 1;
                pieces.push(WordPiece::Number);
            }
            b'@' | b'*' | b'-' | b'0'..=b'9' => {
                self.at += 1;
                pieces.push(WordPiece::Variable { name: char::from(byte).to_string(), quoted });
            }
            _ if is_name_start(byte) => {
                let name = self.take_while(is_name).to_owned();
                pieces.push(WordPiece::Variable { name, quoted });
            }
            _ => pieces.letter('$'),
        }
        Ok(())
    }

    /// Parses the commands up to the closing parenthesis.
    pub(super) fn nested_list(&mut self) -> SyntaxResult<NestedList> {
        let list = self.deeper(|reader| reader.list())?;
        if !self.eat(")") {
            return Err(if self.is_done() {
                SyntaxFault::Unfinished("a closing parenthesis")
            } else {
                self.unexpected()
            });
        }
        if !self.pending.is_empty() {
            return Err(SyntaxFault::Unsupported("a here-document that goes beyond its substitution"));
        }
        Ok(Rc::new(list))
    }

    /// Whether the two parentheses here are closed by two as well. If not, they are two subshells.
    pub(super) fn is_arithmetic(&self) -> bool {
        let mut depth = 0_usize;
        let bytes = self.rest().as_bytes();
        for (at, byte) in bytes.iter().enumerate() {
            match byte {
                b'(' => depth += 1,
                b')' if depth == 2 => return bytes.get(at + 1) == Some(&b')'),
                b')' => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
        false
    }

    /// The text up to `))`, and the commands in it.
    pub(super) fn arithmetic_text(&mut self) -> SyntaxResult<(String, Vec<NestedList>)> {
        let mut nested = Vec::new();
        let mut depth = 0_usize;
        let start = self.at;
        while let Some(byte) = self.peek() {
            match byte {
                b'(' => depth += 1,
                b')' if depth == 0 && self.peek_at(1) == Some(b')') => {
                    let text = self.text[start..self.at].to_owned();
                    self.at += 2;
                    return Ok((text, nested));
                }
                b'$' if self.peek_at(1) == Some(b'(') => {
                    self.at += 2;
                    nested.push(self.nested_list()?);
                    continue;
                }
                b')' => depth = depth.checked_sub(1).ok_or_else(|| self.unexpected())?,
                b'`' | b'[' | b'\'' | b'"' | b'\\' | b'#' | b'{' => {
                    return Err(SyntaxFault::Unsupported("arithmetic that may run code"));
                }
                b'$' if !self.peek_at(1).is_some_and(is_name_start) => {
                    return Err(SyntaxFault::Unsupported("arithmetic that may run code"));
                }
                _ => {}
            }
            self.at += 1;
        }
        Err(SyntaxFault::Unfinished("the end of arithmetic"))
    }

    pub(super) fn backquoted(&mut self, quoted: bool, pieces: &mut WordBuilder) -> SyntaxResult<()> {
        self.at += 1;
        let mut inner = String::new();
        loop {
            match self.take().ok_or(SyntaxFault::Unfinished("a closing backquote"))? {
                '`' => break,
                '\\' => match self.take().ok_or(SyntaxFault::Unfinished("a closing backquote"))? {
                    letter @ ('`' | '\\' | '$') => inner.push(letter),
                    '"' if quoted => inner.push('"'),
                    letter => inner.extend(['\\', letter]),
                },
                letter => inner.push(letter),
            }
        }
        let list = self.deeper(|reader| {
            let mut nested = ShellParser::new(&inner, reader.depth)?;
            let list = nested.whole()?;
            // Here-documents are numbered per parser, so these would get lost.
            reader.functions.append(&mut nested.functions);
            if nested.documents.is_empty() {
                Ok(list)
            } else {
                Err(SyntaxFault::Unsupported("a here-document in backquotes"))
            }
        })?;
        pieces.push(WordPiece::Substitution { script: Rc::<CommandList>::new(list), quoted });
        Ok(())
    }

    /// `${…}`, after the opening brace.
    fn expansion(&mut self, quoted: bool) -> SyntaxResult<WordPiece> {
        let wild = |word| WordPiece::Expansion { name: String::new(), operator: ExpansionOperator::Wild, word, quoted };
        if self.peek() == Some(b'#') && self.peek_at(1) != Some(b'}') {
            self.at += 1;
            let name = self.take_while(is_name).to_owned();
            return match self.eat("}") {
                true => {
                    Ok(WordPiece::Expansion { name, operator: ExpansionOperator::Length, word: Vec::new(), quoted })
                }
                false => self.inside_braces(quoted).map(wild),
            };
        }
        let name = match self.peek() {
            Some(byte) if is_name(byte) => self.take_while(is_name).to_owned(),
            _ => return self.inside_braces(quoted).map(wild),
        };
        if self.eat("}") {
            return Ok(WordPiece::Variable { name, quoted });
        }
        let slice = self.rest().find('}').map_or("", |end| &self.rest()[..end]);
        if slice.len() > 1 && slice.starts_with(':') && slice[1..].bytes().all(|byte| b"0123456789: ".contains(&byte)) {
            self.at += slice.len() + 1;
            return Ok(WordPiece::Expansion { name, operator: ExpansionOperator::Edit, word: Vec::new(), quoted });
        }
        let operator = OPERATORS
            .iter()
            .find(|(sign, _)| self.eat(sign))
            .map_or(ExpansionOperator::Wild, |(_, operator)| *operator);
        let word = self.inside_braces(quoted)?;
        Ok(WordPiece::Expansion { name, operator, word, quoted })
    }

    /// Parses everything before the closing brace.
    fn inside_braces(&mut self, quoted: bool) -> SyntaxResult<Vec<WordPiece>> {
        let mut pieces = WordBuilder::default();
        while let Some(byte) = self.peek() {
            match byte {
                b'}' => {
                    self.at += 1;
                    return Ok(pieces.0);
                }
                b'"' => self.double_quoted(&mut pieces)?,
                b'$' => self.dollar(quoted, &mut pieces)?,
                b'`' => self.backquoted(quoted, &mut pieces)?,
                b'\\' => {
                    self.at += 1;
                    let letter = self.take().ok_or(SyntaxFault::Unfinished("a closing brace"))?;
                    pieces.letter(letter);
                }
                b'<' | b'>' if self.peek_at(1) == Some(b'(') => {
                    return Err(SyntaxFault::Unsupported("a process inside `${…}`"));
                }
                // Whether it quotes depends on the context, and shells differ.
                b'\'' => return Err(SyntaxFault::Unsupported("a quote inside `${…}`")),
                _ => {
                    let letter = self.take().ok_or(SyntaxFault::Unfinished("a closing brace"))?;
                    pieces.letter(letter);
                }
            }
        }
        Err(SyntaxFault::Unfinished("a closing brace"))
    }

    /// `$'…'`, in which escapes encode characters.
    fn escape_quoted(&mut self, pieces: &mut WordBuilder) -> SyntaxResult<()> {
        self.at += 1;
        pieces.text("");
        loop {
            match self.take().ok_or(SyntaxFault::Unfinished("a closing quote"))? {
                '\'' => return Ok(()),
                '\\' => {
                    let letter = self.spelled()?;
                    pieces.letter(letter);
                }
                letter => pieces.letter(letter),
            }
        }
    }

    /// One character after a backslash in `$'…'`.
    fn spelled(&mut self) -> SyntaxResult<char> {
        let unsupported = SyntaxFault::Unsupported("an escape that encodes no plain character");
        let letter = self.take().ok_or(SyntaxFault::Unfinished("a closing quote"))?;
        let (radix, most) = match letter {
            'n' => return Ok('\n'),
            't' => return Ok('\t'),
            '\\' | '\'' | '"' | '?' => return Ok(letter),
            'x' => (16, 2),
            'u' => (16, 4),
            'U' => (16, 8),
            '0'..='7' => {
                self.at -= 1;
                (8, 3)
            }
            _ => return Err(unsupported),
        };
        let digits = self.rest().bytes().take(most).take_while(|byte| char::from(*byte).is_digit(radix)).count();
        let code = u32::from_str_radix(&self.rest()[..digits], radix).map_err(|_| unsupported.clone())?;
        self.at += digits;
        // Single bytes beyond ASCII would have to be joined into characters.
        let is_plain = code >= 0x20 && code != 0x7f && (radix == 16 && most > 2 || code < 0x80);
        char::from_u32(code).filter(|_| is_plain || matches!(code, 9 | 10)).ok_or(unsupported)
    }
}
