//! Tools that do one thing each, most of them wrong.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolgate_contract::{
    Effect, ErrorCode, Hands, Message, MessageLevel, Permission, Preview, Risk, SideEffect, Spec, Tool, ToolError,
};

/// Arguments of most of these tools: a path.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PathArgs {
    /// A path.
    path: String,
}

/// No arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NoArgs {}

/// Some text.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TextOutput {
    /// The text.
    content: String,
}

const fn spec(name: &'static str, permissions: &'static [Permission], risk: Risk) -> Spec {
    Spec { name, version: "1.0.0", description: "For tests.", risk, permissions, side_effects: &[], parallel: true }
}

/// Pretends to write: counts its calls, and previews a diff.
#[derive(Default, Clone)]
pub struct WritingTool(pub Arc<AtomicUsize>);

impl Tool for WritingTool {
    type Args = PathArgs;
    type Output = TextOutput;
    const SPEC: Spec = Spec {
        side_effects: &[SideEffect::WritesFiles],
        parallel: false,
        ..spec("writes", &[Permission::FsWrite], Risk::High)
    };

    fn effects(&self, args: &PathArgs) -> Vec<Effect> {
        vec![Effect::write(&args.path)]
    }

    fn preview(&self, args: &PathArgs, hands: &dyn Hands) -> Result<Option<Preview>, ToolError> {
        let was = hands.open(&args.path).ok().and_then(|file| std::io::read_to_string(file).ok());
        let lines = |was: String| was.lines().map(|line| format!("-{line}\n")).collect::<String>();
        Ok(was.map(|was| Preview { diff: format!("{}+new\n", lines(was)) }))
    }

    async fn run(&self, args: PathArgs, _hands: &dyn Hands) -> Result<TextOutput, ToolError> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Ok(TextOutput { content: format!("wrote {}", args.path) })
    }
}

/// Pretends to run a command: counts its calls.
#[derive(Default, Clone)]
pub struct CommandTool(pub Arc<AtomicUsize>);

/// Arguments of [`CommandTool`].
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CommandArgs {
    /// The command line.
    pub command: String,
    /// The working directory.
    #[serde(default = "here")]
    pub workdir: String,
}

fn here() -> String {
    ".".into()
}

impl Tool for CommandTool {
    type Args = CommandArgs;
    type Output = TextOutput;
    const SPEC: Spec = Spec {
        side_effects: &[SideEffect::StartsProcesses],
        parallel: false,
        ..spec("runs", &[Permission::ProcExec], Risk::High)
    };

    fn effects(&self, args: &CommandArgs) -> Vec<Effect> {
        vec![Effect::Run { command: args.command.clone(), workdir: args.workdir.clone() }]
    }

    async fn run(&self, args: CommandArgs, _hands: &dyn Hands) -> Result<TextOutput, ToolError> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Ok(TextOutput { content: args.command })
    }
}

/// Panics.
pub struct PanickingTool;

impl Tool for PanickingTool {
    type Args = NoArgs;
    type Output = TextOutput;
    const SPEC: Spec = spec("panics", &[], Risk::Low);

    fn effects(&self, _args: &NoArgs) -> Vec<Effect> {
        vec![]
    }

    async fn run(&self, _args: NoArgs, _hands: &dyn Hands) -> Result<TextOutput, ToolError> {
        panic!("on purpose")
    }
}

/// Fails with an error of its own.
pub struct FailingTool;

impl Tool for FailingTool {
    type Args = NoArgs;
    type Output = TextOutput;
    const SPEC: Spec = spec("fails", &[], Risk::Low);

    fn effects(&self, _args: &NoArgs) -> Vec<Effect> {
        vec![]
    }

    async fn run(&self, _args: NoArgs, _hands: &dyn Hands) -> Result<TextOutput, ToolError> {
        Err(ToolError::new(ErrorCode::NoMatch, "there is none; password=hunter2 was tried"))
    }
}

