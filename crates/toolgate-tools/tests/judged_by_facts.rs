//! What is judged by more than names: who made a file, what it contains, and which kind of instructions it holds.
#![allow(clippy::disallowed_methods, reason = "tests make and look at files of their own")]

use std::sync::Arc;

use serde_json::{Value, json};
use toolgate_contract::{ApprovalScope, ErrorCode, Reply};
use toolgate_runtime::{ApprovalAnswer, Session};
use toolgate_testkit::{ScriptedApprover, TestWorkspace};

fn world() -> TestWorkspace {
    TestWorkspace::new(toolgate_tools::all(), "")
}

/// A session in which every question is answered with yes for this scope, and the approver that knows what was asked.
fn answered(world: &TestWorkspace, scope: ApprovalScope) -> (Session, Arc<ScriptedApprover>) {
    let yes = (0..100).map(|_| ApprovalAnswer::Granted { scope, by: "ada".into() });
    let approver = Arc::new(ScriptedApprover::with(yes));
    (world.session().approved_by(Arc::clone(&approver) as _), approver)
}

fn payload(reply: Reply) -> Value {
    reply.payload.unwrap_or_else(|| panic!("{:?}", reply.error))
}

async fn shell(world: &TestWorkspace, session: &Session, command: &str) -> Reply {
    world.perform_in(session, "shell", json!({ "command": command })).await
}

