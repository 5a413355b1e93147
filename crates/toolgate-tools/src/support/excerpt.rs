//! A piece of a process' output, cut between characters.

use toolgate_contract::{ProcessHandle, Stream, ToolError};

/// A piece of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Excerpt {
    /// The text.
    pub(crate) text: String,
    /// Where the stream goes on.
    pub(crate) next: u64,
}

/// At most so many bytes of a stream, from a position on.
pub(crate) fn excerpt(
    process: &dyn ProcessHandle,
    stream: Stream,
    from: u64,
    most: usize,
) -> Result<Excerpt, ToolError> {
    let bytes = process.read(stream, from, most)?;
    // A character whose end is still to come is left for the next piece, unless nothing else is there.
    let whole = match std::str::from_utf8(&bytes) {
        Err(fault) if fault.error_len().is_none() && fault.valid_up_to() > 0 => &bytes[..fault.valid_up_to()],
        _ => &bytes[..],
    };
    Ok(Excerpt { text: String::from_utf8_lossy(whole).into_owned(), next: from + whole.len() as u64 })
}
