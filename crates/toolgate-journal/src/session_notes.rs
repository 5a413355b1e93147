//! The agent's own notes: one small JSON file for each kind, in the session's directory or, for notes that outlive
//! sessions, in the state directory. A file is always rewritten completely, under a lock. A repository could contain
//! forged notes that an agent would take for its own memory. So with a key, only notes with a valid signature are read.

use std::fs::File;
use std::io::Read;
use std::sync::Arc;

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolgate_contract::{Durability, ErrorCode, NoteKind, NoteUpdate, ToolError};

use crate::directory::{DirectoryHandle, FileLock};
use crate::{JournalError, SigningKey, hex};

/// The largest size of a notes file, in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// The notes of one session, and those that all sessions share.
pub struct SessionNotes {
    session: DirectoryHandle,
    shared: Arc<DirectoryHandle>,
    id: String,
    key: Option<SigningKey>,
    durability: Durability,
}

#[derive(Serialize, Deserialize)]
struct NotesFile {
    notes: Value,
    #[serde(rename = "seal", skip_serializing_if = "Option::is_none", default)]
    signature: Option<String>,
}

impl SessionNotes {
    pub(crate) fn new(
        session: DirectoryHandle,
        shared: Arc<DirectoryHandle>,
        id: &str,
        key: Option<SigningKey>,
        durability: Durability,
    ) -> Self {
        Self { session, shared, id: id.to_owned(), key, durability }
    }

    /// Reads one kind of notes; none when nothing was written yet.
    pub fn read(&self, kind: NoteKind) -> Result<Option<Value>, ToolError> {
        let Some(file) = self.directory(kind).existing(&name(kind))? else { return Ok(None) };
        let mut bytes = Vec::new();
        file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(|error| unreadable(kind, &error))?;
        let file: NotesFile = serde_json::from_slice(&bytes).map_err(|fault| unreadable(kind, &fault))?;
        match self.has_valid_signature(kind, &file) {
            true => Ok(Some(file.notes)),
            false => Err(self.invalid_signature(kind)),
        }
    }

    /// Whether the signature is valid. Without a key this can't be checked, and the notes are accepted.
    fn has_valid_signature(&self, kind: NoteKind, file: &NotesFile) -> bool {
        let Some(key) = &self.key else { return true };
        let signature = file.signature.as_deref().and_then(|signature| hex::decode(signature.as_bytes()));
        signature.is_some_and(|signature| key.verifies(&self.signed_bytes(kind, &file.notes.to_string()), &signature))
    }

    /// Rewrites one kind of notes. The lock excludes other changes in between.
    pub fn rewrite(&self, kind: NoteKind, change: &mut NoteUpdate<'_>) -> Result<(), ToolError> {
        let directory = self.directory(kind);
        let file = directory.file("notes.lock", OFlags::RDWR | OFlags::CREATE)?;
        let _lock = lock(&file, directory)?;
        let notes = change(self.read(kind)?)?;
        let signature =
            self.key.as_ref().map(|key| hex::string(&key.sign(&self.signed_bytes(kind, &notes.to_string()))));
        let bytes = serde_json::to_vec(&NotesFile { notes, signature }).map_err(JournalError::Encode)?;
        if bytes.len() as u64 > MAX_BYTES {
            let message = format!("That would make {kind} larger than the limit of {MAX_BYTES} bytes.");
            return Err(ToolError::new(ErrorCode::LimitReached, message)
                .with_hint("Remove or shorten what is no longer needed, then try again."));
        }
        Ok(directory.put(&name(kind), &bytes, self.durability)?)
    }

    fn directory(&self, kind: NoteKind) -> &DirectoryHandle {
        match kind {
            NoteKind::Todo | NoteKind::Plan => &self.session,
            NoteKind::Memory => &self.shared,
        }
    }

    /// The bytes that the signature covers. They include the owner, so that the notes of one session aren't valid in
    /// another.
    fn signed_bytes<'a>(&'a self, kind: NoteKind, notes: &'a str) -> [&'a [u8]; 4] {
        let of = match kind {
            NoteKind::Todo | NoteKind::Plan => self.id.as_bytes(),
            NoteKind::Memory => b"workspace",
        };
        [kind.as_str().as_bytes(), b" of ", of, notes.as_bytes()]
    }

    fn invalid_signature(&self, kind: NoteKind) -> ToolError {
        let path = self.directory(kind).path().join(name(kind));
        let message = format!("The stored file of {kind} has no valid signature of this user, so it isn't read.");
        ToolError::new(ErrorCode::IoError, message)
            .with_hint(format!("Ask the person to look at `{}`, and to remove it.", path.display()))
    }
}

fn name(kind: NoteKind) -> String {
    format!("{}.json", kind.as_str())
}

fn lock<'a>(file: &'a File, directory: &DirectoryHandle) -> Result<FileLock<'a>, JournalError> {
    FileLock::exclusive(file).map_err(|error| directory.error("couldn't be locked", "notes.lock", error))
}

fn unreadable(kind: NoteKind, fault: &dyn std::fmt::Display) -> ToolError {
    ToolError::new(ErrorCode::IoError, format!("The stored file of {kind} can't be read: {fault}."))
        .with_hint("Ask the person to look at the workspace's `.toolgate` directory.")
}
