//! Cuts text to a size that a model can use. Head and tail stay, since the beginning says what a text is and the end
//! how it went; one line between them says how much is missing. Cuts are at line ends where possible, and always at
//! character boundaries.

mod payload;
mod shorten_lists;

use std::borrow::Cow;
use std::fmt;

use memchr::memchr_iter;
use toolgate_contract::{ArtifactRef, noun};

pub use payload::{PayloadCut, trim_payload};

/// How much of a text is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrimLimits {
    /// Total lines.
    pub lines: usize,
    /// Total bytes.
    pub bytes: usize,
    /// Characters in each line.
    pub line_chars: usize,
}

impl Default for TrimLimits {
    fn default() -> Self {
        Self { lines: 2000, bytes: 50 * 1024, line_chars: 2000 }
    }
}

/// A text that was cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrimmedText {
    /// The remaining text, with marks where something is missing.
    pub text: String,
    /// Lines that are missing completely.
    pub missing_lines: usize,
    /// Bytes that are missing, including those of shortened lines.
    pub missing_bytes: usize,
}

/// Cuts `text` to `limits`; none if it fits unchanged. Marks of missing parts are added on top of the limits.
pub fn trim_text(text: &str, limits: &TrimLimits) -> Option<TrimmedText> {
    trim_with_rest(text, limits, &StoredRemainder::default())
}

/// What is missing from a text already, because only a part of it is in memory.
#[derive(Debug, Clone, Default)]
struct StoredRemainder {
    /// How to get the complete text; part of the mark.
    advice: String,
    /// Lines that are missing already, between beginning and end.
    lines: usize,
    /// Bytes that are missing already.
    bytes: usize,
}

impl StoredRemainder {
    /// Nothing is missing yet; this artifact has the complete text.
    fn in_artifact(artifact: &ArtifactRef) -> Self {
        Self { advice: format!("artifact {} has all of it", artifact.id), ..Self::default() }
    }
}

/// Cuts `text` as [`trim_text`] does. If a part is missing already, more than `limits` must be present on both sides of
/// it.
fn trim_with_rest(text: &str, limits: &TrimLimits, rest: &StoredRemainder) -> Option<TrimmedText> {
    let lines = count_lines(text);
    let short = rest.bytes == 0 && text.len() <= limits.bytes && lines <= limits.lines;
    if short && text.split_inclusive('\n').all(|line| fits(line, limits.line_chars)) {
        return None;
    }
    if rest.bytes == 0
        && lines <= limits.lines
        && let Some(whole) =
            with_short_lines(text, &TrimLimits { bytes: if short { usize::MAX } else { limits.bytes }, ..*limits })
    {
        return Some(TrimmedText { text: whole.text, missing_lines: 0, missing_bytes: text.len() - whole.kept });
    }
    let (for_head, for_tail) = shares(limits);
    let head = head(text, &for_head);
    let tail = tail(&text[head.consumed..], &for_tail);
    let missing_lines = rest.lines + lines.saturating_sub(head.lines + tail.lines);
    let missing_bytes = rest.bytes + text.len() - head.kept - tail.kept;
    let mark = OmissionMark { lines: missing_lines, bytes: missing_bytes, advice: &rest.advice };
    let gap = if head.text.is_empty() || head.text.ends_with('\n') { "" } else { "\n" };
    Some(TrimmedText { text: format!("{}{gap}{mark}\n{}", head.text, tail.text), missing_lines, missing_bytes })
}

/// A part of a text as it is shown.
#[derive(Default)]
struct ShownPart {
    text: String,
    /// Lines of which something is shown.
    lines: usize,
    /// Bytes of the original that the part covers.
    consumed: usize,
    /// Bytes of the original that are shown.
    kept: usize,
}

impl ShownPart {
    /// Adds a line, shortened if it is too long. Returns whether it fits.
    fn add(&mut self, line: &str, limits: &TrimLimits) -> bool {
        let (shown, kept) = shorten(line, limits.line_chars);
        if shown.len() > limits.bytes - self.text.len() {
            return false;
        }
        self.text.push_str(&shown);
        self.lines += 1;
        self.consumed += line.len();
        self.kept += kept;
        true
    }

    /// A piece of a line, unchanged.
    fn piece(text: &str, consumed: usize) -> Self {
        Self { text: text.to_owned(), lines: usize::from(!text.is_empty()), consumed, kept: text.len() }
    }
}

