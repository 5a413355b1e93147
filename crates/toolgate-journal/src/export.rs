//! Exports a run as one self-contained JSON value: its events word for word, the end of its hash chain, its artifacts,
//! its grants, and the file contents before and after its changes. A reader can verify the chain and see every file as
//! it was.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::Path;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Map, Value, json};
use toolgate_contract::{ArtifactRef, Artifacts, Blob, Change, Durability, EventPayload, FileState, sha256};

use crate::directory::DirectoryHandle;
use crate::{JournalError, RecordedEvent, SigningKey, StateDirectory, Verification, head, read_events, verify};

/// The name and version of the export format.
const FORMAT: &str = "toolgate.run/1";

/// Exports a run. File contents belong to the user and aren't redacted: without `contents`, only their hashes are
/// included.
pub fn export(
    state: &StateDirectory,
    run: &str,
    key: Option<&SigningKey>,
    contents: bool,
) -> Result<Value, JournalError> {
    let directory = state.run_dir(run)?;
    let mut recorded = Vec::new();
    for event in read_events(&directory)? {
        recorded.push(event.map_err(JournalError::io(format!("The journal of run `{run}` couldn't be read")))?);
    }
    let facts = recorded.iter().find_map(|RecordedEvent { event, .. }| match &event.payload {
        EventPayload::RunStarted(facts) => Some(facts.clone()),
        _ => None,
    });
    let changes = changes(&recorded);
    let bytes = if contents { file_contents(state, &changes)? } else { Map::new() };
    let lines: Result<Vec<Value>, _> = recorded.iter().map(|event| serde_json::from_str(&event.line)).collect();
    Ok(json!({
        "format": FORMAT,
        "run": run,
        "facts": facts,
        "chain": chain(&directory, &recorded, key)?,
        "events": lines.map_err(JournalError::Encode)?,
        "artifacts": artifacts(state, run, &recorded)?,
        "grants": grants(&directory)?,
        "changes": changes.iter().map(|(call, change)| json!({ "tool_call_id": call, "change": change })).collect::<Vec<_>>(),
        "contents": bytes,
    }))
}

/// Where the hash chain ends, by its lines and by its head, and whether it is intact.
fn chain(directory: &Path, recorded: &[RecordedEvent], key: Option<&SigningKey>) -> Result<Value, JournalError> {
    let verification = match verify(directory, key)? {
        Verification::Ok { events, signed, unfinished } => {
            json!({ "ok": true, "events": events, "sealed": signed, "unfinished": unfinished })
        }
        Verification::Bad { line, fault } => json!({ "ok": false, "line": line, "fault": fault.to_string() }),
    };
    let head: Option<Value> =
        text(&DirectoryHandle::at(directory)?, head::NAME)?.and_then(|text| serde_json::from_str(&text).ok());
    let last = recorded.last().map(|last| json!({ "seq": last.seq, "sha256": sha256(&last.line) }));
    Ok(json!({ "last": last, "head": head, "verification": verification }))
}

fn changes(recorded: &[RecordedEvent]) -> Vec<(Option<&str>, &Change)> {
    recorded
        .iter()
        .filter_map(|RecordedEvent { event, .. }| match &event.payload {
            EventPayload::FilesChanging { changes, .. } => Some((event.tool_call_id.as_deref(), changes)),
            _ => None,
        })
        .flat_map(|(call, changes)| changes.iter().map(move |change| (call, change)))
        .collect()
}

/// Every file content before or after a change, by its hash; null if it was evicted.
fn file_contents(
    state: &StateDirectory,
    changes: &[(Option<&str>, &Change)],
) -> Result<Map<String, Value>, JournalError> {
    let store = state.contents(Durability::Os)?;
    let states = changes.iter().flat_map(|(_, change)| [&change.before, &change.after]).flatten();
    let hashes: BTreeSet<&str> = states.map(|FileState { sha256, .. }| sha256.as_str()).collect();
    let content =
        |hash: &str| Ok((hash.to_owned(), store.get(hash)?.map_or(Value::Null, |blob: Blob| readable(&blob))));
    hashes.into_iter().map(content).collect()
}

fn artifacts(state: &StateDirectory, run: &str, recorded: &[RecordedEvent]) -> Result<Vec<Value>, JournalError> {
    let refs = recorded.iter().filter_map(|RecordedEvent { event, .. }| match &event.payload {
        EventPayload::CallCompleted(ending) | EventPayload::CallFailed { ending, .. } => Some(&ending.refs),
        _ => None,
    });
    let store = state.artifacts(run)?;
    let mut known = BTreeSet::new();
    let mut artifacts = Vec::new();
    for artifact in refs.flatten().filter(|artifact| known.insert(artifact.id.clone())) {
        let ArtifactRef { id, sha256, bytes, mime, .. } = artifact;
        let mut content = Vec::new();
        let read = store.open(id).ok().map(|(_, mut file)| file.read_to_end(&mut content));
        let content = matches!(read, Some(Ok(_))).then(|| readable(&content));
        artifacts.push(json!({ "id": id, "sha256": sha256, "bytes": bytes, "mime": mime, "content": content }));
    }
    Ok(artifacts)
}

fn grants(directory: &Path) -> Result<Vec<Value>, JournalError> {
    let lines = text(&DirectoryHandle::at(directory)?, "approvals.jsonl")?.unwrap_or_default();
    Ok(lines.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
}

fn text(directory: &DirectoryHandle, name: &str) -> Result<Option<String>, JournalError> {
    let Some(mut file) = directory.existing(name)? else { return Ok(None) };
    let mut text = String::new();
    file.read_to_string(&mut text).map_err(|error| directory.error("couldn't be read", name, error))?;
    Ok(Some(text))
}

/// Text as text, everything else as base64.
fn readable(bytes: &[u8]) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) => json!({ "text": text }),
        Err(_) => json!({ "base64": BASE64_STANDARD.encode(bytes) }),
    }
}
