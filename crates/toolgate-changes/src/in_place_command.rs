//! A command that works straight on the workspace, beside others: what it changes is known by comparing the workspace with
//! a snapshot that was taken before it began. Before another call changes a place, what the command made of it until then
//! goes on record first, so that the record has everything in its order.

use parking_lot::{Mutex, MutexGuard};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use toolgate_contract::{
    Change, ErrorCode, EventPayload, FileState, Files, LaunchSpec, STATE_DIRECTORY, ToolError, WorkspacePath,
};
use toolgate_journal::{ChangeLock, Snapshot, SnapshotScope};

use crate::change_applier::ChangeApplier;

const SPOILED: &str = "The command removed or moved Toolgate's own state (`.toolgate`), so what it changed isn't known and can't \
                       be put back. Look at git's hooks and configuration, `.envrc` and the settings of editors and agents \
                       before you use them here.";

/// A command that works straight on the workspace.
pub struct InPlaceCommand {
    changer: Arc<ChangeApplier>,
    /// Whether somebody granted it to work with no walls, and so to change what it likes.
    pub(crate) is_open: bool,
    /// Whether walls keep it from what nobody may change, Toolgate's own state among it.
    pub(crate) has_walls: bool,
    /// What others who work beside it had changed already when it began, and what was there before them: that counts, not what
    /// they left for it to find.
    inherited: BTreeMap<WorkspacePath, Option<FileState>>,
    /// What walls stand before, and which files these were.
    covered: Vec<(WorkspacePath, Option<(u64, u64)>)>,
    watched: Mutex<InPlaceState>,
}

#[derive(Default)]
struct InPlaceState {
    /// None when it has ended.
    snapshot: Option<Snapshot>,
    /// What it changed so far: each place's first before and last after.
    made: BTreeMap<WorkspacePath, Change>,
}

impl InPlaceCommand {
    /// Takes a snapshot of the roots that the command can change. What is protected is part of it unless walls stand there.
    pub(crate) fn begin(
        changer: Arc<ChangeApplier>,
        roots: Vec<usize>,
        order: &LaunchSpec,
        has_walls: bool,
    ) -> Result<Arc<Self>, ToolError> {
        let change_log = Arc::clone(changer.workspace.log()?);
        // Nobody changes files meanwhile.
        let _turn = change_log.turn(changer.workspace.files.as_ref(), changer.workspace.hidden_paths.as_ref())?;
        let protected = order.protected.iter().filter(|_| has_walls);
        let out_of_reach = order.hidden.iter().chain(protected).filter(|_| !order.unsandboxed).cloned();
        let except: BTreeSet<WorkspacePath> =
            out_of_reach.chain([WorkspacePath::in_workspace(STATE_DIRECTORY)]).collect();
        let mut inherited = BTreeMap::new();
        for other in change_log.watched() {
            other.catch_up(None)?;
            for (place, change) in &other.watched().made {
                let first = other.inherited.get(place).unwrap_or(&change.before);
                inherited.entry(place.clone()).or_insert_with(|| first.clone());
            }
        }
        let (run, call) = (changer.origin.run.clone(), changer.origin.tool_call_id.clone());
        let scope = SnapshotScope { run, call, roots, except: except.clone(), quota: change_log.contents().quota() };
        let snapshot = Some(change_log.snapshots()?.take(scope, changer.workspace.files.as_ref())?);
        let watched = Mutex::new(InPlaceState { snapshot, ..InPlaceState::default() });
        let files = changer.workspace.files.as_ref();
        let covered = except.iter().filter(|_| has_walls).map(|place| (place.clone(), which(files, place))).collect();
        let in_place = Arc::new(Self { changer, is_open: order.unsandboxed, has_walls, inherited, covered, watched });
        change_log.watch(&in_place);
        Ok(in_place)
    }

