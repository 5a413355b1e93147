//! A command that changes files in place, while other calls run. Its changes are found by comparing the workspace with
//! a snapshot taken before it began. Before another call changes a path, the command's own changes of that path are
//! recorded, so that the record has everything in order.

use parking_lot::{Mutex, MutexGuard};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use toolgate_contract::{
    Change, ErrorCode, EventPayload, FileState, Files, LaunchSpec, STATE_DIRECTORY, Substitute, ToolError,
    WorkspacePath,
};
use toolgate_journal::ChangeLock;

use crate::change_applier::ChangeApplier;
use crate::snapshot::{Snapshot, SnapshotScope};

const STATE_REMOVED: &str = "The command removed or moved Toolgate's own state (`.toolgate`), so its changes are unknown and can't \
                       be reverted. Check git's hooks and configuration, `.envrc` and the settings of editors and agents \
                       before you use them here.";

/// A command that changes files in place.
pub struct InPlaceCommand {
    changer: Arc<ChangeApplier>,
    /// Whether the command was granted to run unsandboxed, and so to change anything.
    pub(crate) is_open: bool,
    /// Whether a sandbox keeps the command from protected paths, such as Toolgate's own state.
    pub(crate) is_confined: bool,
    /// Paths where other commands in place had left something, before this one began, that is reverted when they end, with the
    /// content before that: that content is the baseline, not what the other commands left.
    inherited: BTreeMap<WorkspacePath, Option<FileState>>,
    /// Paths that a mount of the sandbox is over, with device and inode.
    mounted_over: Vec<(WorkspacePath, Option<(u64, u64)>)>,
    /// Hidden files that the command sees as they were committed.
    committed: Vec<Substitute>,
    watched: Mutex<InPlaceState>,
}

#[derive(Default)]
struct InPlaceState {
    /// None when the command has ended.
    snapshot: Option<Snapshot>,
    /// Its changes so far: for each path, the first `before` and the last `after`.
    made: BTreeMap<WorkspacePath, Change>,
}

impl InPlaceCommand {
    /// Takes a snapshot of the roots that the command can change. Protected paths are part of it unless a sandbox
    /// protects them.
    pub(crate) fn begin(
        changer: Arc<ChangeApplier>,
        roots: Vec<usize>,
        spec: &LaunchSpec,
        is_confined: bool,
    ) -> Result<Arc<Self>, ToolError> {
        let change_log = Arc::clone(changer.workspace.log()?);
        // The change lock is held, so no other call changes files meanwhile.
        let _turn = change_log.turn(changer.workspace.files.as_ref(), changer.workspace.hidden_paths.as_ref())?;
        let protected = spec.protected.iter().filter(|_| is_confined);
        let unreachable = spec.hidden.iter().chain(protected).filter(|_| !spec.unsandboxed).cloned();
        let except: BTreeSet<WorkspacePath> =
            unreachable.chain([WorkspacePath::in_workspace(STATE_DIRECTORY)]).collect();
        let mut inherited = BTreeMap::new();
        for other in change_log.watched() {
            other.catch_up(None)?;
            for change in other.changes_to_revert() {
                inherited.entry(change.place).or_insert(change.before);
            }
        }
        let (run, call) = (changer.origin.run.clone(), changer.origin.tool_call_id.clone());
        let scope = SnapshotScope { run, call, roots, except: except.clone(), quota: change_log.contents().quota() };
        let snapshot = Some(Snapshot::take(scope, &change_log.snapshots()?, changer.workspace.files.as_ref())?);
        let watched = Mutex::new(InPlaceState { snapshot, ..InPlaceState::default() });
        let files = changer.workspace.files.as_ref();
        let mounted_over =
            except.iter().filter(|_| is_confined).map(|place| (place.clone(), identity(files, place))).collect();
        let is_mounted = |substitute: &&Substitute| is_confined && substitute.added.is_none();
        let committed = spec.substitutes.iter().filter(is_mounted).cloned().collect();
        let is_open = spec.unsandboxed;
        let in_place = Arc::new(Self { changer, is_open, is_confined, inherited, mounted_over, committed, watched });
        change_log.watch(&in_place);
        Ok(in_place)
    }

