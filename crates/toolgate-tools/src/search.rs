//! `search`: ranks places for a question, with the workspace's index.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolgate_contract::{
    AlsoFound, Effect, Hands, Permission, Risk, SearchAnswer, SearchCoverage, SearchHit, SearchKind, SearchQuestion,
    Spec, Tool, ToolError, counted,
};

/// Default number of places in one reply.
const DEFAULT_LIMIT: u32 = 10;
/// Default number of bytes of text in one reply.
const DEFAULT_BYTES: u32 = 8 * 1024;

/// Ranks places for a question.
pub struct SearchTool;

/// What to search for, and where.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// A question, words or identifiers; any language.
    #[schemars(length(min = 1))]
    query: String,
    /// Directories or files to search; the workspace if left out.
    #[serde(default)]
    paths: Vec<String>,
    /// Globs of files, such as `*.rs` or `src/**`; a leading `!` excludes.
    #[serde(default)]
    glob: Vec<String>,
    /// A language, such as `rust` or `py`.
    #[serde(default)]
    lang: Option<String>,
    /// What kind of file.
    #[serde(default)]
    kind: SearchKind,
    /// Maximum places.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 100))]
    limit: u32,
    /// Maximum bytes of text.
    #[serde(default = "default_bytes")]
    #[schemars(range(min = 1, max = 65536))]
    max_bytes: u32,
}

fn default_limit() -> u32 {
    DEFAULT_LIMIT
}

fn default_bytes() -> u32 {
    DEFAULT_BYTES
}

impl Args {
    fn paths(&self) -> Vec<String> {
        if self.paths.is_empty() { vec![".".into()] } else { self.paths.clone() }
    }
}

/// What was found.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// The places, best first.
    results: Vec<FoundPlace>,
    /// How much of the files was searched.
    coverage: SearchCoverage,
    /// What was searched without the index, or wasn't searched, and what to do then.
    #[serde(skip_serializing_if = "Option::is_none")]
    fallback: Option<String>,
    /// A remark about the result.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

/// A place.
#[derive(Debug, Serialize, JsonSchema)]
struct FoundPlace {
    /// The path, relative to the workspace.
    path: String,
    /// The first and last line.
    lines: [u32; 2],
    /// The function, type or heading that the lines belong to.
    #[serde(skip_serializing_if = "Option::is_none")]
    symbol: Option<String>,
    /// The line with which the snippet begins.
    snippet_line: u32,
    /// Some of the lines, as they are now.
    snippet: String,
    /// Why this place was found.
    why: String,
    /// Other places in the file that fit.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    also: Vec<AlsoFound>,
}

impl Tool for SearchTool {
    type Args = Args;
    type Output = Output;

    const SPEC: Spec = Spec {
        name: "search",
        version: "1.0.0",
        description: "Find the places in the workspace that fit a question best, ranked: functions, types, sections. Use it to \
                      learn where something is done when you don't know the exact words. Use `grep` for exact text, for \
                      every occurrence, and for hidden or ignored files, which aren't searched here. Results are as fresh \
                      as the files.",
        risk: Risk::Low,
        permissions: &[Permission::FsRead],
        side_effects: &[],
        parallel: true,
    };

    fn effects(&self, args: &Args) -> Vec<Effect> {
        args.paths().iter().map(Effect::read).collect()
    }

    async fn run(&self, args: Args, hands: &dyn Hands) -> Result<Output, ToolError> {
        hands.blocking(move |hands| search(args, hands)).await
    }
}

fn search(args: Args, hands: &dyn Hands) -> Result<Output, ToolError> {
    let question = SearchQuestion {
        paths: args.paths(),
        text: args.query,
        globs: args.glob,
        language: args.lang,
        kind: args.kind,
        limit: args.limit as usize,
        max_bytes: args.max_bytes as usize,
    };
    let SearchAnswer { hits, coverage, notes } = hands.search(&question)?;
    let place = |hit: SearchHit| FoundPlace {
        path: hands.shown(&hit.place),
        lines: [hit.first, hit.last],
        symbol: hit.symbol,
        snippet_line: hit.snippet_line,
        snippet: hit.snippet,
        why: hit.why,
        also: hit.also,
    };
    let results: Vec<FoundPlace> = hits.into_iter().map(place).collect();
    let note = results.is_empty().then(|| "Nothing fits. Try other words, or `grep`.".to_owned());
    let fallback = fallback(&coverage);
    let notes: Vec<String> = note.into_iter().chain(notes).collect();
    let note = (!notes.is_empty()).then(|| notes.join(" "));
    Ok(Output { results, coverage, fallback, note })
}

/// What was searched without the index; none if the index has every file.
fn fallback(coverage: &SearchCoverage) -> Option<String> {
    let SearchCoverage { files, indexed, scanned } = *coverage;
    let missing = files.saturating_sub(indexed);
    let left = missing.saturating_sub(scanned);
    match (missing, left) {
        (0, _) => None,
        (_, 0) => {
            let missing = counted(missing, "file");
            Some(format!("Not indexed yet: {missing}, searched word by word, as `grep` does."))
        }
        _ => {
            let (missing, left) = (counted(missing, "file"), counted(left, "file"));
            Some(format!("Not indexed yet: {missing}. Not searched at all: {left}. Search again, or use `grep`."))
        }
    }
}
