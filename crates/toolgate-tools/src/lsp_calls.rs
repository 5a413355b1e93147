//! `lsp_calls`: who calls a function, and what it calls.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolgate_contract::{
    CallDirection, CodeCall, CodeFindings, CodeQuestion, Effect, Hands, Permission, Risk, Spec, Tool, ToolError,
};

use crate::support::code_target::{AnswerStatus, TargetArgs, other_answer};

/// Follows calls.
pub struct LspCallsTool;

/// Of which function.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Args {
    #[serde(flatten)]
    target: TargetArgs,
    /// Callers, or what it calls.
    #[serde(default)]
    direction: CallDirection,
    /// Steps.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 5))]
    depth: u32,
}

fn one() -> u32 {
    1
}

/// The calls.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// The calls.
    calls: Vec<CodeCall>,
    #[serde(flatten)]
    status: AnswerStatus,
}

impl Tool for LspCallsTool {
    type Args = Args;
    type Output = Output;

    const SPEC: Spec = Spec {
        name: "lsp_calls",
        version: "1.0.0",
        description: "Find who calls a function, or what it calls.",
        risk: Risk::Low,
        permissions: &[Permission::FsRead],
        side_effects: &[],
        parallel: true,
    };
    const LONGEST: Option<Duration> = Some(Duration::from_secs(300));

    fn effects(&self, args: &Args) -> Vec<Effect> {
        args.target.effects()
    }

    async fn run(&self, args: Args, hands: &dyn Hands) -> Result<Output, ToolError> {
        let (target, direction, depth) = (args.target.resolve(hands)?, args.direction, args.depth);
        let answer = hands.ask_about_code(CodeQuestion::Calls { target, direction, depth }).await?;
        let status = AnswerStatus::of(&answer);
        match answer.findings {
            CodeFindings::Calls(calls) => Ok(Output { calls, status }),
            _ => Err(other_answer()),
        }
    }
}
