//! Reads a page of lines from a file of any size, in one pass and with bounded memory.

use std::io::{self, BufRead};
use std::ops::Range;

use memchr::{memchr, memchr_iter, memrchr_iter};

use crate::support::encoding::whole_characters;

/// Which lines to read.
pub(crate) struct LineWindow {
    /// The first line, from 1.
    pub(crate) first: u64,
    /// Maximum number of lines.
    pub(crate) lines: u64,
    /// Maximum number of bytes; the first line is returned whatever its length.
    pub(crate) bytes: usize,
    /// Maximum bytes of a single line; the rest is cut.
    pub(crate) line_bytes: usize,
}

/// The lines that were read.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct LinePage {
    /// The bytes of the page, including line endings.
    pub(crate) content: Vec<u8>,
    /// Number of lines.
    pub(crate) lines: u64,
    /// Whether more lines follow.
    pub(crate) has_more: bool,
    /// Bytes cut from very long lines.
    pub(crate) cut: u64,
}

/// Reads one page. A last line without an ending counts as a line.
pub(crate) fn take(from: &mut impl BufRead, page: &LineWindow) -> io::Result<LinePage> {
    skip(from, page.first - 1)?;
    let mut taken = LinePage::default();
    while taken.lines < page.lines {
        let start = taken.content.len();
        let room = if taken.lines == 0 { usize::MAX } else { page.bytes.saturating_sub(start) };
        match push_line(from, &mut taken.content, page.line_bytes, room)? {
            PushedLine::None => return Ok(taken),
            PushedLine::TooLong => {
                taken.content.truncate(start);
                taken.has_more = true;
                return Ok(taken);
            }
            PushedLine::Pushed { cut } => {
                taken.lines += 1;
                taken.cut += cut;
            }
        }
    }
    taken.has_more = !fill(from)?.is_empty();
    Ok(taken)
}

/// Counts the remaining lines.
pub(crate) fn count(from: &mut impl BufRead) -> io::Result<u64> {
    skip(from, u64::MAX)
}

/// Skips up to `most` lines; fewer when the end comes first.
fn skip(from: &mut impl BufRead, most: u64) -> io::Result<u64> {
    let mut lines = 0;
    let mut is_open = false;
    while lines < most {
        let chunk = fill(from)?;
        if chunk.is_empty() {
            return Ok(lines + u64::from(is_open));
        }
        // Counting newlines is many times faster than locating them, so only the last chunk is searched.
        let ends = memchr_iter(b'\n', chunk).count() as u64;
        let mut used = chunk.len();
        is_open = chunk[used - 1] != b'\n';
        if lines + ends >= most {
            let last = memchr_iter(b'\n', chunk).nth((most - lines - 1) as usize);
            used = last.map_or(used, |at| at + 1);
        }
        lines = most.min(lines + ends);
        from.consume(used);
    }
    Ok(lines)
}

/// The result of reading one line.
enum PushedLine {
    /// There is no further line.
    None,
    /// The line doesn't fit on the page. It may not have been read to its end.
    TooLong,
    /// The line is on the page, except for this many bytes.
    Pushed { cut: u64 },
}

/// Appends the next line if it fits, cut if it is very long.
fn push_line(from: &mut impl BufRead, content: &mut Vec<u8>, most: usize, room: usize) -> io::Result<PushedLine> {
    let start = content.len();
    let (mut length, mut is_ended) = (0, false);
    while !is_ended {
        let chunk = fill(from)?;
        if chunk.is_empty() {
            break;
        }
        let end = memchr(b'\n', chunk);
        let piece = &chunk[..end.map_or(chunk.len(), |at| at + 1)];
        let kept = most.saturating_sub(content.len() - start).min(piece.len());
        content.extend_from_slice(&piece[..kept]);
        let used = piece.len();
        (length, is_ended) = (length + used as u64, end.is_some());
        from.consume(used);
        if content.len() - start > room {
            return Ok(PushedLine::TooLong);
        }
    }
    if length == 0 {
        return Ok(PushedLine::None);
    }
    if ((content.len() - start) as u64) < length {
        content.truncate(start + whole_characters(&content[start..]));
        content.extend(is_ended.then_some(b'\n'));
    }
    Ok(PushedLine::Pushed { cut: length - (content.len() - start) as u64 })
}

/// Where the last lines of a file begin.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TailStart {
    /// Offset of their first byte.
    pub(crate) start: u64,
    /// Number of lines; fewer than requested when there are no more.
    pub(crate) lines: u64,
}

/// Finds the last `most` lines of a byte range from its end, block by block, without reading what is before them.
/// `read_at` fills a block from an offset; it returns less only where the file ends.
pub(crate) fn tail(
    mut read_at: impl FnMut(&mut [u8], u64) -> io::Result<usize>,
    range: Range<u64>,
    most: u64,
    block: &mut [u8],
) -> io::Result<TailStart> {
    let (mut lines, mut start) = (0, range.end);
    while start > range.start {
        let end = start;
        start = range.start.max(end.saturating_sub(block.len() as u64));
        let length = read_at(&mut block[..(end - start) as usize], start)?;
        let mut bytes = &block[..length];
        // The last line's own ending is not a boundary between two lines.
        if end == range.end {
            bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        }
        let newlines = memchr_iter(b'\n', bytes).count() as u64;
        if lines + newlines >= most {
            let first = memrchr_iter(b'\n', bytes).nth((most - lines - 1) as usize);
            return Ok(TailStart { start: start + first.map_or(0, |at| at as u64 + 1), lines: most });
        }
        lines += newlines;
    }
    Ok(TailStart { start, lines: lines + u64::from(range.end > range.start) })
}

