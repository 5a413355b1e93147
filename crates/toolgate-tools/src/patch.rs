//! `patch`: applies a unified diff, or the `*** Begin Patch` format, to any number of files at once.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolgate_contract::{
    Effect, ErrorCode, FileContent, Hands, Permission, Preview, Risk, SideEffect, Spec, Tool, ToolError, WorkspacePath,
};

use crate::support::hash_ahead::hash_ahead;
use crate::support::target_file::TargetFile;
use crate::support::text::patch::{FileOperation, FilePatch, HunkReport, PatchFault, apply_in, parse};
use crate::support::text::{Diff, DiffSide, MatchTier, between};

/// Applies a patch.
pub struct PatchTool;

/// The patch.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// The patch: a unified diff as `git diff` writes it, or `*** Begin Patch` … `*** End Patch`.
    patch: String,
    /// Only shows what would happen.
    #[serde(default)]
    dry_run: bool,
    /// For each path, the version the patch is for, from `read`.
    #[serde(default)]
    expected_sha256: BTreeMap<String, String>,
}

/// The result of the patch.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// Whether anything was changed; false for a dry run.
    applied: bool,
    /// Each file, in the order of the patch.
    results: Vec<PatchedFile>,
}

/// The result for one file.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct PatchedFile {
    /// The file's path before the patch.
    path: String,
    /// What happened to it.
    operation: FileOperation,
    /// Lines added.
    additions: usize,
    /// Lines removed.
    deletions: usize,
    /// How each hunk was applied.
    hunks: Vec<HunkReport>,
    /// Adjustments made.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
    /// The unified diff.
    diff: String,
}

impl Tool for PatchTool {
    type Args = Args;
    type Output = Output;

    const SPEC: Spec = Spec {
        name: "patch",
        version: "1.0.0",
        description: "Apply a unified diff, or a `*** Begin Patch` block, to one or many files: create, update, delete, \
                      move. All of it or nothing.",
        risk: Risk::High,
        permissions: &[Permission::FsRead, Permission::FsWrite, Permission::FsDelete],
        side_effects: &[SideEffect::WritesFiles, SideEffect::DeletesFiles],
        parallel: false,
    };

    fn effects(&self, args: &Args) -> Vec<Effect> {
        // Text that is not a patch has no effects; running it reports the error.
        let files = parse(args.patch.as_bytes()).unwrap_or_default();
        let mut effects: Vec<Effect> = files.iter().flat_map(|file| effects_of(file, args.dry_run)).collect();
        effects.dedup();
        effects
    }

    fn preview(&self, args: &Args, hands: &dyn Hands) -> Result<Option<Preview>, ToolError> {
        let files = parse(args.patch.as_bytes())?;
        let results = WorkingFiles::default().apply_all(&files, args, hands)?;
        Ok(Some(Preview { diff: results.into_iter().map(|result| result.diff).collect() }))
    }

    async fn run(&self, args: Args, hands: &dyn Hands) -> Result<Output, ToolError> {
        let files = parse(args.patch.as_bytes())?;
        let mut bench = WorkingFiles::default();
        let results = bench.apply_all(&files, &args, hands)?;
        if !args.dry_run {
            hands.change(bench.edits())?;
        }
        Ok(Output { applied: !args.dry_run, results })
    }
}

/// The effects of one file's part of a patch.
fn effects_of(file: &FilePatch<'_>, is_dry_run: bool) -> Vec<Effect> {
    let path = &file.path;
    let changes = match &file.operation {
        _ if is_dry_run => vec![],
        FileOperation::Create | FileOperation::Update => vec![Effect::write(path)],
        FileOperation::Delete => vec![Effect::delete(path)],
        FileOperation::Move { to } => vec![Effect::delete(path), Effect::write(to)],
        FileOperation::Copy { to } => vec![Effect::write(to)],
    };
    let target = match &file.operation {
        FileOperation::Move { to } | FileOperation::Copy { to } => Some(Effect::read(to)),
        _ => None,
    };
    [Effect::read(path)].into_iter().chain(target).chain(changes).collect()
}

/// The files while the patch is applied. A patch may name one file twice; each part starts from the result of the last.
#[derive(Default)]
struct WorkingFiles {
    files: BTreeMap<WorkspacePath, WorkingFile>,
}

