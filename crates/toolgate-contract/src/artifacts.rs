//! Storage for output that is too long for a reply.

use std::fs::File;

use crate::{ArtifactRef, ToolError};

/// Stored output that can be read back.
pub trait Artifacts: Send + Sync {
    /// Opens an artifact of this run.
    fn open(&self, id: &str) -> Result<(ArtifactRef, File), ToolError>;
    /// Stores bytes and returns their handle.
    fn store(&self, bytes: &[u8], mime: &str) -> Result<ArtifactRef, ToolError>;
    /// Begins an artifact that is written incrementally. It is discarded unless it is finished.
    fn begin(&self, mime: &str) -> Result<Box<dyn ArtifactDraft>, ToolError>;
}

/// An artifact that is being written.
pub trait ArtifactDraft: Send {
    /// Adds bytes.
    fn write(&mut self, bytes: &[u8]) -> Result<(), ToolError>;
    /// Reads back written bytes from a position on, as many as fit.
    fn read_at(&mut self, into: &mut [u8], from: u64) -> Result<usize, ToolError>;
    /// Finishes the artifact and returns its handle.
    fn finish(self: Box<Self>) -> Result<ArtifactRef, ToolError>;
}
