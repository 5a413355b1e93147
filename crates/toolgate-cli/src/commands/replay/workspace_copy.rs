//! The workspace as it was when a run began: a copy, with every later change reverted.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result};
use serde_json::Value;
use tempfile::TempDir;
use toolgate_contract::{
    Access, ApprovalScope, BoxFuture, Change, DIRECTORY_MODE, Durability, EventPayload, FileState, Files,
    WorkspacePath, sha256,
};
use toolgate_journal::{StateDirectory, list_runs, read_events};
use toolgate_runtime::{ApprovalAnswer, ApprovalRequest, Approver};
use toolgate_sandbox::{Roots, copy_workspace};
use toolgate_workspace::{RecordedSession, RunChoice, Workspace, WorkspaceLocation};

use super::past_run::PastRun;
use crate::workspace::{CLI, open_workspace};

/// A copy of the workspace with a gate on it.
pub(super) struct WorkspaceCopy {
    directory: TempDir,
    pub(super) workspace: Workspace,
    /// What couldn't be restored, in sentences.
    pub(super) notes: Vec<String>,
    /// The path of the workspace, and that of the copy.
    paths: (String, String),
}

impl WorkspaceCopy {
    pub(super) fn make(location: &WorkspaceLocation, state: &StateDirectory, past: &PastRun) -> Result<Self> {
        let directory =
            tempfile::Builder::new().prefix("toolgate-replay-").tempdir().context("a temporary directory")?;
        let policy = location.load()?.policy;
        let hides = |path: &WorkspacePath| policy.hides(Access::Read, path);
        copy_workspace(&Roots::open(&location.directory)?, directory.path(), &hides)?;
        let notes = put_back(state, past, &Roots::open(directory.path())?, &hides)?;
        let copy = location.copied_to(directory.path())?;
        let paths = (past.facts.workspace.clone(), copy.directory.display().to_string());
        Ok(Self { directory, workspace: open_workspace(&copy)?, notes, paths })
    }

    /// Begins the run again, under its own id, so that references to it resolve.
    pub(super) fn begin(&self, past: &PastRun) -> Result<RecordedSession> {
        let choice = RunChoice { run: None, session: past.facts.session.clone(), front_end: "replay" };
        let recorded = self.workspace.begin_as(&past.run, &choice)?;
        let answers = past.calls.iter().filter_map(|call| Some((call.id.clone(), call.approved?))).collect();
        let mut session = recorded.session.approved_by(Arc::new(PastApprover(answers)));
        // Waits for the end of a command, if the recorded session did.
        session.waits = past.facts.front_end == CLI;
        Ok(RecordedSession { session, run: recorded.run })
    }

    /// What the repeated call changed.
    pub(super) fn changed(&self, recorded: &RecordedSession, call: &str) -> Result<BTreeMap<String, Option<String>>> {
        let mut changed = BTreeMap::new();
        for recorded in read_events(recorded.run.path())? {
            let event = recorded?.event;
            if let (EventPayload::FilesChanging { changes, .. }, true) =
                (event.payload, event.tool_call_id.as_deref() == Some(call))
            {
                changed.extend(changes.into_iter().map(|change| (change.path, change.after.map(|after| after.sha256))));
            }
        }
        Ok(changed)
    }

    /// Replaces paths in the workspace by paths in the copy.
    pub(super) fn to_copy(&self, value: &Value) -> Value {
        replaced(value, &self.paths.0, &self.paths.1)
    }

    /// Replaces paths in the copy by paths in the workspace.
    pub(super) fn to_original(&self, value: &Value) -> Value {
        replaced(value, &self.paths.1, &self.paths.0)
    }

    /// Keeps the copy.
    pub(super) fn keep(self) -> PathBuf {
        self.directory.keep()
    }
}

