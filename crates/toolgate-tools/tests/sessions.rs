//! Commands as processes of a session: real ones, in the real sandbox, through the gate.
#![allow(clippy::disallowed_methods, reason = "looks at what processes leave behind")]

#[path = "sessions/load.rs"]
mod load;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use toolgate_contract::{CancellationToken, Event, EventPayload, Reply, Stream};
use toolgate_runtime::Session;
use toolgate_testkit::{CollectingSink, TestWorkspace, processes_with, unique_sleep, wait_until_async};

fn world(config: &str) -> TestWorkspace {
    TestWorkspace::new(toolgate_tools::all(), config).confined()
}

/// Makes a call that has to work.
async fn call(world: &TestWorkspace, session: &Session, tool: &str, args: Value) -> Value {
    let reply = world.perform_in(session, tool, args.clone()).await;
    assert!(reply.ok, "{tool} {args}: {:?}", reply.error);
    reply.payload.unwrap()
}

async fn shell(world: &TestWorkspace, session: &Session, args: Value) -> Value {
    call(world, session, "shell", args).await
}

/// Does something with a process.
async fn process(world: &TestWorkspace, session: &Session, started: &Value, action: &str, more: Value) -> Value {
    let mut args = json!({ "action": action, "process": started["process"] });
    args.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    call(world, session, "process", args).await
}

fn code(reply: &Reply) -> &str {
    reply.error.as_ref().map_or("ok", |error| error.code.as_str())
}

/// How many processes anywhere have the marker in their command line.
fn alive(marker: &str) -> usize {
    processes_with(marker).len()
}

