//! The sandbox's DNS server. A name that the egress policy allows gets a synthetic address; any other name doesn't exist. No
//! query is forwarded, so none can carry data out.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::Semaphore;
use toolgate_contract::{Denial, Effect};

use super::dns_message::{DnsAnswer, DnsQuestion};
use super::listeners::HTTP_PORTS;
use super::proxy::ProxyState;

/// DNS over TCP is rare: few connections at a time, and no slow ones.
const MAX_TCP_CONNECTIONS: usize = 16;
const TCP_TIMEOUT: Duration = Duration::from_secs(5);
/// Bytes of a query by UDP. Queries are far smaller, whatever EDNS allows for answers.
const MAX_UDP_BYTES: usize = 4096;

/// Answers DNS over UDP for as long as the sandbox lives.
pub(super) async fn serve_udp(socket: UdpSocket, shared: Arc<ProxyState>) {
    let mut message = [0; MAX_UDP_BYTES];
    loop {
        let Ok((length, from)) = socket.recv_from(&mut message).await else { return };
        if let Some(answer) = answer(&message[..length], &shared) {
            // A client that doesn't get the answer asks again.
            let _ = socket.send_to(&answer, from).await;
        }
    }
}

/// Answers DNS over TCP for as long as the sandbox lives.
pub(super) async fn serve_tcp(listener: TcpListener, shared: Arc<ProxyState>) {
    let permits = Arc::new(Semaphore::new(MAX_TCP_CONNECTIONS));
    let mut connections = tokio::task::JoinSet::new();
    loop {
        let Ok(permit) = Arc::clone(&permits).acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else { return };
        let shared = Arc::clone(&shared);
        connections.spawn(async move {
            let _ = tokio::time::timeout(TCP_TIMEOUT, answer_tcp(stream, &shared)).await;
            drop(permit);
        });
        while connections.try_join_next().is_some() {}
    }
}

async fn answer_tcp(mut stream: TcpStream, shared: &ProxyState) -> std::io::Result<()> {
    loop {
        let mut message = vec![0; usize::from(stream.read_u16().await?)];
        stream.read_exact(&mut message).await?;
        let Some(answer) = answer(&message, shared) else { return Ok(()) };
        stream.write_u16(u16::try_from(answer.len()).unwrap_or_default()).await?;
        stream.write_all(&answer).await?;
    }
}

fn answer(message: &[u8], shared: &ProxyState) -> Option<Vec<u8>> {
    let question = DnsQuestion::read(message)?;
    Some(question.answer(decide(&question, shared)))
}

fn decide(question: &DnsQuestion<'_>, shared: &ProxyState) -> DnsAnswer {
    let Some(name) = &question.name else { return DnsAnswer::NameError };
    // An address is no name. With one that stands for a name, rules for this machine's own address would count at other ports.
    if name.parse::<Ipv4Addr>().is_ok() {
        return DnsAnswer::NameError;
    }
    if name == "localhost" || name.ends_with(".localhost") {
        return DnsAnswer::Address(Ipv4Addr::LOCALHOST);
    }
    match allowed_at_any_port(name, shared) {
        Ok(()) => {
            if question.wants_address() {
                shared.denials.looked_up(name);
            }
            shared.names().address_of(name).map_or(DnsAnswer::ServerFailure, DnsAnswer::Address)
        }
        Err(denial) => {
            // A reverse lookup, or a query for a service, isn't followed by a connection.
            if question.wants_address() && !name.ends_with(".arpa") {
                shared.denials.add(denial);
            }
            DnsAnswer::NameError
        }
    }
}

/// Whether a name is allowed at some port, since its connection's port isn't known yet. If it isn't, the denial asks for the
/// ports of HTTP.
fn allowed_at_any_port(name: &str, shared: &ProxyState) -> Result<(), Denial> {
    let cleared = shared.egress.cleared();
    let other_ports = cleared.iter().filter(|(host, _)| host == name).map(|(_, port)| *port);
    let mut first = None;
    for port in HTTP_PORTS.into_iter().rev().chain(other_ports) {
        match shared.egress.pass(name, port) {
            Ok(()) => return Ok(()),
            Err(denial) => drop(first.get_or_insert(denial)),
        }
    }
    let Some(mut denial) = first else { return Ok(()) };
    denial.missing = HTTP_PORTS.map(|port| Effect::Connect { host: name.to_owned(), port }).to_vec();
    if denial.rule.is_none() && shared.egress.takes_requests() {
        let hint = format!(
            " It was looked up, so its port isn't known; if it is neither 80 nor 443, ask for `net.connect={name}:PORT`."
        );
        denial.reason.push_str(&hint);
    }
    Err(denial)
}
