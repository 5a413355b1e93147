//! The state directory of a workspace and the runs in it: `.toolgate/runs/<run>/`, `.toolgate/sessions/<session>/`,
//! `.toolgate/run-lists/` (which runs there are), `.toolgate/desk/` (the approval queue) and `.toolgate/index.db`. Tools can't access it; a `.gitignore` keeps it out
//! of the repository.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use rustix::fs::{FlockOperation, OFlags};
use toolgate_contract::{Clock, Durability, EventPayload, RunFacts, STATE_DIRECTORY, SystemClock};

use crate::directory::{DirectoryHandle, call_name, check_id};
use crate::head;
use crate::sqlite::replace_damaged;
use crate::workspace_identity::{workspace_identity, workspace_key};
use crate::{
    ApprovalQueue, ArtifactStore, BlobStore, ChangeLock, GrantFile, GrantStore, HookStore, Indexer, Journal,
    JournalError, Quarantine, RunList, SearchStore, SessionNotes, SigningKey, SkillLimits, SnapshotStore, SqliteInbox,
    SqliteStore, reindex,
};

/// The name of the directory, in a run's directory, that holds the private directories of commands.
const SANDBOX: &str = "sandbox";

/// How a run is recorded.
#[derive(Clone)]
pub struct RunOptions {
    /// What a line must survive before its call runs.
    pub durability: Durability,
    /// Signs the journal and the grants.
    pub key: Option<SigningKey>,
    /// Where times come from.
    pub clock: Arc<dyn Clock>,
    /// Receives every line that is appended.
    pub indexer: Option<Arc<Indexer>>,
    /// The directory, outside of workspaces, that keeps the heads of lists of runs.
    pub list_heads: Option<PathBuf>,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self { durability: Durability::Os, key: None, clock: Arc::new(SystemClock), indexer: None, list_heads: None }
    }
}

/// The state directory of one workspace.
pub struct StateDirectory {
    directory: Arc<DirectoryHandle>,
    runs: DirectoryHandle,
    sessions: DirectoryHandle,
}

/// The file of a run that the process whose agent works in it holds locked.
const HOLD: &str = "agent.lock";

/// A run that an agent of this process works in.
#[derive(Debug)]
pub struct RunHold {
    _file: File,
}

/// One run: its journal, its artifacts and its grants.
pub struct Run {
    /// Its id.
    pub id: String,
    /// What happened.
    pub journal: Arc<Journal>,
    /// Stored output.
    pub artifacts: Arc<ArtifactStore>,
    /// The grants that were given in this run.
    pub approvals: Arc<GrantFile>,
    directory: Arc<DirectoryHandle>,
    durability: Durability,
    list: RunList,
}

impl StateDirectory {
    /// Opens the state directory of a workspace, and creates it if there is none.
    pub fn open(workspace: &Path) -> Result<Self, JournalError> {
        let workspace = workspace.canonicalize().map_err(JournalError::io(format!("`{}`", workspace.display())))?;
        let directory = Arc::new(DirectoryHandle::at(&workspace)?.make(STATE_DIRECTORY)?);
        if directory.existing(".gitignore")?.is_none() {
            directory.put(".gitignore", b"*\n", Durability::Os)?;
        }
        let (runs, sessions) = (directory.make("runs")?, directory.make("sessions")?);
        Ok(Self { directory, runs, sessions })
    }

    /// The path of the state directory.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// A name for what is kept of the workspace in the user's state directory. A moved workspace keeps it, a copy has another.
    pub fn workspace_key(&self) -> Result<String, JournalError> {
        workspace_key(&self.directory)
    }

    /// The path of a run's directory.
    pub fn run_dir(&self, run: &str) -> Result<PathBuf, JournalError> {
        check_id("run", run)?;
        Ok(self.runs.path().join(run))
    }

    /// A private directory for commands of this name in a run, created if there is none. Tools can't see it.
    pub fn own_directory(&self, run: &str, name: &str) -> Result<PathBuf, JournalError> {
        check_id("run", run)?;
        check_id("directory", name)?;
        Ok(self.runs.open(run)?.make(SANDBOX)?.make(name)?.path().to_owned())
    }

    /// Begins a run under a new id. Its first event is recorded when this returns.
    pub fn begin_run(&self, run: &str, facts: RunFacts, options: &RunOptions) -> Result<Run, JournalError> {
        check_id("run", run)?;
        if !self.runs.make_new(run)? {
            return Err(JournalError::RunExists { run: run.to_owned() });
        }
        let begun = self.begin_in(run, facts, options);
        if begun.is_err() {
            // A run that failed to begin leaves no directory behind.
            let _ = std::fs::remove_dir_all(self.runs.path().join(run));
        }
        begun
    }

