//! The desk of asks (C-19): what waits for a person's answer lies here, where other processes of the same user can see
//! it and answer. Asker and answerer meet in files: an ask is locked by whoever waits for it, so one that can be locked
//! belongs to a process that died; an answer can be made only once. Both are sealed with the user's key, and an answer
//! names the very bytes that it answers, so neither a repository nor a confined process can bring one.

use std::fs::File;
use std::io::{Read, Write};

use jiff::Timestamp;
use rustix::fs::{FlockOperation, OFlags};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use toolgate_contract::{ApprovalScope, Durability};

use crate::directory::{DirectoryHandle, FileLock, check_id};
use crate::hex::{self, Hash};
use crate::{JournalError, SigningKey};

/// Held for the moment in which something is put on the desk or taken off it.
const LOCK: &str = "lock";

/// Longer than any ask or answer that we write.
const LONGEST: u64 = 64 * 1024 * 1024;

/// Something that waits for an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QueueEntry {
    /// Its id on the desk.
    pub id: String,
    /// The run of the call in question.
    pub run: String,
    /// The session of the call in question.
    pub session: String,
    /// Since when it waits.
    pub asked: Timestamp,
    /// Until when somebody waits for the answer, if there is an end to it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub expires: Option<Timestamp>,
    /// What the person is shown, whole.
    pub request: Value,
}

/// What somebody answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum QueuedAnswer {
    /// Yes, this far.
    Granted {
        /// How far it reaches.
        scope: ApprovalScope,
        /// Who said so.
        by: String,
    },
    /// No.
    Denied {
        /// Who said so.
        by: String,
        /// Their words.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        reason: Option<String>,
    },
    /// An answer in words, to a question of the agent's own.
    Said {
        /// The label that they chose, or their own words.
        words: String,
        /// Which choice it was, from 0.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        choice: Option<usize>,
        /// Who said so.
        by: String,
    },
}

/// The desk of one workspace.
pub struct ApprovalQueue {
    directory: DirectoryHandle,
    key: SigningKey,
}

impl ApprovalQueue {
    pub(crate) fn new(directory: DirectoryHandle, key: SigningKey) -> Self {
        Self { directory, key }
    }

    /// Puts an ask on the desk. It lies there as long as the result is held, and no longer.
    pub fn put(&self, ask: &QueueEntry) -> Result<QueueTicket<'_>, JournalError> {
        check_id("ask", &ask.id)?;
        let json = serde_json::to_vec(ask).map_err(JournalError::Encode)?;
        let sealed = self.sealed(&json, &self.key.seal(&about_ask(&ask.id, &json)));
        let mut draft = self.directory.draft()?;
        let name = ask_name(&ask.id);
        let failed = |error| self.directory.error("couldn't be written", &name, error);
        draft.file.write_all(&sealed).map_err(failed)?;
        // Locked before it has its name: nobody ever sees it unlocked while we live.
        let held = draft.file.try_clone().map_err(failed)?;
        rustix::fs::flock(&held, FlockOperation::NonBlockingLockExclusive).map_err(|errno| failed(errno.into()))?;
        draft.place(&self.directory, &name, Durability::Os)?;
        Ok(QueueTicket { queue: self, id: ask.id.clone(), digest: Sha256::digest(&json).into(), _held: held })
    }

    /// What waits, oldest first. What a process that died left behind is cleared away; what has expired, or wasn't
    /// sealed with this key, isn't shown.
    pub fn asks(&self, now: Timestamp) -> Result<Vec<QueueEntry>, JournalError> {
        let mut asks = Vec::new();
        for name in self.directory.names()? {
            let Some(id) = name.strip_suffix(ASK) else { continue };
            if let Some((ask, _)) = self.waiting(id, now)? {
                asks.push(ask);
            }
        }
        asks.sort_by(|a, b| (a.asked, &a.id).cmp(&(b.asked, &b.id)));
        Ok(asks)
    }

    /// One ask, if it waits.
    pub fn ask(&self, id: &str, now: Timestamp) -> Result<QueueEntry, JournalError> {
        let gone = || JournalError::NoSuchAsk { id: id.chars().take(80).collect() };
        check_id("ask", id).map_err(|_| gone())?;
        self.waiting(id, now)?.map(|(ask, _)| ask).ok_or_else(gone)
    }

    /// Answers an ask. Only the first answer counts; whoever comes later is told so.
    pub fn answer(&self, id: &str, answer: &QueuedAnswer, now: Timestamp) -> Result<(), JournalError> {
        let gone = || JournalError::NoSuchAsk { id: id.chars().take(80).collect() };
        check_id("ask", id).map_err(|_| gone())?;
        let lock = self.lock_file()?;
        let _lock = self.lock(&lock)?;
        let (_, digest) = self.waiting(id, now)?.ok_or_else(gone)?;
        let name = answer_name(id);
        if self.directory.existing(&name)?.is_some() {
            return Err(JournalError::Answered { id: id.to_owned() });
        }
        let json = serde_json::to_vec(answer).map_err(JournalError::Encode)?;
        let sealed = self.sealed(&json, &self.key.seal(&about_answer(id, &digest, &json)));
        self.directory.put(&name, &sealed, Durability::Os)
    }

    /// A living ask and the digest of its bytes.
    fn waiting(&self, id: &str, now: Timestamp) -> Result<Option<(QueueEntry, Hash)>, JournalError> {
        let Some(file) = self.directory.existing(&ask_name(id))? else { return Ok(None) };
        if rustix::fs::flock(&file, FlockOperation::NonBlockingLockShared).is_ok() {
            // Whoever waited has died.
            self.clear(id);
            return Ok(None);
        }
        let Some((json, seal)) = split(&read(&file, &self.directory, &ask_name(id))?) else { return Ok(None) };
        if !self.key.holds(&about_ask(id, &json), &seal) {
            return Ok(None);
        }
        let ask = serde_json::from_slice::<QueueEntry>(&json).ok();
        let ask = ask.filter(|ask| ask.id == id && ask.expires.is_none_or(|expires| now < expires));
        Ok(ask.map(|ask| (ask, Sha256::digest(&json).into())))
    }

    fn sealed(&self, json: &[u8], seal: &Hash) -> Vec<u8> {
        [json, b"\n", &hex::encode(seal), b"\n"].concat()
    }

    fn clear(&self, id: &str) {
        let _ = self.directory.remove(&ask_name(id));
        let _ = self.directory.remove(&answer_name(id));
    }

    fn lock_file(&self) -> Result<File, JournalError> {
        self.directory.file(LOCK, OFlags::RDWR | OFlags::CREATE)
    }

    fn lock<'a>(&self, file: &'a File) -> Result<FileLock<'a>, JournalError> {
        FileLock::exclusive(file).map_err(|error| self.directory.error("couldn't be locked", LOCK, error))
    }
}

