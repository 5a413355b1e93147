//! Undo in a git repository, with real git: commits of commands, commits of a person in between, `git gc`, and undo. The
//! repository is sound after any of it.
#![allow(clippy::disallowed_methods, reason = "tests make and look at files of their own")]

use proptest::prelude::*;
use serde_json::{Value, json};
use toolgate_contract::Reply;
use toolgate_runtime::Session;
use toolgate_testkit::TestWorkspace;

/// A repository with one commit, in which commands may do anything.
fn world() -> TestWorkspace {
    let world = TestWorkspace::new(toolgate_tools::all(), "preset = 'full'").confined();
    world.file("a.txt", "one\n").file("b.txt", "b\n");
    world.git_init(".toolgate/\n");
    world.git(&["add", "-A"]);
    world.git(&["commit", "-q", "-m", "base"]);
    world
}

fn read(world: &TestWorkspace, path: &str) -> Option<String> {
    std::fs::read_to_string(world.path().join(path)).ok()
}

async fn shell(world: &TestWorkspace, session: &Session, command: &str) -> Reply {
    world.perform_in(session, "shell", json!({ "command": command })).await
}

/// A command of the model that has to succeed.
async fn commits(world: &TestWorkspace, session: &Session, command: &str) -> String {
    let reply = shell(world, session, command).await;
    let payload = reply.payload.unwrap_or_else(|| panic!("{:?}", reply.error));
    assert_eq!(payload["exit_code"], json!(0), "{payload}");
    reply.tool_call_id
}

async fn undo(world: &TestWorkspace, session: &Session, call: &str) -> Reply {
    world.perform_in(session, "undo", json!({ "call": call })).await
}

fn is_sound(world: &TestWorkspace) {
    world.git(&["fsck", "--full", "--strict"]);
    world.git(&["log", "--all", "--oneline"]);
    world.git(&["status", "--porcelain"]);
}

