//! `artifact`: reads back and searches output that was too long for a reply. It needs no file permission: knowing the
//! handle is enough.

use std::io::{BufRead, BufReader, Seek};

use regex::bytes::Regex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolgate_contract::{Effect, ErrorCode, Hands, Permission, ResultForm, Risk, Spec, Tool, ToolError};

use crate::support::line_page::{LineWindow, take};

/// Maximum and default number of lines or matches in one reply.
const MAX_LINES: u32 = 500;
/// Maximum size of one reply, in bytes.
const MAX_BYTES: usize = 48 * 1024;
/// Maximum length of one line, in bytes; the rest is cut.
const MAX_LINE_BYTES: usize = 8 * 1024;

/// Reads back stored output.
pub struct ArtifactTool;

/// The artifact and part of it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// From `truncated.artifact` or `artifacts.refs`.
    id: String,
    /// First line, from 1.
    #[serde(default = "from_the_start")]
    #[schemars(range(min = 1))]
    offset: u64,
    /// Maximum lines or matches.
    #[serde(default)]
    #[schemars(range(min = 1, max = 2000))]
    limit: Option<u32>,
    /// Only lines that match this regular expression.
    #[serde(default)]
    search: Option<String>,
}

fn from_the_start() -> u64 {
    1
}

/// A page of the artifact, or the lines that match.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// The lines.
    content: String,
    /// Lines in the artifact.
    total_lines: Option<u64>,
    /// Number of the last line examined.
    end_line: u64,
    /// Whether more follow; use `offset` = `end_line` + 1.
    has_more: bool,
}

impl Tool for ArtifactTool {
    type Args = Args;
    type Output = Output;

    const SPEC: Spec = Spec {
        name: "artifact",
        version: "1.0.0",
        description: "Read or search output that was cut from an earlier reply.",
        risk: Risk::Low,
        permissions: &[Permission::Agent],
        side_effects: &[],
        parallel: true,
    };

    const RESULT_FORM: ResultForm = ResultForm::Content;

    fn effects(&self, args: &Args) -> Vec<Effect> {
        vec![Effect::Recall { artifact: args.id.clone() }]
    }

    async fn run(&self, args: Args, hands: &dyn Hands) -> Result<Output, ToolError> {
        let (facts, mut file) = hands.recall(&args.id)?;
        if facts.lines.is_none() {
            return Err(ToolError::new(ErrorCode::IsBinary, format!("`{}` is {}, not text.", args.id, facts.mime)));
        }
        file.rewind().map_err(unreadable)?;
        let mut from = BufReader::with_capacity(64 * 1024, file);
        let lines = u64::from(args.limit.unwrap_or(MAX_LINES));
        let output = match &args.search {
            Some(pattern) => search(&mut from, &expression(pattern)?, args.offset, lines),
            None => page(&mut from, args.offset, lines),
        };
        Ok(Output { total_lines: facts.lines, ..output.map_err(unreadable)? })
    }
}

fn unreadable(error: std::io::Error) -> ToolError {
    ToolError::io("The artifact can't be read", &error)
}

fn expression(pattern: &str) -> Result<Regex, ToolError> {
    Regex::new(pattern).map_err(|fault| {
        ToolError::invalid_args(format!("`search` is not a regular expression: {fault}"))
            .with_hint("Escape special characters with a backslash to search for them as they are.")
    })
}

fn page(from: &mut impl BufRead, first: u64, lines: u64) -> std::io::Result<Output> {
    let taken = take(from, &LineWindow { first, lines, bytes: MAX_BYTES, line_bytes: MAX_LINE_BYTES })?;
    Ok(Output {
        content: String::from_utf8_lossy(&taken.content).into_owned(),
        total_lines: None,
        end_line: first.saturating_add(taken.lines) - 1,
        has_more: taken.has_more,
    })
}

fn search(from: &mut impl BufRead, wanted: &Regex, first: u64, most: u64) -> std::io::Result<Output> {
    let mut found = Output { content: String::new(), total_lines: None, end_line: first - 1, has_more: false };
    let mut matches = 0;
    take(from, &LineWindow { first, lines: 0, bytes: 0, line_bytes: 0 })?;
    loop {
        let line = take(from, &LineWindow { first: 1, lines: 1, bytes: MAX_BYTES, line_bytes: MAX_LINE_BYTES })?;
        if line.lines == 0 {
            return Ok(found);
        }
        let text = line.content.strip_suffix(b"\n").unwrap_or(&line.content);
        if wanted.is_match(text) {
            if matches == most || found.content.len() + text.len() > MAX_BYTES {
                found.has_more = true;
                return Ok(found);
            }
            matches += 1;
            found.content += &format!("{}: {}\n", found.end_line + 1, String::from_utf8_lossy(text));
        }
        found.end_line += 1;
    }
}
