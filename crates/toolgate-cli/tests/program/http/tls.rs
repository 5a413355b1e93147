//! Beyond this machine: encrypted, shown with a certificate made for the test and a client that checks it.

use std::path::PathBuf;

use super::server::Server;
use crate::world::{PROGRAM, Said, World};

/// A certificate for this machine's names, and its key.
struct Certificate {
    certificate: PathBuf,
    key: PathBuf,
}

impl Certificate {
    fn make(world: &World, name: &str) -> Self {
        Self::make_with(world, name, &[])
    }

    fn make_with(world: &World, name: &str, more: &[&str]) -> Self {
        let (certificate, key) = (world.home().join(format!("{name}.pem")), world.home().join(format!("{name}.key")));
        let said = Said::from(
            world
                .command("openssl")
                .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"])
                .args(more)
                .args(["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1,IP:0.0.0.0", "-out"])
                .args([&certificate, &PathBuf::from("-keyout"), &key])
                .output()
                .unwrap(),
        );
        assert_eq!(said.code, 0, "{said:?}");
        Self { certificate, key }
    }

    fn flags(&self) -> [&str; 4] {
        ["--tls-cert", self.certificate.to_str().unwrap(), "--tls-key", self.key.to_str().unwrap()]
    }
}

/// Asks with curl, which trusts only what it is told to.
fn curl(server: &Server, more: &[&str], path: &str) -> Said {
    let address = format!("https://{}{path}", server.address);
    let token = format!("Authorization: Bearer {}", server.token);
    let words = ["--silent", "--show-error", "--max-time", "100", "--header", &token];
    Said::from(server.world.command("curl").args(words).args(more).arg(address).output().unwrap())
}

#[test]
fn a_client_that_trusts_the_certificate_calls_a_tool() {
    let world = World::new();
    let certificate = Certificate::make(&world, "gate");
    let server = Server::start_at("0.0.0.0:0", world, &certificate.flags());
    let trusting = ["--cacert", certificate.certificate.to_str().unwrap()];
    let call = [&trusting[..], &["--json", r#"{"name":"read","args":{"path":"hello.txt"}}"#]].concat();
    let said = curl(&server, &call, "/v1/calls");
    assert_eq!(said.json()["payload"]["content"], "hello\nworld\n", "{said:?}");
    let mistrusting = curl(&server, &[], "/health");
    assert_eq!((mistrusting.code, mistrusting.out.as_str()), (60, ""), "it checks: {mistrusting:?}");
}

#[test]
fn what_this_machine_trusts_is_fetched_from() {
    let world = World::new();
    let certificate = Certificate::make_with(&world, "gate", &["-addext", "basicConstraints=critical,CA:FALSE"]);
    let server = Server::start_in(world, &certificate.flags());
    let world = World::new();
    world.put(&world.user_config(), "network.allow = ['127.0.0.1']");
    let args = serde_json::json!({ "url": format!("https://{}/health", server.address) }).to_string();
    let fetch = |trusted: &[(&str, &PathBuf)]| {
        let mut program = world.command(PROGRAM);
        program.envs(trusted.iter().copied()).args(["--json", "call", "fetch", &args]);
        Said::from(program.output().unwrap()).json()
    };
    let trusting = fetch(&[("SSL_CERT_FILE", &certificate.certificate)]);
    assert_eq!(trusting["payload"]["status"], 200, "{trusting}");
    let mistrusting = fetch(&[]);
    assert_eq!(mistrusting["error"]["code"], "io_error", "it checks: {mistrusting}");
}

#[test]
fn in_the_clear_nothing_is_answered_and_that_is_on_record() {
    let world = World::new();
    let certificate = Certificate::make(&world, "gate");
    let server = Server::start_in(world, &certificate.flags());
    let mut half = server.stranger();
    half.raw(b"\x16\x03\x01");
    let mut plain = server.stranger();
    plain.raw(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(plain.line().is_none_or(|line| !line.starts_with("HTTP/")), "no answer that others could read");
    let trusting = ["--cacert", certificate.certificate.to_str().unwrap()];
    let health = curl(&server, &trusting, "/health");
    assert_eq!(health.json()["ok"], true, "neither holds up the others: {health:?}");
    let runs = curl(&server, &trusting, "/v1/runs?session=http").json();
    let events = curl(&server, &trusting, &format!("/v1/runs/{}/events", runs["runs"][0]["id"].as_str().unwrap()));
    assert!(events.out.contains("invalid TLS handshake"), "{events:?}");
}

#[test]
fn a_certificate_that_cannot_be_used_is_told_before_anything_listens() {
    let world = World::new();
    let (gate, other) = (Certificate::make(&world, "gate"), Certificate::make(&world, "other"));
    let [cert, key] = [gate.certificate.to_str().unwrap(), gate.key.to_str().unwrap()];
    for (flags, words) in [
        (vec!["--tls-cert", cert], "--tls-key"),
        (vec!["--tls-cert", cert, "--tls-key", "nowhere.key"], "nowhere.key can't be read"),
        (vec!["--tls-cert", key, "--tls-key", key], "holds none"),
        (vec!["--tls-cert", cert, "--tls-key", cert], "the key can't be read"),
        (vec!["--tls-cert", cert, "--tls-key", other.key.to_str().unwrap()], "can't be used together"),
    ] {
        let said = world.run(&[&["serve", "--listen", "127.0.0.1:0"], flags.as_slice()].concat());
        assert_eq!(said.code, 2, "{said:?}");
        assert!(said.err.contains(words), "{words} is missing: {said:?}");
    }
}
