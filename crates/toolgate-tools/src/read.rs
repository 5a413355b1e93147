//! `read`: shows a file by lines or by bytes, or several files at once.

mod byte_range;
mod several;

use std::fmt::Write;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolgate_contract::{
    Effect, ErrorCode, Hands, OpenFile, Permission, ResultForm, Risk, Spec, Tool, ToolError, VersionAdapter, schemars,
};

use crate::support::encoding::Encoding;
use crate::support::stored_image;
use crate::support::stored_image::{ShownImage, StoredImage};
use crate::support::text_page;
use crate::support::text_page::{PageRequest, PagedContent, TextPage};

/// Maximum and default number of lines in one reply.
const MAX_LINES: u32 = 2_000;
/// Maximum size of a page in bytes: slightly below the reply limit, since the reply's other fields count too. So the
/// page is never trimmed again.
const MAX_BYTES: usize = 50 * 1024 - 256;
/// Maximum number of files in one call.
const MAX_FILES: u32 = 32;
/// Bytes that a line number takes, up to ten million lines.
const NUMBER_BYTES: usize = 8;

/// Files up to this size are read directly; larger ones on a blocking thread.
const DIRECT_READ_BYTES: u64 = 1024 * 1024;

/// Shows a file.
pub struct ReadTool;

/// The file, or several, and the part.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// Relative to the workspace.
    #[serde(default)]
    path: Option<String>,
    /// In place of `path`: several files.
    #[serde(default)]
    #[schemars(length(max = MAX_FILES))]
    paths: Vec<String>,
    /// First line, from 1; -10: the last ten lines.
    #[serde(default)]
    offset: Option<i64>,
    /// Maximum lines.
    #[serde(default)]
    #[schemars(range(min = 1, max = 2000))]
    limit: Option<u32>,
    /// Before each line, with a tab.
    #[serde(default)]
    line_numbers: bool,
    /// In place of lines: the first byte, from 0.
    #[serde(default)]
    offset_bytes: Option<u64>,
    /// Maximum bytes.
    #[serde(default)]
    #[schemars(range(min = 1, max = 50000))]
    limit_bytes: Option<u32>,
}

/// What was read.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Output {
    /// One file, by lines.
    Page(FilePage),
    /// One file, by bytes.
    Bytes(byte_range::ByteRangePage),
    /// Several files.
    Files(several::FilePages),
}

/// A page of the file, or the image in it.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct FilePage {
    /// The lines, as they are in the file; empty for an image.
    content: String,
    #[serde(flatten)]
    about: PageFields,
}

/// What is known about a page and its file.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(crate) struct PageFields {
    /// Number of the first line; 0 if there is none. In a file over 16 MiB read from its end, lines are numbered from
    /// the end: the last is -1.
    start_line: i64,
    /// Number of the last line, in the same way.
    end_line: i64,
    /// Lines in the file; null when it is too large to count.
    total_lines: Option<u64>,
    /// Whether more lines follow; use `offset` = `end_line` + 1.
    has_more: bool,
    /// Size of the file.
    bytes: u64,
    /// Hash of the file; null when it is too large to hash.
    sha256: Option<String>,
    /// The encoding, unless it is plain UTF-8; `content` is always UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    encoding: Option<String>,
    /// Places in `content` where bytes were invalid in the encoding; each is shown as U+FFFD.
    #[serde(skip_serializing_if = "Option::is_none")]
    replaced: Option<u64>,
    /// Bytes cut from very long lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    cut_bytes: Option<u64>,
    /// The image, if the file is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    image: Option<StoredImage>,
}

impl Tool for ReadTool {
    type Args = Args;
    type Output = Output;

    const SPEC: Spec = Spec {
        name: "read",
        version: "2.2.0",
        description: "Show a text file, a part of it, several with `paths`, or an image. At most 2,000 lines or 50 \
                      KiB at a time; `has_more` says if more follow.",
        risk: Risk::Low,
        permissions: &[Permission::FsRead],
        side_effects: &[],
        parallel: true,
    };

    const RESULT_FORM: ResultForm = ResultForm::Content;

    fn effects(&self, args: &Args) -> Vec<Effect> {
        let mut effects: Vec<Effect> = args.path.iter().chain(&args.paths).map(Effect::read).collect();
        effects.dedup();
        effects
    }

