//! The figures of benchmarks. A benchmark prints each as `WHAT: VALUE UNIT   (wanted: LIMIT)`; here such lines are read, shown
//! beside the value of before, and kept as a table in the repository, so that a slip is seen.

use std::fmt;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::command_line::{CommandLine, repository_root};

/// What a benchmark measured.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Figure {
    pub(crate) what: String,
    pub(crate) value: f64,
    pub(crate) unit: String,
    pub(crate) wanted: String,
}

impl Figure {
    /// The figure in a line that a benchmark printed, if there is one.
    pub(crate) fn read(line: &str) -> Option<Self> {
        let (figure, wanted) = line.trim().strip_suffix(')')?.rsplit_once("(wanted: ")?;
        let (what, now) = figure.trim_end().rsplit_once(": ")?;
        Self::of_parts(what, now, wanted)
    }

    fn of_parts(what: &str, now: &str, wanted: &str) -> Option<Self> {
        let (value, unit) = now.split_once(' ')?;
        Some(Self { what: what.into(), value: value.parse().ok()?, unit: unit.into(), wanted: wanted.into() })
    }

    pub(crate) fn to_json(&self) -> Value {
        json!({ "what": self.what, "value": self.value, "unit": self.unit, "wanted": self.wanted })
    }

    fn read_row(row: &str) -> Option<Self> {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [what, now, wanted, _] = cells[..] else { return None };
        Self::of_parts(what, now, wanted)
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.value, self.unit)
    }
}

/// The figures in the repository.
pub(crate) struct KeptFigures(Vec<Figure>);

impl KeptFigures {
    pub(crate) fn open() -> Self {
        let table = fs::read_to_string(table_path()).unwrap_or_default();
        Self(table.lines().filter_map(Figure::read_row).collect())
    }

    /// What the same figure was when the table was made.
    pub(crate) fn before(&self, figure: &Figure) -> Option<&Figure> {
        self.0.iter().find(|kept| kept.what == figure.what)
    }

    /// Writes the table anew, with what each figure was before beside it.
    pub(crate) fn replace(&self, measured: &[Figure]) -> Result<()> {
        let commit = CommandLine::new("git describe --always --dirty").output()?;
        let text = self.table(measured, &commit, &machine());
        fs::write(table_path(), text).context("cannot write docs/performance.md")
    }

    fn table(&self, measured: &[Figure], commit: &str, machine: &str) -> String {
        let row = |figure: &Figure| {
            let before = self.before(figure).map_or_else(|| "–".to_owned(), Figure::to_string);
            format!("| {} | {figure} | {} | {before} |\n", figure.what, figure.wanted)
        };
        let rows: String = measured.iter().map(row).collect();
        format!(
            "# Performance\n\nMeasured by `cargo xtask bench all`, which writes this page. A ratio (x) is to a peer in the same run; \
             bare times and sizes are of this machine.\n\nCommit {commit}, {machine}.\n\n\
             | what | now | wanted | before |\n|---|---|---|---|\n{rows}"
        )
    }
}

fn table_path() -> PathBuf {
    repository_root().join("docs/performance.md")
}

/// Processor, number of cores and kernel.
fn machine() -> String {
    let processors = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = processors.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or("unknown processor");
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let cores = if cores == 1 { "1 core".to_owned() } else { format!("{cores} cores") };
    format!("{}, {cores}, Linux {}", model.trim_start_matches(['\t', ' ', ':']), kernel.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(what: &str, value: f64) -> Figure {
        Figure { what: what.into(), value, unit: "x".into(), wanted: "at most 8".into() }
    }

    #[test]
    fn a_line_with_a_limit_is_a_figure() {
        let line = "a 4 KiB read ÷ std::fs::read: 11.7 x   (wanted: at most 8)";
        assert_eq!(Figure::read(line), Some(figure("a 4 KiB read ÷ std::fs::read", 11.7)));
        for other in ["medians of 200 rounds: gate 35.4µs", "find  5.9 %", "read: 3 x"] {
            assert_eq!(Figure::read(other), None, "{other}");
        }
    }

    #[test]
    fn a_table_is_read_back_and_shows_what_was_before() {
        let first = KeptFigures(Vec::new()).table(&[figure("read", 11.7)], "abc", "a machine");
        assert!(first.contains("| read | 11.7 x | at most 8 | – |"), "{first}");
        let kept = KeptFigures(first.lines().filter_map(Figure::read_row).collect());
        let second = kept.table(&[figure("read", 7.5)], "def", "a machine");
        assert!(second.contains("| read | 7.5 x | at most 8 | 11.7 x |"), "{second}");
    }
}