/// Every line, with long ones shortened; none if that is still too much.
fn with_short_lines(text: &str, limits: &TrimLimits) -> Option<ShownPart> {
    let mut part = ShownPart::default();
    text.split_inclusive('\n').all(|line| part.add(line, limits)).then_some(part)
}

/// Splits the limits: three fifths for the head, the rest for the tail.
fn shares(limits: &TrimLimits) -> (TrimLimits, TrimLimits) {
    let of = |whole: usize| whole - whole.saturating_mul(2) / 5;
    let head = TrimLimits { lines: of(limits.lines), bytes: of(limits.bytes), line_chars: limits.line_chars };
    let tail = TrimLimits { lines: limits.lines - head.lines, bytes: limits.bytes - head.bytes, ..*limits };
    (head, tail)
}

/// As many lines from the start as fit, or at least the start of the first.
fn head(text: &str, limits: &TrimLimits) -> ShownPart {
    let mut part = ShownPart::default();
    let whole = text.split_inclusive('\n').take(limits.lines).take_while(|line| part.add(line, limits)).count();
    if whole > 0 || limits.lines == 0 {
        return part;
    }
    let line = text.split_inclusive('\n').next().unwrap_or_default();
    let (end, _) = line.char_indices().nth(limits.line_chars).unwrap_or((line.len(), ' '));
    let start = &line[..line.floor_char_boundary(limits.bytes.min(end))];
    ShownPart::piece(start, start.len())
}

/// As many lines from the end as fit, or at least the end of the last.
fn tail(text: &str, limits: &TrimLimits) -> ShownPart {
    let mut size = ShownPart::default();
    let from_end = || text.split_inclusive('\n').rev().take(limits.lines);
    let whole = from_end().take_while(|line| size.add(line, limits)).count();
    if whole > 0 || limits.lines == 0 {
        let mut part = ShownPart::default();
        text[text.len() - size.consumed..].split_inclusive('\n').for_each(|line| {
            part.add(line, limits);
        });
        return part;
    }
    let line = from_end().next().unwrap_or_default();
    let (start, _) = line.char_indices().rev().take(limits.line_chars).last().unwrap_or((line.len(), ' '));
    let end = &line[line.ceil_char_boundary((line.len() - line.len().min(limits.bytes)).max(start))..];
    ShownPart::piece(end, line.len())
}

/// The line, cut to `most` characters with a mark if it is longer, and how many of its bytes remain.
fn shorten(line: &str, most: usize) -> (Cow<'_, str>, usize) {
    let content = line.trim_end_matches(['\r', '\n']);
    let Some((end, _)) = content.char_indices().nth(most).filter(|_| !fits(line, most)) else {
        return (Cow::Borrowed(line), line.len());
    };
    let ending = &line[content.len()..];
    let missing = content[end..].chars().count();
    let what = if missing == 1 { "character" } else { "characters" };
    (Cow::Owned(format!("{}… [+{} {what}]{ending}", &content[..end], GroupedDigits(missing))), end + ending.len())
}

fn fits(line: &str, most: usize) -> bool {
    if line.len() <= most {
        return true;
    }
    let content = line.trim_end_matches(['\r', '\n']);
    content.len() <= most || content.chars().count() <= most
}

/// The number of lines, including an unterminated last one.
fn count_lines(text: &str) -> usize {
    let ends = memchr_iter(b'\n', text.as_bytes()).count();
    ends + usize::from(!text.is_empty() && !text.ends_with('\n'))
}

/// The line that marks a missing part.
struct OmissionMark<'a> {
    lines: usize,
    bytes: usize,
    advice: &'a str,
}

impl fmt::Display for OmissionMark<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("… [")?;
        if self.lines > 0 {
            write!(f, "{} {}, ", GroupedDigits(self.lines), noun(self.lines, "line"))?;
        }
        write!(f, "{} {} not shown", GroupedDigits(self.bytes), noun(self.bytes, "byte"))?;
        if !self.advice.is_empty() {
            write!(f, "; {}", self.advice)?;
        }
        f.write_str("] …")
    }
}

/// A number with thousands separators.
struct GroupedDigits(usize);

