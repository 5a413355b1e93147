//! Commands of tools: they run where the confinement is complete, and nowhere else.

use toolgate_contract::{ErrorCode, LaunchSpec, ProcessLauncher};
use toolgate_sandbox::SandboxedProcesses;

use super::scene::attack;

attack! {
    fn a_command_runs_only_where_the_walls_hold(scene) {
        let confined = SandboxedProcesses::new(scene.profile(), scene.options.clone());
        let launcher: &dyn ProcessLauncher = &confined;
        let code = scene.runtime.block_on(async { launcher.launch(LaunchSpec::shell("touch ran")).await?.wait().await });
        match scene.has_namespaces() {
            true => assert_eq!(code, Ok(0)),
            false => assert_eq!(code.unwrap_err().code, ErrorCode::SandboxUnavailable),
        }
        assert_eq!(scene.workspace().join("ran").exists(), scene.has_namespaces());
    }
}
