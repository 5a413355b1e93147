//! `..`, plain and in disguise.

use toolgate_contract::ErrorCode;

use crate::{SECRET, with_each_way};

#[test]
fn dotdot_stays_inside() {
    with_each_way(|scene, way| {
        let path = scene.workspace().join("../ws-evil/secret");
        assert_eq!(std::fs::read_to_string(path).unwrap(), SECRET, "it can be read without confinement");
        let inside_absolute = format!("{}/../ws-evil/secret", scene.workspace().display());
        for path in ["../ws-evil/secret", "sub/../../ws-evil/secret", "a/../../etc/passwd", "..", &inside_absolute] {
            assert_eq!(scene.read(way, path).unwrap_err().code, ErrorCode::PathOutsideWorkspace, "{path}");
        }
    });
}
