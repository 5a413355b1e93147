//! `lints`: what language servers and linters find wrong in files.

use std::time::Duration;

use toolgate_contract::{Effect, Hands, Permission, Risk, Spec, Tool, ToolError};

use crate::lsp_diagnostics::{Args, Output, diagnose};
use crate::support::code_target::workspace_and;

/// Finds what is wrong, with linters too.
pub struct LintsTool;

impl Tool for LintsTool {
    type Args = Args;
    type Output = Output;

    const SPEC: Spec = Spec {
        name: "lints",
        version: "1.0.0",
        description: "Like `lsp_diagnostics`, with what linters find (ruff, eslint, shellcheck, clippy).",
        risk: Risk::Low,
        permissions: &[Permission::FsRead],
        side_effects: &[],
        parallel: true,
    };
    const LONGEST: Option<Duration> = Some(Duration::from_secs(360));

    fn effects(&self, args: &Args) -> Vec<Effect> {
        workspace_and(&args.places())
    }

    async fn run(&self, args: Args, hands: &dyn Hands) -> Result<Output, ToolError> {
        diagnose(args, true, hands).await
    }
}
