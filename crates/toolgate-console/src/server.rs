//! The server itself: accepts connections up to a limit, bounds each of them in time, and shuts down in order.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::task::TaskTracker;
use toolgate_contract::{CancellationToken, ToolError};
use toolgate_workspace::Workspace;

use crate::authenticator::{AllowedOrigins, Peer};
use crate::console_options::ConsoleOptions;
use crate::routes;
use crate::server_state::ServerState;
use crate::tls::Tls;
use crate::token::Token;
use crate::write_timeout::WriteTimeout;

/// The limits of a server.
#[derive(Debug, Clone, Copy)]
pub struct HttpLimits {
    /// Connections at a time.
    pub connections: usize,
    /// Sessions at a time.
    pub sessions: usize,
    /// Calls at a time.
    pub calls: usize,
    /// Calls at a time of one session.
    pub calls_per_session: usize,
    /// Bytes of a request's head.
    pub head_bytes: usize,
    /// Bytes of a request's body.
    pub body_bytes: usize,
    /// How long a client may take to send a head, and between two requests.
    pub head_time: Duration,
    /// How long a client may take to send a body.
    pub body_time: Duration,
    /// How long a client may go without reading what it asked for.
    pub write_time: Duration,
    /// How long connections get to finish when the server stops.
    pub stop_time: Duration,
}

impl Default for HttpLimits {
    fn default() -> Self {
        Self {
            connections: 512,
            sessions: 1000,
            calls: 256,
            calls_per_session: 64,
            head_bytes: 64 * 1024,
            body_bytes: 16 * 1024 * 1024,
            head_time: Duration::from_secs(15),
            body_time: Duration::from_secs(60),
            write_time: Duration::from_secs(60),
            stop_time: Duration::from_secs(5),
        }
    }
}

/// How a server is set up.
#[derive(Debug, Clone)]
pub struct HttpOptions {
    /// Hosts and origins that are allowed.
    pub allowed_origins: AllowedOrigins,
    /// The limits.
    pub limits: HttpLimits,
    /// TLS for connections; none on loopback or behind a proxy.
    pub tls: Option<Tls>,
    /// What the page needs; without it nobody can sign in with a browser.
    pub console: Option<ConsoleOptions>,
}

/// The HTTP front end of one workspace.
pub struct HttpServer {
    state: Arc<ServerState>,
    router: Router<Arc<ServerState>>,
    tls: Option<Tls>,
}

impl HttpServer {
    /// A server for this workspace. Its own run has begun when this returns.
    pub fn new(workspace: Arc<Workspace>, token: &Token, options: HttpOptions) -> Result<Self, ToolError> {
        let tls = options.tls.clone();
        let state = Arc::new(ServerState::open(workspace, token, options)?);
        Ok(Self { router: routes::all(), state, tls })
    }

    /// Adds routes of another front end, behind the same authentication. Each request says by its
    /// [`Principal`](toolgate_runtime::Principal) whose it is, and a session's in which session it acts.
    #[must_use]
    pub fn with_routes(mut self, routes: Router) -> Self {
        self.router = self.router.merge(routes.with_state(()));
        self
    }

    /// Every route, behind authentication.
    pub fn router(&self) -> Router {
        routes::with_authentication(self.router.clone(), &self.state)
    }

    /// Ends every call and its processes, and finishes the record.
    pub async fn close(&self) {
        self.state.close().await;
    }

    /// Serves until it is told to stop; then ends every call and its processes, finishes the record, and returns.
    pub async fn serve(self, listener: TcpListener, stop: CancellationToken) {
        let Self { state, router, tls } = self;
        let handler =
            ConnectionHandler { router: routes::with_authentication(router, &state), state: Arc::clone(&state), tls };
        state.workspace.gate.look_ahead();
        let connections = TaskTracker::new();
        let permits = Arc::new(Semaphore::new(state.limits.connections));
        loop {
            let accepted = tokio::select! {
                biased;
                () = stop.cancelled() => break,
                accepted = listener.accept() => accepted,
            };
            match (accepted, Arc::clone(&permits).try_acquire_owned()) {
                (Ok((stream, peer)), Ok(permit)) => {
                    connections.spawn(handler.clone().receive(stream, peer, permit));
                }
                (Ok((stream, _)), Err(_)) => drop(connections.spawn(handler.clone().reject_connection(stream))),
                // Most likely out of file descriptors: wait for some to be closed.
                (Err(_), _) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
        drop(listener);
        state.close().await;
        connections.close();
        let _ = tokio::time::timeout(state.limits.stop_time, connections.wait()).await;
    }
}

/// What every connection needs.
#[derive(Clone)]
struct ConnectionHandler {
    state: Arc<ServerState>,
    router: Router,
    tls: Option<Tls>,
}

impl ConnectionHandler {
    /// Serves a connection to its end, with TLS if it is configured.
    async fn receive(self, stream: TcpStream, peer: SocketAddr, _permit: OwnedSemaphorePermit) {
        let _ = stream.set_nodelay(true);
        self.state.metrics.connections.inc();
        match &self.tls {
            None => self.serve_http(stream, peer).await,
            Some(tls) => match tokio::time::timeout(self.state.limits.head_time, tls.accept(stream)).await {
                Ok(Ok(stream)) => self.serve_http(stream, peer).await,
                Ok(Err(_)) => self.state.record_malformed("(invalid TLS handshake)", peer),
                Err(_) => {}
            },
        }
        self.state.metrics.connections.dec();
    }

    /// Serves one connection. When the server stops, the request at hand is still answered.
    async fn serve_http(&self, stream: impl AsyncRead + AsyncWrite + Unpin, peer: SocketAddr) {
        let limits = &self.state.limits;
        let routes = TowerToHyperService::new(self.router.clone());
        let service = service_fn(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(Peer(peer));
            routes.call(request)
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(limits.head_time)
            .max_buf_size(limits.head_bytes)
            .serve_connection(TokioIo::new(WriteTimeout::new(stream, limits.write_time)), service);
        tokio::pin!(connection);
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = self.state.stop.cancelled() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        // A client that merely disconnected is not recorded.
        if ended.is_err_and(|fault| fault.is_parse()) {
            self.state.record_malformed("(invalid HTTP request)", peer);
        }
    }

    /// Answers 503 without reading the request. With TLS the connection is closed instead: a handshake would cost what the
    /// limit is there to save.
    async fn reject_connection(self, mut stream: TcpStream) {
        const BODY: &str = r#"{"error":{"code":"too_many_connections","message":"The server has reached its limit of connections.","hint":"Wait a moment and try again; `Retry-After` says how long."}}"#;
        self.state.metrics.refused("too_many_connections");
        if self.tls.is_some() {
            return;
        }
        let head = format!(
            "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nretry-after: 1\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
            BODY.len()
        );
        let said = async {
            stream.write_all(head.as_bytes()).await?;
            stream.write_all(BODY.as_bytes()).await?;
            stream.shutdown().await
        };
        let _: Result<io::Result<()>, _> = tokio::time::timeout(Duration::from_secs(1), said).await;
    }
}

impl ServerState {
    /// Records that somebody sent something else than a request.
    fn record_malformed(&self, what: &str, peer: SocketAddr) {
        self.metrics.refused("malformed");
        self.refusals.record(&self.owner.session, "malformed", what.to_owned(), Some(peer.ip().to_string()));
    }
}
