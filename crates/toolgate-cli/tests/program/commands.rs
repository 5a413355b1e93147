//! Commands, as a user runs them: through the gate, confined, with nothing left behind.

use serde_json::{Value, json};
use toolgate_testkit::{processes_with, unique_sleep};

use crate::world::World;

fn shell(world: &World, command: &str) -> Value {
    world.call("shell", json!({ "command": command }))
}

#[test]
fn a_command_gives_its_output_its_code_and_what_held() {
    let world = World::new().file("a.txt", "one\ntwo\n");
    let reply = shell(&world, "wc -l < a.txt; echo oops >&2; exit 3");
    assert_eq!(reply["payload"]["exit_code"], json!(3), "{reply}");
    assert_eq!(reply["payload"]["stdout"].as_str().unwrap().trim(), "2");
    assert_eq!(reply["payload"]["stderr"], json!("oops\n"));
    for guarantee in ["filesystem", "network", "process_tree", "syscalls", "environment"] {
        assert_eq!(reply["enforced"][guarantee], json!("held"), "{reply}");
    }
    let said = world.run(&["call", "shell", r#"{"command":"echo hello; echo oops >&2; exit 3"}"#]);
    assert_eq!((said.code, said.out.as_str()), (3, "hello\n"), "{said:?}");
    assert!(said.err.contains("oops") && said.err.contains("exit code 3"), "{said:?}");
}

#[test]
fn a_command_changes_the_workspace_and_nothing_that_is_guarded() {
    let world = World::new().file("toolgate.toml", "# mine\n");
    let reply = shell(&world, "mkdir -p out && echo new > out/a.txt && cat out/a.txt && pwd");
    assert_eq!(reply["payload"]["exit_code"], json!(0), "{reply}");
    assert_eq!(std::fs::read_to_string(world.workspace().join("out/a.txt")).unwrap(), "new\n");
    // Python opens what no table could read out of its code, and the kernel refuses.
    for (file, mode) in [("toolgate.toml", "a"), ("/etc/hostname", "a"), ("../outside.txt", "w")] {
        let reply = shell(&world, &format!("python3 -c \"open('{}' '{}', '{mode}').read()\"", &file[..2], &file[2..]));
        assert_ne!(reply["payload"]["exit_code"], json!(0), "{file}: {reply}");
    }
    assert_eq!(std::fs::read_to_string(world.workspace().join("toolgate.toml")).unwrap(), "# mine\n");
}

/// A way to open a file that no table could read out of the command.
fn unread(file: &str) -> String {
    format!("python3 -c \"print(open('{}' '{}').read())\"", &file[..2], &file[2..])
}

#[test]
fn a_hidden_file_that_a_command_opens_is_a_decoy_and_the_reply_and_the_record_say_so() {
    let rule = "[[rules]]\ndecision = 'deny'\npath = 'drafts/*.md'\nreason = 'Drafts are private.'\n";
    let world = World::new().file(".env", "TOKEN=correct-horse").file("drafts/a.md", "correct-horse");
    world.put(&world.user_config(), rule);
    for (args, code) in [
        (json!({ "command": unread(".env") }), 0),
        (json!({ "command": unread(".env"), "stdin": true }), 0),
        (json!({ "command": format!("{}; exit 3", unread(".env")) }), 3),
    ] {
        let reply = world.call("shell", args);
        let (payload, said) = (&reply["payload"], reply.to_string());
        assert_eq!(payload["exit_code"], json!(code), "{reply}");
        assert!(payload["stdout"].as_str().unwrap().contains("decoy") && !said.contains("correct-horse"), "{reply}");
        let denied = json!({
            "code": "sensitive_path",
            "missing": "read .env",
            "reason": "`.env` wasn't read, the command saw a decoy of it: Environment files hold passwords and tokens.",
            "rule": "deny path .env (builtin)",
            "next": "Work without this file; it is never opened for tools.",
        });
        assert_eq!(payload["denied"], json!([denied]), "{reply}");
        assert_eq!(reply["enforced"]["secrets"], json!("held"), "{reply}");
        let events = std::fs::read_to_string(world.last_run().join("events.jsonl")).unwrap();
        assert!(events.contains(r#""denials":[{"code":"sensitive_path""#), "{events}");
        assert!(!events.contains("tool_call.widened"), "nobody can grant it: {events}");
    }
    let reply = shell(&world, &unread("drafts/a.md"));
    let denied = &reply["payload"]["denied"][0];
    assert_eq!(
        (&denied["code"], &denied["rule"]),
        (&json!("policy_denied"), &json!("deny path drafts/*.md (user)")),
        "{reply}"
    );
    let reply = shell(&world, "ls -la && test -f .env");
    assert_eq!((&reply["payload"]["exit_code"], &reply["payload"]["denied"]), (&json!(0), &json!(null)), "{reply}");
}

#[test]
fn the_environment_holds_no_secret_and_nothing_waits_for_an_answer() {
    let world = World::new();
    let said = world.shell(r#"MY_TOKEN=correct-horse "$toolgate" --json call shell '{"command":"python3 -c \"import os; print(dict(os.environ))\"; read answer; echo \"got:$answer:\""}'"#);
    assert!(!said.out.contains("correct-horse") && said.out.contains("GIT_TERMINAL_PROMPT"), "{said:?}");
    assert!(said.out.contains("got::"), "{said:?}");
}

#[test]
fn when_the_time_is_up_nothing_is_left() {
    let world = World::new();
    let mark = unique_sleep();
    let command = format!("setsid nohup sleep {mark} & (trap '' TERM; sleep {mark}) & sleep {mark}");
    let reply = world.call("shell", json!({ "command": command, "timeout_seconds": 1 }));
    assert_eq!(reply["payload"]["exit_code"], json!(124), "{reply}");
    assert_eq!(reply["payload"]["timed_out"], json!(true));
    assert_eq!(processes_with(&mark), [] as [i32; 0]);
}

#[test]
fn endless_output_is_bounded_and_kept_as_an_artifact() {
    let world = World::new();
    let reply = shell(&world, "seq 1 300000");
    assert_eq!(reply["payload"]["exit_code"], json!(0), "{reply}");
    assert!(reply["payload"]["stdout"].as_str().unwrap().len() < 100_000);
    assert!(reply["truncated"]["artifact"].is_string(), "{reply}");
}

#[test]
fn what_is_refused_never_starts() {
    let world = World::new().file(".env", "x");
    for (command, code) in [
        ("touch ran; rm -rf /", "policy_denied"),
        ("touch ran; cat .env", "sensitive_path"),
        ("touch ran; curl http://169.254.169.254/", "network_denied"),
        ("touch ran; git push", "approval_required"),
    ] {
        let reply = shell(&world, command);
        assert_eq!(reply["error"]["code"], json!(code), "{command}: {reply}");
    }
    assert!(!world.workspace().join("ran").exists());
}

#[test]
fn git_works_inside_and_its_hooks_are_safe() {
    let world = World::new().file("a.txt", "one\n");
    let git = "git -c user.name=a -c user.email=a@example.com";
    assert!(world.shell("git init -q . && git config user.name a").code == 0);
    let said = world.run(&[
        "--json",
        "call",
        "--approve",
        "shell",
        &json!({
            "command": format!("git add a.txt && {git} commit -qm first && git log --oneline && git status --short")
        })
        .to_string(),
    ]);
    assert!(said.out.contains("first") && said.out.contains("\"exit_code\":0"), "{said:?}");
    let reply = shell(&world, "python3 -c \"open('.git/ho' 'oks/pre-commit', 'w')\" || echo refused");
    assert!(reply["payload"]["stdout"].as_str().unwrap().contains("refused"), "{reply}");
}

#[test]
fn a_person_can_run_a_command_in_the_same_sandbox() {
    let world = World::new().file(".env", "TOKEN=correct-horse");
    let said = world.run(&["sandbox", "--verbose", "--", "sh", "-c", ". ./.env; echo out$TOKEN; exit 7"]);
    assert_eq!((said.code, said.out.as_str()), (7, "out\n"), "{said:?}");
    assert!(said.err.contains("`.env` wasn't read") && said.err.contains("confined by"), "{said:?}");
}

#[test]
fn what_is_hidden_in_directories_beside_the_workspace_is_hidden_from_commands_too() {
    for access in ["read", "write"] {
        let world = World::new();
        let other = world.home().parent().unwrap().join("other");
        world.put(&other.join("deep/.env"), "TOKEN=correct-horse");
        world.put(&other.join("fine.txt"), "fine");
        world.put(&other.join(".git/hooks/update"), "mine");
        world.put(&world.user_config(), format!("roots = [{{ path = '{}', access = '{access}' }}]", other.display()));
        let script = "cd ../other && cat fine.txt deep/.env; echo evil > .git/hooks/update || echo kept";
        world.put(&world.workspace().join("look.sh"), script);
        let reply = shell(&world, "sh look.sh");
        let said = reply["payload"]["stdout"].as_str().unwrap();
        assert!(said.contains("fine") && !said.contains("horse"), "{access}: {reply}");
        // What can be written there is settled, and hooks are quarantined.
        let is_kept_aside = reply["payload"]["changes"]["kept_aside"].to_string().contains(".git/hooks/update");
        assert_eq!((said.contains("kept"), is_kept_aside), (access == "read", access == "write"), "{access}: {reply}");
        assert!(reply["payload"]["denied"].to_string().contains("deep/.env` wasn't read"), "{access}: {reply}");
        let said = world.run(&["sandbox", "--", "sh", "look.sh"]);
        assert!(!said.out.contains("horse") && said.err.contains("deep/.env` wasn't read"), "{access}: {said:?}");
        assert_eq!(std::fs::read_to_string(other.join(".git/hooks/update")).unwrap(), "mine", "{access}");
    }
}

#[test]
fn doctor_tells_how_commands_are_confined() {
    let said = World::new().file(".env", "x").run(&["doctor"]);
    for words in ["confined by", "process tree", "system calls", "network", "ports 53, 80 and 443", "decoys stand in"] {
        assert!(said.out.contains(words), "{words}: {said:?}");
    }
    let narrow = r#"script -qec 'stty cols 80 rows 24; "$toolgate" --color never doctor' /dev/null"#;
    let said = World::new().file(".env", "x").shell(narrow);
    let widest = said.out.lines().map(|line| line.trim_end().chars().count()).max();
    assert!(said.out.contains("process tree") && widest <= Some(80), "{said:?}");
}

#[test]
fn a_rehearsal_shows_what_would_change_and_changes_nothing() {
    let world = World::new().file("a.txt", "one\ntwo\n").file("old.txt", "x\n");
    let said = world.run(&[
        "sandbox",
        "--rehearse",
        "--",
        "sh",
        "-c",
        "sed -i s/two/2/ a.txt; rm old.txt; echo n > new.txt; cat a.txt",
    ]);
    assert_eq!((said.code, said.out.as_str()), (0, "one\n2\n"), "{said:?}");
    for words in ["change a.txt", "-two", "+2", "delete old.txt", "create new.txt", "+n", "nothing has changed"] {
        assert!(said.err.contains(words), "{words}: {said:?}");
    }
    assert_eq!(std::fs::read_to_string(world.workspace().join("a.txt")).unwrap(), "one\ntwo\n");
    assert!(world.workspace().join("old.txt").exists() && !world.workspace().join("new.txt").exists());
}
