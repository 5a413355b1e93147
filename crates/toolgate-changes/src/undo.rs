//! The tool `undo`: undoes the changes of a call, a turn or a run. It is a tool like any other, so an undo is judged,
//! recorded and can itself be undone. A file that was changed again since is left alone.

use std::collections::BTreeSet;
use std::collections::btree_map::{BTreeMap, Entry};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use toolgate_contract::{
    Access, AnyTool, BoxFuture, Change, DIRECTORY_MODE, Effect, ErrorCode, Event, EventPayload, FileState, Hands,
    PIPE_MODE, PreparedCall, Preview, ToolError, WorkspacePath, schemars,
};
use toolgate_journal::{BlobStore, SigningKey, Verification, list_runs, read_events, verify};

use crate::git::{GitLayout, RepositoryUndo};
use crate::restore_tool::{RestoreTool, tool};

/// Undoes changes.
pub struct Undo {
    state_dir: PathBuf,
    /// The directories that workspace paths are in; the workspace comes first.
    roots: Vec<PathBuf>,
    contents: Arc<BlobStore>,
    key: Option<SigningKey>,
}

/// Which changes to undo.
#[derive(Debug, Clone, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Args {
    /// Only this call's changes.
    #[serde(default)]
    call: Option<String>,
    /// This run's changes; with `turn`, only that turn's.
    #[serde(default)]
    run: Option<String>,
    /// A turn of the run.
    #[serde(default)]
    turn: Option<u64>,
    /// Only this agent's; every agent numbers its own turns.
    #[serde(default)]
    agent: Option<String>,
}

impl Undo {
    /// The tool, which finds changes in the runs of this state directory and file contents in this store. With the key
    /// that signs records it can tell which changes were really made through this gate.
    pub fn tool(
        state_dir: impl Into<PathBuf>,
        roots: Vec<PathBuf>,
        contents: Arc<BlobStore>,
        key: Option<SigningKey>,
    ) -> Arc<dyn AnyTool> {
        tool(Self { state_dir: state_dir.into(), roots, contents, key })
    }

    /// Each file's first before and last after, over everything that the arguments name.
    fn changes(&self, args: &Args) -> Result<Vec<UndoableChange>, ToolError> {
        let wanted = |event: &Event| {
            args.call.as_ref().is_none_or(|call| event.tool_call_id.as_ref() == Some(call))
                && args.turn.is_none_or(|turn| event.turn == Some(turn))
                && args.agent.as_ref().is_none_or(|agent| event.trace_id.as_ref() == Some(agent))
        };
        let runs = match (&args.run, &args.call) {
            (Some(run), _) => vec![run.clone()],
            (None, Some(_)) => list_runs(&self.state_dir)?,
            (None, None) => {
                return Err(ToolError::invalid_args(
                    "Name what to undo: `call`, or `run` with or without `turn` and `agent`.",
                ));
            }
        };
        let mut files: BTreeMap<WorkspacePath, UndoableChange> = BTreeMap::new();
        for run in runs {
            let directory = self.state_dir.join("runs").join(&run);
            let mut proven = None;
            for recorded in read_events(&directory)? {
                let event = recorded.map_err(|error| ToolError::io("The record can't be read", &error))?.event;
                let EventPayload::FilesChanging { changes, .. } = &event.payload else { continue };
                for change in changes.iter().filter(|_| wanted(&event)) {
                    let is_proven = *proven.get_or_insert_with(|| self.is_proven(&directory));
                    fold(&mut files, change, is_proven);
                }
            }
        }
        let changed: Vec<UndoableChange> =
            files.into_values().filter(|UndoableChange { change, .. }| !change.is_nothing()).collect();
        if changed.is_empty() {
            return Err(ToolError::new(ErrorCode::NotFound, "There are no changes of that call, turn or run.")
                .with_hint("`toolgate changes` shows what can be undone."));
        }
        Ok(changed)
    }

