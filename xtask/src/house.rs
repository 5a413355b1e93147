//! `cargo xtask house`: measures how easy the code is to find one's way in. It prints a row per crate and then the
//! numbers that tell good and bad apart: shared type names, the longest function, the largest file, files without a
//! module doc, and dependencies against the layout. It reads and counts; nothing it finds makes it fail.

mod crates;
mod source;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::Args;

use crate::command_line::repository_root;
use crates::WorkspaceCrate;
use source::{FunctionSpan, SourceFile};

/// How many of the worst are named in a line.
const MOST_NAMED: usize = 5;

#[derive(Args)]
pub(crate) struct HouseOptions {
    /// Another checkout of this repository to measure, such as one from before a change
    checkout: Option<PathBuf>,
}

/// Measures this repository, or the other checkout, and prints the report.
pub(crate) fn run(options: &HouseOptions) -> Result<()> {
    print!("{}", report(options.checkout.as_deref().unwrap_or(repository_root()))?);
    Ok(())
}

/// The whole report on the workspace in `root`.
fn report(root: &Path) -> Result<String> {
    let crates = crates::read(root)?;
    if crates.is_empty() {
        bail!("{} has no crates", root.join("crates").display());
    }
    let names = TypeNames::count(crates.iter().flat_map(|one| &one.files));
    let mut report = crate_table(&crates);
    for (measure, value) in [
        ("types", names.total().to_string()),
        ("types that share a name", names.describe_shared()),
        ("types per 1,000 lines", format!("{:.1}", names.per_thousand_lines())),
        ("longest functions", longest_functions(&crates)),
        ("largest files", largest_files(&crates)),
        ("files without a module doc", without_module_doc(&crates)),
        ("dependencies that point the wrong way", wrong_dependencies(&crates)),
    ] {
        writeln!(report, "{measure}: {value}")?;
    }
    Ok(report)
}

fn crate_table(crates: &[WorkspaceCrate]) -> String {
    let mut table =
        format!("{:<10} {:>5} {:>6} {:>6} {:>7}  depends on\n", "crate", "files", "lines", "median", "largest");
    for one in crates {
        let sizes = one.sorted_sizes();
        let (lines, median) = (sizes.iter().sum::<usize>(), median(&sizes));
        let (files, largest) = (sizes.len(), sizes.last().unwrap_or(&0));
        let dependencies = list_or_none(one.dependencies.iter().cloned());
        let row = format!("{:<10} {files:>5} {lines:>6} {median:>6} {largest:>7}  {dependencies}\n", one.name);
        table.push_str(&row);
    }
    table.push('\n');
    table
}

/// The middle one, or half-way between the two in the middle.
fn median(sorted: &[usize]) -> usize {
    match sorted.len() {
        0 => 0,
        length if length % 2 == 1 => sorted[length / 2],
        length => usize::midpoint(sorted[length / 2 - 1], sorted[length / 2]),
    }
}

/// How often each type name is defined, in how many lines.
#[derive(Default)]
struct TypeNames<'a> {
    definitions: BTreeMap<&'a str, usize>,
    lines: usize,
}

impl<'a> TypeNames<'a> {
    fn count(files: impl IntoIterator<Item = &'a SourceFile>) -> Self {
        let mut names = Self::default();
        for file in files.into_iter().filter(|file| !file.is_tests()) {
            let text = file.without_tests();
            names.lines += text.matches('\n').count();
            source::type_names(text).for_each(|name| *names.definitions.entry(name).or_default() += 1);
        }
        names
    }

    fn total(&self) -> usize {
        self.definitions.values().sum()
    }

    /// Names with more than one definition, the most shared first.
    fn shared(&self) -> Vec<(&'a str, usize)> {
        let mut shared: Vec<_> =
            self.definitions.iter().map(|(name, times)| (*name, *times)).filter(|(_, times)| *times > 1).collect();
        shared.sort_by_key(|(_, times)| std::cmp::Reverse(*times));
        shared
    }

