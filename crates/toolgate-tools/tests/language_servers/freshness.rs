//! Files that are broken and fixed many times, by a tool, by a command, with git and from outside: each answer is of what they hold
//! then. `cargo xtask lsp` does so 200 times with each server.

use serde_json::json;
use toolgate_testkit::TestWorkspace;

use crate::payload;
use crate::projects::project;

/// How often a file is broken and fixed in every run of the tests.
pub(crate) const USUAL_ROUNDS: usize = 6;

/// How often a file is broken and fixed. `cargo xtask lsp` sets more.
pub(crate) fn rounds() -> usize {
    std::env::var("TOOLGATE_LSP_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(USUAL_ROUNDS)
}

/// A file of a project, right and wrong.
#[derive(Clone, Copy)]
pub(crate) struct Breakable {
    pub(crate) path: &'static str,
    pub(crate) fixed: &'static str,
    pub(crate) broken: &'static str,
}

/// Breaks and fixes files by turns, and asks after each what is wrong in `asked`. What breaks it may be another file.
pub(crate) async fn breaks_and_fixes(world: &TestWorkspace, server: &str, asked: &str, files: &[Breakable]) {
    world.git_init("");
    world.git(&["add", "."]);
    world.git(&["commit", "-q", "-m", "fixed"]);
    let count = async || {
        let args = json!({ "paths": [asked], "severity": "error" });
        let answer = payload(world.perform("lsp_diagnostics", args).await);
        answer["count"].as_u64().unwrap()
    };
    assert_eq!(count().await, 0);
    for round in 0..rounds() {
        let file = files[round / 2 % files.len()];
        break_file(world, file, round).await;
        assert_ne!(count().await, 0, "{server}, round {round}: that {} is wrong is seen", file.path);
        fix_file(world, file, round).await;
        let now = std::fs::read_to_string(world.path().join(file.path)).unwrap();
        assert_eq!(now, file.fixed);
        assert_eq!(count().await, 0, "{server}, round {round}: that {} is right is seen", file.path);
    }
    println!("{server}: {} rounds, {} answers, none stale", rounds(), rounds() * 2 + 1);
}

async fn break_file(world: &TestWorkspace, Breakable { path, broken, .. }: Breakable, round: usize) {
    match round % 3 {
        0 => drop(world.file(path, broken)),
        1 => {
            payload(world.perform("read", json!({ "path": path })).await);
            let done = world.perform("write", json!({ "path": path, "content": broken })).await;
            assert!(done.ok, "{:?}", done.error);
        }
        _ => shell(world, &format!("cat > {path} <<'END'\n{broken}END")).await,
    }
}

async fn fix_file(world: &TestWorkspace, Breakable { path, fixed, .. }: Breakable, round: usize) {
    match round % 4 {
        0 => drop(world.git(&["checkout", "-q", "--", path])),
        1 => drop(world.file(path, fixed)),
        2 => shell(world, &format!("git checkout -q -- {path}")).await,
        _ => {
            // As editors save.
            let beside = world.path().join(path).with_file_name("beside");
            std::fs::write(&beside, fixed).unwrap();
            std::fs::rename(&beside, world.path().join(path)).unwrap();
        }
    }
}

async fn shell(world: &TestWorkspace, command: &str) {
    let done = payload(world.perform("shell", json!({ "command": command })).await);
    assert_eq!(done["exit_code"], 0, "{done}");
}

/// Breaks and fixes the program of this server's project, and what it uses.
pub(crate) async fn nothing_is_stale(server: &str) {
    let Some((world, project)) = project(server) else { return };
    let (program, fixed) = project.program_file;
    let own = Breakable { path: program, fixed, broken: project.broken };
    let other = project.also_breaks.map(|(path, broken)| Breakable { path, fixed: project.content_of(path), broken });
    let files: Vec<Breakable> = [own].into_iter().chain(other).collect();
    breaks_and_fixes(&world, server, program, &files).await;
}