#[tokio::test]
async fn one_yes_covers_a_kind_of_instructions_for_the_session() {
    let world = world();
    world.file("sub/CLAUDE.md", "be brief\n");
    let (session, approver) = answered(&world, ApprovalScope::Session);
    let write = |path: &str| json!({ "path": path, "content": "hello\n" });
    payload(world.perform_in(&session, "write", write("AGENTS.md")).await);
    assert_eq!(approver.asked().len(), 1);
    assert!(approver.asked()[0].reason.contains("agents follow these instructions"), "{:?}", approver.asked());
    payload(world.perform_in(&session, "write", write("GEMINI.md")).await);
    payload(world.perform_in(&session, "write", write(".github/copilot-instructions.md")).await);
    let edit = json!({ "path": "sub/CLAUDE.md", "find": "brief", "replace": "kind" });
    payload(world.perform_in(&session, "edit", edit).await);
    assert_eq!(approver.asked().len(), 1, "{:?}", approver.asked());
    payload(world.perform_in(&session, "write", write(".github/workflows/ci.yml")).await);
    payload(world.perform_in(&session, "write", write(".github/workflows/release.yml")).await);
    assert_eq!(approver.asked().len(), 2, "another kind is another question");
    let world = self::world();
    let (other, asked) = answered(&world, ApprovalScope::Call);
    for content in ["a\n", "b\n"] {
        payload(world.perform_in(&other, "write", json!({ "path": "QWEN.md", "content": content })).await);
    }
    assert_eq!(asked.asked().len(), 2, "a yes for one call is one for one call");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_command_writes_to_instructions_is_applied_and_named() {
    let world = world().confined();
    let (session, approver) = answered(&world, ApprovalScope::Call);
    let command =
        "mkdir -p .github/workflows && echo x > .github/workflows/ci.yml && echo y > AGENTS.md && echo z > notes";
    let done = payload(shell(&world, &session, command).await);
    let notes = done["changes"]["notes"].to_string();
    assert!(notes.contains("`AGENTS.md`: agents follow these instructions"), "{done}");
    assert!(notes.contains("`.github/workflows/ci.yml`: build servers run this"), "{done}");
    assert!(!notes.contains("`notes`"), "{done}");
    assert_eq!(std::fs::read_to_string(world.path().join("AGENTS.md")).unwrap(), "y\n");
    assert_eq!(approver.asked().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_takes_away_what_it_made_without_a_question() {
    let world = world().confined();
    world.file("theirs.txt", "precious\n").file("sub/theirs.txt", "precious\n");
    let (session, approver) = answered(&world, ApprovalScope::Call);
    let asked = || approver.asked().len();
    let write = |path: &str| json!({ "path": path, "content": "print(1)\n" });
    for path in ["a.py", "b.py", "own/c.py", "sub/d.py"] {
        payload(world.perform_in(&session, "write", write(path)).await);
    }
    payload(shell(&world, &session, "mkdir -p made/deep && echo x > made/deep/one && ln -s one made/deep/two").await);
    payload(shell(&world, &session, "rm a.py && rm -rf made sub/d.py").await);
    payload(world.perform_in(&session, "delete", json!({ "path": "b.py" })).await);
    payload(shell(&world, &session, "echo 'print(2)' > once.py; cat once.py; rm once.py").await);
    assert_eq!(asked(), 0, "{:?}", approver.asked());
    for path in ["a.py", "b.py", "made", "sub/d.py", "once.py"] {
        assert!(!world.path().join(path).exists(), "{path}");
    }
    // Changed by somebody else, beside something of somebody else's, moved there, in a directory of somebody else's.
    payload(world.perform_in(&session, "write", write("e.py")).await);
    payload(world.perform_in(&session, "write", write("own/f.py")).await);
    world.file("e.py", "changed\n").file("own/theirs.txt", "precious\n");
    payload(shell(&world, &session, "mv theirs.txt moved.txt").await);
    payload(world.perform_in(&session, "move", json!({ "from": "moved.txt", "to": "again.txt" })).await);
    let before = asked();
    for (count, command) in
        ["rm e.py", "rm -rf own", "rm again.txt", "rm -rf sub", "mv sub/theirs.txt own.txt; rm own.txt"]
            .iter()
            .enumerate()
    {
        shell(&world, &session, command).await;
        assert_eq!(asked() - before, count + 1, "{command}");
    }
    let (mut other, asked_other) = answered(&world, ApprovalScope::Call);
    other.id = "another".into();
    payload(world.perform_in(&session, "write", write("g.py")).await);
    payload(shell(&world, &other, "rm g.py").await);
    assert_eq!(asked_other.asked().len(), 1, "another session's file");
}

/// A certificate as OpenSSL writes it, shortened; its structure is that of one.
const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----\nMIIDdTCCAl2gAwIBAgILBAAAAAABFUtaw5QwDQYJKoZIhvcNAQEFBQAwVzELMAkG\n\
                           -----END CERTIFICATE-----\n";
const KEY: &str = "-----BEGIN PRIVATE KEY-----\nMIIEvgIBADANBgkqhkiG9w0BAQEFAASCBKgwggSkAgEAAoIBAQC7VJTUt9Us8cKj\n\
                   -----END PRIVATE KEY-----\n";

#[tokio::test(flavor = "multi_thread")]
async fn certificates_are_shown_until_a_key_is_among_them() {
    let world = world().confined();
    let path = "venv/lib/certifi/cacert.pem";
    let (session, _) = answered(&world, ApprovalScope::Call);
    let is_shown = async || {
        let read = world.perform_in(&session, "read", json!({ "path": path })).await;
        if let Some(error) = &read.error {
            assert_eq!(error.code, ErrorCode::SensitivePath, "{error:?}");
        }
        let found =
            world.perform_in(&session, "find", json!({ "pattern": "*.pem" })).await.payload.unwrap().to_string();
        let seen = payload(shell(&world, &session, "cat */*/certifi/cacert*").await)["stdout"].to_string();
        let answers = [read.ok, found.contains("cacert.pem"), seen.contains("BEGIN")];
        assert!(answers.iter().all(|shown| *shown == answers[0]), "{answers:?} {seen}");
        answers[0]
    };
    world.file(path, CERTIFICATE.repeat(3));
    assert!(is_shown().await);
    for hidden in [KEY.to_owned(), format!("{CERTIFICATE}{KEY}"), "anything".to_owned(), String::new()] {
        std::fs::write(world.path().join(path), &hidden).unwrap();
        assert!(!is_shown().await, "{hidden}");
        std::fs::write(world.path().join(path), CERTIFICATE).unwrap();
        assert!(is_shown().await);
    }
    std::fs::write(world.path().join("real"), CERTIFICATE).unwrap();
    std::fs::remove_file(world.path().join(path)).unwrap();
    std::os::unix::fs::symlink("../../../real", world.path().join(path)).unwrap();
    assert!(!world.perform_in(&session, "read", json!({ "path": path })).await.ok, "a link is not looked into");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_writes_certificates_and_no_keys() {
    let world = world().confined();
    world.file("public.pem", CERTIFICATE).file("certificate.txt", CERTIFICATE).file("key.txt", KEY);
    let (session, _) = answered(&world, ApprovalScope::Call);
    let script = "import shutil\nfor name in ('public.pem', 'new.pem'): shutil.copy('certificate.txt', name)\n\
                  shutil.copy('key.txt', 'secret.pem')\n";
    world.file("copy.py", script).file("spoil.py", "import shutil\nshutil.copy('key.txt', 'public.pem')\n");
    let done = payload(shell(&world, &session, "python3 copy.py").await);
    let aside = done["changes"]["kept_aside"].to_string();
    assert!(aside.contains("secret.pem") && !aside.contains("new.pem"), "{done}");
    assert!(world.path().join("new.pem").exists() && !world.path().join("secret.pem").exists());
    let spoilt = payload(shell(&world, &session, "python3 spoil.py").await);
    assert!(spoilt["changes"]["kept_aside"].to_string().contains("public.pem"), "{spoilt}");
    assert_eq!(std::fs::read_to_string(world.path().join("public.pem")).unwrap(), CERTIFICATE);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_key_that_was_approved_by_name_is_written_and_no_other_is() {
    let world = world().confined();
    let (session, approver) = answered(&world, ApprovalScope::Call);
    world.file("make.sh", "echo a key > other.key\n");
    let reply = payload(shell(&world, &session, "openssl genrsa -out x.key 2048 && sh make.sh").await);
    assert_eq!(approver.asked().len(), 1, "{:?}", approver.asked());
    assert!(std::fs::read_to_string(world.path().join("x.key")).unwrap().contains("PRIVATE KEY"), "{reply}");
    assert!(!world.path().join("other.key").exists(), "nobody was asked about it: {reply}");
    let kept: Vec<&Value> =
        reply["changes"]["kept_aside"].as_array().unwrap().iter().map(|entry| &entry["path"]).collect();
    assert_eq!(json!(kept), json!(["other.key"]), "{reply}");
    let hidden = world.perform_in(&session, "read", json!({ "path": "x.key" })).await;
    assert_eq!(hidden.error.unwrap().code, ErrorCode::SensitivePath, "to make a key isn't to read it");
}

/// What a command left out of the workspace.
fn kept_aside(payload: &Value) -> Vec<&str> {
    let entries = payload["kept_aside"].as_array().into_iter().flatten();
    entries.map(|entry| entry["path"].as_str().unwrap()).collect()
}

/// Rehearses a command, commits it, and returns what `commit` answered.
async fn rehearse_and_commit(world: &TestWorkspace, session: &Session, command: &str) -> Value {
    let args = json!({ "command": command, "rehearse": true });
    let rehearsed = payload(world.perform_in(session, "shell", args).await);
    let rehearsal = &rehearsed["changes"]["rehearsal"];
    payload(world.perform_in(session, "commit", json!({ "rehearsal": rehearsal })).await)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_key_that_was_approved_by_name_is_written_by_the_commit_of_a_rehearsal_as_well() {
    let world = world().confined();
    let (session, approver) = answered(&world, ApprovalScope::Call);
    world.file("make.sh", "echo a key > other.key\n");
    let command = "openssl genrsa -out x.key 2048 && sh make.sh";
    let committed = rehearse_and_commit(&world, &session, command).await;
    assert_eq!(kept_aside(&committed), ["other.key"], "{committed}");
    assert!(approver.asked()[0].reason.contains("makes a private key"), "{:?}", approver.asked());
    assert!(std::fs::read_to_string(world.path().join("x.key")).unwrap().contains("PRIVATE KEY"), "{committed}");
    assert!(!world.path().join("other.key").exists(), "nobody was asked about it: {committed}");
}

const ELSEWHERE: &str = "https://elsewhere.example/a.git";

/// A repository with a remote, and one inside of it.
fn with_remotes() -> TestWorkspace {
    let world = world().confined();
    world.git_init("*.sh\n");
    world.git(&["init", "-q", "nested"]);
    for repository in [".", "nested"] {
        world.git(&["-C", repository, "remote", "add", "origin", "https://example.org/a.git"]);
    }
    world
}

fn push_url(world: &TestWorkspace, repository: &str) -> String {
    world.git(&["-C", repository, "remote", "get-url", "--push", "origin"]).trim_end().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_address_of_a_remote_that_was_approved_is_written_and_no_other_is() {
    let set_url = format!("git remote set-url origin {ELSEWHERE}");
    for (command, is_asked, changed) in [
        (set_url.clone(), true, vec!["."]),
        (format!("git remote set-url --push origin {ELSEWHERE}"), true, vec!["."]),
        (format!("git -C nested remote set-url origin {ELSEWHERE}"), true, vec!["nested"]),
        // Nobody sees what a script does, whatever was approved beside it.
        ("sh set.sh".into(), false, vec![]),
        (format!("{set_url} && sh nested.sh"), true, vec!["."]),
        ("git remote set-url origin https://approved.example/a.git && sh set.sh".into(), true, vec![]),
    ] {
        let world = with_remotes();
        world.file("set.sh", &set_url).file("nested.sh", format!("cd nested && {set_url}"));
        let (session, approver) = answered(&world, ApprovalScope::Call);
        let reply = payload(shell(&world, &session, &command).await);
        let asked = approver.asked();
        assert_eq!(asked.len(), usize::from(is_asked), "{command}: {asked:?}");
        assert!(asked.iter().all(|ask| ask.reason.contains("where git pushes to")), "{command}: {asked:?}");
        for repository in [".", "nested"] {
            let is_changed = push_url(&world, repository) == ELSEWHERE;
            assert_eq!(is_changed, changed.contains(&repository), "{command}, {repository}: {reply}");
        }
        let is_all_written = !command.ends_with(".sh");
        assert_eq!(kept_aside(&reply["changes"]).is_empty(), is_all_written, "{command}: {reply}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approved_address_of_a_remote_is_written_by_the_commit_of_a_rehearsal() {
    let world = with_remotes();
    let (session, _) = answered(&world, ApprovalScope::Call);
    rehearse_and_commit(&world, &session, &format!("git remote set-url origin {ELSEWHERE}")).await;
    assert_eq!(push_url(&world, "."), ELSEWHERE);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_of_a_remote_that_is_refused_stays() {
    let world = with_remotes();
    let reply = shell(&world, &world.session(), &format!("git remote set-url origin {ELSEWHERE}")).await;
    assert_eq!(reply.error.unwrap().code, ErrorCode::ApprovalRequired);
    assert_eq!(push_url(&world, "."), "https://example.org/a.git");
}
