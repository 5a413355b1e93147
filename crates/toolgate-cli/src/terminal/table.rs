//! Columns that line up, whatever colour their cells have.

use anstyle::Style;

use super::{BOLD, paint};

/// Rows of cells; each cell has its text and how it looks.
pub(crate) struct Table {
    head: Vec<&'static str>,
    rows: Vec<Vec<(String, Style)>>,
}

impl Table {
    /// A table with these headings.
    pub(crate) fn new(head: &[&'static str]) -> Self {
        Self { head: head.to_vec(), rows: Vec::new() }
    }

    /// Adds a row.
    pub(crate) fn row<const N: usize>(&mut self, cells: [(String, Style); N]) {
        self.rows.push(cells.into());
    }

    /// Prints it.
    pub(crate) fn print(&self) {
        let widths: Vec<usize> = (0..self.head.len()).map(|column| self.width(column)).collect();
        let head = self.head.iter().zip(&widths).map(|(name, width)| padded(name, *width, BOLD));
        anstream::println!("{}", head.collect::<Vec<_>>().join("  ").trim_end());
        for row in &self.rows {
            let cells = row.iter().zip(&widths).map(|((text, style), width)| padded(text, *width, *style));
            anstream::println!("{}", cells.collect::<Vec<_>>().join("  ").trim_end());
        }
    }

    fn width(&self, column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(column)).map(|(text, _)| text.chars().count());
        cells.chain([self.head[column].len()]).max().unwrap_or(0)
    }
}

fn padded(text: &str, width: usize, style: Style) -> String {
    let space = " ".repeat(width.saturating_sub(text.chars().count()));
    format!("{}{space}", paint(style, text))
}
