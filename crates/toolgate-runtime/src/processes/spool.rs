//! One stream of a process: in memory while it is short, in a file of the run's directory once it is long. Memory holds at most
//! a few hundred kilobytes, and all of the stream can be read from any position.

use std::os::unix::fs::FileExt;
use std::sync::Arc;

use toolgate_contract::{ArtifactDraft, ArtifactRef, Artifacts, OmittedText, StreamText, ToolError};

/// The media type of stored output, which nearly always is text.
const MIME: &str = "text/plain; charset=utf-8";

/// Bytes that are read at a time to count lines.
const PIECE: usize = 64 * 1024;

/// A redacted stream.
pub(super) struct Spool {
    artifacts: Arc<dyn Artifacts>,
    /// Bytes that are shown, of the beginning and of the end each.
    shown: usize,
    held: SpoolStorage,
    bytes: u64,
    newlines: u64,
}

enum SpoolStorage {
    AtHand(Vec<u8>),
    Draft(Box<dyn ArtifactDraft>),
    Stored(ArtifactRef),
}

impl Spool {
    pub(super) fn new(artifacts: Arc<dyn Artifacts>, shown: usize) -> Self {
        Self { artifacts, shown, held: SpoolStorage::AtHand(Vec::new()), bytes: 0, newlines: 0 }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Adds output.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<(), ToolError> {
        self.bytes += bytes.len() as u64;
        self.newlines += newlines(bytes);
        if let SpoolStorage::AtHand(at_hand) = &mut self.held {
            if at_hand.len() + bytes.len() <= 2 * self.shown {
                at_hand.extend_from_slice(bytes);
                return Ok(());
            }
            let mut draft = self.artifacts.begin(MIME)?;
            draft.write(at_hand)?;
            self.held = SpoolStorage::Draft(draft);
        }
        match &mut self.held {
            SpoolStorage::Draft(draft) => draft.write(bytes),
            _ => Err(ToolError::internal("Output came after the end of a process.")),
        }
    }

    /// At most `most` bytes from a position on.
    pub(super) fn read(&mut self, from: u64, most: usize) -> Result<Vec<u8>, ToolError> {
        let left = usize::try_from(self.bytes.saturating_sub(from)).unwrap_or(usize::MAX);
        let mut piece = vec![0; left.min(most)];
        let filled = match &mut self.held {
            SpoolStorage::AtHand(at_hand) => {
                let start = usize::try_from(from).unwrap_or(usize::MAX).min(at_hand.len());
                let end = start + piece.len();
                piece.copy_from_slice(&at_hand[start..end]);
                piece.len()
            }
            SpoolStorage::Draft(draft) => draft.read_at(&mut piece, from)?,
            SpoolStorage::Stored(stored) => {
                let (_, file) = self.artifacts.open(&stored.id)?;
                let unread = |error| ToolError::io("The process' output can't be read", &error);
                file.read_exact_at(&mut piece, from).map_err(unread)?;
                piece.len()
            }
        };
        piece.truncate(filled);
        Ok(piece)
    }

    /// Ends the stream. A stream that is in a file is stored as an artifact.
    pub(super) fn finish(&mut self) -> Result<Option<ArtifactRef>, ToolError> {
        self.held = match std::mem::replace(&mut self.held, SpoolStorage::AtHand(Vec::new())) {
            SpoolStorage::Draft(draft) => SpoolStorage::Stored(draft.finish()?),
            held => held,
        };
        match &self.held {
            SpoolStorage::Stored(stored) => Ok(Some(stored.clone())),
            _ => Ok(None),
        }
    }

    /// The whole stream or, if it is stored as an artifact, its beginning and its end.
    pub(super) fn whole(&mut self) -> Result<StreamText, ToolError> {
        let artifact = match &self.held {
            SpoolStorage::Stored(artifact) => artifact.clone(),
            _ => return Ok(StreamText { text: text(&self.read(0, usize::MAX)?), missing: None }),
        };
        let start = self.read(0, self.shown)?;
        let end = self.read(self.bytes - self.shown as u64, self.shown)?;
        let (start, end) = (until_character_end(&start), from_character_start(&end));
        let missing = OmittedText {
            lines: self.newlines - newlines(start) - newlines(end),
            bytes: self.bytes - (start.len() + end.len()) as u64,
            artifact,
        };
        Ok(StreamText { text: text(start) + &text(end), missing: Some(missing) })
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn newlines(bytes: &[u8]) -> u64 {
    bytes.chunks(PIECE).map(|piece| memchr::memchr_iter(b'\n', piece).count() as u64).sum()
}

/// The bytes without an incomplete character at the end.
fn until_character_end(bytes: &[u8]) -> &[u8] {
    let tail = bytes.utf8_chunks().last().map_or(0, |chunk| chunk.invalid().len());
    let is_begun =
        (1..=3).contains(&tail) && std::str::from_utf8(bytes).is_err_and(|fault| fault.error_len().is_none());
    if is_begun { &bytes[..bytes.len() - tail] } else { bytes }
}

/// The bytes without an incomplete character at the beginning.
fn from_character_start(bytes: &[u8]) -> &[u8] {
    let continues = |byte: &&u8| (0x80..0xc0).contains(*byte);
    &bytes[bytes.iter().take(3).take_while(continues).count()..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_fall_between_characters() {
        let bytes = "aé€".as_bytes();
        assert_eq!(until_character_end(&bytes[..2]), b"a");
        assert_eq!(until_character_end(&bytes[..5]), "aé".as_bytes());
        assert_eq!(until_character_end(bytes), bytes);
        assert_eq!(until_character_end(b"a\xffb"), b"a\xffb");
        assert_eq!(from_character_start(&bytes[2..]), "€".as_bytes());
        assert_eq!(from_character_start(bytes), bytes);
    }
}
