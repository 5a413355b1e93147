//! Takes the connections that come out of a sandbox's doors, and makes those that the border lets pass.

use parking_lot::{Mutex, MutexGuard};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use toolgate_contract::{Denial, EgressPolicy, ErrorCode};

use super::allowed_host::AllowedHost;
use super::client_hello::{self, SniffedProtocol};
use super::denial_log::DenialLog;
use super::dns;
use super::http_head::HttpRequestStream;
use super::listeners::with_synthetic_addresses;
use super::resolver::Resolver;
use super::synthetic_addresses::{SyntheticAddresses, is_synthetic};

/// Connections of one sandbox at a time; more have to wait.
const AT_A_TIME: usize = 256;
/// How long a client may take for its greeting, and a server to be reached.
const PATIENCE: Duration = Duration::from_secs(15);
/// How long a connection may be silent.
const SILENCE: Duration = Duration::from_secs(600);
/// Bytes that one sandbox may move, both ways together.
const MOST_BYTES: u64 = 64 << 30;
const PIECE: usize = 64 * 1024;

/// A sandbox's way out. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct EgressProxy {
    notes: DenialLog,
    /// Dropped, it stops every task in it.
    _tasks: JoinSet<()>,
}

/// What all parts of a relay share.
#[derive(Debug)]
pub(super) struct ProxyState {
    pub(super) egress: Arc<dyn EgressPolicy>,
    resolver: Arc<dyn Resolver>,
    names: Mutex<SyntheticAddresses>,
    pub(super) notes: DenialLog,
    moved: AtomicU64,
}

impl ProxyState {
    pub(super) fn names(&self) -> MutexGuard<'_, SyntheticAddresses> {
        self.names.lock()
    }
}

impl EgressProxy {
    /// Answers at these doors, in the order in which they were opened: names by datagram, names by connection, and then
    /// those for connections.
    pub(crate) fn start(
        listeners: Vec<OwnedFd>,
        egress: Arc<dyn EgressPolicy>,
        resolver: Arc<dyn Resolver>,
    ) -> std::io::Result<Self> {
        let (_, names) = with_synthetic_addresses(egress.as_ref());
        let notes = DenialLog::default();
        let shared =
            Arc::new(ProxyState { egress, resolver, names: Mutex::new(names), notes: notes.clone(), moved: 0.into() });
        let (mut listeners, mut tasks) = (listeners.into_iter(), JoinSet::new());
        if let (Some(datagrams), Some(connections)) = (listeners.next(), listeners.next()) {
            tasks.spawn(dns::serve_udp(datagram_socket(datagrams)?, Arc::clone(&shared)));
            tasks.spawn(dns::serve_tcp(listener(connections)?, Arc::clone(&shared)));
        }
        let places = Arc::new(Semaphore::new(AT_A_TIME));
        for door in listeners {
            tasks.spawn(serve_listener(listener(door)?, Arc::clone(&places), Arc::clone(&shared)));
        }
        Ok(Self { notes, _tasks: tasks })
    }

    /// What was refused so far.
    pub(crate) fn notes(&self) -> &DenialLog {
        &self.notes
    }
}

fn listener(descriptor: OwnedFd) -> std::io::Result<TcpListener> {
    rustix::io::ioctl_fionbio(&descriptor, true)?;
    TcpListener::from_std(descriptor.into())
}

fn datagram_socket(descriptor: OwnedFd) -> std::io::Result<UdpSocket> {
    rustix::io::ioctl_fionbio(&descriptor, true)?;
    UdpSocket::from_std(descriptor.into())
}

async fn serve_listener(listener: TcpListener, places: Arc<Semaphore>, shared: Arc<ProxyState>) {
    let mut connections = JoinSet::new();
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        let Ok((client, _)) = listener.accept().await else { return };
        let shared = Arc::clone(&shared);
        connections.spawn(async move {
            serve(client, &shared).await;
            drop(place);
        });
        while connections.try_join_next().is_some() {}
    }
}