/// Waits until no process has the marker in its command line.
async fn wait_until_gone(marker: &str) {
    wait_until_async(&format!("no process has `{marker}` in its command line"), || alive(marker) == 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_ends_in_time_is_answered_as_ever() {
    let world = world("");
    let session = world.session();
    let reply = shell(&world, &session, json!({ "command": "echo out; echo err >&2; read x; exit 3" })).await;
    assert_eq!(
        (&reply["exit_code"], &reply["stdout"], &reply["stderr"]),
        (&json!(3), &json!("out\n"), &json!("err\n"))
    );
    assert!(reply.get("process").is_none() && reply.get("running").is_none(), "{reply}");
    let list = call(&world, &session, "process", json!({ "action": "list" })).await;
    assert_eq!(list["processes"], json!([]), "nothing of it is left");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_reads_beyond_the_end_misses_nothing_that_comes_later() {
    let world = world("");
    let session = world.session();
    let command = "echo first; read go; echo second; read go";
    let started = shell(&world, &session, json!({ "command": command, "stdin": true, "yield_ms": 0 })).await;
    process(&world, &session, &started, "wait", json!({ "offset": 0, "pattern": "first\n", "timeout_ms": 60_000 }))
        .await;
    let far = json!({ "offset": 99_999, "stderr_offset": 99_999 });
    let beyond = process(&world, &session, &started, "read", far).await;
    assert_eq!((&beyond["next_offset"], &beyond["next_stderr_offset"]), (&json!(6), &json!(0)), "{beyond}");
    let typed = json!({ "text": "\n", "pattern": "second\n", "timeout_ms": 60_000 });
    let wrote = process(&world, &session, &started, "write", typed).await;
    assert_eq!(wrote["stdout"], json!("second\n"), "{wrote}");
    process(&world, &session, &started, "stop", json!({})).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_outlives_its_call_goes_on() {
    let world = world("");
    let session = world.session();
    let command = "echo first; read go; echo second; read go; echo oops >&2; exit 7";
    let started = shell(&world, &session, json!({ "command": command, "stdin": true, "yield_ms": 300 })).await;
    assert_eq!((&started["running"], &started["exit_code"]), (&json!(true), &Value::Null), "{started}");
    process(&world, &session, &started, "wait", json!({ "offset": 0, "pattern": "first", "timeout_ms": 60_000 })).await;
    let wait = process(&world, &session, &started, "wait", json!({ "pattern": "fir.t" })).await;
    assert_eq!(
        (&wait["heard"], &wait["matched"], &wait["stdout"]),
        (&json!("pattern"), &json!("first"), &json!("")),
        "it counts though it was shown before"
    );
    let go = json!({ "text": "go\n", "pattern": "second", "timeout_ms": 60_000 });
    let wrote = process(&world, &session, &started, "write", go).await;
    assert_eq!(
        (&wrote["stdout"], &wrote["next_offset"]),
        (&json!("second\n"), &json!(13)),
        "only what is new: {wrote}"
    );
    let wait = process(&world, &session, &started, "wait", json!({ "pattern": "first", "timeout_ms": 1 })).await;
    assert_eq!(wait["heard"], json!("nothing"), "that was before something was written to it");
    let read = process(&world, &session, &started, "read", json!({ "offset": 6 })).await;
    assert_eq!(read["stdout"], json!("second\n"));
    process(&world, &session, &started, "write", json!({ "close": true })).await;
    let ended = process(&world, &session, &started, "wait", json!({ "pattern": "never", "timeout_ms": 60_000 })).await;
    assert_eq!((&ended["heard"], &ended["exit_code"], &ended["running"]), (&json!("exit"), &json!(7), &json!(false)));
    let read = process(&world, &session, &started, "read", json!({ "offset": 0, "stderr_offset": 0 })).await;
    assert_eq!((&read["stdout"], &read["stderr"]), (&json!("first\nsecond\n"), &json!("oops\n")));
    let is_end = |payload: &EventPayload| matches!(payload, EventPayload::ProcessEnded { exit_code: 7, .. });
    assert!(world.events().iter().any(|event| is_end(&event.payload)), "its end is on record");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_terminal_shows_a_screen_and_takes_keys() {
    let world = world("");
    let session = world.session();
    let args = json!({ "command": "python3 -q", "tty": true, "background": true, "rows": 10, "columns": 60 });
    let started = shell(&world, &session, args).await;
    let ready =
        process(&world, &session, &started, "wait", json!({ "offset": 0, "pattern": ">>> $", "timeout_ms": 60_000 }))
            .await;
    assert_eq!((&ready["heard"], &ready["screen"]), (&json!("pattern"), &json!(">>>")), "{ready}");
    assert!(ready.get("stdout").is_none(), "the raw text only when asked: {ready}");
    let sum = json!({ "text": "print(6 *", "keys": ["space", "7", ")", "enter"] });
    let refused = world
        .perform_in(
            &session,
            "process",
            json!({ "action": "write", "process": started["process"], "keys": sum["keys"] }),
        )
        .await;
    assert_eq!(code(&refused), "invalid_args", "letters are text, not keys");
    let sum = json!({ "text": "print(6 * 7)", "keys": ["enter"], "pattern": "(?s)42.*>>> $", "timeout_ms": 60_000, "raw": true });
    let sum = process(&world, &session, &started, "write", sum).await;
    assert!(sum["screen"].as_str().unwrap().contains(">>> print(6 * 7)\n42"), "{sum}");
    assert!(sum["stdout"].as_str().unwrap().contains("42\r\n"), "{sum}");
    let size = json!({ "text": "import os; print(*os.get_terminal_size())\r", "pattern": "(?s)60 10.*>>> $", "timeout_ms": 60_000 });
    assert_eq!(process(&world, &session, &started, "write", size).await["heard"], json!("pattern"));
    let loops = "while [print(3 * 'spin')]: import time; time.sleep(600)\r\r";
    let loops = json!({ "text": loops, "pattern": "spinspinspin", "timeout_ms": 60_000 });
    assert_eq!(process(&world, &session, &started, "write", loops).await["heard"], json!("pattern"));
    // Once it asks again: what is typed while the terminal is between two modes may mean something else.
    let stopped = json!({ "keys": ["ctrl-c"], "pattern": "(?s)KeyboardInterrupt.*>>> $", "timeout_ms": 60_000 });
    assert_eq!(process(&world, &session, &started, "write", stopped).await["heard"], json!("pattern"));
    let left = json!({ "keys": ["ctrl-d"], "pattern": "never", "timeout_ms": 60_000 });
    let left = process(&world, &session, &started, "write", left).await;
    assert_eq!((&left["heard"], &left["running"]), (&json!("exit"), &json!(false)), "{left}");
}

#[tokio::test(flavor = "multi_thread")]
async fn signals_reach_it_and_stopping_leaves_nothing() {
    let world = world("");
    let session = world.session();
    let marker = unique_sleep();
    let command = format!("trap 'echo caught' USR1; setsid sleep {marker} & echo up; while :; do sleep 0.05; done");
    let started = shell(&world, &session, json!({ "command": command, "background": true })).await;
    process(&world, &session, &started, "wait", json!({ "offset": 0, "pattern": "up", "timeout_ms": 60_000 })).await;
    process(&world, &session, &started, "signal", json!({ "signal": "USR1" })).await;
    let caught =
        process(&world, &session, &started, "wait", json!({ "offset": 0, "pattern": "caught", "timeout_ms": 60_000 }))
            .await;
    assert_eq!(caught["heard"], json!("pattern"), "{caught}");
    assert!(alive(&marker) > 0);
    let stopped = process(&world, &session, &started, "stop", json!({})).await;
    assert_eq!((&stopped["running"], &stopped["exit_code"]), (&json!(false), &json!(137)), "{stopped}");
    assert_eq!(alive(&marker), 0, "gone once the reply says so");
    let again = json!({ "action": "signal", "process": started["process"], "signal": "TERM" });
    assert_eq!(code(&world.perform_in(&session, "process", again).await), "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handle_is_worth_nothing_in_another_session() {
    let world = world("");
    let (mine, other) = (world.session(), world.session());
    let started = shell(&world, &mine, json!({ "command": "cat", "stdin": true, "background": true })).await;
    for action in ["read", "wait", "write", "signal", "stop"] {
        let args = json!({ "action": action, "process": started["process"], "text": "x", "signal": "KILL" });
        assert_eq!(code(&world.perform_in(&other, "process", args).await), "not_found", "{action}");
    }
    let list = call(&world, &other, "process", json!({ "action": "list" })).await;
    assert_eq!(list["processes"], json!([]));
    let list = call(&world, &mine, "process", json!({ "action": "list" })).await;
    assert_eq!((&list["processes"][0]["command"], &list["processes"][0]["running"]), (&json!("cat"), &json!(true)));
}

#[tokio::test(flavor = "multi_thread")]
async fn too_many_processes_are_refused_until_one_ends() {
    let world = world("[processes]\nmost = 2");
    let session = world.session();
    let sleep = json!({ "command": "sleep 600", "background": true });
    let first = shell(&world, &session, sleep.clone()).await;
    let second = shell(&world, &session, sleep.clone()).await;
    let refused = world.perform_in(&session, "shell", json!({ "command": "true" })).await;
    assert_eq!(code(&refused), "limit_reached");
    let hint = refused.error.unwrap().hint.unwrap();
    let running = [&first, &second].map(|started| started["process"].as_str().unwrap());
    assert_eq!(hint, format!("Stop one that is no longer needed. Running are `{}`, `{}`.", running[0], running[1]));
    process(&world, &session, &first, "stop", json!({})).await;
    shell(&world, &session, json!({ "command": "true" })).await;
}

#[tokio::test]
async fn time_goes_on_counting_after_the_call() {
    let world = world("[processes]\ntimeout_seconds = 500");
    let session = world.session();
    let marker = unique_sleep();
    let slow = json!({ "command": format!("echo begun; sleep {marker}"), "yield_ms": 0, "timeout_seconds": 400 });
    let started = shell(&world, &session, slow).await;
    assert_eq!(started["running"], json!(true), "{started}");
    let begun = json!({ "offset": 0, "pattern": "begun", "timeout_ms": 60_000 });
    assert_eq!(process(&world, &session, &started, "wait", begun).await["heard"], json!("pattern"));
    // All of its time passes at once.
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(400)).await;
    tokio::time::resume();
    let ended = process(&world, &session, &started, "wait", json!({ "pattern": "never", "timeout_ms": 60_000 })).await;
    assert_eq!((&ended["exit_code"], &ended["timed_out"]), (&json!(124), &json!(true)), "{ended}");
    assert_eq!(alive(&marker), 0);
    let too_long = json!({ "command": "true", "background": true, "timeout_seconds": 501 });
    assert_eq!(code(&world.perform_in(&session, "shell", too_long).await), "invalid_args");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_kills_what_its_call_waits_for_and_nothing_that_went_on() {
    let world = world("");
    let session = world.session();
    let (waited, gone_on) = (unique_sleep(), unique_sleep());
    let started = shell(&world, &session, json!({ "command": format!("sleep {gone_on}"), "background": true })).await;
    let cancel = CancellationToken::new();
    let args = json!({ "command": format!("setsid sleep {waited} & sleep {waited}") });
    let waiting = world.gate.perform(world.call("shell", args), &session, cancel.clone());
    let cancelling = async {
        wait_until_async("both processes of the command run", || alive(&format!("sleep\0{waited}")) == 2).await;
        cancel.cancel();
    };
    let (reply, ()) = tokio::join!(waiting, cancelling);
    assert_eq!(code(&reply), "cancelled");
    wait_until_gone(&waited).await;
    assert_eq!(alive(&gone_on), 1, "it belongs to the session");
    assert_eq!(process(&world, &session, &started, "read", json!({})).await["running"], json!(true));
    drop(session);
    // And ends with it.
    wait_until_gone(&gone_on).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_a_session_waits_until_all_is_gone_and_on_record() {
    let world = world("");
    let session = world.session();
    let marker = unique_sleep();
    let command = format!("trap '' TERM; setsid sleep {marker} & sleep {marker}; sleep {marker}");
    shell(&world, &session, json!({ "command": command, "background": true })).await;
    session.end().await;
    assert_eq!(alive(&marker), 0);
    assert!(world.trail().contains(&"process.ended".to_owned()), "{:?}", world.trail());
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_are_replaced_across_pieces_in_every_form_of_output() {
    let world = world("");
    let sink = Arc::new(CollectingSink::default());
    let session = world.session().watched_by(sink.clone());
    world.file("notes.txt", "a correct-horse-battery b\n");
    let command = "head -c 12 notes.txt; read go; tail -c +13 notes.txt; cat > /dev/null";
    let started = shell(&world, &session, json!({ "command": command, "stdin": true, "background": true })).await;
    let is_first = |event: &Event| matches!(&event.payload, EventPayload::ProcessOutput(piece) if piece.text == "a ");
    wait_until_async("the first piece has passed", || sink.0.lock().iter().any(is_first)).await;
    let begun = process(&world, &session, &started, "read", json!({ "offset": 0 })).await;
    assert_eq!((&begun["stdout"], &begun["unfinished"]), (&json!("a "), &json!("***REDACTED***")), "{begun}");
    let rest = json!({ "text": "\n", "pattern": "b\n", "timeout_ms": 60_000 });
    process(&world, &session, &started, "write", rest).await;
    let read =
        process(&world, &session, &started, "wait", json!({ "offset": 0, "pattern": "b\n", "timeout_ms": 60_000 }))
            .await;
    assert_eq!(read["stdout"], json!("a ***REDACTED*** b\n"), "{read}");
    process(&world, &session, &started, "stop", json!({})).await;
    let seen = format!("{:?} {:?}", sink.0.lock(), world.events());
    assert!(!seen.contains("rse-battery") && !seen.contains("correct-ho"), "{seen}");
    let tty =
        json!({ "command": "head -c 12 notes.txt; tail -c +13 notes.txt; sleep 600", "tty": true, "yield_ms": 500 });
    let started = shell(&world, &session, tty).await;
    let screen =
        process(&world, &session, &started, "wait", json!({ "offset": 0, "pattern": "RED", "timeout_ms": 60_000 }))
            .await;
    assert_eq!(screen["screen"], json!("a ***REDACTED*** b"), "{screen}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_sees_a_hidden_file_under_none_of_its_names() {
    let world = world("");
    world.file(".env", "the word is tangerine\n").file("other.txt", "an ordinary file\n");
    let path = |name: &str| world.path().join(name);
    std::fs::hard_link(path(".env"), path("notes.txt")).unwrap();
    std::fs::hard_link(path("other.txt"), path("another.txt")).unwrap();
    let seen = shell(&world, &world.session(), json!({ "command": "cat notes.txt another.txt; true" })).await;
    let seen = seen.to_string();
    assert!(seen.contains("an ordinary file") && !seen.contains("tangerine"), "{seen}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_command_writes_passes_by_while_it_runs_and_is_not_on_record() {
    let world = world("");
    let sink = Arc::new(CollectingSink::default());
    let session = world.session().watched_by(sink.clone());
    let args = json!({ "command": "echo out; echo err >&2; read go; echo late", "stdin": true, "yield_ms": 300 });
    let started = shell(&world, &session, args).await;
    process(&world, &session, &started, "write", json!({ "text": "go\n", "pattern": "late", "timeout_ms": 60_000 }))
        .await;
    process(&world, &session, &started, "stop", json!({})).await;
    let passed = |stream: Stream| -> String {
        let events = sink.0.lock();
        let texts = events.iter().filter_map(|event| match &event.payload {
            EventPayload::ProcessOutput(output) if output.stream == stream => Some(output.text.clone()),
            _ => None,
        });
        texts.collect()
    };
    assert_eq!((passed(Stream::Stdout).as_str(), passed(Stream::Stderr).as_str()), ("out\nlate\n", "err\n"));
    assert!(!world.trail().contains(&"process.output".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_megabytes_are_kept_whole_with_little_memory() {
    let world = world("");
    let session = world.session();
    let before = resident_kilobytes();
    let line = "a line of sixty-three characters, so that each is sixty-four....";
    let command = format!("yes '{}' | head -n 1638400; echo done", &line[..63]);
    let reply = world
        .perform_in(&session, "shell", json!({ "command": command, "yield_ms": 600_000, "timeout_seconds": 600 }))
        .await;
    let grown = resident_kilobytes().saturating_sub(before);
    assert!(reply.ok, "{:?}", reply.error);
    let truncated = reply.truncated.clone().unwrap();
    let payload = reply.payload.unwrap();
    let shown = payload["stdout"].as_str().unwrap();
    assert!(shown.len() < 60_000 && shown.ends_with("done\n") && shown.contains("has all of it"), "{}", shown.len());
    let kept_lines = shown.matches(&line[..63]).count() as u64 + 1;
    assert_eq!(truncated.lines, 1_638_401 - kept_lines);
    let artifact = &reply.artifacts.refs[0];
    assert_eq!((artifact.bytes, artifact.lines), (100 * 1024 * 1024 + 5, Some(1_638_401)));
    let last = call(&world, &session, "artifact", json!({ "id": artifact.id, "offset": 1_638_401 })).await;
    assert_eq!(last["content"], json!("done\n"));
    assert!(grown < 24 * 1024, "{grown} KiB more for 100 MiB");
}

fn resident_kilobytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_writes_without_end_is_stopped_and_what_it_wrote_is_kept() {
    let world = world("[processes]\noutput_bytes = 2000000");
    let session = world.session();
    let reply = shell(&world, &session, json!({ "command": "yes", "yield_ms": 300_000 })).await;
    assert_eq!((&reply["output_limit"], &reply["exit_code"]), (&json!(true), &json!(137)), "{reply}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_written_is_judged_as_a_command() {
    let world = world("[commands]\ndeny = ['terraform']");
    let session = world.session();
    let started = shell(&world, &session, json!({ "command": "bash", "stdin": true, "background": true })).await;
    for (text, expected) in [
        ("terraform apply\n", "policy_denied"),
        ("cat .env\n", "sensitive_path"),
        ("git push\n", "approval_required"),
        ("echo hello\n", "ok"),
    ] {
        let args = json!({ "action": "write", "process": started["process"], "text": text, "timeout_ms": 100 });
        assert_eq!(code(&world.perform_in(&session, "process", args).await), expected, "{text}");
    }
    let read_only = TestWorkspace::new(toolgate_tools::all(), "preset = 'read-only'").confined();
    let session = read_only.session();
    let started = shell(&read_only, &session, json!({ "command": "cat", "stdin": true, "background": true })).await;
    process(&read_only, &session, &started, "read", json!({})).await;
    let args = json!({ "action": "write", "process": started["process"], "text": "hello\n" });
    assert_eq!(code(&read_only.perform_in(&session, "process", args).await), "policy_denied");
    process(&read_only, &session, &started, "stop", json!({})).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_in_a_command_or_in_what_is_typed_is_not_on_record() {
    let world = world("");
    let session = world.session();
    let command = "echo correct-horse-battery | wc -c; cat > /dev/null";
    let started = shell(&world, &session, json!({ "command": command, "stdin": true, "background": true })).await;
    let text = json!({ "text": "correct-horse-battery\n", "timeout_ms": 100 });
    process(&world, &session, &started, "write", text).await;
    let list = call(&world, &session, "process", json!({ "action": "list" })).await;
    let seen = format!("{list} {}", serde_json::to_string(&world.events()).unwrap());
    assert!(!seen.contains("correct-horse-battery") && seen.contains("***REDACTED***"), "{seen}");
}
