//! `lsp_references`: every use of a symbol, by a language server, page by page.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolgate_contract::{
    CodeFindings, CodePlace, CodeQuestion, Effect, Hands, Permission, Risk, Spec, Tool, ToolError,
};

use crate::support::code_target::{AnswerStatus, TargetArgs, other_answer};
use crate::support::cursor::{Cursor, ResumePoint, SortKey, SortOrder, page};

/// Default number of places in one reply.
const DEFAULT_LIMIT: u32 = 100;

/// Finds references.
pub struct LspReferencesTool;

/// Which symbol.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Args {
    #[serde(flatten)]
    target: TargetArgs,
    /// Maximum places.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 1000))]
    limit: u32,
    /// `next_cursor` of an earlier reply.
    #[serde(default)]
    cursor: Option<String>,
}

fn default_limit() -> u32 {
    DEFAULT_LIMIT
}

/// Where it is used.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// How many there are altogether.
    total: usize,
    /// The places by file, its definition included.
    files: Vec<FileReferences>,
    #[serde(flatten)]
    status: AnswerStatus,
}

/// The uses in one file.
#[derive(Debug, Serialize, JsonSchema)]
struct FileReferences {
    /// The file.
    path: String,
    /// `line: text` and what it is in.
    uses: Vec<String>,
}

impl Tool for LspReferencesTool {
    type Args = Args;
    type Output = Output;

    const SPEC: Spec = Spec {
        name: "lsp_references",
        version: "1.0.0",
        description: "Find every use of a symbol, with its line and what it is in.",
        risk: Risk::Low,
        permissions: &[Permission::FsRead],
        side_effects: &[],
        parallel: true,
    };
    const LONGEST: Option<Duration> = Some(Duration::from_secs(300));

    fn effects(&self, args: &Args) -> Vec<Effect> {
        args.target.effects()
    }

    async fn run(&self, args: Args, hands: &dyn Hands) -> Result<Output, ToolError> {
        let after = ResumePoint::new(args.cursor.as_deref(), SortOrder::Path)?;
        let answer = hands.ask_about_code(CodeQuestion::References { target: args.target.resolve(hands)? }).await?;
        let status = AnswerStatus::of(&answer);
        let CodeFindings::Places(places) = answer.findings else { return Err(other_answer()) };
        let total = places.len();
        let with_cursor =
            |place: CodePlace| (Cursor { key: SortKey::by_path(&place.path), line: u64::from(place.line) }, place);
        let is_after = |place: &CodePlace| {
            after.line(&SortKey::by_path(&place.path)).is_some_and(|line| u64::from(place.line) > line)
        };
        let mut sorted: Vec<CodePlace> = places.into_iter().filter(is_after).collect();
        sorted.sort_by(|one, other| {
            (SortKey::by_path(&one.path), one.line).cmp(&(SortKey::by_path(&other.path), other.line))
        });
        // Two uses in one line are one line.
        sorted.dedup_by(|one, other| one.path == other.path && one.line == other.line);
        let (page, _) = page(sorted.into_iter().map(with_cursor), args.limit, hands);
        Ok(Output { total, files: by_file(page), status })
    }
}

/// Each file is named once, and what a use is in where that changes.
fn by_file(places: Vec<CodePlace>) -> Vec<FileReferences> {
    let mut files: Vec<FileReferences> = Vec::new();
    let mut within: Option<String> = None;
    for CodePlace { path, line, text, symbol, .. } in places {
        if files.last().is_none_or(|file| file.path != path) {
            files.push(FileReferences { path, uses: Vec::new() });
            within = None;
        }
        let place = match &symbol {
            Some(symbol) if within != symbol.clone().into() => format!(" [{symbol}]"),
            _ => String::new(),
        };
        within = symbol;
        if let Some(file) = files.last_mut() {
            file.uses.push(format!("{line}: {}{place}", text.unwrap_or_default()));
        }
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_and_what_its_uses_are_in_are_named_once() {
        let at = |path: &str, line, symbol: Option<&str>| CodePlace {
            path: path.into(),
            line,
            column: 1,
            text: Some("f()".into()),
            symbol: symbol.map(str::to_owned),
        };
        let files =
            by_file(vec![at("a", 1, None), at("a", 3, Some("g")), at("a", 4, Some("g")), at("b", 1, Some("g"))]);
        assert_eq!(files.len(), 2);
        assert_eq!(files[0].uses, ["1: f()", "3: f() [g]", "4: f()"]);
        assert_eq!(files[1].uses, ["1: f() [g]"]);
    }
}
