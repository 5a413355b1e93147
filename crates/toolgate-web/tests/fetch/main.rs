//! Fetches from real servers on this machine, with and without TLS, and every way in which a server can misbehave.
#![allow(clippy::disallowed_methods, reason = "tests bring servers of their own")]

mod server;

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use toolgate_contract::{BoxFuture, Denial, EgressPolicy, ErrorCode, ToolError, Web, WebRequest, WebResponse};
use toolgate_sandbox::Resolver;
use toolgate_testkit::LONGEST_WAIT;
use toolgate_web::{FetchLimits, WebClient};

use server::{Encrypted, serve, with_body};

/// Allowed host names, and allowed addresses.
#[derive(Debug)]
struct List(Vec<&'static str>, Vec<IpAddr>);

impl EgressPolicy for List {
    fn pass(&self, host: &str, port: u16) -> Result<(), Denial> {
        let refused = || Err(Denial::of_host(host, port, format!("{host} isn't on the list."), None));
        if self.0.contains(&host) { Ok(()) } else { refused() }
    }

    fn arrive(&self, host: &str, port: u16, address: IpAddr) -> Result<(), Denial> {
        let refused = || Err(Denial::of_host(host, port, format!("{host} leads to {address}."), None));
        if self.1.contains(&address) { Ok(()) } else { refused() }
    }

    fn cleared(&self) -> Vec<(String, u16)> {
        Vec::new()
    }
}

/// The first lookup of a name returns the first address, the next one the second, and so on; the last one repeats.
#[derive(Debug)]
struct Changing(Vec<SocketAddr>, Mutex<usize>);

impl Resolver for Changing {
    fn resolve<'a>(&'a self, _host: &'a str, port: u16) -> BoxFuture<'a, std::io::Result<Vec<SocketAddr>>> {
        let mut asked = self.1.lock().unwrap();
        let mut address = self.0[(*asked).min(self.0.len() - 1)];
        *asked += 1;
        if address.port() == 0 {
            address.set_port(port);
        }
        Box::pin(std::future::ready(Ok(vec![address])))
    }
}

const LOCAL: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

fn list() -> List {
    List(vec!["ok.test", "other.test"], vec![LOCAL])
}

fn client(limits: FetchLimits, trusted: &[Vec<u8>]) -> WebClient {
    let here = Changing(vec![SocketAddr::new(LOCAL, 0)], Mutex::default());
    WebClient::with(limits, Arc::new(here), trusted.to_vec())
}

fn get(url: String) -> WebRequest {
    let timeout = LONGEST_WAIT;
    WebRequest { url, method: "GET".into(), headers: Vec::new(), body: None, timeout }
}

async fn fetch(request: WebRequest) -> Result<WebResponse, ToolError> {
    client(FetchLimits::default(), &[]).fetch(request, &list()).await
}

fn code(outcome: Result<WebResponse, ToolError>) -> ErrorCode {
    outcome.expect_err("it shouldn't have worked").code
}

#[tokio::test]
async fn requests_arrive_and_responses_are_returned() {
    let port = serve(|request| {
        let head = "HTTP/1.1 201 Made\r\nContent-Type: text/plain\r\nSet-Cookie: session=secret\r\n";
        with_body(head, request.as_bytes())
    });
    let mut request = get(format!("http://ok.test:{port}/path?query=1"));
    request.method = "POST".into();
    request.headers = vec![("X-Mine".into(), "yes".into())];
    request.body = Some("the body".into());
    let response = fetch(request).await.unwrap();
    assert_eq!((response.status, response.complete), (201, true));
    let sent = String::from_utf8(response.body).unwrap().to_lowercase();
    for words in
        ["post /path?query=1", "x-mine: yes", "the body", "user-agent: toolgate/", &format!("host: ok.test:{port}")]
    {
        assert!(sent.contains(words), "{words}: {sent}");
    }
    assert!(response.headers.iter().all(|(name, value)| name != "set-cookie" && !value.contains("secret")));
}

#[tokio::test]
async fn tls_certificates_are_checked() {
    let server = Encrypted::serve("ok.test");
    let url = |host: &str| get(format!("https://{host}:{}/", server.port));
    let trusting = client(FetchLimits::default(), std::slice::from_ref(&server.certificate));
    let response = trusting.fetch(url("ok.test"), &list()).await.unwrap();
    assert!(response.status == 200 && !response.body.is_empty(), "{response:?}");
    let stranger = client(FetchLimits::default(), &[]).fetch(url("ok.test"), &list()).await;
    assert_eq!(code(stranger), ErrorCode::IoError, "nobody vouches for it");
    let other = trusting.fetch(url("other.test"), &list()).await;
    assert_eq!(code(other), ErrorCode::IoError, "it is somebody else");
}

#[tokio::test]
async fn redirects_are_judged_like_first_requests() {
    let last = serve(|_| with_body("HTTP/1.1 200 OK\r\n", b"here"));
    let leads = |to: String| serve(move |_| with_body(&format!("HTTP/1.1 302 Found\r\nLocation: {to}\r\n"), b""));
    let within = leads(format!("http://other.test:{last}/"));
    let response = fetch(get(format!("http://ok.test:{within}/"))).await.unwrap();
    assert_eq!((response.body.as_slice(), response.redirects.len()), (&b"here"[..], 1));
    assert_eq!(response.url, format!("http://other.test:{last}/"));

    let outside = leads(format!("http://evil.test:{last}/"));
    let refused = fetch(get(format!("http://ok.test:{outside}/"))).await.unwrap_err();
    assert_eq!(refused.code, ErrorCode::NetworkDenied);
    assert_eq!(refused.details.unwrap()["missing"][0]["host"], "evil.test", "it says what would be needed");
    for to in ["http://169.254.169.254/latest/meta-data/", "http://127.0.0.1/", "file:///etc/passwd"] {
        let port = leads(to.to_owned());
        assert_eq!(code(fetch(get(format!("http://ok.test:{port}/"))).await), ErrorCode::NetworkDenied, "{to}");
    }
    let around = serve(|_| with_body("HTTP/1.1 302 Found\r\nLocation: /again\r\n", b""));
    assert_eq!(code(fetch(get(format!("http://ok.test:{around}/"))).await), ErrorCode::LimitReached);
}

#[tokio::test]
async fn a_name_is_resolved_once_and_pinned() {
    let server = serve(|_| with_body("HTTP/1.1 200 OK\r\n", b"right"));
    let metadata: SocketAddr = "169.254.169.254:80".parse().unwrap();
    // A second lookup would return another address; there is none.
    let resolver = Arc::new(Changing(vec![SocketAddr::new(LOCAL, server), metadata], Mutex::default()));
    let client = WebClient::with(FetchLimits::default(), resolver.clone(), Vec::new());
    let response = client.fetch(get(format!("http://ok.test:{server}/")), &list()).await.unwrap();
    assert_eq!(response.body, b"right");
    assert_eq!(*resolver.1.lock().unwrap(), 1);
    let again = client.fetch(get(format!("http://ok.test:{server}/")), &list()).await.unwrap_err();
    assert!(again.code == ErrorCode::NetworkDenied && again.message.contains("169.254.169.254"), "{again:?}");
    let literal = client.fetch(get("http://169.254.169.254/".into()), &list()).await;
    assert_eq!(code(literal), ErrorCode::NetworkDenied);
}

#[tokio::test]
async fn a_large_body_is_cut_even_if_it_is_compressed() {
    let limits = FetchLimits { body_bytes: 100_000, ..FetchLimits::default() };
    let huge = serve(|_| with_body("HTTP/1.1 200 OK\r\n", &vec![b'x'; 5_000_000]));
    let response = client(limits, &[]).fetch(get(format!("http://ok.test:{huge}/")), &list()).await.unwrap();
    assert_eq!((response.body.len(), response.complete), (100_000, false));
    // 200 MB of zeros, compressed with the system's own gzip.
    let packed =
        std::process::Command::new("sh").args(["-c", "head -c 200000000 /dev/zero | gzip -9"]).output().unwrap().stdout;
    assert!(packed.len() < 1_000_000);
    let bomb = serve(move |_| with_body("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n", &packed));
    let response = client(limits, &[]).fetch(get(format!("http://ok.test:{bomb}/")), &list()).await.unwrap();
    assert_eq!((response.body.len(), response.complete), (100_000, false));
    let many: String = (0..80).map(|number| format!("X-{number}: {}\r\n", "y".repeat(3000))).collect();
    let chatty = serve(move |_| with_body(&format!("HTTP/1.1 200 OK\r\n{many}"), b"ok"));
    let response = fetch(get(format!("http://ok.test:{chatty}/"))).await.unwrap();
    assert!(response.headers.len() <= 40 && response.headers.iter().all(|(_, value)| value.len() <= 1000));
}

#[tokio::test]
async fn a_server_that_never_finishes_times_out() {
    let (slow, dripping) = server::drip();
    let mut request = get(format!("http://ok.test:{slow}/"));
    request.timeout = Duration::from_secs(3_600);
    let fetching = tokio::spawn(fetch(request));
    tokio::task::spawn_blocking(move || dripping.recv()).await.unwrap().unwrap();
    // The response has begun and goes on: only the time for all of it can end it.
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(3_600)).await;
    assert_eq!(code(fetching.await.unwrap()), ErrorCode::Timeout);
}

