//! Shows a model's Markdown on a terminal, line by line as it arrives: headings, lists, tables, emphasis and code. What
//! isn't understood is shown as it is.

use anstyle::Style;

use super::markdown_table::MarkdownTable;
use super::screen::rows;
use super::{BLUE, BOLD, DIM, paint, plain};

/// Renders lines; it remembers whether it is inside a block of code, or a table.
#[derive(Debug, Default)]
pub(crate) struct MarkdownRenderer {
    in_code: bool,
    table: MarkdownTable,
}

impl MarkdownRenderer {
    /// The rows of one line, each at most this wide. A line of a table comes with its last one.
    pub(crate) fn line(&mut self, line: &str, width: usize) -> Vec<String> {
        let line = plain(line).replace('\t', "    ");
        if !self.in_code && self.table.take(&line) {
            return Vec::new();
        }
        let mut rows = self.table.end(width);
        rows.extend(self.text_line(line, width));
        rows
    }

    fn text_line(&mut self, line: String, width: usize) -> Vec<String> {
        let trimmed = line.trim_start();
        if trimmed.starts_with("```") || trimmed.starts_with("~~~") {
            self.in_code = !self.in_code;
            return vec![paint(DIM, line)];
        }
        // Code is copied from the terminal, so its lines stay whole.
        if self.in_code {
            return vec![paint(BLUE, line)];
        }
        if is_rule(trimmed) {
            return vec![paint(DIM, "─".repeat(width.min(60)))];
        }
        if let Some(heading) = heading(trimmed) {
            return rows(heading, width).into_iter().map(|row| paint(BOLD, row)).collect();
        }
        if let Some(quoted) = trimmed.strip_prefix("> ") {
            let rows = rows(quoted, width.saturating_sub(2)).into_iter();
            return rows.map(|row| format!("{} {}", paint(DIM, "│"), inline(&row))).collect();
        }
        let indent = line.len() - trimmed.len();
        let (mark, text) = list_item(trimmed);
        let hang = indent + mark.chars().count();
        let wrapped = rows(text, width.saturating_sub(hang).max(10));
        let first = format!("{}{mark}", " ".repeat(indent));
        let starts = [first].into_iter().chain(std::iter::repeat(" ".repeat(hang)));
        wrapped.iter().zip(starts).map(|(row, start)| format!("{start}{}", inline(row.trim_end()))).collect()
    }

    /// What was written and isn't shown yet, since its table goes on.
    pub(crate) fn pending(&self) -> &[String] {
        self.table.lines()
    }

    /// Ends the text, and gives the rows that are left; the next text begins outside of code.
    pub(crate) fn end(&mut self, width: usize) -> Vec<String> {
        self.in_code = false;
        self.table.end(width)
    }
}

fn is_rule(line: &str) -> bool {
    line.len() >= 3 && ["-", "*", "_"].iter().any(|mark| line.replace(' ', "").chars().all(|c| mark.contains(c)))
}

fn heading(line: &str) -> Option<&str> {
    let text = line.trim_start_matches('#');
    let level = line.len() - text.len();
    (1..=6).contains(&level).then(|| text.strip_prefix(' ')).flatten()
}

/// The mark of a list item, as it is shown, and its text.
fn list_item(line: &str) -> (String, &str) {
    for (mark, shown) in
        [("- [ ] ", "☐ "), ("- [x] ", "☑ "), ("- [X] ", "☑ "), ("- ", "• "), ("* ", "• "), ("+ ", "• ")]
    {
        if let Some(text) = line.strip_prefix(mark) {
            return (shown.to_owned(), text);
        }
    }
    let digits = line.chars().take_while(char::is_ascii_digit).count();
    match line.get(digits..digits + 2) {
        Some(". " | ") ") if (1..=3).contains(&digits) => (line[..digits + 2].to_owned(), &line[digits + 2..]),
        _ => (String::new(), line),
    }
}

/// Emphasis and code inside a line. A mark without its partner is shown as it is.
pub(super) fn inline(line: &str) -> String {
    let (mut shown, mut rest) = (String::new(), line);
    while let Some(found) = rest.find(['`', '*']) {
        shown.push_str(&rest[..found]);
        rest = &rest[found..];
        let styled = enclosed(rest, "`", BLUE).or_else(|| enclosed(rest, "**", BOLD));
        let styled = styled.or_else(|| enclosed(rest, "*", Style::new().italic()));
        match styled {
            Some((text, length)) => {
                shown.push_str(&text);
                rest = &rest[length..];
            }
            None => {
                let mark = rest.chars().take_while(|c| rest.starts_with(*c)).count();
                shown.push_str(&rest[..mark]);
                rest = &rest[mark..];
            }
        }
    }
    shown + rest
}

/// The text between two marks, in this style, and how long it is with them.
fn enclosed(text: &str, mark: &str, style: Style) -> Option<(String, usize)> {
    let inner = text.strip_prefix(mark)?;
    let end = inner.find(mark).filter(|end| *end > 0)?;
    let inner = &inner[..end];
    // `2 * 3 * 4` isn't emphasis.
    let is_text = mark == "`" || !(inner.starts_with([' ', '*']) || inner.ends_with(' '));
    is_text.then(|| (paint(style, inner), end + 2 * mark.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rows without their colours.
    fn shown(text: &str, width: usize) -> Vec<String> {
        let mut renderer = MarkdownRenderer::default();
        let mut rows: Vec<String> = text.lines().flat_map(|line| renderer.line(line, width)).collect();
        rows.extend(renderer.end(width));
        rows.iter().map(|row| anstream::adapter::strip_str(row).to_string()).collect()
    }

    #[test]
    fn marks_become_what_they_mean() {
        assert_eq!(shown("## Result\n**Done**: `a.rs` *now*, 2 * 3 * 4", 60), ["Result", "Done: a.rs now, 2 * 3 * 4"]);
        assert_eq!(shown("- [x] one\n- two\n1. three", 60), ["☑ one", "• two", "1. three"]);
        assert_eq!(inline("a **b** c"), format!("a {} c", paint(BOLD, "b")));
        assert_eq!(inline("an * alone and `open"), "an * alone and `open");
    }

    #[test]
    fn text_is_wrapped_and_code_is_not() {
        assert_eq!(shown("- a list item that is long", 12), ["• a list", "  item that", "  is long"]);
        let code = "```\n- not **a** list, and longer than it is wide\n```\n- a";
        assert_eq!(shown(code, 12), ["```", "- not **a** list, and longer than it is wide", "```", "• a"]);
    }

    #[test]
    fn a_table_is_shown_once_it_is_whole() {
        let table = "before\n| a | b |\n|---|---|\n| **one** | 2 |\nafter";
        assert_eq!(shown(table, 40), ["before", "a   │ b", "────┼──", "one │ 2", "after"]);
        assert_eq!(shown("| a |\n|---|", 40), ["a", "─"]);
        assert_eq!(shown("```\n| a |\n```", 40), ["```", "| a |", "```"]);
    }

    #[test]
    fn a_model_does_not_control_the_terminal() {
        assert_eq!(shown("\u{1b}[2Jgone", 60), ["\\u{1b}[2Jgone"]);
    }
}
