//! Commands of tools: they run where the walls hold, and where walls have gaps they don't run at all.

use toolgate_contract::{ErrorCode, Landing, Order, Place, Processes, Streams};
use toolgate_sandbox::Confined;

use super::scene::attack;

attack! {
    fn a_command_runs_only_where_the_walls_hold(scene) {
        let confined = Confined::new(scene.profile(), vec![scene.workspace()], scene.options.clone());
        let order = Order {
            command: "touch ran".into(),
            program: None,
            workdir: Place::in_workspace(""),
            hidden: vec![],
            protected: vec![],
            streams: Streams::Output,
            landing: Landing::AtOnce,
            writable: vec![],
            unsandboxed: false,
            border: None,
        };
        let code = scene.runtime.block_on(async { confined.start(order).await?.wait().await });
        match scene.has_namespaces() {
            true => assert_eq!(code, Ok(0)),
            false => assert_eq!(code.unwrap_err().code, ErrorCode::SandboxUnavailable),
        }
        assert_eq!(scene.workspace().join("ran").exists(), scene.has_namespaces());
    }
}