    /// Records what the command has changed so far; only at these paths if some are given. The caller holds the change
    /// lock.
    pub(crate) fn catch_up(&self, only: Option<&[WorkspacePath]>) -> Result<(), ToolError> {
        self.record_changes(only, false)
    }

    /// Records changes, and tells other commands that work in place: a change counts once, for whoever recorded it first.
    /// After the final time nothing counts as the command's change any more.
    fn record_changes(&self, only: Option<&[WorkspacePath]>, is_final: bool) -> Result<(), ToolError> {
        let changes = self.seal_changes(only, is_final);
        if !is_final || changes.is_err() {
            self.restore_modes();
        }
        let changes = changes?;
        if changes.is_empty() {
            return Ok(());
        }
        let (workspace, change_log) = (&self.changer.workspace, self.changer.workspace.log()?);
        let id = workspace.clock.id().simple().to_string();
        let own = self.watched().snapshot.as_ref().map(|snapshot| snapshot.name().to_owned());
        let places: Vec<WorkspacePath> = changes.iter().map(|change| change.place.clone()).collect();
        change_log.tell_other_commands(&id, changes, workspace.files.as_ref(), &own.unwrap_or_default())?;
        let is_other = |other: &&Arc<Self>| !std::ptr::eq(Arc::as_ptr(other), self);
        change_log.watched().iter().filter(is_other).try_for_each(|other| other.changed_by_others(&places))
    }

    /// Collects, seals and records changes. Returns those that the workspace still has: of what another call changed since,
    /// its own notice tells.
    fn seal_changes(&self, only: Option<&[WorkspacePath]>, is_final: bool) -> Result<Vec<Change>, ToolError> {
        let (changer, mut watched) = (&self.changer, self.watched());
        let files = changer.workspace.files.as_ref();
        let InPlaceState { snapshot: Some(snapshot), made } = &mut *watched else { return Ok(Vec::new()) };
        let (mut sealed, contents) = (Vec::new(), changer.workspace.log()?.contents());
        snapshot.collect(files, only, contents)?;
        if let Some((time, changes)) = snapshot.seal(changer.workspace.clock.now(), is_final)? {
            let payload = EventPayload::FilesChanging { changes: changes.clone(), made: false };
            changer.recorder.record(&[changer.origin.event(time, payload)])?;
            for change in &changes {
                changer.workspace.reads.wrote(&changer.session, &changer.origin.tool_call_id, change);
                match made.get_mut(&change.place) {
                    Some(known) => known.followed_by(change),
                    None => drop(made.insert(change.place.clone(), change.clone())),
                }
            }
            sealed = snapshot.current(changes);
        }
        snapshot.tidy(contents)?;
        Ok(sealed)
    }

    fn restore_modes(&self) {
        if let Some(snapshot) = &mut self.watched().snapshot {
            snapshot.restore_modes(self.changer.workspace.files.as_ref());
        }
    }

    /// Another call changed these paths; they don't count as changes of the command.
    pub(crate) fn changed_by_others(&self, places: &[WorkspacePath]) -> Result<(), ToolError> {
        let (workspace, mut watched) = (&self.changer.workspace, self.watched());
        let Some(snapshot) = &mut watched.snapshot else { return Ok(()) };
        let (files, contents) = (workspace.files.as_ref(), workspace.log()?.contents());
        snapshot.changed_by_others(places.iter(), files, contents, workspace.clock.now())
    }

    /// Whether it has a snapshot that isn't settled.
    pub(crate) fn is_unsettled(&self) -> bool {
        self.watched().snapshot.is_some()
    }

