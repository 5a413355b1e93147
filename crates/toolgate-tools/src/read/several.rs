//! Several files in one reply. They share its room fairly: what a short file leaves is for the longer ones. A file that
//! can't be read is named with the reason, and costs the others nothing.

use schemars::JsonSchema;
use serde::Serialize;
use toolgate_contract::{ErrorCode, Hands, ToolError, schemars};

use super::{Args, FilePage, MAX_BYTES, MAX_LINES, NUMBER_BYTES, PageFields, read_file};
use crate::support::text_page::PageRequest;

/// Bytes for a file's header line and for its fields in the reply, apart from its path.
const FIELD_BYTES: usize = 320;
/// A file gets at least this many bytes, however many there are.
const MIN_BYTES: usize = 256;

/// Several files.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FilePages {
    /// The lines of all files, each file after a line `==> path <==`.
    content: String,
    /// The files, in the order of `paths`.
    files: Vec<NamedPage>,
}

/// One of several files.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct NamedPage {
    /// Its path.
    path: String,
    /// About the page; its lines are in `content` of the reply.
    #[serde(flatten)]
    about: Option<PageFields>,
    /// Why it couldn't be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ReadFault>,
}

/// Why one of several files couldn't be read.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ReadFault {
    /// The code, as in an error of the whole call.
    code: ErrorCode,
    /// What happened.
    message: String,
}

/// What of a reply's room is left for the files that aren't read yet.
struct Room {
    files: usize,
    bytes: usize,
    lines: u64,
}

/// Reads the same part of several files.
pub(super) async fn read(paths: Vec<String>, args: &Args, hands: &dyn Hands) -> Result<FilePages, ToolError> {
    let taken: usize = paths.iter().map(|path| 2 * path.len() + FIELD_BYTES).sum();
    let bytes = MAX_BYTES.saturating_sub(taken).max(paths.len() * MIN_BYTES);
    // Each file has a header line.
    let lines = u64::from(MAX_LINES).saturating_sub(paths.len() as u64);
    let mut room = Room { files: paths.len(), bytes, lines };
    let mut sizes: Vec<(u64, usize)> = Vec::new();
    for (index, path) in paths.iter().enumerate() {
        sizes.push((hands.open(path).map_or(0, |file| file.size), index));
    }
    sizes.sort_unstable();
    let mut pages: Vec<Option<Result<FilePage, ToolError>>> = paths.iter().map(|_| None).collect();
    for (_, index) in sizes {
        let found = read_file(paths[index].clone(), room.share(args), args.line_numbers, hands).await;
        if hands.is_cancelled() {
            return Err(ToolError::cancelled());
        }
        room.take(found.as_ref().ok());
        pages[index] = Some(found);
    }
    let mut output = FilePages { content: String::new(), files: Vec::new() };
    for (path, found) in paths.into_iter().zip(pages.into_iter().flatten()) {
        output.add(path, found);
    }
    Ok(output)
}

impl Room {
    /// What the next file may take.
    fn share(&self, args: &Args) -> PageRequest {
        let whole = args.wanted();
        let lines = whole.lines.min(self.lines / self.files as u64).max(1);
        let numbers = if args.line_numbers { NUMBER_BYTES * lines as usize } else { 0 };
        let bytes = (self.bytes / self.files).saturating_sub(numbers).max(MIN_BYTES);
        PageRequest { lines, bytes, ..whole }
    }

    fn take(&mut self, page: Option<&FilePage>) {
        self.files -= 1;
        if let Some(page) = page {
            self.bytes = self.bytes.saturating_sub(page.content.len());
            self.lines = self.lines.saturating_sub(page.content.lines().count() as u64);
        }
    }
}

impl FilePages {
    fn add(&mut self, path: String, found: Result<FilePage, ToolError>) {
        if !self.content.is_empty() && !self.content.ends_with('\n') {
            self.content.push('\n');
        }
        self.content += &format!("==> {path} <==\n");
        let file = match found {
            Ok(FilePage { content, about }) => {
                self.content += &content;
                NamedPage { path, about: Some(about), error: None }
            }
            Err(error) => {
                self.content += &format!("error[{}]: {}\n", error.code, error.message);
                let fault = ReadFault { code: error.code, message: error.message };
                NamedPage { path, about: None, error: Some(fault) }
            }
        };
        self.files.push(file);
    }
}
