//! `move`: moves or renames a file. A symbolic link is moved itself, never its target.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolgate_contract::{Access, Effect, ErrorCode, Hands, Permission, Risk, SideEffect, Spec, Tool, ToolError};

use crate::support::target_file::TargetFile;

/// Moves a file.
pub struct MoveTool;

/// Both paths.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// Path of the file, relative to the workspace. A link is moved itself.
    from: String,
    /// Its new path. Missing directories are created.
    to: String,
    /// Whether to replace an existing file.
    #[serde(default)]
    overwrite: bool,
}

/// Both paths.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// The old path.
    from: String,
    /// New path.
    to: String,
    /// Whether one was replaced.
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

    async fn run(&self, args: Args, hands: &dyn Hands) -> Result<Output, ToolError> {
        let source = TargetFile::load_at(hands, &args.from, hands.target(Access::Delete, &args.from)?)?;
        let target = TargetFile::load(hands, &args.to)?;
        source.bytes()?;
        if source.place == target.place {
            return Err(ToolError::invalid_args("`from` and `to` are the same file."));
        }
        let replaced = target.bytes.is_some();
        if replaced && !args.overwrite {
            return Err(ToolError::new(ErrorCode::InvalidArgs, format!("`{}` already exists.", args.to))
                .with_hint("Choose another path, or set `overwrite`."));
        }
        hands.change(source.into_move(target)?)?;
        Ok(Output { from: args.from, to: args.to, replaced })
    }
}
