//! Grants: the approvals that people gave, each with who, when, how far it reaches and until when. Every grant is
//! recorded in the directory of the run it was given in. Whether it still applies is for the [`GrantStore`] to say.
//! Lines are signed, since a repository could have placed forged ones.
//!
//! [`GrantStore`]: crate::GrantStore

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use jiff::Timestamp;
use rustix::fs::OFlags;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolgate_contract::{ApprovalScope, Durability, Effect, schemars};

use crate::directory::{DirectoryHandle, FileLock, append_once};
use crate::{JournalError, RunOptions, SigningKey, hex};

const SIGNATURE: &[u8] = b",\"seal\":\"";
const CLOSING: &[u8] = b"\"}";

/// A remembered answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Grant {
    /// Its id, by which a person revokes it.
    #[serde(default)]
    pub id: String,
    /// The tool it was given for.
    pub tool: String,
    /// What was approved.
    pub effects: Vec<Effect>,
    /// How far it reaches.
    pub scope: ApprovalScope,
    /// The workspace it was given in. It applies nowhere else.
    #[serde(default)]
    pub workspace: WorkspaceIdentity,
    /// Who gave it.
    pub by: String,
    /// When.
    pub at: Timestamp,
    /// When it ends; none if it has no end.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub expires: Option<Timestamp>,
    /// The run in which it was given.
    pub run: String,
    /// The session in which it was given.
    pub session: String,
    /// Whether that session goes on in other programs of the same session name, as that of `toolgate call` does. Other
    /// sessions end with their run, and so do their grants.
    #[serde(default)]
    pub session_continues: bool,
    /// The call for which it was given.
    pub tool_call_id: String,
    /// Who revoked it and when; none while it applies.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub revoked: Option<Revocation>,
}

/// Who revoked a grant, and when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Revocation {
    /// Who revoked it.
    pub by: String,
    /// When.
    #[schemars(with = "String")]
    pub at: Timestamp,
}

/// One workspace: its canonical path, and what tells its directory from another one at the same path.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkspaceIdentity {
    /// The canonical path.
    pub path: String,
    /// Inode and time of birth of the directory.
    pub directory: String,
}

/// Signs lines that hold a grant, and reads them back.
pub(crate) struct GrantSigner {
    /// What the grants apply to; part of the signature, so that a line copied to another file isn't valid there.
    pub(crate) holds_for: String,
    pub(crate) key: Option<SigningKey>,
}

impl GrantSigner {
    /// The line of a grant, with its line break.
    pub(crate) fn line(&self, grant: &Grant) -> Result<Vec<u8>, JournalError> {
        let mut line = serde_json::to_vec(grant).map_err(JournalError::Encode)?;
        if let Some(key) = &self.key {
            let signature = key.sign(&self.signed_bytes(&line));
            line.pop();
            line.extend_from_slice(SIGNATURE);
            line.extend_from_slice(&hex::encode(&signature));
            line.extend_from_slice(CLOSING);
        }
        line.push(b'\n');
        Ok(line)
    }

    /// The grants of a file's lines. A line that can't be parsed, or has no valid signature, is skipped with a warning.
    pub(crate) fn read(&self, bytes: &[u8], file: &std::path::Path) -> LoadedGrants {
        let mut loaded = LoadedGrants::default();
        for (index, line) in bytes.split(|&byte| byte == b'\n').enumerate().filter(|(_, line)| !line.is_empty()) {
            match self.read_line(line) {
                Ok(grant) => loaded.grants.push(grant),
                Err(why) => loaded.warnings.push(format!(
                    "Line {} of `{}` {why}, so it grants nothing.",
                    index + 1,
                    file.display()
                )),
            }
        }
        loaded
    }

    fn read_line(&self, line: &[u8]) -> Result<Grant, &'static str> {
        if let Some(key) = &self.key {
            let (grant, signature) = split_signature(line).ok_or("has no signature")?;
            if !key.verifies(&self.signed_bytes(&grant), &signature) {
                return Err("wasn't signed with this key for this file");
            }
        }
        serde_json::from_slice(line).map_err(|_| "is not a grant")
    }

    /// The bytes that the signature covers. A run id can't contain a colon, so this can't be mistaken for a journal's
    /// head.
    fn signed_bytes<'a>(&'a self, grant: &'a [u8]) -> [&'a [u8]; 4] {
        [b"grant: ", self.holds_for.as_bytes(), b"\n", grant]
    }
}

/// The grants that were given in one run, one a line: a record of what was answered.
pub struct GrantFile {
    directory: Arc<DirectoryHandle>,
    name: &'static str,
    signer: GrantSigner,
    durability: Durability,
}

/// The contents of a grant file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LoadedGrants {
    /// The grants, oldest first.
    pub grants: Vec<Grant>,
    /// One warning for each line that was skipped.
    pub warnings: Vec<String>,
}

impl GrantFile {
    pub(crate) fn new(
        directory: Arc<DirectoryHandle>,
        name: &'static str,
        holds_for: String,
        options: &RunOptions,
    ) -> Self {
        let signer = GrantSigner { holds_for, key: options.key.clone() };
        Self { directory, name, signer, durability: options.durability }
    }

    /// Adds a grant.
    pub fn append(&self, grant: &Grant) -> Result<(), JournalError> {
        let line = self.signer.line(grant)?;
        let file = self.directory.file(self.name, OFlags::RDWR | OFlags::APPEND | OFlags::CREATE)?;
        self.write(&file, line).map_err(|error| self.directory.error("couldn't be written", self.name, error))
    }

    fn write(&self, file: &File, mut line: Vec<u8>) -> io::Result<()> {
        let _lock = FileLock::exclusive(file)?;
        let size = file.metadata()?.len();
        let mut last = [b'\n'];
        if size > 0 {
            file.read_exact_at(&mut last, size - 1)?;
        }
        if last != *b"\n" {
            // A process was killed while writing; its partial line must not swallow this one.
            line.insert(0, b'\n');
        }
        append_once(file, &line, size)?;
        match self.durability {
            Durability::Sync => file.sync_data(),
            Durability::Os => Ok(()),
        }
    }

    /// Reads all grants.
    pub fn load(&self) -> Result<LoadedGrants, JournalError> {
        let Some(mut file) = self.directory.existing(self.name)? else { return Ok(LoadedGrants::default()) };
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(|error| self.directory.error("couldn't be read", self.name, error))?;
        Ok(self.signer.read(&bytes, &self.directory.path().join(self.name)))
    }
}

/// Splits a line into the grant as it was before signing, and the signature.
fn split_signature(line: &[u8]) -> Option<(Vec<u8>, hex::Hash)> {
    let rest = line.strip_suffix(CLOSING)?;
    let (rest, signature) = rest.split_at_checked(rest.len().checked_sub(hex::LENGTH)?)?;
    let mut grant = rest.strip_suffix(SIGNATURE)?.to_vec();
    grant.push(b'}');
    Some((grant, hex::decode(signature)?))
}
