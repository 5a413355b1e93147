//! The server itself: takes connections, as many as it can carry; gives none of them for ever; and stops in order.

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

use crate::authenticator::{AllowedOrigins, Peer};
use crate::backend::ConsoleBackend;
use crate::routes;
use crate::server_state::ServerState;
use crate::tls::Tls;
use crate::token::Token;
use crate::write_timeout::WriteTimeout;

/// How much a server carries.
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
    /// How long a client may take nothing of what it asked for.
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
    /// Who may call it, and as what.
    pub allowed_origins: AllowedOrigins,
    /// How much it carries.
    pub limits: HttpLimits,
    /// What connections are encrypted with; none where nobody else could listen in.
    pub tls: Option<Tls>,
}

/// The HTTP front end of one house.
pub struct HttpServer {
    shared: Arc<ServerState>,
    router: Router<Arc<ServerState>>,
    tls: Option<Tls>,
}

impl HttpServer {
    /// A server for this house. Its own run has begun when this returns.
    pub fn new(backend: Arc<dyn ConsoleBackend>, token: &Token, options: HttpOptions) -> Result<Self, ToolError> {
        let shared = Arc::new(ServerState::open(backend, token, options.allowed_origins, options.limits)?);
        Ok(Self { router: routes::all(), shared, tls: options.tls })
    }

    /// Adds routes of another front end, behind the same door and for the owner alone.
    #[must_use]
    pub fn with_routes(mut self, routes: Router) -> Self {
        self.router = self.router.merge(routes::foreign(routes, &self.shared));
        self
    }

    /// Serves until it is told to stop; then ends every call and its processes, finishes the record, and returns.
    pub async fn serve(self, listener: TcpListener, stop: CancellationToken) {
        let Self { shared, router, tls } = self;
        let visits = ConnectionHandler {
            router: routes::with_authentication(router, &shared),
            shared: Arc::clone(&shared),
            tls,
        };
        let connections = TaskTracker::new();
        let room = Arc::new(Semaphore::new(shared.limits.connections));
        loop {
            let accepted = tokio::select! {
                biased;
                () = stop.cancelled() => break,
                accepted = listener.accept() => accepted,
            };
            match (accepted, Arc::clone(&room).try_acquire_owned()) {
                (Ok((stream, peer)), Ok(permit)) => {
                    connections.spawn(visits.clone().receive(stream, peer, permit));
                }
                (Ok((stream, _)), Err(_)) => drop(connections.spawn(visits.clone().reject_connection(stream))),
                // Out of descriptors, most likely: there is nothing to do but wait for some to come back.
                (Err(_), _) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
        drop(listener);
        shared.close().await;
        connections.close();
        let _ = tokio::time::timeout(shared.limits.stop_time, connections.wait()).await;
    }
}

/// What every connection needs.
#[derive(Clone)]
struct ConnectionHandler {
    shared: Arc<ServerState>,
    router: Router,
    tls: Option<Tls>,
}

impl ConnectionHandler {
    /// Takes a connection, in the clear or encrypted, and serves it to its end.
    async fn receive(self, stream: TcpStream, peer: SocketAddr, _permit: OwnedSemaphorePermit) {
        let _ = stream.set_nodelay(true);
        self.shared.metrics.connections.inc();
        match &self.tls {
            None => self.serve_http(stream, peer).await,
            Some(tls) => match tokio::time::timeout(self.shared.limits.head_time, tls.accept(stream)).await {
                Ok(Ok(stream)) => self.serve_http(stream, peer).await,
                Ok(Err(_)) => self.shared.record_malformed("(what can't be read as TLS)", peer),
                Err(_) => {}
            },
        }
        self.shared.metrics.connections.dec();
    }

    /// Serves one connection. When the server stops, the request at hand is still answered.
    async fn serve_http(&self, stream: impl AsyncRead + AsyncWrite + Unpin, peer: SocketAddr) {
        let limits = &self.shared.limits;
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
            () = self.shared.stop.cancelled() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        // A client that merely had nothing more to say isn't worth a note.
        if ended.is_err_and(|fault| fault.is_parse()) {
            self.shared.record_malformed("(what can't be read as a request)", peer);
        }
    }

    /// Tells a client that there is no room, without taking its request. Encrypting just to say so would take the room
    /// that there isn't.
    async fn reject_connection(self, mut stream: TcpStream) {
        const BODY: &str = r#"{"error":{"code":"too_many_connections","message":"The server has as many connections as it takes.","hint":"Wait a moment and try again; `Retry-After` says how long."}}"#;
        self.shared.metrics.refused("too_many_connections");
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
    /// Writes down that somebody sent what is no request.
    fn record_malformed(&self, what: &str, peer: SocketAddr) {
        self.metrics.refused("malformed");
        self.refusals.note(&self.owner.session, "malformed", what.to_owned(), Some(peer.ip().to_string()));
    }
}
