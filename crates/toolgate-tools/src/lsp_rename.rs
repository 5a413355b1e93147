//! `lsp_rename`: gives a symbol another name everywhere. A language server works out the edits; each file that they change is
//! judged like any other write, and all of them are one change, or none is made.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolgate_contract::{
    CodeFindings, CodeQuestion, Effect, FileEdit, Hands, Permission, Preview, Risk, SideEffect, Spec, Tool, ToolError,
};

use crate::support::code_target::{AnswerStatus, TargetArgs, other_answer};
use crate::support::text::{Diff, unified};

/// Renames symbols.
pub struct LspRenameTool;

/// Which symbol, and its new name.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Args {
    #[serde(flatten)]
    target: TargetArgs,
    /// The new name.
    #[schemars(length(min = 1))]
    new_name: String,
    /// Whether to only show the diff.
    #[serde(default)]
    dry_run: bool,
}

/// What was changed.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// The files.
    files: Vec<String>,
    /// The diff.
    diff: String,
    /// Whether it was made.
    applied: bool,
    #[serde(flatten)]
    status: AnswerStatus,
}

impl Tool for LspRenameTool {
    type Args = Args;
    type Output = Output;

    const SPEC: Spec = Spec {
        name: "lsp_rename",
        version: "1.0.0",
        description: "Rename a symbol and all its uses, in all files or none.",
        risk: Risk::High,
        permissions: &[Permission::FsRead, Permission::FsWrite],
        side_effects: &[SideEffect::WritesFiles],
        parallel: false,
    };
    const LONGEST: Option<Duration> = Some(Duration::from_secs(300));

    fn effects(&self, args: &Args) -> Vec<Effect> {
        args.target.effects()
    }

    async fn run(&self, args: Args, hands: &dyn Hands) -> Result<Output, ToolError> {
        let (target, new_name) = (args.target.resolve(hands)?, args.new_name);
        let answer = hands.ask_about_code(CodeQuestion::Rename { target, new_name }).await?;
        let status = AnswerStatus::of(&answer);
        let CodeFindings::Edits(edits) = answer.findings else { return Err(other_answer()) };
        let files: Vec<String> = edits.iter().map(|edit| hands.shown(&edit.place)).collect();
        let diff: String = edits.iter().zip(&files).map(|(edit, path)| diff(edit, path)).collect();
        if !args.dry_run {
            // Only now is it known what is written; the gate judges each path.
            let writes = files.iter().map(Effect::write).collect();
            hands.state_further(writes, Preview { diff: diff.clone() })?;
            hands.change(edits)?;
        }
        Ok(Output { files, diff, applied: !args.dry_run, status })
    }
}

fn diff(edit: &FileEdit, path: &str) -> String {
    let bytes = |content: &Option<toolgate_contract::FileContent>| {
        content.as_ref().map(|content| content.bytes.to_vec()).unwrap_or_default()
    };
    let Diff { text, .. } = unified(Some(path), Some(path), &bytes(&edit.before), &bytes(&edit.after));
    text
}
