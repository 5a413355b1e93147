//! The mode `indentation` of `read_file`: the block of code around a line, by how far lines are indented. From the line itself it grows up
//! and down in turns, as long as lines are indented enough, until it has as many as were asked for.

use std::collections::VecDeque;

use serde_json::{Value, json};
use toolgate_contract::ToolError;

use crate::dialect::{Answered, EnterFault, NativeCall, Returned};
use crate::memory::DialectMemory;
use crate::parameter::Arguments;

/// Columns of a tab, and of a level of indentation.
const TAB_WIDTH: usize = 4;
/// Lines before the line and after it that are looked at.
const MOST_AROUND: usize = 1000;
/// The same where lines are so long that a page ends before the line.
const FEW_AROUND: usize = 50;
/// What a comment begins with.
const COMMENTS: [&str; 3] = ["#", "//", "--"];

/// Which block.
struct BlockRequest {
    /// The line that it is around, from 1.
    anchor: usize,
    /// How many levels of indentation it goes up; 0 for all.
    levels: usize,
    /// Whether blocks beside it belong to it.
    siblings: bool,
    /// Whether comments above it belong to it.
    header: bool,
    /// How many lines it has at most.
    lines: usize,
}

impl BlockRequest {
    fn read(args: &Arguments) -> Result<Self, EnterFault> {
        let options = args.value("indentation").cloned().unwrap_or_else(|| json!({}));
        let number = |value: Option<i64>, default: i64, fault: &str| {
            let number = value.unwrap_or(default);
            let refused = || EnterFault::from(ToolError::invalid_args(fault));
            usize::try_from(number).ok().filter(|number| *number > 0).ok_or_else(refused)
        };
        let option = |name: &str| options[name].as_i64();
        let offset = number(args.integer("offset"), 1, "offset must be a 1-indexed line number")?;
        let limit = number(args.integer("limit"), 2000, "limit must be greater than zero")?;
        let anchor = number(option("anchor_line"), offset as i64, "anchor_line must be a 1-indexed line number")?;
        let most = number(option("max_lines"), limit as i64, "max_lines must be greater than zero")?;
        Ok(Self {
            anchor,
            levels: option("max_levels").and_then(|levels| usize::try_from(levels).ok()).unwrap_or(0),
            siblings: options["include_siblings"] == true,
            header: options["include_header"] != false,
            lines: limit.min(most),
        })
    }

    /// Reads this many lines before the line and after it.
    fn around(&self, path: &str, around: usize) -> NativeCall {
        let first = self.anchor.saturating_sub(around).max(1);
        let count = (self.anchor - first + around).min(2 * MOST_AROUND);
        NativeCall::new("read", json!({ "path": path, "offset": first, "limit": count }))
    }
}

pub(super) fn enter(args: &Arguments, memory: &DialectMemory) -> Result<NativeCall, EnterFault> {
    let request = BlockRequest::read(args)?;
    let around = request.lines.clamp(1, MOST_AROUND);
    let call = request.around(&memory.native(args.word("file_path")), around);
    Ok(NativeCall { then: Some(nearer), ..call })
}

/// A page holds so many bytes; where lines are long, it may end before the line that was asked for.
fn nearer(answered: &Answered<'_>) -> Result<Option<NativeCall>, EnterFault> {
    let payload = answered.reply.payload.as_ref().unwrap_or(&Value::Null);
    let request = BlockRequest::read(answered.args)?;
    let is_before = payload["end_line"].as_u64().is_some_and(|end| (end as usize) < request.anchor);
    let is_cut = is_before && payload["has_more"] == true && answered.earlier.is_empty();
    let path = answered.memory.native(answered.args.word("file_path"));
    Ok(is_cut.then(|| request.around(&path, FEW_AROUND)))
}

/// A block as it is shown.
pub(super) struct ShownBlock<'a> {
    /// Its lines with their numbers.
    pub(super) lines: Vec<(usize, &'a str)>,
    /// The line to read on from, if the page ended before the block did.
    pub(super) next: Option<usize>,
}

/// The block, or why there is none.
pub(super) fn block<'a>(returned: &'a Returned<'_>) -> Result<ShownBlock<'a>, &'static str> {
    let Ok(request) = BlockRequest::read(returned.args) else { return Err("the arguments don't fit") };
    let first = usize::try_from(returned.number("start_line")).unwrap_or(1).max(1);
    let lines: Vec<&str> = returned.text("content").lines().collect();
    let anchor = request.anchor.checked_sub(first).filter(|anchor| *anchor < lines.len());
    let anchor = anchor.ok_or(match returned.is("has_more") {
        true => "the lines before anchor_line are too long to look at; read it with offset instead",
        false => "anchor_line exceeds file length",
    })?;
    let taken = Block::around(&lines, anchor, &request).grow();
    let is_cut = returned.is("has_more") && taken.end == lines.len() && taken.len() < request.lines;
    let next = is_cut.then_some(first + taken.end);
    let mut numbered: VecDeque<(usize, &str)> = taken.map(|index| (first + index, lines[index])).collect();
    let is_blank = |line: Option<&(usize, &str)>| line.is_some_and(|(_, text)| text.trim().is_empty());
    while is_blank(numbered.front()) {
        numbered.pop_front();
    }
    while is_blank(numbered.back()) {
        numbered.pop_back();
    }
    Ok(ShownBlock { lines: numbered.into(), next })
}

