//! Trees as people read them: a line for each node, its details below it, and its branches.

use std::fmt::Write;

/// A line with its details, and the lines beneath it.
pub(crate) struct TreeLine {
    pub(crate) line: String,
    pub(crate) details: Vec<String>,
    pub(crate) below: Vec<TreeLine>,
}

impl TreeLine {
    pub(crate) fn leaf(line: String) -> Self {
        Self { line, details: Vec::new(), below: Vec::new() }
    }

    /// These nodes with their branches, each line with a line break.
    pub(crate) fn drawn(nodes: &[Self]) -> String {
        let mut text = String::new();
        draw(nodes, "", &mut text);
        text
    }
}

fn draw(nodes: &[TreeLine], indent: &str, text: &mut String) {
    for (index, node) in nodes.iter().enumerate() {
        let is_last = index + 1 == nodes.len();
        let (branch, rest) = if is_last { ("└──", "    ") } else { ("├──", "│   ") };
        // Writing into a string can't fail.
        let _ = writeln!(text, "{indent}{branch} {}", node.line);
        for detail in &node.details {
            let _ = writeln!(text, "{indent}{rest} {detail}");
        }
        draw(&node.below, &format!("{indent}{rest}"), text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_branch_ends_its_line() {
        let inner = TreeLine { line: "c".into(), details: vec!["about c".into()], below: Vec::new() };
        let outer = |line: &str, below| TreeLine { line: line.into(), details: vec![], below };
        let nodes = [outer("a", vec![TreeLine::leaf("b".into()), inner]), outer("d", vec![TreeLine::leaf("e".into())])];
        let expected = "├── a\n│   ├── b\n│   └── c\n│        about c\n└── d\n    └── e\n";
        assert_eq!(TreeLine::drawn(&nodes), expected);
    }
}
