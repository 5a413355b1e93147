//! The documents that a server has been given. What a server is told of a document is always the content that the file has
//! now: contents are compared before every question.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Value, json};
use toolgate_contract::{ErrorCode, Files, ServerHost, ToolError, WorkspacePath};

use crate::connection::Connection;
use crate::peer::PeerFault;
use crate::source_text::SourceText;

/// Larger files aren't given to servers.
pub(crate) const LARGEST_SOURCE: u64 = 8 * 1024 * 1024;

/// Documents that are open at a time; the one that wasn't asked about for longest is closed.
const MOST_OPEN: usize = 200;

/// A document that the server has been given.
pub(crate) struct OpenDocument {
    pub(crate) place: WorkspacePath,
    pub(crate) version: i64,
    pub(crate) source: Arc<SourceText>,
    /// When it was last asked about, in questions.
    used: u64,
    /// How much was published when this version was sent.
    pub(crate) sent_at: u64,
}

/// All open documents, by URI.
#[derive(Default)]
pub(crate) struct OpenDocuments {
    pub(crate) open: HashMap<String, OpenDocument>,
    questions: u64,
}

/// What a file holds, unless policy hides it; none if there is no such file.
pub(crate) fn read_source(host: &dyn ServerHost, place: &WorkspacePath) -> Result<Option<SourceText>, ToolError> {
    if host.hides(place) {
        return Err(ToolError::new(
            ErrorCode::SensitivePath,
            format!("`{}` is hidden from tools by policy.", place.path),
        ));
    }
    let files: Arc<dyn Files> = host.files();
    let Some(content) = files.content(place, LARGEST_SOURCE)? else { return Ok(None) };
    if content.is_link() {
        return Ok(None);
    }
    let source = SourceText::parse(&content.bytes).ok_or_else(|| {
        let shown = files.shown(place);
        ToolError::new(ErrorCode::IsBinary, format!("`{shown}` isn't UTF-8, so no column in it can be told."))
            .with_hint("Use `grep` and `read` for this file.")
    })?;
    Ok(Some(source))
}

impl Connection {
    /// Opens a document, or tells the server its present content.
    pub(crate) async fn sync_document(
        &self,
        documents: &mut OpenDocuments,
        host: &dyn ServerHost,
        place: &WorkspacePath,
    ) -> Result<(String, Arc<SourceText>), Fault> {
        let source = read_source(host, place)?.ok_or_else(|| ToolError::not_found(&host.files().shown(place)))?;
        self.give_document(documents, place, source).await
    }

    /// Gives the server this text of a document.
    pub(crate) async fn give_document(
        &self,
        documents: &mut OpenDocuments,
        place: &WorkspacePath,
        source: SourceText,
    ) -> Result<(String, Arc<SourceText>), Fault> {
        let uri = self.uri_of(place).ok_or_else(|| {
            ToolError::new(ErrorCode::NotFound, format!("`{}` is outside of what the server knows.", place.path))
        })?;
        documents.questions += 1;
        let (used, source) = (documents.questions, Arc::new(source));
        if let Some(known) = documents.open.get_mut(&uri) {
            known.used = used;
            if known.source.text == source.text {
                return Ok((uri, Arc::clone(&known.source)));
            }
            (known.version, known.source) = (known.version + 1, Arc::clone(&source));
            known.sent_at = self.peer.publications();
            let version = json!({ "uri": uri, "version": known.version });
            let change = json!({ "textDocument": version, "contentChanges": [{ "text": source.text }] });
            self.peer.notify("textDocument/didChange", change).await?;
            let saved = json!({ "textDocument": { "uri": uri }, "text": source.text });
            self.peer.notify("textDocument/didSave", saved).await?;
            return Ok((uri, source));
        }
        self.make_room(documents).await?;
        let version = self.next_version();
        let document = OpenDocument {
            place: place.clone(),
            version,
            source: Arc::clone(&source),
            used,
            sent_at: self.peer.publications(),
        };
        documents.open.insert(uri.clone(), document);
        let item = json!({
            "uri": uri, "languageId": self.entry.language_of(&place.path), "version": version, "text": source.text,
        });
        self.peer.notify("textDocument/didOpen", json!({ "textDocument": item })).await?;
        Ok((uri, source))
    }

    /// Tells the server of every open document that changed meanwhile, and closes those that are gone. Those that are
    /// settled aren't looked at.
    pub(crate) async fn sync_others(
        &self,
        documents: &mut OpenDocuments,
        host: &dyn ServerHost,
        is_settled: impl Fn(&WorkspacePath) -> bool,
    ) -> Result<(), Fault> {
        let open: Vec<(String, WorkspacePath)> = documents
            .open
            .iter()
            .filter(|(_, document)| !is_settled(&document.place))
            .map(|(uri, document)| (uri.clone(), document.place.clone()))
            .collect();
        for (uri, place) in open {
            match read_source(host, &place) {
                Ok(Some(source)) => drop(self.give_document(documents, &place, source).await?),
                Ok(None) | Err(_) => self.close_document(documents, &uri).await?,
            }
        }
        Ok(())
    }

    pub(crate) async fn close_document(&self, documents: &mut OpenDocuments, uri: &str) -> Result<(), Fault> {
        if documents.open.remove(uri).is_some() {
            self.peer.notify("textDocument/didClose", json!({ "textDocument": { "uri": uri } })).await?;
        }
        Ok(())
    }

    async fn make_room(&self, documents: &mut OpenDocuments) -> Result<(), Fault> {
        if documents.open.len() < MOST_OPEN {
            return Ok(());
        }
        let oldest = documents.open.iter().min_by_key(|(_, document)| document.used).map(|(uri, _)| uri.clone());
        match oldest {
            Some(uri) => self.close_document(documents, &uri).await,
            None => Ok(()),
        }
    }
}

/// Why a question couldn't be answered: by us, or by the server.
#[derive(Debug)]
pub(crate) enum Fault {
    Own(ToolError),
    LspPeer(PeerFault),
    /// A file changed that the server reads only when it starts.
    Reconfigured,
}

impl From<ToolError> for Fault {
    fn from(error: ToolError) -> Self {
        Self::Own(error)
    }
}

impl From<PeerFault> for Fault {
    fn from(fault: PeerFault) -> Self {
        Self::LspPeer(fault)
    }
}

/// The parameters of a question about a place in a document.
pub(crate) fn at_position(uri: &str, position: crate::protocol::Position) -> Value {
    json!({ "textDocument": { "uri": uri }, "position": position })
}
