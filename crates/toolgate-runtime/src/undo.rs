//! Taking changes back: by call, by turn or by run (C-25). It is a tool like any other, so an undo is judged, recorded
//! and can itself be undone. What has moved on since is left alone, file by file.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value, json};
use toolgate_contract::{
    Access, Adapter, AnyTool, BoxFuture, Change, Declaration, Effect, ErrorCode, Event, FOLDER_MODE, FileState, Form,
    Hands, Happening, PIPE_MODE, Permission, Place, Prepared, Preview, Risk, SideEffect, ToolError, schemars,
};
use toolgate_journal::{Contents, list_runs, read_events};

/// Takes changes back.
pub struct Undo {
    state_dir: PathBuf,
    contents: Arc<Contents>,
    declaration: Declaration,
}

/// Which changes.
#[derive(Debug, Clone, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// The call whose changes are taken back.
    #[serde(default)]
    call: Option<String>,
    /// The run whose changes are taken back; with `turn`, only those of that turn.
    #[serde(default)]
    run: Option<String>,
    /// The turn whose changes are taken back.
    #[serde(default)]
    turn: Option<u64>,
    /// The agent whose changes are taken back; every agent counts its turns for itself.
    #[serde(default)]
    agent: Option<String>,
}

impl Undo {
    /// Looks for changes in the runs of this state folder, and for their bytes in this store.
    pub fn new(state_dir: impl Into<PathBuf>, contents: Arc<Contents>) -> Self {
        let declaration = Declaration {
            name: "undo".into(),
            version: semver::Version::new(1, 0, 0),
            description: "Take back the file changes of a call, a turn or a whole run. Files that were changed again \
                          since are left alone and named."
                .into(),
            args_schema: schemars::schema_for!(Args),
            return_schema: schemars::Schema::try_from(json!({
                "type": "object",
                "properties": {
                    "undone": { "type": "array", "items": { "type": "string" } },
                    "refused": { "type": "array", "items": { "type": "object" } },
                },
            }))
            .expect("an object is a schema"),
            required_permissions: vec![Permission::FsRead, Permission::FsWrite, Permission::FsDelete],
            side_effects: vec![SideEffect::WritesFiles, SideEffect::DeletesFiles],
            risk: Risk::High,
            parallel: false,
            form: Form::Function { strict: false },
        };
        Self { state_dir: state_dir.into(), contents, declaration }
    }

    /// Each file's first before and last after, over everything that the arguments name.
    fn changes(&self, args: &Args) -> Result<Vec<Change>, ToolError> {
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
                    "Name what to take back: `call`, or `run` with or without `turn` and `agent`.",
                ));
            }
        };
        let mut files: BTreeMap<Place, Change> = BTreeMap::new();
        for run in runs {
            for recorded in read_events(&self.state_dir.join("runs").join(&run))? {
                let event = recorded.map_err(|error| ToolError::io("The record can't be read", &error))?.event;
                let Happening::FilesChanging { changes } = &event.happening else { continue };
                changes.iter().filter(|_| wanted(&event)).for_each(|change| fold(&mut files, change));
            }
        }
        let changed: Vec<Change> = files.into_values().filter(|change| change.before != change.after).collect();
        if changed.is_empty() {
            return Err(ToolError::new(ErrorCode::NotFound, "There are no changes of that call, turn or run.")
                .with_hint("`toolgate changes` shows what can be taken back."));
        }
        Ok(changed)
    }
}

/// Joins a later change of a file to what is known of it.
fn fold(files: &mut BTreeMap<Place, Change>, change: &Change) {
    match files.get_mut(&change.place) {
        Some(known) => known.after.clone_from(&change.after),
        None => drop(files.insert(change.place.clone(), change.clone())),
    }
}

impl AnyTool for Undo {
    fn declaration(&self) -> &Declaration {
        &self.declaration
    }

    fn adapters(&self) -> &[Adapter] {
        &[]
    }

