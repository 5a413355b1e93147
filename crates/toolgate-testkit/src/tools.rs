//! Tools that do one thing each, most of them wrong.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolgate_contract::{Effect, ErrorCode, Hands, Permission, Preview, Risk, SideEffect, Spec, Tool, ToolError};

/// Arguments of most of these: a path.
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
pub struct Text {
    /// The text.
    content: String,
}

const fn spec(name: &'static str, permissions: &'static [Permission], risk: Risk) -> Spec {
    Spec { name, version: "1.0.0", description: "For tests.", risk, permissions, side_effects: &[], parallel: true }
}

/// Pretends to write: counts how often it ran, and previews a diff.
#[derive(Default, Clone)]
pub struct Writes(pub Arc<AtomicUsize>);

impl Tool for Writes {
    type Args = PathArgs;
    type Output = Text;
    const SPEC: Spec = Spec {
        side_effects: &[SideEffect::WritesFiles],
        parallel: false,
        ..spec("writes", &[Permission::FsWrite], Risk::High)
    };

    fn effects(&self, args: &PathArgs) -> Vec<Effect> {
        vec![Effect::write(&args.path)]
    }

    fn preview(&self, args: &PathArgs, hands: &Hands) -> Option<Preview> {
        let was = hands.open(&args.path).ok().and_then(|file| std::io::read_to_string(file).ok())?;
        let lines: String = was.lines().map(|line| format!("-{line}\n")).collect();
        Some(Preview { diff: format!("{lines}+new\n") })
    }

    async fn run(&self, args: PathArgs, _hands: &Hands) -> Result<Text, ToolError> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Ok(Text { content: format!("wrote {}", args.path) })
    }
}

/// Pretends to run a command: counts how often it would have.
#[derive(Default, Clone)]
pub struct Runs(pub Arc<AtomicUsize>);

/// Arguments of [`Runs`].
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunsArgs {
    /// The command line.
    pub command: String,
    /// Where it would run.
    #[serde(default = "here")]
    pub workdir: String,
}

fn here() -> String {
    ".".into()
}

impl Tool for Runs {
    type Args = RunsArgs;
    type Output = Text;
    const SPEC: Spec = Spec {
        side_effects: &[SideEffect::StartsProcesses],
        parallel: false,
        ..spec("runs", &[Permission::ProcExec], Risk::High)
    };

    fn effects(&self, args: &RunsArgs) -> Vec<Effect> {
        vec![Effect::Run { command: args.command.clone(), workdir: args.workdir.clone() }]
    }

    async fn run(&self, args: RunsArgs, _hands: &Hands) -> Result<Text, ToolError> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Ok(Text { content: args.command })
    }
}

/// Panics.
pub struct Panics;

impl Tool for Panics {
    type Args = NoArgs;
    type Output = Text;
    const SPEC: Spec = spec("panics", &[], Risk::Low);

    fn effects(&self, _args: &NoArgs) -> Vec<Effect> {
        vec![]
    }

    async fn run(&self, _args: NoArgs, _hands: &Hands) -> Result<Text, ToolError> {
        panic!("on purpose")
    }
}

/// Fails with an error of its own.
pub struct Fails;

impl Tool for Fails {
    type Args = NoArgs;
    type Output = Text;
    const SPEC: Spec = spec("fails", &[], Risk::Low);

    fn effects(&self, _args: &NoArgs) -> Vec<Effect> {
        vec![]
    }

    async fn run(&self, _args: NoArgs, _hands: &Hands) -> Result<Text, ToolError> {
        Err(ToolError::new(ErrorCode::NoMatch, "there is none; password=hunter2 was tried"))
    }
}

/// Sleeps for an hour.
pub struct Sleeps;

impl Tool for Sleeps {
    type Args = NoArgs;
    type Output = Text;
    const SPEC: Spec = spec("sleeps", &[], Risk::Low);

    fn effects(&self, _args: &NoArgs) -> Vec<Effect> {
        vec![]
    }

    async fn run(&self, _args: NoArgs, _hands: &Hands) -> Result<Text, ToolError> {
        tokio::time::sleep(Duration::from_secs(3_600)).await;
        Ok(Text { content: "rested".into() })
    }
}

/// Declares that it touches nothing, and reads a file.
pub struct Liar;

impl Tool for Liar {
    type Args = PathArgs;
    type Output = Text;
    const SPEC: Spec = spec("liar", &[Permission::FsRead], Risk::Low);

    fn effects(&self, _args: &PathArgs) -> Vec<Effect> {
        vec![]
    }

    async fn run(&self, args: PathArgs, hands: &Hands) -> Result<Text, ToolError> {
        hands.open(&args.path)?;
        Ok(Text { content: "got it".into() })
    }
}

/// Has an effect for which it declares no permission.
pub struct Undeclared;

impl Tool for Undeclared {
    type Args = PathArgs;
    type Output = Text;
    const SPEC: Spec = spec("undeclared", &[], Risk::Low);

    fn effects(&self, args: &PathArgs) -> Vec<Effect> {
        vec![Effect::write(&args.path)]
    }

    async fn run(&self, _args: PathArgs, _hands: &Hands) -> Result<Text, ToolError> {
        Ok(Text { content: "got away with it".into() })
    }
}

/// Says a lot.
pub struct Big;

/// How much.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BigArgs {
    /// Lines.
    lines: u32,
}

impl Tool for Big {
    type Args = BigArgs;
    type Output = Text;
    const SPEC: Spec = spec("big", &[], Risk::Low);

    fn effects(&self, _args: &BigArgs) -> Vec<Effect> {
        vec![]
    }

    async fn run(&self, args: BigArgs, _hands: &Hands) -> Result<Text, ToolError> {
        Ok(Text { content: (1..=args.lines).map(|n| format!("line {n}\n")).collect() })
    }
}

/// Answers with secrets.
pub struct Secrets;

impl Tool for Secrets {
    type Args = NoArgs;
    type Output = Text;
    const SPEC: Spec = spec("secrets", &[], Risk::Low);

    fn effects(&self, _args: &NoArgs) -> Vec<Effect> {
        vec![]
    }

    async fn run(&self, _args: NoArgs, _hands: &Hands) -> Result<Text, ToolError> {
        Ok(Text { content: "DB_PASSWORD=hunter2\nfrom the environment: correct-horse-battery\n".into() })
    }
}
