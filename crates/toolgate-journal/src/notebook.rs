//! The agent's own books: one small JSON file each, in the session's folder or, for what outlives sessions, in the state
//! folder. A book is rewritten whole under a lock. A repository could bring books of its own, and with them words that
//! an agent would take for its memory; with a key, a book counts only if its seal shows that it was written here.

use std::fs::File;
use std::io::Read;
use std::sync::Arc;

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolgate_contract::{Book, ErrorCode, Rewrite, ToolError};

use crate::folder::{Folder, Lock};
use crate::{Durability, JournalError, SealKey, hex};

/// The largest book, in bytes.
const MOST: u64 = 1 << 20;

/// The books of one session, and those that it shares with others.
pub struct Notebook {
    session: Folder,
    shared: Arc<Folder>,
    id: String,
    key: Option<SealKey>,
    durability: Durability,
}

#[derive(Serialize, Deserialize)]
struct Page {
    notes: Value,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    seal: Option<String>,
}

impl Notebook {
    pub(crate) fn new(
        session: Folder,
        shared: Arc<Folder>,
        id: &str,
        key: Option<SealKey>,
        durability: Durability,
    ) -> Self {
        Self { session, shared, id: id.to_owned(), key, durability }
    }

    /// What a book holds; none when nothing was written yet.
    pub fn read(&self, book: Book) -> Result<Option<Value>, ToolError> {
        let Some(file) = self.folder(book).existing(&name(book))? else { return Ok(None) };
        let mut bytes = Vec::new();
        file.take(MOST + 1).read_to_end(&mut bytes).map_err(|error| unreadable(book, &error))?;
        let page: Page = serde_json::from_slice(&bytes).map_err(|fault| unreadable(book, &fault))?;
        match self.was_written_here(book, &page) {
            true => Ok(Some(page.notes)),
            false => Err(self.foreign(book)),
        }
    }

    /// Without a key nobody can tell.
    fn was_written_here(&self, book: Book, page: &Page) -> bool {
        let Some(key) = &self.key else { return true };
        let seal = page.seal.as_deref().and_then(|seal| hex::decode(seal.as_bytes()));
        seal.is_some_and(|seal| key.holds(&self.sealed(book, &page.notes.to_string()), &seal))
    }

    /// Rewrites a book, and no other change comes in between.
    pub fn rewrite(&self, book: Book, change: &mut Rewrite<'_>) -> Result<(), ToolError> {
        let folder = self.folder(book);
        let file = folder.file("notes.lock", OFlags::RDWR | OFlags::CREATE)?;
        let _lock = lock(&file, folder)?;
        let notes = change(self.read(book)?)?;
        let seal = self.key.as_ref().map(|key| hex::string(&key.seal(&self.sealed(book, &notes.to_string()))));
        let bytes = serde_json::to_vec(&Page { notes, seal }).map_err(JournalError::Encode)?;
        if bytes.len() as u64 > MOST {
            let message = format!("There is no room for that in {book}: it may have {MOST} bytes.");
            return Err(ToolError::new(ErrorCode::LimitReached, message)
                .with_hint("Remove or shorten what is no longer needed, then try again."));
        }
        Ok(folder.put(&name(book), &bytes, self.durability)?)
    }

    fn folder(&self, book: Book) -> &Folder {
        match book {
            Book::Todo | Book::Plan => &self.session,
            Book::Memory => &self.shared,
        }
    }

    /// Whose book it is belongs to the seal, so that none can be carried elsewhere.
    fn sealed<'a>(&'a self, book: Book, notes: &'a str) -> [&'a [u8]; 4] {
        let of = match book {
            Book::Todo | Book::Plan => self.id.as_bytes(),
            Book::Memory => b"workspace",
        };
        [book.as_str().as_bytes(), b" of ", of, notes.as_bytes()]
    }

    fn foreign(&self, book: Book) -> ToolError {
        let path = self.folder(book).path().join(name(book));
        let message = format!("What is kept of {book} wasn't written here, so it isn't read.");
        ToolError::new(ErrorCode::IoError, message)
            .with_hint(format!("Ask the person to look at `{}`, and to remove it.", path.display()))
    }
}

fn name(book: Book) -> String {
    format!("{}.json", book.as_str())
}

fn lock<'a>(file: &'a File, folder: &Folder) -> Result<Lock<'a>, JournalError> {
    Lock::exclusive(file).map_err(|error| folder.error("couldn't be locked", "notes.lock", error))
}

fn unreadable(book: Book, fault: &dyn std::fmt::Display) -> ToolError {
    ToolError::new(ErrorCode::IoError, format!("What is kept of {book} can't be read: {fault}."))
        .with_hint("Ask the person to look at the workspace's `.toolgate` folder.")
}
