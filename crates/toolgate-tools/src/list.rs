//! `list`: shows the entries of a directory.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolgate_contract::{
    Effect, EntryKind, Hands, Permission, Risk, Spec, Tool, ToolError, VisitedEntry, Visitor, WalkOptions, WalkStep,
};

use crate::support::cursor::{Cursor, ResumePoint, SortKey, SortOrder, page};
use crate::support::top_items::TopItems;

/// Maximum and default number of entries in one reply.
const MAX_ENTRIES: u32 = 1_000;

/// Shows the entries of a directory.
pub struct ListTool;

/// The directory and depth.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// Relative to the workspace.
    #[serde(default = "current_directory")]
    path: String,
    /// Whether to recurse.
    #[serde(default)]
    recursive: bool,
    /// Globs relative to `path`, such as `*.lock` or `docs/`.
    #[serde(default)]
    ignore: Vec<String>,
    /// Leaves out what `.gitignore` names; by default if `recursive`.
    #[serde(default)]
    gitignore: Option<bool>,
    /// Maximum entries.
    #[serde(default)]
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<u32>,
    /// Resumes after an earlier reply: its `next_cursor`.
    #[serde(default)]
    cursor: Option<String>,
}

fn current_directory() -> String {
    ".".into()
}

/// The entries.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// The entries, by path.
    entries: Vec<ListedEntry>,
    /// Whether there are more; use `cursor`.
    has_more: bool,
    /// Directories that couldn't be read, if there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    unreadable: Option<u64>,
}

/// One entry.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ListedEntry {
    /// Its name; bytes that aren't UTF-8 are escaped as `\xNN`.
    name: String,
    /// Its path, relative to the workspace.
    path: String,
    /// Its kind; links aren't followed.
    kind: EntryKind,
    /// Size in bytes, for files.
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
}

impl Tool for ListTool {
    type Args = Args;
    type Output = Output;

    const SPEC: Spec = Spec {
        name: "list",
        version: "1.1.0",
        description: "Show what is in a directory: names, kinds, sizes, also of names that begin with a dot, but no \
                      credential files.",
        risk: Risk::Low,
        permissions: &[Permission::FsRead],
        side_effects: &[],
        parallel: true,
    };

    fn effects(&self, args: &Args) -> Vec<Effect> {
        vec![Effect::read(&args.path)]
    }

    async fn run(&self, args: Args, hands: &dyn Hands) -> Result<Output, ToolError> {
        hands.blocking(move |hands| list(&args, hands)).await
    }
}

fn list(args: &Args, hands: &dyn Hands) -> Result<Output, ToolError> {
    let limit = args.limit.unwrap_or(MAX_ENTRIES);
    let options = WalkOptions {
        gitignore: args.gitignore.unwrap_or(args.recursive),
        hidden: true,
        max_depth: (!args.recursive).then_some(1),
        globs: args.ignore.iter().map(|glob| format!("!{glob}")).collect(),
        ..WalkOptions::default()
    };
    let after = ResumePoint::new(args.cursor.as_deref(), SortOrder::Path)?;
    let first = TopItems::new(limit as usize + 1);
    let visit = |walked: &VisitedEntry<'_>| visit(walked, &after, &first, hands);
    let unreadable = hands.walk(&args.path, &options, &|| -> Visitor<'_> { Box::new(visit) })?;
    let found = first.into_ordered().map(|(key, item)| (Cursor::after(key), item));
    let (entries, has_more) = page(found, limit, hands);
    Ok(Output { entries, has_more, unreadable: (unreadable > 0).then_some(unreadable) })
}

fn visit(walked: &VisitedEntry<'_>, after: &ResumePoint, first: &TopItems<ListedEntry>, hands: &dyn Hands) -> WalkStep {
    let key = SortKey::by_path(&walked.place.path);
    // Entries beneath a directory sort after it, so a directory past the end of the page has nothing for the page.
    if !first.accepts(&key) {
        return WalkStep::Past;
    }
    let goes_in = after.reaches_into(&key.path);
    if after.line(&key).is_some() {
        let size = (walked.kind == EntryKind::File).then(|| walked.facts()).flatten().map(|facts| facts.size);
        let name = key.path.rsplit('/').next().unwrap_or_default().to_owned();
        first.add(key, 1, ListedEntry { name, path: hands.shown(walked.place), kind: walked.kind, size });
    }
    if goes_in { WalkStep::On } else { WalkStep::Past }
}
