//! Reaching the host's services: Unix sockets by path and by abstract name, and the loopback.

use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

use toolgate_contract::NetworkAccess;

use super::scene::{attack, sh};

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
