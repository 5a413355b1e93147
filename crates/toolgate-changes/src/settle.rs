//! What becomes of a command's changes: each is judged by its place, and what may be is put in place as one change, recorded
//! and undoable like any other. The rest is kept aside and named; nothing else is lost with it. What a command did straight
//! to the workspace is there already: it is recorded, and the rest put back.

mod autoloaded;
mod in_place;
mod selection;

use std::sync::Arc;

pub(crate) use self::autoloaded::as_git_paths;
pub(crate) use self::selection::{ChangeSelection, ChangeSelector};
use crate::change_applier::ChangeApplier;
use crate::change_log::aside;
use crate::commit::diff_of;
use crate::in_place_command::InPlaceCommand;
use crate::workspace_changes::WorkspaceChanges;
use toolgate_contract::{
    ApplyMode, Change, Changes, ErrorCode, LaunchSpec, QuarantinedPath, SettledChanges, StagedChanges, ToolError,
};

/// Paths that a reply names at the most.
const MOST_PATHS: usize = 200;
/// Things kept aside that a reply names at the most.
const MOST_ASIDE: usize = 50;
/// How often it is looked again, when somebody else changes files at the same moment.
const ATTEMPTS: usize = 3;

/// Settles what commands of one call changed.
pub struct ChangeSettler {
    /// Applies what may be applied.
    pub changer: Arc<ChangeApplier>,
}

impl ChangeSettler {
    /// Whether changes wait for the end of their command.
    pub fn stages_changes(&self) -> bool {
        self.workspace().options.overlay && self.is_recorded()
    }

    /// Whether changes are recorded at all, so that they can be undone.
    pub fn is_recorded(&self) -> bool {
        self.workspace().log.is_some()
    }

    /// Takes a snapshot before a command that works in place begins.
    pub fn begin_in_place(&self, spec: &LaunchSpec, has_walls: bool) -> Result<Arc<InPlaceCommand>, ToolError> {
        InPlaceCommand::begin(Arc::clone(&self.changer), self.workspace().options.roots.clone(), spec, has_walls)
    }

    fn workspace(&self) -> &WorkspaceChanges {
        &self.changer.workspace
    }

    /// Settles what a command changed. A fault is told with what is known, since the command has run; but where no walls kept
    /// it from anything in the workspace, not to know what it did is a failure.
    pub fn settle(
        &self,
        staged: Option<Box<dyn StagedChanges>>,
        in_place: Option<Arc<InPlaceCommand>>,
        apply_mode: ApplyMode,
    ) -> Result<SettledChanges, ToolError> {
        let (settled, failed) = match (staged, in_place, apply_mode) {
            (Some(staged), _, ApplyMode::OnCommit) => (self.keep(staged), NOT_IN_PLACE),
            (Some(staged), ..) => (self.land(staged.as_ref()), NOT_IN_PLACE),
            (None, Some(in_place), _) if in_place.has_walls || in_place.is_open => {
                (self.tell(&in_place), NOT_ON_RECORD)
            }
            (None, Some(in_place), _) => return self.tell(&in_place),
            (None, None, _) => (Ok(noted(STRAIGHT.into())), ""),
        };
        Ok(settled.unwrap_or_else(|error| noted(format!("{failed} {error}"))))
    }

    fn land(&self, staged: &dyn StagedChanges) -> Result<SettledChanges, ToolError> {
        let (files, change_log) = (self.workspace().files.as_ref(), self.workspace().log()?);
        let mut attempt = 0;
        let (choice, unspeakable) = loop {
            attempt += 1;
            let differences = staged.differences(files)?;
            let choice = self.workspace().selector.choose(differences.all, staged);
            if choice.chosen.is_empty() {
                break (choice, differences.unspeakable);
            }
            match self.changer.arrange(choice.chosen.clone(), staged) {
                Ok(()) => break (choice, differences.unspeakable),
                Err(error) if error.code == ErrorCode::StaleFile && attempt < ATTEMPTS => {}
                Err(error) => return Err(error),
            }
        };
        staged.touch(files);
        change_log.keep_for_diffs(&choice.chosen, files);
        let mut settled = counted(&choice.chosen);
        settled.notes.extend(choice.notes.iter().take(MOST_ASIDE).cloned());
        settled.notes.extend(lost(change_log.beyond_quota(&choice.chosen)));
        let aside = unspeakable.into_iter().map(|path| QuarantinedPath { path, reason: NOT_TEXT.into() });
        let kept = change_log.set_aside(&self.changer.origin.tool_call_id, staged, &choice);
        settled.notes.extend(kept.as_ref().err().map(ToString::to_string));
        list_quarantined(&mut settled, aside.chain(kept.unwrap_or_default()).collect());
        Ok(settled)
    }

    /// Keeps what a rehearsed command would change, and shows it.
    fn keep(&self, mut staged: Box<dyn StagedChanges>) -> Result<SettledChanges, ToolError> {
        let files = self.workspace().files.as_ref();
        let differences = staged.differences(files)?.all;
        let changes: Vec<Change> = differences.iter().map(|difference| difference.change.clone()).collect();
        let mut settled = counted(&changes);
        settled.diff =
            self.workspace().options.differ.as_deref().map(|differ| diff_of(&changes, staged.as_ref(), files, differ));
        settled.rehearsal = Some(staged.keep(Some(self.changer.run()))?);
        let choice = self.workspace().selector.choose(differences, staged.as_ref());
        list_quarantined(&mut settled, choice.aside.into_iter().map(aside).collect());
        Ok(settled)
    }
}

const STRAIGHT: &str = "It worked straight on the workspace, so undo doesn't cover what it changed.";
const NOT_IN_PLACE: &str = "Nothing of what it changed was put in place.";
const NOT_ON_RECORD: &str = "What it changed couldn't be recorded, so undo doesn't cover it.";
const NOT_TEXT: &str = "its name isn't text, so no tool could reach it";

fn noted(note: String) -> SettledChanges {
    SettledChanges { notes: vec![note], ..SettledChanges::default() }
}

fn lost(count: usize) -> Option<String> {
    let quota = "what they were is more than the quota for undo (`undo.quota_bytes`) keeps";
    (count > 0).then(|| format!("{count} of these can't be taken back: {quota}."))
}

/// Names what was kept aside, as far as a reply does.
fn list_quarantined(settled: &mut SettledChanges, mut kept: Vec<QuarantinedPath>) {
    settled.more_kept_aside = kept.len().saturating_sub(MOST_ASIDE);
    kept.truncate(MOST_ASIDE);
    settled.kept_aside = kept;
}

/// How many there are of each kind, and the first of them by name.
fn counted(changes: &[Change]) -> SettledChanges {
    let mut settled = SettledChanges::default();
    for change in changes {
        let (count, sign) = match (&change.before, &change.after) {
            (None, _) => (&mut settled.created, '+'),
            (Some(_), Some(_)) => (&mut settled.changed, '~'),
            (Some(_), None) => (&mut settled.deleted, '-'),
        };
        *count += 1;
        if settled.paths.len() < MOST_PATHS {
            settled.paths.push(format!("{sign}{}", change.path));
        }
    }
    settled
}
