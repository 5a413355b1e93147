//! `grep`: finds lines by content, with ripgrep's matcher and searcher.

mod match_collector;
mod output;
mod search;

use schemars::JsonSchema;
use serde::Deserialize;
use toolgate_contract::{Effect, Hands, Permission, Risk, Spec, Tool, ToolError, Visitor, WalkOptions};

use self::output::Output;
use self::search::{ContentSearch, SearchWorker};
use crate::support::cursor::SortOrder;

/// Default number of matches, files or counts in one reply.
const DEFAULT_LIMIT: u32 = 100;
/// Maximum number of context lines on each side of a match.
const MAX_CONTEXT: u32 = 50;
/// Context lines shown by default when there are few matches.
const FREE_CONTEXT: u32 = 2;

/// Finds lines by their content.
pub struct GrepTool;

/// What to find, and where.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// Rust's syntax: no look-around, no backreferences.
    pattern: String,
    /// The pattern is plain text.
    #[serde(default)]
    literal: bool,
    /// A directory or file, relative to the workspace.
    #[serde(default = "current_directory")]
    path: String,
    /// Such as `*.rs`; a leading `!` excludes. Also finds ignored and hidden files.
    #[serde(default)]
    glob: Vec<String>,
    /// Ripgrep's names: `rust`, `py`, `js` …
    #[serde(default)]
    r#type: Vec<String>,
    /// Whether to ignore case.
    #[serde(default)]
    ignore_case: bool,
    /// A match may span lines; `(?s:.)` matches line ends.
    #[serde(default)]
    multiline: bool,
    /// Lines around each match.
    #[serde(default)]
    #[schemars(range(max = 50))]
    context: Option<u32>,
    /// Lines before each match.
    #[serde(default)]
    #[schemars(range(max = 50))]
    before: Option<u32>,
    /// Lines after each match.
    #[serde(default)]
    #[schemars(range(max = 50))]
    after: Option<u32>,
    /// What to return.
    #[serde(default)]
    mode: GrepMode,
    /// Maximum matches, files or counts.
    #[serde(default = "default_limit")]
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
    /// The sort order.
    #[serde(default)]
    order: SortOrder,
}

/// What to return.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum GrepMode {
    /// The lines that match.
    #[default]
    Matches,
    /// The files that have a match.
    Files,
    /// How many lines match in each file.
    Counts,
}

fn current_directory() -> String {
    ".".into()
}

fn default_limit() -> u32 {
    DEFAULT_LIMIT
}

fn enabled() -> bool {
    true
}

impl Args {
    /// Lines to show before and after each match; `None` if the caller didn't say.
    fn requested_context(&self) -> Option<(usize, usize)> {
        let requested = self.context.or(self.before).or(self.after);
        let lines = |side: Option<u32>| side.or(self.context).unwrap_or(0).min(MAX_CONTEXT) as usize;
        requested.map(|_| (lines(self.before), lines(self.after)))
    }
}

impl Tool for GrepTool {
    type Args = Args;
    type Output = Output;

    const SPEC: Spec = Spec {
        name: "grep",
        version: "1.0.0",
        description: "Find lines by a regular expression or plain text. Skips binary files and, unless you ask for \
                      them, what `.gitignore` names and names that begin with a dot. A few matches come with the \
                      lines around them.",
        risk: Risk::Low,
        permissions: &[Permission::FsRead],
        side_effects: &[],
        parallel: true,
    };

    fn effects(&self, args: &Args) -> Vec<Effect> {
        vec![Effect::read(&args.path)]
    }

    async fn run(&self, args: Args, hands: &dyn Hands) -> Result<Output, ToolError> {
        hands.blocking(move |hands| grep(&args, hands)).await
    }
}

fn grep(args: &Args, hands: &dyn Hands) -> Result<Output, ToolError> {
    let search = ContentSearch::new(args, hands)?;
    let options = WalkOptions {
        gitignore: args.gitignore,
        hidden: args.hidden,
        globs: args.glob.clone(),
        types: args.r#type.clone(),
        then_left_out: search.after.is_start(),
        ..WalkOptions::default()
    };
    let visitors = || -> Visitor<'_> {
        let mut worker = SearchWorker::new(&search);
        Box::new(move |walked| worker.visit(walked))
    };
    let unreadable = hands.walk(&args.path, &options, &visitors)?;
    output::answer(search, args, unreadable, hands)
}
