//! `script`: runs a script of a skill in the sandbox, like every command. No shell is involved, so the arguments reach the
//! script unchanged. It starts in a directory of its own in the run, and its changes to the workspace can be undone.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolgate_contract::{
    DeniedAccess, Effect, Hands, Permission, Preview, Risk, SettledChanges, SideEffect, SkillScript as Started, Spec,
    StopReason, Tool, ToolError,
};

use crate::skill;
use crate::support::command_result::{CommandResult, ended};

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
    /// The skill that it belongs to.
    #[schemars(length(max = 64))]
    skill: String,
    /// Its path in the skill's directory, such as `scripts/fill.py`.
    #[schemars(length(max = 512))]
    path: String,
    /// Its arguments.
    #[serde(default)]
    #[schemars(length(max = 64), inner(length(max = 4096)))]
    args: Vec<String>,
    /// Milliseconds until it is stopped.
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

/// How it ended.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// 0 is success, 124 means that it timed out.
    exit_code: i32,
    /// What it wrote to its standard output.
    stdout: String,
    /// What it wrote to its standard error.
    stderr: String,
    /// How long it took, in milliseconds.
    duration_ms: u64,
    /// Whether it was stopped because it timed out.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    timed_out: bool,
    /// Whether it was stopped because it wrote more output than is allowed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    output_limit: bool,
    /// What it changed in the workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    changes: Option<SettledChanges>,
    /// What the sandbox denied it, if it failed, as a possible reason.
    // The gate fills this in, once it is known whether the missing rights are granted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    denied: Vec<DeniedAccess>,
}

impl Tool for ScriptTool {
    type Args = Args;
    type Output = Output;

    const SPEC: Spec = Spec {
        name: "script",
        version: "1.0.0",
        description: "Run a script of a skill, without a shell. It starts in a directory of its own that it can write to; \
                      files of the workspace are below `workspace/` there. It is confined as `shell` is.",
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

    async fn run(&self, args: Args, hands: &dyn Hands) -> Result<Output, ToolError> {
        let directories = hands.blocking(|hands| hands.skills()).await?;
        skill::read(skill::find(&args.skill, &directories)?)?;
        let attached = hands.start_script(args.started(), Duration::from_millis(args.timeout_ms)).await?;
        let Some(end) = ended(attached.process(), Duration::MAX).await else {
            return Err(ToolError::internal("A script's end was lost."));
        };
        let CommandResult { exit_code, stdout, stderr, duration_ms, stopped, changes } =
            CommandResult::of(attached.process(), end, hands)?;
        let (timed_out, output_limit) = (stopped == Some(StopReason::Time), stopped == Some(StopReason::Output));
        Ok(Output { exit_code, stdout, stderr, duration_ms, timed_out, output_limit, changes, denied: Vec::new() })
    }
}
