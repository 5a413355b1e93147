//! Aligned columns, whatever colour their cells have.

use anstyle::Style;

use super::{BOLD, paint};

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

    /// Prints it.
    pub(crate) fn print(&self) {
        self.print_within(None);
    }

    /// Prints the table at most this wide, as far as shortening its last column allows.
    pub(crate) fn print_within(&self, most: Option<usize>) {
        let widths: Vec<usize> = (0..self.head.len()).map(|column| self.width(column)).collect();
        let before_last: usize = widths.iter().rev().skip(1).map(|width| width + 2).sum();
        let room = most.map_or(usize::MAX, |most| {
            most.saturating_sub(before_last).max(self.head.last().map_or(0, |head| head.len()))
        });
        let head = self.head.iter().zip(&widths).map(|(name, width)| padded(name, *width, BOLD));
        anstream::println!("{}", head.collect::<Vec<_>>().join("  ").trim_end());
        for (number, row) in (1..).zip(&self.rows) {
            let last = row.len().saturating_sub(1);
            let cells = row.iter().zip(&widths).enumerate().map(|(column, ((text, style), width))| match column {
                column if column == last => padded(&cut(text, room), (*width).min(room), *style),
                _ => padded(text, *width, *style),
            });
            anstream::println!("{}", cells.collect::<Vec<_>>().join("  ").trim_end());
            for (_, line) in self.below.iter().filter(|(row, _)| *row == number) {
                anstream::println!("  {line}");
            }
        }
    }

    fn width(&self, column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(column)).map(|(text, _)| text.chars().count());
        cells.chain([self.head[column].len()]).max().unwrap_or(0)
    }
}

/// A text with at most `most` characters.
fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some(_) => text.chars().take(most.saturating_sub(1)).chain(['…']).collect(),
    }
}

fn padded(text: &str, width: usize, style: Style) -> String {
    let space = " ".repeat(width.saturating_sub(text.chars().count()));
    format!("{}{space}", paint(style, text))
}
