//! Every directory under `scenarios/<tool>/<case>/` is a test: the workspace `before`, the calls, the workspace `after`, and
//! the replies. `TOOLGATE_UPDATE=1` writes `after` and the replies anew; look at the diff before you commit it.
#![allow(clippy::disallowed_methods, reason = "tests make and look at files of their own")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use toolgate_contract::ApprovalScope;
use toolgate_runtime::ApprovalAnswer;
use toolgate_testkit::{FirstChoiceAnswerer, ScriptedApprover, TestWorkspace};

/// Files by path; text as it is, links as `-> target`, everything else visibly.
type Tree = BTreeMap<String, String>;

#[tokio::test]
async fn every_scenario_ends_as_written() {
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios");
    let cases: Vec<PathBuf> = directories(&home).iter().flat_map(|tool| directories(tool)).collect();
    assert!(cases.len() >= 20, "only {} scenarios were found", cases.len());
    let mut faults = Vec::new();
    for case in &cases {
        if let Err(fault) = play(case).await {
            faults.push(format!("{}: {fault}", case.strip_prefix(&home).unwrap().display()));
        }
    }
    assert!(faults.is_empty(), "{} of {} scenarios failed:\n{}", faults.len(), cases.len(), faults.join("\n\n"));
}

/// The calls of a scenario, one after the other, in one session where every ask is answered yes.
async fn play(case: &Path) -> Result<(), String> {
    let world = TestWorkspace::new(toolgate_tools::all(), "");
    copy(&case.join("before"), world.path());
    let calls: Vec<Value> =
        serde_json::from_slice(&fs::read(case.join("call.json")).unwrap()).expect("a list of calls");
    let yes = |_| ApprovalAnswer::Granted { scope: ApprovalScope::Call, by: "ada".into() };
    let session = world
        .session()
        .approved_by(Arc::new(ScriptedApprover::with((0..calls.len()).map(yes))))
        .answered_by(Arc::new(FirstChoiceAnswerer("in my own words")));
    let mut replies = Vec::new();
    for call in &calls {
        let reply = world.perform_in(&session, call["tool"].as_str().unwrap(), call["args"].clone()).await;
        replies.push(steady(serde_json::to_value(reply).unwrap()));
    }
    let (replies, after) = (json!(replies), tree(world.path()));
    if std::env::var_os("TOOLGATE_UPDATE").is_some() {
        fs::write(case.join("reply.json"), serde_json::to_string_pretty(&replies).unwrap() + "\n").unwrap();
        let _ = fs::remove_dir_all(case.join("after"));
        if after != tree(&case.join("before")) {
            copy(world.path(), &case.join("after"));
            if after.is_empty() {
                // Git keeps no empty directories.
                fs::write(case.join("after/.gitkeep"), "").unwrap();
            }
        }
        return Ok(());
    }
    let expected: Value = serde_json::from_slice(&fs::read(case.join("reply.json")).unwrap()).expect("replies");
    // A scenario that changes nothing needs no `after`.
    let directory = if case.join("after").exists() { "after" } else { "before" };
    let wanted = tree(&case.join(directory));
    match (replies == expected, after == wanted) {
        (true, true) => Ok(()),
        (false, _) => Err(format!("the replies are\n{}", serde_json::to_string_pretty(&replies).unwrap())),
        (true, false) => Err(format!("the workspace is\n{after:#?}\ninstead of\n{wanted:#?}")),
    }
}

/// A reply without what changes from run to run.
fn steady(mut reply: Value) -> Value {
    let fields = reply.as_object_mut().unwrap();
    fields.shift_remove("tool_call_id");
    fields.shift_remove("duration_ms");
    reply
}

fn directories(path: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> =
        fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).collect();
    found.sort();
    found
}

fn tree(root: &Path) -> Tree {
    let mut tree = Tree::new();
    walk(root, root, &mut tree);
    tree
}

fn walk(root: &Path, directory: &Path, tree: &mut Tree) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for path in entries.map(|entry| entry.unwrap().path()) {
        if path.file_name().is_some_and(|name| name == ".toolgate" || name == ".gitkeep") {
            continue;
        }
        let shown = match fs::read_link(&path) {
            Ok(target) => format!("-> {}", target.display()),
            Err(_) if path.is_dir() => {
                walk(root, &path, tree);
                continue;
            }
            Err(_) => fs::read(&path).unwrap().escape_ascii().to_string(),
        };
        tree.insert(path.strip_prefix(root).unwrap().display().to_string(), shown);
    }
}

fn copy(from: &Path, to: &Path) {
    let Ok(entries) = fs::read_dir(from) else { return };
    fs::create_dir_all(to).unwrap();
    for path in entries.map(|entry| entry.unwrap().path()) {
        let target = to.join(path.file_name().unwrap());
        if path.file_name().is_some_and(|name| name == ".toolgate") {
            continue;
        }
        if let Ok(link) = fs::read_link(&path) {
            std::os::unix::fs::symlink(link, &target).unwrap();
        } else if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).unwrap();
        }
    }
}
