//! `display`: shows the person a message while the work continues.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolgate_contract::{
    Effect, Hands, Message, MessageLevel, Permission, Risk, SideEffect, Spec, Tool, ToolError, VersionAdapter,
};

/// Shows the person a message.
pub struct DisplayTool;

/// The message.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// Markdown text.
    content: String,
    /// How it should look.
    #[serde(default)]
    level: MessageLevel,
    /// A heading.
    #[serde(default)]
    title: Option<String>,
    /// The reasoning.
    #[serde(default)]
    thought: Option<String>,
    /// Files, lines, commands.
    #[serde(default)]
    evidence: Vec<String>,
}

/// Whether anyone saw it.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// Whether anyone was watching.
    shown: bool,
}

impl Tool for DisplayTool {
    type Args = Args;
    type Output = Output;

    const SPEC: Spec = Spec {
        name: "display",
        version: "2.0.0",
        description: "Show the person progress, a finding or an explanation, and what you are about to do before a \
                      longer step.",
        risk: Risk::Low,
        permissions: &[Permission::Agent],
        side_effects: &[SideEffect::SpeaksToPerson],
        parallel: true,
    };

    fn effects(&self, _args: &Args) -> Vec<Effect> {
        vec![Effect::Speak]
    }

    async fn run(&self, args: Args, hands: &dyn Hands) -> Result<Output, ToolError> {
        let Args { content, level, title, thought, evidence } = args;
        let shown = hands.say(&Message { level, title, content, thought, evidence })?;
        Ok(Output { shown })
    }

    fn adapters(&self) -> Vec<VersionAdapter> {
        vec![VersionAdapter { major: 1, change: "`message` became `content`", adapt: Some(message_to_content) }]
    }
}

/// Version 1 called this field `message`.
fn message_to_content(mut args: Value) -> Result<Value, ToolError> {
    if let Some(message) = args.as_object_mut().and_then(|fields| fields.shift_remove("message")) {
        args["content"] = json!(message);
    }
    Ok(args)
}
