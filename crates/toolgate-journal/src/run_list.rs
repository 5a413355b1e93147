//! The list of runs: a signed, hash-chained file that names every run of a workspace, so that a run whose directory was
//! removed, or replaced by an older copy, is noticed. Each entry has the number of events that its run had, and the hash
//! of the last one.
//!
//! The list is in `.toolgate/run-lists/`, one file for each signing key: a list that came with a repository is never
//! mistaken for the user's own. Whoever can write that directory could cut the list off or remove it, so its own head is
//! kept outside of the workspace, next to the signing key ([`ListHead`]).
//!
//! A run is entered once its first event is recorded, and the head is written last. A process that is killed in between
//! leaves a run without an entry, or a head that is behind; neither is a fault.

mod entry;
mod list_end;
mod list_head;
mod verify_list;

use std::sync::Arc;

use rustix::fs::OFlags;
use toolgate_contract::Durability;
use uuid::Uuid;

use self::entry::{Gap, KnownHead, RunListEntry, RunListLine};
use self::list_end::ListEnd;
use self::list_head::{HeadDirectory, ListHead};
pub use self::verify_list::{ListedRun, RunListCheck, RunListFault};
use crate::chain::Tip;
use crate::directory::{DirectoryHandle, FileLock, append_once};
use crate::event_reader::list_runs;
use crate::head::Head;
use crate::signing_key::LineSigner;
use crate::{JournalError, RunOptions, hex};

/// The directory of the lists, in the state directory.
const LISTS: &str = "run-lists";
/// The file that whoever reads or writes a list locks.
const LOCK: &str = "lock";
/// What the signatures of entries are for. No run can have an id with spaces in it.
const SIGNED_FOR: &str = "the list of runs";

/// The list of a workspace's runs, as one user keeps it.
pub struct RunList {
    state: Arc<DirectoryHandle>,
    lists: DirectoryHandle,
    /// The name of the list's file.
    name: String,
    heads: Option<HeadDirectory>,
    options: RunOptions,
}

impl RunList {
    /// The list in this state directory that is signed with the key of these options.
    pub(crate) fn open(state: &Arc<DirectoryHandle>, options: &RunOptions) -> Result<Self, JournalError> {
        let id = options.key.as_ref().map(|key| hex::string(&key.sign(&[b"id of the key"])));
        let name = id.map_or_else(|| "unsigned.jsonl".to_owned(), |id| format!("{}.jsonl", &id[..16]));
        let heads = options.key.as_ref().zip(options.list_heads.as_deref());
        let heads = heads.map(|(key, path)| HeadDirectory::of(path, key, state)).transpose()?;
        Ok(Self { state: Arc::clone(state), lists: state.make(LISTS)?, name, heads, options: options.clone() })
    }

    /// Enters a run whose first event has just been recorded, with the last event of the run that was entered before.
    pub(crate) fn enter_start(&self, run: &str, tip: &Tip) -> Result<(), JournalError> {
        let head = KnownHead::of(run, tip);
        self.append(|last| {
            let before = last.filter(|last| *last != run).and_then(|last| self.head_of(last));
            RunListEntry::RunStarted { head, before }
        })
    }

    /// Enters a run that is continued.
    pub(crate) fn enter_continued(&self, run: &str, tip: &Tip) -> Result<(), JournalError> {
        self.append(|_| RunListEntry::RunContinued(KnownHead::of(run, tip)))
    }

    /// Enters the end of a run.
    pub(crate) fn enter_end(&self, run: &str, tip: &Tip) -> Result<(), JournalError> {
        self.append(|_| RunListEntry::RunEnded(KnownHead::of(run, tip)))
    }

    /// Enters that a person knows what [`RunList::check`] finds now: these runs were removed, and the faults of the list
    /// are accepted. A list that was changed is set aside, and a new one begins.
    pub fn accept(&self, by: &str) -> Result<RunListCheck, JournalError> {
        let found = self.check()?;
        if found.faults.iter().any(RunListFault::is_in_chain) {
            let _lock = self.lock(true)?;
            self.set_aside()?;
        }
        let runs = found.gone.keys().cloned().collect();
        self.append(|_| RunListEntry::Accepted { by: by.to_owned(), runs })?;
        Ok(found)
    }

    /// Adds an entry. What is wrong with the end of the list is entered first, so that it stays known.
    fn append(&self, entry: impl FnOnce(Option<&str>) -> RunListEntry) -> Result<(), JournalError> {
        let _lock = self.lock(true)?;
        let known = self.heads.as_ref().and_then(HeadDirectory::read);
        let (list, start, mut entries, last) = match ListEnd::read(&self.lists, &self.name, self.signer())? {
            ListEnd::Intact { tip, before, line } => {
                let note = self.discontinuity(&line.list, &tip, &before, known.as_ref())?;
                let last = line.entry.run().map(str::to_owned);
                (line.list, tip, Vec::from_iter(note), last)
            }
            ListEnd::Missing => self.begin(known.as_ref(), None)?,
            ListEnd::Changed => {
                let kept_as = self.set_aside()?;
                self.begin(known.as_ref(), Some(kept_as))?
            }
        };
        entries.push(entry(last.as_deref()));
        let tip = self.write(&list, start, entries)?;
        self.keep_head(&list, &tip);
        Ok(())
    }