    fn begin_in(&self, run: &str, facts: RunFacts, options: &RunOptions) -> Result<Run, JournalError> {
        let directory = Arc::new(self.runs.open(run)?);
        let journal = Journal::create(Arc::clone(&directory), run, options)?;
        let run = Run::with(run, directory, journal, self.run_list(options)?, options)?;
        if options.durability == Durability::Sync {
            run.directory.sync()?;
            self.runs.sync()?;
        }
        run.journal.append(&[run.journal.event(EventPayload::RunStarted(facts))])?;
        run.list.enter_start(&run.id, &run.journal.tip())?;
        Ok(run)
    }

    /// Opens an existing run to continue it. Its journal is verified completely and recovered after a crash.
    pub fn open_run(&self, run: &str, options: &RunOptions) -> Result<Run, JournalError> {
        check_id("run", run)?;
        let directory = Arc::new(self.runs.open(run).map_err(|error| match error {
            JournalError::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
                JournalError::NoSuchRun { run: run.to_owned() }
            }
            other => other,
        })?);
        let journal = Journal::open(Arc::clone(&directory), run, options)?;
        let run = Run::with(run, directory, journal, self.run_list(options)?, options)?;
        run.list.enter_continued(&run.id, &run.journal.tip())?;
        Ok(run)
    }

    /// Takes a run for an agent, whose conversation only one process continues at a time. The run is free again when this
    /// is dropped, or its process has died.
    pub fn hold_run(&self, run: &str) -> Result<RunHold, JournalError> {
        check_id("run", run)?;
        let directory = self.runs.open(run)?;
        let file = directory.file(HOLD, OFlags::RDWR | OFlags::CREATE)?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(RunHold { _file: file }),
            Err(rustix::io::Errno::WOULDBLOCK) => Err(JournalError::RunInUse { run: run.to_owned() }),
            Err(error) => Err(directory.error("couldn't be locked", HOLD, error.into())),
        }
    }

    /// Whether a program has a run open to record in it. A run that hasn't ended and isn't open was left by a program that
    /// died. A run whose files aren't here is taken for open.
    pub fn is_run_open(&self, run: &str) -> bool {
        // Two that look at the same moment would take each other for the program.
        static LOOKING: Mutex<()> = Mutex::new(());
        let head = check_id("run", run).and_then(|()| self.runs.open(run)?.existing(head::NAME));
        let Ok(Some(head)) = head else { return true };
        let _looking = LOOKING.lock();
        rustix::fs::flock(&head, FlockOperation::NonBlockingLockExclusive).is_err()
    }

    /// The list of this workspace's runs, as the user with this key keeps it.
    pub fn run_list(&self, options: &RunOptions) -> Result<RunList, JournalError> {
        RunList::open(&self.directory, options)
    }

    /// The artifacts of a run, for reading.
    pub fn artifacts(&self, run: &str) -> Result<ArtifactStore, JournalError> {
        let missing = || JournalError::NoSuchRun { run: run.to_owned() };
        check_id("run", run).map_err(|_| missing())?;
        let directory = self.runs.open(run).and_then(|run| run.open("artifacts")).map_err(|_| missing())?;
        Ok(ArtifactStore::new(directory, Durability::Os))
    }

    /// The grants that apply in this workspace, among those in the user's state directory.
    pub fn grants(
        &self,
        user_state: &Path,
        key: SigningKey,
        durability: Durability,
    ) -> Result<GrantStore, JournalError> {
        GrantStore::new(user_state, workspace_identity(&self.directory)?, key, durability)
    }

    /// Refuses the id of a session that isn't a plain name.
    pub fn check_session(&self, session: &str) -> Result<(), JournalError> {
        check_id("session", session)
    }

    /// The notes of a session, and those that all sessions share.
    pub fn notebook(&self, session: &str, options: &RunOptions) -> Result<SessionNotes, JournalError> {
        check_id("session", session)?;
        let directory = self.sessions.make(session)?;
        Ok(SessionNotes::new(directory, Arc::clone(&self.directory), session, options.key.clone(), options.durability))
    }

    /// The limits that skills put on a session which goes on in other programs.
    pub fn skill_limits(&self, session: &str, options: &RunOptions) -> Result<SkillLimits, JournalError> {
        check_id("session", session)?;
        let (directory, owner) = (Arc::new(self.sessions.make(session)?), format!("session {session}"));
        Ok(SkillLimits::new(directory, owner, options.key.clone(), options.durability))
    }

    /// What the hooks of clients keep between events. There is none without a key: nothing in it could be trusted.
    pub fn hook_store(&self, options: &RunOptions) -> Result<Option<HookStore>, JournalError> {
        let Some(key) = options.key.clone() else { return Ok(None) };
        Ok(Some(HookStore::new(self.directory.make("hooks")?, key)))
    }

    /// The file contents that undo needs.
    pub fn contents(&self, durability: Durability) -> Result<BlobStore, JournalError> {
        Ok(BlobStore::new(self.directory.make("content")?, durability))
    }

    /// Changes of commands that were not written to the workspace.
    pub fn quarantine(&self) -> Result<Quarantine, JournalError> {
        Ok(Quarantine::new(self.directory.make("quarantine")?))
    }

    /// Snapshots of the workspace, taken before commands that change files in place; the key shows which were taken by
    /// this user.
    pub fn snapshots(&self, key: Option<SigningKey>) -> Result<SnapshotStore, JournalError> {
        Ok(SnapshotStore::new(self.directory.make("snapshots")?, key))
    }

    /// The stored search index; the key shows which files of it this user's programs wrote.
    pub fn search_store(&self, key: SigningKey) -> Result<SearchStore, JournalError> {
        SearchStore::new(self.directory.make("search")?, key)
    }

    /// The directory that holds the overlay layers of running commands.
    pub fn layers_dir(&self) -> PathBuf {
        self.path().join("layers")
    }

    /// The queue in which calls wait for a person's approval.
    pub fn queue(&self, key: SigningKey) -> Result<ApprovalQueue, JournalError> {
        Ok(ApprovalQueue::new(self.directory.make("desk")?, key))
    }

    /// Whether the directory is still where it was opened: not removed, moved or replaced.
    pub fn is_in_place(&self) -> bool {
        let (here, there) = (rustix::fs::fstat(self.directory.fd()), rustix::fs::lstat(self.path()));
        here.is_ok_and(|here| there.is_ok_and(|there| (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino)))
    }

    /// Waits until no other process changes files in this workspace.
    pub fn begin_change(&self) -> Result<ChangeLock, JournalError> {
        ChangeLock::begin(&self.directory)
    }

    /// Opens the embedded inbox.
    pub fn inbox(&self) -> Result<SqliteInbox, JournalError> {
        // SQLite would make the file readable by others; its companion files inherit its mode.
        self.directory.file("inbox.db", OFlags::RDWR | OFlags::CREATE)?;
        SqliteInbox::open(&self.path().join("inbox.db"))
    }

    /// Opens the embedded store. A store that is new, or was replaced because it was damaged, is filled from the
    /// journals first.
    pub fn index(&self) -> Result<SqliteStore, JournalError> {
        let path = self.path().join("index.db");
        let lock = self.directory.file("index.lock", OFlags::RDWR | OFlags::CREATE)?;
        // SQLite would make the file readable by others; its companion files inherit its mode.
        if self.directory.file("index.db", OFlags::RDWR | OFlags::CREATE).is_err() {
            replace_damaged(&path).map_err(JournalError::io(format!("`{}` couldn't be renamed", path.display())))?;
        }
        let store = SqliteStore::open(&path, lock)?;
        if !store.is_filled()? {
            reindex(self.path(), &store)?;
            store.mark_filled()?;
        }
        Ok(store)
    }
}

