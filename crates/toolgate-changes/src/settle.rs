//! Settles the changes of a command. Staged changes are judged by path; the allowed ones are applied as one change,
//! recorded and undoable like any other. The others are quarantined and named in the reply. Changes that a command made
//! in place exist already: they are recorded, and those that aren't allowed are reverted.

mod autoloaded;
mod in_place;
mod instructions;
mod selection;

use std::sync::Arc;

pub(crate) use self::autoloaded::{NewContent, as_git_paths};
use self::instructions::instruction_notes;
pub(crate) use self::selection::{ChangeSelection, ChangeSelector};
use crate::build_output::{FoldedChanges, fold_build_output};
use crate::change_applier::ChangeApplier;
use crate::commit::diff_of;
use crate::git::CommittedView;
use crate::in_place_command::InPlaceCommand;
use crate::workspace_changes::WorkspaceChanges;
use toolgate_contract::{
    ApplyMode, Change, Changes, Differences, ErrorCode, Files, LaunchSpec, NamedChanges, QuarantinedPath,
    RestrictedPaths, SettledChanges, StagedChanges, ToolError,
};

/// The largest number of paths that a reply lists.
const MAX_PATHS: usize = 200;
/// The largest number of quarantined paths that a reply lists.
const MAX_QUARANTINED: usize = 50;
/// How often applying is tried, when another process changes files at the same moment.
const ATTEMPTS: usize = 3;

/// Settles the changes of one call's commands.
pub struct ChangeSettler {
    /// Applies the allowed changes.
    pub changer: Arc<ChangeApplier>,
    /// What somebody approved by name, such as a new private key: it is applied.
    pub approved: NamedChanges,
}

impl ChangeSettler {
    /// Whether changes are staged until their command has ended.
    pub fn stages_changes(&self) -> bool {
        self.workspace().options.overlay && self.is_recorded()
    }

    /// Whether changes are recorded at all, so that they can be undone.
    pub fn is_recorded(&self) -> bool {
        self.workspace().log.is_some()
    }

    /// How commands see the paths that policy restricts, given what git has of them anyway.
    pub fn as_seen_by_commands(&self, restricted: RestrictedPaths, view: CommittedView) -> RestrictedPaths {
        let workspace = self.workspace();
        workspace.selector.committed.as_seen_by_commands(restricted, view, workspace.files.as_ref())
    }

    /// Takes a snapshot before a command that works in place begins.
    pub fn begin_in_place(&self, spec: &LaunchSpec, is_confined: bool) -> Result<Arc<InPlaceCommand>, ToolError> {
        InPlaceCommand::begin(Arc::clone(&self.changer), self.workspace().options.roots.clone(), spec, is_confined)
    }

    fn workspace(&self) -> &WorkspaceChanges {
        &self.changer.workspace
    }

    /// Settles the changes of a command. An error becomes a note, since the command has run. But for a command that no
    /// sandbox kept from protected paths, not knowing its changes is a failure.
    pub fn settle(
        &self,
        staged: Option<Box<dyn StagedChanges>>,
        in_place: Option<Arc<InPlaceCommand>>,
        apply_mode: ApplyMode,
    ) -> Result<SettledChanges, ToolError> {
        match (staged, in_place) {
            (staged, _) if apply_mode == ApplyMode::None => self.refuse_staged(staged.as_deref()),
            (Some(staged), _) => Ok(self.settle_staged(staged, apply_mode)),
            (None, Some(in_place)) if in_place.is_confined || in_place.is_open => {
                self.settle_in_place(&in_place).or_else(|error| Ok(noted(format!("{NOT_RECORDED} {error}"))))
            }
            (None, Some(in_place)) => self.settle_in_place(&in_place),
            (None, None) => Ok(noted(NOT_RECORDABLE.into())),
        }
    }

    /// Applies or keeps staged changes. Those that can't be applied now are kept as a rehearsal, so that nothing is lost.
    fn settle_staged(&self, mut staged: Box<dyn StagedChanges>, apply_mode: ApplyMode) -> SettledChanges {
        let settled = match apply_mode {
            ApplyMode::OnCommit => self.keep_rehearsal(staged.as_mut()),
            _ => self.apply_staged(staged.as_ref()),
        };
        let error = match settled {
            Ok(settled) => return settled,
            Err(error) => error,
        };
        match self.keep(staged.as_mut()) {
            Ok(name) => {
                let kept = format!("They are kept as the rehearsal `{name}`: solve that, then `commit` it.");
                SettledChanges { rehearsal: Some(name), ..noted(format!("{NOT_APPLIED} {error} {kept}")) }
            }
            Err(lost) => noted(format!("{NOT_APPLIED} {error} They can't be kept either: {lost}")),
        }
    }

