//! The egress proxy: accepts the connections that arrive at a sandbox's listeners, and connects those that the egress policy
//! allows. It is transparent; a command connects to a synthetic address as to any other.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use toolgate_contract::{Denial, EgressPolicy, ErrorCode};

use super::allowed_host::AllowedHost;
use super::denial_log::DenialLog;
use super::dns;
use super::http_requests::HttpRequestStream;
use super::listeners::{is_http_port, with_synthetic_addresses};
use super::resolver::Resolver;
use super::sniff::{MAX_SNIFFED_BYTES, SniffedProtocol, sniff};
use super::synthetic_addresses::{SyntheticAddresses, is_synthetic};

/// Connections of one sandbox at a time; more have to wait.
const MAX_CONNECTIONS: usize = 256;
/// How long a client may take for its ClientHello or request head, a lookup for its answer, and a server to be reached.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(15);
/// How long a connection may be silent.
const IDLE_TIMEOUT: Duration = Duration::from_secs(600);
/// Bytes that one sandbox may transfer, both directions together.
const MAX_TRANSFERRED_BYTES: u64 = 64 << 30;
const BUFFER_BYTES: usize = 64 * 1024;

/// The proxy of one sandbox. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct EgressProxy {
    denials: DenialLog,
    /// Dropping the set stops every task in it.
    _tasks: JoinSet<()>,
}

/// What the DNS server and all connections of a proxy share.
#[derive(Debug)]
pub(super) struct ProxyState {
    pub(super) egress: Arc<dyn EgressPolicy>,
    resolver: Arc<dyn Resolver>,
    names: Mutex<SyntheticAddresses>,
    pub(super) denials: DenialLog,
    transferred: AtomicU64,
}

impl ProxyState {
    pub(super) fn names(&self) -> MutexGuard<'_, SyntheticAddresses> {
        self.names.lock()
    }
}

impl EgressProxy {
    /// Serves these listeners, which are in the order in which they were opened: DNS over UDP, DNS over TCP, and then those
    /// for connections.
    pub(crate) fn start(
        listeners: Vec<OwnedFd>,
        egress: Arc<dyn EgressPolicy>,
        resolver: Arc<dyn Resolver>,
    ) -> std::io::Result<Self> {
        let (_, names) = with_synthetic_addresses(egress.as_ref());
        let denials = DenialLog::default();
        let shared = Arc::new(ProxyState {
            egress,
            resolver,
            names: Mutex::new(names),
            denials: denials.clone(),
            transferred: AtomicU64::new(0),
        });
        let (mut listeners, mut tasks) = (listeners.into_iter(), JoinSet::new());
        if let (Some(dns_udp), Some(dns_tcp)) = (listeners.next(), listeners.next()) {
            tasks.spawn(dns::serve_udp(udp_socket(dns_udp)?, Arc::clone(&shared)));
            tasks.spawn(dns::serve_tcp(tcp_listener(dns_tcp)?, Arc::clone(&shared)));
        }
        let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        for listener in listeners {
            tasks.spawn(serve_listener(tcp_listener(listener)?, Arc::clone(&permits), Arc::clone(&shared)));
        }
        Ok(Self { denials, _tasks: tasks })
    }

    /// What was denied so far.
    pub(crate) fn denials(&self) -> &DenialLog {
        &self.denials
    }
}

fn tcp_listener(descriptor: OwnedFd) -> std::io::Result<TcpListener> {
    rustix::io::ioctl_fionbio(&descriptor, true)?;
    TcpListener::from_std(descriptor.into())
}

fn udp_socket(descriptor: OwnedFd) -> std::io::Result<UdpSocket> {
    rustix::io::ioctl_fionbio(&descriptor, true)?;
    UdpSocket::from_std(descriptor.into())
}

async fn serve_listener(listener: TcpListener, permits: Arc<Semaphore>, shared: Arc<ProxyState>) {
    let mut connections = JoinSet::new();
    loop {
        let Ok(permit) = Arc::clone(&permits).acquire_owned().await else { return };
        let Ok((client, _)) = listener.accept().await else { return };
        let shared = Arc::clone(&shared);
        connections.spawn(async move {
            serve(client, &shared).await;
            drop(permit);
        });
        while connections.try_join_next().is_some() {}
    }
}