fn fill(from: &mut impl BufRead) -> io::Result<&[u8]> {
    loop {
        match from.fill_buf() {
            Ok(_) => break,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    from.fill_buf()
}

#[cfg(test)]
mod tests {
    use std::io::{BufReader, Read};

    use super::*;

    /// Content, lines, and whether more follow.
    fn page(text: &str, first: u64, lines: u64, bytes: usize) -> (String, u64, bool) {
        // A tiny buffer, so that lines cross its boundaries.
        let mut from = BufReader::with_capacity(3, text.as_bytes());
        let taken = take(&mut from, &LineWindow { first, lines, bytes, line_bytes: 1_000 }).unwrap();
        (String::from_utf8(taken.content).unwrap(), taken.lines, taken.has_more)
    }

    #[test]
    fn pages() {
        let text = "one\ntwo\nthree\nfour";
        for ((first, lines, bytes), (content, taken, has_more)) in [
            ((1, 10, 100), (text, 4, false)),
            ((2, 2, 100), ("two\nthree\n", 2, true)),
            ((4, 1, 100), ("four", 1, false)),
            ((5, 1, 100), ("", 0, false)),
            ((1, 10, 9), ("one\ntwo\n", 2, true)),
            ((3, 10, 2), ("three\n", 1, true)),
            ((1, 0, 100), ("", 0, true)),
        ] {
            let found = page(text, first, lines, bytes);
            assert_eq!(found, (content.to_owned(), taken, has_more), "{first} {lines} {bytes}");
        }
        assert_eq!(page("", 1, 10, 100), (String::new(), 0, false));
        assert_eq!(page("\n\n", 1, 10, 100), ("\n\n".to_owned(), 2, false));
    }

    #[test]
    fn counts() {
        for (text, lines) in
            [("", 0), ("one", 1), ("one\n", 1), ("one\ntwo", 2), ("\n\n", 2), ("a long line\n\nb\n", 3)]
        {
            assert_eq!(count(&mut BufReader::with_capacity(3, text.as_bytes())).unwrap(), lines, "{text:?}");
        }
    }

    #[test]
    fn tails_are_found_from_the_end() {
        for (text, most, start, lines) in [
            ("one\ntwo\nthree\n", 1, 8, 1),
            ("one\ntwo\nthree", 1, 8, 1),
            ("one\ntwo\nthree\n", 2, 4, 2),
            ("one\ntwo\nthree\n", 3, 0, 3),
            ("one\ntwo\nthree\n", 9, 0, 3),
            ("\n\n\n", 2, 1, 2),
            ("one", 1, 0, 1),
            ("", 1, 0, 0),
        ] {
            for size in [1, 2, 3, 100] {
                let read_at = |block: &mut [u8], at: u64| (&text.as_bytes()[at as usize..]).read(block);
                let found = tail(read_at, 0..text.len() as u64, most, &mut vec![0; size]).unwrap();
                assert_eq!(found, TailStart { start, lines }, "{text:?} {most} {size}");
            }
        }
    }

    #[test]
    fn a_file_that_shrinks_has_fewer_lines() {
        let nothing = |_: &mut [u8], _: u64| Ok(0);
        assert_eq!(tail(nothing, 3..1_000, 5, &mut [0; 64]).unwrap(), TailStart { start: 3, lines: 1 });
    }

    #[test]
    fn an_endless_line_costs_no_more_than_its_part() {
        let text = format!("{}\nshort\n", "x".repeat(10_000));
        let mut from = BufReader::with_capacity(64, text.as_bytes());
        let taken = take(&mut from, &LineWindow { first: 1, lines: 5, bytes: 1_000, line_bytes: 100 }).unwrap();
        assert_eq!(taken.cut, 9_900);
        assert_eq!(taken.content, format!("{}\nshort\n", "x".repeat(100)).into_bytes());
    }

    #[test]
    fn a_line_is_cut_between_characters() {
        let taken = take(&mut "ééé\n".as_bytes(), &LineWindow { first: 1, lines: 1, bytes: 9, line_bytes: 3 }).unwrap();
        assert_eq!((taken.content, taken.cut), ("é\n".as_bytes().to_vec(), 4));
    }

    #[test]
    fn a_line_that_has_no_room_is_not_read_to_its_end() {
        let text = format!("short\n{}", "x".repeat(10_000));
        let mut from = BufReader::with_capacity(64, text.as_bytes());
        let taken = take(&mut from, &LineWindow { first: 1, lines: 5, bytes: 100, line_bytes: 100 }).unwrap();
        assert_eq!((taken.lines, taken.has_more), (1, true));
        assert_eq!(count(&mut from).unwrap(), 1, "the rest of it is still there");
    }
}
