//! Commands that a person runs in the sandbox: what they read, where they write, and what is said of them.

use serde_json::{Value, json};

use crate::terminal::{on_a_terminal, with_terminal};
use crate::world::World;

#[test]
fn what_is_piped_in_is_read_and_nobody_has_to_read_it() {
    let world = World::new().file("long.txt", "line\n".repeat(200_000));
    let said = world.shell(r#"echo hi | "$toolgate" sandbox -- cat"#);
    assert_eq!((said.code, said.out.as_str()), (0, "hi\n"), "{said:?}");
    let said = world.shell(r#""$toolgate" sandbox -- wc -l < long.txt"#);
    assert_eq!(said.out.trim(), "200000", "{said:?}");
    let said = world.shell(r#"cat long.txt | "$toolgate" sandbox -- true && echo ended"#);
    assert_eq!(said.out, "ended\n", "{said:?}");
}

#[test]
fn who_sits_at_a_terminal_gets_one_for_the_command_too() {
    let command = "stty size; read line; test -t 0 && test -t 1 && echo \"got $line\"; exit 5";
    let script = ["wait 24 80", "type hello", "wait got hello"];
    let said = on_a_terminal(&World::new(), &script, &["sandbox", "--", "sh", "-c", command]);
    assert_eq!(said.code, 5, "{said:?}");
}

/// Ctrl-Z gives the terminal back to the shell, and `fg` goes on: also a program that stops itself must not be left without anybody who
/// continues it.
#[test]
fn a_command_on_a_terminal_is_stopped_and_continued_like_any_job() {
    for stop in ["type \u{1a}", "type stop"] {
        let reads = "while read line; do case $line in stop) kill -TSTP $$;; *) echo got $line;; esac; done";
        let start = format!("type \"$toolgate\" sandbox -- sh -c 'echo ready; {reads}; exit 5'");
        let there = ["type echo shell-$((1 + 1))", "wait shell-2", "type fg", "type hello", "wait got hello"];
        let script = [
            &[start.as_str(), "wait ready\r", stop, "wait Stopped"][..],
            &there,
            &["type \u{4}", "wait bash-", "type echo code-$?", "wait code-5", "type exit 7"],
        ];
        let said = with_terminal(&World::new(), &script.concat(), "bash", &["--norc", "--noprofile", "-i"]);
        assert_eq!(said.code, 7, "{stop:?}: {said:?}");
    }
}

#[test]
fn a_program_is_told_how_it_ended_and_what_held() {
    let world = World::new();
    let said = world.run(&["--json", "sandbox", "--", "sh", "-c", "echo out; exit 3"]);
    let told: Value = serde_json::from_str(said.err.trim()).unwrap();
    assert_eq!((said.code, said.out.as_str(), &told["exit_code"]), (3, "out\n", &json!(3)), "{said:?}");
    assert_eq!(told["tier"], json!("namespaces"));
    assert!(told["guarantees"].to_string().contains(r#""guarantee":"process_tree","holding":"held""#), "{told}");
    let said = world.run(&["sandbox", "--verbose", "--", "true"]);
    assert!(said.err.contains("✓ process tree: all its processes end with"), "{said:?}");
}

/// Leaves what git, a shell, an agent or a careless person would run later, and ordinary work beside it.
const PLANT: &str = "git init -q . && printf '#!/bin/sh\\n' > .git/hooks/pre-commit && chmod +x .git/hooks/pre-commit; \
                     echo 'export X=1' > .envrc; echo '{}' > .mcp.json; cp /bin/true tool && chmod u+s tool; \
                     echo work > work.txt; echo more >> hello.txt";
const PLANTED: [&str; 4] = [".git/hooks/pre-commit", ".envrc", ".mcp.json", "tool"];

#[test]
fn what_a_command_leaves_for_others_to_run_is_quarantined_and_its_work_stays() {
    let world = World::new();
    let said = world.run(&["sandbox", "--", "sh", "-c", PLANT]);
    assert_eq!(said.code, 0, "{said:?}");
    let is_setuid = |path: &str| {
        std::fs::metadata(world.workspace().join(path))
            .is_ok_and(|found| std::os::unix::fs::PermissionsExt::mode(&found.permissions()) & 0o4000 != 0)
    };
    assert!(!is_setuid("tool"), "{said:?}");
    for path in [".git/hooks/pre-commit", ".envrc", ".mcp.json"] {
        assert!(!world.workspace().join(path).exists(), "{path}: {said:?}");
    }
    for path in PLANTED {
        assert!(said.err.contains(path), "{path} is named: {said:?}");
    }
    assert_eq!((world.read("work.txt").as_str(), world.read("hello.txt").as_str()), ("work\n", "hello\nworld\nmore\n"));
    assert!(world.run(&["quarantine", "list"]).out.contains(".envrc"));
    let said = world.run(&["undo", "last"]);
    assert_eq!((said.code, world.read("hello.txt").as_str()), (0, "hello\nworld\n"), "{said:?}");
    assert!(world.run(&["audit", "verify"]).code == 0);
}

#[test]
fn who_wants_no_quarantine_gets_none() {
    let world = World::new();
    let said = world.run(&["sandbox", "--no-quarantine", "--", "sh", "-c", PLANT]);
    assert_eq!(said.code, 0, "{said:?}");
    for path in PLANTED {
        assert!(world.workspace().join(path).exists() && !said.err.contains(path), "{path}: {said:?}");
    }
    let said = world.run(&["--json", "sandbox", "--", "sh", "-c", "echo '[]' > .mcp.json"]);
    let told: Value = serde_json::from_str(said.err.trim()).unwrap();
    assert_eq!(told["changes"]["kept_aside"][0]["path"], json!(".mcp.json"), "{said:?}");
    assert_eq!(world.read(".mcp.json"), "{}\n", "what was there before is there again");
}
