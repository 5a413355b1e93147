//! `lsp_symbols`: the symbols of a file, or of the workspace by name.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolgate_contract::{
    CodeFindings, CodeQuestion, CodeSymbol, Effect, Hands, Permission, Risk, Spec, Tool, ToolError,
};

use crate::support::code_target::{AnswerStatus, other_answer, workspace_and};

/// Lists symbols.
pub struct LspSymbolsTool;

/// Of which file, or with which name.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// A file.
    #[serde(default)]
    path: Option<String>,
    /// Or a part of the name.
    #[serde(default)]
    query: Option<String>,
}

/// The symbols.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// The symbols.
    symbols: Vec<CodeSymbol>,
    #[serde(flatten)]
    status: AnswerStatus,
}

impl Tool for LspSymbolsTool {
    type Args = Args;
    type Output = Output;

    const SPEC: Spec = Spec {
        name: "lsp_symbols",
        version: "1.0.0",
        description: "List the functions, classes and other symbols of a file, or find them by name.",
        risk: Risk::Low,
        permissions: &[Permission::FsRead],
        side_effects: &[],
        parallel: true,
    };
    const LONGEST: Option<Duration> = Some(Duration::from_secs(300));

    fn effects(&self, args: &Args) -> Vec<Effect> {
        workspace_and(args.path.as_slice())
    }

    async fn run(&self, args: Args, hands: &dyn Hands) -> Result<Output, ToolError> {
        let question = match (&args.path, args.query) {
            (Some(path), None) => CodeQuestion::FileSymbols { path: hands.place(path)? },
            (None, Some(query)) => CodeQuestion::FindSymbols { query },
            _ => return Err(ToolError::invalid_args("Give either `path` or `query`.")),
        };
        let answer = hands.ask_about_code(question).await?;
        let status = AnswerStatus::of(&answer);
        match answer.findings {
            CodeFindings::Symbols(symbols) => Ok(Output { symbols, status }),
            _ => Err(other_answer()),
        }
    }
}
