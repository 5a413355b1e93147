//! A small JSON file of the state directory that is always rewritten completely, under a lock. A repository could contain a
//! forged one, which would be taken for Toolgate's own. So with a key, only a file with a valid signature is read.

use std::io::Read;

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolgate_contract::{Durability, ErrorCode, NoteUpdate, ToolError, counted};

use crate::directory::{DirectoryHandle, FileLock};
use crate::{JournalError, SigningKey, hex};

/// The largest size of such a file, in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// Held while a file of the directory is rewritten.
const LOCK: &str = "notes.lock";

/// One such file.
pub(crate) struct SignedFile<'a> {
    pub(crate) directory: &'a DirectoryHandle,
    /// Its name without `.json`.
    pub(crate) name: &'a str,
    /// Whose it is. The signature covers this, so that the file of one session isn't valid in another.
    pub(crate) owner: &'a str,
    /// What it holds, in words.
    pub(crate) content: &'a str,
    pub(crate) key: Option<&'a SigningKey>,
    pub(crate) durability: Durability,
}

#[derive(Serialize, Deserialize)]
struct SignedValue {
    notes: Value,
    #[serde(rename = "seal", skip_serializing_if = "Option::is_none", default)]
    signature: Option<String>,
}

impl SignedFile<'_> {
    /// Its value; none when nothing was written yet.
    pub(crate) fn read(&self) -> Result<Option<Value>, ToolError> {
        let Some(file) = self.directory.existing(&self.file_name())? else { return Ok(None) };
        let mut bytes = Vec::new();
        file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(|error| self.unreadable(&error))?;
        let file: SignedValue = serde_json::from_slice(&bytes).map_err(|fault| self.unreadable(&fault))?;
        match self.has_valid_signature(&file) {
            true => Ok(Some(file.notes)),
            false => Err(self.invalid_signature()),
        }
    }

    /// Replaces its value. The lock excludes other changes in between.
    pub(crate) fn rewrite(&self, change: &mut NoteUpdate<'_>) -> Result<(), ToolError> {
        let lock = self.directory.file(LOCK, OFlags::RDWR | OFlags::CREATE)?;
        let locked = FileLock::exclusive(&lock);
        let _lock = locked.map_err(|error| self.directory.error("couldn't be locked", LOCK, error))?;
        let notes = change(self.read()?)?;
        let sign = |key: &SigningKey| hex::string(&key.sign(&self.signed_bytes(&notes.to_string())));
        let signature = self.key.map(sign);
        let bytes = serde_json::to_vec(&SignedValue { notes, signature }).map_err(JournalError::Encode)?;
        if bytes.len() as u64 > MAX_BYTES {
            let message =
                format!("That would make {} larger than the limit of {}.", self.content, counted(MAX_BYTES, "byte"));
            return Err(ToolError::new(ErrorCode::LimitReached, message)
                .with_hint("Remove or shorten what is no longer needed, then try again."));
        }
        Ok(self.directory.put(&self.file_name(), &bytes, self.durability)?)
    }

    fn file_name(&self) -> String {
        format!("{}.json", self.name)
    }

    /// Whether the signature is valid. Without a key this can't be checked, and the file is accepted.
    fn has_valid_signature(&self, file: &SignedValue) -> bool {
        let Some(key) = self.key else { return true };
        let signature = file.signature.as_deref().and_then(|signature| hex::decode(signature.as_bytes()));
        signature.is_some_and(|signature| key.verifies(&self.signed_bytes(&file.notes.to_string()), &signature))
    }

    fn signed_bytes<'b>(&'b self, value: &'b str) -> [&'b [u8]; 4] {
        [self.name.as_bytes(), b" of ", self.owner.as_bytes(), value.as_bytes()]
    }

    fn invalid_signature(&self) -> ToolError {
        let path = self.directory.path().join(self.file_name());
        let message =
            format!("The stored file of {} has no valid signature of this user, so it isn't read.", self.content);
        ToolError::new(ErrorCode::IoError, message)
            .with_hint(format!("Ask the person to look at `{}`, and to remove it.", path.display()))
    }

    fn unreadable(&self, fault: &dyn std::fmt::Display) -> ToolError {
        ToolError::new(ErrorCode::IoError, format!("The stored file of {} can't be read: {fault}.", self.content))
            .with_hint("Ask the person to look at the workspace's `.toolgate` directory.")
    }
}
