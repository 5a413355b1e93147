//! A Markdown table with its columns aligned. Its lines are collected until the table is whole, since the widest cell of a
//! column may come last.

use super::markdown::inline;
use super::screen::visible_width;
use super::{BOLD, DIM, paint};

/// Between two columns.
const GAP: usize = 3;

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

    /// The rows of the whole table. What is no table, or is too wide for the terminal, is shown as it was written.
    pub(super) fn end(&mut self, width: usize) -> Vec<String> {
        let lines = std::mem::take(&mut self.lines);
        aligned(&lines, width).unwrap_or_else(|| lines.iter().map(|line| inline(line)).collect())
    }
}

fn aligned(lines: &[String], width: usize) -> Option<Vec<String>> {
    let marks = cells(lines.get(1)?);
    let is_mark = |cell: &String| cell.contains('-') && cell.trim_matches(':').chars().all(|c| c == '-');
    let to_the_right: Vec<bool> = marks
        .iter()
        .map(|cell| !cell.starts_with(':') && cell.ends_with(':'))
        .chain(std::iter::repeat(false))
        .take(64)
        .collect();
    let rows = lines.iter().enumerate().filter(|(index, _)| *index != 1);
    let rows: Vec<Vec<String>> = rows.map(|(_, line)| cells(line).iter().map(|cell| inline(cell)).collect()).collect();
    let columns = rows.iter().map(Vec::len).max().filter(|columns| *columns <= to_the_right.len())?;
    let cell = |row: &[String], column: usize| row.get(column).cloned().unwrap_or_default();
    let widest = |column| rows.iter().map(|row| visible_width(&cell(row, column))).max().unwrap_or_default();
    let widths: Vec<usize> = (0..columns).map(widest).collect();
    let fits = widths.iter().sum::<usize>() + GAP * columns.saturating_sub(1) <= width;
    if !marks.iter().all(is_mark) || !fits {
        return None;
    }
    let padded = |row: &[String], column: usize| {
        let text = cell(row, column);
        let space = " ".repeat(widths[column] - visible_width(&text));
        if to_the_right[column] { space + &text } else { text + &space }
    };
    let shown = rows.iter().enumerate().map(|(index, row)| {
        let texts = (0..columns).map(|column| padded(row, column));
        let texts: Vec<String> = texts.map(|text| if index == 0 { paint(BOLD, text) } else { text }).collect();
        texts.join(&format!(" {} ", paint(DIM, "│")))
    });
    let mut shown: Vec<String> = shown.collect();
    let rules: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
    shown.insert(1, paint(DIM, rules.join("─┼─")));
    Some(shown)
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
    fn what_is_no_table_or_too_wide_stays_as_it_was_written() {
        assert_eq!(shown("| one | two |\n| 1 | 2 |", 40), ["| one | two |", "| 1 | 2 |"]);
        assert_eq!(shown("| one | two |\n|--|--|", 8), ["| one | two |", "|--|--|"]);
        assert_eq!(shown("| alone", 40), ["| alone"]);
    }
}
