//! Responses that are read piece by piece, such as events of a server. Connections are kept for the next request to the same host,
//! which is checked like the first; a connection leads to addresses that were allowed when it was made.

use std::net::SocketAddr;

use parking_lot::Mutex;
use reqwest::{Client, Response};
use toolgate_contract::{BoxFuture, EgressPolicy, ErrorCode, ResponseBody, StreamedResponse, ToolError, WebRequest};

use crate::WebClient;
use crate::hop::{Hop, returned_headers};

/// How many hosts' connections are kept.
const MOST_CLIENTS: usize = 16;

/// Clients with their open connections, by the host and the addresses that each connects to. The last one was used last.
#[derive(Debug, Default)]
pub(crate) struct KeptClients(Mutex<Vec<(ClientKey, Client)>>);

/// The host with its port, and the addresses that a client connects to.
type ClientKey = (String, u16, Vec<SocketAddr>);

impl KeptClients {
    fn of(&self, key: ClientKey, make: impl FnOnce() -> Result<Client, ToolError>) -> Result<Client, ToolError> {
        let mut kept = self.0.lock();
        let entry = match kept.iter().position(|(known, _)| *known == key) {
            Some(index) => kept.remove(index),
            None => (key, make()?),
        };
        let client = entry.1.clone();
        kept.push(entry);
        if kept.len() > MOST_CLIENTS {
            kept.remove(0);
        }
        Ok(client)
    }
}

impl WebClient {
    /// Sends a request, and gives its response when the headers are there.
    pub(crate) async fn begin_stream(
        &self,
        request: WebRequest,
        egress: &dyn EgressPolicy,
    ) -> Result<StreamedResponse, ToolError> {
        let timeout = request.timeout;
        let hop = Hop::first(request)?;
        let sent = async {
            let mut addresses = self.usable_addresses(&hop, egress).await?;
            addresses.sort_unstable();
            let ((host, port), tls) = (hop.target()?, self.trust.tls().await?);
            let client = self.clients.of((host, port, addresses.clone()), || hop.client(&addresses, tls))?;
            hop.send(&client).await
        };
        let host = hop.url.host_str().unwrap_or_default();
        let late = |_| Err(ToolError::new(ErrorCode::Timeout, format!("`{host}` didn't answer in time.")));
        let response = tokio::time::timeout(timeout, sent).await.unwrap_or_else(late)?;
        Ok(StreamedResponse {
            status: response.status().as_u16(),
            headers: returned_headers(response.headers(), &self.limits),
            body: Box::new(StreamedBody { hop, response }),
        })
    }
}

/// The body of a response that is being read.
struct StreamedBody {
    hop: Hop,
    response: Response,
}

impl ResponseBody for StreamedBody {
    fn next(&mut self) -> BoxFuture<'_, Result<Option<Vec<u8>>, ToolError>> {
        Box::pin(async {
            let piece = self.response.chunk().await.map_err(|fault| self.hop.failed(&fault))?;
            Ok(piece.map(|bytes| bytes.to_vec()))
        })
    }
}
