//! `move`: moves or renames a file. A symbolic link is moved itself, never its target.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolgate_contract::{
    Access, Effect, ErrorCode, Hands, Permission, Preview, Risk, SideEffect, Spec, Tool, ToolError, WorkspacePath,
};

use crate::support::size;
use crate::support::target_file::TargetFile;

/// Moves a file.
pub struct MoveTool;

/// Both paths.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// Relative to the workspace. A link is moved itself.
    from: String,
    /// Missing directories are created.
    to: String,
    /// Replaces an existing file.
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

    fn preview(&self, args: &Args, hands: &dyn Hands) -> Result<Option<Preview>, ToolError> {
        let (source, target) = source_and_target(args, hands, hands.place(&args.from)?)?;
        let size = |bytes: &[u8]| size::in_words(bytes.len() as u64);
        let mut diff = format!("{} → {} ({})\n", args.from, args.to, size(source.bytes()?));
        if let Some(replaced) = &target.bytes {
            diff += &format!("-{} as it is now ({}); `undo` brings it back\n", args.to, size(replaced));
        }
        Ok(Some(Preview { diff }))
    }

    async fn run(&self, args: Args, hands: &dyn Hands) -> Result<Output, ToolError> {
        let (source, target) = source_and_target(&args, hands, hands.target(Access::Delete, &args.from)?)?;
        let replaced = target.bytes.is_some();
        hands.change(source.into_move(target)?)?;
        Ok(Output { from: args.from, to: args.to, replaced })
    }
}

/// The file at `place` and where it goes, unless it may not be moved.
fn source_and_target(
    args: &Args,
    hands: &dyn Hands,
    place: WorkspacePath,
) -> Result<(TargetFile, TargetFile), ToolError> {
    let source = TargetFile::load_at(hands, &args.from, place)?;
    let target = TargetFile::load(hands, &args.to)?;
    source.bytes()?;
    if source.place == target.place {
        return Err(ToolError::invalid_args("`from` and `to` are the same file."));
    }
    if target.bytes.is_some() && !args.overwrite {
        return Err(ToolError::new(ErrorCode::InvalidArgs, format!("`{}` already exists.", args.to))
            .with_hint("Choose another path, or set `overwrite`."));
    }
    Ok((source, target))
}
