//! `script`: runs a script of a skill, confined like every command. No shell is involved: the arguments reach it as
//! they are. It starts in a directory of its own in the run, and its changes to the workspace can be taken back.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolgate_contract::{
    DeniedAccess, Effect, Hands, Permission, Risk, SettledChanges, SideEffect, SkillScript as Started, Spec,
    StopReason, Tool, ToolError,
};

use crate::skill;
use crate::support::command_result::{CommandResult, ended};

/// Runs a script of a skill.
pub struct ScriptTool;

/// The most time that a script can be given, and what is left for everything besides it.
const MOST_MILLISECONDS: u64 = 600_000;
const MARGIN_SECONDS: u64 = 20;

/// What to run.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// The skill that it belongs to.
    #[schemars(length(max = 64))]
    skill: String,
    /// Where it is in the skill's directory, such as `scripts/fill.py`.
    #[schemars(length(max = 512))]
    path: String,
    /// What it is given, word by word.
    #[serde(default)]
    #[schemars(length(max = 64), inner(length(max = 4096)))]
    args: Vec<String>,
    /// Milliseconds until it is stopped.
    #[serde(default = "usual_time")]
    #[schemars(range(min = 1, max = MOST_MILLISECONDS))]
    timeout_ms: u64,
}

fn usual_time() -> u64 {
    30_000
}

impl Args {
    fn started(&self) -> Started {
        Started { skill: self.skill.clone(), path: self.path.clone(), arguments: self.args.clone() }
    }
}

/// How it ended.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// 0 is success, 124 means that the time was up.
    exit_code: i32,
    /// What it wrote to its standard output.
    stdout: String,
    /// What it wrote to its standard error.
    stderr: String,
    /// How long it took, in milliseconds.
    duration_ms: u64,
    /// Whether it was stopped because its time was up.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    timed_out: bool,
    /// Whether it was stopped because it wrote more than can be kept.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    output_limit: bool,
    /// What it changed in the workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    changes: Option<SettledChanges>,
    /// What confinement kept from it, if it failed: perhaps that is why.
    // The gate fills this in, once it is known whether somebody grants what was missing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    denied: Vec<DeniedAccess>,
}

impl Tool for ScriptTool {
    type Args = Args;
    type Output = Output;

    const SPEC: Spec = Spec {
        name: "script",
        version: "1.0.0",
        description: "Run a script of a skill, without a shell. It starts in a directory of its own that it may fill; files of \
                      the workspace are below `workspace/` there. It is confined as `shell` is.",
        risk: Risk::Medium,
        permissions: &[Permission::FsRead, Permission::ProcExec, Permission::Agent],
        side_effects: &[SideEffect::StartsProcesses, SideEffect::WritesFiles],
        parallel: false,
    };

    const LONGEST: Option<Duration> = Some(Duration::from_secs(MOST_MILLISECONDS / 1000 + MARGIN_SECONDS));

    fn effects(&self, args: &Args) -> Vec<Effect> {
        vec![
            Effect::read("."),
            Effect::Skill { name: Some(args.skill.clone()) },
            Effect::Run { command: args.started().line(), workdir: ".".into() },
        ]
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
