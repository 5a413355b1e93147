//! Stored output of one run, named by the hash of its content: the same bytes are stored once. Next to each artifact is
//! a small JSON file with its metadata, which is written last, so an artifact is either complete or doesn't exist.

use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use sha2::{Digest, Sha256};
use toolgate_contract::{ArtifactDraft, ArtifactRef, Artifacts, Durability, ErrorCode, ToolError};

use crate::directory::{DirectoryHandle, TemporaryFile};
use crate::{JournalError, hex};

const PREFIX: &str = "art_";

/// How many digits of the hash an id has.
const DIGITS: usize = 32;

/// The artifacts of one run.
pub struct ArtifactStore {
    directory: Arc<DirectoryHandle>,
    durability: Durability,
}

impl ArtifactStore {
    pub(crate) fn new(directory: DirectoryHandle, durability: Durability) -> Self {
        Self { directory: Arc::new(directory), durability }
    }

    /// Begins an artifact that is written in pieces. Nothing of it remains unless it is finished, not even when this
    /// process is killed.
    pub fn begin(&self, mime: &str) -> Result<ArtifactWriter, ToolError> {
        let draft = self.directory.nameless_draft()?;
        let file = draft.file.try_clone().map_err(|error| ToolError::io("An artifact couldn't be begun", &error))?;
        Ok(ArtifactWriter {
            directory: Arc::clone(&self.directory),
            durability: self.durability,
            file: BufWriter::with_capacity(64 * 1024, file),
            draft,
            hash: Sha256::new(),
            bytes: 0,
            newlines: 0,
            last: None,
            mime: mime.to_owned(),
        })
    }
}

impl Artifacts for ArtifactStore {
    fn open(&self, id: &str) -> Result<(ArtifactRef, File), ToolError> {
        let found = match is_id(id) {
            true => (known(&self.directory, id)?, self.directory.existing(id)?),
            false => (None, None),
        };
        let (Some(artifact), Some(file)) = found else {
            return Err(ToolError::new(ErrorCode::NotFound, format!("This run has no artifact `{}`.", shown(id)))
                .with_hint("Use an id that a reply of this run gave under `refs`."));
        };
        match file.metadata() {
            Ok(metadata) if metadata.len() == artifact.bytes => Ok((artifact, file)),
            Ok(_) => Err(ToolError::new(ErrorCode::IoError, format!("The artifact `{id}` was changed on disk."))
                .with_hint("Repeat the call that made it.")),
            Err(error) => Err(ToolError::io(&format!("The artifact `{id}` couldn't be inspected"), &error)),
        }
    }

    fn store(&self, bytes: &[u8], mime: &str) -> Result<ArtifactRef, ToolError> {
        let mut writer = self.begin(mime)?;
        writer.write(bytes)?;
        writer.finish()
    }

    fn begin(&self, mime: &str) -> Result<Box<dyn ArtifactDraft>, ToolError> {
        Ok(Box::new(Self::begin(self, mime)?))
    }
}

impl ArtifactDraft for ArtifactWriter {
    fn write(&mut self, bytes: &[u8]) -> Result<(), ToolError> {
        Self::write(self, bytes)
    }

    fn read_at(&mut self, into: &mut [u8], from: u64) -> Result<usize, ToolError> {
        self.file.flush().map_err(|error| failed(&error))?;
        let mut filled = 0;
        while filled < into.len() {
            match self.draft.file.read_at(&mut into[filled..], from + filled as u64) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(ToolError::io("An artifact couldn't be read back", &error)),
            }
        }
        Ok(filled)
    }

    fn finish(self: Box<Self>) -> Result<ArtifactRef, ToolError> {
        Self::finish(*self)
    }
}

/// An artifact that is being written.
pub struct ArtifactWriter {
    directory: Arc<DirectoryHandle>,
    durability: Durability,
    file: BufWriter<File>,
    draft: TemporaryFile,
    hash: Sha256,
    bytes: u64,
    newlines: u64,
    last: Option<u8>,
    mime: String,
}

impl ArtifactWriter {
    /// Adds bytes.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), ToolError> {
        self.file.write_all(bytes).map_err(|error| failed(&error))?;
        self.hash.update(bytes);
        self.bytes += bytes.len() as u64;
        self.newlines += bytes.iter().filter(|&&byte| byte == b'\n').count() as u64;
        self.last = bytes.last().copied().or(self.last);
        Ok(())
    }

    /// Completes the artifact and returns its reference.
    pub fn finish(mut self) -> Result<ArtifactRef, ToolError> {
        self.file.flush().map_err(|error| failed(&error))?;
        let unfinished_line = self.last.is_some_and(|last| last != b'\n');
        let lines = is_text(&self.mime).then_some(self.newlines + u64::from(unfinished_line));
        let sha256 = hex::string(&self.hash.finalize().into());
        let id = format!("{PREFIX}{}", &sha256[..DIGITS]);
        if let Some(artifact) = known(&self.directory, &id)? {
            return Ok(artifact);
        }
        self.draft.place(&self.directory, &id, self.durability)?;
        let artifact = ArtifactRef { id, sha256, bytes: self.bytes, lines, mime: self.mime, field: None };
        let json = serde_json::to_vec(&artifact).map_err(JournalError::Encode)?;
        self.directory.put(&about(&artifact.id), &json, self.durability)?;
        Ok(artifact)
    }
}

fn failed(error: &std::io::Error) -> ToolError {
    ToolError::io("An artifact couldn't be stored", error).with_hint("Ask the person to free disk space.")
}

/// The metadata of an artifact; none when there is no complete artifact of that id.
fn known(directory: &DirectoryHandle, id: &str) -> Result<Option<ArtifactRef>, JournalError> {
    let name = about(id);
    let Some(mut file) = directory.existing(&name)? else { return Ok(None) };
    let mut json = Vec::new();
    file.read_to_end(&mut json).map_err(|error| directory.error("couldn't be read", &name, error))?;
    // Unreadable metadata counts as missing: storing the same bytes again repairs it.
    Ok(serde_json::from_slice(&json).ok().filter(|artifact: &ArtifactRef| artifact.id == id))
}

fn about(id: &str) -> String {
    format!("{id}.json")
}

fn is_id(id: &str) -> bool {
    id.strip_prefix(PREFIX).is_some_and(|digits| {
        digits.len() == DIGITS && digits.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
    })
}

fn is_text(mime: &str) -> bool {
    mime.starts_with("text/") || mime.starts_with("application/json") || mime.ends_with("+json")
}

/// An id shortened for a message.
fn shown(id: &str) -> String {
    id.chars().filter(|character| !character.is_control()).take(64).collect()
}
