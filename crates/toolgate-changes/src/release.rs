//! The tool `release`: writes a quarantined change to the workspace. It is a tool like any other, so it is judged,
//! recorded and can be undone. But it is for a person who has reviewed the change, and no agent is offered it.

use std::io::Read;
use std::sync::Arc;

use serde_json::{Value, json};
use toolgate_contract::{
    Access, AnyTool, BoxFuture, DIRECTORY_MODE, Effect, ErrorCode, FileContent, FileEdit, Hands, LINK_MODE,
    PreparedCall, Preview, ToolError, schemars,
};
use toolgate_journal::{Quarantine, QuarantinedChange};

use crate::restore_tool::{RestoreTool, tool};

/// Writes quarantined changes to the workspace.
pub struct Release {
    quarantine: Arc<Quarantine>,
}

/// Which change to release.
#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Args {
    /// The call whose command made the change.
    call: String,
    /// The path in the workspace.
    path: String,
    /// Whether to replace a file that is there by now.
    #[serde(default)]
    replace: bool,
}

impl Release {
    /// The tool, for a front end that serves a person alone.
    pub fn tool(quarantine: Quarantine) -> Arc<dyn AnyTool> {
        tool(Self { quarantine: Arc::new(quarantine) })
    }
}

impl RestoreTool for Release {
    type Args = Args;
    const NAME: &'static str = "release";
    const DESCRIPTION: &'static str = "Write a quarantined change of a command to the workspace.";

    fn answer() -> Value {
        json!({ "type": "object", "properties": { "released": { "type": "string" } } })
    }

    fn open(&self, args: Args) -> Result<Box<dyn PreparedCall>, ToolError> {
        let change = self.quarantine.changes(&args.call)?.into_iter().find(|change| change.path == args.path);
        let change = change.ok_or_else(|| {
            ToolError::new(
                ErrorCode::NotFound,
                format!("The call `{}` has no quarantined change of `{}`.", args.call, args.path),
            )
            .with_hint("`toolgate quarantine list` lists the quarantined changes.")
        })?;
        if change.mode.is_some_and(|mode| mode & DIRECTORY_MODE == DIRECTORY_MODE && mode != LINK_MODE) {
            let (message, hint) = match &change.name {
                None => ("is a directory, which is created with the files in it.", "Release the files in it.".into()),
                Some(name) => (
                    "was quarantined as a whole, because it can't be read where it would be.",
                    format!("Copy what you need from `.toolgate/quarantine/{}/{name}`.", args.call),
                ),
            };
            return Err(ToolError::new(ErrorCode::NotAFile, format!("`{}` {message}", args.path)).with_hint(hint));
        }
        let content = content(&self.quarantine, &args.call, &change)?;
        Ok(Box::new(PreparedRelease { args, change, content, quarantine: Arc::clone(&self.quarantine) }))
    }
}

/// The quarantined content; none if the command removed the file.
fn content(quarantine: &Quarantine, call: &str, change: &QuarantinedChange) -> Result<Option<FileContent>, ToolError> {
    let Some(mode) = change.mode else { return Ok(None) };
    let quarantined = quarantine.for_call(call)?;
    let bytes = match (&change.name, quarantined.open(change)) {
        (Some(name), _) if mode == LINK_MODE => quarantined.link(name)?,
        (_, file) => {
            let missing = || ToolError::not_found(&change.path);
            let mut bytes = Vec::new();
            let read = file?.ok_or_else(missing)?.read_to_end(&mut bytes);
            read.map_err(|error| {
                ToolError::io(&format!("The quarantined content of `{}` can't be read", change.path), &error)
            })?;
            bytes
        }
    };
    Ok(Some(FileContent { bytes: bytes.into(), mode: Some(mode) }))
}

/// A quarantined change that was found and waits to be released.
struct PreparedRelease {
    args: Args,
    change: QuarantinedChange,
    content: Option<FileContent>,
    quarantine: Arc<Quarantine>,
}

impl PreparedRelease {
    fn access(&self) -> Access {
        if self.content.is_some() { Access::Write } else { Access::Delete }
    }

    fn apply(&self, hands: &dyn Hands) -> Result<Value, ToolError> {
        let path = &self.args.path;
        let place = hands.target(self.access(), path)?;
        let before = hands.content_at(&place, u64::MAX)?;
        // A removed file must still exist; a created file must not overwrite another.
        if before.is_some() && self.content.is_some() && !self.args.replace {
            return Err(ToolError::new(ErrorCode::StaleFile, format!("There is another file at `{path}` by now."))
                .with_hint("Compare both, then add --force to replace it."));
        }
        hands.change(vec![FileEdit { place, before, after: self.content.clone(), moved_from: None }])?;
        self.quarantine.remove(&self.args.call, &self.change)?;
        Ok(json!({ "released": path }))
    }
}

impl PreparedCall for PreparedRelease {
    fn effects(&self) -> Vec<Effect> {
        vec![Effect::Restore { path: self.args.path.clone(), access: self.access() }]
    }

    fn preview(&self, _hands: &dyn Hands) -> Result<Option<Preview>, ToolError> {
        let sign = if self.content.is_some() { '+' } else { '-' };
        Ok(Some(Preview { diff: format!("{sign}{} ({})\n", self.args.path, self.change.reason) }))
    }

    fn run<'a>(self: Box<Self>, hands: &'a dyn Hands) -> BoxFuture<'a, Result<Value, ToolError>> {
        Box::pin(std::future::ready(self.apply(hands)))
    }
}
