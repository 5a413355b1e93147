//! Aligned columns, whatever colour their cells have. On a terminal a table is never wider than that: the last column is
//! wrapped, and columns that have no room at all go below their row, each with its heading. So nothing is cut off, and an
//! id can always be copied. Where the output goes to a program, every row is one line.

use anstyle::Style;
use unicode_width::UnicodeWidthStr;

use super::wrap::wrap;
use super::{BOLD, DIM, paint, stdout_size};
use crate::output::outln;

/// Between two columns.
const GAP: usize = 2;

/// The narrowest last column that is still readable next to the others.
const LEAST_ROOM: usize = 24;

/// How far lines below a row are indented.
const INDENT: usize = 4;

/// Rows of cells; each cell has a text and a style.
pub(crate) struct TextTable {
    head: Vec<&'static str>,
    rows: Vec<Vec<(String, Style)>>,
    /// Whole lines below a row: its number, and their text.
    below: Vec<(usize, String)>,
}

impl TextTable {
    /// A table with these headings.
    pub(crate) fn new(head: &[&'static str]) -> Self {
        Self { head: head.to_vec(), rows: Vec::new(), below: Vec::new() }
    }

    /// Adds a row.
    pub(crate) fn row<const N: usize>(&mut self, cells: [(String, Style); N]) {
        self.rows.push(cells.into());
    }

    /// Adds whole lines below the last row, indented.
    pub(crate) fn below<const N: usize>(&mut self, lines: [String; N]) {
        self.below.extend(lines.into_iter().map(|line| (self.rows.len(), line)));
    }

    /// Prints the table, within the width of the terminal.
    pub(crate) fn print(&self) {
        let width = stdout_size().map(|size| usize::from(size.columns));
        self.lines(width).iter().for_each(|line| outln!("{line}"));
    }

    /// The lines of the table, at most this wide.
    fn lines(&self, most: Option<usize>) -> Vec<String> {
        let layout = self.layout(most.unwrap_or(usize::MAX));
        let head = self.head.iter().map(|name| ((*name).to_owned(), BOLD)).collect::<Vec<_>>();
        let mut lines = self.in_columns(&head, &layout);
        for (number, row) in (1..).zip(&self.rows) {
            lines.extend(self.in_columns(row, &layout));
            lines.extend(self.below_columns(row, &layout));
            let below = self.below.iter().filter(|(row, _)| *row == number);
            lines.extend(below.flat_map(|(_, line)| indented(&line_of(line), 2, layout.width)));
        }
        lines
    }

    fn layout(&self, width: usize) -> TableLayout {
        let mut columns: Vec<usize> = (0..self.head.len()).map(|column| self.width(column)).collect();
        if total(&columns) <= width {
            return TableLayout { columns, width };
        }
        if let Some((last, others)) = columns.split_last_mut() {
            let room = width.saturating_sub(total(others) + GAP);
            if room >= LEAST_ROOM.min(*last) {
                *last = room;
                return TableLayout { columns, width };
            }
        }
        while columns.len() > 1 && total(&columns) > width {
            columns.pop();
        }
        TableLayout { columns, width }
    }

    /// The columns of a row that stay next to each other. All but the last one fit into one line.
    fn in_columns(&self, row: &[(String, Style)], layout: &TableLayout) -> Vec<String> {
        let shown: Vec<Vec<String>> =
            row.iter().zip(&layout.columns).map(|((text, _), width)| fitted(text, *width)).collect();
        let height = shown.iter().map(Vec::len).max().unwrap_or(0).max(1);
        let line = |number: usize| {
            let cells = shown.iter().zip(row).zip(&layout.columns).map(|((lines, (_, style)), width)| {
                padded(lines.get(number).map_or("", String::as_str), *width, *style)
            });
            cells.collect::<Vec<_>>().join(&" ".repeat(GAP)).trim_end().to_owned()
        };
        (0..height).map(line).collect()
    }

    /// The other columns of a row, with their headings.
    fn below_columns(&self, row: &[(String, Style)], layout: &TableLayout) -> Vec<String> {
        let cells = self.head.iter().zip(row).skip(layout.columns.len());
        let shown = cells.filter(|(_, (text, _))| !text.is_empty());
        let words: Vec<String> = shown.map(|(name, (text, _))| labelled(name, text)).collect();
        if words.is_empty() {
            return Vec::new();
        }
        indented(&words.join(" · "), INDENT, layout.width).into_iter().map(|line| paint(DIM, line)).collect()
    }

    fn width(&self, column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(column)).map(|(text, _)| text.width());
        cells.chain([self.head[column].width()]).max().unwrap_or(0)
    }
}

