//! Renames in real projects from the registries: afterwards they build and their tests pass, and `undo` restores every byte.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;
use toolgate_testkit::{TestWorkspace, skip};

use crate::{last_change, payload, servers_directory, world};

/// Every file beneath a directory, by its path.
fn contents(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut left = vec![directory.to_owned()];
    while let Some(path) = left.pop() {
        for entry in std::fs::read_dir(path).unwrap().flatten() {
            match entry.file_type().unwrap().is_dir() {
                true if entry.file_name() == ".toolgate" => {}
                true => left.push(entry.path()),
                false => drop(found.insert(entry.path(), std::fs::read(entry.path()).unwrap())),
            }
        }
    }
    found
}

fn copy(from: &Path, to: &Path) {
    assert!(Command::new("cp").arg("-r").args([from, to]).status().unwrap().success());
}

/// Renames, checks the project with `check`, and takes it back.
async fn rename_and_undo(world: &TestWorkspace, target: serde_json::Value, least_files: usize, check: impl Fn()) {
    let before = contents(world.path());
    let first = payload(world.perform("lsp_references", without_name(&target)).await);
    let renamed = payload(world.perform("lsp_rename", target.clone()).await);
    let files = renamed["files"].as_array().unwrap();
    assert!(files.len() >= least_files, "{renamed}");
    assert_eq!(
        first["files"].as_array().unwrap().len(),
        files.len(),
        "the first answer knew all files: {first} {renamed}"
    );
    let after = contents(world.path());
    let changed = after.iter().filter(|(path, content)| before.get(*path) != Some(*content)).count();
    assert_eq!(changed, files.len(), "only what it tells of is changed");
    check();
    let undone = world.perform("undo", json!({ "call": last_change(world) })).await;
    assert!(undone.ok, "{:?}", undone.error);
    assert!(contents(world.path()) == before, "undo restores every byte");
}

fn without_name(target: &serde_json::Value) -> serde_json::Value {
    let mut target = target.clone();
    target.as_object_mut().unwrap().remove("new_name");
    target
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rename_in_a_crate_of_the_registry_builds_and_passes_its_tests() {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo"))).unwrap();
    let indexes = std::fs::read_dir(home.join("registry/src")).into_iter().flatten().flatten();
    let Some(source) = indexes.map(|index| index.path().join("heck-0.5.0")).find(|path| path.is_dir()) else {
        return skip("crate-missing", "the registry has no source of heck 0.5.0");
    };
    let Some(world) = world("rust-analyzer", "rust-analyzer", &[]) else { return };
    copy(&source.join("src"), &world.path().join("src"));
    world.file("Cargo.toml", "[package]\nname = \"heck\"\nversion = \"0.5.0\"\nedition = \"2021\"\n[workspace]\n");
    let lines = std::fs::read_to_string(world.path().join("src/lib.rs")).unwrap();
    let line = lines.lines().position(|line| line.starts_with("fn transform<")).unwrap() + 1;
    let target = json!({ "path": "src/lib.rs", "line": line, "symbol": "transform", "new_name": "convert_words" });
    let build = tempfile::tempdir().unwrap();
    rename_and_undo(&world, target, 8, || {
        let done = Command::new("cargo")
            .args(["test", "--offline", "--quiet", "--lib"])
            .env("CARGO_TARGET_DIR", build.path())
            .current_dir(world.path())
            .output()
            .unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        std::fs::remove_file(world.path().join("Cargo.lock")).unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rename_in_a_package_of_pypi_passes_its_tests() {
    let libraries = std::fs::read_dir(servers_directory().join("python/lib")).into_iter().flatten().flatten();
    let Some(source) = libraries.map(|one| one.path().join("site-packages/toolz")).find(|path| path.is_dir()) else {
        return skip("package-missing", "toolz isn't installed; run `cargo xtask setup`");
    };
    for (server, program, argument) in [("ty", "ty", "server"), ("pyright", "pyright-langserver", "--stdio")] {
        let Some(world) = world(server, program, &[argument]) else { return };
        copy(&source, &world.path().join("toolz"));
        world.file("pyproject.toml", "[project]\nname = \"toolz\"\nversion = \"1\"\n");
        let lines = std::fs::read_to_string(world.path().join("toolz/utils.py")).unwrap();
        let line = lines.lines().position(|line| line.starts_with("no_default")).unwrap() + 1;
        let target =
            json!({ "path": "toolz/utils.py", "line": line, "symbol": "no_default", "new_name": "nothing_given" });
        rename_and_undo(&world, target, 2, || {
            // Two of its files test the installed package, which this copy isn't.
            let done = Command::new("pytest-3")
                .args(["-q", "-p", "no:cacheprovider", "toolz"])
                .args(["test_package", "test_tlz"].map(|name| format!("--ignore=toolz/tests/{name}.py")))
                .env("PYTHONDONTWRITEBYTECODE", "1")
                .current_dir(world.path())
                .output()
                .unwrap();
            assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stdout));
        })
        .await;
    }
}