    async fn run(&self, args: Args, hands: &dyn Hands) -> Result<Output, ToolError> {
        let by_lines = args.offset.is_some() || args.limit.is_some() || args.line_numbers;
        let by_bytes = args.offset_bytes.is_some() || args.limit_bytes.is_some();
        match (&args.path, args.paths.is_empty()) {
            (None, true) => Err(ToolError::invalid_args("`path` or `paths` is missing.")),
            (Some(_), false) => Err(ToolError::invalid_args("Give either `path` or `paths`.")),
            _ if by_lines && by_bytes => Err(ToolError::invalid_args(
                "A part is given either by lines or by bytes (`offset_bytes`, `limit_bytes`).",
            )),
            (None, false) if by_bytes => Err(ToolError::invalid_args("Only a single `path` is read by bytes.")),
            (None, false) => several::read(args.paths.clone(), &args, hands).await.map(Output::Files),
            (Some(path), true) if by_bytes => byte_range::read(path.clone(), &args, hands).await.map(Output::Bytes),
            (Some(path), true) => {
                let page = read_file(path.clone(), args.wanted(), args.line_numbers, hands).await?;
                Ok(Output::Page(page))
            }
        }
    }

    fn adapters(&self) -> Vec<VersionAdapter> {
        vec![VersionAdapter { major: 1, change: "`offset` counts from 1 instead of 0", adapt: Some(from_zero_to_one) }]
    }
}

impl Args {
    fn wanted(&self) -> PageRequest {
        let lines = self.limit.map_or(MAX_LINES, |limit| limit.min(MAX_LINES));
        let numbers = if self.line_numbers { NUMBER_BYTES * lines as usize } else { 0 };
        PageRequest { offset: self.offset.unwrap_or(1), lines: u64::from(lines), bytes: MAX_BYTES - numbers }
    }
}

/// Reads a page of one file, or shows the image in it.
async fn read_file(
    path: String,
    wanted: PageRequest,
    line_numbers: bool,
    hands: &dyn Hands,
) -> Result<FilePage, ToolError> {
    let file = hands.open(&path)?;
    let found = match file.size {
        ..=DIRECT_READ_BYTES => read_page(&file, &path, &wanted, hands)?,
        _ => {
            let path = path.clone();
            hands.blocking(move |hands| read_page(&file, &path, &wanted, hands)).await?
        }
    };
    match found {
        PagedContent::Text(text) => {
            if let Some(sha256) = &text.sha256 {
                hands.saw(&hands.place(&path)?, sha256);
            }
            Ok(page(text, line_numbers))
        }
        PagedContent::Binary(start) if stored_image::is_image(&start) => {
            let ShownImage { picture, bytes, sha256 } =
                stored_image::show(path, stored_image::DEFAULT_EDGE, hands).await?;
            let about = PageFields { bytes, sha256: Some(sha256), image: Some(picture), ..PageFields::default() };
            Ok(FilePage { content: String::new(), about })
        }
        PagedContent::Binary(_) => Err(not_text(&path)),
    }
}

fn not_text(path: &str) -> ToolError {
    ToolError::new(ErrorCode::IsBinary, format!("`{path}` is not a text file."))
}

fn read_page(
    OpenFile { file, size, .. }: &OpenFile,
    path: &str,
    wanted: &PageRequest,
    hands: &dyn Hands,
) -> Result<PagedContent, ToolError> {
    text_page::find(file, *size, wanted, &|| hands.is_cancelled()).map_err(|error| unreadable(path, &error, hands))
}

fn unreadable(path: &str, error: &std::io::Error, hands: &dyn Hands) -> ToolError {
    match hands.is_cancelled() {
        true => ToolError::cancelled(),
        false => ToolError::io(&format!("`{path}` can't be read"), error),
    }
}

/// The encoding as a reply names it; plain UTF-8 isn't named.
fn named_encoding(encoding: Encoding, has_bom: bool) -> Option<String> {
    match (encoding, has_bom) {
        (Encoding::Utf8, false) => None,
        (Encoding::Utf8, true) => Some("utf-8-bom".to_owned()),
        (other, _) => Some(other.name()),
    }
}

fn page(text: TextPage, line_numbers: bool) -> FilePage {
    let about = PageFields {
        start_line: text.first,
        end_line: text.last,
        total_lines: text.total,
        has_more: text.has_more,
        bytes: text.size,
        sha256: text.sha256,
        encoding: named_encoding(text.encoding, text.has_bom),
        replaced: Some(text.replaced).filter(|&places| places > 0),
        cut_bytes: Some(text.cut).filter(|&bytes| bytes > 0),
        image: None,
    };
    FilePage { content: if line_numbers { numbered(&text.content, text.first) } else { text.content }, about }
}

fn numbered(content: &str, first: i64) -> String {
    let mut lines = String::with_capacity(content.len() * 5 / 4);
    for (number, line) in (first..).zip(content.split_inclusive('\n')) {
        // Writing into a string can't fail.
        let _ = write!(lines, "{number:>5}\t{line}");
    }
    lines
}

/// Version 1 counted lines from 0.
fn from_zero_to_one(mut args: Value) -> Result<Value, ToolError> {
    match args.get("offset").and_then(Value::as_i64) {
        Some(offset) if offset >= 0 => args["offset"] = json!(offset.saturating_add(1)),
        _ => {}
    }
    Ok(args)
}
