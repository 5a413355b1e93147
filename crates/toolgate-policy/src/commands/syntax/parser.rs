//! The text of a command and the current position in it.

use super::{DEEPEST, LONGEST, ShellWord, SyntaxFault, SyntaxResult};

/// Characters that end a word outside quotes.
pub(super) fn ends_word(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'|' | b'&' | b';' | b'(' | b')' | b'<' | b'>')
}

pub(super) fn is_name_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_'
}

pub(super) fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// A here-document whose body follows after the line.
pub(super) struct PendingHeredoc {
    pub(super) number: usize,
    pub(super) delimiter: String,
    pub(super) expands: bool,
    pub(super) strips_tabs: bool,
}

/// Parses one command. The rules of the grammar are methods in the files of this directory.
pub(super) struct ShellParser<'a> {
    pub(super) text: &'a str,
    pub(super) at: usize,
    pub(super) depth: usize,
    /// Up to this position no set of characters is closed.
    pub(super) no_set_before: usize,
    /// The names of all defined functions, in order.
    pub(super) functions: Vec<String>,
    pub(super) pending: Vec<PendingHeredoc>,
    pub(super) documents: Vec<ShellWord>,
}

impl<'a> ShellParser<'a> {
    pub(super) fn new(text: &'a str, depth: usize) -> SyntaxResult<Self> {
        if text.len() > LONGEST {
            return Err(SyntaxFault::TooLong);
        }
        // A carriage return or an escape can make a command look like another one; none needs them.
        if text.bytes().any(|byte| byte.is_ascii_control() && !matches!(byte, b'\t' | b'\n')) {
            return Err(SyntaxFault::Control);
        }
        Ok(Self {
            text,
            at: 0,
            depth,
            no_set_before: 0,
            functions: Vec::new(),
            pending: Vec::new(),
            documents: Vec::new(),
        })
    }

    pub(super) fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    pub(super) fn peek_at(&self, offset: usize) -> Option<u8> {
        self.text.as_bytes().get(self.at + offset).copied()
    }

    pub(super) fn is_done(&self) -> bool {
        self.at >= self.text.len()
    }

    /// Takes the next character.
    pub(super) fn take(&mut self) -> Option<char> {
        let letter = self.rest().chars().next()?;
        self.at += letter.len_utf8();
        Some(letter)
    }

    /// Takes `wanted` if it comes next.
    pub(super) fn eat(&mut self, wanted: &str) -> bool {
        let found = self.rest().starts_with(wanted);
        if found {
            self.at += wanted.len();
        }
        found
    }

    /// Takes bytes as long as they match.
    pub(super) fn take_while(&mut self, fits: impl Fn(u8) -> bool) -> &'a str {
        let length = self.rest().bytes().take_while(|byte| fits(*byte)).count();
        let taken = &self.rest()[..length];
        self.at += length;
        taken
    }

    pub(super) fn unexpected(&self) -> SyntaxFault {
        let word: String = self.rest().chars().take_while(|letter| !letter.is_whitespace()).take(12).collect();
        if word.is_empty() { SyntaxFault::Unfinished("its end") } else { SyntaxFault::Unexpected(word) }
    }

    /// Parses something one level deeper.
    pub(super) fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> SyntaxResult<T>) -> SyntaxResult<T> {
        if self.depth >= DEEPEST {
            return Err(SyntaxFault::TooDeep);
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    /// Skips blanks, continued lines and a comment.
    pub(super) fn skip_blanks(&mut self) {
        loop {
            self.take_while(|byte| byte == b' ' || byte == b'\t');
            if !self.eat("\\\n") {
                break;
            }
        }
        if self.peek() == Some(b'#') {
            self.take_while(|byte| byte != b'\n');
        }
    }

    /// Skips blanks, comments and line ends.
    pub(super) fn skip_lines(&mut self) -> SyntaxResult<()> {
        self.skip_blanks();
        while self.peek() == Some(b'\n') {
            self.end_line()?;
            self.skip_blanks();
        }
        Ok(())
    }

    /// Takes a line end, and the bodies of the pending here-documents.
    pub(super) fn end_line(&mut self) -> SyntaxResult<()> {
        self.at += 1;
        for pending in std::mem::take(&mut self.pending) {
            let body = self.document_body(&pending)?;
            self.documents[pending.number] = body;
        }
        Ok(())
    }

    fn document_body(&mut self, pending: &PendingHeredoc) -> SyntaxResult<ShellWord> {
        let mut body = String::new();
        if pending.expands
            && self.rest().lines().take_while(|line| *line != pending.delimiter).any(|line| line.ends_with('\\'))
        {
            return Err(SyntaxFault::Unsupported("continued lines in a here-document"));
        }
        loop {
            if self.is_done() {
                return Err(SyntaxFault::Unfinished("the end of a here-document"));
            }
            let rest = self.rest();
            let line = rest.split_once('\n').map_or(rest, |(line, _)| line);
            self.at += (line.len() + 1).min(rest.len());
            let line = if pending.strips_tabs { line.trim_start_matches('\t') } else { line };
            if line == pending.delimiter {
                break;
            }
            body.push_str(line);
            body.push('\n');
        }
        match pending.expands {
            true => self.deeper(|reader| reader.document_word(&body)),
            false => Ok(ShellWord { pieces: vec![super::WordPiece::Text(body)], written: String::new() }),
        }
    }
}