    /// The first entries of a new list: the runs that are here already, and what is known of an earlier list.
    fn begin(&self, known: Option<&ListHead>, kept_as: Option<String>) -> Result<NewList, JournalError> {
        let list = Uuid::now_v7().simple().to_string();
        let runs = list_runs(self.state.path())?.iter().filter_map(|run| self.head_of(run)).collect();
        let mut entries = vec![RunListEntry::Started { workspace: self.workspace(), runs }];
        let known = known.filter(|known| known.entries > 0);
        if known.is_some() || kept_as.is_some() {
            entries.push(RunListEntry::Gap(Gap::from(known, kept_as)));
        } else {
            // From here on a missing head means a copied workspace, even if this process is killed before its first write.
            self.keep_head(&list, &Tip::START);
        }
        Ok((list, Tip::START, entries, None))
    }

    /// The entry for a list that doesn't continue what its head says.
    fn discontinuity(
        &self,
        list: &str,
        tip: &Tip,
        before: &hex::Hash,
        known: Option<&ListHead>,
    ) -> Result<Option<RunListEntry>, JournalError> {
        if self.heads.is_none() {
            return Ok(None);
        }
        let Some(known) = known else {
            return Ok(Some(RunListEntry::Copied { workspace: self.workspace() }));
        };
        let continues = known.list == list
            && match tip.seq.checked_sub(known.entries) {
                None => false,
                Some(0) => tip.hash == known.hash,
                Some(1) => *before == known.hash,
                // Only where several heads in a row couldn't be written.
                Some(_) => list_end::has_line(&self.lists, &self.name, known.entries, &known.hash)?,
            };
        Ok((!continues).then(|| RunListEntry::Gap(Gap::from(Some(known), None))))
    }

    /// Writes entries after `start` in one write, each signed, and returns where the list ends then.
    fn write(&self, list: &str, start: Tip, entries: Vec<RunListEntry>) -> Result<Tip, JournalError> {
        let (mut tip, mut buffer) = (start, Vec::new());
        for entry in entries {
            let line = RunListLine { list: list.to_owned(), time: self.options.clock.now(), entry };
            tip = tip.encode(&line, self.signer(), &mut buffer).map_err(JournalError::Encode)?;
        }
        let file = self.lists.file(&self.name, OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE)?;
        let failed = |error| self.lists.error("couldn't be written", &self.name, error);
        // What a killed process left of its last line goes away, so that this one begins on a line of its own.
        file.set_len(start.size).and_then(|()| append_once(&file, &buffer, start.size)).map_err(failed)?;
        if self.options.durability == Durability::Sync {
            file.sync_data().inspect_err(|_| drop(file.set_len(start.size))).map_err(failed)?;
        }
        Ok(tip)
    }

    /// Keeps the end of the list outside of the workspace. Where that fails the list is still signed; only entries that
    /// are cut off from here on couldn't be told, so no run is refused for it.
    fn keep_head(&self, list: &str, tip: &Tip) {
        if let Some(heads) = &self.heads {
            let (list, workspace, time) = (list.to_owned(), self.workspace(), self.options.clock.now());
            let head = ListHead { workspace, list, entries: tip.seq, hash: tip.hash, time };
            let _ = heads.write(&head, self.options.durability);
        }
    }

    /// Renames the list, so that a new one begins, and returns its new name.
    fn set_aside(&self) -> Result<String, JournalError> {
        let (_, name) = self.lists.numbered(&format!("{}.changed-", self.name))?;
        rustix::fs::renameat(self.lists.fd(), &self.name, self.lists.fd(), &name)
            .map_err(|errno| self.lists.error("couldn't be set aside", &self.name, errno.into()))?;
        Ok(name)
    }

    /// The head of a run that is here and signed with our key.
    fn head_of(&self, run: &str) -> Option<KnownHead> {
        let directory = self.state.open("runs").and_then(|runs| runs.open(run)).ok()?;
        let head = Head::find(&directory).ok()?.ok()?;
        let is_ours = self.options.key.as_ref().is_none_or(|key| head.check(run, key).is_ok());
        (is_ours && head.seq > 0).then(|| KnownHead { run: run.to_owned(), events: head.seq, hash: head.hash })
    }

    fn workspace(&self) -> String {
        self.state.path().parent().unwrap_or(self.state.path()).display().to_string()
    }

    fn signer(&self) -> Option<LineSigner<'_>> {
        self.options.key.as_ref().map(|key| LineSigner { run: SIGNED_FOR, key })
    }

    fn lock(&self, exclusive: bool) -> Result<ListLock, JournalError> {
        let file = self.lists.file(LOCK, OFlags::RDWR | OFlags::CREATE)?;
        let failed = |error| self.lists.error("couldn't be locked", LOCK, error);
        let locked = if exclusive { FileLock::exclusive(&file) } else { FileLock::shared(&file) };
        // The file's own handle holds the lock until it is closed.
        std::mem::forget(locked.map_err(failed)?);
        Ok(ListLock(file))
    }
}

/// Holds the lock of the lists until it is dropped.
struct ListLock(#[allow(dead_code, reason = "held, not read")] std::fs::File);

/// The id of a new list, where it begins, its first entries, and its last run.
type NewList = (String, Tip, Vec<RunListEntry>, Option<String>);

impl Gap {
    fn from(known: Option<&ListHead>, kept_as: Option<String>) -> Self {
        let (entries, last) = known.map_or((0, None), |known| (known.entries, Some(known.time)));
        Self { entries, last, kept_as }
    }
}
