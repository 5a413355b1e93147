//! Rehearsed commands: nothing changes, what would is shown, and exactly that can be committed, once.

use serde_json::{Value, json};

use crate::world::World;

fn rehearse(world: &World, command: &str) -> Value {
    let reply = world.call("shell", json!({ "command": command, "rehearse": true }));
    assert_eq!(reply["ok"], json!(true), "{reply}");
    reply["payload"].clone()
}

fn world() -> World {
    World::new().file("a.txt", "one\ntwo\n").file("old.txt", "x\n")
}

fn run_of(world: &World) -> String {
    world.last_run().file_name().unwrap().to_str().unwrap().to_owned()
}

#[test]
fn a_rehearsal_shows_the_diff_and_its_commit_makes_exactly_that_change_once() {
    let world = world();
    let payload =
        rehearse(&world, "sed -i s/two/2/ a.txt; echo n > new.txt; cat a.txt; head -c 2000000 /dev/zero > big");
    assert_eq!(payload["stdout"], json!("one\n2\n"));
    let changes = &payload["changes"];
    assert_eq!(changes["paths"], json!(["~a.txt", "+big", "+new.txt"]), "{payload}");
    let diff = changes["diff"].as_str().unwrap();
    for words in ["-two", "+2", "+n", "big: new file of 2000000 bytes"] {
        assert!(diff.contains(words), "{words}: {diff}");
    }
    assert_eq!(world.read("a.txt"), "one\ntwo\n");
    assert!(!world.workspace().join("new.txt").exists());
    let args = json!({ "rehearsal": changes["rehearsal"] }).to_string();
    let elsewhere = world.run(&["--json", "call", "commit", &args]).json();
    assert_eq!(elsewhere["error"]["code"], json!("not_found"), "another run can't: {elsewhere}");
    let run = run_of_first(&world);
    let reply = world.run(&["--json", "call", "--run", &run, "commit", &args]).json();
    assert_eq!(reply["payload"]["committed"], json!(["a.txt", "big", "new.txt"]), "{reply}");
    assert_eq!((world.read("a.txt").as_str(), world.read("new.txt").as_str()), ("one\n2\n", "n\n"));
    let again = world.run(&["--json", "call", "--run", &run, "commit", &args]).json();
    assert_eq!(again["error"]["code"], json!("not_found"), "{again}");
    assert_eq!(world.run(&["undo", reply["tool_call_id"].as_str().unwrap()]).code, 0);
    assert_eq!(world.read("a.txt"), "one\ntwo\n");
    assert!(!world.workspace().join("new.txt").exists() && !world.workspace().join("big").exists());
}

/// Without the handle nobody could commit the rehearsal.
#[test]
fn a_rehearsal_of_many_long_paths_still_has_its_handle_exit_code_and_output() {
    let world = world();
    let name = "n".repeat(200);
    let deep = format!("for i in $(seq 15); do mkdir {name}; cd {name}; done");
    let payload = rehearse(&world, &format!("{deep}; for i in $(seq 40); do echo $i > f$i; done; echo done; exit 3"));
    assert_eq!((&payload["exit_code"], &payload["stdout"]), (&json!(3), &json!("done\n")), "{payload}");
    assert_eq!(payload["changes"]["created"], 55, "{payload}");
    assert!(payload["changes"]["paths"].as_array().is_some_and(|paths| !paths.is_empty()), "{payload}");
    let said = world.run(&["commit", payload["changes"]["rehearsal"].as_str().unwrap()]);
    assert_eq!(
        (said.code, world.read(&format!("{}f40", format!("{name}/").repeat(15)))),
        (0, "40\n".into()),
        "{said:?}"
    );
}

#[test]
fn a_commit_brings_nothing_back_that_a_person_removed() {
    let world = world();
    let payload = rehearse(&world, "touch old.txt; echo three >> a.txt; echo n > new.txt");
    std::fs::remove_file(world.workspace().join("old.txt")).unwrap();
    let args = json!({ "rehearsal": payload["changes"]["rehearsal"] }).to_string();
    let reply = world.run(&["--json", "call", "--run", &run_of_first(&world), "commit", &args]).json();
    assert_eq!(reply["error"]["code"], json!("stale_file"), "{reply}");
    assert!(!world.workspace().join("old.txt").exists() && !world.workspace().join("new.txt").exists());
}