    /// Whether a run's hash chain is intact and signed with our key. A record that came with a repository isn't.
    fn is_proven(&self, run: &Path) -> bool {
        let verified = self.key.as_ref().map(|key| verify(run, Some(key)));
        matches!(verified, Some(Ok(Verification::Ok { signed: true, .. })))
    }
}

/// A change found in the record.
struct UndoableChange {
    change: Change,
    /// Whether the change was certainly made through this gate.
    is_proven: bool,
}

/// Merges a later change of a file into the known one.
fn fold(files: &mut BTreeMap<WorkspacePath, UndoableChange>, change: &Change, is_proven: bool) {
    match files.get_mut(&change.place) {
        Some(known) => {
            known.change.followed_by(change);
            known.is_proven &= is_proven;
        }
        None => drop(files.insert(change.place.clone(), UndoableChange { change: change.clone(), is_proven })),
    }
}

impl RestoreTool for Undo {
    type Args = Args;
    const NAME: &'static str = "undo";
    const DESCRIPTION: &'static str = "Undo the file changes of a call, a turn or an entire run. Files that were \
                                       changed again since are left alone and named. A git repository goes back as \
                                       a whole or not at all.";

    fn answer() -> Value {
        json!({
            "type": "object",
            "properties": {
                "undone": { "type": "array", "items": { "type": "string" } },
                "refused": { "type": "array", "items": { "type": "object" } },
                "kept_objects": { "type": "integer" },
            },
        })
    }

    fn open(&self, args: Args) -> Result<Box<dyn PreparedCall>, ToolError> {
        let (found, roots) = (self.changes(&args)?, self.roots.clone());
        Ok(Box::new(PreparedUndo { found, roots, contents: Arc::clone(&self.contents) }))
    }
}

/// Changes that were found and wait to be undone.
struct PreparedUndo {
    found: Vec<UndoableChange>,
    roots: Vec<PathBuf>,
    contents: Arc<BlobStore>,
}

/// The access that undoing a change needs.
fn access_of(change: &Change) -> Access {
    if change.before.is_some() { Access::Write } else { Access::Delete }
}

impl PreparedCall for PreparedUndo {
    fn effects(&self) -> Vec<Effect> {
        let effects = |UndoableChange { change, is_proven }: &UndoableChange| {
            let path = &change.path;
            if *is_proven {
                return vec![Effect::Restore { path: path.clone(), access: access_of(change) }];
            }
            let back = change.before.as_ref().map(|_| Effect::write(path));
            // A symbolic link is removed by name, whatever replaces it.
            let is_link = change.after.as_ref().is_some_and(FileState::is_link);
            let away = (back.is_none() || is_link).then(|| Effect::delete(path));
            [Effect::read(path)].into_iter().chain(back).chain(away).collect()
        };
        self.found.iter().flat_map(effects).collect()
    }

    fn preview(&self, _hands: &dyn Hands) -> Result<Option<Preview>, ToolError> {
        let line = |change: &Change| match &change.before {
            Some(_) => format!(" {} as it was before\n", change.path),
            None => format!("-{}\n", change.path),
        };
        Ok(Some(Preview { diff: self.found.iter().map(|found| line(&found.change)).collect() }))
    }

    fn run<'a>(self: Box<Self>, hands: &'a dyn Hands) -> BoxFuture<'a, Result<Value, ToolError>> {
        let opened = self.open_closed_directories(hands);
        let undone = self.undo(hands);
        opened.iter().rev().for_each(|directory| hands.restore_mode(directory));
        Box::pin(std::future::ready(undone))
    }
}

impl PreparedUndo {
    /// Makes directories accessible that the change left closed to their owner: the owner undoes what is in them.
    fn open_closed_directories(&self, hands: &dyn Hands) -> Vec<WorkspacePath> {
        let is_closed = |state: &FileState| state.is_directory() && state.permissions() & 0o700 != 0o700;
        let closed = self.found.iter().filter(|found| found.change.after.as_ref().is_some_and(is_closed));
        let mut directories: Vec<WorkspacePath> = closed.map(|found| found.change.place.clone()).collect();
        // Outermost first.
        directories.sort();
        directories.retain(|directory| hands.suspend_mode(directory).is_ok());
        directories
    }

