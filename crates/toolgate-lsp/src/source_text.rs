//! The text of a source file, and places in it. Servers count columns in UTF-8 bytes or in UTF-16 units, people in characters;
//! all of them are turned into byte offsets here and nowhere else.

use crate::protocol::{Position, PositionEncoding};

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// A text that is UTF-8. A byte order mark isn't part of it: servers never see one.
#[derive(Debug, Clone)]
pub(crate) struct SourceText {
    pub(crate) text: String,
    pub(crate) has_mark: bool,
    /// Where each line begins.
    starts: Vec<usize>,
}

impl SourceText {
    /// The text of a file; none if it isn't UTF-8.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let (has_mark, rest) = match bytes.strip_prefix(BYTE_ORDER_MARK) {
            Some(rest) => (true, rest),
            None => (false, bytes),
        };
        let text = std::str::from_utf8(rest).ok()?.to_owned();
        let mut starts = vec![0];
        let raw = text.as_bytes();
        for (at, byte) in raw.iter().enumerate() {
            // A carriage return alone ends a line too.
            if *byte == b'\n' || (*byte == b'\r' && raw.get(at + 1) != Some(&b'\n')) {
                starts.push(at + 1);
            }
        }
        Some(Self { text, has_mark, starts })
    }

    /// The bytes of the file with this text in place of its own.
    pub(crate) fn bytes_with(&self, text: &str) -> Vec<u8> {
        let mark = if self.has_mark { BYTE_ORDER_MARK } else { &[] };
        [mark, text.as_bytes()].concat()
    }

    /// How many lines there are.
    pub(crate) fn lines(&self) -> u32 {
        self.starts.len() as u32
    }

    /// A line, counted from 0, without its end.
    pub(crate) fn line(&self, line: u32) -> Option<&str> {
        let start = *self.starts.get(line as usize)?;
        let end = self.starts.get(line as usize + 1).copied().unwrap_or(self.text.len());
        Some(self.text[start..end].trim_end_matches(['\n', '\r']))
    }

    /// Where a position is. One behind the end of its line is that end; one behind the last line is none.
    pub(crate) fn offset(&self, position: Position, encoding: PositionEncoding) -> Option<usize> {
        if position.line == self.lines() && position.character == 0 {
            return Some(self.text.len());
        }
        let start = *self.starts.get(position.line as usize)?;
        let line = self.line(position.line)?;
        let mut left = position.character;
        for (at, character) in line.char_indices() {
            if left == 0 {
                return Some(start + at);
            }
            let width = encoding.width(character);
            // In the middle of a character there is no place.
            left = left.checked_sub(width)?;
        }
        Some(start + line.len())
    }

    /// The position of an offset.
    pub(crate) fn position(&self, offset: usize, encoding: PositionEncoding) -> Position {
        let line = self.starts.partition_point(|start| *start <= offset).saturating_sub(1);
        let before = self.text.get(self.starts[line]..offset).unwrap_or_default();
        Position { line: line as u32, character: before.chars().map(|character| encoding.width(character)).sum() }
    }

    /// The character of the line, from 1, at which an offset is.
    pub(crate) fn column(&self, offset: usize) -> u32 {
        let line = self.starts.partition_point(|start| *start <= offset).saturating_sub(1);
        self.text.get(self.starts[line]..offset).map_or(0, |before| before.chars().count() as u32) + 1
    }

    /// The offset of a character in a line; the line counts from 0, the character from 1.
    pub(crate) fn offset_of_column(&self, line: u32, column: u32) -> Option<usize> {
        let (start, text) = (*self.starts.get(line as usize)?, self.line(line)?);
        let at = text.char_indices().map(|(at, _)| at).chain([text.len()]).nth(column.saturating_sub(1) as usize)?;
        Some(start + at)
    }

    /// The offset of a line's first byte.
    pub(crate) fn start(&self, line: u32) -> Option<usize> {
        self.starts.get(line as usize).copied()
    }
}

/// Where a name stands in a text as a word of its own.
pub(crate) fn words<'a>(text: &'a str, name: &'a str) -> impl Iterator<Item = usize> + 'a {
    let is_part = |character: char| character.is_alphanumeric() || character == '_';
    text.match_indices(name).map(|(at, _)| at).filter(move |at| {
        let before = text[..*at].chars().next_back();
        let after = text[at + name.len()..].chars().next();
        let bounded =
            |side: Option<char>, edge: Option<char>| !(side.is_some_and(is_part) && edge.is_some_and(is_part));
        bounded(before, name.chars().next()) && bounded(after, name.chars().next_back())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_counted_as_each_side_counts() {
        let text = SourceText::parse("\u{feff}a\r\nlet 🦀é = x;\rlast".as_bytes()).unwrap();
        assert!(text.has_mark);
        assert_eq!(
            (text.lines(), text.line(0), text.line(1), text.line(2)),
            (3, Some("a"), Some("let 🦀é = x;"), Some("last"))
        );
        let x = text.text.find('x').unwrap();
        assert_eq!(text.position(x, PositionEncoding::Utf8), Position { line: 1, character: 13 });
        assert_eq!(text.position(x, PositionEncoding::Utf16), Position { line: 1, character: 10 });
        assert_eq!((text.column(x), text.offset_of_column(1, 10)), (10, Some(x)));
        for encoding in [PositionEncoding::Utf8, PositionEncoding::Utf16] {
            assert_eq!(text.offset(text.position(x, encoding), encoding), Some(x));
            assert_eq!(text.offset(Position { line: 2, character: 99 }, encoding), Some(text.text.len()));
            assert_eq!(text.offset(Position { line: 9, character: 0 }, encoding), None);
        }
        assert_eq!(text.offset(Position { line: 1, character: 5 }, PositionEncoding::Utf16), None, "inside the crab");
        assert_eq!(text.bytes_with(&text.text), "\u{feff}a\r\nlet 🦀é = x;\rlast".as_bytes());
        assert!(SourceText::parse(b"caf\xe9").is_none());
    }

    #[test]
    fn a_word_is_not_a_part_of_another() {
        let found = |text: &str, name: &str| words(text, name).collect::<Vec<_>>();
        assert_eq!(found("go_on go ongo go.x(go)", "go"), [6, 14, 19]);
        assert_eq!(found("a + b+", "+"), [2, 5]);
        assert_eq!(found("été té", "té"), [6]);
    }
}
