//! Which workspaces the user trusts. A workspace's own file comes from whoever wrote the repository, so trust is bound
//! to the exact content of that file: when it changes, it has to be given again.
#![allow(clippy::disallowed_methods, reason = "reads and writes the user's own state, not a workspace")]

use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use toolgate_contract::sha256;

/// Every workspace that was trusted, with the hash of the policy file that was looked at.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
struct TrustedWorkspaces(BTreeMap<PathBuf, String>);

/// Whether this very text was trusted for this workspace.
pub(crate) fn is_trusted(file: &Path, workspace: &Path, policy: &str) -> bool {
    read(file).is_ok_and(|trusted| trusted.0.get(workspace) == Some(&sha256(policy)))
}

/// Trusts this very text for this workspace.
pub(crate) fn trust(file: &Path, workspace: &Path, policy: &str) -> Result<()> {
    change(file, |trusted| drop(trusted.0.insert(workspace.to_owned(), sha256(policy))))
}

/// Takes trust back; says whether there was any.
pub(crate) fn revoke(file: &Path, workspace: &Path) -> Result<bool> {
    let mut was_trusted = false;
    change(file, |trusted| was_trusted = trusted.0.remove(workspace).is_some())?;
    Ok(was_trusted)
}

fn read(file: &Path) -> Result<TrustedWorkspaces> {
    match std::fs::read(file) {
        Ok(bytes) => serde_json::from_slice(&bytes).with_context(|| {
            format!("{} can't be read as JSON. Mend it, or remove it to trust nothing.", file.display())
        }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(TrustedWorkspaces::default()),
        Err(error) => Err(error).with_context(|| format!("{} can't be read", file.display())),
    }
}

fn change(file: &Path, change: impl FnOnce(&mut TrustedWorkspaces)) -> Result<()> {
    let mut trusted = read(file)?;
    change(&mut trusted);
    replace(file, &serde_json::to_vec_pretty(&trusted)?)
}

/// Writes a private file of the user's whole or not at all.
pub(crate) fn replace(file: &Path, content: &[u8]) -> Result<()> {
    let directory = file.parent().context("a file has a directory")?;
    std::fs::create_dir_all(directory).with_context(|| format!("{} can't be created", directory.display()))?;
    let temporary = file.with_extension(format!("new-{}", std::process::id()));
    let written = std::fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&temporary)
        .and_then(|mut new| new.write_all(content).and_then(|()| new.sync_all()))
        .and_then(|()| std::fs::rename(&temporary, file));
    written.with_context(|| format!("{} can't be written", file.display()))
}
