//! Putting the changes of a rehearsed command in place: exactly those, all or none (C-24). It is a tool like any other: each
//! path is an effect that is judged, the diff is what a person is shown, and `undo` takes it back.

use std::sync::Arc;

use serde_json::{Value, json};
use toolgate_contract::{
    Adapter, AnyTool, Apart, BoxFuture, Change, Declaration, Differ, Difference, Effect, ErrorCode, FileState, Files,
    Form, Hands, Permission, Prepared, Preview, Rehearsals, Risk, SideEffect, ToolError, schemars,
};

/// Files larger than this are named and not shown.
const MOST_SHOWN: u64 = 1 << 20;
/// Text that is shown at the most.
const MOST_TEXT: usize = 1 << 20;

/// Puts the changes of a rehearsal in place.
pub struct Commit {
    rehearsals: Arc<dyn Rehearsals>,
    files: Arc<dyn Files>,
    differ: Arc<dyn Differ>,
    declaration: Declaration,
}

/// Which rehearsal.
#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct Args {
    /// The handle that the rehearsal gave, as `changes.rehearsal`.
    rehearsal: String,
}

impl Commit {
    /// Commits these rehearsals to these files.
    pub fn new(rehearsals: Arc<dyn Rehearsals>, files: Arc<dyn Files>, differ: Arc<dyn Differ>) -> Self {
        let declaration = Declaration {
            name: "commit".into(),
            version: semver::Version::new(1, 0, 0),
            description:
                "Put the changes of a rehearsed command in place: exactly those that the rehearsal showed, all or \
                          none. A rehearsal can be committed once, in the run that made it. `undo` takes it back."
                    .into(),
            args_schema: schemars::schema_for!(Args),
            return_schema: schemars::Schema::try_from(json!({
                "type": "object",
                "properties": { "committed": { "type": "array", "items": { "type": "string" } } },
            }))
            .expect("an object is a schema"),
            required_permissions: vec![Permission::FsRead, Permission::FsWrite, Permission::FsDelete],
            side_effects: vec![SideEffect::WritesFiles, SideEffect::DeletesFiles],
            risk: Risk::High,
            parallel: false,
            form: Form::Function { strict: false },
        };
        Self { rehearsals, files, differ, declaration }
    }

    /// What the rehearsal would change, if that is still what it showed.
    fn open(&self, name: &str) -> Result<(Box<dyn Apart>, Vec<Change>), ToolError> {
        let apart = self.rehearsals.open(name)?;
        let differences = apart.differences(self.files.as_ref())?;
        if let Some(stale) = differences.all.iter().find(|difference| difference.is_stale) {
            let message = format!("`{}` was changed since the rehearsal.", stale.change.path);
            return Err(ToolError::new(ErrorCode::StaleFile, message).with_hint("Rehearse the command again."));
        }
        if let Some(name) = differences.unspeakable.first() {
            let message = format!("The name of `{name}` isn't text, so no tool can put it in place.");
            return Err(ToolError::new(ErrorCode::IoError, message));
        }
        let changes: Vec<Change> = differences.all.into_iter().map(|Difference { change, .. }| change).collect();
        Ok((apart, changes))
    }
}

impl AnyTool for Commit {
    fn declaration(&self) -> &Declaration {
        &self.declaration
    }

    fn adapters(&self) -> &[Adapter] {
        &[]
    }

    fn prepare(&self, args: Value) -> Result<Box<dyn Prepared>, ToolError> {
        let args: Args = serde_json::from_value(args).map_err(|fault| ToolError::invalid_args(fault.to_string()))?;
        let (apart, changes) = self.open(&args.rehearsal)?;
        Ok(Box::new(Ready { apart, changes, files: Arc::clone(&self.files), differ: Arc::clone(&self.differ) }))
    }
}

/// A rehearsal that was opened and waits to be put in place.
struct Ready {
    apart: Box<dyn Apart>,
    changes: Vec<Change>,
    files: Arc<dyn Files>,
    differ: Arc<dyn Differ>,
}

impl Prepared for Ready {
    fn effects(&self) -> Vec<Effect> {
        let is_link = |state: &Option<FileState>| state.as_ref().is_some_and(FileState::is_link);
        let effects = |change: &Change| {
            let write = change.after.as_ref().map(|_| Effect::write(&change.path));
            // A link is replaced by name, whatever it leads to.
            let by_name = change.after.is_none() || is_link(&change.before);
            write.into_iter().chain(by_name.then(|| Effect::delete(&change.path)))
        };
        self.changes.iter().flat_map(effects).collect()
    }

    fn preview(&self, _hands: &Hands) -> Option<Preview> {
        let (apart, files) = (self.apart.as_ref(), self.files.as_ref());
        Some(Preview { diff: diff_of(&self.changes, apart, files, self.differ.as_ref()) })
    }

    fn run<'a>(self: Box<Self>, hands: &'a Hands) -> BoxFuture<'a, Result<Value, ToolError>> {
        Box::pin(std::future::ready(self.put_in_place(hands)))
    }
}

impl Ready {
    fn put_in_place(mut self, hands: &Hands) -> Result<Value, ToolError> {
        if self.apart.owner().is_some_and(|owner| owner != hands.run()) {
            let message = "That rehearsal was made in another run, and can be committed only there.";
            return Err(ToolError::new(ErrorCode::NotFound, message).with_hint("Rehearse the command again."));
        }
        let committed: Vec<String> = self.changes.iter().map(|change| change.path.clone()).collect();
        if !self.changes.is_empty() {
            hands.arrange(std::mem::take(&mut self.changes), self.apart.as_ref())?;
        }
        self.apart.touch(self.files.as_ref());
        self.apart.let_go();
        Ok(json!({ "committed": committed }))
    }
}

/// Changes that were kept apart, as one diff.
pub(crate) fn diff_of(changes: &[Change], apart: &dyn Apart, files: &dyn Files, differ: &dyn Differ) -> String {
    let mut text = String::new();
    for (number, change) in changes.iter().enumerate() {
        if text.len() > MOST_TEXT {
            text.push_str(&format!("… and {} more\n", changes.len() - number));
            break;
        }
        let before = files.content(&change.place, MOST_SHOWN).ok().flatten();
        let after = apart.content(&change.place, MOST_SHOWN).ok().flatten();
        text.push_str(&differ.diff(change, before.as_ref(), after.as_ref()));
    }
    text
}
