//! Answers the sandbox's questions for names. Whatever passes the border gets an address that stands for it; for
//! everything else there is no such name. Nothing is asked of anybody.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::Semaphore;
use toolgate_contract::{Denial, Effect};

use super::dns_message::{DnsAnswer, DnsQuestion};
use super::listeners::USUAL_PORTS;
use super::proxy::ProxyState;

/// Questions by TCP are rare: only so many at a time, and none that dawdles.
const AT_A_TIME: usize = 16;
const PATIENCE: Duration = Duration::from_secs(5);

/// Answers datagrams, as long as the sandbox lives.
pub(super) async fn serve_udp(socket: UdpSocket, shared: Arc<ProxyState>) {
    let mut message = [0; 4096];
    loop {
        let Ok((length, from)) = socket.recv_from(&mut message).await else { return };
        if let Some(answer) = answer(&message[..length], &shared) {
            // Whoever doesn't take it asks again.
            let _ = socket.send_to(&answer, from).await;
        }
    }
}

/// Answers questions that come by connection.
pub(super) async fn serve_tcp(listener: TcpListener, shared: Arc<ProxyState>) {
    let places = Arc::new(Semaphore::new(AT_A_TIME));
    let mut talks = tokio::task::JoinSet::new();
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else { return };
        let shared = Arc::clone(&shared);
        talks.spawn(async move {
            let _ = tokio::time::timeout(PATIENCE, converse(stream, &shared)).await;
            drop(place);
        });
        while talks.try_join_next().is_some() {}
    }
}

async fn converse(mut stream: TcpStream, shared: &ProxyState) -> std::io::Result<()> {
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
    let Some(name) = &question.name else { return DnsAnswer::NoSuchName };
    if name == "localhost" || name.ends_with(".localhost") {
        return DnsAnswer::Address(Ipv4Addr::LOCALHOST);
    }
    match passes_on_any_port(name, shared) {
        Ok(()) => {
            if question.wants_address() {
                shared.notes.looked_up(name);
            }
            shared.names().address_of(name).map_or(DnsAnswer::NotNow, DnsAnswer::Address)
        }
        Err(denial) => {
            // Who asks for the name behind an address, or for a service, wasn't going to connect.
            if question.wants_address() && !name.ends_with(".arpa") {
                shared.notes.add(denial);
            }
            DnsAnswer::NoSuchName
        }
    }
}

/// At which port it will be connected to isn't known yet; one that passes is enough. If none does, the usual ones are
/// what is missing.
fn passes_on_any_port(name: &str, shared: &ProxyState) -> Result<(), Denial> {
    let cleared = shared.egress.cleared();
    let others = cleared.iter().filter(|(host, _)| host == name).map(|(_, port)| *port);
    let mut first = None;
    for port in USUAL_PORTS.into_iter().rev().chain(others) {
        match shared.egress.pass(name, port) {
            Ok(()) => return Ok(()),
            Err(denial) => drop(first.get_or_insert(denial)),
        }
    }
    let Some(mut denial) = first else { return Ok(()) };
    denial.missing = USUAL_PORTS.map(|port| Effect::Connect { host: name.to_owned(), port }).to_vec();
    if denial.rule.is_none() {
        let other = format!(
            " It was looked up, so its port isn't known; if it is none of the usual ones, ask for `net.connect={name}:PORT`."
        );
        denial.reason.push_str(&other);
    }
    Err(denial)
}
