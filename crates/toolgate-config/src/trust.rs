//! Which workspaces the user trusts. A workspace's own file comes from whoever wrote the repository, so trust is bound
//! to the exact content of that file: when it changes, it has to be given again.
#![allow(clippy::disallowed_methods, reason = "reads and writes the user's own state, not a workspace")]

use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use toolgate_contract::sha256;

use crate::files::ConfigFileError;

/// Every workspace that was trusted, with the hash of the policy file that was looked at.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
struct TrustedWorkspaces(BTreeMap<PathBuf, String>);

/// Whether this very text was trusted for this workspace.
pub fn is_trusted(file: &Path, workspace: &Path, policy: &str) -> bool {
    read(file).is_ok_and(|trusted| trusted.0.get(workspace) == Some(&sha256(policy)))
}

/// The text that was last trusted for this workspace; none if it isn't trusted, or the text is no longer there.
pub fn last_trusted(file: &Path, workspace: &Path) -> Option<String> {
    let hash = read(file).ok()?.0.remove(workspace)?;
    let text = std::fs::read_to_string(copy_of(file, &hash)).ok()?;
    (sha256(&text) == hash).then_some(text)
}

/// Where the text of this hash is kept, so that a later change can be shown.
fn copy_of(file: &Path, hash: &str) -> PathBuf {
    file.with_file_name("trusted-files").join(hash)
}

/// Trusts this very text for this workspace.
pub fn trust(file: &Path, workspace: &Path, policy: &str) -> Result<(), ConfigFileError> {
    replace(&copy_of(file, &sha256(policy)), policy.as_bytes())?;
    change(file, |trusted| drop(trusted.0.insert(workspace.to_owned(), sha256(policy))))
}

/// Revokes trust; says whether there was any.
pub fn revoke(file: &Path, workspace: &Path) -> Result<bool, ConfigFileError> {
    let mut was_trusted = false;
    change(file, |trusted| was_trusted = trusted.0.remove(workspace).is_some())?;
    Ok(was_trusted)
}

fn read(file: &Path) -> Result<TrustedWorkspaces, ConfigFileError> {
    match std::fs::read(file) {
        Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| ConfigFileError::NotJson(file.to_owned(), error)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(TrustedWorkspaces::default()),
        Err(error) => Err(ConfigFileError::Unreadable(file.to_owned(), error)),
    }
}

fn change(file: &Path, change: impl FnOnce(&mut TrustedWorkspaces)) -> Result<(), ConfigFileError> {
    let mut trusted = read(file)?;
    change(&mut trusted);
    let text = serde_json::to_vec_pretty(&trusted);
    replace(file, &text.map_err(|error| ConfigFileError::Unwritable(file.to_owned(), error.into()))?)
}

/// Writes a private file of the user's whole or not at all.
pub(crate) fn replace(file: &Path, content: &[u8]) -> Result<(), ConfigFileError> {
    if let Some(directory) = file.parent() {
        std::fs::create_dir_all(directory)
            .map_err(|error| ConfigFileError::NoDirectory(directory.to_owned(), error))?;
    }
    let temporary = file.with_extension(format!("new-{}", std::process::id()));
    let written = std::fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&temporary)
        .and_then(|mut new| new.write_all(content).and_then(|()| new.sync_all()))
        .and_then(|()| std::fs::rename(&temporary, file));
    written.map_err(|error| ConfigFileError::Unwritable(file.to_owned(), error))
}
