//! The links of `/proc`, which lead anywhere: with the whole file system as a root they are still not followed.

use std::path::Path;

use toolgate_contract::{Effect, ErrorCode, Files};
use toolgate_sandbox::{OpenMethod, Roots};

#[test]
fn magic_links_are_not_followed() {
    for way in [OpenMethod::Kernel, OpenMethod::Walk] {
        let roots = Roots::open(Path::new("/")).unwrap().with_open_method(way);
        for path in ["/proc/self/root/etc/passwd", "/proc/self/cwd", "/proc/thread-self/root/etc/passwd"] {
            assert!(std::fs::metadata(path).is_ok(), "it works without confinement");
            let refused = roots.locate(vec![Effect::read(path)]).unwrap_err();
            assert_eq!(refused.code, ErrorCode::PathOutsideWorkspace, "{path}");
        }
    }
}

#[test]
fn a_workspace_link_into_proc_is_refused() {
    crate::with_each_way(|scene, way| {
        std::os::unix::fs::symlink("/proc/self/environ", scene.workspace().join("environ")).unwrap();
        assert_eq!(scene.read(way, "environ").unwrap_err().code, ErrorCode::PathOutsideWorkspace);
    });
}
