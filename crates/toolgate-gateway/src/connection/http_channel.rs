//! Messages over streamable HTTP: each of ours is a request, whose response is the answer or a stream of events with it. Every request
//! passes the egress policy, and none follows a redirect: what is sent here is for this server alone.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::task::AbortHandle;
use toolgate_contract::{EgressPolicy, ErrorCode, ResponseBody, StreamedResponse, ToolError, Web, WebRequest};

use super::event_stream::EventBuffer;
use super::peer::ServerPeer;
use super::protocol::STATELESS;
use crate::foreign_text::excerpt;
use crate::oauth::{Authorization, challenge_parameter};

/// Bytes of a response that is one message, and of one that says why a request was refused.
const LARGEST_MESSAGE: usize = 16 * 1024 * 1024;
const LARGEST_REFUSAL: usize = 64 * 1024;

/// How long a response may take to begin. The call itself has a limit of its own.
const LONGEST_WAIT: Duration = Duration::from_secs(24 * 60 * 60);

/// How long the farewell to a server may take.
const FAREWELL: Duration = Duration::from_secs(5);

/// The address of a server, and what requests to it have in common.
pub(crate) struct HttpChannel {
    url: String,
    web: Arc<dyn Web>,
    egress: Arc<dyn EgressPolicy>,
    authorization: Authorization,
    /// What the server named the session, in versions that have one.
    session: Mutex<Option<String>>,
    /// The version that is spoken, once that is known.
    version: Mutex<Option<String>>,
    /// Streams that are being read, by the request that each answers.
    streams: Mutex<HashMap<u64, AbortHandle>>,
    /// The stream of what the server says unasked.
    listening: Mutex<Option<AbortHandle>>,
}

impl HttpChannel {
    /// A channel to this address.
    pub(crate) fn new(
        url: &str,
        web: Arc<dyn Web>,
        egress: Arc<dyn EgressPolicy>,
        authorization: Authorization,
    ) -> Self {
        Self {
            url: url.to_owned(),
            web,
            egress,
            authorization,
            session: Mutex::default(),
            version: Mutex::default(),
            streams: Mutex::default(),
            listening: Mutex::default(),
        }
    }

    /// Names this version in every further request.
    pub(super) fn speak(&self, version: &str) {
        *self.version.lock() = Some(version.to_owned());
    }

    /// Sends a message. A request that wasn't let in for its token is sent once more with a new one; nothing else is repeated.
    pub(super) async fn send(&self, peer: &Arc<ServerPeer>, message: &Value) -> Result<(), ToolError> {
        let token = self.authorization.token().await?;
        let response = self.post(message, token.as_deref()).await?;
        let response = match response.status {
            401 => match self.authorization.renewed(token.as_deref(), &self.web, &self.egress).await? {
                Some(token) => self.post(message, Some(&token)).await?,
                None => response,
            },
            _ => response,
        };
        self.take(peer, message, response).await
    }

    async fn post(&self, message: &Value, token: Option<&str>) -> Result<StreamedResponse, ToolError> {
        let mut headers = vec![
            ("Content-Type".to_owned(), "application/json".to_owned()),
            ("Accept".to_owned(), "application/json, text/event-stream".to_owned()),
        ];
        headers.extend(self.own_headers(token));
        if self.version.lock().as_deref() == Some(STATELESS) {
            headers.extend(repeated(message).map(|(name, value)| (name.to_owned(), encoded(value))));
        }
        let request = WebRequest {
            url: self.url.clone(),
            method: "POST".to_owned(),
            headers,
            body: Some(message.to_string()),
            timeout: LONGEST_WAIT,
        };
        self.web.stream(request, self.egress.as_ref()).await
    }

    /// The headers of every request.
    fn own_headers(&self, token: Option<&str>) -> Vec<(String, String)> {
        let session = self.session.lock().clone().map(|session| ("Mcp-Session-Id".to_owned(), session));
        let version = self.version.lock().clone().map(|version| ("MCP-Protocol-Version".to_owned(), version));
        let token = token.map(|token| ("Authorization".to_owned(), format!("Bearer {token}")));
        session.into_iter().chain(version).chain(token).collect()
    }

