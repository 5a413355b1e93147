//! Secrets in the environment: of the host, of the zygote, of whoever can be seen in /proc.

use super::scene::attack;

attack! {
    fn nothing_is_inherited(scene) {
        // Cargo sets this for every test.
        let line = "env";
        assert!(scene.outside(line).output.contains("CARGO_MANIFEST_DIR="), "it works without a sandbox");
        let inside = scene.inside(line);
        let names: Vec<&str> = inside.output.lines().filter_map(|line| line.split('=').next()).collect();
        assert!(names.iter().all(|name| ["HOME", "PATH", "PWD"].contains(name)), "{names:?}");
    }
}

attack! {
    fn other_processes_do_not_tell_theirs(scene) {
        let host = std::process::id();
        let line = format!("cat /proc/*/environ /proc/{host}/environ 2>/dev/null | tr '\\0' '\\n' | grep -c CARGO_MANIFEST_DIR");
        assert_ne!(scene.outside(&line).output.trim(), "0", "it works without a sandbox");
        let inside = scene.inside(&line);
        assert_eq!(inside.output.trim(), "0", "{inside:?}");
    }
}
