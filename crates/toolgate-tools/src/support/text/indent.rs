//! A block that is indented differently in the file than in the request: by how much, and how to indent new lines.
//!
//! A shift is valid only when one rule explains every line of the block. A new line that the rule can't convert makes
//! the shift unusable: no match is better than a guess.

use std::fmt;

use toolgate_contract::counted;

use super::lines::{indent, is_blank};

/// Tab widths in use; any other is a coincidence.
const TAB_WIDTHS: std::ops::RangeInclusive<isize> = 1..=8;

/// One rule that turns the request's indentation into the file's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum IndentShift {
    /// The file has this prefix on every line.
    Deeper(Vec<u8>),
    /// The request has this prefix on every line, the file doesn't.
    Shallower(Vec<u8>),
    /// The request has spaces where the file has tabs.
    SpacesToTabs { width: isize, more: isize },
    /// The request has tabs where the file has spaces.
    TabsToSpaces { width: isize, more: isize },
}

impl IndentShift {
    /// The rule that explains all pairs of (requested line, line in the file), if there is one.
    pub(crate) fn between<'a>(pairs: impl Iterator<Item = (&'a [u8], &'a [u8])>) -> Option<Self> {
        let indents: Vec<_> = pairs
            .filter(|(requested, _)| !is_blank(requested))
            .map(|(requested, found)| (indent(requested), indent(found)))
            .collect();
        let (requested, found) = *indents.first()?;
        let candidates = [
            found.strip_suffix(requested).map(|prefix| Self::Deeper(prefix.to_vec())),
            requested.strip_suffix(found).map(|prefix| Self::Shallower(prefix.to_vec())),
            retab(&indents, b' ', b'\t').map(|(width, more)| Self::SpacesToTabs { width, more }),
            retab(&indents, b'\t', b' ').map(|(width, more)| Self::TabsToSpaces { width, more }),
        ];
        candidates
            .into_iter()
            .flatten()
            .find(|shift| indents.iter().all(|(requested, found)| shift.carried(requested).as_deref() == Some(found)))
    }

    /// Indents a new line as the file would.
    pub(crate) fn apply(&self, body: &[u8]) -> Option<Vec<u8>> {
        if is_blank(body) {
            return Some(body.to_vec());
        }
        let blanks = indent(body);
        let mut line = self.carried(blanks)?;
        line.extend_from_slice(&body[blanks.len()..]);
        Some(line)
    }

    /// Converts one indentation.
    fn carried(&self, blanks: &[u8]) -> Option<Vec<u8>> {
        match self {
            Self::Deeper(prefix) => Some([prefix, blanks].concat()),
            Self::Shallower(prefix) => blanks.strip_prefix(prefix.as_slice()).map(<[u8]>::to_vec),
            Self::SpacesToTabs { width, more } => {
                let spaces = isize::try_from(pure(blanks, b' ')?).ok()?;
                let tabs = usize::try_from(spaces / width + more).ok()?;
                Some([vec![b'\t'; tabs], vec![b' '; (spaces % width).unsigned_abs()]].concat())
            }
            Self::TabsToSpaces { width, more } => {
                let tabs = blanks.iter().take_while(|&&byte| byte == b'\t').count();
                let aligned = pure(&blanks[tabs..], b' ')?;
                let spaces = usize::try_from(isize::try_from(tabs).ok()? * width + more).ok()?;
                Some(vec![b' '; spaces + aligned])
            }
        }
    }
}

/// The count of one byte, if the whitespace consists of nothing else.
fn pure(blanks: &[u8], byte: u8) -> Option<usize> {
    blanks.iter().all(|&blank| blank == byte).then_some(blanks.len())
}

