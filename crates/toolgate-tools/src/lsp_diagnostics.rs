//! `lsp_diagnostics`: what language servers find wrong in files. [`crate::LintsTool`] asks linters too.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolgate_contract::{
    CodeDiagnostic, CodeFindings, CodeQuestion, CodeSeverity, Effect, Hands, Permission, Risk, Spec, Tool, ToolError,
};

use crate::support::code_target::{AnswerStatus, other_answer, workspace_and};

/// Finds what is wrong.
pub struct LspDiagnosticsTool;

/// Where to look.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// Files or directories; all if left out.
    #[serde(default)]
    #[schemars(length(max = 50))]
    paths: Vec<String>,
    // `paths` does the same, but models guess this one.
    /// Or one of them.
    #[serde(default)]
    path: Option<String>,
    /// Leaves out what is milder.
    #[serde(default)]
    pub(crate) severity: Option<CodeSeverity>,
    /// `mark` of an earlier reply: only what is new since.
    #[serde(default)]
    pub(crate) since: Option<String>,
}

impl Args {
    /// The files and directories that are meant: without any, the whole workspace.
    pub(crate) fn places(&self) -> Vec<String> {
        let named: Vec<String> = self.paths.iter().chain(&self.path).cloned().collect();
        if named.is_empty() { vec![".".into()] } else { named }
    }
}

/// What is wrong.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// What is wrong, by file and line.
    diagnostics: Vec<CodeDiagnostic>,
    /// How many.
    count: usize,
    /// For `since`.
    mark: String,
    /// How many are gone since.
    #[serde(skip_serializing_if = "Option::is_none")]
    fixed: Option<usize>,
    #[serde(flatten)]
    status: AnswerStatus,
}

impl Tool for LspDiagnosticsTool {
    type Args = Args;
    type Output = Output;

    const SPEC: Spec = Spec {
        name: "lsp_diagnostics",
        version: "1.0.0",
        description: "Show the errors and warnings that language servers find in files as they are now.",
        risk: Risk::Low,
        permissions: &[Permission::FsRead],
        side_effects: &[],
        parallel: true,
    };
    const LONGEST: Option<Duration> = Some(Duration::from_secs(300));

    fn effects(&self, args: &Args) -> Vec<Effect> {
        workspace_and(&args.places())
    }

    async fn run(&self, args: Args, hands: &dyn Hands) -> Result<Output, ToolError> {
        diagnose(args, false, hands).await
    }
}

/// Asks language servers, and linters if these are wanted.
pub(crate) async fn diagnose(args: Args, linters: bool, hands: &dyn Hands) -> Result<Output, ToolError> {
    let paths = args.places().iter().map(|path| hands.place(path)).collect::<Result<_, _>>()?;
    let answer = hands.ask_about_code(CodeQuestion::Diagnostics { paths, linters, since: args.since }).await?;
    let status = AnswerStatus::of(&answer);
    let CodeFindings::Diagnostics(mut diagnostics) = answer.findings else { return Err(other_answer()) };
    let is_wanted = |severity: CodeSeverity| args.severity.is_none_or(|mildest| severity <= mildest);
    diagnostics.retain(|one| is_wanted(one.severity));
    let (mark, fixed) = answer.mark.map(|mark| (mark.name, mark.fixed)).unwrap_or_default();
    let fixed = fixed.map(|gone| gone.into_iter().filter(|severity| is_wanted(*severity)).count());
    Ok(Output { count: diagnostics.len(), diagnostics, mark, fixed, status })
}
