//! The approval queue: requests that wait for a person's answer, where other processes of the same user can list and
//! answer them. Both sides meet in files. The waiting process holds a lock on its request, so an unlocked request
//! belongs to a process that died. A request can be answered only once. Requests and answers are signed with the user's
//! key, and an answer signs the exact bytes of its request, so neither a repository nor a confined process can forge
//! one.

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

/// Held while a request is added, answered or removed.
const LOCK: &str = "lock";

/// Longer than any request or answer that is written.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// A request that waits for an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QueueEntry {
    /// Its id in the queue.
    pub id: String,
    /// The run of the call in question.
    pub run: String,
    /// The session of the call in question.
    pub session: String,
    /// When it was added.
    pub asked: Timestamp,
    /// When the caller stops waiting, if ever.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub expires: Option<Timestamp>,
    /// Everything that the person is shown.
    pub request: Value,
}

/// A person's answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum QueuedAnswer {
    /// Approved.
    Granted {
        /// How far it reaches.
        scope: ApprovalScope,
        /// Who answered.
        by: String,
    },
    /// Refused.
    Denied {
        /// Who answered.
        by: String,
        /// Their reason.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        reason: Option<String>,
    },
    /// Refused, and the whole run ends.
    Aborted {
        /// Who answered.
        by: String,
        /// Their reason.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        reason: Option<String>,
    },
    /// A text answer, to a question that the agent asked.
    Said {
        /// The label of the chosen option, or free text.
        words: String,
        /// The index of the chosen option, from 0.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        choice: Option<usize>,
        /// Who answered.
        by: String,
    },
}

/// The approval queue of one workspace.
pub struct ApprovalQueue {
    directory: DirectoryHandle,
    key: SigningKey,
}

impl ApprovalQueue {
    pub(crate) fn new(directory: DirectoryHandle, key: SigningKey) -> Self {
        Self { directory, key }
    }

    /// Adds a request. It stays in the queue until the returned ticket is dropped.
    pub fn put(&self, ask: &QueueEntry) -> Result<QueueTicket<'_>, JournalError> {
        check_id("ask", &ask.id)?;
        let json = serde_json::to_vec(ask).map_err(JournalError::Encode)?;
        let signed = self.with_signature(&json, &self.key.sign(&ask_signed_bytes(&ask.id, &json)));
        let mut draft = self.directory.draft()?;
        let name = ask_name(&ask.id);
        let failed = |error| self.directory.error("couldn't be written", &name, error);
        draft.file.write_all(&signed).map_err(failed)?;
        // Locked before it is renamed into place: no process ever sees it unlocked while this one lives.
        let locked = draft.file.try_clone().map_err(failed)?;
        rustix::fs::flock(&locked, FlockOperation::NonBlockingLockExclusive).map_err(|errno| failed(errno.into()))?;
        draft.place(&self.directory, &name, Durability::Os)?;
        Ok(QueueTicket { queue: self, id: ask.id.clone(), digest: Sha256::digest(&json).into(), _locked: locked })
    }

    /// The waiting requests, oldest first. Requests of processes that died are removed; requests that have expired or
    /// have no valid signature aren't listed.
    pub fn asks(&self, now: Timestamp) -> Result<Vec<QueueEntry>, JournalError> {
        let mut entries = Vec::new();
        for name in self.directory.names()? {
            let Some(id) = name.strip_suffix(ASK) else { continue };
            if let Some((ask, _)) = self.waiting(id, now)? {
                entries.push(ask);
            }
        }
        entries.sort_by(|a, b| (a.asked, &a.id).cmp(&(b.asked, &b.id)));
        Ok(entries)
    }

    /// One waiting request.
    pub fn ask(&self, id: &str, now: Timestamp) -> Result<QueueEntry, JournalError> {
        let gone = || JournalError::NoSuchAsk { id: id.chars().take(80).collect() };
        check_id("ask", id).map_err(|_| gone())?;
        self.waiting(id, now)?.map(|(ask, _)| ask).ok_or_else(gone)
    }

    /// Answers a request. Only the first answer counts; later ones get an error.
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
        let signed = self.with_signature(&json, &self.key.sign(&answer_signed_bytes(id, &digest, &json)));
        self.directory.put(&name, &signed, Durability::Os)
    }

    /// A waiting request and the digest of its bytes.
    fn waiting(&self, id: &str, now: Timestamp) -> Result<Option<(QueueEntry, Hash)>, JournalError> {
        let Some(file) = self.directory.existing(&ask_name(id))? else { return Ok(None) };
        if rustix::fs::flock(&file, FlockOperation::NonBlockingLockShared).is_ok() {
            // The waiting process has died.
            self.clear(id);
            return Ok(None);
        }
        let Some((json, signature)) = split(&read(&file, &self.directory, &ask_name(id))?) else { return Ok(None) };
        if !self.key.verifies(&ask_signed_bytes(id, &json), &signature) {
            return Ok(None);
        }
        let ask = serde_json::from_slice::<QueueEntry>(&json).ok();
        let ask = ask.filter(|ask| ask.id == id && ask.expires.is_none_or(|expires| now < expires));
        Ok(ask.map(|ask| (ask, Sha256::digest(&json).into())))
    }

    fn with_signature(&self, json: &[u8], signature: &Hash) -> Vec<u8> {
        [json, b"\n", &hex::encode(signature), b"\n"].concat()
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

/// A request in the queue. Dropping it removes the request.
pub struct QueueTicket<'a> {
    queue: &'a ApprovalQueue,
    id: String,
    digest: Hash,
    /// Open and locked while the request waits.
    _locked: File,
}

