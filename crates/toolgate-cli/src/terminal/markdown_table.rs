//! A Markdown table with its columns aligned. Its lines are collected until the table is whole, since the widest cell of a
//! column may come last.

use super::markdown::inline;
use super::screen::{rows, visible_width};
use super::{BOLD, DIM, paint};

/// Between two columns.
const GAP: usize = 3;

/// A column isn't made narrower than this: below it, a word is more often broken than not.
const NARROWEST: usize = 8;

/// The lines of a table so far.
#[derive(Debug, Default)]
pub(super) struct MarkdownTable {
    lines: Vec<String>,
}

impl MarkdownTable {
    /// Takes a line, if it belongs to a table.
    pub(super) fn take(&mut self, line: &str) -> bool {
        let is_row = line.trim_start().starts_with('|');
        if is_row {
            self.lines.push(line.trim().to_owned());
        }
        is_row
    }

    /// The lines that aren't shown yet, as the model wrote them.
    pub(super) fn lines(&self) -> &[String] {
        &self.lines
    }

    /// The rows of the whole table. What is no table, or has too many columns for the terminal, is shown as it was written.
    pub(super) fn end(&mut self, width: usize) -> Vec<String> {
        let lines = std::mem::take(&mut self.lines);
        let as_written = || lines.iter().flat_map(|line| rows(line, width)).map(|row| inline(row.trim_end())).collect();
        aligned(&lines, width).unwrap_or_else(as_written)
    }
}

fn aligned(lines: &[String], width: usize) -> Option<Vec<String>> {
    let marks = cells(lines.get(1)?);
    let is_mark = |cell: &String| cell.contains('-') && cell.trim_matches(':').chars().all(|c| c == '-');
    if !marks.iter().all(is_mark) {
        return None;
    }
    let to_the_right: Vec<bool> = marks
        .iter()
        .map(|cell| !cell.starts_with(':') && cell.ends_with(':'))
        .chain(std::iter::repeat(false))
        .take(64)
        .collect();
    let table = lines.iter().enumerate().filter(|(index, _)| *index != 1);
    let table: Vec<Vec<String>> = table.map(|(_, line)| cells(line)).collect();
    let columns = table.iter().map(Vec::len).max().filter(|columns| *columns <= to_the_right.len())?;
    let seen = |row: &Vec<String>, column: usize| row.get(column).map_or(0, |cell| visible_width(&inline(cell)));
    let natural: Vec<usize> =
        (0..columns).map(|column| table.iter().map(|row| seen(row, column)).max().unwrap_or_default()).collect();
    let widths = fitted(&natural, width.checked_sub(GAP * columns.saturating_sub(1))?)?;
    let mut shown: Vec<String> = Vec::new();
    for (index, row) in table.iter().enumerate() {
        for texts in wrapped(row, &widths) {
            let padded = texts.into_iter().enumerate().map(|(column, text)| {
                let space = " ".repeat(widths[column].saturating_sub(visible_width(&text)));
                let text = if to_the_right[column] { space + &text } else { text + &space };
                if index == 0 { paint(BOLD, text) } else { text }
            });
            shown.push(padded.collect::<Vec<_>>().join(&format!(" {} ", paint(DIM, "│"))));
        }
        if index == 0 {
            let rules: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
            shown.push(paint(DIM, rules.join("─┼─")));
        }
    }
    Some(shown)
}

/// The widths of columns that would like to be this wide, so that all of them fit: the widest give first. None if there is
/// too little room for so many.
fn fitted(natural: &[usize], available: usize) -> Option<Vec<usize>> {
    let mut widths = natural.to_vec();
    while widths.iter().sum::<usize>() > available {
        let widest = widths.iter_mut().max()?;
        if *widest <= NARROWEST {
            return None;
        }
        *widest -= 1;
    }
    Some(widths)
}

/// The lines of a row, each with a text for every column.
fn wrapped(row: &[String], widths: &[usize]) -> Vec<Vec<String>> {
    let cell = |(column, width): (usize, &usize)| -> Vec<String> {
        let text = row.get(column).map_or("", String::as_str);
        match inline(text) {
            whole if visible_width(&whole) <= *width => vec![whole],
            _ => rows(text, *width).iter().map(|line| inline(line.trim_end())).collect(),
        }
    };
    let columns: Vec<Vec<String>> = widths.iter().enumerate().map(cell).collect();
    let height = columns.iter().map(Vec::len).max().unwrap_or_default();
    let line = |at: usize| columns.iter().map(|lines| lines.get(at).cloned().unwrap_or_default()).collect();
    (0..height).map(line).collect()
}

/// The cells of a line, without the bars around them. A bar after a backslash is text.
fn cells(line: &str) -> Vec<String> {
    let line = line.strip_prefix('|').unwrap_or(line);
    let (mut cells, mut is_escaped) = (vec![String::new()], false);
    for character in line.chars() {
        match (character, cells.last_mut()) {
            ('|', _) if !is_escaped => cells.push(String::new()),
            ('|', Some(cell)) => {
                cell.pop();
                cell.push('|');
            }
            (_, Some(cell)) => cell.push(character),
            (_, None) => {}
        }
        is_escaped = character == '\\' && !is_escaped;
    }
    if cells.len() > 1 && cells.last().is_some_and(|cell| cell.trim().is_empty()) {
        cells.pop();
    }
    cells.iter().map(|cell| cell.trim().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rows without their colours.
    fn shown(text: &str, width: usize) -> Vec<String> {
        let mut table = MarkdownTable::default();
        assert!(text.lines().all(|line| table.take(line)));
        table.end(width).iter().map(|row| anstream::adapter::strip_str(row).to_string()).collect()
    }

    #[test]
    fn columns_are_aligned_by_what_is_seen() {
        let text = "| File | Lines |\n|:--|--:|\n| `a.rs` | 7 |\n| 日本.rs | 1,200 |\n| a \\| b |";
        assert_eq!(
            shown(text, 40),
            ["File    │ Lines", "────────┼──────", "a.rs    │     7", "日本.rs │ 1,200", "a | b   │      "]
        );
    }

    #[test]
    fn what_is_too_wide_is_wrapped_within_its_column() {
        let text = "| File | Why |\n|--|--|\n| `a.rs` | it subtracts, which **nobody** expects |\n| b.rs | new |";
        assert_eq!(
            shown(text, 24),
            [
                "File │ Why              ",
                "─────┼──────────────────",
                "a.rs │ it subtracts,    ",
                "     │ which nobody     ",
                "     │ expects          ",
                "b.rs │ new              "
            ]
        );
    }

    #[test]
    fn what_is_no_table_or_has_no_room_stays_as_it_was_written() {
        assert_eq!(shown("| one | two |\n| 1 | 2 |", 40), ["| one | two |", "| 1 | 2 |"]);
        assert_eq!(shown("| one | two |\n|--|--|", 8), ["| one |", "two |", "|--|--|"]);
        assert_eq!(shown("| alone", 40), ["| alone"]);
    }
}
