//! What has to work inside, lest the walls be praised for stopping everything.

use super::scene::attack;

attack! {
    fn a_command_runs_reads_writes_and_ends(scene) {
        std::fs::write(scene.workspace().join("input"), "hello\n").unwrap();
        let outcome = scene.inside("cat input > output; cat output; echo oops >&2; echo x > /tmp/x; exit 3");
        let expected = if scene.has_namespaces() { "oops\n" } else { "oops\n/bin/sh: 1: cannot create /tmp/x: Permission denied\n" };
        assert_eq!((outcome.output.as_str(), outcome.errors.as_str()), ("hello\n", expected), "{outcome:?}");
        assert_eq!(outcome.ended.shell_code(), 3);
        assert_eq!(std::fs::read_to_string(scene.workspace().join("output")).unwrap(), "hello\n");
    }
}
