//! The grants that apply now. They are kept in one file of the user's state directory, outside of all workspaces: neither a
//! repository nor a confined command can add one, or bring back one that was revoked. Each names its workspace by path
//! and by directory, so a grant reaches neither a copy, nor a workspace that was moved, nor another directory that took
//! its place.

use std::fs::DirBuilder;
use std::io::Read;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use rustix::fs::OFlags;
use toolgate_contract::Durability;

use crate::directory::{DirectoryHandle, FileLock};
use crate::grant::GrantSigner;
use crate::{Grant, JournalError, LoadedGrants, Revocation, SigningKey, WorkspaceIdentity};

const NAME: &str = "grants.jsonl";

/// Held while the file is rewritten.
const LOCK: &str = "grants.lock";

/// The grants of one workspace, among those of the user.
pub struct GrantStore {
    directory: PathBuf,
    signer: GrantSigner,
    workspace: WorkspaceIdentity,
    durability: Durability,
}

impl GrantStore {
    pub(crate) fn new(
        directory: &Path,
        workspace: WorkspaceIdentity,
        key: SigningKey,
        durability: Durability,
    ) -> Result<Self, JournalError> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)
            .map_err(JournalError::io(format!("`{}` couldn't be created", directory.display())))?;
        let signer = GrantSigner { holds_for: "user".into(), key: Some(key) };
        Ok(Self { directory: directory.to_owned(), signer, workspace, durability })
    }

    /// The workspace whose grants these are.
    pub fn workspace(&self) -> &WorkspaceIdentity {
        &self.workspace
    }

    /// Adds a grant.
    pub fn add(&self, grant: &Grant, now: Timestamp) -> Result<(), JournalError> {
        self.rewrite(|grants| {
            grants.retain(|grant| !grant.has_expired(now));
            grants.push(grant.clone());
        })
    }

    /// The grants of this workspace that apply now, oldest first.
    pub fn grants(&self, now: Timestamp) -> Result<LoadedGrants, JournalError> {
        let mut loaded = self.everywhere(now)?;
        loaded.grants.retain(|grant| self.is_here(grant));
        Ok(loaded)
    }

    /// The grants of all workspaces that apply now, oldest first.
    pub fn everywhere(&self, now: Timestamp) -> Result<LoadedGrants, JournalError> {
        let mut loaded = self.load()?;
        loaded.grants.retain(|grant| grant.is_live(now));
        Ok(loaded)
    }

    /// The grants of all workspaces that were revoked and would still apply otherwise, oldest first.
    pub fn revoked(&self, now: Timestamp) -> Result<Vec<Grant>, JournalError> {
        let mut grants = self.load()?.grants;
        grants.retain(|grant| grant.revoked.is_some() && !grant.has_expired(now));
        Ok(grants)
    }

    /// Revokes the grants that apply and for which this is true, of any workspace, and returns them. Until they would
    /// have expired, the file says who revoked them.
    pub fn revoke(
        &self,
        revocation: &Revocation,
        is_chosen: impl Fn(&Grant) -> bool,
    ) -> Result<Vec<Grant>, JournalError> {
        let mut revoked = Vec::new();
        self.rewrite(|grants| {
            for grant in grants.iter_mut().filter(|grant| grant.is_live(revocation.at) && is_chosen(grant)) {
                grant.revoked = Some(revocation.clone());
                revoked.push(grant.clone());
            }
        })?;
        Ok(revoked)
    }

    /// Whether a grant was given in this workspace.
    pub fn is_here(&self, grant: &Grant) -> bool {
        grant.workspace == self.workspace
    }

    /// Removes the grants for which this is true, of any workspace, and returns them.
    pub fn remove(&self, is_gone: impl Fn(&Grant) -> bool) -> Result<Vec<Grant>, JournalError> {
        let mut removed = Vec::new();
        if self.load()?.grants.iter().any(&is_gone) {
            self.rewrite(|grants| removed = grants.extract_if(.., |grant| is_gone(grant)).collect())?;
        }
        Ok(removed)
    }

    fn load(&self) -> Result<LoadedGrants, JournalError> {
        let directory = DirectoryHandle::at(&self.directory)?;
        let Some(mut file) = directory.existing(NAME)? else { return Ok(LoadedGrants::default()) };
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(|error| directory.error("couldn't be read", NAME, error))?;
        Ok(self.signer.read(&bytes, &self.directory.join(NAME)))
    }

    /// Changes the file in one atomic step. Lines that grant nothing are left out.
    fn rewrite(&self, change: impl FnOnce(&mut Vec<Grant>)) -> Result<(), JournalError> {
        let directory = DirectoryHandle::at(&self.directory)?;
        let lock = directory.file(LOCK, OFlags::RDWR | OFlags::CREATE)?;
        let _lock = FileLock::exclusive(&lock).map_err(|error| directory.error("couldn't be locked", LOCK, error))?;
        let mut grants = self.load()?.grants;
        change(&mut grants);
        let lines: Result<Vec<Vec<u8>>, JournalError> = grants.iter().map(|grant| self.signer.line(grant)).collect();
        directory.put(NAME, &lines?.concat(), self.durability)
    }
}

impl Grant {
    /// Whether it applies: it has neither expired nor been revoked.
    pub fn is_live(&self, now: Timestamp) -> bool {
        self.revoked.is_none() && !self.has_expired(now)
    }

    fn has_expired(&self, now: Timestamp) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
    }
}
