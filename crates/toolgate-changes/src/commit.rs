//! The tool `commit`: applies the staged changes of a rehearsed command, all or none. It is a tool like any other:
//! policy judges each path as an effect, a person is shown the diff, and `undo` undoes it. Changes that would be
//! quarantined after the command itself are quarantined here too.

use std::sync::Arc;

use serde_json::{Value, json};
use toolgate_contract::{
    Access, AnyTool, BoxFuture, Change, Differ, Effect, ErrorCode, FileState, Files, Hands, PreparedCall, Preview,
    Rehearsals, StagedChanges, ToolError, schemars,
};

use toolgate_policy::{autoloaded, autoloaded_beneath};

use crate::restore_tool::{RestoreTool, tool};
use crate::settle::ChangeSelection;
use crate::workspace_changes::WorkspaceChanges;

/// Larger files are named in a diff but not shown.
const MAX_FILE_SHOWN: u64 = 1 << 20;
/// The largest size of a diff, in bytes.
const MAX_DIFF: usize = 1 << 20;

/// Applies the staged changes of a rehearsal.
pub(crate) struct Commit {
    pub(crate) rehearsals: Arc<dyn Rehearsals>,
    pub(crate) workspace: Arc<WorkspaceChanges>,
}

/// Which rehearsal to commit.
#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Args {
    /// The handle that the rehearsal gave, as `changes.rehearsal`.
    rehearsal: String,
}

impl Commit {
    /// The tool.
    pub(crate) fn tool(self) -> Arc<dyn AnyTool> {
        tool(self)
    }
}

impl RestoreTool for Commit {
    type Args = Args;
    const NAME: &'static str = "commit";
    const DESCRIPTION: &'static str = "Apply the changes of a rehearsed command to the workspace: exactly those that the \
                                       rehearsal showed, all or none, except those listed as quarantined. A \
                                       rehearsal can be committed once, in the run that made it. `undo` reverts it.";

    fn answer() -> Value {
        json!({
            "type": "object",
            "properties": {
                "committed": { "type": "array", "items": { "type": "string" } },
                "kept_aside": { "type": "array", "items": { "type": "object" } },
            },
        })
    }

    /// Opens the staged changes, if they still apply to what the rehearsal showed.
    fn open(&self, args: Args) -> Result<Box<dyn PreparedCall>, ToolError> {
        let staged = self.rehearsals.open(&args.rehearsal)?;
        let workspace = Arc::clone(&self.workspace);
        let differences = staged.differences(workspace.files.as_ref())?;
        if let Some(stale) = differences.all.iter().find(|difference| difference.is_stale) {
            let message = format!("`{}` was changed since the rehearsal.", stale.change.path);
            return Err(ToolError::new(ErrorCode::StaleFile, message).with_hint("Rehearse the command again."));
        }
        let approved = workspace.approved_in_rehearsal(staged.as_ref());
        let choice = workspace.selector.choose(differences, staged.as_ref(), &approved);
        Ok(Box::new(PreparedCommit { staged, choice, workspace }))
    }
}

/// A rehearsal that was opened and waits to be applied.
struct PreparedCommit {
    staged: Box<dyn StagedChanges>,
    choice: ChangeSelection,
    workspace: Arc<WorkspaceChanges>,
}

impl PreparedCall for PreparedCommit {
    fn effects(&self) -> Vec<Effect> {
        let is_link = |state: &Option<FileState>| state.as_ref().is_some_and(FileState::is_link);
        let effects = |change: &Change| {
            let access = if change.after.is_some() { Access::Write } else { Access::Delete };
            let path = &change.place.path;
            let is_autoloaded = autoloaded(path).is_some() || autoloaded_beneath(path).is_some();
            if is_autoloaded
                || self.choice.of_git.contains(&change.place)
                || self.workspace.hidden_paths.hides(access, &change.place)
            {
                // The files of a new git repository were checked by the selection.
                return vec![Effect::Restore { path: change.path.clone(), access }];
            }
            let write = change.after.as_ref().map(|_| Effect::write(&change.path));
            // A symbolic link is replaced by name, whatever it points to.
            let by_name = change.after.is_none() || is_link(&change.before);
            write.into_iter().chain(by_name.then(|| Effect::delete(&change.path))).collect()
        };
        // What is left of these edits was checked by the selection.
        let edited = self.choice.edits.iter().map(|edit| self.workspace.files.shown(&edit.place));
        let edits = edited.map(|path| Effect::Restore { path, access: Access::Write });
        self.choice.chosen.iter().flat_map(effects).chain(edits).collect()
    }

    fn preview(&self, _hands: &dyn Hands) -> Result<Option<Preview>, ToolError> {
        let (staged, files) = (self.staged.as_ref(), self.workspace.files.as_ref());
        let differ = self.workspace.options.differ.as_deref();
        Ok(differ.map(|differ| Preview { diff: diff_of(&self.choice.chosen, staged, files, differ) }))
    }

    fn run<'a>(self: Box<Self>, hands: &'a dyn Hands) -> BoxFuture<'a, Result<Value, ToolError>> {
        Box::pin(std::future::ready(self.apply(hands)))
    }
}

impl PreparedCommit {
    fn apply(mut self, hands: &dyn Hands) -> Result<Value, ToolError> {
        if self.staged.owner().is_some_and(|owner| owner != hands.run()) {
            let message = "That rehearsal was made in another run, and can be committed only there.";
            return Err(ToolError::new(ErrorCode::NotFound, message).with_hint("Rehearse the command again."));
        }
        let chosen = std::mem::take(&mut self.choice.chosen);
        let (files, change_log) = (self.workspace.files.as_ref(), self.workspace.log.as_deref());
        if !chosen.is_empty() {
            hands.write_changes(chosen.clone(), self.staged.as_ref())?;
        }
        let edits = std::mem::take(&mut self.choice.edits);
        let edited: Vec<String> = edits.iter().map(|edit| files.shown(&edit.place)).collect();
        if !edits.is_empty() {
            hands.change(edits)?;
        }
        if let Some(change_log) = change_log {
            change_log.keep_for_diffs(&chosen, files);
        }
        let committed: Vec<String> = chosen.into_iter().map(|change| change.path).chain(edited).collect();
        let quarantined =
            change_log.map(|change_log| change_log.quarantine(hands.call(), self.staged.as_ref(), &self.choice));
        let quarantined = quarantined.transpose()?.unwrap_or_default();
        self.staged.discard();
        Ok(json!({ "committed": committed, "kept_aside": quarantined }))
    }
}

/// Staged changes as one diff.
pub(crate) fn diff_of(
    changes: &[Change],
    staged: &dyn StagedChanges,
    files: &dyn Files,
    differ: &dyn Differ,
) -> String {
    let mut text = String::new();
    for (number, change) in changes.iter().enumerate() {
        if text.len() > MAX_DIFF {
            text.push_str(&format!("… and {} more\n", changes.len() - number));
            break;
        }
        let before = files.content(&change.place, MAX_FILE_SHOWN).ok().flatten();
        let after = staged.content(&change.place, MAX_FILE_SHOWN).ok().flatten();
        text.push_str(&differ.diff(change, before.as_ref(), after.as_ref()));
    }
    text
}
