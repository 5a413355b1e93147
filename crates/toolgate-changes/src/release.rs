//! Letting something out of quarantine (C-25). It is a tool like any other, so it is judged, recorded and can be undone; but it
//! is for the person who has looked at it, and no agent is offered it.

use std::io::Read;
use std::sync::Arc;

use serde_json::{Value, json};
use toolgate_contract::{
    Access, AnyTool, BoxFuture, DIRECTORY_MODE, Effect, ErrorCode, FileContent, FileEdit, Hands, LINK_MODE,
    PreparedCall, Preview, ToolError, schemars,
};
use toolgate_journal::{Quarantine, QuarantinedChange};

use crate::restore_tool::{RestoreTool, tool};

/// Puts something in place that was kept aside.
pub struct Release {
    quarantine: Arc<Quarantine>,
}

/// What to let out.
#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Args {
    /// The call whose command made it.
    call: String,
    /// Where it would have been.
    path: String,
    /// Whether it replaces what is there by now.
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
    const DESCRIPTION: &'static str = "Put something in place that a command made and that was kept aside.";

    fn answer() -> Value {
        json!({ "type": "object", "properties": { "released": { "type": "string" } } })
    }

    fn open(&self, args: Args) -> Result<Box<dyn PreparedCall>, ToolError> {
        let held = self.quarantine.held(&args.call)?.into_iter().find(|held| held.path == args.path);
        let held = held.ok_or_else(|| {
            ToolError::new(ErrorCode::NotFound, format!("Nothing of `{}` is kept aside at `{}`.", args.call, args.path))
                .with_hint("`toolgate quarantine list` shows what is.")
        })?;
        if held.mode.is_some_and(|mode| mode & DIRECTORY_MODE == DIRECTORY_MODE && mode != LINK_MODE) {
            let message = format!("`{}` is a directory; what is in it brings it along.", args.path);
            return Err(ToolError::new(ErrorCode::NotAFile, message).with_hint("Release the files in it."));
        }
        let content = content(&self.quarantine, &args.call, &held)?;
        Ok(Box::new(PreparedRelease { args, held, content, quarantine: Arc::clone(&self.quarantine) }))
    }
}

/// What is kept; none if the command removed what is there.
fn content(quarantine: &Quarantine, call: &str, held: &QuarantinedChange) -> Result<Option<FileContent>, ToolError> {
    let Some(mode) = held.mode else { return Ok(None) };
    let room = quarantine.room(call)?;
    let bytes = match (&held.name, room.open(held)) {
        (Some(name), _) if mode == LINK_MODE => room.link(name)?,
        (_, file) => {
            let missing = || ToolError::not_found(&held.path);
            let mut bytes = Vec::new();
            let read = file?.ok_or_else(missing)?.read_to_end(&mut bytes);
            read.map_err(|error| ToolError::io(&format!("What was kept of `{}` can't be read", held.path), &error))?;
            bytes
        }
    };
    Ok(Some(FileContent { bytes: bytes.into(), mode: Some(mode) }))
}

/// Something that was found and waits to be let out.
struct PreparedRelease {
    args: Args,
    held: QuarantinedChange,
    content: Option<FileContent>,
    quarantine: Arc<Quarantine>,
}

impl PreparedRelease {
    fn access(&self) -> Access {
        if self.content.is_some() { Access::Write } else { Access::Delete }
    }

    fn put_in_place(&self, hands: &Hands) -> Result<Value, ToolError> {
        let path = &self.args.path;
        let place = hands.target(self.access(), path)?;
        let before = hands.content_at(&place, u64::MAX)?;
        // What a command removed has to be there still; what it made must not be in anybody's way.
        if before.is_some() && self.content.is_some() && !self.args.replace {
            return Err(ToolError::new(ErrorCode::StaleFile, format!("Something else is at `{path}` by now."))
                .with_hint("Look at both, then add --force to replace it."));
        }
        hands.change(vec![FileEdit { place, before, after: self.content.clone() }])?;
        self.quarantine.take_out(&self.args.call, &self.held)?;
        Ok(json!({ "released": path }))
    }
}

impl PreparedCall for PreparedRelease {
    fn effects(&self) -> Vec<Effect> {
        vec![Effect::Restore { path: self.args.path.clone(), access: self.access() }]
    }

    fn preview(&self, _hands: &Hands) -> Option<Preview> {
        let sign = if self.content.is_some() { '+' } else { '-' };
        Some(Preview { diff: format!("{sign}{} ({})\n", self.args.path, self.held.reason) })
    }

    fn run<'a>(self: Box<Self>, hands: &'a Hands) -> BoxFuture<'a, Result<Value, ToolError>> {
        Box::pin(std::future::ready(self.put_in_place(hands)))
    }
}