/// One connection, from its first byte to its end. A denied one is reset, so that the client doesn't wait for an answer.
async fn serve(mut client: TcpStream, shared: &ProxyState) {
    let _ = client.set_nodelay(true);
    match connect_upstream(&mut client, shared).await {
        Ok(Some(upstream)) => {
            // Either side may end a connection in any way; the other side sees that it ended.
            let _ = copy_both_ways(client, upstream, shared).await;
        }
        Ok(None) => _ = client.set_zero_linger(),
        Err(denial) => {
            shared.denials.add(denial);
            let _ = client.set_zero_linger();
        }
    }
}

/// An allowed host, the connection to it, and what the client has sent already.
struct UpstreamConnection {
    host: String,
    port: u16,
    server: TcpStream,
    sent: Vec<u8>,
}

/// Finds out which host the client connects to, checks that the policy allows it and that the client names the same host,
/// and connects to it. `None` if there is no connection to make, though nothing was denied.
async fn connect_upstream(client: &mut TcpStream, shared: &ProxyState) -> Result<Option<UpstreamConnection>, Denial> {
    let Ok(destination) = client.local_addr() else { return Ok(None) };
    let port = destination.port();
    let Some(host) = host_of(destination.ip(), port, shared)? else { return Ok(None) };
    shared.denials.mark_connected(&host);
    shared.egress.pass(&host, port)?;
    let allowed = AllowedHost { host: &host, port, egress: shared.egress.as_ref() };
    let mut sent = Vec::new();
    if is_http_port(port) && !check_first_bytes(client, &mut sent, &allowed).await? {
        return Ok(None);
    }
    let mut server = connect(&host, port, shared).await?;
    if !is_http_port(port) && !wait_for_first_bytes(client, &mut server, &mut sent, &allowed).await? {
        return Ok(None);
    }
    Ok(Some(UpstreamConnection { host, port, server, sent }))
}

/// The host that an address stands for. The sandbox's own loopback leads nowhere from here, but for the ports of this machine
/// that were named.
fn host_of(address: IpAddr, port: u16, shared: &ProxyState) -> Result<Option<String>, Denial> {
    let IpAddr::V4(address) = address else { return Ok(None) };
    if address.is_loopback() || address.is_unspecified() {
        let is_named = shared.egress.cleared().iter().any(|(host, at)| *at == port && is_this_machine(host));
        return Ok(is_named.then(|| Ipv4Addr::LOCALHOST.to_string()));
    }
    if !is_synthetic(address) {
        return Ok(Some(address.to_string()));
    }
    match shared.names().name_of(address) {
        // No synthetic address stands for this machine: its ports are reached by its own address alone.
        Some(name) if is_this_machine(name) => Ok(None),
        Some(name) => Ok(Some(name.to_owned())),
        None => {
            let reason = format!("{address} stands for no name that was looked up.");
            Err(Denial::of_host(&address.to_string(), port, reason, None))
        }
    }
}

/// Whether a host is the loopback of this machine.
fn is_this_machine(host: &str) -> bool {
    host == "localhost" || host.parse::<Ipv4Addr>().is_ok_and(|address| address.is_loopback())
}

/// Reads the client's first bytes into `sent` and checks the host that they name. False if they never came.
async fn check_first_bytes(
    client: &mut TcpStream,
    sent: &mut Vec<u8>,
    allowed: &AllowedHost<'_>,
) -> Result<bool, Denial> {
    let sniffed = tokio::time::timeout(HANDSHAKE_TIMEOUT, async {
        loop {
            match sniff(sent) {
                SniffedProtocol::Incomplete if sent.len() < MAX_SNIFFED_BYTES => {}
                sniffed => return Some(sniffed),
            }
            if client.read_buf(sent).await.unwrap_or(0) == 0 {
                return None;
            }
        }
    });
    match sniffed.await {
        Ok(Some(sniffed)) => allowed.check(&sniffed).map(|()| true),
        _ => Ok(false),
    }
}

/// At a port where servers may speak first, the client's first bytes are checked only if they come first.
async fn wait_for_first_bytes(
    client: &mut TcpStream,
    server: &mut TcpStream,
    sent: &mut Vec<u8>,
    allowed: &AllowedHost<'_>,
) -> Result<bool, Denial> {
    let first = tokio::time::timeout(IDLE_TIMEOUT, async {
        tokio::select! {
            read = client.readable() => read.map(|()| true),
            read = server.readable() => read.map(|()| false),
        }
    });
    match first.await {
        Ok(Ok(true)) => check_first_bytes(client, sent, allowed).await,
        Ok(Ok(false)) => Ok(true),
        _ => Ok(false),
    }
}

