//! System calls that would get around namespaces, mounts and Landlock; seccomp refuses them.

use super::scene::{attack, user};

/// Every user can make these where nothing stops them.
const FOR_EVERYBODY: &[&str] =
    &["keyctl", "add_key", "userfaultfd", "io_uring", "unshare", "clone", "clone3", "ptrace", "mount", "vsock"];
/// Only root can make these.
const FOR_ROOT: &[&str] = &["packet", "netlink-audit"];

attack! {
    fn dangerous_calls_are_refused(scene) {
        let attacker = scene.attacker();
        let for_root = FOR_ROOT.iter().filter(|_| user() == 0);
        for name in FOR_EVERYBODY.iter().chain(for_root) {
            let line = format!("{attacker} {name}");
            let outside = scene.outside(&line);
            assert!(outside.worked(), "it works without a sandbox: {name}: {outside:?}");
            let inside = scene.inside(&line);
            assert!(!inside.worked() && !inside.output.is_empty(), "{name}: {inside:?}");
        }
    }
}

attack! {
    fn other_numbers_for_the_same_calls_do_not_exist(scene) {
        let inside = scene.inside(&format!("{} x32", scene.attacker()));
        assert!(inside.output.starts_with("38 "), "no such call: {inside:?}");
    }
}

attack! {
    fn memory_of_other_processes_cannot_be_read(scene) {
        let attacker = scene.attacker();
        let reader = format!("read pid; {attacker} read-memory $pid; status=$?; kill -9 $pid; exit $status");
        let line = format!("{attacker} be-read | {{ {reader}; }}");
        let outside = scene.outside(&line);
        assert!(outside.worked(), "it works without a sandbox: {outside:?}");
        let inside = scene.inside(&line);
        assert!(!inside.worked(), "{inside:?}");
    }
}