/// An ask that lies on the desk. Dropping it takes it off again.
pub struct QueueTicket<'a> {
    queue: &'a ApprovalQueue,
    id: String,
    digest: Hash,
    /// Open and locked as long as somebody waits.
    _held: File,
}

impl QueueTicket<'_> {
    /// The answer, once there is one. What isn't sealed with the key for this very ask is no answer.
    pub fn answer(&self) -> Result<Option<QueuedAnswer>, JournalError> {
        let (directory, name) = (&self.queue.directory, answer_name(&self.id));
        let Some(file) = directory.existing(&name)? else { return Ok(None) };
        let known = split(&read(&file, directory, &name)?)
            .filter(|(json, seal)| self.queue.key.holds(&about_answer(&self.id, &self.digest, json), seal))
            .and_then(|(json, _)| serde_json::from_slice(&json).ok());
        if known.is_none() {
            directory.remove(&name)?;
        }
        Ok(known)
    }
}

impl Drop for QueueTicket<'_> {
    fn drop(&mut self) {
        // Under the lock, so that no answer comes in between and stays behind.
        let lock = self.queue.lock_file().ok();
        let _lock = lock.as_ref().and_then(|file| self.queue.lock(file).ok());
        self.queue.clear(&self.id);
    }
}

const ASK: &str = ".ask";

fn ask_name(id: &str) -> String {
    format!("{id}{ASK}")
}

fn answer_name(id: &str) -> String {
    format!("{id}.answer")
}

/// What the seal of an ask covers. No run id holds a colon, so this can't be mistaken for another seal.
fn about_ask<'a>(id: &'a str, json: &'a [u8]) -> [&'a [u8]; 4] {
    [b"ask: ", id.as_bytes(), b"\n", json]
}

/// What the seal of an answer covers: the ask's own bytes as well, so that it fits no other.
fn about_answer<'a>(id: &'a str, ask: &'a Hash, json: &'a [u8]) -> [&'a [u8]; 5] {
    [b"answer: ", id.as_bytes(), b"\n", ask, json]
}

/// Takes the seal off.
fn split(sealed: &[u8]) -> Option<(Vec<u8>, Hash)> {
    let rest = sealed.strip_suffix(b"\n")?;
    let (json, seal) = rest.split_at_checked(rest.len().checked_sub(hex::LENGTH)?)?;
    Some((json.strip_suffix(b"\n")?.to_vec(), hex::decode(seal)?))
}

fn read(file: &File, directory: &DirectoryHandle, name: &str) -> Result<Vec<u8>, JournalError> {
    let mut bytes = Vec::new();
    file.take(LONGEST).read_to_end(&mut bytes).map_err(|error| directory.error("couldn't be read", name, error))?;
    Ok(bytes)
}
