//! What all changes of one workspace share, wired once: where they are recorded, what policy blocks, what is quarantined, and
//! how they are shown.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;

use toolgate_contract::QuarantineMode;
use toolgate_contract::{
    AnyTool, Change, Clock, Differ, EventOrigin, Files, HiddenPaths, LocatedEffect, NamedChanges, QuarantinedPath,
    Rehearsals, StagedChanges, ToolError, WorkspacePath,
};
use toolgate_journal::{Recorder, RunOptions};

use crate::build_output::{FoldedChanges, fold_build_output};
use crate::change_applier::ChangeApplier;
use crate::change_log::ChangeLog;
use crate::commit::Commit;
use crate::git::CommittedFiles;
use crate::own_files::OwnFiles;
use crate::read_tracker::ReadTracker;
use crate::settle::{ChangeSelector, as_git_paths};

/// Everything that a change in this workspace goes through.
pub struct WorkspaceChanges {
    pub(crate) files: Arc<dyn Files>,
    pub(crate) hidden_paths: Arc<dyn HiddenPaths>,
    pub(crate) clock: Arc<dyn Clock>,
    /// None where nothing can be changed.
    pub(crate) log: Option<Arc<ChangeLog>>,
    pub(crate) selector: ChangeSelector,
    pub(crate) reads: ReadTracker,
    pub(crate) own_files: OwnFiles,
    pub(crate) options: ChangeOptions,
}

/// What configuration says about changes, and how they are shown.
#[derive(Clone, Default)]
pub struct ChangeOptions {
    /// Whether a command's changes are staged until it has ended.
    pub overlay: bool,
    /// What becomes of files that other programs would run or load automatically.
    pub quarantine: QuarantineMode,
    /// The roots that commands can change, by index; 0 is the workspace.
    pub roots: Vec<usize>,
    /// The directories of all roots.
    pub directories: Vec<PathBuf>,
    /// Shows changes to people and models.
    pub differ: Option<Arc<dyn Differ>>,
}

impl WorkspaceChanges {
    /// Changes to these files. Without a log nothing can be changed: what can't be undone isn't done.
    pub fn new(
        files: Arc<dyn Files>,
        hidden_paths: Arc<dyn HiddenPaths>,
        clock: Arc<dyn Clock>,
        log: Option<ChangeLog>,
        options: ChangeOptions,
    ) -> Self {
        let (judged, hidden) = (Arc::clone(&files), Arc::clone(&hidden_paths));
        let committed = CommittedFiles::new(options.directories.clone());
        let quarantine = options.quarantine;
        let selector = ChangeSelector { files: judged, hidden_paths: hidden, quarantine, committed };
        let (log, reads, own_files) = (log.map(Arc::new), ReadTracker::default(), OwnFiles::default());
        Self { files, hidden_paths, clock, log, selector, reads, own_files, options }
    }

    /// Changes as they are shown: build output is folded.
    pub fn fold<'a>(&self, changes: &'a [Change]) -> FoldedChanges<'a> {
        fold_build_output(changes, self.files.as_ref())
    }

    /// Changes files for one call, in the name of its session.
    pub fn for_call(
        self: &Arc<Self>,
        recorder: Arc<dyn Recorder>,
        origin: Arc<EventOrigin>,
        session: String,
    ) -> ChangeApplier {
        ChangeApplier { workspace: Arc::clone(self), recorder, origin, session }
    }

    /// Recovers after a process that was killed: undoes what it left half changed, and records what commands changed that
    /// died with it. Returns warnings for the person.
    pub fn recover(&self, options: &RunOptions) -> Result<Vec<String>, ToolError> {
        match &self.log {
            Some(log) => log.recover(&self.selector, options),
            None => Ok(Vec::new()),
        }
    }

    /// What would be quarantined of staged changes, and why.
    pub fn would_quarantine(&self, staged: &dyn StagedChanges) -> Result<Vec<QuarantinedPath>, ToolError> {
        let (differences, approved) = (staged.differences(self.files.as_ref())?, NamedChanges::default());
        Ok(self.selector.choose(differences, staged, &approved).would_be_quarantined())
    }

    /// What was approved by name when a command was rehearsed.
    pub(crate) fn approved_in_rehearsal(&self, staged: &dyn StagedChanges) -> NamedChanges {
        let approved = self.log.as_ref().zip(staged.owner());
        approved.map(|(log, run)| log.approval(run, staged.approval())).unwrap_or_default()
    }

    /// The tool that applies the staged changes of a rehearsed command.
    pub fn commit_tool(self: &Arc<Self>, rehearsals: Arc<dyn Rehearsals>) -> Arc<dyn AnyTool> {
        Commit { rehearsals, workspace: Arc::clone(self) }.tool()
    }

    /// What policy is asked about: the effects, and what they are to git whatever the repository's directory is called.
    pub fn judged_effects<'e>(&self, effects: &'e [LocatedEffect]) -> Cow<'e, [LocatedEffect]> {
        match as_git_paths(effects, self.files.as_ref()) {
            more if more.is_empty() => effects.into(),
            more => [effects, &more].concat().into(),
        }
    }

    /// Whether there is nothing at this path but what this session made with its tools and commands, as it left it.
    pub fn is_own(&self, session: &str, place: &WorkspacePath) -> bool {
        let recorded = || {
            let log = self.log.as_ref();
            log.and_then(|log| log.made_in_session(session, self.clock.now()).ok()).unwrap_or_default()
        };
        self.own_files.add_recorded(session, recorded);
        self.own_files.is_own(session, place, self.files.as_ref())
    }

    /// A directory of a run's own, which the scripts of one skill alone may fill.
    pub fn script_directory(&self, run: &str, skill: &str) -> Result<std::path::PathBuf, ToolError> {
        self.log()?.own_directory(run, skill)
    }

    pub(crate) fn log(&self) -> Result<&Arc<ChangeLog>, ToolError> {
        self.log.as_ref().ok_or_else(|| ToolError::internal("Files can't be changed here."))
    }
}