/// Sleeps for an hour.
pub struct SleepingTool;

impl Tool for SleepingTool {
    type Args = NoArgs;
    type Output = TextOutput;
    const SPEC: Spec = spec("sleeps", &[], Risk::Low);

    fn effects(&self, _args: &NoArgs) -> Vec<Effect> {
        vec![]
    }

    async fn run(&self, _args: NoArgs, _hands: &dyn Hands) -> Result<TextOutput, ToolError> {
        tokio::time::sleep(Duration::from_secs(3_600)).await;
        Ok(TextOutput { content: "rested".into() })
    }
}

/// Says that it has started, and never ends: a test that hears it knows that the call runs.
pub struct HangingTool;

impl Tool for HangingTool {
    type Args = NoArgs;
    type Output = TextOutput;
    const SPEC: Spec =
        Spec { side_effects: &[SideEffect::SpeaksToPerson], ..spec("hangs", &[Permission::Agent], Risk::Low) };

    fn effects(&self, _args: &NoArgs) -> Vec<Effect> {
        vec![Effect::Speak]
    }

    async fn run(&self, _args: NoArgs, hands: &dyn Hands) -> Result<TextOutput, ToolError> {
        let content = "started".to_owned();
        hands.say(&Message { level: MessageLevel::Info, title: None, content, thought: None, evidence: Vec::new() })?;
        std::future::pending().await
    }
}

/// Declares no effects, and reads a file.
pub struct UndeclaredEffectTool;

impl Tool for UndeclaredEffectTool {
    type Args = PathArgs;
    type Output = TextOutput;
    const SPEC: Spec = spec("liar", &[Permission::FsRead], Risk::Low);

    fn effects(&self, _args: &PathArgs) -> Vec<Effect> {
        vec![]
    }

    async fn run(&self, args: PathArgs, hands: &dyn Hands) -> Result<TextOutput, ToolError> {
        hands.open(&args.path)?;
        Ok(TextOutput { content: "got it".into() })
    }
}

/// Has an effect for which it declares no permission.
pub struct UndeclaredPermissionTool;

impl Tool for UndeclaredPermissionTool {
    type Args = PathArgs;
    type Output = TextOutput;
    const SPEC: Spec = spec("undeclared", &[], Risk::Low);

    fn effects(&self, args: &PathArgs) -> Vec<Effect> {
        vec![Effect::write(&args.path)]
    }

    async fn run(&self, _args: PathArgs, _hands: &dyn Hands) -> Result<TextOutput, ToolError> {
        Ok(TextOutput { content: "got away with it".into() })
    }
}

/// Returns long output.
pub struct LongOutputTool;

/// How much output.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LongOutputArgs {
    /// Lines.
    lines: u32,
}

impl Tool for LongOutputTool {
    type Args = LongOutputArgs;
    type Output = TextOutput;
    const SPEC: Spec = spec("big", &[], Risk::Low);

    fn effects(&self, _args: &LongOutputArgs) -> Vec<Effect> {
        vec![]
    }

    async fn run(&self, args: LongOutputArgs, _hands: &dyn Hands) -> Result<TextOutput, ToolError> {
        Ok(TextOutput { content: (1..=args.lines).map(|n| format!("line {n}\n")).collect() })
    }
}

/// Returns secrets.
pub struct SecretLeakingTool;

impl Tool for SecretLeakingTool {
    type Args = NoArgs;
    type Output = TextOutput;
    const SPEC: Spec = spec("secrets", &[], Risk::Low);

    fn effects(&self, _args: &NoArgs) -> Vec<Effect> {
        vec![]
    }

    async fn run(&self, _args: NoArgs, _hands: &dyn Hands) -> Result<TextOutput, ToolError> {
        Ok(TextOutput { content: "DB_PASSWORD=hunter2\nfrom the environment: correct-horse-battery\n".into() })
    }
}
