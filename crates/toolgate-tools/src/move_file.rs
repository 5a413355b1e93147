//! `move`: gives a file another path (C-50). A link is moved as it is, never what it leads to.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolgate_contract::{Access, Effect, ErrorCode, Hands, Permission, Risk, SideEffect, Spec, Tool, ToolError};

use crate::support::target_file::TargetFile;

/// Moves a file.
pub struct MoveTool;

/// From where to where.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// Path of the file, relative to the workspace. Of a link, the link itself is moved.
    from: String,
    /// Its new path. Directories that are missing are made.
    to: String,
    /// Whether a file that is there already is replaced.
    #[serde(default)]
    overwrite: bool,
}

/// Where it is now.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// Where it was.
    from: String,
    /// Where it is.
    to: String,
    /// Whether a file was replaced.
    replaced: bool,
}

impl Tool for MoveTool {
    type Args = Args;
    type Output = Output;

    const SPEC: Spec = Spec {
        name: "move",
        version: "1.0.0",
        description: "Move or rename a file.",
        risk: Risk::High,
        permissions: &[Permission::FsRead, Permission::FsWrite, Permission::FsDelete],
        side_effects: &[SideEffect::WritesFiles, SideEffect::DeletesFiles],
        parallel: false,
    };

    fn effects(&self, args: &Args) -> Vec<Effect> {
        vec![Effect::read(&args.from), Effect::delete(&args.from), Effect::read(&args.to), Effect::write(&args.to)]
    }

    async fn run(&self, args: Args, hands: &Hands) -> Result<Output, ToolError> {
        let source = TargetFile::load_at(hands, &args.from, hands.target(Access::Delete, &args.from)?)?;
        let target = TargetFile::look(hands, &args.to)?;
        let content = source.content()?;
        if source.place == target.place {
            return Err(ToolError::invalid_args("`from` and `to` are the same file."));
        }
        let replaced = target.bytes.is_some();
        if replaced && !args.overwrite {
            return Err(ToolError::new(ErrorCode::InvalidArgs, format!("There is a file at `{}` already.", args.to))
                .with_hint("Choose another path, or set `overwrite`."));
        }
        let mode = source.mode;
        hands.change(vec![target.into_edit(content, Some(mode)), source.into_removal()])?;
        Ok(Output { from: args.from, to: args.to, replaced })
    }
}