/// Looks the host up and connects to one of the addresses that the policy allows, without looking it up again. The command
/// sees only that its connection ended, so a failure is reported as a denial.
async fn connect(host: &str, port: u16, shared: &ProxyState) -> Result<TcpStream, Denial> {
    let resolved = with_timeout(shared.resolver.resolve(host, port)).await;
    let resolved = resolved
        .map_err(|error| unreachable_host(ErrorCode::NotFound, format!("{host} can't be looked up: {error}.")))?;
    let (allowed, denied) = allowed_addresses(&resolved, host, port, shared);
    if let (true, Some(denial)) = (allowed.is_empty(), denied) {
        return Err(denial);
    }
    let mut reason = "it has no address".to_owned();
    for address in allowed {
        match with_timeout(TcpStream::connect(address)).await {
            Ok(server) => {
                let _ = server.set_nodelay(true);
                return Ok(server);
            }
            Err(error) => reason = error.to_string(),
        }
    }
    let reason = format!("{host} is allowed, but port {port} of it can't be reached: {reason}.");
    Err(unreachable_host(ErrorCode::IoError, reason))
}

async fn with_timeout<T>(attempt: impl Future<Output = std::io::Result<T>>) -> std::io::Result<T> {
    let timed_out = || std::io::Error::new(std::io::ErrorKind::TimedOut, "timed out");
    tokio::time::timeout(HANDSHAKE_TIMEOUT, attempt).await.unwrap_or_else(|_| Err(timed_out()))
}

/// A failure that no further permission would prevent.
fn unreachable_host(code: ErrorCode, reason: String) -> Denial {
    Denial { code, missing: Vec::new(), reason, rule: None }
}

/// The addresses that the policy allows for this host, and its first denial.
fn allowed_addresses(
    resolved: &[SocketAddr],
    host: &str,
    port: u16,
    shared: &ProxyState,
) -> (Vec<SocketAddr>, Option<Denial>) {
    let (mut allowed, mut denied) = (Vec::new(), None);
    for address in resolved {
        match shared.egress.arrive(host, port, address.ip()) {
            Ok(()) => allowed.push(*address),
            Err(denial) => denied = denied.or(Some(denial)),
        }
    }
    (allowed, denied)
}

/// Copies bytes in both directions until both sides have ended, or the connection has been silent for too long.
async fn copy_both_ways(client: TcpStream, upstream: UpstreamConnection, shared: &ProxyState) -> std::io::Result<()> {
    let UpstreamConnection { host, port, mut server, sent } = upstream;
    let allowed = AllowedHost { host: &host, port, egress: shared.egress.as_ref() };
    let mut requests = matches!(sniff(&sent), SniffedProtocol::Http(_)).then(HttpRequestStream::default);
    let mut check = |bytes: Vec<u8>| match &mut requests {
        None => Ok(bytes),
        Some(requests) => requests.push(&bytes, &allowed).map_err(|denial| {
            shared.denials.add(denial);
            std::io::Error::from(std::io::ErrorKind::PermissionDenied)
        }),
    };
    server.write_all(&check(sent)?).await?;
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let reads = AtomicU64::new(0);
    tokio::try_join!(
        copy_one_way(from_client, to_server, check, &reads, shared),
        copy_one_way(from_server, to_client, Ok, &reads, shared)
    )?;
    Ok(())
}

/// Copies bytes in one direction, as far as `check` lets them pass. `reads` counts those of both directions: a side that only
/// receives isn't idle.
async fn copy_one_way(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut check: impl FnMut(Vec<u8>) -> std::io::Result<Vec<u8>>,
    reads: &AtomicU64,
    shared: &ProxyState,
) -> std::io::Result<()> {
    let mut buffer = Vec::with_capacity(BUFFER_BYTES);
    loop {
        let before = reads.load(Ordering::Relaxed);
        let count = match tokio::time::timeout(IDLE_TIMEOUT, from.read_buf(&mut buffer)).await {
            Ok(count) => count?,
            Err(_) if reads.load(Ordering::Relaxed) != before => continue,
            Err(elapsed) => return Err(elapsed.into()),
        };
        if count == 0 {
            return to.shutdown().await;
        }
        if shared.transferred.fetch_add(count as u64, Ordering::Relaxed) > MAX_TRANSFERRED_BYTES {
            return Err(std::io::ErrorKind::QuotaExceeded.into());
        }
        let mut checked = check(std::mem::take(&mut buffer))?;
        to.write_all(&checked).await?;
        checked.clear();
        buffer = checked;
        buffer.reserve(BUFFER_BYTES);
        reads.fetch_add(1, Ordering::Relaxed);
    }
}
