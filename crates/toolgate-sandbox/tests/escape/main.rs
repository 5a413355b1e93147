//! Attempted escapes, one file each. Every attempt is made through each way of opening, and first shows that it works
//! without confinement, so that a test which can't fail isn't mistaken for protection.
#![allow(clippy::disallowed_methods, reason = "attackers don't ask")]

mod absolute_path;
mod device_and_pipe;
mod dotdot;
mod hard_link;
mod proc_links;
mod processes;
mod strange_names;
mod swap_race;
mod symlink;
mod testkit;

use std::fs;
use std::io::Read;
use std::path::PathBuf;

use tempfile::TempDir;
use toolgate_contract::{Effect, Files, ToolError};
use toolgate_sandbox::{OpenMethod, Roots};

/// A workspace, and beside it what must not be reached.
struct Scene {
    directory: TempDir,
}

const SECRET: &str = "the secret outside";

impl Scene {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let scene = Self { directory };
        fs::create_dir_all(scene.workspace().join("sub")).unwrap();
        fs::create_dir_all(scene.outside()).unwrap();
        fs::write(scene.outside().join("secret"), SECRET).unwrap();
        fs::write(scene.workspace().join("inside"), "inside").unwrap();
        scene
    }

    fn workspace(&self) -> PathBuf {
        self.directory.path().join("ws")
    }

    /// A sibling whose name begins like the workspace's.
    fn outside(&self) -> PathBuf {
        self.directory.path().join("ws-evil")
    }

    /// What a tool gets when it reads `path`: located, then opened.
    fn read(&self, way: OpenMethod, path: &str) -> Result<String, ToolError> {
        let roots = Roots::open(&self.workspace()).unwrap().with_open_method(way);
        let located = roots.locate(vec![Effect::read(path)])?.remove(0);
        let mut text = String::new();
        roots.open(&located.real.unwrap())?.read_to_string(&mut text).unwrap();
        Ok(text)
    }
}

/// Runs an attempt with each way of opening.
fn with_each_way(attempt: impl Fn(&Scene, OpenMethod)) {
    assert_eq!(OpenMethod::probe(), OpenMethod::Kernel, "these tests want a kernel with openat2, to try both ways");
    for way in [OpenMethod::Kernel, OpenMethod::Walk] {
        attempt(&Scene::new(), way);
    }
}

#[test]
fn what_is_inside_can_be_read() {
    with_each_way(|scene, way| {
        for path in ["inside", "./inside", "sub/../inside", "sub//..//inside"] {
            assert_eq!(scene.read(way, path).unwrap(), "inside", "{path}");
        }
        let absolute = scene.workspace().join("inside");
        assert_eq!(scene.read(way, absolute.to_str().unwrap()).unwrap(), "inside");
    });
}
