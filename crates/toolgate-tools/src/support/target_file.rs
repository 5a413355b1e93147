//! A file that a tool is about to change: its current content, and whether the session has seen that content.

use toolgate_contract::{Blob, ErrorCode, FileContent, FileEdit, Hands, LINK_MODE, ToolError, WorkspacePath};

use crate::support::encoding::Encoding;
use crate::support::hash_ahead::hash_ahead;

/// Larger files are left to programs.
const LARGEST: u64 = 64 * 1024 * 1024;

/// A path and its current content.
pub(crate) struct TargetFile {
    pub(crate) path: String,
    pub(crate) place: WorkspacePath,
    /// `None` when there is no file.
    pub(crate) bytes: Option<Blob>,
    /// Permission bits; those of a new file when there is no file.
    pub(crate) mode: u32,
}

impl TargetFile {
    /// Loads a path that was declared for reading.
    pub(crate) fn load(hands: &dyn Hands, path: &str) -> Result<Self, ToolError> {
        let found = Self::load_at(hands, path, hands.place(path)?)?;
        match found.mode {
            LINK_MODE => Err(ToolError::new(ErrorCode::NotAFile, format!("`{path}` is a link."))),
            _ => {
                found.bytes.iter().for_each(hash_ahead);
                Ok(found)
            }
        }
    }

    /// Loads a path at or beneath one that was declared for reading. A symbolic link is not followed.
    pub(crate) fn load_at(hands: &dyn Hands, path: &str, place: WorkspacePath) -> Result<Self, ToolError> {
        let content = hands.content_at(&place, LARGEST).map_err(|error| match error.code {
            ErrorCode::FileTooLarge => error.with_hint("Change it with a program, through `shell`."),
            _ => error,
        })?;
        let mode = content.as_ref().and_then(|content| content.mode).unwrap_or(0o644);
        Ok(Self { path: path.to_owned(), place, bytes: content.map(|content| content.bytes), mode })
    }

    /// The content, or the error that there is no file.
    pub(crate) fn bytes(&self) -> Result<&[u8], ToolError> {
        self.bytes.as_deref().ok_or_else(|| ToolError::not_found(&self.path))
    }

    /// The content as a blob, to write it elsewhere.
    pub(crate) fn content(&self) -> Result<Blob, ToolError> {
        self.bytes.clone().ok_or_else(|| ToolError::not_found(&self.path))
    }

    /// The encoding of its text.
    pub(crate) fn encoding(&self) -> Encoding {
        self.bytes.as_deref().map(Encoding::of).unwrap_or_default()
    }

    /// The edit that writes this content.
    pub(crate) fn into_edit(self, bytes: impl Into<Blob>, mode: Option<u32>) -> FileEdit {
        FileEdit { after: Some(FileContent { bytes: bytes.into(), mode }), ..self.into_removal() }
    }

    /// The edit that removes the file.
    pub(crate) fn into_removal(self) -> FileEdit {
        let mode = Some(self.mode);
        let before = self.bytes.map(|bytes| FileContent { bytes, mode });
        FileEdit { place: self.place, before, after: None, moved_from: None }
    }

    /// The edits that move the file to another path.
    pub(crate) fn into_move(self, target: Self) -> Result<Vec<FileEdit>, ToolError> {
        let (content, mode, from) = (self.content()?, self.mode, self.place.clone());
        let moved = FileEdit { moved_from: Some(from), ..target.into_edit(content, Some(mode)) };
        Ok(vec![moved, self.into_removal()])
    }

    /// Refuses when the caller expected another version. Otherwise reports what happened to the file since the session
    /// last saw it, if anything did.
    pub(crate) fn check_version(&self, hands: &dyn Hands, expected: Option<&str>) -> Result<Option<String>, ToolError> {
        let seen = hands.seen(&self.place);
        if expected.is_none() && seen.is_none() {
            return Ok(None);
        }
        let now = self.bytes.as_ref().map(|bytes| bytes.sha256().to_owned());
        if let Some(expected) = expected.filter(|expected| now.as_deref() != Some(*expected)) {
            let message = format!("`{}` is not the version {expected}: {}", self.path, self.what_happened(hands, &now));
            return Err(ToolError::new(ErrorCode::StaleFile, message));
        }
        let has_moved_on = seen.is_some_and(|seen| now.as_ref() != Some(&seen.sha256));
        Ok((expected.is_none() && has_moved_on).then(|| self.what_happened(hands, &now)))
    }

    fn what_happened(&self, hands: &dyn Hands, now: &Option<String>) -> String {
        match now {
            None => "it was removed.".into(),
            Some(now) => match hands.author(&self.place, now) {
                Some(call) => format!("it was changed by the call {call}."),
                None => "it was changed by something outside this gate.".into(),
            },
        }
    }

    /// The refusal for a tool that would overwrite a version it hasn't seen.
    pub(crate) fn stale(&self, what_happened: &str) -> ToolError {
        ToolError::new(
            ErrorCode::StaleFile,
            format!("`{}` isn't what this session last saw: {what_happened}", self.path),
        )
    }
}