#[test]
fn a_commit_makes_a_directory_again_that_a_person_removed_only_for_what_was_written_into_it() {
    let cases = [("mv dir/sub/c x", json!(["x"])), ("echo n > dir/sub/new", json!(["dir/sub", "dir/sub/new"]))];
    for (command, committed) in cases {
        let world = world().file("dir/sub/c", "c\n");
        let payload = rehearse(&world, command);
        std::fs::remove_dir_all(world.workspace().join("dir/sub")).unwrap();
        let args = json!({ "rehearsal": payload["changes"]["rehearsal"] }).to_string();
        let reply = world.run(&["--json", "call", "--run", &run_of_first(&world), "commit", &args]).json();
        assert_eq!(reply["payload"]["committed"], committed, "{command}: {reply}");
        let is_made = committed.as_array().unwrap().contains(&json!("dir/sub"));
        assert_eq!(world.workspace().join("dir/sub").exists(), is_made, "{command}: {reply}");
    }
}

/// The run of the first call.
fn run_of_first(world: &World) -> String {
    let mut runs: Vec<_> =
        std::fs::read_dir(world.workspace().join(".toolgate/runs")).unwrap().map(|run| run.unwrap()).collect();
    runs.sort_by_key(|run| run.file_name());
    runs[0].file_name().to_str().unwrap().to_owned()
}

#[test]
fn a_commit_is_refused_where_a_file_has_changed_since_and_where_policy_denies_or_asks() {
    let world = world();
    let payload = rehearse(&world, "echo mine > a.txt; echo new > new.txt");
    world.put(&world.workspace().join("a.txt"), "theirs\n");
    let said = world.run(&["commit", payload["changes"]["rehearsal"].as_str().unwrap()]);
    assert_eq!((said.code, world.read("a.txt").as_str()), (1, "theirs\n"), "{said:?}");
    assert!(
        said.err.contains("changed since the rehearsal") && !world.workspace().join("new.txt").exists(),
        "{said:?}"
    );

    world.put(&world.user_config(), "[[rules]]\ndecision = 'deny'\ntool = 'commit'\n");
    let payload = rehearse(&world, "echo new > new.txt");
    let said = world.run(&["commit", payload["changes"]["rehearsal"].as_str().unwrap()]);
    assert_eq!((said.code, world.workspace().join("new.txt").exists()), (3, false), "{said:?}");
    world.put(&world.user_config(), "");

    let payload = rehearse(&world, "for i in $(seq 30); do echo $i > f$i; done");
    let args = json!({ "rehearsal": payload["changes"]["rehearsal"] }).to_string();
    let asked = world.run(&["--json", "call", "--run", &run_of(&world), "commit", &args]).json();
    assert_eq!(asked["error"]["code"], json!("approval_required"), "{asked}");
    let said = world.shell(asked["error"]["details"]["replay"].as_str().unwrap());
    assert_eq!((said.code, world.read("f30").as_str()), (0, "30\n"), "the replay works as printed: {said:?}");
}

