//! `toolgate call` as a user and a program meet it.

use crate::world::{PROGRAM, World};
use serde_json::json;

#[test]
fn exit_codes_say_how_it_ended() {
    let table: &[(&[&str], i32, &str)] = &[
        (&["call", "list"], 0, ""),
        (&["call", "read", r#"{"path":"hello.txt"}"#], 0, ""),
        (&["call", "read", r#"{"path":"missing"}"#], 1, "error[not_found]"),
        (&["call", "read", r#"{"path":"."}"#], 1, "Use `list`"),
        (&["call", "raed", "{}"], 2, "Did you mean `read`?"),
        (&["call", "", "{}"], 2, "error[unknown_tool]"),
        (&["call", "list", r#"{"file":"x"}"#], 2, "/file: is not a known field"),
        (&["call", "stat", r#"{"file":"x"}"#], 2, "/path: is missing"),
        (&["call", "read", "{}"], 2, "`path` or `paths` is missing"),
        (&["call", "read", "{"], 2, "not usable JSON"),
        (&["call", "read", r#"{"path":"a","path":"b"}"#], 2, "appears twice"),
        (&["call", "read", r#"{"path":"hello.txt","offset":99999999999999999999}"#], 2, "doesn't fit in 64 bits"),
        (&["call", "read", r#"{"path":"hello.txt","offset":1e400}"#], 2, "out of range"),
        (&["call", "read", r#"{"path":"hello.txt","limit":1.5}"#], 2, "/limit"),
        (&["call"], 2, "Usage"),
        (&["no-such-verb"], 2, "unrecognized"),
        (&["--preset", "lenient", "call", "list"], 2, "lenient"),
        (&["--deny", "nonsense", "call", "list"], 2, "KIND=PATTERN"),
        (&["--workspace", "/does/not/exist", "call", "list"], 2, "can't be opened"),
        (&["call", "read", r#"{"path":"../home"}"#], 3, "error[path_outside_workspace]"),
        (&["call", "read", r#"{"path":".env"}"#], 3, "error[sensitive_path]"),
        (&["--deny", "tool=read", "call", "read", r#"{"path":"hello.txt"}"#], 3, "error["),
        (&["--preset", "read-only", "call", "write", r#"{"path":"a","content":""}"#], 3, "error[policy_denied]"),
        (&["--ask", "tool=read", "call", "read", r#"{"path":"hello.txt"}"#], 4, "error[approval_required]"),
        (&["--preset", "autonomous", "--ask", "tool=read", "call", "read", r#"{"path":"hello.txt"}"#], 3, "Nobody"),
    ];
    let world = World::new();
    for (args, code, words) in table {
        let said = world.run(args);
        assert_eq!(said.code, *code, "{args:?}: {said:?}");
        assert!(said.err.contains(words), "{args:?} should say {words}: {said:?}");
        if *code != 0 {
            assert_eq!(said.out, "", "a failure leaves standard output empty: {args:?}");
        }
    }
}

#[test]
fn arguments_come_from_the_command_line_standard_input_or_a_file() {
    let world = World::new();
    world.put(&world.home().join("args.json"), r#"{"path":"hello.txt","limit":1}"#);
    for script in [
        r#""$toolgate" call read '{"path":"hello.txt","limit":1}'"#,
        r#"echo '{"path":"hello.txt","limit":1}' | "$toolgate" call read -"#,
        r#""$toolgate" call read --args-file ~/args.json"#,
    ] {
        let said = world.shell(script);
        assert_eq!((said.code, said.out.as_str()), (0, "hello\n"), "{script}: {said:?}");
    }
    let said = world.shell(r#"printf '\377\376' | "$toolgate" call read -"#);
    assert_eq!(said.code, 2);
    assert!(said.err.contains("not valid UTF-8"), "{said:?}");
    let said = world.shell(r#"head -c 1000000 /dev/zero | tr '\0' '[' | "$toolgate" call read -"#);
    assert_eq!(said.code, 2);
    assert!(said.err.contains("recursion limit"), "{said:?}");
}

#[test]
fn json_is_the_exact_reply_and_the_same_on_success_and_failure() {
    let world = World::new();
    let fields =
        ["tool_call_id", "ok", "payload", "error", "artifacts", "enforced", "truncated", "redacted", "duration_ms"];
    for (args, ok) in [(json!({"path": "hello.txt"}), true), (json!({"path": "missing"}), false)] {
        let reply = world.call("read", args);
        let keys: Vec<&str> = reply.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(keys, fields);
        assert_eq!(reply["ok"], json!(ok));
    }
}

#[test]
fn a_refused_call_can_be_repeated_by_pasting_its_replay() {
    let world = World::new().file("it's $HOME.txt", "odd name\n");
    let reply = world.run(&["--json", "--ask", "tool=read", "call", "read", r#"{"path":"it's $HOME.txt"}"#]);
    assert_eq!(reply.code, 4);
    let replay = reply.json()["error"]["details"]["replay"].as_str().unwrap().to_owned();
    let again = world.shell(&format!("cd / && {replay}"));
    assert_eq!((again.code, again.out.as_str()), (0, "odd name\n"), "{replay}: {again:?}");

    let long = json!({ "content": format!("API_TOKEN=abcdef123456 {}", "x".repeat(5_000)) }).to_string();
    let reply = world.run(&["--json", "--ask", "tool=display", "call", "display", &long]);
    let replay = reply.json()["error"]["details"]["replay"].as_str().unwrap().to_owned();
    assert!(!reply.out.contains("abcdef123456"));
    let again = world.shell(&replay);
    assert_eq!(again.code, 0, "{replay}: {again:?}");
    assert!(again.err.contains("***REDACTED***") && !again.err.contains("abcdef123456"), "{again:?}");
}

#[test]
fn what_only_the_session_itself_can_do_has_no_replay() {
    let args = json!({ "action": "write", "process": "proc_1", "text": "make\n" }).to_string();
    let reply = World::new().run(&["--json", "--ask", "tool=process", "call", "process", &args]).json();
    assert_eq!(reply["error"]["code"], json!("approval_required"), "{reply}");
    assert!(reply["error"]["details"].get("replay").is_none(), "{reply}");
    assert!(reply["error"]["hint"].as_str().unwrap().contains("toolgate approvals"), "{reply}");
}

#[test]
fn what_was_cut_can_be_had_by_pasting_the_line_that_says_so() {
    let world = World::new();
    let said = world.run(&["call", "shell", r#"{"command":"seq 30000"}"#]);
    let (_, line) = said.err.split_once("complete output: ").unwrap_or_else(|| panic!("{said:?}"));
    let whole = world.shell(line);
    assert!(whole.code == 0 && whole.out.starts_with("1\n2\n3\n"), "{line}: {whole:?}");
}

#[test]
fn last_is_understood_wherever_a_run_or_a_change_is_named() {
    let world = World::new();
    world.call("write", json!({ "path": "new.txt", "content": "one\n" }));
    let said = world.run(&["call", "--run", "last", "edit", r#"{"path":"new.txt","find":"one","replace":"two"}"#]);
    assert_eq!(said.code, 0, "{said:?}");
    world.call("list", json!({}));
    let said = world.run(&["undo", "last"]);
    assert_eq!((said.code, world.read("new.txt").as_str()), (0, "one\n"), "{said:?}");
    let said = World::new().run(&["undo", "last"]);
    assert!(said.code == 2 && said.err.contains("Nothing is left to undo"), "{said:?}");
}

#[test]
fn a_result_without_a_form_of_its_own_is_shown_as_lines() {
    let world = World::new();
    assert_eq!(world.run(&["call", "process", r#"{"action":"list"}"#]).out, "processes: none\n");
    let said = world.run(&["call", "--approve", "delete", r#"{"path":"hello.txt"}"#]);
    assert_eq!(said.out, "path: hello.txt\nfiles: 1\n", "{said:?}");
}

#[test]
fn faults_name_what_would_be_right() {
    let world = World::new();
    for (args, words) in [
        (&["call", "process", r#"{"action":"signal","process":"p","signal":"BOGUS"}"#][..], r#"one of ["INT","TERM","#),
        (&["call", "shell", r#"{"command":"true","timeout_second":1}"#], "did you mean `timeout_seconds`?\n"),
        (&["call", "--permit", "net.connect=a.example", "shell", "{}"], "add it: `net.connect=a.example:443`"),
        (&["sandbox", "--connect", "a.example:99999", "--", "true"], "must be a number from 1 to 65535"),
        (&["sandbox", "--connect", "a.example:0", "--", "true"], "must be a number from 1 to 65535"),
    ] {
        let said = world.run(args);
        assert!(said.code == 2 && said.err.contains(words), "{words}: {said:?}");
    }
}

#[test]
fn a_person_at_a_terminal_is_asked_and_their_answer_counts() {
    let world = World::new();
    // `script` gives the program a terminal; what is typed comes through its standard input.
    let ask = |answer: &str| {
        let call = format!(r#"{PROGRAM} --ask tool=write call write '{{"path":"new.txt","content":"fresh\n"}}'"#);
        world.shell(&format!("printf '{answer}' | script -qec \"$(cat <<'END'\n{call}\nEND\n)\" /dev/null"))
    };
    let refused = ask("what?\\nn\\nrather not\\n");
    assert!(refused.out.contains("May this run?") && refused.out.contains("+fresh"), "{refused:?}");
    assert!(refused.out.contains("Please type one of the letters"), "{refused:?}");
    assert!(refused.out.contains("rather not"), "{refused:?}");
    assert!(!world.workspace().join("new.txt").exists());
    let granted = ask("y\\n");
    assert!(granted.out.contains("write new.txt"), "{granted:?}");
    assert_eq!(world.read("new.txt"), "fresh\n");
}

#[test]
fn a_person_at_a_terminal_sees_what_a_command_will_delete_and_may_end_the_run() {
    let world = World::new();
    let call = format!(r#"{PROGRAM} call shell '{{"command":"echo x; rm -f hello.txt"}}'"#);
    let said =
        world.shell(&format!("printf 'x\\nwrong place\\n' | script -qec \"$(cat <<'END'\n{call}\nEND\n)\" /dev/null"));
    let will: Vec<&str> =
        said.out.lines().filter_map(|line| line.trim().strip_prefix("will ")).map(str::trim).collect();
    assert!(will.contains(&"delete hello.txt"), "{said:?}");
    assert!(said.out.contains("aborted this run") && said.out.contains("wrong place"), "{said:?}");
    assert_eq!(said.code, 130, "{said:?}");
    assert!(world.workspace().join("hello.txt").exists());
    let events = std::fs::read_to_string(world.last_run().join("events.jsonl")).unwrap();
    assert!(events.contains(r#""kind":"run.aborted""#), "{events}");
}

#[test]
fn secrets_of_the_environment_are_never_shown() {
    let world = World::new().file("log.txt", "token is swordfish-9876\n");
    let said = world.shell(r#"MY_TOKEN=swordfish-9876 "$toolgate" call read '{"path":"log.txt"}'"#);
    assert_eq!(said.out, "token is ***REDACTED***\n", "{said:?}");
    assert!(said.err.contains("secrets were replaced"));
    let events = std::fs::read_to_string(world.last_run().join("events.jsonl")).unwrap();
    assert!(!events.contains("swordfish"));
}

#[test]
fn a_secret_in_a_file_name_is_shown_nowhere() {
    let secret = format!("ghp_{}", "a1B2c3D4e5F6".repeat(3));
    let named = |ending: &str| format!("{secret}{ending}");
    for (tool, args) in [
        ("list", json!({})),
        ("find", json!({ "pattern": "*.txt" })),
        ("grep", json!({ "pattern": "inside" })),
        ("read", json!({ "path": named(".missing") })),
        ("write", json!({ "path": named(".new"), "content": "x\n" })),
        ("move", json!({ "from": named(".txt"), "to": "plain.txt" })),
        ("delete", json!({ "path": named(".txt") })),
        ("shell", json!({ "command": "ls; touch \"x-$(ls | grep ghp)\"" })),
        ("shell", json!({ "command": format!("rm -f {secret}.txt") })),
    ] {
        let world = World::new().file(&named(".txt"), "inside\n");
        let said = world.run(&["--json", "call", tool, &args.to_string()]);
        assert!(!said.out.contains(&secret) && said.out.contains("***REDACTED***"), "{tool} {args}: {said:?}");
        let events = std::fs::read_to_string(world.last_run().join("events.jsonl")).unwrap();
        let is_shown = |line: &&str| line.contains(&secret) && !line.contains(r#""kind":"files.changing""#);
        let shown: Vec<&str> = events.lines().filter(is_shown).collect();
        assert!(shown.is_empty(), "{tool} {args}: {shown:?}");
    }
}

#[test]
fn when_the_disk_is_full_nothing_runs_and_nothing_is_lost() {
    let world = World::new();
    let said = world.shell(
        r#"unshare --user --map-root-user --mount sh -c '
            mount -t tmpfs -o size=400k tmpfs "$PWD" && cd "$PWD" && echo kept > a.txt
            "$toolgate" call read "{\"path\":\"a.txt\"}" || exit 90
            head -c 10000000 /dev/zero > filler 2>/dev/null
            "$toolgate" --json call write "{\"path\":\"a.txt\",\"content\":\"lost?\"}"; echo "exit $?"
            cat a.txt; rm filler; "$toolgate" audit verify; echo "verify $?"'"#,
    );
    assert!(said.out.starts_with("kept\n"), "{said:?}");
    assert!(!said.out.contains("lost?"), "{said:?}");
    assert!(said.out.contains("\nkept\n") && said.out.contains("verify 0"), "{said:?}");
    assert!(!said.out.contains("exit 0"), "{said:?}");
}

#[test]
fn an_administrators_file_cannot_be_loosened() {
    let world = World::new();
    world.put(&world.user_config(), "[[rules]]\ndecision = 'allow'\ntool = 'read'\n");
    let said = world.shell(
        r#"unshare --user --map-root-user --mount sh -c '
            mount -t tmpfs tmpfs /etc && mkdir /etc/toolgate
            printf "[[rules]]\ndecision = \"ask\"\ntool = \"read\"\n" > /etc/toolgate/config.toml
            "$toolgate" --allow tool=read call read "{\"path\":\"hello.txt\"}"; echo "ask $?"
            printf "[[rules]]\ndecision = \"deny\"\ntool = \"read\"\n" > /etc/toolgate/config.toml
            "$toolgate" --preset full call --approve read "{\"path\":\"hello.txt\"}"; echo "deny $?"'"#,
    );
    assert!(said.out.contains("ask 4") && said.out.contains("deny 3"), "{said:?}");
}

#[test]
fn a_call_is_recorded_with_the_arguments_that_it_came_with() {
    let world = World::new();
    assert_eq!(world.call("shell", json!({ "command": "true" }))["payload"]["exit_code"], json!(0));
    let events = std::fs::read_to_string(world.last_run().join("events.jsonl")).unwrap();
    assert!(events.contains(r#""args":{"command":"true"}"#), "{events}");
}

#[test]
fn a_call_that_runs_a_command_exits_as_the_command_does() {
    let world = World::new();
    for (command, code) in [("true", 0), ("exit 1", 1), ("exit 7", 7), ("kill -9 $$", 137)] {
        let args = json!({ "command": command }).to_string();
        let said = world.run(&["--json", "call", "shell", &args]);
        assert_eq!(said.code, code, "{command}: {said:?}");
        let reply = said.json();
        assert_eq!(
            (&reply["ok"], &reply["payload"]["exit_code"]),
            (&json!(true), &json!(code)),
            "the call did its work"
        );
    }
}

#[test]
fn the_preset_full_is_loud() {
    let world = World::new();
    let warning = "The preset `full` is in force: nobody is asked";
    let said = world.run(&["--preset", "full", "call", "read", r#"{"path":"hello.txt"}"#]);
    assert!(said.err.contains(warning), "{said:?}");
    assert!(!world.run(&["call", "read", r#"{"path":"hello.txt"}"#]).err.contains(warning));
    let doctor = world.run(&["--preset", "full", "doctor"]);
    assert!(doctor.out.contains(warning), "{doctor:?}");
    let json = world.run(&["--json", "--preset", "full", "call", "read", r#"{"path":"hello.txt"}"#]).json();
    assert_eq!(json["enforced"]["approvals"], "not_held", "{json}");
}

#[test]
fn what_a_command_deletes_is_among_what_it_will_do() {
    let world = World::new();
    let said = world.run(&["--json", "call", "shell", r#"{"command":"echo x; rm -f hello.txt"}"#]).json();
    let effects = &said["error"]["details"]["effects"];
    assert!(effects.to_string().contains(r#"{"kind":"delete","path":"hello.txt"}"#), "{said}");
}

/// What is shown as an example can be typed.
#[test]
fn every_tool_has_an_example_that_its_arguments_allow() {
    let world = World::new();
    let tools = world.run(&["--json", "tools", "--all"]);
    for line in tools.out.lines() {
        let tool: serde_json::Value = serde_json::from_str(line).unwrap();
        let name = tool["name"].as_str().unwrap();
        let shown = world.run(&["tools", name]).out;
        let example = shown.lines().find_map(|line| line.strip_prefix("Example: toolgate call ")).unwrap().to_owned();
        let args = example.split_once(' ').unwrap().1.trim_matches('\'').to_owned();
        let judged = world.run(&["policy", "explain", "--tool", name, &args]);
        assert!(judged.code != 2 && !judged.err.contains("invalid_args"), "{name}: {example}: {judged:?}");
        let is_told = ["todo_read"].contains(&name) || args != "{}";
        assert!(is_told, "{name}: {example}");
    }
}

#[test]
fn the_program_shows_how_a_tool_is_called() {
    let world = World::new().file("long.txt", "line\n".repeat(2_500));
    let bare = world.run(&["call", "read", "hello.txt"]);
    assert_eq!(bare.code, 2, "{bare:?}");
    assert!(bare.err.contains(r#"`toolgate call read '{"path":"hello.txt"}'`"#), "{bare:?}");
    let shown = world.run(&["tools", "edit"]);
    for words in
        ["ARGUMENT", "find", "required", r#"Example: toolgate call edit '{"path":"src/main.rs","find":"hello","#]
    {
        assert!(shown.out.contains(words), "{words}: {shown:?}");
    }
    assert_eq!(world.run(&["tools", "edti"]).code, 2);
    for (tool, args) in [("grep", r#"{"pattern":"nowhere"}"#), ("find", r#"{"pattern":"*.zzz"}"#)] {
        let found = world.run(&["call", tool, args]);
        assert!(found.out.is_empty() && found.err.contains("nothing was found; what `.gitignore` names"), "{found:?}");
    }
    let values = world.run(&["tools", "memory"]);
    assert!(values.out.contains("create, update, delete, search"), "the values of an argument are named: {values:?}");
    let page = world.run(&["call", "read", r#"{"path":"long.txt"}"#]);
    assert!(page.err.contains("stopped after line 2000 of 2500; continue with \"offset\": 2001"), "{}", page.err);
}