    /// Takes a response: a message, a stream of them, or a refusal.
    async fn take(
        &self,
        peer: &Arc<ServerPeer>,
        message: &Value,
        mut response: StreamedResponse,
    ) -> Result<(), ToolError> {
        let id = message.get("id").filter(|_| message.get("method").is_some()).and_then(Value::as_u64);
        if message["method"] == "initialize" {
            *self.session.lock() = response.header("mcp-session-id").map(str::to_owned);
        }
        let kind = response.header("content-type").unwrap_or_default().to_lowercase();
        match response.status {
            200..=299 if kind.starts_with("text/event-stream") => {
                self.follow(peer, id, response.body);
                Ok(())
            }
            200..=299 => {
                let (body, is_whole) = read(response.body.as_mut(), LARGEST_MESSAGE).await?;
                if !is_whole {
                    return Err(peer.fault("sent a message that is longer than any"));
                }
                peer.hear(&body);
                id.into_iter().for_each(|id| peer.pending.fail(id, peer.fault("answered without an answer")));
                Ok(())
            }
            _ => self.refused(peer, id, response).await,
        }
    }

    /// Reads events in a task of its own, until the stream ends or nobody waits for its answer any more.
    fn follow(&self, peer: &Arc<ServerPeer>, id: Option<u64>, mut body: Box<dyn ResponseBody>) {
        let heard = Arc::clone(peer);
        let task = tokio::spawn(async move {
            let mut events = EventBuffer::default();
            let reason = loop {
                match body.next().await {
                    Ok(Some(piece)) => match events.add(&piece) {
                        Ok(whole) => whole.iter().for_each(|event| heard.hear(event)),
                        Err(_) => break "sent an event that is longer than any message",
                    },
                    Ok(None) | Err(_) => {
                        break "closed the connection before it answered; the call may have had its effect";
                    }
                }
            };
            id.into_iter().for_each(|id| heard.pending.fail(id, heard.fault(reason)));
        });
        if let Some(id) = id {
            let mut streams = self.streams.lock();
            streams.retain(|_, stream| !stream.is_finished());
            streams.insert(id, task.abort_handle());
        }
    }

    /// Opens the stream of what a server with sessions says unasked, such as that its tools have changed. Many have none.
    pub(super) fn listen(&self, peer: &Arc<ServerPeer>) {
        let mut headers = vec![("Accept".to_owned(), "text/event-stream".to_owned())];
        headers.extend(self.own_headers(None));
        let (url, method) = (self.url.clone(), "GET".to_owned());
        let mut request = WebRequest { url, method, headers, body: None, timeout: LONGEST_WAIT };
        let (web, egress) = (Arc::clone(&self.web), Arc::clone(&self.egress));
        let (authorization, peer) = (self.authorization.clone(), Arc::downgrade(peer));
        let task = tokio::spawn(async move {
            let token = authorization.token().await.ok().flatten();
            request.headers.extend(token.map(|token| ("Authorization".to_owned(), format!("Bearer {token}"))));
            let Ok(mut response) = web.stream(request, egress.as_ref()).await else { return };
            let is_stream = response.header("content-type").unwrap_or_default().starts_with("text/event-stream");
            let mut events = EventBuffer::default();
            while let (200, true, Ok(Some(piece))) = (response.status, is_stream, response.body.next().await) {
                let (Some(peer), Ok(whole)) = (peer.upgrade(), events.add(&piece)) else { return };
                whole.iter().for_each(|event| peer.hear(event));
            }
        });
        *self.listening.lock() = Some(task.abort_handle());
    }

