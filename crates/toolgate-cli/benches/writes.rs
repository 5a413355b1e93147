//! Two hundred writes of small files at once over HTTP, each synced, recorded and undoable, beside the same files written and
//! synced one after the other in the same run.
#![allow(clippy::disallowed_methods, reason = "starts the program that it measures, in a directory of its own")]

mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;
use toolgate_testkit::median;

use support::BenchWorld;

const WRITES: usize = 200;
const ROUNDS: usize = 9;

fn main() {
    let world = BenchWorld::new("");
    let server = HttpServer::start(&world);
    let (mut ours, mut plain) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let began = Instant::now();
        std::thread::scope(|scope| {
            for number in 0..WRITES {
                let server = &server;
                scope.spawn(move || server.write(&format!("round-{round}/file-{number}.txt")));
            }
        });
        ours.push(began.elapsed());
        plain.push(write_plainly(&world, round));
    }
    let (ours, plain) = (median(ours), median(plain));
    println!("{WRITES} writes at once over HTTP: {:.0} ms   (wanted: at most 300)", ours.as_secs_f64() * 1e3);
    let ratio = ours.as_secs_f64() / plain.as_secs_f64();
    println!("{WRITES} writes at once over HTTP ÷ written and synced one by one: {ratio:.2} x   (wanted: reported)");
}

/// `toolgate serve`, with its owner's token.
struct HttpServer {
    child: Child,
    address: String,
    token: String,
}

impl HttpServer {
    fn start(world: &BenchWorld) -> Self {
        let mut command = world.toolgate(&[
            "--json",
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--max-connections",
            "512",
            "--max-calls",
            "512",
        ]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let said: serde_json::Value = serde_json::from_str(&line).unwrap();
        let address = said["listening"].as_str().unwrap().trim_start_matches("http://").to_owned();
        let token = std::fs::read_to_string(said["token_file"].as_str().unwrap()).unwrap();
        Self { child, address, token: token.trim().to_owned() }
    }

    /// Calls `write` on a connection of its own.
    fn write(&self, path: &str) {
        let body = json!({ "name": "write", "args": { "path": path, "content": "a line\n" } }).to_string();
        let mut connection = TcpStream::connect(&self.address).unwrap();
        let head = format!(
            "POST /v1/calls HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            self.address,
            self.token,
            body.len()
        );
        connection.write_all(format!("{head}{body}").as_bytes()).unwrap();
        let mut answer = String::new();
        connection.read_to_string(&mut answer).unwrap();
        assert!(answer.contains("\"ok\":true"), "{answer}");
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Each file is written beside its place, synced and renamed, and its directory is synced.
fn write_plainly(world: &BenchWorld, round: usize) -> Duration {
    let directory = world.workspace().join(format!("plain-{round}"));
    let began = Instant::now();
    std::fs::create_dir(&directory).unwrap();
    let itself = std::fs::File::open(&directory).unwrap();
    for number in 0..WRITES {
        let beside = directory.join(format!(".file-{number}"));
        let mut file = std::fs::File::create(&beside).unwrap();
        file.write_all(b"a line\n").and_then(|()| file.sync_all()).unwrap();
        std::fs::rename(beside, directory.join(format!("file-{number}.txt"))).unwrap();
        itself.sync_all().unwrap();
    }
    began.elapsed()
}
