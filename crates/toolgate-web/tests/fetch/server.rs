//! Small servers: a function from a request to a response, one that never finishes, and one with TLS.
#![allow(dead_code, clippy::disallowed_methods, reason = "tests bring servers of their own")]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

use toolgate_testkit::wait_until;

/// Answers each request with this function; returns the port.
pub(crate) fn serve(answer: impl Fn(&str) -> Vec<u8> + Send + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let request = read_request(&mut stream);
            // A client that has read enough closes the connection.
            let _ = stream.write_all(&answer(&request));
        }
    });
    port
}

/// A response head followed by a body.
pub(crate) fn with_body(head: &str, body: &[u8]) -> Vec<u8> {
    let mut answer = format!("{head}Content-Length: {}\r\nConnection: close\r\n\r\n", body.len()).into_bytes();
    answer.extend_from_slice(body);
    answer
}

fn read_request(stream: &mut TcpStream) -> String {
    let (mut request, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        let text = String::from_utf8_lossy(&request).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let lower = head.to_lowercase();
            let length =
                lower.split("content-length: ").nth(1).and_then(|rest| rest.lines().next()?.trim().parse().ok());
            if body.len() >= length.unwrap_or(0) {
                return text;
            }
        }
        match stream.read(&mut piece).unwrap_or(0) {
            0 => return text,
            count => request.extend_from_slice(&piece[..count]),
        }
    }
}

/// Sends one byte after the other, and never the last one; says when it has sent some. Returns the port.
pub(crate) fn drip() -> (u16, Receiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (drips, dripping) = channel();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        // A response before the request would be a different fault.
        read_request(&mut stream);
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n").unwrap();
        while stream.write_all(b"x").is_ok() {
            let _ = drips.send(());
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    });
    (port, dripping)
}

/// An `openssl` server, with a certificate for one host.
pub(crate) struct Encrypted {
    pub(crate) port: u16,
    /// The certificate, as DER.
    pub(crate) certificate: Vec<u8>,
    process: Child,
    _directory: tempfile::TempDir,
}

impl Encrypted {
    pub(crate) fn serve(host: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let openssl = |arguments: &str| {
            let output = Command::new("openssl").args(arguments.split(' ')).current_dir(&directory).output().unwrap();
            assert!(output.status.success(), "{output:?}");
        };
        openssl(
            "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout ca.key -out ca.pem -days 2 -subj /CN=tests",
        );
        openssl(&format!(
            "req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout key.pem -out request.pem -subj /CN={host}"
        ));
        std::fs::write(directory.path().join("names"), format!("subjectAltName=DNS:{host}\n")).unwrap();
        openssl(
            "x509 -req -in request.pem -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile names -out cert.pem",
        );
        openssl("x509 -in ca.pem -outform der -out ca.der");
        let certificate = std::fs::read(directory.path().join("ca.der")).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let arguments = format!("s_server -quiet -www -accept {port} -cert cert.pem -key key.pem");
        let mut command = Command::new("openssl");
        command.args(arguments.split(' ')).current_dir(&directory).stdout(Stdio::null()).stderr(Stdio::null());
        let process = command.spawn().unwrap();
        wait_until("the openssl server listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        Self { port, certificate, process, _directory: directory }
    }
}

impl Drop for Encrypted {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
