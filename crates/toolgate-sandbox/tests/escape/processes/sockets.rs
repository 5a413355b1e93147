//! Reaching the host's services: Unix sockets by path and by abstract name, and the loopback.

use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

use toolgate_contract::{ApplyMode, ChildProcess, NetworkAccess, Streams};

use super::scene::{attack, finish, sh};

attack! {
    fn sockets_of_the_host_cannot_be_reached(scene) {
        let attacker = scene.attacker();
        for place in ["outside/agent.sock", "workspace/server.sock", "home/agent.sock"] {
            let path = scene.path(place);
            let listener = UnixListener::bind(&path).unwrap();
            let line = format!("{attacker} connect {}", path.display());
            assert!(scene.outside(&line).worked(), "it works without a sandbox");
            let inside = scene.inside(&line);
            assert!(!inside.worked(), "{place}: {inside:?}");
            drop(listener);
        }
    }
}

attack! {
    fn sockets_that_the_host_binds_later_cannot_be_reached(scene) {
        let attacker = scene.attacker();
        let mut profile = scene.profile();
        profile.shown.push(scene.path("outside"));
        for apply_mode in [ApplyMode::InPlace, ApplyMode::None] {
            for place in ["workspace/later.sock", "outside/later.sock"] {
                let path = scene.path(place);
                let line = format!("read line; {attacker} connect {}", path.display());
                assert!(UnixListener::bind(&path).is_ok_and(|_| scene.outside(&line).worked()), "it works without a sandbox");
                std::fs::remove_file(&path).unwrap();
                let inside = scene.runtime.block_on(async {
                    let spec = sh(line).streams(Streams::Input).apply_mode(apply_mode);
                    let child = scene.sandbox.launch(&profile, &spec).await.unwrap();
                    let listener = UnixListener::bind(&path).unwrap();
                    child.write(b"go\n").await.unwrap();
                    let outcome = finish(&child).await;
                    listener.set_nonblocking(true).unwrap();
                    assert!(listener.accept().is_err(), "{place}: nobody came");
                    outcome
                });
                assert!(!inside.worked(), "{place}: {inside:?}");
                std::fs::remove_file(&path).unwrap();
            }
        }
    }
}

/// A server and its client, which meet at an address.
const MEET: &str = "import os, socket, sys, threading
address = sys.argv[1]
address = '\\0' + address[1:] if address[0] == '@' else address
server = socket.socket(socket.AF_UNIX); server.bind(address); server.listen()
threading.Thread(target=lambda: server.accept()[0].sendall(b'met'), daemon=True).start()
client = socket.socket(socket.AF_UNIX); client.connect(address)
print(client.recv(9).decode())
";

attack! {
    fn a_command_s_own_sockets_work_wherever_it_can_bind_them(scene) {
        std::fs::write(scene.workspace().join("meet.py"), MEET).unwrap();
        std::fs::create_dir_all(scene.workspace().join("sub")).unwrap();
        std::os::unix::fs::symlink("sub", scene.workspace().join("link")).unwrap();
        let absolute = scene.workspace().join("absolute.sock");
        for address in ["here.sock", "link/../sub/there.sock", absolute.to_str().unwrap(), "/tmp/x.sock", "/dev/shm/x", "@abstract"] {
            let inside = scene.inside(&format!("python3 meet.py {address}"));
            let works = scene.tier == toolgate_sandbox::process::Tier::Namespaces;
            assert_eq!(inside.output == "met\n", works, "{address}: {inside:?}");
        }
    }
}

attack! {
    fn commands_that_have_connected_keep_nobody_waiting(scene) {
        std::fs::write(scene.workspace().join("meet.py"), MEET).unwrap();
        // More than the runtime has threads.
        let start = |number: u8| scene.start(&format!("python3 meet.py /tmp/{number}.sock; echo met; sleep 1000"));
        let children: Vec<_> = (0..4).map(start).collect();
        for child in &children {
            assert!(scene.runtime.block_on(child.output()).is_some(), "it has met itself, or couldn't");
        }
        assert_eq!(scene.inside("echo well").output, "well\n");
        children.iter().for_each(ChildProcess::kill);
    }
}

