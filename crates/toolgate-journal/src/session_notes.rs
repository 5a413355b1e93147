//! The agent's own books: one small JSON file each, in the session's directory or, for what outlives sessions, in the state
//! directory. A book is rewritten whole under a lock. A repository could bring books of its own, and with them words that
//! an agent would take for its memory; with a key, a book counts only if its seal shows that it was written here.

use std::fs::File;
use std::io::Read;
use std::sync::Arc;

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolgate_contract::{Durability, ErrorCode, NoteKind, NoteUpdate, ToolError};

use crate::directory::{DirectoryHandle, FileLock};
use crate::{JournalError, SigningKey, hex};

/// The largest book, in bytes.
const MOST: u64 = 1 << 20;

/// The books of one session, and those that it shares with others.
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
    #[serde(skip_serializing_if = "Option::is_none", default)]
    seal: Option<String>,
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

    /// What a book holds; none when nothing was written yet.
    pub fn read(&self, book: NoteKind) -> Result<Option<Value>, ToolError> {
        let Some(file) = self.directory(book).existing(&name(book))? else { return Ok(None) };
        let mut bytes = Vec::new();
        file.take(MOST + 1).read_to_end(&mut bytes).map_err(|error| unreadable(book, &error))?;
        let page: NotesFile = serde_json::from_slice(&bytes).map_err(|fault| unreadable(book, &fault))?;
        match self.was_written_here(book, &page) {
            true => Ok(Some(page.notes)),
            false => Err(self.foreign(book)),
        }
    }

    /// Without a key nobody can tell.
    fn was_written_here(&self, book: NoteKind, page: &NotesFile) -> bool {
        let Some(key) = &self.key else { return true };
        let seal = page.seal.as_deref().and_then(|seal| hex::decode(seal.as_bytes()));
        seal.is_some_and(|seal| key.holds(&self.sealed(book, &page.notes.to_string()), &seal))
    }

    /// Rewrites a book, and no other change comes in between.
    pub fn rewrite(&self, book: NoteKind, change: &mut NoteUpdate<'_>) -> Result<(), ToolError> {
        let directory = self.directory(book);
        let file = directory.file("notes.lock", OFlags::RDWR | OFlags::CREATE)?;
        let _lock = lock(&file, directory)?;
        let notes = change(self.read(book)?)?;
        let seal = self.key.as_ref().map(|key| hex::string(&key.seal(&self.sealed(book, &notes.to_string()))));
        let bytes = serde_json::to_vec(&NotesFile { notes, seal }).map_err(JournalError::Encode)?;
        if bytes.len() as u64 > MOST {
            let message = format!("There is no room for that in {book}: it may have {MOST} bytes.");
            return Err(ToolError::new(ErrorCode::LimitReached, message)
                .with_hint("Remove or shorten what is no longer needed, then try again."));
        }
        Ok(directory.put(&name(book), &bytes, self.durability)?)
    }

    fn directory(&self, book: NoteKind) -> &DirectoryHandle {
        match book {
            NoteKind::Todo | NoteKind::Plan => &self.session,
            NoteKind::Memory => &self.shared,
        }
    }

    /// Whose book it is belongs to the seal, so that none can be carried elsewhere.
    fn sealed<'a>(&'a self, book: NoteKind, notes: &'a str) -> [&'a [u8]; 4] {
        let of = match book {
            NoteKind::Todo | NoteKind::Plan => self.id.as_bytes(),
            NoteKind::Memory => b"workspace",
        };
        [book.as_str().as_bytes(), b" of ", of, notes.as_bytes()]
    }

    fn foreign(&self, book: NoteKind) -> ToolError {
        let path = self.directory(book).path().join(name(book));
        let message = format!("What is kept of {book} wasn't written here, so it isn't read.");
        ToolError::new(ErrorCode::IoError, message)
            .with_hint(format!("Ask the person to look at `{}`, and to remove it.", path.display()))
    }
}

fn name(book: NoteKind) -> String {
    format!("{}.json", book.as_str())
}

fn lock<'a>(file: &'a File, directory: &DirectoryHandle) -> Result<FileLock<'a>, JournalError> {
    FileLock::exclusive(file).map_err(|error| directory.error("couldn't be locked", "notes.lock", error))
}

fn unreadable(book: NoteKind, fault: &dyn std::fmt::Display) -> ToolError {
    ToolError::new(ErrorCode::IoError, format!("What is kept of {book} can't be read: {fault}."))
        .with_hint("Ask the person to look at the workspace's `.toolgate` directory.")
}