    fn describe_shared(&self) -> String {
        let shared = self.shared();
        let types: usize = shared.iter().map(|(_, times)| times).sum();
        let percent = 100 * types / self.total().max(1);
        let worst = shared.iter().take(MOST_NAMED).map(|(name, times)| format!("{name} x{times}"));
        format!("{types}, {percent} % ({})", list_or_none(worst))
    }

    #[allow(clippy::cast_precision_loss, reason = "a tree of source code has no 2^52 lines")]
    fn per_thousand_lines(&self) -> f64 {
        1000.0 * self.total() as f64 / self.lines.max(1) as f64
    }
}

fn longest_functions(crates: &[WorkspaceCrate]) -> String {
    let in_file = |file: &SourceFile| -> Vec<(usize, String)> {
        let path = file.path.display().to_string();
        let named = |function: FunctionSpan| {
            let FunctionSpan { name, first_line, lines } = function;
            (lines, format!("{path}:{first_line} {name} ({lines} lines)"))
        };
        source::functions(&file.text).into_iter().map(named).collect()
    };
    worst(crates.iter().flat_map(|one| &one.files).flat_map(in_file))
}

fn largest_files(crates: &[WorkspaceCrate]) -> String {
    let named = |file: &SourceFile| (file.lines(), format!("{} ({} lines)", file.path.display(), file.lines()));
    worst(crates.iter().flat_map(|one| &one.files).map(named))
}

fn worst(measured: impl Iterator<Item = (usize, String)>) -> String {
    let mut measured: Vec<_> = measured.collect();
    measured.sort_by(|left, right| right.0.cmp(&left.0).then_with(|| left.1.cmp(&right.1)));
    list_or_none(measured.into_iter().take(MOST_NAMED).map(|(_, name)| name))
}

fn without_module_doc(crates: &[WorkspaceCrate]) -> String {
    let files = crates.iter().flat_map(|one| &one.files).filter(|file| !file.has_module_doc());
    let paths: Vec<String> = files.map(|file| file.path.display().to_string()).collect();
    format!("{} ({})", paths.len(), list_or_none(paths.into_iter().take(MOST_NAMED)))
}

fn wrong_dependencies(crates: &[WorkspaceCrate]) -> String {
    let wrong = crates.iter().flat_map(|one| one.wrong_dependencies().map(move |to| format!("{} -> {to}", one.name)));
    list_or_none(wrong)
}

fn list_or_none(words: impl Iterator<Item = String>) -> String {
    let words: Vec<String> = words.collect();
    if words.is_empty() { "none".to_owned() } else { words.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> SourceFile {
        SourceFile { path: path.into(), text: text.into() }
    }

    #[test]
    fn a_type_counts_as_shared_each_time_its_name_is_defined_again() {
        let files = [
            file("a.rs", "pub struct Walk;\nenum Only {}\n#[cfg(test)]\nmod tests {\n    struct Walk;\n}\n"),
            file("b.rs", "pub(crate) trait Walk {\n    type Output;\n    type Entry;\n}\n"),
            file("tests.rs", "struct Walk;\n"),
        ];
        let names = TypeNames::count(&files);
        assert_eq!(names.total(), 4, "Walk twice, Only and Entry");
        assert_eq!(names.describe_shared(), "2, 50 % (Walk x2)");
        assert_eq!(names.lines, 6, "tests aside");
        assert_eq!(TypeNames::count(&[]).describe_shared(), "0, 0 % (none)");
    }

    #[test]
    fn the_median_is_the_middle() {
        for (sizes, expected) in [(&[][..], 0), (&[3], 3), (&[1, 4], 2), (&[1, 5, 90], 5)] {
            assert_eq!(median(sizes), expected);
        }
    }

    #[test]
    fn this_repository_can_be_measured() {
        let report = report(repository_root()).unwrap();
        for part in ["contract ", "types per 1,000 lines: ", "longest functions: crates/", "largest files: crates/"] {
            assert!(report.contains(part), "{part}: {report}");
        }
    }
}
