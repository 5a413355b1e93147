//! Answers the sandbox's questions for names. Whatever passes the border gets an address that stands for it; for
//! everything else there is no such name. Nothing is asked of anybody.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::Semaphore;
use toolgate_contract::{Denial, Effect};

use super::doors::USUAL_PORTS;
use super::question::{Answer, Question};
use super::relay::Shared;

/// Questions by TCP are rare: only so many at a time, and none that dawdles.
const AT_A_TIME: usize = 16;
const PATIENCE: Duration = Duration::from_secs(5);

/// Answers datagrams, as long as the sandbox lives.
pub(super) async fn by_datagram(socket: UdpSocket, shared: Arc<Shared>) {
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
pub(super) async fn by_connection(listener: TcpListener, shared: Arc<Shared>) {
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

async fn converse(mut stream: TcpStream, shared: &Shared) -> std::io::Result<()> {
    loop {
        let mut message = vec![0; usize::from(stream.read_u16().await?)];
        stream.read_exact(&mut message).await?;
        let Some(answer) = answer(&message, shared) else { return Ok(()) };
        stream.write_u16(u16::try_from(answer.len()).unwrap_or_default()).await?;
        stream.write_all(&answer).await?;
    }
}

fn answer(message: &[u8], shared: &Shared) -> Option<Vec<u8>> {
    let question = Question::read(message)?;
    Some(question.answer(decide(&question, shared)))
}

fn decide(question: &Question<'_>, shared: &Shared) -> Answer {
    let Some(name) = &question.name else { return Answer::NoSuchName };
    if name == "localhost" || name.ends_with(".localhost") {
        return Answer::Address(Ipv4Addr::LOCALHOST);
    }
    match passes_somewhere(name, shared) {
        Ok(()) => {
            if question.wants_address() {
                shared.notes.looked_up(name);
            }
            shared.names().address_of(name).map_or(Answer::NotNow, Answer::Address)
        }
        Err(denial) => {
            // Who asks for the name behind an address, or for a service, wasn't going to connect.
            if question.wants_address() && !name.ends_with(".arpa") {
                shared.notes.add(denial);
            }
            Answer::NoSuchName
        }
    }
}

/// At which port it will be connected to isn't known yet; one that passes is enough. If none does, the usual ones are
/// what is missing.
fn passes_somewhere(name: &str, shared: &Shared) -> Result<(), Denial> {
    let cleared = shared.border.cleared();
    let others = cleared.iter().filter(|(host, _)| host == name).map(|(_, port)| *port);
    let mut first = None;
    for port in USUAL_PORTS.into_iter().rev().chain(others) {
        match shared.border.pass(name, port) {
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
