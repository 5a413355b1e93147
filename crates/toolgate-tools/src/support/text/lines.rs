//! A line and its parts, as bytes. A line includes its ending; its body is the line without it.

use memchr::{memchr, memchr_iter};

/// The UTF-8 byte order mark.
pub(crate) const BOM: &[u8] = b"\xEF\xBB\xBF";

/// The lines of a text, each with its ending.
pub(crate) fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = memchr(b'\n', rest).map_or(rest.len(), |at| at + 1);
        let (line, after) = rest.split_at(end);
        rest = after;
        Some(line)
    })
}

/// The line without its ending.
pub(crate) fn body(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// The line's ending: CRLF, LF or nothing.
pub(crate) fn ending(line: &[u8]) -> &'static [u8] {
    match line {
        [.., b'\r', b'\n'] => b"\r\n",
        [.., b'\n'] => b"\n",
        _ => b"",
    }
}

/// The body without trailing whitespace.
pub(crate) fn trim_end(body: &[u8]) -> &[u8] {
    let end = body.iter().rposition(|&byte| !is_blank_byte(byte)).map_or(0, |at| at + 1);
    &body[..end]
}

/// The body without leading and trailing whitespace.
pub(crate) fn trim(body: &[u8]) -> &[u8] {
    &trim_end(body)[indent(trim_end(body)).len()..]
}

/// The leading whitespace of a line.
pub(crate) fn indent(body: &[u8]) -> &[u8] {
    let end = body.iter().position(|&byte| !is_blank_byte(byte)).unwrap_or(body.len());
    &body[..end]
}

/// Whether a line is only whitespace.
pub(crate) fn is_blank(body: &[u8]) -> bool {
    body.iter().all(|&byte| is_blank_byte(byte) || byte == b'\r')
}

/// The number, from 1, of the line that contains an offset.
pub(crate) fn line_number(text: &[u8], offset: usize) -> usize {
    memchr_iter(b'\n', &text[..offset]).count() + 1
}

fn is_blank_byte(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_keep_their_endings_and_join_to_the_text() {
        let text = b"a\r\nb\n\nlast";
        let all: Vec<_> = lines(text).collect();
        assert_eq!(all, [&b"a\r\n"[..], b"b\n", b"\n", b"last"]);
        assert_eq!(all.concat(), text);
        assert_eq!(all.iter().map(|line| ending(line)).collect::<Vec<_>>(), [&b"\r\n"[..], b"\n", b"\n", b""]);
        assert_eq!(lines(b"").count(), 0);
    }

    #[test]
    fn parts_of_a_line() {
        for (line, indented, bare) in
            [(&b"  a b \t"[..], &b"  "[..], &b"a b"[..]), (b"\tx", b"\t", b"x"), (b"", b"", b""), (b" ", b" ", b"")]
        {
            assert_eq!((indent(line), trim(line)), (indented, bare));
        }
        assert!(is_blank(b" \t\r"));
    }
}
