//! Scripts of skills: real ones, in the real sandbox, through the gate.
#![allow(clippy::disallowed_methods, reason = "makes skills, and looks at what their scripts leave behind")]

use std::os::unix::fs::symlink;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use toolgate_contract::{ApprovalScope, Event, EventPayload, Reply};
use toolgate_runtime::ApprovalAnswer;
use toolgate_testkit::{
    CollectingSink, ScriptedApprover, TestWorkspace, processes_with, unique_sleep, wait_until_async,
};

const SKILL: &str = "---\nname: shopping\ndescription: Buys things.\n---\nTake a bag.\n";
const SCRIPTS: &str = ".agents/skills/shopping/scripts";

/// How long a script may run, in milliseconds.
const TIME: u64 = 100_000;

/// A world with a skill that has this script.
fn world(config: &str, name: &str, content: &str) -> TestWorkspace {
    let world = TestWorkspace::new(toolgate_tools::all(), config).confined();
    world.file(".agents/skills/shopping/SKILL.md", SKILL).file(&format!("{SCRIPTS}/{name}"), content);
    world.file("notes.md", "milk\n");
    world
}

async fn script(world: &TestWorkspace, args: Value) -> Reply {
    let mut whole = json!({ "skill": "shopping" });
    whole.as_object_mut().unwrap().extend(args.as_object().unwrap().clone());
    world.perform("script", whole).await
}

/// A script that has to run.
async fn ran(world: &TestWorkspace, args: Value) -> Value {
    let reply = script(world, args).await;
    assert!(reply.ok, "{:?}", reply.error);
    reply.payload.unwrap()
}

fn code(reply: &Reply) -> &str {
    reply.error.as_ref().map_or("ok", |error| error.code.as_str())
}

