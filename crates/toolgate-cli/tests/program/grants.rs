//! Approvals for longer than one call: where they reach, when they end, and how a person takes them back.

use std::path::Path;

use serde_json::{Value, json};

use crate::world::{PROGRAM, Said, World};

const DELETE: &str = r#"{"path":"hello.txt"}"#;

/// What the program said, on one line: a terminal wraps it.
fn on_one_line(said: &Said) -> String {
    said.out.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Types an answer to what the program asks at a terminal, in this directory.
fn answered(world: &World, directory: &Path, answer: &str, args: &str) -> Said {
    // `script` gives the program a terminal; what is typed comes through its standard input.
    let call = format!("{PROGRAM} -w '{}' {args}", directory.display());
    world.shell(&format!("printf '{answer}' | script -qec \"$(cat <<'END'\n{call}\nEND\n)\" /dev/null"))
}

/// Deletes `hello.txt` in a directory, where nobody can be asked, and returns the exit code. The file is made before.
fn delete_unasked(world: &World, directory: &Path) -> i32 {
    world.put(&directory.join("hello.txt"), "again\n");
    world.run(&["-w", directory.to_str().unwrap(), "call", "delete", DELETE]).code
}

fn grants(world: &World) -> Value {
    world.run(&["--json", "approvals", "grants"]).list()
}

#[test]
fn always_reaches_no_other_workspace() {
    let world = World::new();
    let (here, nested, other) = (world.workspace(), world.workspace().join("nested"), world.home().join("other"));
    std::fs::create_dir_all(&nested).unwrap();
    std::fs::create_dir_all(&other).unwrap();
    let said = answered(&world, &here, "a\\n", &format!("call delete '{DELETE}'"));
    assert!(!here.join("hello.txt").exists(), "{said:?}");
    let reach = format!("in every session of this workspace ({})", here.canonicalize().unwrap().display());
    assert!(on_one_line(&said).contains(&reach), "the prompt says how far it reaches: {said:?}");
    assert!(on_one_line(&said).contains("(30 days)"), "and until when: {said:?}");
    assert!(!world.user_config().exists(), "no rule for every workspace is written");

    assert_eq!(delete_unasked(&world, &here), 0, "what was approved isn't asked again");
    assert_eq!(
        world.run(&["call", "delete", r#"{"path":"nested","recursive":true}"#]).code,
        4,
        "and nothing else is covered"
    );
    assert_eq!(delete_unasked(&world, &nested), 4, "a workspace inside it is another one");
    assert_eq!(delete_unasked(&world, &other), 4, "so is every other one");

    std::fs::rename(&here, world.home().join("moved")).unwrap();
    std::fs::create_dir(&here).unwrap();
    assert_eq!(delete_unasked(&world, &world.home().join("moved")), 4, "moved, it is where the person never looked");
    assert_eq!(delete_unasked(&world, &here), 4, "another directory at its path is another workspace");
}

#[test]
fn a_grant_is_listed_with_its_reach_and_can_be_revoked() {
    let world = World::new();
    assert!(world.run(&["approvals", "grants"]).out.contains("Nothing is approved"));
    answered(&world, &world.workspace(), "a\\n", &format!("call delete '{DELETE}'"));
    let listed = grants(&world);
    let grant = &listed[0];
    assert_eq!((&grant["scope"], &grant["by"], &grant["tool"]), (&json!("always"), &json!("ada"), &json!("delete")));
    assert_eq!(grant["what"], "`delete` may delete hello.txt");
    let path = world.workspace().canonicalize().unwrap().display().to_string();
    assert_eq!((&grant["workspace"], &grant["reach"]), (&json!(path), &json!(format!("every session in {path}"))));
    let (since, until) = (grant["since"].as_str().unwrap(), grant["until"].as_str().unwrap());
    let days = until.parse::<jiff::Timestamp>().unwrap().duration_since(since.parse().unwrap()).as_hours();
    assert!((24 * 30 - 1..=24 * 30).contains(&days), "{since} {until}");

    let table = world.run(&["approvals", "grants"]).out;
    let id = grant["id"].as_str().unwrap();
    for words in ["GRANT", "UNTIL", id, "always", "ada", "`delete` may delete hello.txt", "every session in"] {
        assert!(table.contains(words), "{words} is missing: {table}");
    }
    let about_paths = |line: &&str| line.contains(&path);
    assert!(table.lines().filter(|line| !about_paths(line)).all(|line| line.len() <= 80), "it fits: {table}");

    assert_eq!(world.run(&["approvals", "revoke", "grant_nonsense"]).code, 2);
    let revoked = world.run(&["approvals", "revoke", &id[..12]]);
    assert!(revoked.out.starts_with(&format!("Revoked {id}")), "{revoked:?}");
    assert_eq!(grants(&world), json!([]));
    let record = world.run(&["--json", "approvals", "grants", "--revoked"]).list();
    assert_eq!((&record[0]["id"], &record[0]["revoked"]["by"]), (&grant["id"], &json!("ada")), "{record}");
    assert_eq!(delete_unasked(&world, &world.workspace()), 4, "it is asked again");
    assert_eq!(world.run(&["approvals", "revoke", "--all"]).code, 0);
}

#[test]
fn a_session_of_single_calls_says_when_its_grants_end() {
    let world = World::new();
    let call = format!("call --session s1 delete '{DELETE}'");
    let said = answered(&world, &world.workspace(), "s\\n", &call);
    let shown = on_one_line(&said);
    assert!(shown.contains("in the session `s1` of this workspace, until "), "{said:?}");
    assert!(shown.contains("(12 hours)") && !shown.contains("until this session ends"), "{said:?}");
    assert!(!shown.contains("[r] run"), "the run ends with this call: {said:?}");
    let again = |session: &str| {
        world.put(&world.workspace().join("hello.txt"), "again\n");
        world.run(&["call", "--session", session, "delete", DELETE]).code
    };
    assert_eq!(again("s1"), 0);
    assert_eq!(again("s2"), 4, "another session asks again");
    assert!(grants(&world)[0]["until"].is_string());
}

#[test]
fn settings_say_how_long_approvals_last() {
    let world = World::new();
    let prompt = |config: &str| {
        world.put(&world.user_config(), config);
        on_one_line(&answered(&world, &world.workspace(), "n\\n\\n", &format!("call delete '{DELETE}'")))
    };
    let shown = prompt("[approvals]\nsession_hours = 1\nalways_days = \"unlimited\"\n");
    assert!(shown.contains("(1 hour)") && shown.contains("without an end, until you revoke it"), "{shown}");
    let shown = prompt("[approvals]\nsession_hours = 0\nalways_days = 0\n");
    assert!(!shown.contains("[s] session") && !shown.contains("[a] always"), "{shown}");
}