    /// The error for a response that refuses a request, unless it is an answer in the protocol.
    async fn refused(
        &self,
        peer: &Arc<ServerPeer>,
        id: Option<u64>,
        mut response: StreamedResponse,
    ) -> Result<(), ToolError> {
        let status = response.status;
        let challenge = response.header("www-authenticate").unwrap_or_default().to_owned();
        let (body, _) = read(response.body.as_mut(), LARGEST_REFUSAL).await.unwrap_or_default();
        let server = &peer.server;
        match status {
            401 => {
                let message = format!("The MCP server `{server}` wants a login.");
                return Err(ToolError::new(ErrorCode::ServerError, message)
                    .with_hint(format!("Ask the person to run: toolgate mcp login {server}"))
                    .with_details(json!({ "login": true })));
            }
            403 if challenge_parameter(&challenge, "error").as_deref() == Some("insufficient_scope") => {
                let scope = excerpt(&challenge_parameter(&challenge, "scope").unwrap_or_default(), 200);
                let message = format!("The MCP server `{server}` wants more rights than its login has: `{scope}`.");
                return Err(ToolError::new(ErrorCode::ServerError, message)
                    .with_hint(format!("Ask the person to run: toolgate mcp login {server} --scope '{scope}'"))
                    .with_details(json!({ "login": true })));
            }
            404 if self.session.lock().is_some() => {
                peer.pending.close(peer.fault("forgot the session; the next call begins another"));
                return Ok(());
            }
            _ => {}
        }
        if let (Some(id), Ok(said)) = (id, serde_json::from_slice::<Value>(&body))
            && said.get("error").is_some()
        {
            peer.pending.answer(Some(id), said);
            return Ok(());
        }
        let words = excerpt(&String::from_utf8_lossy(&body), 300);
        Err(ToolError::new(
            ErrorCode::ServerError,
            format!("The MCP server `{server}` answered with status {status}. Its words: {words}"),
        )
        .with_details(json!({ "status": status })))
    }

    /// Gives up waiting for the answer to a request.
    pub(super) fn abandon(&self, id: u64) {
        if let Some(stream) = self.streams.lock().remove(&id) {
            stream.abort();
        }
    }

    /// Ends all streams, and the session where there is one.
    pub(super) fn close(&self) {
        self.streams.lock().drain().for_each(|(_, stream)| stream.abort());
        self.listening.lock().take().iter().for_each(AbortHandle::abort);
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        if self.session.lock().is_none() {
            return;
        }
        let (web, egress, url) = (Arc::clone(&self.web), Arc::clone(&self.egress), self.url.clone());
        let authorization = self.authorization.clone();
        let headers = self.own_headers(None);
        runtime.spawn(async move {
            let token = authorization.token().await.ok().flatten();
            let token = token.map(|token| ("Authorization".to_owned(), format!("Bearer {token}")));
            let headers = headers.into_iter().chain(token).collect();
            let request = WebRequest { url, method: "DELETE".to_owned(), headers, body: None, timeout: FAREWELL };
            drop(web.stream(request, egress.as_ref()).await);
        });
        *self.session.lock() = None;
    }
}

/// What headers repeat of a message.
fn repeated(message: &Value) -> impl Iterator<Item = (&'static str, &str)> {
    let params = &message["params"];
    let name = match message["method"].as_str() {
        Some("tools/call") => params["name"].as_str(),
        Some("resources/read") => params["uri"].as_str(),
        _ => None,
    };
    let method = message["method"].as_str().map(|method| ("Mcp-Method", method));
    method.into_iter().chain(name.map(|name| ("Mcp-Name", name)))
}

/// A value as a header can have it.
fn encoded(value: &str) -> String {
    let is_plain = value.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ') && value.trim() == value;
    match is_plain && !value.starts_with("=?") {
        true => value.to_owned(),
        false => format!("=?base64?{}?=", STANDARD.encode(value)),
    }
}

/// The body up to a length, and whether that is all of it.
pub(crate) async fn read(body: &mut dyn ResponseBody, most: usize) -> Result<(Vec<u8>, bool), ToolError> {
    let mut whole = Vec::new();
    while let Some(piece) = body.next().await? {
        if whole.len() + piece.len() > most {
            return Ok((whole, false));
        }
        whole.extend_from_slice(&piece);
    }
    Ok((whole, true))
}