/// The reasons for which something wasn't undone, by path.
fn refused(reply: &Reply) -> Vec<(String, String)> {
    let details = reply.error.as_ref().and_then(|error| error.details.as_ref());
    let list = reply.payload.as_ref().or(details).and_then(|value| value["refused"].as_array());
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    list.into_iter().flatten().map(|one| (text(&one["path"]), text(&one["reason"]))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_is_undone_and_its_objects_stay() {
    let world = world();
    let session = world.session();
    let head = world.git(&["rev-parse", "HEAD"]);
    let call = commits(&world, &session, "echo two >> a.txt && git commit -qam two").await;
    let commit = world.git(&["rev-parse", "HEAD"]);
    let reply = undo(&world, &session, &call).await;
    assert_eq!((refused(&reply), reply.ok), (Vec::new(), true), "{:?}", reply.error);
    assert_eq!((world.git(&["rev-parse", "HEAD"]), read(&world, "a.txt").unwrap()), (head, "one\n".to_owned()));
    assert_eq!(world.git(&["status", "--porcelain"]), "");
    assert_eq!(world.git(&["cat-file", "-t", commit.trim()]), "commit\n", "objects are never removed");
    assert_eq!(reply.payload.unwrap()["kept_objects"], json!(3));
    is_sound(&world);
}

#[tokio::test(flavor = "multi_thread")]
async fn where_a_person_committed_on_top_the_repository_stays_as_it_is() {
    let world = world();
    let session = world.session();
    let call = commits(&world, &session, "echo two >> a.txt && git commit -qam two").await;
    world.file("b.txt", "person\n");
    world.git(&["commit", "-qam", "on top"]);
    let head = world.git(&["rev-parse", "HEAD"]);
    let reply = undo(&world, &session, &call).await;
    let refused = refused(&reply);
    assert_eq!(refused.iter().map(|(path, _)| path.as_str()).collect::<Vec<_>>(), [".git"], "{refused:?}");
    assert!(refused[0].1.contains("together or not at all"), "{refused:?}");
    assert_eq!(world.git(&["rev-parse", "HEAD"]), head);
    assert_eq!(world.git(&["log", "--format=%s"]), "on top\ntwo\nbase\n");
    assert_eq!(read(&world, "a.txt").unwrap(), "one\n", "what isn't the repository's goes back");
    is_sound(&world);
}

#[tokio::test(flavor = "multi_thread")]
async fn after_gc_nothing_of_the_repository_goes_back() {
    let world = world();
    let session = world.session();
    let call = commits(&world, &session, "echo two >> a.txt && git commit -qam two").await;
    world.git(&["gc", "-q", "--prune=now"]);
    let before = [world.git(&["rev-parse", "HEAD"]), world.git(&["reflog"])];
    let reply = undo(&world, &session, &call).await;
    assert_eq!(refused(&reply).len(), 1, "{:?}", refused(&reply));
    assert_eq!([world.git(&["rev-parse", "HEAD"]), world.git(&["reflog"])], before);
    is_sound(&world);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_never_refers_to_what_gc_removed() {
    let world = world();
    let session = world.session();
    world.file("staged.txt", "only in the index\n");
    world.git(&["add", "staged.txt"]);
    let call = commits(&world, &session, "git rm -q --cached staged.txt && rm staged.txt").await;
    world.git(&["gc", "-q", "--prune=now"]);
    let reply = undo(&world, &session, &call).await;
    let refused = refused(&reply);
    assert!(refused[0].1.contains("which is gone"), "{refused:?}");
    assert_eq!(read(&world, "staged.txt").as_deref(), Some("only in the index\n"));
    is_sound(&world);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_look_at_the_status_keeps_nobody_from_undoing() {
    let world = world();
    let session = world.session();
    let call = commits(&world, &session, "echo two >> a.txt && git commit -qam two").await;
    std::fs::write(world.path().join("b.txt"), "b\n").unwrap();
    let index = std::fs::read(world.path().join(".git/index")).unwrap();
    world.git(&["status"]);
    assert_ne!(std::fs::read(world.path().join(".git/index")).unwrap(), index, "git has refreshed its index");
    let reply = undo(&world, &session, &call).await;
    assert_eq!(refused(&reply), []);
    assert_eq!(world.git(&["log", "--format=%s"]), "base\n");
    is_sound(&world);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repository_that_a_command_made_goes_as_a_whole() {
    let world = world();
    let session = world.session();
    let init = "git init -q nested && cd nested && echo x > x && git add x && \
                git -c user.name=A -c user.email=a@b commit -qm x";
    let call = commits(&world, &session, init).await;
    assert!(world.path().join("nested/.git/HEAD").exists());
    let reply = undo(&world, &session, &call).await;
    assert_eq!((refused(&reply), world.path().join("nested").exists()), (Vec::new(), false), "{:?}", reply.error);
    is_sound(&world);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repository_that_a_command_made_stays_where_somebody_has_committed_since() {
    let world = world();
    let session = world.session();
    let call = commits(&world, &session, "git init -q -b main nested && echo x > nested/x").await;
    let author = ["-C", "nested", "-c", "user.name=Ada", "-c", "user.email=ada@example.org"];
    world.git(&["-C", "nested", "add", "x"]);
    world.git(&[&author[..], &["commit", "-q", "-m", "mine"]].concat());
    let reply = undo(&world, &session, &call).await;
    assert!(refused(&reply).iter().any(|(path, _)| path == "nested/.git"), "{:?}", reply.payload);
    assert_eq!(world.git(&["-C", "nested", "log", "--format=%s"]), "mine\n");
    world.git(&["-C", "nested", "fsck", "--strict"]);
}

/// Undone is what the run did to the repository, and what another one left in it would come back without HEAD.
#[tokio::test(flavor = "multi_thread")]
async fn a_repository_that_a_run_made_stays_where_something_of_others_would_come_back() {
    let world = world();
    let session = world.session();
    commits(&world, &session, "git init -q -b main nested && echo x > nested/x").await;
    world.file("nested/.git/COMMIT_EDITMSG", "mine\n");
    commits(&world, &session, "rm nested/.git/COMMIT_EDITMSG").await;
    let reply = world.perform_in(&session, "undo", json!({ "run": world.run.id })).await;
    let refused = refused(&reply);
    let why = refused.iter().find(|(path, _)| path == "nested/.git").map(|(_, reason)| reason.as_str());
    assert!(
        why.is_some_and(|why| why.contains("`nested/.git/COMMIT_EDITMSG` wasn't made by what is undone")),
        "{refused:?}"
    );
    assert_eq!((read(&world, "nested/x"), world.path().join("nested/.git/COMMIT_EDITMSG").exists()), (None, false));
    world.git(&["-C", "nested", "fsck", "--strict"]);
    assert_eq!(world.git(&["-C", "nested", "rev-parse", "--git-dir"]), ".git\n");
}

/// A step of a random story.
#[derive(Debug, Clone)]
enum Step {
    /// A command of the model.
    Command(&'static str),
    /// A person's git command.
    Person(&'static [&'static str]),
    /// The undo of one of the calls so far.
    Undo(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let command = prop::sample::select(vec![
        "echo $RANDOM >> a.txt; git commit -qam agent",
        "echo $RANDOM > n$RANDOM.txt; git add -A",
        "git commit -q --allow-empty -m empty",
        "git branch topic-$RANDOM",
        "git checkout -q -b side-$RANDOM",
        "git reset -q --hard HEAD~1 || true",
        "git commit -q --amend -m amended --allow-empty",
        "git stash -q || true",
        "git gc -q",
        "git tag v$RANDOM",
        "git rm -q b.txt || true",
    ]);
    let person: Vec<&'static [&'static str]> = vec![
        &["commit", "-q", "--allow-empty", "-m", "person"],
        &["gc", "-q"],
        &["gc", "-q", "--prune=now"],
        &["status"],
        &["add", "-A"],
        &["pack-refs", "--all"],
        &["reflog", "expire", "--expire=now", "--all"],
    ];
    prop_oneof![
        4 => command.prop_map(Step::Command),
        2 => prop::sample::select(person).prop_map(Step::Person),
        3 => (0..100_usize).prop_map(Step::Undo),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6, max_shrink_iters: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_story_leaves_a_sound_repository(steps in prop::collection::vec(step(), 4..12)) {
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap().block_on(async {
            let world = world();
            let session = world.session();
            let mut calls = Vec::new();
            for step in &steps {
                match step {
                    Step::Command(command) => calls.push(shell(&world, &session, command).await.tool_call_id),
                    Step::Person(args) => drop(world.git(args)),
                    Step::Undo(number) if !calls.is_empty() => {
                        let reply = undo(&world, &session, &calls[number % calls.len()]).await;
                        calls.push(reply.tool_call_id);
                    }
                    Step::Undo(_) => {}
                }
                is_sound(&world);
            }
        });
    }
}
