//! Output that is too long for a reply, and where it is kept.

use std::fs::File;

use crate::{ArtifactRef, ToolError};

/// Stored output that can be read back.
pub trait Artifacts: Send + Sync {
    /// Opens an artifact of this run.
    fn open(&self, id: &str) -> Result<(ArtifactRef, File), ToolError>;
    /// Stores bytes and returns their handle.
    fn store(&self, bytes: &[u8], mime: &str) -> Result<ArtifactRef, ToolError>;
    /// Begins an artifact whose bytes come bit by bit. Nothing of it stays unless it is finished.
    fn begin(&self, mime: &str) -> Result<Box<dyn ArtifactDraft>, ToolError>;
}

/// An artifact that is being written.
pub trait ArtifactDraft: Send {
    /// Adds bytes.
    fn write(&mut self, bytes: &[u8]) -> Result<(), ToolError>;
    /// Reads back what was written, as much as fits, from a position on.
    fn read_at(&mut self, into: &mut [u8], from: u64) -> Result<usize, ToolError>;
    /// Puts the artifact in place and returns its handle.
    fn finish(self: Box<Self>) -> Result<ArtifactRef, ToolError>;
}
