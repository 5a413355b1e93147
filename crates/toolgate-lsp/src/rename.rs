//! A rename as edits of whole files, byte for byte: nothing but the new name differs.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tokio::time::Instant;
use toolgate_contract::{Blob, CodeTarget, ErrorCode, FileContent, FileEdit, ServerHost, ToolError};

use crate::connection::{Connection, ConnectionState};
use crate::documents::{Fault, LARGEST_SOURCE};
use crate::peer::PeerFault;
use crate::protocol::{Position, Range};
use crate::source_text::SourceText;

/// How often a server is asked until it changes only files that it was given.
const ROUNDS: usize = 3;

/// Files that a server is given for one rename.
const MOST_GIVEN: usize = 150;

/// A replacement in a document.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Replacement {
    range: Range,
    text: String,
}

impl Connection {
    /// The edits that give the symbol at a position another name.
    pub(crate) async fn rename(
        &self,
        state: &mut ConnectionState,
        host: &dyn ServerHost,
        (uri, position): (&str, Position),
        target: &CodeTarget,
        new_name: &str,
        until: Instant,
    ) -> Result<Vec<FileEdit>, Fault> {
        if !self.offers("renameProvider", "textDocument/rename") {
            return Err(self.lacks("rename").into());
        }
        let params = json!({ "textDocument": { "uri": uri }, "position": position, "newName": new_name });
        let mut by_file = BTreeMap::new();
        for _ in 0..ROUNDS {
            let answer = self.peer.request("textDocument/rename", params.clone(), until).await?;
            by_file = replacements(&answer)?;
            // A file that the server read by itself may be older than ours, or counted with its byte order mark. So it is
            // given every file that it wants to change, and asked again.
            let unknown: Vec<&String> =
                by_file.keys().filter(|uri| !state.documents.open.contains_key(*uri)).take(MOST_GIVEN).collect();
            if unknown.is_empty() {
                break;
            }
            for uri in unknown {
                if let Some(place) = self.place_of(uri) {
                    self.sync_document(&mut state.documents, host, &place).await?;
                }
            }
        }
        if by_file.is_empty() {
            let what = target.symbol.as_deref().unwrap_or("the symbol");
            let message = format!("there is nothing to rename for {what}");
            return Err(PeerFault::Refused { code: 0, message }.into());
        }
        let mut edits = Vec::new();
        for (uri, replacements) in by_file {
            edits.push(self.file_edit(state, host, &uri, replacements)?);
        }
        edits.sort_by(|one, other| one.place.cmp(&other.place));
        Ok(edits)
    }

    fn file_edit(
        &self,
        state: &ConnectionState,
        host: &dyn ServerHost,
        uri: &str,
        replacements: Vec<Replacement>,
    ) -> Result<FileEdit, ToolError> {
        let place = self.place_of(uri).ok_or_else(|| {
            let message =
                format!("The rename would change `{uri}`, which is outside of the workspace. Nothing was changed.");
            ToolError::new(ErrorCode::PathOutsideWorkspace, message)
        })?;
        let shown = host.files().shown(&place);
        let content = host.files().content(&place, LARGEST_SOURCE)?.filter(|content| !content.is_link());
        let content = content.ok_or_else(|| ToolError::not_found(&shown))?;
        let source = SourceText::parse(&content.bytes).ok_or_else(|| {
            let message = format!("`{shown}` isn't UTF-8, so the rename can't be made in it. Nothing was changed.");
            ToolError::new(ErrorCode::IsBinary, message)
        })?;
        let known = state.documents.open.get(uri);
        if known.is_some_and(|known| known.source.text != source.text) {
            let message = format!("`{shown}` changed while the rename was worked out. Nothing was changed.");
            return Err(ToolError::new(ErrorCode::StaleFile, message).with_hint("Call `lsp_rename` once more."));
        }
        let text = self.replaced(&source, &shown, replacements)?;
        let after = FileContent { bytes: Blob::from(source.bytes_with(&text)), mode: None };
        Ok(FileEdit { place, before: Some(content), after: Some(after), moved_from: None })
    }

