//! A page of lines out of a file of any size, in one pass and with bounded memory.

use std::io::{self, BufRead};

use memchr::{memchr, memchr_iter};

/// What to take.
pub(crate) struct Page {
    /// The first line, from 1.
    pub(crate) first: u64,
    /// Lines at the most.
    pub(crate) lines: u64,
    /// Bytes at the most; one line is taken whatever its length.
    pub(crate) bytes: usize,
    /// Bytes of a single line that are kept.
    pub(crate) line_bytes: usize,
}

/// What was there.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Taken {
    /// The bytes of the page, line endings and all.
    pub(crate) content: Vec<u8>,
    /// How many lines that is.
    pub(crate) lines: u64,
    /// Whether more lines follow.
    pub(crate) has_more: bool,
    /// Lines that were passed over before and read after the page; with `lines`, all that was seen.
    pub(crate) others: u64,
    /// Bytes that were left out of over-long lines.
    pub(crate) cut: u64,
}

/// Takes one page. A last line without an ending counts as a line.
pub(crate) fn take(from: &mut impl BufRead, page: &Page) -> io::Result<Taken> {
    let mut taken = Taken { others: skip(from, page.first - 1)?, ..Taken::default() };
    while taken.lines < page.lines {
        let start = taken.content.len();
        let Some(cut) = push_line(from, &mut taken.content, page.line_bytes)? else { return Ok(taken) };
        if taken.lines > 0 && taken.content.len() > page.bytes {
            taken.content.truncate(start);
            taken.others += 1;
            taken.has_more = true;
            return Ok(taken);
        }
        taken.lines += 1;
        taken.cut += cut;
    }
    taken.has_more = !fill(from)?.is_empty();
    Ok(taken)
}

/// Counts the lines that are left.
pub(crate) fn count(from: &mut impl BufRead) -> io::Result<u64> {
    skip(from, u64::MAX)
}

/// Passes over so many lines; fewer when the end comes first.
fn skip(from: &mut impl BufRead, most: u64) -> io::Result<u64> {
    let mut lines = 0;
    let mut is_open = false;
    while lines < most {
        let chunk = fill(from)?;
        if chunk.is_empty() {
            return Ok(lines + u64::from(is_open));
        }
        let mut used = chunk.len();
        is_open = chunk[used - 1] != b'\n';
        for at in memchr_iter(b'\n', chunk) {
            lines += 1;
            if lines == most {
                (used, is_open) = (at + 1, false);
                break;
            }
        }
        from.consume(used);
    }
    Ok(lines)
}

/// Adds the next line, as far as it isn't over-long, and tells how much of it was left out; none at the end.
fn push_line(from: &mut impl BufRead, content: &mut Vec<u8>, most: usize) -> io::Result<Option<u64>> {
    let (start, mut cut, mut is_empty) = (content.len(), 0, true);
    loop {
        let chunk = fill(from)?;
        if chunk.is_empty() {
            return Ok((!is_empty).then_some(cut));
        }
        is_empty = false;
        let end = memchr(b'\n', chunk);
        let piece = &chunk[..end.map_or(chunk.len(), |at| at + 1)];
        let room = most.saturating_sub(content.len() - start).min(piece.len());
        content.extend_from_slice(&piece[..room]);
        cut += (piece.len() - room) as u64;
        let used = piece.len();
        from.consume(used);
        if end.is_some() {
            if cut > 0 {
                content.push(b'\n');
                cut -= 1;
            }
            return Ok(Some(cut));
        }
    }
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
    use std::io::BufReader;

    use super::*;

    /// Content, lines, whether more follow, and all lines.
    fn page(text: &str, first: u64, lines: u64, bytes: usize) -> (String, u64, bool, u64) {
        // A tiny buffer, so that lines cross its borders.
        let mut from = BufReader::with_capacity(3, text.as_bytes());
        let taken = take(&mut from, &Page { first, lines, bytes, line_bytes: 1_000 }).unwrap();
        let total = taken.others + taken.lines + count(&mut from).unwrap();
        (String::from_utf8(taken.content).unwrap(), taken.lines, taken.has_more, total)
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
            assert_eq!(found, (content.to_owned(), taken, has_more, 4), "{first} {lines} {bytes}");
        }
        assert_eq!(page("", 1, 10, 100), (String::new(), 0, false, 0));
        assert_eq!(page("\n\n", 1, 10, 100), ("\n\n".to_owned(), 2, false, 2));
    }

    #[test]
    fn an_endless_line_costs_no_more_than_its_part() {
        let text = format!("{}\nshort\n", "x".repeat(10_000));
        let mut from = BufReader::with_capacity(64, text.as_bytes());
        let taken = take(&mut from, &Page { first: 1, lines: 5, bytes: 1_000, line_bytes: 100 }).unwrap();
        assert_eq!(taken.cut, 9_900);
        assert_eq!(taken.content, format!("{}\nshort\n", "x".repeat(100)).into_bytes());
    }
}
