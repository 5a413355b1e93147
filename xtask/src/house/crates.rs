//! The crates of the workspace: their files, what they depend on, and which of that the layout allows.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result};

use super::source::SourceFile;

/// What each crate may depend on, from the bottom up. Crates that aren't listed are free: they wire the others together.
const LAYOUT: &[(&str, &[&str])] = &[
    ("contract", &[]),
    ("config", &["contract"]),
    ("policy", &["contract", "config"]),
    ("redact", &["contract"]),
    ("journal", &["contract"]),
    ("changes", &["contract", "journal", "policy", "sandbox"]),
    ("sandbox", &["contract"]),
    ("tools", &["contract"]),
    ("dialects", &["contract"]),
    ("runtime", &["contract", "config", "policy", "redact", "journal", "changes"]),
];

/// The order in which the remaining crates are listed.
const UPPER_CRATES: &[&str] = &["workspace", "mcp", "agent", "console", "cli"];

/// What every crate's name begins with.
const PREFIX: &str = "toolgate-";

pub(super) struct WorkspaceCrate {
    /// Without the prefix.
    pub(super) name: String,
    pub(super) files: Vec<SourceFile>,
    /// Crates of this workspace, without the prefix and without those that only tests use.
    pub(super) dependencies: BTreeSet<String>,
}

impl WorkspaceCrate {
    /// Lines of each file, the smallest first.
    pub(super) fn sorted_sizes(&self) -> Vec<usize> {
        let mut sizes: Vec<usize> = self.files.iter().map(SourceFile::lines).collect();
        sizes.sort_unstable();
        sizes
    }

    /// Dependencies that the layout doesn't allow.
    pub(super) fn wrong_dependencies(&self) -> impl Iterator<Item = &String> {
        let allowed = LAYOUT.iter().find(|(name, _)| *name == self.name).map(|(_, allowed)| *allowed);
        let is_wrong = move |to: &&String| allowed.is_some_and(|allowed| !allowed.contains(&to.as_str()));
        self.dependencies.iter().filter(is_wrong)
    }

    /// Where it stands in the list.
    fn rank(&self) -> (usize, String) {
        let names = LAYOUT.iter().map(|(name, _)| name).chain(UPPER_CRATES);
        let rank = names.into_iter().position(|name| *name == self.name).unwrap_or(usize::MAX);
        (rank, self.name.clone())
    }
}

/// Every crate in `crates/`, from the bottom up.
pub(super) fn read(root: &Path) -> Result<Vec<WorkspaceCrate>> {
    let mut crates = Vec::new();
    for directory in sorted_entries(&root.join("crates"))? {
        let Ok(manifest) = std::fs::read_to_string(directory.join("Cargo.toml")) else { continue };
        let name = directory.file_name().unwrap_or_default().to_string_lossy();
        let name = name.strip_prefix(PREFIX).unwrap_or(&name).to_owned();
        let mut files = Vec::new();
        read_sources(root, &directory.join("src"), &mut files)?;
        crates.push(WorkspaceCrate { name, files, dependencies: dependencies(&manifest) });
    }
    crates.sort_by_key(WorkspaceCrate::rank);
    Ok(crates)
}

fn read_sources(root: &Path, directory: &Path, files: &mut Vec<SourceFile>) -> Result<()> {
    for entry in sorted_entries(directory)? {
        if entry.is_dir() {
            read_sources(root, &entry, files)?;
        } else if entry.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&entry).with_context(|| format!("{} can't be read", entry.display()))?;
            let path = entry.strip_prefix(root).unwrap_or(&entry).to_owned();
            files.push(SourceFile { path, text });
        }
    }
    Ok(())
}

fn sorted_entries(directory: &Path) -> Result<Vec<std::path::PathBuf>> {
    let entries = directory.read_dir().with_context(|| format!("{} can't be listed", directory.display()))?;
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    Ok(paths)
}

/// The workspace's crates that a manifest names as dependencies, those of tests aside.
fn dependencies(manifest: &str) -> BTreeSet<String> {
    let (mut found, mut counts) = (BTreeSet::new(), false);
    for line in manifest.lines().map(str::trim_start) {
        if line.starts_with('[') {
            counts = line.contains("dependencies") && !line.contains("dev-");
        } else if let Some(name) = line.strip_prefix(PREFIX).filter(|_| counts) {
            let end = name.find(|character: char| !character.is_ascii_lowercase() && character != '-');
            found.insert(name[..end.unwrap_or(name.len())].to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &str = "\
[package]
name = \"toolgate-journal\"
toolgate-cli = 'not a dependency'

[dependencies]
toolgate-contract.workspace = true
toolgate-runtime = { workspace = true, features = [\"x\"] }
serde.workspace = true

[target.'cfg(unix)'.dependencies]
toolgate-policy.workspace = true

[dev-dependencies]
toolgate-testkit.workspace = true
";

    #[test]
    fn dependencies_are_read_without_those_of_tests() {
        assert_eq!(dependencies(MANIFEST).into_iter().collect::<Vec<_>>(), ["contract", "policy", "runtime"]);
    }

    #[test]
    fn what_the_layout_forbids_is_wrong_and_what_it_does_not_name_is_free() {
        let of = |name: &str| WorkspaceCrate {
            name: name.to_owned(),
            files: Vec::new(),
            dependencies: dependencies(MANIFEST),
        };
        assert_eq!(of("journal").wrong_dependencies().collect::<Vec<_>>(), ["policy", "runtime"]);
        assert_eq!(of("cli").wrong_dependencies().count(), 0);
    }

    #[test]
    fn crates_are_listed_from_the_bottom_up() {
        let crates = read(crate::command_line::repository_root()).unwrap();
        let at = |name: &str| crates.iter().position(|one| one.name == name).unwrap();
        assert_eq!(at("contract"), 0);
        assert!(at("contract") < at("policy") && at("policy") < at("runtime") && at("runtime") < at("cli"));
        assert!(at("cli") < at("testkit"), "those without a place come last");
    }
}