    fn prepare(&self, args: Value) -> Result<Box<dyn Prepared>, ToolError> {
        let args: Args = serde_json::from_value(args).map_err(|fault| ToolError::invalid_args(fault.to_string()))?;
        Ok(Box::new(Ready { changes: self.changes(&args)?, contents: Arc::clone(&self.contents) }))
    }
}

/// Changes that were found and wait to be taken back.
struct Ready {
    changes: Vec<Change>,
    contents: Arc<Contents>,
}

impl Prepared for Ready {
    fn effects(&self) -> Vec<Effect> {
        let effects = |change: &Change| {
            let path = &change.path;
            let back = change.before.as_ref().map(|_| Effect::write(path));
            // A link that was put there is removed, whatever comes in its place.
            let is_link = change.after.as_ref().is_some_and(FileState::is_link);
            let away = (back.is_none() || is_link).then(|| Effect::delete(path));
            [Effect::read(path)].into_iter().chain(back).chain(away)
        };
        self.changes.iter().flat_map(effects).collect()
    }

    fn preview(&self, _hands: &Hands) -> Option<Preview> {
        let line = |change: &Change| match &change.before {
            Some(_) => format!(" {} as it was before\n", change.path),
            None => format!("-{}\n", change.path),
        };
        Some(Preview { diff: self.changes.iter().map(line).collect() })
    }

    fn run<'a>(self: Box<Self>, hands: &'a Hands) -> BoxFuture<'a, Result<Value, ToolError>> {
        Box::pin(std::future::ready(self.take_back(hands)))
    }
}

impl Ready {
    fn take_back(&self, hands: &Hands) -> Result<Value, ToolError> {
        let (mut back, mut undone, mut refused) = (Vec::new(), Vec::new(), Vec::new());
        for change in &self.changes {
            match self.way_back(change, hands) {
                Ok(change) => {
                    undone.push(change.path.clone());
                    back.push(change);
                }
                Err(error) => refused.push(json!({ "path": change.path, "code": error.code, "reason": error.message })),
            }
        }
        if back.is_empty() {
            return Err(ToolError::new(ErrorCode::StaleFile, "Nothing can be taken back any more.")
                .with_hint("Change the files by hand; `toolgate changes` shows what they were.")
                .with_details(json!({ "refused": refused })));
        }
        hands.arrange(back, self.contents.as_ref())?;
        Ok(json!({ "undone": undone, "refused": refused }))
    }

    /// The change that brings a place back, if it is still what the change made of it.
    fn way_back(&self, change: &Change, hands: &Hands) -> Result<Change, ToolError> {
        let access = if change.before.is_some() { Access::Write } else { Access::Delete };
        let place = hands.target(access, &change.path)?;
        let now = hands.state_at(&place)?;
        let is_as_it_was = match (&now, &change.after) {
            (Some(now), Some(after)) => after.is(now),
            (now, after) => now.is_none() && after.is_none(),
        };
        if !is_as_it_was {
            return Err(ToolError::new(ErrorCode::StaleFile, format!("`{}` has changed since.", change.path)));
        }
        change.before.as_ref().map_or(Ok(()), |before| self.check(&change.path, before))?;
        Ok(Change { path: change.path.clone(), place, before: now, after: change.before.clone() })
    }

    /// Whether what was there can be had.
    fn check(&self, path: &str, state: &FileState) -> Result<(), ToolError> {
        let kind = state.kind();
        if [FOLDER_MODE, PIPE_MODE].contains(&kind) || (state.is_file() || state.is_link()) && self.contents.has(state)
        {
            return Ok(());
        }
        let reason = match state.is_file() || state.is_link() {
            true => format!("What `{path}` held before was evicted to keep the store within its quota."),
            false => format!("`{path}` was a socket or device, which can't be brought back."),
        };
        Err(ToolError::new(ErrorCode::NotFound, reason))
    }
}