impl QueueTicket<'_> {
    /// The answer, once there is one. A file without a valid signature for this request isn't an answer.
    pub fn answer(&self) -> Result<Option<QueuedAnswer>, JournalError> {
        let (directory, name) = (&self.queue.directory, answer_name(&self.id));
        let Some(file) = directory.existing(&name)? else { return Ok(None) };
        let known = split(&read(&file, directory, &name)?)
            .filter(|(json, signature)| {
                self.queue.key.verifies(&answer_signed_bytes(&self.id, &self.digest, json), signature)
            })
            .and_then(|(json, _)| serde_json::from_slice(&json).ok());
        if known.is_none() {
            directory.remove(&name)?;
        }
        Ok(known)
    }
}

impl Drop for QueueTicket<'_> {
    fn drop(&mut self) {
        // Under the lock, so that no answer arrives in between and stays behind.
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

/// The bytes that the signature of a request covers. A run id can't contain a colon, so this can't be mistaken for
/// another signature.
fn ask_signed_bytes<'a>(id: &'a str, json: &'a [u8]) -> [&'a [u8]; 4] {
    [b"ask: ", id.as_bytes(), b"\n", json]
}

/// The bytes that the signature of an answer covers: those of the request as well, so that it is valid for no other.
fn answer_signed_bytes<'a>(id: &'a str, ask: &'a Hash, json: &'a [u8]) -> [&'a [u8]; 5] {
    [b"answer: ", id.as_bytes(), b"\n", ask, json]
}

/// Splits a file into its JSON and its signature.
fn split(signed: &[u8]) -> Option<(Vec<u8>, Hash)> {
    let rest = signed.strip_suffix(b"\n")?;
    let (json, signature) = rest.split_at_checked(rest.len().checked_sub(hex::LENGTH)?)?;
    Some((json.strip_suffix(b"\n")?.to_vec(), hex::decode(signature)?))
}

fn read(file: &File, directory: &DirectoryHandle, name: &str) -> Result<Vec<u8>, JournalError> {
    let mut bytes = Vec::new();
    file.take(MAX_BYTES).read_to_end(&mut bytes).map_err(|error| directory.error("couldn't be read", name, error))?;
    Ok(bytes)
}
