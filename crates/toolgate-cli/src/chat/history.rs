//! What the person typed before, kept for the next conversation in a private file of the user's state.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "the user's own file, outside of workspaces")]

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// How many entries are kept.
const MAX_ENTRIES: usize = 500;
/// Longer texts are pastes that nobody looks for in a history.
const MAX_ENTRY_BYTES: usize = 10_000;

/// The texts that were sent, oldest first.
#[derive(Debug, Default)]
pub(super) struct History {
    entries: Vec<String>,
    file: Option<PathBuf>,
}

impl History {
    /// The history in this directory. One that can't be read is empty: a conversation is possible without it.
    pub(super) fn open(directory: &Path) -> Self {
        let file = directory.join("chat-history.jsonl");
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        let entries: Vec<String> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let oldest = entries.len().saturating_sub(MAX_ENTRIES);
        Self { entries: entries[oldest..].to_vec(), file: Some(file) }
    }

    #[cfg(test)]
    pub(super) fn in_memory(entries: impl IntoIterator<Item = &'static str>) -> Self {
        Self { entries: entries.into_iter().map(str::to_owned).collect(), file: None }
    }

    pub(super) fn entries(&self) -> &[String] {
        &self.entries
    }

    /// Adds an entry, with secrets already redacted.
    pub(super) fn add(&mut self, text: &str) {
        if text.trim().is_empty()
            || text.len() > MAX_ENTRY_BYTES
            || self.entries.last().is_some_and(|last| last == text)
        {
            return;
        }
        self.entries.push(text.to_owned());
        // Lost, an entry costs its person a few keys.
        let _ = self.save();
    }

    /// Appends the last entry; a file that has grown too long is written anew.
    fn save(&mut self) -> std::io::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        std::fs::create_dir_all(file.parent().unwrap_or(Path::new("/")))?;
        let is_long = self.entries.len() > MAX_ENTRIES * 2;
        if is_long {
            self.entries.drain(..self.entries.len() - MAX_ENTRIES);
        }
        let first = if is_long { 0 } else { self.entries.len() - 1 };
        let mut options = OpenOptions::new();
        options.create(true).mode(0o600).append(!is_long).write(true).truncate(is_long);
        let lines: String =
            self.entries[first..].iter().map(|entry| format!("{}\n", serde_json::json!(entry))).collect();
        options.open(file)?.write_all(lines.as_bytes())
    }
}
