//! Links to files, to directories, to nowhere, and around in circles.

use std::os::unix::fs::symlink;

use toolgate_contract::{Access, Effect, ErrorCode, Files, WorkspacePath};
use toolgate_sandbox::Roots;

use crate::{SECRET, with_each_way};

#[test]
fn links_that_lead_out_are_refused() {
    with_each_way(|scene, way| {
        let ws = scene.workspace();
        symlink(scene.outside().join("secret"), ws.join("absolute")).unwrap();
        symlink("../ws-evil/secret", ws.join("relative")).unwrap();
        symlink("../ws-evil", ws.join("directory")).unwrap();
        symlink("sub/../../ws-evil", ws.join("winding")).unwrap();
        symlink("directory", ws.join("chain")).unwrap();
        for path in ["absolute", "relative", "directory/secret", "winding/secret", "chain/secret"] {
            assert_eq!(std::fs::read_to_string(ws.join(path)).unwrap(), SECRET, "it works without confinement");
            assert_eq!(scene.read(way, path).unwrap_err().code, ErrorCode::PathOutsideWorkspace, "{path}");
        }
    });
}

#[test]
fn links_inside_are_followed_once_and_their_target_is_what_is_judged() {
    with_each_way(|scene, way| {
        let ws = scene.workspace();
        symlink("inside", ws.join("link")).unwrap();
        symlink("../inside", ws.join("sub/up")).unwrap();
        symlink("sub", ws.join("door")).unwrap();
        for path in ["link", "sub/up", "door/up", "door/../inside"] {
            assert_eq!(scene.read(way, path).unwrap(), "inside", "{path}");
        }
        let roots = Roots::open(&ws).unwrap().with_open_method(way);
        let real = |effect| roots.locate(vec![effect]).unwrap().remove(0).real.unwrap().path;
        assert_eq!(real(Effect::read("door/up")), "inside");
        assert_eq!(real(Effect::delete("door/up")), "sub/up", "deleting a link means the link");
        assert_eq!(real(Effect::write("door/new/file")), "sub/new/file", "what doesn't exist yet is resolved too");
    });
}

#[test]
fn links_to_nowhere_and_in_circles_end() {
    with_each_way(|scene, way| {
        let ws = scene.workspace();
        symlink("missing", ws.join("dangling")).unwrap();
        symlink("loop", ws.join("loop")).unwrap();
        symlink("/nowhere/at/all", ws.join("out")).unwrap();
        assert_eq!(scene.read(way, "dangling").unwrap_err().code, ErrorCode::NotFound);
        assert_eq!(scene.read(way, "loop").unwrap_err().code, ErrorCode::PathOutsideWorkspace);
        let roots = Roots::open(&ws).unwrap().with_open_method(way);
        let refused = roots.locate(vec![Effect::write("out")]).unwrap_err();
        assert_eq!(refused.code, ErrorCode::PathOutsideWorkspace, "a write never goes through a dangling link out");
    });
}

#[test]
fn a_link_that_appears_after_the_judgement_is_not_followed() {
    with_each_way(|scene, way| {
        let ws = scene.workspace();
        let roots = Roots::open(&ws).unwrap().with_open_method(way);
        let judged = roots.locate(vec![Effect::read("sub/file")]).unwrap().remove(0);
        std::fs::remove_dir(ws.join("sub")).unwrap();
        std::fs::rename(scene.outside().join("secret"), scene.outside().join("file")).unwrap();
        symlink("../ws-evil", ws.join("sub")).unwrap();
        assert_eq!(std::fs::read_to_string(ws.join("sub/file")).unwrap(), SECRET);
        assert!(roots.open(&judged.real.unwrap()).is_err());
        assert_eq!(Access::Read, judged.effect.path().unwrap().0);
        assert!(roots.entries(&WorkspacePath::in_workspace("sub")).is_err());
    });
}

#[test]
fn a_link_that_is_removed_is_looked_at_but_never_through() {
    with_each_way(|scene, way| {
        let ws = scene.workspace();
        symlink("../../ws-evil/secret", ws.join("sub/out")).unwrap();
        let roots = Roots::open(&ws).unwrap().with_open_method(way);
        let effects = vec![Effect::read("sub/out"), Effect::write("sub/out"), Effect::delete("sub/out")];
        for located in roots.locate(effects).unwrap() {
            let place = located.real.unwrap();
            assert_eq!(place.path, "sub/out", "{}", located.effect);
            let content = roots.content(&place, u64::MAX).unwrap().unwrap();
            assert!(content.is_link());
            assert_eq!(&*content.bytes, b"../../ws-evil/secret");
            assert!(roots.open(&place).is_err());
        }
        let staged = roots.locate(vec![Effect::read("sub/out"), Effect::delete("inside")]).unwrap_err();
        assert_eq!(staged.code, ErrorCode::PathOutsideWorkspace, "only what is removed is meant itself");
    });
}
