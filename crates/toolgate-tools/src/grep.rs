//! `grep`: finds lines by their content (C-45), with ripgrep's own matching and searching.

mod match_collector;
mod output;
mod search;

use schemars::JsonSchema;
use serde::Deserialize;
use toolgate_contract::{Effect, Hands, Permission, Risk, Spec, Tool, ToolError, Visitor, WalkOptions};

use self::output::Output;
use self::search::{ContentSearch, SearchWorker};
use crate::support::cursor::SortOrder;

/// Matches, files or counts in one answer, unless the caller asks for another number.
const USUAL_LIMIT: u32 = 100;
/// Lines before and after a match that one can ask for.
const MOST_CONTEXT: u32 = 50;
/// Lines around each match that are shown unasked when there are few.
const FREE_CONTEXT: u32 = 2;

/// Finds lines by their content.
pub struct GrepTool;

/// What to look for, and where.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// A regular expression in Rust's syntax, which has no look-around and no backreferences.
    pattern: String,
    /// Whether the pattern is plain text instead.
    #[serde(default)]
    literal: bool,
    /// The directory or file to search, relative to the workspace.
    #[serde(default = "here")]
    path: String,
    /// Globs of files to search, relative to `path`, such as `*.rs`; `!` in front leaves out. A glob also finds ignored and
    /// hidden files.
    #[serde(default)]
    glob: Vec<String>,
    /// Types of files to search, by ripgrep's names: `rust`, `py`, `js`, `md` …
    #[serde(default)]
    r#type: Vec<String>,
    /// Whether upper and lower case are the same.
    #[serde(default)]
    ignore_case: bool,
    /// Whether a match may go over several lines; `.` still matches none of the line ends, `(?s:.)` does.
    #[serde(default)]
    multiline: bool,
    /// Lines to show before and after each match.
    #[serde(default)]
    #[schemars(range(max = 50))]
    context: Option<u32>,
    /// Lines to show before each match.
    #[serde(default)]
    #[schemars(range(max = 50))]
    before: Option<u32>,
    /// Lines to show after each match.
    #[serde(default)]
    #[schemars(range(max = 50))]
    after: Option<u32>,
    /// What to answer with.
    #[serde(default)]
    mode: GrepMode,
    /// Matches, files or counts at the most.
    #[serde(default = "usual_limit")]
    #[schemars(range(min = 1, max = 1000))]
    limit: u32,
    /// Goes on after an earlier answer: its `next_cursor`.
    #[serde(default)]
    cursor: Option<String>,
    /// Whether to search files and directories whose names begin with a dot.
    #[serde(default)]
    hidden: bool,
    /// Whether to leave out what `.gitignore` names.
    #[serde(default = "yes")]
    gitignore: bool,
    /// What comes first.
    #[serde(default)]
    order: SortOrder,
}

/// What to answer with.
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

fn here() -> String {
    ".".into()
}

fn usual_limit() -> u32 {
    USUAL_LIMIT
}

fn yes() -> bool {
    true
}

impl Args {
    /// Lines to show before and after each match; none when the caller leaves it to us.
    fn asked_context(&self) -> Option<(usize, usize)> {
        let asked = self.context.or(self.before).or(self.after);
        let lines = |side: Option<u32>| side.or(self.context).unwrap_or(0).min(MOST_CONTEXT) as usize;
        asked.map(|_| (lines(self.before), lines(self.after)))
    }
}

impl Tool for GrepTool {
    type Args = Args;
    type Output = Output;

    const SPEC: Spec = Spec {
        name: "grep",
        version: "1.0.0",
        description: "Find lines by a regular expression or plain text. Answers with matches, with files, or with counts. \
                      Binary files are skipped; what `.gitignore` names and names that begin with a dot are left out \
                      unless you ask for them. A few matches come with the lines around them.",
        risk: Risk::Low,
        permissions: &[Permission::FsRead],
        side_effects: &[],
        parallel: true,
    };

    fn effects(&self, args: &Args) -> Vec<Effect> {
        vec![Effect::read(&args.path)]
    }

    async fn run(&self, args: Args, hands: &Hands) -> Result<Output, ToolError> {
        hands.blocking(move |hands| grep(&args, hands)).await
    }
}

fn grep(args: &Args, hands: &Hands) -> Result<Output, ToolError> {
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
