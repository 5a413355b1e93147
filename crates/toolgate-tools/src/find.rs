//! `find`: finds files and directories by path.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolgate_contract::{
    Effect, EntryKind, Hands, Permission, Risk, Spec, Tool, ToolError, VisitedEntry, Visitor, WalkOptions, WalkStep,
    WorkspacePath, unescape_path,
};

use crate::support::cursor::{Cursor, ResumePoint, SortKey, SortOrder, page};
use crate::support::skipped_matches::SkippedMatches;
use crate::support::top_items::TopItems;

/// Default number of paths in one reply.
const DEFAULT_PATHS: u32 = 200;

/// Finds files and directories by their paths.
pub struct FindTool;

/// What to find, and where.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// Without `/` it matches names at any depth, with `/` paths relative to `path`; a `/` at the end matches directories.
    pattern: String,
    /// Relative to the workspace.
    #[serde(default = "current_directory")]
    path: String,
    /// 1: the directory's own entries.
    #[serde(default)]
    #[schemars(range(min = 1))]
    max_depth: Option<u32>,
    /// Everything if left out.
    #[serde(default)]
    kind: Option<FindKind>,
    /// Maximum paths.
    #[serde(default = "default_paths")]
    #[schemars(range(min = 1, max = 1000))]
    limit: u32,
    /// Resumes after an earlier reply: its `next_cursor`.
    #[serde(default)]
    cursor: Option<String>,
    /// Also names that begin with a dot.
    #[serde(default)]
    hidden: bool,
    /// Leaves out what `.gitignore` names.
    #[serde(default = "enabled")]
    gitignore: bool,
    /// Whether to ignore case.
    #[serde(default)]
    ignore_case: bool,
    /// The sort order.
    #[serde(default)]
    order: SortOrder,
}

/// What to find.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum FindKind {
    // The names say it all, and the list of tools has to stay short.
    File,
    #[serde(rename = "folder", alias = "directory")]
    Directory,
    Link,
}

fn current_directory() -> String {
    ".".into()
}

fn default_paths() -> u32 {
    DEFAULT_PATHS
}

fn enabled() -> bool {
    true
}

/// The matches.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// The paths, relative to the workspace; directories end in `/`, and bytes that aren't UTF-8 are escaped as `\xNN`.
    paths: Vec<String>,
    /// Whether there are more; use `cursor`.
    has_more: bool,
    /// Directories that couldn't be read, if there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    unreadable: Option<u64>,
    /// A remark about the result.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

impl Tool for FindTool {
    type Args = Args;
    type Output = Output;

    const SPEC: Spec = Spec {
        name: "find",
        version: "1.1.0",
        description: "Find files and directories by a glob such as `*.rs` or `src/**/test_*.py`, without what \
                      `.gitignore` names and names that begin with a dot unless you ask for them.",
        risk: Risk::Low,
        permissions: &[Permission::FsRead],
        side_effects: &[],
        parallel: true,
    };

    fn effects(&self, args: &Args) -> Vec<Effect> {
        vec![Effect::read(&args.path)]
    }

    async fn run(&self, args: Args, hands: &dyn Hands) -> Result<Output, ToolError> {
        hands.blocking(move |hands| find(&args, hands)).await
    }
}

