//! An absolute path outside, and the sibling whose name merely begins like the root's.

use toolgate_contract::ErrorCode;

use crate::{SECRET, with_each_way};

#[test]
fn absolute_paths_work_inside_a_root_only() {
    with_each_way(|scene, way| {
        let sibling = scene.outside().join("secret");
        assert_eq!(std::fs::read_to_string(&sibling).unwrap(), SECRET, "it can be read without confinement");
        for path in [sibling.to_str().unwrap(), "/etc/passwd", "/"] {
            assert_eq!(scene.read(way, path).unwrap_err().code, ErrorCode::PathOutsideWorkspace, "{path}");
        }
    });
}
