//! Names that other programs trip over.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use toolgate_contract::{ErrorCode, Files, WorkspacePath};
use toolgate_sandbox::Roots;

use crate::with_each_way;

#[test]
fn strange_names_are_names_and_nothing_more() {
    with_each_way(|scene, way| {
        let ws = scene.workspace();
        for name in ["with\nnewline", "-rf", "$(id)", "..evil", "a\u{202e}b", "name with  spaces "] {
            std::fs::write(ws.join(name), name).unwrap();
            assert_eq!(scene.read(way, name).unwrap(), name);
        }
        assert_eq!(scene.read(way, "inside\0.txt").unwrap_err().code, ErrorCode::InvalidArgs);
        assert_eq!(scene.read(way, "~/x").unwrap_err().code, ErrorCode::PathOutsideWorkspace);
        assert_eq!(scene.read(way, "inside/x").unwrap_err().code, ErrorCode::NotFound);
        assert!(scene.read(way, &"x/".repeat(5_000)).is_err(), "too long a path");
    });
}

#[test]
fn a_name_that_is_not_text_is_listed_escaped_and_opened_by_that() {
    with_each_way(|scene, way| {
        std::fs::write(scene.workspace().join(OsStr::from_bytes(b"bad\xffname")), "x").unwrap();
        let roots = Roots::open(&scene.workspace()).unwrap().with_open_method(way);
        let names: Vec<String> =
            roots.entries(&WorkspacePath::in_workspace("")).unwrap().into_iter().map(|entry| entry.name).collect();
        assert_eq!(names, ["bad\\xffname", "inside", "sub"]);
        assert_eq!(scene.read(way, r"bad\xffname").unwrap(), "x");
        std::fs::write(scene.workspace().join(r"bad\xffname"), "literal").unwrap();
        assert_eq!(scene.read(way, r"bad\x5cxffname").unwrap(), "literal");
        assert_eq!(scene.read(way, r"sub/\x2e\x2e/\x2e\x2e/outside").unwrap_err().code, ErrorCode::NotFound);
    });
}