    fn undo(&self, hands: &dyn Hands) -> Result<Value, ToolError> {
        let mut plan = UndoPlan::default();
        let layout = GitLayout::of(self.found.iter().map(|found| &found.change.place));
        let mut repositories: BTreeMap<&WorkspacePath, Vec<&Change>> = BTreeMap::new();
        let mut gone_directories = Vec::new();
        for UndoableChange { change, .. } in &self.found {
            if let Some(directory) = layout.directory_of(&change.place) {
                repositories.entry(directory).or_default().push(change);
                continue;
            }
            match self.inverse(change, hands) {
                Err(_) if was_directory(change) && hands.state_at(&change.place).is_ok_and(|now| now.is_none()) => {
                    gone_directories.push(change);
                }
                inverse => plan.add(&change.path, inverse.map(|back| vec![back])),
            }
        }
        for (directory, changes) in repositories {
            let inverse = |change: &Change| self.inverse(change, hands);
            let path = self.roots.get(directory.root).map(|root| directory.beneath(root)).unwrap_or_default();
            let repository = RepositoryUndo { directory, path, changes, contents: &self.contents, hands };
            let undone = repository.inverse(&inverse);
            plan.kept_objects += undone.as_ref().map_or(0, |undone| undone.kept_objects);
            plan.add(&hands.shown(directory), undone.map(|undone| undone.back));
        }
        plan.restore_directories(gone_directories);
        plan.keep_replaced_directories(hands)?;
        plan.keep_filled_directories(hands)?;
        plan.keep_shared_files(hands)?;
        plan.carry_out(hands, self.contents.as_ref())
    }

    /// The change that undoes `change`, if the file is still as the change left it.
    fn inverse(&self, change: &Change, hands: &dyn Hands) -> Result<Change, ToolError> {
        let place = hands.target(access_of(change), &change.path)?;
        if place != change.place {
            let message = format!("`{}` leads to another place by now, through a link.", change.path);
            return Err(ToolError::new(ErrorCode::StaleFile, message));
        }
        let now = hands.state_at(&place)?;
        if !FileState::same(now.as_ref(), change.after.as_ref()) {
            return Err(changed_since(&change.path));
        }
        match &change.before {
            Some(before) if !change.is_metadata_only() => self.check(&change.path, before)?,
            _ => {}
        }
        let after = restored(change, now.as_ref()).map_err(|what| {
            ToolError::new(ErrorCode::StaleFile, format!("The {what} of `{}` has changed since.", change.path))
        })?;
        // A look doesn't tell attributes: those that the change gave are taken to be there.
        let given = change.after.as_ref().and_then(|after| after.attributes.clone());
        let now = now.map(|now| FileState { attributes: given, ..now });
        Ok(Change { path: change.path.clone(), place, before: now, after })
    }

    /// Checks that the previous content is available.
    fn check(&self, path: &str, state: &FileState) -> Result<(), ToolError> {
        let kind = state.kind();
        if [DIRECTORY_MODE, PIPE_MODE].contains(&kind)
            || (state.is_file() || state.is_link()) && self.contents.has(state)
        {
            return Ok(());
        }
        let reason = match state.is_file() || state.is_link() {
            true => format!(
                "The previous content of `{path}` was evicted to keep the store within its quota (`undo.quota_bytes`)."
            ),
            false => format!("`{path}` was a socket or device, which can't be restored."),
        };
        Err(ToolError::new(ErrorCode::NotFound, reason))
    }
}