struct WorkingFile {
    found: TargetFile,
    now: Option<FileContent>,
}

impl WorkingFiles {
    fn apply_all(
        &mut self,
        files: &[FilePatch<'_>],
        args: &Args,
        hands: &dyn Hands,
    ) -> Result<Vec<PatchedFile>, ToolError> {
        files.iter().map(|file| self.apply(file, args, hands)).collect()
    }

    fn apply(&mut self, file: &FilePatch<'_>, args: &Args, hands: &dyn Hands) -> Result<PatchedFile, ToolError> {
        let working_file = self.working_file(&file.path, hands)?;
        let before = working_file.now.clone();
        // The hash is computed concurrently; a version mismatch is reported before any hunk failure.
        let applied = apply_in(file, before.as_ref().map(|content| &content.bytes[..]), working_file.found.encoding());
        let moved_on =
            working_file.found.check_version(hands, args.expected_sha256.get(&file.path).map(String::as_str))?;
        let applied = applied?;
        let note = match moved_on {
            None => None,
            Some(what) if applied.reports.iter().all(|hunk| hunk.tier == MatchTier::Exact && hunk.fuzz == 0) => {
                Some(format!("The patch was rebased: since the file was last seen, {what}"))
            }
            Some(what) => return Err(working_file.found.stale(&what)),
        };
        let mode = file.mode.after.map(|mode| mode & 0o777).or(before.as_ref().and_then(|content| content.mode));
        let after = applied.after.map(|bytes| FileContent { bytes: bytes.into(), mode });
        after.iter().for_each(|content| hash_ahead(&content.bytes));
        let target = match &file.operation {
            FileOperation::Move { to } | FileOperation::Copy { to } => to,
            _ => &file.path,
        };
        let Diff { text: diff, additions, deletions } = between(side(&file.path, &before), side(target, &after));
        self.put(file, after, hands)?;
        let operation = file.operation.clone();
        Ok(PatchedFile { path: file.path.clone(), operation, additions, deletions, hunks: applied.reports, note, diff })
    }

    /// Stores the new content under the file's new path.
    fn put(&mut self, file: &FilePatch<'_>, after: Option<FileContent>, hands: &dyn Hands) -> Result<(), ToolError> {
        match &file.operation {
            FileOperation::Move { to } | FileOperation::Copy { to } => {
                let target = self.working_file(to, hands)?;
                if target.now.is_some() {
                    return Err(PatchFault::Exists { path: to.clone() }.into());
                }
                target.now = after;
                if matches!(file.operation, FileOperation::Move { .. }) {
                    self.working_file(&file.path, hands)?.now = None;
                }
            }
            _ => self.working_file(&file.path, hands)?.now = after,
        }
        Ok(())
    }

    fn working_file(&mut self, path: &str, hands: &dyn Hands) -> Result<&mut WorkingFile, ToolError> {
        let place = hands.place(path)?;
        if !self.files.contains_key(&place) {
            let found = TargetFile::load(hands, path)?;
            let now = found.bytes.clone().map(|bytes| FileContent { bytes, mode: Some(found.mode) });
            self.files.insert(place.clone(), WorkingFile { found, now });
        }
        self.files
            .get_mut(&place)
            .ok_or_else(|| ToolError::new(ErrorCode::Internal, "A patched file is missing from the working set."))
    }

    /// The edits to make on disk.
    fn edits(self) -> Vec<toolgate_contract::FileEdit> {
        let has_changed = |working_file: &WorkingFile| {
            let before = working_file.found.bytes.as_ref().map(|bytes| (bytes, working_file.found.mode));
            before != working_file.now.as_ref().map(|now| (&now.bytes, now.mode.unwrap_or(0o644)))
        };
        self.files
            .into_values()
            .filter(has_changed)
            .map(|WorkingFile { found, now }| match now {
                Some(content) => found.into_edit(content.bytes, content.mode),
                None => found.into_removal(),
            })
            .collect()
    }
}

fn side<'a>(path: &'a str, content: &'a Option<FileContent>) -> Option<DiffSide<'a>> {
    let content = content.as_ref()?;
    Some(DiffSide { path, mode: 0o100_000 | content.mode.unwrap_or(0o644), content: &content.bytes })
}