/// One connection, from its first word to its end. A refused one is reset, so that nobody waits for an answer.
async fn serve(mut client: TcpStream, shared: &ProxyState) {
    let _ = client.set_nodelay(true);
    let outcome = match reach(&mut client, shared).await {
        Ok(Some(reached)) => copy_both_ways(client, reached, shared).await,
        Ok(None) => {
            let _ = client.set_zero_linger();
            Ok(())
        }
        Err(denial) => {
            shared.notes.add(denial);
            let _ = client.set_zero_linger();
            Ok(())
        }
    };
    drop(outcome);
}

/// A host that was let through, the connection to it, and what the client has said already.
struct UpstreamConnection {
    host: String,
    port: u16,
    server: TcpStream,
    said: Vec<u8>,
}

/// Who is meant, whether that is let through, and whether the greeting says the same; then the connection to it. None if
/// there is nobody to be reached, which no rule decides.
async fn reach(client: &mut TcpStream, shared: &ProxyState) -> Result<Option<UpstreamConnection>, Denial> {
    let Ok(meant) = client.local_addr() else { return Ok(None) };
    let port = meant.port();
    let Some(host) = host_of(meant.ip(), port, shared)? else { return Ok(None) };
    shared.notes.mark_connected(&host);
    shared.egress.pass(&host, port)?;
    let mut said = Vec::new();
    if matches!(port, 80 | 443) && !greet(client, &host, port, &mut said, shared).await? {
        return Ok(None);
    }
    let mut server = connect(&host, port, shared).await?;
    if !matches!(port, 80 | 443) && !wait_for_first_bytes(client, &mut server, &host, port, &mut said, shared).await? {
        return Ok(None);
    }
    Ok(Some(UpstreamConnection { host, port, server, said }))
}

/// The host behind an address. Its own loopback leads nowhere from here.
fn host_of(address: IpAddr, port: u16, shared: &ProxyState) -> Result<Option<String>, Denial> {
    let IpAddr::V4(address) = address else { return Ok(None) };
    if address.is_loopback() || address.is_unspecified() {
        return Ok(None);
    }
    if !is_synthetic(address) {
        return Ok(Some(address.to_string()));
    }
    match shared.names().name_of(address) {
        Some(name) => Ok(Some(name.to_owned())),
        None => {
            let reason = format!("{address} stands for no name that was asked for.");
            Err(Denial::of_host(&address.to_string(), port, reason, None))
        }
    }
}

/// Hears the greeting out and holds it against the host. False if it never came.
async fn greet(
    client: &mut TcpStream,
    host: &str,
    port: u16,
    said: &mut Vec<u8>,
    shared: &ProxyState,
) -> Result<bool, Denial> {
    let heard = tokio::time::timeout(PATIENCE, async {
        loop {
            match client_hello::read(said) {
                SniffedProtocol::Unfinished if said.len() < client_hello::LONGEST => {}
                heard => return Some(heard),
            }
            if client.read_buf(said).await.unwrap_or(0) == 0 {
                return None;
            }
        }
    });
    match heard.await {
        Ok(Some(heard)) => AllowedHost { host, port, egress: shared.egress.as_ref() }.hears(&heard).map(|()| true),
        _ => Ok(false),
    }
}

/// At ports where servers may speak first, the client's first words are looked at only if they come first.
async fn wait_for_first_bytes(
    client: &mut TcpStream,
    server: &mut TcpStream,
    host: &str,
    port: u16,
    said: &mut Vec<u8>,
    shared: &ProxyState,
) -> Result<bool, Denial> {
    let first = tokio::time::timeout(SILENCE, async {
        tokio::select! {
            read = client.readable() => read.map(|()| true),
            read = server.readable() => read.map(|()| false),
        }
    });
    match first.await {
        Ok(Ok(true)) => greet(client, host, port, said, shared).await,
        Ok(Ok(false)) => Ok(true),
        _ => Ok(false),
    }
}