impl fmt::Display for GroupedDigits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.0.to_string();
        for (index, digit) in digits.chars().enumerate() {
            if index > 0 && (digits.len() - index).is_multiple_of(3) {
                f.write_str(",")?;
            }
            write!(f, "{digit}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn limits(lines: usize, bytes: usize, line_chars: usize) -> TrimLimits {
        TrimLimits { lines, bytes, line_chars }
    }

    #[test]
    fn what_is_shown() {
        let ten = (1..=10).map(|n| format!("line {n}\n")).collect::<String>();
        let cases: &[(&str, TrimLimits, Option<&str>)] = &[
            ("", limits(0, 0, 0), None),
            ("short\n", TrimLimits::default(), None),
            (&ten, limits(10, 71, 7), None),
            (
                &ten,
                limits(5, 1000, 100),
                Some("line 1\nline 2\nline 3\n… [5 lines, 35 bytes not shown] …\nline 9\nline 10\n"),
            ),
            (&ten, limits(100, 30, 100), Some("line 1\nline 2\n… [7 lines, 49 bytes not shown] …\nline 10\n")),
            (&ten, limits(1, 1000, 100), Some("line 1\n… [9 lines, 64 bytes not shown] …\n")),
            (&ten, limits(0, 1000, 100), Some("… [10 lines, 71 bytes not shown] …\n")),
            ("abcdefghij", limits(9, 5, 100), Some("abc\n… [5 bytes not shown] …\nij")),
            ("äöüäöü", limits(9, 5, 100), Some("ä\n… [8 bytes not shown] …\nü")),
            ("abcdefghij\nk\r\n", limits(9, 100, 4), Some("abcd… [+6 characters]\nk\r\n")),
            ("abcde\r\nk", limits(9, 100, 4), Some("abcd… [+1 character]\r\nk")),
        ];
        for (text, limits, expected) in cases {
            let trimmed = trim_text(text, limits);
            assert_eq!(trimmed.as_ref().map(|one| one.text.as_str()), *expected, "{text:?} {limits:?}");
        }
    }

    #[test]
    fn large_numbers_can_be_read() {
        let shown = |number| GroupedDigits(number).to_string();
        assert_eq!([shown(0), shown(999), shown(1000), shown(1_234_567)], ["0", "999", "1,000", "1,234,567"]);
    }

    proptest! {
        #[test]
        fn head_and_missing_and_tail_are_the_whole(
            text in "([a-zäß€😀]{0,12}(\n|\r\n)?){0,40}",
            lines in 0..30usize,
            bytes in 0..200usize,
        ) {
            let limits = limits(lines, bytes, 1000);
            let Some(trimmed) = trim_text(&text, &limits) else {
                prop_assert!(text.len() <= bytes && count_lines(&text) <= lines);
                return Ok(());
            };
            let mark = OmissionMark { lines: trimmed.missing_lines, bytes: trimmed.missing_bytes, advice: "" }.to_string();
            let (head, tail) = trimmed.text.split_once(&format!("{mark}\n")).unwrap();
            // A head that was cut inside a line got an extra newline.
            let adds_up = |head: &str| head.len() + trimmed.missing_bytes + tail.len() == text.len();
            let head = head.strip_suffix('\n').filter(|cut| adds_up(cut)).unwrap_or(head);
            prop_assert!(text.starts_with(head) && text.ends_with(tail));
            prop_assert!(adds_up(head));
            prop_assert!(head.len() + tail.len() <= bytes);
            prop_assert!(count_lines(head) + count_lines(tail) <= lines);
            let missing = &text[head.len()..text.len() - tail.len()];
            prop_assert!(trimmed.missing_lines <= count_lines(missing));
            prop_assert!(count_lines(missing) <= trimmed.missing_lines + 2);
        }

        #[test]
        fn long_lines_are_counted_too(
            text in "([a-zä€]{0,40}\n?){0,20}",
            lines in 0..30usize,
            bytes in 0..500usize,
            line_chars in 0..30usize,
        ) {
            let limits = limits(lines, bytes, line_chars);
            if let Some(trimmed) = trim_text(&text, &limits) {
                let own = |c: char| c.is_ascii_lowercase() && !"linesbytotshowncharae".contains(c) || "ä€".contains(c);
                let kept: usize = trimmed.text.chars().filter(|c| own(*c)).map(char::len_utf8).sum();
                prop_assert!(kept + trimmed.missing_bytes <= text.len());
                let marks = "… [+10 characters]".len() * trimmed.text.matches("… [+").count();
                prop_assert!(trimmed.text.len() <= bytes + marks + 80);
                prop_assert!(trimmed.missing_bytes > 0);
            }
        }
    }
}