    fn replaced(&self, source: &SourceText, shown: &str, replacements: Vec<Replacement>) -> Result<String, ToolError> {
        let wrong = || {
            let message = format!("The language server's edits don't fit `{shown}` as it is now. Nothing was changed.");
            ToolError::new(ErrorCode::ServerError, message).with_hint("Call `lsp_rename` once more.")
        };
        let mut spans = Vec::new();
        for Replacement { range, text } in replacements {
            let start = source.offset(range.start, self.encoding).ok_or_else(wrong)?;
            let end = source.offset(range.end, self.encoding).filter(|end| *end >= start).ok_or_else(wrong)?;
            if splits_word(&source.text, start) || splits_word(&source.text, end) {
                return Err(wrong());
            }
            spans.push((start, end, text));
        }
        spans.sort();
        spans.dedup();
        let (mut result, mut done) = (String::with_capacity(source.text.len()), 0);
        for (start, end, text) in spans {
            let kept = source.text.get(done..start).ok_or_else(wrong)?;
            result.push_str(kept);
            result.push_str(&text);
            done = end;
        }
        result.push_str(source.text.get(done..).ok_or_else(wrong)?);
        Ok(result)
    }
}

/// Whether an offset is inside of a word. No edit of a rename begins or ends there.
fn splits_word(text: &str, offset: usize) -> bool {
    let is_part = |character: char| character.is_alphanumeric() || character == '_';
    let before = text[..offset].chars().next_back().is_some_and(is_part);
    before && text[offset..].chars().next().is_some_and(is_part)
}

/// The replacements of a `WorkspaceEdit`, by document. One that also makes, moves or deletes files is refused.
fn replacements(answer: &Value) -> Result<BTreeMap<String, Vec<Replacement>>, ToolError> {
    let mut by_file: BTreeMap<String, Vec<Replacement>> = BTreeMap::new();
    let mut add = |uri: &str, edits: &Value| {
        let of = |edit: &Value| {
            let text = edit["newText"].as_str().or_else(|| edit["snippet"]["value"].as_str())?;
            Some(Replacement { range: Range::of(&edit["range"])?, text: text.to_owned() })
        };
        let read: Option<Vec<Replacement>> =
            edits.as_array().map(|edits| edits.iter().map(of).collect()).unwrap_or_default();
        let read = read.ok_or_else(|| {
            ToolError::new(ErrorCode::ServerError, "The rename has an edit without a range or a text.")
        })?;
        if !read.is_empty() {
            by_file.entry(uri.to_owned()).or_default().extend(read);
        }
        Ok::<(), ToolError>(())
    };
    if let Some(documents) = answer["documentChanges"].as_array() {
        for document in documents {
            match (document["kind"].as_str(), document["textDocument"]["uri"].as_str()) {
                (None, Some(uri)) => add(uri, &document["edits"])?,
                (kind, _) => {
                    let what = kind.unwrap_or("change");
                    let message =
                        format!("The rename would also {what} a file, which isn't done. Nothing was changed.");
                    return Err(ToolError::new(ErrorCode::ServerError, message)
                        .with_hint("Rename the file with `move`, and change its uses with `edit`."));
                }
            }
        }
    } else if let Some(changes) = answer["changes"].as_object() {
        for (uri, edits) in changes {
            add(uri, edits)?;
        }
    }
    Ok(by_file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_come_in_two_shapes_and_nothing_but_edits_is_taken() {
        let range = json!({ "start": { "line": 0, "character": 0 }, "end": { "line": 0, "character": 1 } });
        let edit = json!({ "range": range, "newText": "b" });
        let changes = json!({ "changes": { "file:///a": [edit] } });
        let documents = json!({ "documentChanges": [{ "textDocument": { "uri": "file:///a" }, "edits": [edit] }] });
        assert_eq!(replacements(&changes).unwrap(), replacements(&documents).unwrap());
        assert_eq!(replacements(&changes).unwrap()["file:///a"].len(), 1);
        let moved = json!({ "documentChanges": [{ "kind": "rename", "oldUri": "file:///a", "newUri": "file:///b" }] });
        assert!(replacements(&moved).unwrap_err().message.contains("would also rename a file"));
        assert!(splits_word("greet(x)", 3) && !splits_word("greet(x)", 5) && !splits_word("greet(x)", 0));
        assert!(replacements(&Value::Null).unwrap().is_empty());
        assert!(replacements(&json!({ "changes": { "file:///a": [{}] } })).is_err());
    }
}