#[tokio::test]
async fn invalid_requests_are_refused() {
    for (name, value) in
        [("Host", "evil.test"), ("Content-Length", "1"), ("X-Bad\r\nX", "1"), ("X-Bad", "a\r\nHost: b")]
    {
        let mut request = get("http://ok.test:1/".into());
        request.headers = vec![(name.into(), value.into())];
        assert_eq!(code(fetch(request).await), ErrorCode::InvalidArgs, "{name:?}");
    }
    assert_eq!(code(fetch(get("file:///etc/passwd".into())).await), ErrorCode::InvalidArgs);
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    assert_eq!(code(fetch(get(format!("http://ok.test:{port}/"))).await), ErrorCode::IoError, "nobody is there");
}

#[tokio::test]
async fn no_proxy_of_the_environment_is_used() {
    // Every test has its own process under nextest; elsewhere this only makes other fetches fail, never pass.
    // Set for a child process, which runs this test again.
    if std::env::var_os("TOOLGATE_TEST_PROXIED").is_none() {
        let mut again = std::process::Command::new(std::env::current_exe().unwrap());
        again.args(["--exact", "no_proxy_of_the_environment_is_used", "--nocapture"]).env("TOOLGATE_TEST_PROXIED", "1");
        let proxies = ["http_proxy", "HTTP_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];
        again.envs(proxies.map(|name| (name, "http://127.0.0.1:1")));
        assert!(again.status().unwrap().success());
        return;
    }
    let server = serve(|_| with_body("HTTP/1.1 200 OK\r\n", b"direct"));
    assert_eq!(fetch(get(format!("http://ok.test:{server}/"))).await.unwrap().body, b"direct");
}
