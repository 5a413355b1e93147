//! A piece of a process' output, cut on a character boundary.

use toolgate_contract::{ProcessHandle, Stream, ToolError};

/// A piece of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Excerpt {
    /// The text.
    pub(crate) text: String,
    /// Where the next piece begins.
    pub(crate) next: u64,
}

/// At most `most` bytes of a stream, starting at a position.
pub(crate) fn excerpt(
    process: &dyn ProcessHandle,
    stream: Stream,
    from: u64,
    most: usize,
) -> Result<Excerpt, ToolError> {
    let bytes = process.read(stream, from, most)?;
    // An incomplete character at the end is left for the next piece, unless there is nothing else.
    let whole = match std::str::from_utf8(&bytes) {
        Err(fault) if fault.error_len().is_none() && fault.valid_up_to() > 0 => &bytes[..fault.valid_up_to()],
        _ => &bytes[..],
    };
    Ok(Excerpt { text: String::from_utf8_lossy(whole).into_owned(), next: from + whole.len() as u64 })
}
