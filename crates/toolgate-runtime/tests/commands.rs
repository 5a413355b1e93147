//! Commands: those that need confinement aren't run where nothing confines them, and an approval covers what a person
//! would expect.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::json;
use toolgate_contract::{ApprovalScope, ErrorCode, erase};
use toolgate_runtime::ApprovalAnswer;
use toolgate_testkit::*;

fn world() -> (TestWorkspace, CommandTool) {
    let runs = CommandTool::default();
    (TestWorkspace::new([erase(runs.clone())], ""), runs)
}

#[tokio::test]
async fn what_has_to_be_confined_is_refused_where_nothing_confines_it() {
    for (command, plain, confined) in [
        ("git log --oneline | head -3", None, None),
        ("cargo test", Some(ErrorCode::SandboxUnavailable), None),
        ("make $target", Some(ErrorCode::SandboxUnavailable), None),
        ("rm -rf /", Some(ErrorCode::PolicyDenied), Some(ErrorCode::PolicyDenied)),
        ("cat .env", Some(ErrorCode::SensitivePath), Some(ErrorCode::SensitivePath)),
        ("curl http://169.254.169.254/", Some(ErrorCode::NetworkDenied), Some(ErrorCode::NetworkDenied)),
        ("git commit -m x", Some(ErrorCode::SandboxUnavailable), Some(ErrorCode::ApprovalRequired)),
    ] {
        for (holds, expected) in [(false, plain), (true, confined)] {
            let (world, runs) = world();
            let world = if holds { world.confined() } else { world };
            let reply = world.perform("runs", json!({ "command": command })).await;
            assert_eq!(reply.error.map(|error| error.code), expected, "{command}, confined: {holds}");
            assert_eq!(runs.0.load(Ordering::SeqCst), usize::from(expected.is_none()), "{command}");
        }
    }
}

#[tokio::test]
async fn a_yes_covers_the_same_kind_of_command_and_nothing_else() {
    let (world, _) = world();
    let world = world.confined();
    world.file("build/a", "a").file("build/b", "b");
    let yes = || ApprovalAnswer::Granted { scope: ApprovalScope::Run, by: "ada".into() };
    let approver = Arc::new(ScriptedApprover::with((0..20).map(|_| yes())));
    let session = world.session().approved_by(approver.clone());
    for (command, workdir, asks) in [
        ("git commit -m one", ".", 1),
        ("git commit -m two", ".", 0),
        ("git commit --amend", "src", 0),
        ("RUST_LOG=debug git commit -m x 2>&1 | head -5", ".", 0),
        ("cargo test && git commit -m x", ".", 0),
        ("git tag v1", ".", 1),
        ("git commit -m x && git tag v2", ".", 0),
        ("sudo ls", ".", 1),
        ("sudo ls -l", ".", 1),
        ("rm build/a", ".", 1),
        ("rm build/b", ".", 1),
        ("rm build/a && rm build/b", ".", 0),
        ("curl https://example.com/a", ".", 1),
        ("curl https://example.com/b -o x", ".", 0),
        ("curl https://example.org", ".", 1),
        ("curl https://pypi.org/simple/", ".", 1),
        ("curl https://registry.npmjs.org/left-pad", ".", 0),
        ("curl https://pypi.org.example.org", ".", 1),
    ] {
        let before = approver.asked().len();
        let reply = world.perform_in(&session, "runs", json!({ "command": command, "workdir": workdir })).await;
        assert!(reply.ok, "{command}: {reply:?}");
        assert_eq!(approver.asked().len() - before, asks, "{command}");
    }
}

#[tokio::test]
async fn the_person_is_shown_the_pattern_and_what_else_it_covers() {
    let (world, _) = world();
    let world = world.confined();
    let approver = Arc::new(ScriptedApprover::grants(ApprovalScope::Call));
    let session = world.session().approved_by(approver.clone());
    world.perform_in(&session, "runs", json!({ "command": "cargo test && git commit -m x && sudo ls" })).await;
    let request = approver.asked().remove(0);
    let run = request.scopes.iter().find(|offer| offer.scope == ApprovalScope::Run).unwrap();
    for words in ["`git commit *` (whatever begins with `git commit`)", "`sudo ls` (exactly this)"] {
        assert!(run.grants.contains(words), "{words}: {}", run.grants);
    }
    assert!(!run.grants.contains("cargo"), "what isn't asked isn't granted: {}", run.grants);
}