/// The state to restore, where the content is still as the change left it. Permission bits that somebody set since are kept.
/// The error says what somebody changed, where the change was of nothing else.
fn restored(change: &Change, now: Option<&FileState>) -> Result<Option<FileState>, &'static str> {
    let (Some(before), Some(after), Some(now)) = (&change.before, &change.after, now) else {
        return Ok(change.before.clone());
    };
    let is_mode_kept = before.kind() != after.kind() || now.mode == after.mode;
    if before.is(after) && !is_mode_kept {
        return Err("mode");
    }
    if before.is(after) && before.mode == after.mode && now.differs_from(after) {
        return Err("modification time");
    }
    Ok(Some(FileState { mode: if is_mode_kept { before.mode } else { now.mode }, ..before.clone() }))
}

fn was_directory(change: &Change) -> bool {
    change.before.as_ref().is_some_and(FileState::is_directory)
}

fn changed_since(path: &str) -> ToolError {
    ToolError::new(ErrorCode::StaleFile, format!("`{path}` has changed since."))
}

fn filled(directory: &WorkspacePath, hands: &dyn Hands) -> ToolError {
    let message = format!("`{}` holds something else by now, so it stays.", hands.shown(directory));
    ToolError::new(ErrorCode::StaleFile, message)
}

fn shared(path: &str) -> ToolError {
    let message = format!("`{path}` has other names (hard links), for which its mode or time would change, too.");
    ToolError::new(ErrorCode::StaleFile, message)
}

fn replaced_by_now(directory: &WorkspacePath, hands: &dyn Hands) -> ToolError {
    let message = format!("`{}` isn't a directory by now, so nothing goes back into it.", hands.shown(directory));
    ToolError::new(ErrorCode::StaleFile, message)
}

/// What is undone and what isn't.
#[derive(Default)]
struct UndoPlan {
    back: Vec<Change>,
    refused: Vec<Value>,
    /// Objects that undone changes had added to git repositories, and that stay.
    kept_objects: usize,
}

impl UndoPlan {
    fn add(&mut self, path: &str, inverse: Result<Vec<Change>, ToolError>) {
        match inverse {
            Ok(changes) => self.back.extend(changes),
            Err(error) => self.refused.push(json!({ "path": path, "code": error.code, "reason": error.message })),
        }
    }

    /// Directories in whose place there was something else, and where there is nothing now. One that something goes back into
    /// is there again, as it was.
    fn restore_directories(&mut self, gone: Vec<&Change>) {
        for change in gone {
            let goes_into = |back: &Change| back.after.is_some() && change.place.covers(&back.place);
            let restored = Change { before: None, after: change.before.clone(), ..change.clone() };
            let inverse = match self.back.iter().any(goes_into) {
                true => Ok(vec![restored]),
                false => Err(changed_since(&change.path)),
            };
            self.add(&change.path, inverse);
        }
    }

