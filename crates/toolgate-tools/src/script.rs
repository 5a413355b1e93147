//! `script`: runs a script of a skill in the sandbox, like every command. No shell is involved, so the arguments reach the
//! script unchanged. It starts in a directory of its own in the run, and its changes to the workspace can be undone.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use toolgate_contract::{
    Effect, Hands, Permission, Preview, Risk, SideEffect, SkillScript as Started, Spec, Tool, ToolError,
};

use crate::skill;
use crate::support::command_output::CommandOutput;

/// Runs a script of a skill.
pub struct ScriptTool;

/// The default and the longest timeout of a script.
const DEFAULT_TIMEOUT_MILLISECONDS: u64 = 30_000;
const MAX_TIMEOUT_MILLISECONDS: u64 = 600_000;

/// Seconds that a call may take in addition to its script.
const MARGIN_SECONDS: u64 = 20;

/// What to run.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// Its skill.
    #[schemars(length(max = 64))]
    skill: String,
    /// In the skill's directory, such as `scripts/fill.py`.
    #[schemars(length(max = 512))]
    path: String,
    /// Its arguments.
    #[serde(default)]
    #[schemars(length(max = 64), inner(length(max = 4096)))]
    args: Vec<String>,
    /// Until it is stopped.
    #[serde(default = "default_timeout")]
    #[schemars(range(min = 1, max = MAX_TIMEOUT_MILLISECONDS))]
    timeout_ms: u64,
}

fn default_timeout() -> u64 {
    DEFAULT_TIMEOUT_MILLISECONDS
}

impl Args {
    fn started(&self) -> Started {
        Started { skill: self.skill.clone(), path: self.path.clone(), arguments: self.args.clone() }
    }
}

impl Tool for ScriptTool {
    type Args = Args;
    type Output = CommandOutput;

    const SPEC: Spec = Spec {
        name: "script",
        version: "1.0.0",
        description: "Run a script of a skill, confined as `shell` is, but without a shell. It starts in a \
                      directory of its own; the workspace is `workspace/` there.",
        risk: Risk::Medium,
        permissions: &[Permission::FsRead, Permission::ProcExec, Permission::Agent],
        side_effects: &[SideEffect::StartsProcesses, SideEffect::WritesFiles],
        parallel: false,
    };

    const LONGEST: Option<Duration> = Some(Duration::from_secs(MAX_TIMEOUT_MILLISECONDS / 1000 + MARGIN_SECONDS));

    fn effects(&self, args: &Args) -> Vec<Effect> {
        vec![
            Effect::read("."),
            Effect::Skill { name: Some(args.skill.clone()) },
            Effect::Run { command: args.started().line(), workdir: ".".into() },
        ]
    }

    fn preview(&self, args: &Args, hands: &dyn Hands) -> Result<Option<Preview>, ToolError> {
        skill::find(&args.skill, &hands.skills()?)?;
        Ok(None)
    }

    async fn run(&self, args: Args, hands: &dyn Hands) -> Result<CommandOutput, ToolError> {
        let directories = hands.blocking(|hands| hands.skills()).await?;
        skill::read(skill::find(&args.skill, &directories)?)?;
        let attached = hands.start_script(args.started(), Duration::from_millis(args.timeout_ms)).await?;
        CommandOutput::wait_for(&attached, hands).await
    }
}
