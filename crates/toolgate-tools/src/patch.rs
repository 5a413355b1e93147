//! `patch`: applies a unified diff, or the `*** Begin Patch` format, to any number of files at once.

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use toolgate_contract::{
    Access, Effect, ErrorCode, FileContent, Hands, LINK_MODE, Permission, Preview, Risk, SideEffect, Spec, Tool,
    ToolError, WorkspacePath,
};

use crate::support::hash_ahead::hash_ahead;
use crate::support::target_file::TargetFile;
use crate::support::text::patch::{
    FileOperation, FilePatch, HunkReport, PatchFault, PatchSemantics, PatchedContent, apply_in, parse,
};
use crate::support::text::{Diff, DiffSide, MatchTier, between};

/// Applies a patch.
pub struct PatchTool;

/// The patch.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// As `git diff` writes it, or `*** Begin Patch` … `*** End Patch`.
    patch: String,
    /// Only shows what would happen.
    #[serde(default)]
    dry_run: bool,
    /// By path, from `read`.
    #[serde(default)]
    expected_sha256: BTreeMap<String, String>,
    /// `codex`: lines without context go to the end, and files that exist are replaced.
    #[serde(default)]
    #[schemars(schema_with = "short_semantics")]
    semantics: PatchSemantics,
}

/// The names alone: the list of tools has to stay short.
fn short_semantics(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "enum": ["strict", "codex"] })
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
    if file.is_link() && matches!(file.operation, FileOperation::Create | FileOperation::Update) {
        let access = if is_dry_run { Access::Read } else { Access::Write };
        return vec![Effect::Entry { path: path.clone(), access }];
    }
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
        check_kind(file, before.as_ref())?;
        // The hash is computed concurrently; a version mismatch is reported before any hunk failure.
        let (content, encoding) = (before.as_ref().map(|content| &content.bytes[..]), working_file.found.encoding());
        let applied = apply_in(file, content, encoding, args.semantics);
        let moved_on = working_file.found.check_version(hands, args.expected_of(&file.path))?;
        let applied = applied?;
        let rebased = match moved_on {
            None => None,
            Some(what) if is_certain(file, &applied) => {
                Some(format!("The patch was rebased: since the file was last seen, {what}"))
            }
            Some(what) => return Err(working_file.found.stale(&what)),
        };
        let mode = file.mode.after.map(content_mode).or(before.as_ref().and_then(|content| content.mode));
        let after = applied.after.map(|bytes| FileContent { bytes: bytes.into(), mode });
        after.iter().for_each(|content| hash_ahead(&content.bytes));
        let target = match &file.operation {
            FileOperation::Move { to } | FileOperation::Copy { to } => to,
            _ => &file.path,
        };
        let Diff { text: diff, additions, deletions } = between(side(&file.path, &before), side(target, &after));
        let replaced = self.put(file, after, args, hands)?;
        let notes: Vec<String> = rebased.into_iter().chain(replaced).collect();
        let note = (!notes.is_empty()).then(|| notes.join(" "));
        let operation = file.operation.clone();
        Ok(PatchedFile { path: file.path.clone(), operation, additions, deletions, hunks: applied.reports, note, diff })
    }

    /// Stores the new content under the file's new path. Gives a note where that replaces another file.
    fn put(
        &mut self,
        file: &FilePatch<'_>,
        after: Option<FileContent>,
        args: &Args,
        hands: &dyn Hands,
    ) -> Result<Option<String>, ToolError> {
        let (FileOperation::Move { to } | FileOperation::Copy { to }) = &file.operation else {
            self.working_file(&file.path, hands)?.now = after;
            return Ok(None);
        };
        let target = self.working_file(to, hands)?;
        let replaces = target.now.is_some();
        if replaces && args.semantics == PatchSemantics::Strict {
            let (path, from) = (to.clone(), Some(file.path.clone()));
            return Err(PatchFault::Exists { path, from, format: file.format }.into());
        }
        if let Some(what) = target.found.check_version(hands, args.expected_of(to))?.filter(|_| replaces) {
            return Err(target.found.stale(&what));
        }
        target.now = after;
        if matches!(file.operation, FileOperation::Move { .. }) {
            self.working_file(&file.path, hands)?.now = None;
        }
        Ok(replaces.then(|| format!("`{to}` existed and was replaced.")))
    }

    fn working_file(&mut self, path: &str, hands: &dyn Hands) -> Result<&mut WorkingFile, ToolError> {
        let place = hands.place(path)?;
        if !self.files.contains_key(&place) {
            let found = TargetFile::load_at(hands, path, place.clone())?;
            found.bytes.iter().for_each(hash_ahead);
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

impl Args {
    /// The version of a path that the patch is for.
    fn expected_of(&self, path: &str) -> Option<&str> {
        self.expected_sha256.get(path).map(String::as_str)
    }
}

/// Whether the hunks match a file that nobody has seen so well that the patch must have been made for it.
fn is_certain(file: &FilePatch<'_>, applied: &PatchedContent) -> bool {
    file.operation != FileOperation::Create
        && applied.reports.iter().all(|hunk| hunk.tier == MatchTier::Exact && hunk.fuzz == 0)
}

/// Refuses hunks for a file where there is a link, and the other way round. A link is deleted or moved as it is.
fn check_kind(file: &FilePatch<'_>, before: Option<&FileContent>) -> Result<(), ToolError> {
    let path = &file.path;
    let (message, hint) = match before.map(FileContent::is_link) {
        Some(true) if !file.is_link() && !file.hunks.is_empty() => (
            format!("`{path}` is a symbolic link."),
            "Patch the file that it leads to; a diff that changes the link itself has mode 120000.",
        ),
        Some(false) if file.is_link() && file.operation != FileOperation::Create => (
            format!("The patch changes the symbolic link `{path}`, which is a file."),
            "Delete the file and create the link, in the same patch.",
        ),
        _ => return Ok(()),
    };
    Err(ToolError::new(ErrorCode::NotAFile, message).with_hint(hint))
}

/// A mode in git's notation as that of a file's content.
fn content_mode(mode: u32) -> u32 {
    if mode == LINK_MODE { LINK_MODE } else { mode & 0o777 }
}

fn side<'a>(path: &'a str, content: &'a Option<FileContent>) -> Option<DiffSide<'a>> {
    let content = content.as_ref()?;
    Some(DiffSide { path, mode: 0o100_000 | content.mode.unwrap_or(0o644), content: &content.bytes })
}