    /// Where somebody replaced a directory by something else, nothing goes back into it.
    fn keep_replaced_directories(&mut self, hands: &dyn Hands) -> Result<(), ToolError> {
        let comes_back = |change: &&Change| change.after.as_ref().is_some_and(FileState::is_directory);
        let restored: BTreeSet<WorkspacePath> =
            self.back.iter().filter(comes_back).map(|change| change.place.clone()).collect();
        let mut known: BTreeMap<Option<WorkspacePath>, Option<WorkspacePath>> = BTreeMap::new();
        for change in std::mem::take(&mut self.back) {
            let replaced = match known.entry(change.place.ancestors().next_back()) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => new.insert(hands.replaced_ancestor(&change.place)?),
            };
            match replaced.as_ref().filter(|ancestor| change.after.is_some() && !restored.contains(ancestor)) {
                Some(ancestor) => self.add(&change.path, Err(replaced_by_now(ancestor, hands))),
                None => self.back.push(change),
            }
        }
        Ok(())
    }

    /// A directory that the undone change made, perhaps in place of a file, goes only if nothing else is in it by now, or goes
    /// back into it.
    fn keep_filled_directories(&mut self, hands: &dyn Hands) -> Result<(), ToolError> {
        let is_directory = |state: &Option<FileState>| state.as_ref().is_some_and(FileState::is_directory);
        let goes = |change: &&Change| is_directory(&change.before) && !is_directory(&change.after);
        let removed = self.back.iter().filter(|change| change.after.is_none());
        let mut removed: BTreeSet<WorkspacePath> = removed.map(|change| change.place.clone()).collect();
        let directories: BTreeSet<WorkspacePath> =
            self.back.iter().filter(goes).map(|change| change.place.clone()).collect();
        let replaced = self.back.iter().filter(goes).filter(|change| change.after.is_some());
        let replaced: Vec<WorkspacePath> = replaced.map(|change| change.place.clone()).collect();
        let mut kept = BTreeSet::new();
        // Deepest first: a directory that stays keeps those that it is in.
        for directory in directories.iter().rev() {
            let goes_into = |back: &Change| back.after.is_some() && back.place != *directory;
            let is_filled = self.back.iter().any(|back| goes_into(back) && directory.covers(&back.place))
                || hands.entries_at(directory)?.iter().any(|entry| !removed.contains(&entry.place));
            // What policy hides in a directory keeps it, which hinders nobody unless something else comes in its place.
            let is_in_the_way = replaced.iter().any(|replaced| replaced.covers(directory));
            if is_filled || is_in_the_way && hands.hides_something(directory)? {
                removed.remove(directory);
                kept.insert(directory);
                self.add(&hands.shown(directory), Err(filled(directory, hands)));
            }
        }
        self.back.retain(|change| !kept.contains(&change.place));
        Ok(())
    }

    /// Mode, time and owner belong to a file under all of its names (hard links). Where only some of them would be undone, the
    /// others would change without a word.
    fn keep_shared_files(&mut self, hands: &dyn Hands) -> Result<(), ToolError> {
        let content = |change: &Change| {
            let after = change.after.as_ref().filter(|after| after.is_file() && change.is_metadata_only());
            after.map(|after| after.sha256.clone())
        };
        let mut names: BTreeMap<String, u64> = BTreeMap::new();
        self.back.iter().filter_map(content).for_each(|content| *names.entry(content).or_default() += 1);
        for change in std::mem::take(&mut self.back) {
            let undone = content(&change).and_then(|content| names.get(&content).copied());
            match undone {
                Some(undone) if hands.names_at(&change.place)? > undone => {
                    self.add(&change.path, Err(shared(&change.path)));
                }
                _ => self.back.push(change),
            }
        }
        Ok(())
    }

    fn carry_out(mut self, hands: &dyn Hands, contents: &BlobStore) -> Result<Value, ToolError> {
        if self.back.is_empty() && (!self.refused.is_empty() || self.kept_objects == 0) {
            return Err(ToolError::new(ErrorCode::StaleFile, "Nothing can be undone any more.")
                .with_hint("Change the files by hand; `toolgate changes` shows their previous content.")
                .with_details(json!({ "refused": self.refused })));
        }
        self.back.sort_by(|one, other| one.place.cmp(&other.place));
        if !self.back.is_empty() {
            hands.write_changes(self.back.clone(), contents)?;
        }
        let (mut undone, back) = (Vec::new(), std::mem::take(&mut self.back));
        for change in back {
            // What policy hides in a directory, or what somebody added this moment, keeps it.
            let is_directory = change.before.as_ref().is_some_and(FileState::is_directory);
            match is_directory && change.after.is_none() && hands.state_at(&change.place)?.is_some() {
                true => self.add(&change.path, Err(filled(&change.place, hands))),
                false => undone.push(change.path),
            }
        }
        let mut result = json!({ "undone": undone, "refused": self.refused });
        if self.kept_objects > 0 {
            result["kept_objects"] = json!(self.kept_objects);
        }
        Ok(result)
    }
}
