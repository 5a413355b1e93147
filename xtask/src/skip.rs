//! What was left out of a run: collected from the tests and the steps, counted and listed at the end, and refused in CI
//! unless `.config/allowed-skips.toml` has the reason.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::command_line::{repository_root, target_directory};

/// The variable that tells tests where to record skips; the testkit reads it.
pub(crate) const SKIPS_FILE: &str = "TOOLGATE_SKIPS";

/// The keys that CI accepts, relative to the repository.
const ALLOWED: &str = ".config/allowed-skips.toml";

/// A test, or a part of a step, that can't run here.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SkippedTest {
    /// What is missing, as in the list of allowed skips.
    key: String,
    /// The test or the step.
    name: String,
    reason: String,
}

impl SkippedTest {
    pub(crate) fn new(key: &str, name: &str, reason: &str) -> Self {
        Self { key: key.to_owned(), name: name.to_owned(), reason: reason.to_owned() }
    }
}

/// A fresh file for the tests to record skips in.
pub(crate) fn fresh_record() -> Result<PathBuf> {
    let path = target_directory().join("skipped-tests");
    std::fs::write(&path, "").with_context(|| format!("{} can't be written", path.display()))?;
    Ok(path)
}

/// Reads what the tests recorded, each skip once.
pub(crate) fn read_record(path: &Path) -> Result<Vec<SkippedTest>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("{} can't be read", path.display()))?;
    let mut skips = text.lines().map(recorded_line).collect::<Result<Vec<_>>>()?;
    skips.sort();
    skips.dedup();
    Ok(skips)
}

fn recorded_line(line: &str) -> Result<SkippedTest> {
    match line.splitn(3, '\t').collect::<Vec<_>>()[..] {
        [key, name, reason] => Ok(SkippedTest::new(key, name, reason)),
        _ => bail!("`{line}` is no record of a skip"),
    }
}

/// The list for the end of a run: how many in all, and for each key the reason and the tests.
pub(crate) fn listed(skips: &[SkippedTest]) -> String {
    let mut list = format!("== skipped: {} ==\n", skips.len());
    for (key, names) in by_key(skips) {
        let reason = skips.iter().find(|skip| skip.key == key).map_or("", |skip| &skip.reason);
        list.push_str(&format!("{key}: {reason}\n"));
        names.iter().for_each(|name| list.push_str(&format!("  {name}\n")));
    }
    list
}

fn by_key(skips: &[SkippedTest]) -> BTreeMap<&str, Vec<&str>> {
    let mut keys = BTreeMap::<&str, Vec<&str>>::new();
    skips.iter().for_each(|skip| keys.entry(&skip.key).or_default().push(&skip.name));
    keys
}

/// Fails if something was left out in CI that the committed list doesn't allow.
pub(crate) fn check(skips: &[SkippedTest]) -> Result<()> {
    if std::env::var_os("CI").is_none_or(|value| value.is_empty() || value == "false") {
        return Ok(());
    }
    let text = std::fs::read_to_string(repository_root().join(ALLOWED)).context(ALLOWED)?;
    refuse_unlisted(skips, &allowed_keys(&text)?)
}

fn refuse_unlisted(skips: &[SkippedTest], allowed: &BTreeMap<&str, &str>) -> Result<()> {
    let unlisted: Vec<&str> = by_key(skips).into_keys().filter(|key| !allowed.contains_key(key)).collect();
    if !unlisted.is_empty() {
        bail!("CI may not skip {}: make it run, or list it in {ALLOWED} with a reason", unlisted.join(", "));
    }
    Ok(())
}

/// The keys and their reasons; every line is `key = "reason"`, a comment or empty.
fn allowed_keys(text: &str) -> Result<BTreeMap<&str, &str>> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| allowed_key(line).with_context(|| format!("{ALLOWED}: `{line}` isn't: key = \"reason\"")))
        .collect()
}

fn allowed_key(line: &str) -> Option<(&str, &str)> {
    let (key, reason) = line.split_once(" = ")?;
    let reason = reason.strip_prefix('"')?.strip_suffix('"')?;
    (!reason.is_empty()).then_some((key, reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skips() -> Vec<SkippedTest> {
        let of = |key, name| SkippedTest::new(key, name, &format!("there is {}", key.replace('-', " ")));
        vec![of("no-bwrap", "a::b"), of("no-bwrap", "a::c"), of("no-database", "deny")]
    }

    #[test]
    fn skips_are_counted_and_listed_by_key() {
        let expected = "\
== skipped: 3 ==
no-bwrap: there is no bwrap
  a::b
  a::c
no-database: there is no database
  deny
";
        assert_eq!(listed(&skips()), expected);
        assert_eq!(listed(&[]), "== skipped: 0 ==\n");
    }

    #[test]
    fn what_the_list_does_not_name_is_refused() {
        let list = "# why\n\nno-bwrap = \"it isn't packaged\"\n";
        let refused = refuse_unlisted(&skips(), &allowed_keys(list).unwrap()).unwrap_err().to_string();
        assert!(refused.contains("may not skip no-database:"), "{refused}");
        refuse_unlisted(&skips()[..2], &allowed_keys(list).unwrap()).unwrap();
        for bad in ["no-bwrap", "no-bwrap = \"\"", "no-bwrap = true"] {
            assert!(allowed_keys(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_committed_list_can_be_read() {
        let text = std::fs::read_to_string(repository_root().join(ALLOWED)).unwrap();
        assert!(!allowed_keys(&text).unwrap().is_empty());
    }

    #[test]
    fn a_record_is_read_as_the_testkit_writes_it_and_each_skip_once() {
        let path = std::env::temp_dir().join(format!("skips-{}", std::process::id()));
        std::fs::write(&path, "no-bwrap\ta::b\tthere is no bwrap\nno-bwrap\ta::b\tthere is no bwrap\n").unwrap();
        assert_eq!(read_record(&path).unwrap(), skips()[..1]);
        std::fs::write(&path, "half a line").unwrap();
        assert!(read_record(&path).is_err());
        std::fs::remove_file(&path).unwrap();
    }
}
