//! A file that a tool is about to change: what is there now, and whether that is what the session knows.

use std::io::Read;
use std::os::unix::fs::PermissionsExt;

use toolgate_contract::{Content, Edit, ErrorCode, Hands, Place, ToolError, sha256};

use crate::encoding::Encoding;

/// Larger files are changed by programs, not by texts.
const LARGEST: u64 = 64 * 1024 * 1024;

/// A path and what is there.
pub(crate) struct Found {
    pub(crate) path: String,
    pub(crate) place: Place,
    /// None when nothing is there.
    pub(crate) bytes: Option<Vec<u8>>,
    /// Permission bits; those of a new file when nothing is there.
    pub(crate) mode: u32,
}

impl Found {
    /// Looks at a path that was declared for reading.
    pub(crate) fn look(hands: &Hands, path: &str) -> Result<Self, ToolError> {
        Self::look_at(hands, path, hands.place(path)?)
    }

    /// Looks at a place that is at or beneath one that was declared for reading.
    pub(crate) fn look_at(hands: &Hands, path: &str, place: Place) -> Result<Self, ToolError> {
        let mut found = Self { path: path.to_owned(), place, bytes: None, mode: 0o644 };
        let mut file = match hands.open_at(&found.place) {
            Ok(file) => file,
            Err(error) if error.code == ErrorCode::NotFound => return Ok(found),
            Err(error) => return Err(error),
        };
        let fault = |error| ToolError::io(&format!("`{path}` can't be read"), &error);
        let facts = file.metadata().map_err(fault)?;
        if facts.len() > LARGEST {
            return Err(ToolError::new(
                ErrorCode::FileTooLarge,
                format!("`{path}` has {} bytes; files over {LARGEST} aren't changed by this tool.", facts.len()),
            )
            .with_hint("Change it with a program, through `shell`."));
        }
        found.mode = facts.permissions().mode() & 0o7777;
        let mut bytes = Vec::with_capacity(facts.len() as usize);
        file.read_to_end(&mut bytes).map_err(fault)?;
        found.bytes = Some(bytes);
        Ok(found)
    }

    /// What is there, or the error that nothing is.
    pub(crate) fn bytes(&self) -> Result<&[u8], ToolError> {
        self.bytes.as_deref().ok_or_else(|| ToolError::not_found(&self.path))
    }

    /// How its bytes spell its text.
    pub(crate) fn encoding(&self) -> Encoding {
        self.bytes.as_deref().map(Encoding::of).unwrap_or_default()
    }

    /// The edit that puts this content there.
    pub(crate) fn becoming(self, bytes: Vec<u8>, mode: Option<u32>) -> Edit {
        Edit { place: self.place, before: self.bytes, after: Some(Content { bytes, mode }) }
    }

    /// The edit that removes it.
    pub(crate) fn vanishing(self) -> Edit {
        Edit { place: self.place, before: self.bytes, after: None }
    }

    /// Refuses when the caller expected another content. Otherwise says what happened to the file since the session
    /// last saw it, if anything did.
    pub(crate) fn check_version(&self, hands: &Hands, expected: Option<&str>) -> Result<Option<String>, ToolError> {
        let seen = hands.seen(&self.place);
        if expected.is_none() && seen.is_none() {
            return Ok(None);
        }
        let now = self.bytes.as_ref().map(sha256);
        if let Some(expected) = expected.filter(|expected| now.as_deref() != Some(*expected)) {
            let message = format!("`{}` is not the version {expected}: {}", self.path, self.what_happened(hands, &now));
            return Err(ToolError::new(ErrorCode::StaleFile, message));
        }
        let has_moved_on = seen.is_some_and(|seen| now.as_ref() != Some(&seen.sha256));
        Ok((expected.is_none() && has_moved_on).then(|| self.what_happened(hands, &now)))
    }

    fn what_happened(&self, hands: &Hands, now: &Option<String>) -> String {
        match now {
            None => "it was removed.".into(),
            Some(now) => match hands.author(&self.place, now) {
                Some(call) => format!("it was changed by the call {call}."),
                None => "it was changed by something outside this gate.".into(),
            },
        }
    }

    /// The refusal for a tool that would overwrite what it doesn't know.
    pub(crate) fn stale(&self, what_happened: &str) -> ToolError {
        ToolError::new(
            ErrorCode::StaleFile,
            format!("`{}` isn't what this session last saw: {what_happened}", self.path),
        )
    }
}