/// How a table is laid out: the widths of the columns that stay next to each other, and of the whole.
struct TableLayout {
    columns: Vec<usize>,
    width: usize,
}

fn total(columns: &[usize]) -> usize {
    columns.iter().sum::<usize>() + GAP * columns.len().saturating_sub(1)
}

/// A cell with the heading of its column, if that has one.
fn labelled(name: &str, text: &str) -> String {
    match name {
        "" => text.to_owned(),
        name => format!("{}: {text}", name.to_lowercase()),
    }
}

/// A line without its line breaks, which would end the table's line.
fn line_of(text: &str) -> String {
    text.replace('\n', " ")
}

/// A text in lines of at most this width, all of them indented.
fn indented(text: &str, indent: usize, width: usize) -> Vec<String> {
    let lines = fitted(text, width.saturating_sub(indent).max(1));
    lines.into_iter().map(|line| format!("{}{line}", " ".repeat(indent))).collect()
}

/// A text in lines of at most this width; as it is where it fits into one.
fn fitted(text: &str, width: usize) -> Vec<String> {
    let is_line = !text.contains('\n') && text.width() <= width;
    if is_line { vec![text.to_owned()] } else { wrap(text, width) }
}

fn padded(text: &str, width: usize, style: Style) -> String {
    let space = " ".repeat(width.saturating_sub(text.width()));
    format!("{}{space}", paint(style, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> TextTable {
        let mut table = TextTable::new(&["RUN", "STARTED", "CALLS", "TASK"]);
        let plain = Style::new();
        let cells = |run: &str, task: &str| {
            [(run.to_owned(), BOLD), ("2026-11-17 15:30".into(), DIM), ("12".into(), plain), (task.into(), plain)]
        };
        table.row(cells(
            "run_01a1e2b72b5c723f8747b379647fa93d",
            "make the tests pass, and say which of them had failed",
        ));
        table.row(cells("run_2", "ファイルを整理する、それから報告する"));
        table
    }

    fn shown(table: &TextTable, width: Option<usize>) -> String {
        anstream::adapter::strip_str(&table.lines(width).join("\n")).to_string()
    }

    #[test]
    fn no_line_is_wider_than_the_terminal_and_nothing_is_lost() {
        let without_spaces = |text: &str| text.split_whitespace().collect::<String>();
        for width in [40, 60, 80, 100, 120, 200] {
            let shown = shown(&table(), Some(width));
            for line in shown.lines() {
                assert!(line.width() <= width, "{width}: {line:?} in\n{shown}");
            }
            for part in ["run_01a1e2b72b5c723f8747b379647fa93d", "2026-11-17 15:30", "12"] {
                assert!(shown.contains(part), "{width}: {part} is missing in\n{shown}");
            }
            let letters = without_spaces(&shown);
            for letter in "ファイルを整理する、それから報告する".chars() {
                assert!(letters.contains(letter), "{width}: {letter}");
            }
        }
    }

    #[test]
    fn the_last_column_is_wrapped_and_what_has_no_room_goes_below() {
        let wide = "RUN                                   STARTED           CALLS  TASK\n\
                    run_01a1e2b72b5c723f8747b379647fa93d  2026-11-17 15:30  12     make the tests pass, and say which\n                                                               of them had failed\n\
                    run_2                                 2026-11-17 15:30  12     ファイルを整理する、それから報告す\n                                                               る";
        assert_eq!(shown(&table(), Some(98)), wide);
        let narrow = "RUN                                   STARTED\n\
                      run_01a1e2b72b5c723f8747b379647fa93d  2026-11-17 15:30\n    \
                      calls: 12 · task: make the tests pass, and say which of\n    them had failed\n\
                      run_2                                 2026-11-17 15:30\n    \
                      calls: 12 · task: ファイルを整理する、それから報告する";
        assert_eq!(shown(&table(), Some(60)), narrow);
    }

    #[test]
    fn for_a_program_every_row_is_one_line() {
        assert_eq!(shown(&table(), None).lines().count(), 3);
    }
}