    /// The changes of a command that was to change nothing. None of them is applied.
    fn refuse_staged(&self, staged: Option<&dyn StagedChanges>) -> Result<SettledChanges, ToolError> {
        let Some(staged) = staged else { return Ok(SettledChanges::default()) };
        let Differences { all, unreadable } = staged.differences(self.workspace().files.as_ref())?;
        let changed = all.into_iter().map(|difference| difference.change.path);
        let refused = changed.chain(unreadable.into_iter().map(|change| change.path)).take(MAX_PATHS).collect();
        Ok(SettledChanges { refused, ..SettledChanges::default() })
    }

    fn apply_staged(&self, staged: &dyn StagedChanges) -> Result<SettledChanges, ToolError> {
        let (files, change_log) = (self.workspace().files.as_ref(), self.workspace().log()?);
        let mut attempt = 0;
        let choice = loop {
            attempt += 1;
            let choice = self.workspace().selector.choose(staged.differences(files)?, staged, &self.approved);
            if choice.chosen.is_empty() {
                break choice;
            }
            match self.changer.write_own(&choice.chosen, staged) {
                Ok(()) => break choice,
                Err(error) if error.code == ErrorCode::StaleFile && attempt < ATTEMPTS => {}
                Err(error) => return Err(error),
            }
        };
        let edited = if choice.edits.is_empty() { Ok(Vec::new()) } else { self.changer.make(choice.edits.clone()) };
        let applied = [&choice.chosen[..], edited.as_deref().unwrap_or_default()].concat();
        change_log.keep_for_diffs(&applied, files);
        let mut settled = counted(&applied, files);
        settled.notes.extend(edited.err().map(|error| format!("{NOT_EDITED} {error}")));
        settled.notes.extend(choice.notes.iter().take(MAX_QUARANTINED).cloned());
        settled.notes.extend(lost(change_log.beyond_quota(&applied)));
        let quarantined = change_log.quarantine(&self.changer.origin.tool_call_id, staged, &choice);
        settled.notes.extend(quarantined.as_ref().err().map(ToString::to_string));
        list_quarantined(&mut settled, quarantined.unwrap_or_default());
        Ok(settled)
    }

    /// Keeps staged changes for a later `commit` in this run, with what was approved by name.
    fn keep(&self, staged: &mut dyn StagedChanges) -> Result<String, ToolError> {
        let run = self.changer.run();
        staged.keep(Some(run), &self.workspace().log()?.signed_approval(run, &self.approved))
    }

    /// Stores the staged changes of a rehearsed command, and shows them.
    fn keep_rehearsal(&self, staged: &mut dyn StagedChanges) -> Result<SettledChanges, ToolError> {
        let files = self.workspace().files.as_ref();
        let differences = staged.differences(files)?;
        let changes: Vec<Change> = differences.all.iter().map(|difference| difference.change.clone()).collect();
        let mut settled = counted(&changes, files);
        settled.diff =
            self.workspace().options.differ.as_deref().map(|differ| diff_of(&changes, staged, files, differ));
        settled.rehearsal = Some(self.keep(staged)?);
        let choice = self.workspace().selector.choose(differences, staged, &self.approved);
        list_quarantined(&mut settled, choice.would_be_quarantined());
        Ok(settled)
    }
}

const NOT_RECORDABLE: &str = "It changed files in place, so undo doesn't cover its changes.";
const NOT_APPLIED: &str = "None of its changes were written to the workspace.";
const NOT_EDITED: &str = "The harmless part of an edit of git's configuration wasn't applied.";
const NOT_RECORDED: &str = "Its changes couldn't be recorded, so undo doesn't cover them.";

fn noted(note: String) -> SettledChanges {
    SettledChanges { notes: vec![note], ..SettledChanges::default() }
}

fn lost(count: usize) -> Option<String> {
    let quota = "their previous content exceeds the quota for undo (`undo.quota_bytes`)";
    (count > 0).then(|| format!("{count} of these can't be undone: {quota}."))
}

/// Lists quarantined paths, up to the limit of a reply.
fn list_quarantined(settled: &mut SettledChanges, mut quarantined: Vec<QuarantinedPath>) {
    settled.more_kept_aside = quarantined.len().saturating_sub(MAX_QUARANTINED);
    quarantined.truncate(MAX_QUARANTINED);
    settled.kept_aside = quarantined;
}

/// Counts changes of each kind, and lists the first paths; build output is folded.
fn counted(changes: &[Change], files: &dyn Files) -> SettledChanges {
    let mut settled = SettledChanges::default();
    let FoldedChanges { listed, folded } = fold_build_output(changes, files);
    for directory in &folded {
        settled.created += directory.created;
        settled.changed += directory.changed;
        settled.deleted += directory.deleted;
    }
    settled.folded = folded;
    settled.notes.extend(instruction_notes(listed.iter().copied()));
    for change in listed {
        let (count, sign) = match (&change.before, &change.after) {
            (None, _) => (&mut settled.created, '+'),
            (Some(_), Some(_)) => (&mut settled.changed, '~'),
            (Some(_), None) => (&mut settled.deleted, '-'),
        };
        *count += 1;
        if settled.paths.len() < MAX_PATHS {
            settled.paths.push(format!("{sign}{}", change.path));
        }
    }
    settled
}
