//! System calls that would get around namespaces, mounts and Landlock; seccomp refuses them.

use toolgate_sandbox::process::Tier;

use super::scene::{attack, user};

/// Every user can make these where nothing stops them.
const FOR_EVERYBODY: &[&str] =
    &["keyctl", "add_key", "userfaultfd", "io_uring", "unshare", "clone", "clone3", "mount", "vsock"];
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
    fn only_our_own_namespaces_let_a_command_trace_and_never_the_first_process(scene) {
        let attacker = scene.attacker();
        let inside = scene.inside(&format!("{attacker} ptrace"));
        assert_eq!(inside.worked(), scene.tier == Tier::Namespaces, "{inside:?}");
        for line in ["ptrace-attach 1", "read-memory 1"] {
            let inside = scene.inside(&format!("{attacker} {line}"));
            assert!(!inside.worked() && !inside.output.is_empty(), "{line}: {inside:?}");
        }
    }
}

attack! {
    fn memory_of_other_processes_cannot_be_read(scene) {
        if scene.tier == Tier::Namespaces {
            // All that are there are the command's own.
            return;
        }
        let attacker = scene.attacker();
        let reader = format!("read pid; {attacker} read-memory $pid; status=$?; kill -9 $pid; exit $status");
        let line = format!("{attacker} be-read | {{ {reader}; }}");
        let outside = scene.outside(&line);
        assert!(outside.worked(), "it works without a sandbox: {outside:?}");
        let inside = scene.inside(&line);
        assert!(!inside.worked(), "{inside:?}");
    }
}
