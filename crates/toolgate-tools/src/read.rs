//! `read`: shows a file, by lines (C-42).

use std::fs::File;
use std::io::{BufReader, Read as _, Seek};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolgate_contract::{Adapter, Effect, ErrorCode, Hands, Permission, Risk, Spec, Tool, ToolError, sha256};

use crate::lines::{Page, Taken, count, take};

/// Lines in one answer, unless the caller asks for fewer.
const MOST_LINES: u64 = 2_000;
/// Bytes in one answer, so that a page needs no further cutting.
const MOST_BYTES: usize = 50 * 1024;
/// Bytes kept of one line.
const MOST_LINE_BYTES: usize = 64 * 1024;
/// Files up to this size are read whole, so that hash and number of lines can be told.
const WHOLE: u64 = 16 * 1024 * 1024;
/// A NUL this early means that the file holds no text.
const SNIFFED: usize = 8_192;

/// Shows a file.
pub struct Read;

/// Which part of which file.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// Path of the file, relative to the workspace.
    path: String,
    /// First line, from 1; a negative number counts from the end (-10: the last ten lines).
    #[serde(default = "from_the_start")]
    offset: i64,
    /// Lines at the most.
    #[serde(default)]
    #[schemars(range(min = 1, max = 2000))]
    limit: Option<u32>,
}

fn from_the_start() -> i64 {
    1
}

/// A page of the file.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// The lines, as they are in the file.
    content: String,
    /// Number of the first line; 0 if there is none.
    start_line: u64,
    /// Number of the last line; 0 if there is none.
    end_line: u64,
    /// Lines in the file; null when it is too large to count.
    total_lines: Option<u64>,
    /// Whether more lines follow; go on with `offset` = `end_line` + 1.
    has_more: bool,
    /// Hash of the whole file; null when it is too large to hash.
    sha256: Option<String>,
}

impl Tool for Read {
    type Args = Args;
    type Output = Output;

    const SPEC: Spec = Spec {
        name: "read",
        version: "2.0.0",
        description: "Show a text file, or a part of it, by lines. Gives at most 2,000 lines or 50 KiB at a time; \
                      `has_more` says whether to go on.",
        risk: Risk::Low,
        permissions: &[Permission::FsRead],
        side_effects: &[],
        parallel: true,
    };

    fn effects(&self, args: &Args) -> Vec<Effect> {
        vec![Effect::read(&args.path)]
    }

    async fn run(&self, args: Args, hands: &Hands) -> Result<Output, ToolError> {
        let limit = args.limit.map_or(MOST_LINES, u64::from);
        let mut file = hands.open(&args.path)?;
        let output = match file.metadata() {
            Ok(facts) if facts.len() > WHOLE => read_part(&mut file, args.offset, limit),
            _ => read_whole(&mut file, args.offset, limit),
        };
        output
            .map_err(|error| ToolError::io(&format!("`{}` can't be read", args.path), &error))?
            .ok_or_else(|| ToolError::new(ErrorCode::IsBinary, format!("`{}` holds no text.", args.path)))
    }

    fn adapters(&self) -> Vec<Adapter> {
        vec![Adapter { major: 1, change: "`offset` counts from 1 instead of 0", adapt: Some(from_zero_to_one) }]
    }
}

/// None when the file holds no text.
type Found = std::io::Result<Option<Output>>;

fn read_whole(file: &mut File, offset: i64, limit: u64) -> Found {
    let mut bytes = Vec::new();
    file.take(WHOLE).read_to_end(&mut bytes)?;
    if memchr::memchr(0, &bytes[..bytes.len().min(SNIFFED)]).is_some() {
        return Ok(None);
    }
    let total = count(&mut &bytes[..])?;
    let mut page = page_at(first_line(offset, total), limit);
    page.lines = page.lines.min(total);
    let taken = take(&mut &bytes[..], &page)?;
    let sha256 = Some(sha256(&bytes));
    Ok(Some(Output { total_lines: Some(total), sha256, ..shown(&page, taken) }))
}

/// A page of a large file costs what lies before it to pass over, and no memory.
fn read_part(file: &mut File, offset: i64, limit: u64) -> Found {
    let mut from = BufReader::with_capacity(256 * 1024, &*file);
    let total = if offset < 0 { Some(count(&mut from)?) } else { None };
    from.rewind()?;
    let page = page_at(first_line(offset, total.unwrap_or(u64::MAX)), limit);
    let taken = take(&mut from, &page)?;
    if memchr::memchr(0, &taken.content[..taken.content.len().min(SNIFFED)]).is_some() {
        return Ok(None);
    }
    Ok(Some(Output { total_lines: total, ..shown(&page, taken) }))
}

fn page_at(first: u64, lines: u64) -> Page {
    Page { first, lines, bytes: MOST_BYTES, line_bytes: MOST_LINE_BYTES }
}

/// An offset as the number of a line: negative ones count from the end, and 0 means the start.
fn first_line(offset: i64, total: u64) -> u64 {
    match u64::try_from(offset) {
        Ok(offset) => offset.max(1),
        Err(_) => total.saturating_add(1).saturating_sub(offset.unsigned_abs()).max(1),
    }
}

fn shown(page: &Page, taken: Taken) -> Output {
    let is_empty = taken.lines == 0;
    Output {
        content: String::from_utf8_lossy(&taken.content).into_owned(),
        start_line: if is_empty { 0 } else { page.first },
        end_line: if is_empty { 0 } else { page.first + taken.lines - 1 },
        total_lines: None,
        has_more: taken.has_more,
        sha256: None,
    }
}

/// Version 1 counted lines from 0.
fn from_zero_to_one(mut args: Value) -> Result<Value, ToolError> {
    match args.get("offset").and_then(Value::as_i64) {
        Some(offset) if offset >= 0 => args["offset"] = json!(offset + 1),
        _ => {}
    }
    Ok(args)
}