/// A block while it grows.
struct Block<'a> {
    lines: &'a [&'a str],
    indents: Vec<usize>,
    request: &'a BlockRequest,
    /// The least indentation of its lines.
    least: usize,
    /// The first line and the one behind the last.
    taken: std::ops::Range<usize>,
    /// Whether it can go on up, and down.
    is_open: [bool; 2],
    /// Whether a line of the least indentation was taken above, and below.
    has_edge: [bool; 2],
}

impl<'a> Block<'a> {
    fn around(lines: &'a [&'a str], anchor: usize, request: &'a BlockRequest) -> Self {
        let indents = indents(lines);
        let least = match request.levels {
            0 => 0,
            levels => indents[anchor].saturating_sub(levels.saturating_mul(TAB_WIDTH)),
        };
        Self {
            lines,
            indents,
            request,
            least,
            taken: anchor..anchor + 1,
            is_open: [true, true],
            has_edge: [false, false],
        }
    }

    /// Grows up and down in turns.
    fn grow(mut self) -> std::ops::Range<usize> {
        let most = self.request.lines.min(self.lines.len());
        while self.taken.len() < most && self.is_open != [false, false] {
            self.is_open[0] = self.is_open[0] && self.grow_up();
            if self.taken.len() < most {
                self.is_open[1] = self.is_open[1] && self.grow_down();
            }
        }
        self.taken
    }

    fn grow_up(&mut self) -> bool {
        let Some(above) = self.taken.start.checked_sub(1) else { return false };
        let is_header = self.request.header && is_comment(self.lines[above]);
        if !self.belongs(above, 0, is_header) {
            return false;
        }
        self.taken.start = above;
        true
    }

    fn grow_down(&mut self) -> bool {
        let below = self.taken.end;
        if below >= self.lines.len() || !self.belongs(below, 1, false) {
            return false;
        }
        self.taken.end += 1;
        true
    }

    /// Whether a line is part of the block. On each side one line of the least indentation is: the head of a block, or its closing
    /// brace. What follows that is another block.
    fn belongs(&mut self, line: usize, side: usize, is_header: bool) -> bool {
        if self.indents[line] < self.least {
            return false;
        }
        if self.indents[line] == self.least && !self.request.siblings {
            if self.has_edge[side] && !is_header {
                return false;
            }
            self.has_edge[side] = true;
        }
        true
    }
}

/// How far each line is indented; an empty one as far as the one before.
fn indents(lines: &[&str]) -> Vec<usize> {
    let mut before = 0;
    let indent = |line: &&str| {
        if !line.trim().is_empty() {
            let space = line.chars().take_while(|letter| matches!(letter, ' ' | '\t'));
            before = space.map(|letter| if letter == '\t' { TAB_WIDTH } else { 1 }).sum();
        }
        before
    };
    lines.iter().map(indent).collect()
}

fn is_comment(line: &str) -> bool {
    COMMENTS.iter().any(|mark| line.trim_start().starts_with(mark))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "mod a {\n    // First.\n    fn one() {\n        if x {\n            y();\n        }\n    }\n\n    fn two() {\n        z();\n    }\n}\n";

    fn taken(anchor: usize, request: &BlockRequest) -> (usize, usize) {
        let lines: Vec<&str> = SOURCE.lines().collect();
        let taken = Block::around(&lines, anchor - 1, request).grow();
        (taken.start + 1, taken.end)
    }

    #[test]
    fn a_block_grows_to_its_head_and_its_end() {
        let request = |levels| BlockRequest { anchor: 5, levels, siblings: false, header: true, lines: 2000 };
        assert_eq!(taken(5, &request(1)), (4, 6), "one level: the condition");
        assert_eq!(taken(5, &request(2)), (2, 7), "two levels: the function with its comment");
        assert_eq!(taken(5, &request(0)), (1, 12), "all levels: everything");
        let siblings = BlockRequest { siblings: true, ..request(2) };
        assert_eq!(taken(5, &siblings), (2, 11));
        let bare = BlockRequest { header: false, ..request(2) };
        assert_eq!(taken(5, &bare), (3, 7));
        let short = BlockRequest { lines: 4, ..request(0) };
        assert_eq!(taken(5, &short), (3, 6), "up comes first");
    }

    #[test]
    fn empty_lines_and_tabs_are_indented_like_their_neighbours() {
        assert_eq!(indents(&["a", "\tb", "", "    c", "  d"]), [0, 4, 4, 4, 2]);
    }
}