fn find(args: &Args, hands: &dyn Hands) -> Result<Output, ToolError> {
    let search = PathSearch {
        pattern: FindPattern::new(&args.pattern, args.ignore_case)?,
        kind: args.kind,
        order: args.order,
        start: hands.place(&args.path)?,
        after: ResumePoint::new(args.cursor.as_deref(), args.order)?,
        first: TopItems::new(args.limit as usize + 1),
        left_out: SkippedMatches::default(),
    };
    let options = WalkOptions {
        gitignore: args.gitignore,
        hidden: args.hidden,
        max_depth: args.max_depth.map(|depth| depth as usize),
        then_left_out: search.after.is_start(),
        ..WalkOptions::default()
    };
    let unreadable =
        hands.walk(&args.path, &options, &|| -> Visitor<'_> { Box::new(|walked| search.visit(walked)) })?;
    let note = if search.first.is_empty() { search.left_out.note() } else { None };
    let shown = |path: &str| hands.shown(&WorkspacePath { root: search.start.root, path: path.to_owned() });
    let found = search.first.into_ordered().map(|(key, end)| (shown(&key.path) + end, key));
    let (paths, has_more) = page(found.map(|(path, key)| (Cursor::after(key), path)), args.limit, hands);
    Ok(Output { paths, has_more, unreadable: (unreadable > 0).then_some(unreadable), note })
}

/// One search, shared by the worker threads.
struct PathSearch {
    pattern: FindPattern,
    kind: Option<FindKind>,
    order: SortOrder,
    start: WorkspacePath,
    after: ResumePoint,
    /// The paths found, each with the suffix to show after it.
    first: TopItems<&'static str>,
    left_out: SkippedMatches,
}

impl PathSearch {
    fn visit(&self, walked: &VisitedEntry<'_>) -> WalkStep {
        if let Some(why) = walked.left_out {
            // Only an empty result needs to know what was skipped.
            if !self.first.is_empty() || !self.left_out.may_check() {
                return WalkStep::Stop;
            }
            if self.matches(walked) {
                self.left_out.count(why);
            }
            return WalkStep::On;
        }
        if self.matches(walked) {
            self.add(walked);
        }
        if walked.kind == EntryKind::Directory && !self.may_hold_more(&walked.place.path) {
            WalkStep::Past
        } else {
            WalkStep::On
        }
    }

    /// Whether entries beneath this directory can still be on the page.
    fn may_hold_more(&self, directory: &str) -> bool {
        let is_in_time = self.order == SortOrder::Newest || self.first.accepts(&SortKey::by_path(directory));
        is_in_time && self.after.reaches_into(directory)
    }

    fn add(&self, walked: &VisitedEntry<'_>) {
        let mut key = SortKey::by_path(&walked.place.path);
        if self.order == SortOrder::Newest {
            let Some(facts) = walked.facts() else { return };
            key.modified = facts.modified;
        }
        if self.after.line(&key).is_some() && self.first.accepts(&key) {
            let end = if walked.kind == EntryKind::Directory { "/" } else { "" };
            self.first.add(key, 1, end);
        }
    }

    fn matches(&self, walked: &VisitedEntry<'_>) -> bool {
        let is_kind = match self.kind {
            None => true,
            Some(FindKind::File) => walked.kind == EntryKind::File,
            Some(FindKind::Directory) => walked.kind == EntryKind::Directory,
            Some(FindKind::Link) => walked.kind == EntryKind::Link,
        };
        is_kind && self.pattern.matches(&self.start, walked)
    }
}

/// A compiled pattern. It is a set of one glob, since only `globset` sets have fast paths for common patterns.
struct FindPattern {
    glob: GlobSet,
    /// Whether it has bytes that aren't UTF-8, as they are shown.
    is_escaped: bool,
    is_about_path: bool,
    is_about_directories: bool,
}

impl FindPattern {
    fn new(pattern: &str, ignore_case: bool) -> Result<Self, ToolError> {
        if pattern.starts_with('/') {
            return Err(ToolError::invalid_args(format!("The pattern `{pattern}` is absolute."))
                .with_hint("Leave out the `/` in front, and say in `path` where to look."));
        }
        if pattern.split('/').any(|name| name == "..") {
            return Err(ToolError::invalid_args(format!("The pattern `{pattern}` contains `..`."))
                .with_hint("Say in `path` where to look; patterns match only below that directory."));
        }
        let tidy = pattern.strip_prefix("./").unwrap_or(pattern);
        let tidy = tidy.strip_suffix('/').unwrap_or(tidy);
        let is_about_path = tidy.contains('/') || pattern.starts_with("./");
        let is_escaped = *unescape_path(tidy) != *tidy.as_bytes();
        let text = if is_escaped { &*tidy.replace("\\x", r"\\x") } else { tidy };
        let mut glob = GlobBuilder::new(text);
        glob.literal_separator(is_about_path).backslash_escape(true).case_insensitive(ignore_case);
        let glob = glob.build();
        let glob = glob.and_then(|glob| GlobSetBuilder::new().add(glob).build()).map_err(|fault| {
            ToolError::invalid_args(format!("The pattern `{pattern}` is not a valid glob: {}.", fault.kind()))
                .with_hint("Use `*`, `?`, `[a-z]`, `{a,b}` and `**`; put `\\` before a literal special character.")
        })?;
        Ok(Self { glob, is_escaped, is_about_path, is_about_directories: pattern.ends_with('/') })
    }

    fn matches(&self, start: &WorkspacePath, walked: &VisitedEntry<'_>) -> bool {
        let path = walked.place.path.as_str();
        let text = match path.strip_prefix(start.path.as_str()) {
            Some(relative) if self.is_about_path => relative.trim_start_matches('/'),
            _ => path.rsplit('/').next().unwrap_or_default(),
        };
        let is_match = || match self.is_escaped {
            true => self.glob.is_match(text),
            false => self.glob.is_match(OsStr::from_bytes(&unescape_path(text))),
        };
        (!self.is_about_directories || walked.kind == EntryKind::Directory) && is_match()
    }
}