/// The tab width and the difference in levels, when one side uses tabs and the other spaces.
fn retab(indents: &[(&[u8], &[u8])], from: u8, to: u8) -> Option<(isize, isize)> {
    let count = |blanks, byte| pure(blanks, byte).and_then(|count| isize::try_from(count).ok());
    let counts: Vec<(isize, isize)> = indents
        .iter()
        .map(|(requested, found)| Some((count(requested, from)?, count(found, to)?)))
        .collect::<Option<_>>()?;
    let first = *counts.first()?;
    let spaces_and_tabs = |(requested, found)| if from == b' ' { (requested, found) } else { (found, requested) };
    let other = counts.iter().copied().find(|pair| pair.0 != first.0 && pair.1 != first.1);
    let (first_spaces, first_tabs) = spaces_and_tabs(first);
    let (spaces, tabs) = match other.map(spaces_and_tabs) {
        Some((spaces, tabs)) => (spaces - first_spaces, tabs - first_tabs),
        None => (first_spaces, first_tabs),
    };
    if tabs == 0 || spaces % tabs != 0 || !TAB_WIDTHS.contains(&(spaces / tabs)) {
        return None;
    }
    let width = spaces / tabs;
    let more = if from == b' ' { first_tabs - first_spaces / width } else { first_spaces - first_tabs * width };
    Some((width, more))
}

/// Describes how new lines were indented.
impl fmt::Display for IndentShift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Deeper(prefix) => write!(f, "new lines were indented by {} more", amount(prefix)),
            Self::Shallower(prefix) => write!(f, "new lines were indented by {} less", amount(prefix)),
            Self::SpacesToTabs { width, .. } => {
                write!(f, "new lines were indented with tabs, one for {width} spaces, as the file is")
            }
            Self::TabsToSpaces { width, .. } => {
                write!(f, "new lines were indented with {width} spaces for each tab, as the file is")
            }
        }
    }
}

fn amount(blanks: &[u8]) -> String {
    let tabs = blanks.iter().filter(|&&byte| byte == b'\t').count();
    match (tabs, blanks.len() - tabs) {
        (0, spaces) => counted(spaces, "space"),
        (tabs, 0) => counted(tabs, "tab"),
        (tabs, spaces) => format!("{} and {}", counted(tabs, "tab"), counted(spaces, "space")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shift(pairs: &[(&str, &str)]) -> Option<IndentShift> {
        IndentShift::between(pairs.iter().map(|(requested, found)| (requested.as_bytes(), found.as_bytes())))
    }

    fn carried(shift: &IndentShift, line: &str) -> Option<String> {
        shift.apply(line.as_bytes()).map(|line| String::from_utf8(line).unwrap())
    }

    #[test]
    fn a_constant_prefix_is_added_or_taken_away() {
        let deeper = shift(&[("a", "    a"), ("", ""), ("  b", "      b")]).unwrap();
        assert_eq!(deeper.to_string(), "new lines were indented by 4 spaces more");
        assert_eq!(carried(&deeper, "\tc").unwrap(), "    \tc");
        assert_eq!(carried(&deeper, "").unwrap(), "", "blank lines stay blank");
        let shallower = shift(&[("\t\ta", "\ta"), ("\t\t\tb", "\t\tb")]).unwrap();
        assert_eq!(shallower.to_string(), "new lines were indented by 1 tab less");
        assert_eq!(carried(&shallower, "\tc").unwrap(), "c");
        assert_eq!(carried(&shallower, "c"), None, "nothing can be taken away");
    }

    #[test]
    fn tabs_and_spaces_are_exchanged_at_the_width_that_explains_every_line() {
        let tabs = shift(&[("    a", "\ta"), ("        b", "\t\tb")]).unwrap();
        assert_eq!(tabs, IndentShift::SpacesToTabs { width: 4, more: 0 });
        assert_eq!(carried(&tabs, "          c").unwrap(), "\t\t  c", "what is left over aligns");
        let deeper = shift(&[("a", "\ta"), ("  b", "\t\tb")]).unwrap();
        assert_eq!(deeper, IndentShift::SpacesToTabs { width: 2, more: 1 });
        let spaces = shift(&[("\ta", "  a"), ("\t\tb", "    b")]).unwrap();
        assert_eq!(spaces, IndentShift::TabsToSpaces { width: 2, more: 0 });
        assert_eq!(carried(&spaces, "\t\t\tc").unwrap(), "      c");
        let single = shift(&[("    a", "\ta")]).unwrap();
        assert_eq!(carried(&single, "        b").unwrap(), "\t\tb");
    }

    #[test]
    fn no_rule_no_shift() {
        assert_eq!(shift(&[("a", "  a"), ("  b", "   b")]), None, "by 2, then by 1");
        assert_eq!(shift(&[("  a", "\ta"), ("  b", "\t\tb")]), None);
        assert_eq!(shift(&[("", ""), ("  ", "\t")]), None, "blank lines say nothing");
    }
}
