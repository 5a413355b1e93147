//! Commands of tools: they run where the walls hold, and where walls have gaps they don't run at all.

use toolgate_contract::{ApplyMode, ErrorCode, LaunchSpec, ProcessLauncher, Streams, WorkspacePath};
use toolgate_sandbox::SandboxedProcesses;

use super::scene::attack;

attack! {
    fn a_command_runs_only_where_the_walls_hold(scene) {
        let confined = SandboxedProcesses::new(scene.profile(), vec![scene.workspace()], scene.options.clone());
        let order = LaunchSpec {
            command: "touch ran".into(),
            program: None,
            workdir: WorkspacePath::in_workspace(""),
            hidden: vec![],
            protected: vec![],
            streams: Streams::Output,
            apply_mode: ApplyMode::AtOnce,
            writable: vec![],
            unsandboxed: false,
            egress: None,
        };
        let code = scene.runtime.block_on(async { confined.start(order).await?.wait().await });
        match scene.has_namespaces() {
            true => assert_eq!(code, Ok(0)),
            false => assert_eq!(code.unwrap_err().code, ErrorCode::SandboxUnavailable),
        }
        assert_eq!(scene.workspace().join("ran").exists(), scene.has_namespaces());
    }
}