    /// Ends the command: records everything that it changed, and settles it under the same lock. The snapshot stays
    /// until that is done, for recovery after a kill.
    pub(crate) fn end<T>(
        &self,
        settle: impl FnOnce(&ChangeLock, InPlaceChanges) -> Result<T, ToolError>,
    ) -> Result<T, ToolError> {
        let (change_log, files) = (self.changer.workspace.log()?, self.changer.workspace.files.as_ref());
        if !self.is_confined && !self.is_open && !change_log.is_in_place() {
            return Err(ToolError::new(ErrorCode::IoError, STATE_REMOVED));
        }
        let turn = change_log.turn(files, self.changer.workspace.hidden_paths.as_ref())?;
        self.record_changes(None, true)?;
        let InPlaceState { snapshot, made } = std::mem::take(&mut *self.watched());
        let settled = settle(&turn, InPlaceChanges { net: self.net_changes(&made), own: made });
        if let Some(mut snapshot) = snapshot {
            snapshot.restore_modes(files);
            if settled.is_ok() {
                snapshot.rest();
            }
        }
        settled
    }

    /// What the command has left so far that is reverted when it ends. Not what somebody removed, or changed by a call since;
    /// what can't be looked at, in a directory that keeps its owner out, is taken to be there.
    fn changes_to_revert(&self) -> Vec<Change> {
        if self.is_open {
            return Vec::new();
        }
        let (workspace, net) = (&self.changer.workspace, self.net_changes(&self.watched().made));
        let rejected = workspace.selector.select_in_place(net).quarantined;
        let mut left = Vec::new();
        for (change, _) in rejected {
            let is_left = match workspace.files.node(&change.place, true) {
                Ok(now) => FileState::same(now.map(|node| node.state).as_ref(), change.after.as_ref()),
                Err(_) => true,
            };
            left.extend(is_left.then_some(change));
        }
        left
    }

    /// Its changes, relative to the content before it and before the commands that began earlier.
    fn net_changes(&self, made: &BTreeMap<WorkspacePath, Change>) -> Vec<Change> {
        let net = |(place, change): (&WorkspacePath, &Change)| match self.inherited.get(place) {
            Some(before) => Change { before: before.clone(), ..change.clone() },
            None => change.clone(),
        };
        made.iter().map(net).filter(|change| !change.is_nothing()).collect()
    }

    /// Paths under a mount of the sandbox that were replaced while the command ran, so that the mount no longer hides or
    /// protects them.
    pub(crate) fn replaced_mounts(&self) -> Vec<String> {
        let files = self.changer.workspace.files.as_ref();
        let is_another =
            |(place, was): &&(WorkspacePath, Option<(u64, u64)>)| was.is_some() && *was != identity(files, place);
        self.mounted_over.iter().filter(is_another).map(|(place, _)| files.shown(place)).collect()
    }

    /// Hidden files that git has another version of by now and couldn't replace, because the one from before is mounted there.
    pub(crate) fn not_replaced_by_git(&self) -> Vec<String> {
        let workspace = &self.changer.workspace;
        let files = workspace.files.as_ref();
        let stayed = self.committed.iter().filter(|seen| workspace.selector.committed.has_other_version(seen, files));
        stayed.map(|seen| files.shown(&seen.place)).collect()
    }

    /// Releases the snapshot of a command that never began; the next snapshot can start from it.
    pub fn release_snapshot(&self) {
        self.watched().snapshot.take().into_iter().for_each(Snapshot::rest);
    }

    fn watched(&self) -> MutexGuard<'_, InPlaceState> {
        self.watched.lock()
    }
}

/// What a command changed in place.
pub(crate) struct InPlaceChanges {
    /// Relative to the content before it and before the commands that began earlier: what must not stay is restored to that.
    pub(crate) net: Vec<Change>,
    /// Relative to what was there when it began: what is reported.
    pub(crate) own: BTreeMap<WorkspacePath, Change>,
}

/// Device and inode of the file at a path.
fn identity(files: &dyn Files, place: &WorkspacePath) -> Option<(u64, u64)> {
    files.node(place, false).ok().flatten().map(|node| (node.device, node.number))
}
