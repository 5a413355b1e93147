//! Cuts a file into chunks: the places that a search answers with. A function or type is a chunk of its own, together
//! with its comment; a long class is cut into its methods, a long function into windows; the rest is windows of lines.

use crate::outline::{Definition, Lines};

/// The most lines of a definition that stays whole, if nothing is defined inside of it.
const LONGEST_LEAF: usize = 80;
/// The most lines of a definition that stays whole together with those inside of it.
const LONGEST_PARENT: usize = 24;
/// Lines of a window.
const WINDOW: usize = 40;

/// A part of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Chunk {
    /// The first line, counted from 0.
    pub(crate) first: usize,
    /// The line after the last.
    pub(crate) end: usize,
    /// The definition that it is, or is a part of.
    pub(crate) definition: Option<usize>,
}

/// Cuts a file along its definitions.
pub(crate) fn cut(lines: &Lines<'_>, definitions: &[Definition]) -> Vec<Chunk> {
    let mut cutter = Cutter { lines, definitions, chunks: Vec::new() };
    cutter.span(0, lines.len(), None, 0..definitions.len());
    cutter.chunks
}

struct Cutter<'a> {
    lines: &'a Lines<'a>,
    definitions: &'a [Definition],
    chunks: Vec<Chunk>,
}

impl Cutter<'_> {
    /// Cuts the lines of a file or definition, which has these definitions inside of it.
    fn span(&mut self, first: usize, end: usize, owner: Option<usize>, inside: std::ops::Range<usize>) {
        let (mut at, mut next) = (first, inside.start);
        while next < inside.end {
            let child = &self.definitions[next];
            let after = (next + 1..inside.end).find(|other| self.definitions[*other].line >= child.end);
            let after = after.unwrap_or(inside.end);
            let begin = child.first.max(at).min(end);
            self.windows(at, begin, owner);
            at = child.end.min(end).max(begin);
            let (is_leaf, length) = (after == next + 1, at - begin);
            match length <= if is_leaf { LONGEST_LEAF } else { LONGEST_PARENT } {
                true => self.push(begin, at, Some(next)),
                false => self.span(begin, at, Some(next), next + 1..after),
            }
            next = after;
        }
        self.windows(at, end, owner);
    }

    fn windows(&mut self, mut first: usize, end: usize, owner: Option<usize>) {
        while first < end {
            let rest = end - first;
            // Two halves instead of a window and a few lines.
            let length = if rest <= WINDOW {
                rest
            } else if rest < 2 * WINDOW {
                rest.div_ceil(2)
            } else {
                WINDOW
            };
            self.push(first, first + length, owner);
            first += length;
        }
    }

    fn push(&mut self, first: usize, end: usize, definition: Option<usize>) {
        let says_something = (first..end)
            .any(|line| self.lines.line(line).bytes().any(|byte| byte.is_ascii_alphanumeric() || byte >= 0x80));
        if says_something {
            self.chunks.push(Chunk { first, end, definition });
        }
    }
}
