//! `lsp_definition`: where a symbol is defined, by a language server.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolgate_contract::{
    CodeFindings, CodePlace, CodeQuestion, DefinitionKind, Effect, Hands, Permission, Risk, Spec, Tool, ToolError,
};

use crate::support::code_target::{AnswerStatus, TargetArgs, other_answer};

/// Finds definitions.
pub struct LspDefinitionTool;

/// Which symbol, and what of it.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Args {
    #[serde(flatten)]
    target: TargetArgs,
    /// What to find.
    #[serde(default)]
    kind: DefinitionKind,
}

/// Where it is.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// The places.
    places: Vec<DefinedPlace>,
    #[serde(flatten)]
    status: AnswerStatus,
}

/// A place that can be asked about in turn.
#[derive(Debug, Serialize, JsonSchema)]
struct DefinedPlace {
    #[serde(flatten)]
    place: CodePlace,
    /// The character in the line, from 1.
    column: u32,
}

impl Tool for LspDefinitionTool {
    type Args = Args;
    type Output = Output;

    const SPEC: Spec = Spec {
        name: "lsp_definition",
        version: "1.0.0",
        description: "Find where a symbol is defined, with the language server of its file.",
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
        let question = CodeQuestion::Definition { target: args.target.resolve(hands)?, kind: args.kind };
        let answer = hands.ask_about_code(question).await?;
        let status = AnswerStatus::of(&answer);
        match answer.findings {
            CodeFindings::Places(places) => {
                let places = places.into_iter().map(|place| DefinedPlace { column: place.column, place });
                Ok(Output { places: places.collect(), status })
            }
            _ => Err(other_answer()),
        }
    }
}