    /// Puts on record what it changed until now; only at these places if some are given. Whoever asks has the turn.
    pub(crate) fn catch_up(&self, only: Option<&[WorkspacePath]>) -> Result<(), ToolError> {
        let (changer, mut watched) = (&self.changer, self.watched());
        let files = changer.workspace.files.as_ref();
        let InPlaceState { snapshot: Some(snapshot), made } = &mut *watched else { return Ok(()) };
        let changes = snapshot.changes(files, only)?;
        if changes.is_empty() {
            return Ok(());
        }
        let contents = changer.workspace.log()?.contents();
        snapshot.store_previous_contents(&changes, contents)?;
        let payload = EventPayload::FilesChanging { changes: changes.clone() };
        changer.recorder.record(&[changer.origin.event(changer.workspace.clock.now(), payload)])?;
        snapshot.go_on(&changes, contents, files)?;
        for change in changes {
            changer.workspace.reads.wrote(&changer.session, &changer.origin.tool_call_id, &change);
            match made.get_mut(&change.place) {
                Some(known) => known.followed_by(&change),
                None => drop(made.insert(change.place.clone(), change)),
            }
        }
        Ok(())
    }

    /// Another call changed these places; that wasn't the command.
    pub(crate) fn moved_on(&self, places: &[WorkspacePath]) -> Result<(), ToolError> {
        let mut watched = self.watched();
        let Some(snapshot) = &mut watched.snapshot else { return Ok(()) };
        // Directories come and go with what is in them.
        let parents = places.iter().flat_map(|place| {
            let parent = |(at, _)| WorkspacePath { root: place.root, path: place.path[..at].to_owned() };
            place.path.match_indices('/').map(parent)
        });
        let all: BTreeSet<WorkspacePath> = parents.chain(places.iter().cloned()).collect();
        snapshot.refresh(all.iter(), self.changer.workspace.files.as_ref())
    }

    /// It has ended. Everything that it changed is on record, and is settled in the same turn, with what it made under names
    /// that aren't text, which no undo could reach. Until that is done the snapshot stays, for whoever goes on after a kill.
    pub(crate) fn end<T>(
        &self,
        settle: impl FnOnce(&ChangeLock, Vec<Change>, Vec<String>) -> Result<T, ToolError>,
    ) -> Result<T, ToolError> {
        let (change_log, files) = (self.changer.workspace.log()?, self.changer.workspace.files.as_ref());
        if !self.has_walls && !self.is_open && !change_log.is_in_place() {
            return Err(ToolError::new(ErrorCode::IoError, SPOILED));
        }
        let turn = change_log.turn(files, self.changer.workspace.hidden_paths.as_ref())?;
        self.catch_up(None)?;
        let InPlaceState { snapshot, made } = std::mem::take(&mut *self.watched());
        let unspeakable = snapshot.as_ref().map(|snapshot| snapshot.unspeakable(files)).unwrap_or_default();
        let settled = settle(&turn, self.really_changed(made), unspeakable)?;
        snapshot.into_iter().for_each(Snapshot::rest);
        Ok(settled)
    }

    /// What it made, with what was there before it and before those who had begun earlier.
    fn really_changed(&self, made: BTreeMap<WorkspacePath, Change>) -> Vec<Change> {
        let really = |(place, change): (WorkspacePath, Change)| match self.inherited.get(&place) {
            Some(before) => Change { before: before.clone(), ..change },
            None => change,
        };
        made.into_iter().map(really).filter(|change| change.before != change.after).collect()
    }

    /// Places that somebody replaced while it ran: with that, the wall before them fell.
    pub(crate) fn replaced_mounts(&self) -> Vec<String> {
        let files = self.changer.workspace.files.as_ref();
        let is_another =
            |(place, was): &&(WorkspacePath, Option<(u64, u64)>)| was.is_some() && *was != which(files, place);
        self.covered.iter().filter(is_another).map(|(place, _)| files.shown(place)).collect()
    }

    /// It never began.
    pub fn let_go(&self) {
        self.watched().snapshot.take().into_iter().for_each(Snapshot::rest);
    }

    fn watched(&self) -> MutexGuard<'_, InPlaceState> {
        self.watched.lock()
    }
}

/// Which file or directory is at a place.
fn which(files: &dyn Files, place: &WorkspacePath) -> Option<(u64, u64)> {
    files.node(place, false).ok().flatten().map(|node| (node.device, node.number))
}