#[test]
fn a_call_that_is_rehearsed_shows_a_person_the_diff_what_would_be_kept_aside_and_how_to_commit_it() {
    let world = world().file("plant.sh", "sed -i s/two/2/ a.txt; echo 'export X=1' > .envrc; printf abc > three");
    let said = world.run(&["call", "shell", r#"{"command":"sh plant.sh; echo ran","rehearse":true}"#]);
    assert_eq!((said.code, said.out.as_str()), (0, "ran\n"), "{said:?}");
    for words in ["It would change 3 paths; nothing has changed.", "-two", "+2", "would quarantine:\n  .envrc (direnv"]
    {
        assert!(said.err.contains(words), "{words}: {said:?}");
    }
    let (_, commit) = said.err.trim().rsplit_once("To apply the rest within a day: ").unwrap();
    let said = world.shell(commit);
    assert_eq!((said.code, world.read("a.txt").as_str()), (0, "one\n2\n"), "{said:?}");
    assert!(said.out.contains("three +1 -0\n") && said.out.contains("Quarantined:\n  .envrc"), "{said:?}");
    let said = world.run(&["call", "shell", r#"{"command":"true","rehearse":true}"#]);
    assert_eq!(said.err, "It would change nothing.\n");
}

#[test]
fn what_is_guarded_is_kept_aside_and_what_git_makes_passes_as_without_a_rehearsal() {
    let world = world();
    let payload =
        rehearse(&world, "git init -q . && python3 -c \"open('.en' + 'v', 'w').write('x')\"; echo new > new.txt");
    assert_eq!(payload["changes"]["kept_aside"][0]["path"], json!(".env"), "{payload}");
    let said = world.run(&["--json", "commit", payload["changes"]["rehearsal"].as_str().unwrap()]).json();
    assert_eq!(said["payload"]["kept_aside"][0]["path"], json!(".env"), "{said}");
    assert!(!world.workspace().join(".env").exists() && world.workspace().join(".git/config").exists());
    assert_eq!(world.read("new.txt"), "new\n");
    assert!(world.run(&["quarantine", "list"]).out.contains(".env"));
    assert_eq!(world.run(&["undo", said["tool_call_id"].as_str().unwrap()]).code, 0);
    assert!(!world.workspace().join(".git").exists() && !world.workspace().join("new.txt").exists());
}

#[test]
fn a_long_rehearsal_is_shown_in_part_and_can_be_had_whole() {
    let world = world();
    let command = "seq 100000 > long.txt; for i in $(seq 20); do echo $i > f$i; done";
    let said = world.run(&["sandbox", "--rehearse", "--", "sh", "-c", command]);
    assert!(said.err.lines().count() < 450, "{}", said.err.lines().count());
    assert!(
        said.err.contains("more lines")
            && said.err.contains("Complete diff: ")
            && said.err.contains("toolgate commit --show"),
        "{said:?}"
    );
    let (_, handle) = said.err.trim().rsplit_once("toolgate commit ").unwrap();
    let whole = world.run(&["commit", "--show", handle.trim()]);
    assert!(whole.err.contains("+100000\n") && whole.err.lines().count() > 100_000, "{}", whole.err.lines().count());
    assert!(!world.workspace().join("long.txt").exists());
    let said = world.run(&["--json", "sandbox", "--rehearse", "--", "sh", "-c", command]);
    let json: Value = serde_json::from_str(said.err.trim()).unwrap();
    assert!(json["diff"].as_str().unwrap().contains("+100000\n") && json["rehearsal"].is_string());
}

#[test]
fn a_person_can_rehearse_and_commit_from_the_shell() {
    let world = world();
    let said = world.run(&["sandbox", "--rehearse", "--", "sh", "-c", "sed -i s/two/2/ a.txt; rm old.txt"]);
    assert_eq!(said.code, 0, "{said:?}");
    let (_, handle) = said.err.trim().rsplit_once("toolgate commit ").unwrap();
    assert_eq!(world.run(&["commit", handle.trim()]).code, 0);
    assert_eq!(world.read("a.txt"), "one\n2\n");
    assert!(!world.workspace().join("old.txt").exists());
    let said = world.run(&["sandbox", "--commit", "--", "sh", "-c", "echo three > a.txt"]);
    assert_eq!((said.code, world.read("a.txt").as_str()), (0, "three\n"), "{said:?}");
    assert!(said.err.contains("It changed 1 path:") && !said.err.contains("would"), "{said:?}");
    let said = world.run(&["sandbox", "--commit", "--", "sh", "-c", "echo four > a.txt; false"]);
    assert_eq!((said.code, world.read("a.txt").as_str()), (1, "three\n"), "what failed isn't committed");
    assert!(said.err.contains("Not applied: it ended with 1."), "{said:?}");
    assert_eq!(world.run(&["sandbox", "--commit", "--", "true"]).err, "It changed nothing.\n");
    let said = world.run(&["sandbox", "--rehearse", "--", "sh", "-c", "echo x > .envrc; echo fine > fine.txt"]);
    assert!(said.err.contains("would quarantine:\n  .envrc (direnv"), "{said:?}");
}

#[test]
fn a_rehearsal_is_judged_like_the_command_itself() {
    let world = world();
    let refused =
        world.run(&["--preset", "read-only", "--json", "call", "shell", r#"{"command":"touch x","rehearse":true}"#]);
    assert_eq!(refused.json()["error"]["code"], json!("policy_denied"), "{refused:?}");
    let strange = world.call("commit", json!({ "rehearsal": "../../home" }));
    assert_eq!(strange["error"]["code"], json!("not_found"), "{strange}");
}

/// What takes too long to compare isn't lost: it waits for a commit, which has no limit. Zero seconds are over at once.
#[test]
fn changes_that_cannot_be_compared_in_time_wait_for_a_commit() {
    let world = world();
    world.put(&world.user_config(), "processes.settle_seconds = 0\n");
    let reply = world.call("shell", json!({ "command": "echo n > new.txt; echo y > old.txt; echo said" }));
    let (payload, changes) = (&reply["payload"], &reply["payload"]["changes"]);
    assert_eq!((&payload["exit_code"], &payload["stdout"]), (&json!(0), &json!("said\n")), "{reply}");
    let note = changes["notes"][0].as_str().unwrap();
    assert!(note.contains("processes.settle_seconds") && note.contains("`commit` it"), "{reply}");
    assert_eq!((world.workspace().join("new.txt").exists(), world.read("old.txt").as_str()), (false, "x\n"));
    let committed = world.run(&["commit", changes["rehearsal"].as_str().unwrap()]);
    assert_eq!(committed.code, 0, "{committed:?}");
    assert_eq!((world.read("new.txt").as_str(), world.read("old.txt").as_str()), ("n\n", "y\n"));
}