#[tokio::test(flavor = "multi_thread")]
async fn arguments_reach_a_script_as_they_are() {
    let world = world("", "say.sh", "for word in \"$@\"; do echo \"<$word>\"; done\n");
    let args = ["two words", "$(touch pwned)", "`id`", "*", "", "-n", "a\nb", "; exit 9", "'\"", "~", "A=1"];
    let said = ran(&world, json!({ "path": "scripts/say.sh", "args": args })).await;
    let expected: String = args.iter().map(|word| format!("<{word}>\n")).collect();
    assert_eq!((&said["exit_code"], &said["stdout"]), (&json!(0), &json!(expected)), "{said}");
    assert!(!world.path().join("pwned").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_has_a_directory_of_its_own_and_sees_nothing_else_of_the_record() {
    let look = "pwd; ls -A; ls workspace/.toolgate; cat workspace/.toolgate/runs/run_test/events.jsonl; echo more >> kept; \
                touch workspace/.toolgate/new; cat kept\n";
    let world = world("", "look.sh", look);
    let own = world.path().join(".toolgate/runs/run_test/sandbox/shopping").canonicalize();
    assert!(own.is_err(), "it is made when it is needed");
    assert!(world.path().join(".toolgate/runs/run_test/events.jsonl").exists(), "there is something to be seen");
    let said = ran(&world, json!({ "path": "scripts/look.sh" })).await;
    let own = world.path().join(".toolgate/runs/run_test/sandbox/shopping").canonicalize().unwrap();
    assert_eq!(said["stdout"], json!(format!("{}\nworkspace\nruns\nmore\n", own.display())), "{said}");
    assert!(said["stderr"].as_str().unwrap().contains("events.jsonl: No such file"), "{said}");
    assert!(!world.path().join(".toolgate/new").exists());
    let again = ran(&world, json!({ "path": "scripts/look.sh" })).await;
    assert!(again["stdout"].as_str().unwrap().ends_with("more\nmore\n"), "what it kept is there again: {again}");
    assert_eq!(std::fs::read_to_string(own.join("kept")).unwrap(), "more\nmore\n");
    assert!(!world.path().join("kept").exists(), "and not in the workspace");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_script_changes_in_the_workspace_can_be_taken_back() {
    let world = world("", "sum.py", "import sys\nopen('workspace/sum.txt', 'w').write(open(sys.argv[1]).read() * 2)\n");
    let yes = ApprovalAnswer::Granted { scope: ApprovalScope::Call, by: "ada".into() };
    let session = world.session().approved_by(Arc::new(ScriptedApprover::with([yes])));
    let args = json!({ "skill": "shopping", "path": "scripts/sum.py", "args": ["workspace/notes.md"] });
    let reply = world.perform_in(&session, "script", args).await;
    assert_eq!(reply.artifacts.files_changed, ["sum.txt"], "{reply:?}");
    assert_eq!(reply.artifacts.commands_run, ["shopping/scripts/sum.py workspace/notes.md"]);
    assert_eq!(std::fs::read_to_string(world.path().join("sum.txt")).unwrap(), "milk\nmilk\n");
    let undone = world.perform_in(&session, "undo", json!({ "call": reply.tool_call_id })).await;
    assert!(undone.ok && !world.path().join("sum.txt").exists(), "{undone:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_path_that_leaves_the_scripts_starts_nothing() {
    let world = world("", "ok.sh", "echo ok\n");
    let skill = world.path().join(".agents/skills/shopping");
    world.file("evil.sh", "echo evil\n").file(".agents/skills/shopping/evil.sh", "echo evil\n");
    world.file(".agents/skills/other/scripts/evil.sh", "echo evil\n");
    symlink("../evil.sh", skill.join("scripts/link.sh")).unwrap();
    symlink(world.path(), skill.join("scripts/directory")).unwrap();
    let absolute = world.path().join("evil.sh").display().to_string();
    for path in [
        "scripts/../evil.sh",
        "scripts/../../other/scripts/evil.sh",
        "../other/scripts/evil.sh",
        "evil.sh",
        "scripts/link.sh",
        "scripts/directory/evil.sh",
        absolute.as_str(),
    ] {
        let naively = std::process::Command::new("sh").arg(skill.join(path)).output().unwrap();
        assert_eq!(naively.stdout, b"evil\n", "it works where nobody looks: {path}");
        let reply = script(&world, json!({ "path": path })).await;
        assert_eq!(code(&reply), "path_outside_workspace", "{path}: {reply:?}");
    }
    assert_eq!(code(&script(&world, json!({ "path": "scripts/none.sh" })).await), "not_found");
    let elsewhere = json!({ "skill": "../skills/shopping", "path": "scripts/ok.sh" });
    assert_eq!(code(&world.perform("script", elsewhere).await), "not_found");
    assert_eq!(ran(&world, json!({ "path": "scripts/ok.sh" })).await["stdout"], json!("ok\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_is_judged_as_the_command_that_it_is() {
    let rule = |decision: &str| format!("[[rules]]\ndecision = '{decision}'\ncommand = ['shopping/scripts/ok.sh']");
    for (config, expected) in [
        (rule("deny"), "policy_denied"),
        (rule("ask"), "approval_required"),
        ("commands.deny = ['ok.sh']".into(), "policy_denied"),
        ("preset = 'read-only'".into(), "policy_denied"),
        ("tools.deny = ['script']".into(), "tool_not_allowed"),
        ("rules = [{ decision = 'deny', permission = 'proc.exec' }]".into(), "policy_denied"),
        ("[skills]\ndeny = ['shopping']".into(), "not_found"),
        ("rules = [{ decision = 'deny', path = '.agents/**' }]".into(), "not_found"),
        (String::new(), "ok"),
    ] {
        let reply = script(&world(&config, "ok.sh", "echo ok\n"), json!({ "path": "scripts/ok.sh" })).await;
        assert_eq!(code(&reply), expected, "{config}: {reply:?}");
    }
    let secret = script(&world("", "ok.sh", ""), json!({ "path": "scripts/ok.sh", "args": ["workspace/.env"] })).await;
    assert_eq!(code(&secret), "sensitive_path", "{secret:?}");
}

#[tokio::test]
async fn a_script_ends_with_its_code_and_at_the_latest_with_its_time() {
    let marker = unique_sleep();
    let content = format!("[ \"$1\" ] || exit 3\nsetsid sleep {marker} &\necho up\nsleep {marker}\n");
    let world = world("", "end.sh", &content);
    let failed = ran(&world, json!({ "path": "scripts/end.sh" })).await;
    assert_eq!((&failed["exit_code"], failed.get("timed_out")), (&json!(3), None), "{failed}");
    let sink = Arc::new(CollectingSink::default());
    let session = world.session().watched_by(sink.clone());
    // Once its output has passed, its time counts; once both of its processes run, all of that time passes at once.
    let is_output = |event: &Event| matches!(event.payload, EventPayload::ProcessOutput(_));
    let time_passes = async {
        let sleepers = format!("sleep\0{marker}");
        wait_until_async("its output has passed", || sink.0.lock().iter().any(is_output)).await;
        wait_until_async("both of its processes run", || processes_with(&sleepers).len() == 2).await;
        tokio::time::pause();
        tokio::time::advance(Duration::from_millis(TIME)).await;
        tokio::time::resume();
    };
    let args = json!({ "skill": "shopping", "path": "scripts/end.sh", "args": ["x"], "timeout_ms": TIME });
    let (late, ()) = tokio::join!(world.perform_in(&session, "script", args), time_passes);
    let late = late.payload.unwrap();
    assert_eq!((&late["exit_code"], &late["timed_out"]), (&json!(124), &json!(true)), "{late}");
    wait_until_async("everything that it started is gone", || processes_with(&marker).is_empty()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_nothing_can_start_is_refused_with_the_remedy() {
    let reply = script(&world("", "data", "just text\n"), json!({ "path": "scripts/data" })).await;
    let error = reply.error.unwrap();
    assert_eq!(error.code.as_str(), "not_a_file");
    assert!(error.hint.unwrap().contains("chmod +x"), "{}", error.message);
    for args in [json!(vec!["x"; 65]), json!(["x".repeat(5000)])] {
        let reply = script(&world("", "ok.sh", ""), json!({ "path": "scripts/ok.sh", "args": args })).await;
        assert_eq!(code(&reply), "invalid_args", "{reply:?}");
    }
}