attack! {
    fn datagrams_reach_no_socket_of_the_host(scene) {
        let path = scene.path("workspace/log.sock");
        let line = format!(
            "python3 -c \"import socket; a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM); a.sendto(b'x', '{0}')\" || \
             python3 -c \"import socket; socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b'x', '{0}')\"",
            path.display()
        );
        let bound = std::os::unix::net::UnixDatagram::bind(&path).unwrap();
        bound.set_nonblocking(true).unwrap();
        assert!(scene.outside(&line).worked() && bound.recv(&mut [0; 9]).is_ok(), "it works without a sandbox");
        drop(bound);
        std::fs::remove_file(&path).unwrap();
        let inside = scene.runtime.block_on(async {
            let spec = sh(format!("read line; {line}")).streams(Streams::Input);
            let child = scene.sandbox.launch(&scene.profile(), &spec).await.unwrap();
            let bound = std::os::unix::net::UnixDatagram::bind(&path).unwrap();
            bound.set_nonblocking(true).unwrap();
            child.write(b"go\n").await.unwrap();
            let outcome = finish(&child).await;
            assert!(bound.recv(&mut [0; 9]).is_err(), "nothing came");
            outcome
        });
        assert!(!inside.worked(), "{inside:?}");
        std::fs::remove_file(&path).unwrap();
    }
}

attack! {
    fn abstract_sockets_of_the_host_cannot_be_reached(scene) {
        let name = format!("toolgate-escape-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let listener = UnixListener::bind_addr(&address).unwrap();
        let line = format!("{} connect-abstract {name}", scene.attacker());
        assert!(scene.outside(&line).worked(), "it works without a sandbox");
        let inside = scene.inside(&line);
        assert!(!inside.worked(), "{inside:?}");
        let inside = scene.run(&scene.profile(), &sh(&line).network(NetworkAccess::Shared)).unwrap();
        assert!(!inside.worked(), "not even with the network shared: {inside:?}");
        drop(listener);
    }
}

attack! {
    fn the_network_is_off(scene) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let line = format!("{} connect-tcp {}", scene.attacker(), listener.local_addr().unwrap());
        assert!(scene.outside(&line).worked(), "it works without a sandbox");
        let inside = scene.inside(&line);
        assert!(!inside.worked(), "{inside:?}");
        let inside = scene.run(&scene.profile(), &sh(&line).network(NetworkAccess::Shared)).unwrap();
        assert!(inside.worked(), "shared means shared: {inside:?}");
    }
}

struct SetWhenDropped<'a>(&'a std::sync::atomic::AtomicBool);

impl Drop for SetWhenDropped<'_> {
    fn drop(&mut self) {
        self.0.store(true, std::sync::atomic::Ordering::Relaxed);
    }
}

/// Connects to a socket often, by a path that leads up.
const MEET_OFTEN: &str = "import os, socket
os.mkdir('sub')
server = socket.socket(socket.AF_UNIX); server.bind('sub/often.sock'); server.listen()
for _ in range(300):
    client = socket.socket(socket.AF_UNIX); client.connect('sub/../sub/often.sock')
    server.accept(); client.close()
print('met')
";

attack! {
    /// While anything on the machine is renamed, the kernel may refuse to resolve `..` and wants to be asked again.
    fn renames_elsewhere_do_not_disturb_connections(scene) {
        if scene.tier != toolgate_sandbox::process::Tier::Namespaces {
            return;
        }
        std::fs::write(scene.workspace().join("meet.py"), MEET_OFTEN).unwrap();
        let (one, other) = (scene.path("outside/one"), scene.path("outside/other"));
        std::fs::write(&one, "").unwrap();
        let stop = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|threads| {
            threads.spawn(|| {
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    std::fs::rename(&one, &other).and_then(|()| std::fs::rename(&other, &one)).unwrap();
                }
            });
            let _stop = SetWhenDropped(&stop);
            let inside = scene.inside("python3 meet.py; rm -r sub");
            assert_eq!(inside.output, "met\n", "{inside:?}");
        });
    }
}

attack! {
    fn sockets_that_come_and_go_do_not_stop_commands(scene) {
        let stop = std::sync::atomic::AtomicBool::new(false);
        // Many at a time, so that some are always gone between the look and the mount.
        let bind = |number: usize| {
            let path = scene.path(&format!("outside/{number}.sock"));
            (UnixListener::bind(&path).unwrap(), path)
        };
        std::thread::scope(|threads| {
            threads.spawn(|| {
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    let bound: Vec<_> = (0..100).map(bind).collect();
                    bound.iter().for_each(|(_, path)| std::fs::remove_file(path).unwrap());
                }
            });
            let _stop = SetWhenDropped(&stop);
            let outcomes: Vec<_> = (0..10).map(|_| scene.inside("echo well")).collect();
            assert!(outcomes.iter().all(|outcome| outcome.output == "well\n"), "{outcomes:?}");
        });
    }
}