/// Looks the host up and connects to an address of it that may be used: to that very one. The command sees no more than
/// that its connection ended, so why that is so is told as if it had been refused.
async fn connect(host: &str, port: u16, shared: &ProxyState) -> Result<TcpStream, Denial> {
    let found = in_time(shared.resolver.resolve(host, port)).await;
    let found =
        found.map_err(|fault| unreached(ErrorCode::NotFound, format!("{host} can't be looked up: {fault}.")))?;
    let (usable, refused) = judged(&found, host, port, shared);
    if let (true, Some(denial)) = (usable.is_empty(), refused) {
        return Err(denial);
    }
    let mut why = "it has no address".to_owned();
    for address in usable {
        match in_time(TcpStream::connect(address)).await {
            Ok(server) => {
                let _ = server.set_nodelay(true);
                return Ok(server);
            }
            Err(fault) => why = fault.to_string(),
        }
    }
    Err(unreached(ErrorCode::IoError, format!("{host} is let through, but port {port} of it can't be reached: {why}.")))
}

async fn in_time<T>(attempt: impl Future<Output = std::io::Result<T>>) -> std::io::Result<T> {
    let late = || std::io::Error::new(std::io::ErrorKind::TimedOut, "nobody answered in time");
    tokio::time::timeout(PATIENCE, attempt).await.unwrap_or_else(|_| Err(late()))
}

/// Nothing is missing that could be granted.
fn unreached(code: ErrorCode, reason: String) -> Denial {
    Denial { code, missing: Vec::new(), reason, rule: None }
}

fn judged(found: &[SocketAddr], host: &str, port: u16, shared: &ProxyState) -> (Vec<SocketAddr>, Option<Denial>) {
    let (mut usable, mut refused) = (Vec::new(), None);
    for address in found {
        match shared.egress.arrive(host, port, address.ip()) {
            Ok(()) => usable.push(*address),
            Err(denial) => refused = refused.or(Some(denial)),
        }
    }
    (usable, refused)
}

/// Carries bytes both ways until both sides have ended, or one has been silent for too long.
async fn copy_both_ways(client: TcpStream, reached: UpstreamConnection, shared: &ProxyState) -> std::io::Result<()> {
    let UpstreamConnection { host, port, mut server, said } = reached;
    let meant = AllowedHost { host: &host, port, egress: shared.egress.as_ref() };
    let mut requests = matches!(client_hello::read(&said), SniffedProtocol::Http(_)).then(HttpRequestStream::default);
    let mut sift = |bytes: Vec<u8>| match &mut requests {
        None => Ok(bytes),
        Some(requests) => requests.take(&bytes, &meant).map_err(|denial| {
            shared.notes.add(denial);
            std::io::Error::from(std::io::ErrorKind::PermissionDenied)
        }),
    };
    server.write_all(&sift(said)?).await?;
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let pieces = AtomicU64::new(0);
    tokio::try_join!(
        carry(from_client, to_server, sift, &pieces, shared),
        carry(from_server, to_client, Ok, &pieces, shared)
    )?;
    Ok(())
}

/// Carries bytes one way, as far as they may go on. `pieces` counts those of both ways: who only listens isn't silent.
async fn carry(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut sift: impl FnMut(Vec<u8>) -> std::io::Result<Vec<u8>>,
    pieces: &AtomicU64,
    shared: &ProxyState,
) -> std::io::Result<()> {
    let mut piece = Vec::with_capacity(PIECE);
    loop {
        let before = pieces.load(Ordering::Relaxed);
        let count = match tokio::time::timeout(SILENCE, from.read_buf(&mut piece)).await {
            Ok(count) => count?,
            Err(_) if pieces.load(Ordering::Relaxed) != before => continue,
            Err(silence) => return Err(silence.into()),
        };
        if count == 0 {
            return to.shutdown().await;
        }
        if shared.moved.fetch_add(count as u64, Ordering::Relaxed) > MOST_BYTES {
            return Err(std::io::ErrorKind::QuotaExceeded.into());
        }
        let mut passed = sift(std::mem::take(&mut piece))?;
        to.write_all(&passed).await?;
        passed.clear();
        piece = passed;
        piece.reserve(PIECE);
        pieces.fetch_add(1, Ordering::Relaxed);
    }
}
