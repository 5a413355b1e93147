//! The body of a private key: lines of base64, perhaps inside a string of source code or JSON. It ends with its first
//! shorter line, or at the first byte that can't be part of it, so that a key without its last line doesn't take the
//! text after it along.

/// More separators than this between two lines, and the body is over.
const WIDEST_GAP: usize = 256;

/// Reads a body, piece by piece.
#[derive(Debug, Default, Clone)]
pub(crate) struct KeyBody {
    seen: usize,
    length: usize,
    /// The length of the first line; the following ones are as long, except the last.
    first_line: usize,
    line: usize,
    /// Whether the line holds nothing but `+`, which joins strings in many languages.
    only_plus: bool,
    escaped: bool,
}

enum ByteClass {
    Digit,
    Separator,
    Escape,
    Foreign,
}

impl KeyBody {
    /// How many bytes were looked at.
    pub(crate) fn seen(&self) -> usize {
        self.seen
    }

    /// How many of them are the body, its last separators left out.
    pub(crate) fn length(&self) -> usize {
        self.length
    }

    /// Reads on. Returns whether the body may go on after `bytes`.
    pub(crate) fn read(&mut self, bytes: &[u8]) -> bool {
        bytes.iter().all(|&byte| self.step(byte))
    }

    fn step(&mut self, byte: u8) -> bool {
        let goes_on = match self.kind(byte) {
            ByteClass::Digit => {
                self.only_plus = byte == b'+' && (self.only_plus || self.line == 0);
                self.line += 1;
                self.seen += 1;
                self.length = if self.only_plus { self.length } else { self.seen };
                return true;
            }
            ByteClass::Separator => self.end_line(),
            ByteClass::Escape => true,
            ByteClass::Foreign => false,
        };
        self.seen += 1;
        goes_on && self.seen - self.length <= WIDEST_GAP
    }

    /// Whether the body can go on after the line that ends here.
    fn end_line(&mut self) -> bool {
        let line = std::mem::take(&mut self.line);
        if line == 0 || std::mem::take(&mut self.only_plus) {
            return true;
        }
        self.first_line = if self.first_line == 0 { line } else { self.first_line };
        line >= self.first_line
    }

    fn kind(&mut self, byte: u8) -> ByteClass {
        let escaped = std::mem::replace(&mut self.escaped, byte == b'\\');
        match byte {
            b'\\' => ByteClass::Escape,
            b'n' | b'r' | b't' if escaped => ByteClass::Separator,
            b'/' => ByteClass::Digit,
            _ if escaped && !byte.is_ascii_whitespace() && !b"\"'".contains(&byte) => ByteClass::Foreign,
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'+' | b'=' => ByteClass::Digit,
            b' ' | b'\t' | b'\r' | b'\n' | b'"' | b'\'' | b'`' | b',' => ByteClass::Separator,
            _ => ByteClass::Foreign,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_a_body_ends() {
        let line = "MIIEvQIBADANBgkq";
        let cases = [
            (format!("{line}\n{line}\nQgk=\n"), "-----END PRIVATE KEY-----"),
            (format!("{line}\\n{line}\\nQgk=\\n"), "-----END PRIVATE KEY-----"),
            (format!("{line}\n{line}\n"), "-----END PRIVATE KEY-----"),
            (format!("{line} {line} Qgk= "), "and some more words"),
            (format!("{line}\\n\" +\n    \"{line}\\n\" +\n    \"Qgk=\\n\" +\n"), "\"-----END"),
            (format!("{line}\n{line}\nshort\n"), "Words that follow a key without an end."),
            (format!("MIIE\\/QIBADANBgkq\\n{line}\\n"), "-----END"),
            (line.to_owned(), "…"),
        ];
        for (body, rest) in cases {
            let mut reader = KeyBody::default();
            reader.read(format!("{body}{rest}").as_bytes());
            let trimmed = body.trim_end_matches(['\n', ' ', '"', '+', 'n', '\\']);
            assert_eq!(reader.length(), trimmed.len(), "{body:?} then {rest:?}");
        }
    }

    #[test]
    fn endless_white_space_ends_it() {
        let mut reader = KeyBody::default();
        assert!(!reader.read(format!("MIIEvQIBADANBgkq{}", " ".repeat(300)).as_bytes()));
        assert_eq!(reader.length(), 16);
    }
}