impl Run {
    fn with(
        id: &str,
        directory: Arc<DirectoryHandle>,
        journal: Journal,
        list: RunList,
        options: &RunOptions,
    ) -> Result<Self, JournalError> {
        let artifacts = ArtifactStore::new(directory.make("artifacts")?, options.durability);
        directory.make(SANDBOX)?;
        directory.make("pending")?;
        let approvals = GrantFile::new(Arc::clone(&directory), "approvals.jsonl", format!("run {id}"), options);
        Ok(Self {
            id: id.to_owned(),
            journal: Arc::new(journal),
            artifacts: Arc::new(artifacts),
            approvals: Arc::new(approvals),
            directory,
            durability: options.durability,
            list,
        })
    }

    /// The path of the run's directory.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The limits that skills put on whoever goes on with the run.
    pub fn skill_limits(&self, options: &RunOptions) -> SkillLimits {
        let (directory, owner) = (Arc::clone(&self.directory), format!("run {}", self.id));
        SkillLimits::new(directory, owner, options.key.clone(), options.durability)
    }

    /// Records the end of the run.
    pub fn end(&self) -> Result<(), JournalError> {
        self.journal.append(&[self.journal.event(EventPayload::RunEnded)])?;
        self.list.enter_end(&self.id, &self.journal.tip())
    }

    /// Stores a call that waits for approval, so that it can be repeated later. Returns the path.
    pub fn save_pending(&self, tool_call_id: &str, json: &[u8]) -> Result<PathBuf, JournalError> {
        let pending = self.directory.open("pending")?;
        let name = format!("{}.json", call_name(tool_call_id));
        pending.put(&name, json, self.durability)?;
        Ok(pending.path().join(name))
    }

    /// Reads a call that waits for approval; none when there is no such call.
    pub fn load_pending(&self, tool_call_id: &str) -> Result<Option<Vec<u8>>, JournalError> {
        let (pending, name) = (self.directory.open("pending")?, format!("{}.json", call_name(tool_call_id)));
        let Some(mut file) = pending.existing(&name)? else { return Ok(None) };
        let mut json = Vec::new();
        std::io::Read::read_to_end(&mut file, &mut json)
            .map_err(|error| pending.error("couldn't be read", &name, error))?;
        Ok(Some(json))
    }
}