fn replaced(value: &Value, from: &str, to: &str) -> Value {
    match value {
        Value::String(text) => Value::String(text.replace(from, to)),
        Value::Array(items) => items.iter().map(|item| replaced(item, from, to)).collect(),
        Value::Object(fields) => {
            Value::Object(fields.iter().map(|(name, value)| (name.clone(), replaced(value, from, to))).collect())
        }
        other => other.clone(),
    }
}

/// Reverts, in the copy, what was changed since the run began: the first `before` of each path is its content then.
fn put_back(
    state: &StateDirectory,
    past: &PastRun,
    copy: &Roots,
    hides: &dyn Fn(&WorkspacePath) -> bool,
) -> Result<Vec<String>> {
    let contents = state.contents(Durability::Os)?;
    let (mut back, mut notes) = (BTreeMap::new(), Vec::new());
    for change in first_changes(state, past)?.into_values() {
        if change.place.root != 0 || hides(&change.place) {
            notes.push(format!("`{}` isn't in the copy.", change.path));
            continue;
        }
        let has_bytes = |then: &&FileState| then.is_file() || then.is_link();
        if change.before.as_ref().filter(has_bytes).is_some_and(|then| !contents.has(then)) {
            notes.push(format!(
                "The old content of `{}` is no longer stored, so the copy has the current one.",
                change.path
            ));
            continue;
        }
        let now = copy.node(&change.place, true)?.map(|node| node.state);
        if now != change.before {
            back.insert(change.place.clone(), Change { before: now, after: change.before.clone(), ..change });
        }
    }
    add_missing_directories(&mut back, copy)?;
    copy.write_changes(&back.into_values().collect::<Vec<_>>(), &contents, "replay")?;
    Ok(notes)
}

/// Adds the directories that restored files need and that were removed since.
fn add_missing_directories(back: &mut BTreeMap<WorkspacePath, Change>, copy: &Roots) -> Result<()> {
    let comes = back.values().filter(|change| change.after.is_some()).map(|change| change.place.path.clone());
    let directories: BTreeSet<String> = comes.flat_map(|path| directories_of(&path)).collect();
    for path in directories {
        let place = WorkspacePath::in_workspace(&path);
        if !back.contains_key(&place) && copy.node(&place, false)?.is_none() {
            let after = FileState::new(sha256(""), 0, DIRECTORY_MODE | 0o755);
            back.insert(place.clone(), Change { path, place, before: None, after: Some(after) });
        }
    }
    Ok(())
}

/// Every parent directory of a path.
fn directories_of(path: &str) -> Vec<String> {
    path.match_indices('/').map(|(end, _)| path[..end].to_owned()).collect()
}

/// The first change of every file since the run began, in any run.
fn first_changes(state: &StateDirectory, past: &PastRun) -> Result<BTreeMap<WorkspacePath, Change>> {
    let mut changes = Vec::new();
    let runs: BTreeSet<String> = list_runs(state.path())?.into_iter().collect();
    for run in runs {
        for recorded in read_events(&state.run_dir(&run)?)?.filter_map(Result::ok) {
            if let (EventPayload::FilesChanging { changes: more, .. }, true) =
                (recorded.event.payload, recorded.event.time >= past.started)
            {
                changes.push((recorded.event.time, more));
            }
        }
    }
    changes.sort_by_key(|(time, _)| *time);
    let mut first = BTreeMap::new();
    for change in changes.into_iter().flat_map(|(_, changes)| changes) {
        first.entry(change.place.clone()).or_insert(change);
    }
    Ok(first)
}

/// Answers approvals as the person did in the recorded run.
struct PastApprover(BTreeMap<String, bool>);

impl Approver for PastApprover {
    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, ApprovalAnswer> {
        let by = "the recorded approval".to_owned();
        let answer = match self.0.get(&request.tool_call_id) {
            Some(true) => ApprovalAnswer::Granted { scope: ApprovalScope::Call, by },
            Some(false) => ApprovalAnswer::Denied { by, reason: None },
            None => ApprovalAnswer::Nobody,
        };
        Box::pin(std::future::ready(answer))
    }
}
