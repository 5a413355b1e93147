//! What has to work inside: a sandbox that stops everything would pass all other tests.

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

attack! {
    fn a_server_and_its_client_meet_on_the_loopback(scene) {
        let inside = scene.inside(&format!("{} serve-and-connect", scene.attacker()));
        assert_eq!(inside.worked(), scene.has_namespaces(), "{inside:?}");
    }
}

attack! {
    fn many_processes_work_together(scene) {
        let line = "for i in 1 2 3 4; do (head -c 100000 /dev/urandom | sort | cksum > $i.out) & done; wait; cat *.out | wc -l; \
                    cat <<END\nhere\nEND\n";
        let inside = scene.inside(line);
        assert!(inside.worked() && inside.output == "4\nhere\n", "{inside:?}");
    }
}

attack! {
    fn a_program_that_is_not_there_is_told_apart(scene) {
        use toolgate_contract::{LaunchSpec, StartDirectory};
        use toolgate_sandbox::process::{SandboxError, SetupStep};
        let missing = scene.run(&scene.profile(), &LaunchSpec::program("no-such-program"));
        assert!(matches!(&missing, Err(SandboxError::Step(fault)) if fault.step == SetupStep::Execute), "{missing:?}");
        let directory = StartDirectory::Machine("/no/such/directory".into());
        let nowhere = LaunchSpec { directory, ..LaunchSpec::program("true") };
        let nowhere = scene.run(&scene.profile(), &nowhere);
        assert!(matches!(&nowhere, Err(SandboxError::Step(fault)) if fault.step == SetupStep::EnterWorkingDirectory), "{nowhere:?}");
    }
}

attack! {
    fn what_works_here_is_known(scene) {
        let program = Some(scene.path("zygote"));
        let survey = scene.runtime.block_on(toolgate_sandbox::process::Sandbox::try_tiers(program)).unwrap();
        let works = survey.iter().find(|(tier, _)| *tier == scene.tier).unwrap();
        assert!(works.1.is_ok(), "{survey:?}");
    }
}
