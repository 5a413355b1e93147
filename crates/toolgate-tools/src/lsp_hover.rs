//! `lsp_hover`: what a symbol is, by a language server.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolgate_contract::{CodeFindings, CodeQuestion, Effect, Hands, Permission, Risk, Spec, Tool, ToolError};

use crate::support::code_target::{AnswerStatus, TargetArgs, other_answer};

/// Describes symbols.
pub struct LspHoverTool;

/// Which symbol.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Args {
    #[serde(flatten)]
    target: TargetArgs,
}

/// What it is.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// Type and documentation; none if the server says nothing of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    contents: Option<String>,
    #[serde(flatten)]
    status: AnswerStatus,
}

impl Tool for LspHoverTool {
    type Args = Args;
    type Output = Output;

    const SPEC: Spec = Spec {
        name: "lsp_hover",
        version: "1.0.0",
        description: "Show the type and documentation of a symbol.",
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
        let answer = hands.ask_about_code(CodeQuestion::Hover { target: args.target.resolve(hands)? }).await?;
        let status = AnswerStatus::of(&answer);
        match answer.findings {
            CodeFindings::Hover(contents) => Ok(Output { contents, status }),
            _ => Err(other_answer()),
        }
    }
}
