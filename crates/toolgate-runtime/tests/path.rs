//! Every way in which a call can end: each decision and each kind of failure, with the reply *and* the recorded events.
#![allow(clippy::disallowed_methods, reason = "tests look at files of their own")]

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::{Value, json};
use toolgate_contract::{ApprovalScope, CancellationToken, ErrorCode, EventPayload, Reply, erase};
use toolgate_journal::Recorder;
use toolgate_runtime::{ApprovalAnswer, Session};
use toolgate_testkit::*;

const PAIR_OK: &[&str] = &["tool_call.started", "tool_call.completed"];
const PAIR_FAILED: &[&str] = &["tool_call.started", "tool_call.failed"];
const ASKED_FAILED: &[&str] = &["approval_required", "tool_call.started", "tool_call.failed"];

const ASK_WRITES: &str = "[[rules]]\ndecision = 'ask'\npermission = 'fs.write'\nreason = 'Changes need a look.'";
const DENY_WRITES: &str = "[[rules]]\ndecision = 'deny'\npermission = 'fs.write'\nreason = 'Hands off.'";

/// A world with every tool of the test kit and the built-in ones, and the counter of the one that writes.
fn world(config: &str) -> (TestWorkspace, WritingTool) {
    let writes = WritingTool::default();
    let mut tools = toolgate_tools::all();
    tools.extend([
        erase(writes.clone()),
        erase(PanickingTool),
        erase(FailingTool),
        erase(SleepingTool),
        erase(UndeclaredEffectTool),
        erase(UndeclaredPermissionTool),
        erase(LongOutputTool),
        erase(SecretLeakingTool),
    ]);
    let world = TestWorkspace::new(tools, config);
    world.file("a.txt", "one\ntwo\n");
    (world, writes)
}

fn code(reply: &Reply) -> Option<ErrorCode> {
    assert_eq!(reply.ok, reply.error.is_none(), "ok and error agree");
    assert_eq!(reply.ok, reply.payload.is_some(), "ok and payload agree");
    if let Some(error) = &reply.error {
        assert!(!error.message.is_empty() && error.hint.is_some(), "an error says what and what next: {error:?}");
    }
    reply.error.as_ref().map(|error| error.code)
}

#[tokio::test]
async fn every_way_to_end_leaves_its_reply_and_its_trail() {
    // Configuration, tool, arguments, how it ends, what is recorded.
    type Row = (&'static str, &'static str, Value, Option<ErrorCode>, &'static [&'static str]);
    let table: Vec<Row> = vec![
        ("", "read", json!({"path": "a.txt"}), None, PAIR_OK),
        ("", "writes", json!({"path": "a.txt"}), None, PAIR_OK),
        ("", "nothing", json!({}), Some(ErrorCode::UnknownTool), PAIR_FAILED),
        ("", "", json!({}), Some(ErrorCode::UnknownTool), PAIR_FAILED),
        ("", "read", json!({"pat": "a.txt"}), Some(ErrorCode::InvalidArgs), PAIR_FAILED),
        ("", "read", json!("a.txt"), Some(ErrorCode::InvalidArgs), PAIR_FAILED),
        ("", "read", json!({"path": "../x"}), Some(ErrorCode::PathOutsideWorkspace), PAIR_FAILED),
        ("", "read", json!({"path": ".env"}), Some(ErrorCode::SensitivePath), PAIR_FAILED),
        ("", "read", json!({"path": "missing"}), Some(ErrorCode::NotFound), PAIR_FAILED),
        (DENY_WRITES, "writes", json!({"path": "a.txt"}), Some(ErrorCode::PolicyDenied), PAIR_FAILED),
        (ASK_WRITES, "writes", json!({"path": "a.txt"}), Some(ErrorCode::ApprovalRequired), ASKED_FAILED),
        ("preset = 'read-only'", "writes", json!({"path": "a.txt"}), Some(ErrorCode::PolicyDenied), PAIR_FAILED),
        ("[tools]\nallow = ['list']", "read", json!({"path": "a.txt"}), Some(ErrorCode::ToolNotAllowed), PAIR_FAILED),
        ("", "fails", json!({}), Some(ErrorCode::NoMatch), PAIR_FAILED),
        ("", "panics", json!({}), Some(ErrorCode::Internal), PAIR_FAILED),
        ("", "liar", json!({"path": "a.txt"}), Some(ErrorCode::Internal), PAIR_FAILED),
        ("", "undeclared", json!({"path": "a.txt"}), Some(ErrorCode::Internal), PAIR_FAILED),
    ];
    for (config, tool, args, expected, trail) in table {
        let (world, writes) = world(config);
        let reply = world.perform(tool, args.clone()).await;
        assert_eq!(code(&reply), expected, "{tool} {args} under {config:?}: {reply:?}");
        assert_eq!(world.trail(), trail, "{tool} {args}");
        let ran = writes.0.load(Ordering::SeqCst);
        assert_eq!(ran, usize::from(tool == "writes" && expected.is_none()), "{tool} ran only if it might");
    }
}

#[tokio::test]
async fn a_yes_is_recorded_and_covers_what_it_says() {
    for (scope, asks_again) in
        [(ApprovalScope::Call, true), (ApprovalScope::Run, false), (ApprovalScope::Session, false)]
    {
        let (world, writes) = world(ASK_WRITES);
        let approver = Arc::new(ScriptedApprover::grants(scope));
        let session = world.session().approved_by(approver.clone());
        let first = world.perform_in(&session, "writes", json!({"path": "a.txt"})).await;
        assert_eq!(code(&first), None);
        assert_eq!(world.trail()[..2], ["approval_required", "approval_granted"]);
        assert_eq!(world.trail()[2..], *PAIR_OK);

        let again = world.perform_in(&session, "writes", json!({"path": "./a.txt"})).await;
        assert_eq!(again.ok, !asks_again, "{scope:?} asks again: {asks_again}");
        let other = world.perform_in(&session, "writes", json!({"path": "b.txt"})).await;
        assert_eq!(code(&other), Some(ErrorCode::ApprovalRequired), "another file is another question");
        assert_eq!(writes.0.load(Ordering::SeqCst), if asks_again { 1 } else { 2 });

        let later = world.session();
        let reply = world.perform_in(&later, "writes", json!({"path": "a.txt"})).await;
        assert_eq!(reply.ok, !asks_again, "{scope:?} outlives the process as its scope says");
    }
}

#[tokio::test]
async fn a_yes_ends_with_its_session_its_time_or_when_it_is_revoked() {
    const HOURS: i64 = 60 * 60;
    let days = 24 * HOURS;
    for (scope, hours_pass) in
        [(ApprovalScope::Run, 12 * HOURS), (ApprovalScope::Session, 12 * HOURS), (ApprovalScope::Always, 30 * days)]
    {
        let (world, _) = world(ASK_WRITES);
        let yes = || ApprovalAnswer::Granted { scope, by: "ada".into() };
        let session = world.session().approved_by(Arc::new(ScriptedApprover::with([yes(), yes(), yes()])));
        let silent = world.session();
        let granted = async |session: &Session| {
            assert!(world.perform_in(session, "writes", json!({"path": "a.txt"})).await.ok);
            assert!(world.perform_in(&silent, "writes", json!({"path": "a.txt"})).await.ok, "{scope:?} is granted");
        };
        let asks = async |why: &str| {
            let reply = world.perform_in(&silent, "writes", json!({"path": "a.txt"})).await;
            assert_eq!(code(&reply), Some(ErrorCode::ApprovalRequired), "{scope:?} {why}");
        };
        granted(&session).await;
        world.clock.pass(hours_pass - 1);
        granted(&silent).await;
        world.clock.pass(1);
        asks("has expired").await;

        granted(&session).await;
        world.grants.as_ref().unwrap().remove(|_| true).unwrap();
        asks("was revoked, in a session that runs").await;

        granted(&session).await;
        session.end().await;
        match scope {
            ApprovalScope::Always => granted(&silent).await,
            _ => asks("ended with its session").await,
        }
    }
}

#[tokio::test]
async fn whoever_continues_a_run_is_not_in_its_session() {
    let (world, _) = world(ASK_WRITES);
    let session = world.session().approved_by(Arc::new(ScriptedApprover::grants(ApprovalScope::Session)));
    assert!(world.perform_in(&session, "writes", json!({"path": "a.txt"})).await.ok);
    let continued = world.session().waiting();
    let reply = world.perform_in(&continued, "writes", json!({"path": "a.txt"})).await;
    assert_eq!(code(&reply), Some(ErrorCode::ApprovalRequired));
}

#[tokio::test]
async fn the_person_is_shown_what_matters() {
    let (world, _) = world(ASK_WRITES);
    let approver = Arc::new(ScriptedApprover::denies());
    let session = world.session().approved_by(approver.clone());
    let mut call = world.call("writes", json!({"path": "a.txt"}));
    call.justification = Some("my password=hunter2 is needed".into());
    let reply = world.gate.perform(call, &session, CancellationToken::new()).await;
    assert_eq!(code(&reply), Some(ErrorCode::ApprovalDenied));
    assert!(reply.error.unwrap().message.contains("not today"), "the person's words reach the model");
    assert_eq!(world.trail(), ["approval_required", "approval_denied", "tool_call.started", "tool_call.failed"]);

    let asked = approver.asked().remove(0);
    assert_eq!(asked.reason, "Changes need a look.");
    assert_eq!(asked.preview.as_deref(), Some("-one\n-two\n+new\n"));
    assert!(!asked.justification.unwrap().contains("hunter2"));
    let replay = format!(
        r#"toolgate --workspace {} call --approve --run {} writes '{{"path":"a.txt"}}'"#,
        world.path().display(),
        session.run
    );
    assert_eq!(asked.replay, Some(replay));
    let scopes: Vec<ApprovalScope> = asked.scopes.iter().map(|offer| offer.scope).collect();
    assert_eq!(scopes, [ApprovalScope::Call, ApprovalScope::Run, ApprovalScope::Session, ApprovalScope::Always]);
    let grants: Vec<&str> = asked.scopes.iter().map(|offer| offer.grants.as_str()).collect();
    let always = format!(
        "`writes` may write a.txt, in every session of this workspace ({}), until 2023-12-14 22:13 UTC (30 days)",
        world.path().canonicalize().unwrap().display()
    );
    assert_eq!(
        grants,
        [
            "this one call",
            "`writes` may write a.txt, until this run ends, after 12 hours at the latest",
            "`writes` may write a.txt, until this session ends, after 12 hours at the latest",
            &always,
        ]
    );
}

#[tokio::test]
async fn a_repeated_id_is_refused_and_leaves_the_first_call_as_it_is() {
    let (world, writes) = world("");
    let call = world.call("writes", json!({"path": "a.txt"}));
    let session = world.session();
    assert!(world.gate.perform(call.clone(), &session, CancellationToken::new()).await.ok);
    for session in [&session, &world.session()] {
        let mut repeated = world.call("writes", json!({"path": "b.txt"}));
        repeated.tool_call_id.clone_from(&call.tool_call_id);
        let reply = world.gate.perform(repeated, session, CancellationToken::new()).await;
        assert_eq!(code(&reply), Some(ErrorCode::InvalidArgs));
        let error = reply.error.unwrap();
        assert!(error.message.contains(&call.tool_call_id) && error.message.contains("was not made"), "{error}");
        assert!(error.hint.unwrap().contains("toolgate runs tree run_test"));
    }
    assert_eq!(writes.0.load(Ordering::SeqCst), 1);
    assert_eq!(world.trail()[..2], *PAIR_OK);
    assert_eq!(world.trail()[2..], ["request.refused", "request.refused"], "its events aren't those of a call");
    let refused = world.events().into_iter().skip(2).all(|event| event.tool_call_id.is_none());
    assert!(refused, "and don't have the id of the first one");
}

#[tokio::test]
async fn nobody_is_asked_about_a_call_that_cannot_succeed() {
    let config = "[[rules]]\ndecision = 'ask'\ntool = 'delete'\n[[rules]]\ndecision = 'ask'\npermission = 'fs.write'";
    let (world, _) = world(config);
    world.file("d/b.txt", "b");
    for (tool, args, expected) in [
        ("delete", json!({"path": "missing"}), ErrorCode::NotFound),
        ("delete", json!({"path": "d"}), ErrorCode::NotAFile),
        ("move", json!({"from": "missing", "to": "x"}), ErrorCode::NotFound),
        ("move", json!({"from": "a.txt", "to": "d/b.txt"}), ErrorCode::InvalidArgs),
        ("edit", json!({"path": "missing", "find": "a", "replace": "b"}), ErrorCode::NotFound),
        ("edit", json!({"path": "a.txt", "find": "nowhere", "replace": "b"}), ErrorCode::NoMatch),
        ("write", json!({"path": "d", "content": ""}), ErrorCode::NotAFile),
        ("patch", json!({"patch": "*** Begin Patch\n*** Delete File: missing\n*** End Patch\n"}), ErrorCode::NotFound),
    ] {
        let approver = Arc::new(ScriptedApprover::grants(ApprovalScope::Call));
        let session = world.session().approved_by(approver.clone());
        let reply = world.perform_in(&session, tool, args.clone()).await;
        assert_eq!(code(&reply), Some(expected), "{tool} {args}: {reply:?}");
        assert!(approver.asked().is_empty(), "{tool} {args}");
    }
}

#[tokio::test]
async fn what_may_only_be_read_after_an_approval_is_not_told_before() {
    let (world, _) = world("[[rules]]\ndecision = 'ask'\npath = 'a.txt'");
    let args = json!({"path": "a.txt", "find": "tow", "replace": "b"});
    let reply = world.perform("edit", args).await;
    assert_eq!(code(&reply), Some(ErrorCode::ApprovalRequired), "the error would show the nearest text: {reply:?}");
}

#[tokio::test]
async fn a_person_sees_what_is_deleted_and_moved() {
    let (world, _) = world("[[rules]]\ndecision = 'ask'\npermission = 'fs.write'");
    world.file("build/a.o", vec![b'x'; 3400]).file("build/deep/b.o", "1").file("old.txt", "old");
    let shown = async |tool: &str, args: Value| {
        let approver = Arc::new(ScriptedApprover::denies());
        let session = world.session().approved_by(approver.clone());
        world.perform_in(&session, tool, args).await;
        approver.asked().remove(0).preview.unwrap_or_default()
    };
    assert_eq!(
        shown("delete", json!({"path": "build", "recursive": true})).await,
        "build: 2 files in 2 directories, 3.4 kB; `undo` brings it back\n-build/a.o (3.4 kB)\n-build/deep/b.o (1 byte)\n"
    );
    assert_eq!(
        shown("delete", json!({"path": "a.txt"})).await,
        "a.txt: 1 file, 8 bytes; `undo` brings it back\n-a.txt (8 bytes)\n"
    );
    assert_eq!(
        shown("move", json!({"from": "a.txt", "to": "old.txt", "overwrite": true})).await,
        "a.txt → old.txt (8 bytes)\n-old.txt as it is now (3 bytes); `undo` brings it back\n"
    );
    assert_eq!(shown("move", json!({"from": "a.txt", "to": "new/b.txt"})).await, "a.txt → new/b.txt (8 bytes)\n");
}

#[tokio::test]
async fn a_person_may_abort_the_run() {
    let (world, writes) = world("[[rules]]\ndecision = 'ask'\ntool = 'writes'");
    let aborts = ApprovalAnswer::Aborted { by: "ada".into(), reason: Some("wrong place".into()) };
    let session = world.session().approved_by(Arc::new(ScriptedApprover::with([aborts])));
    let subagent = session.for_another_agent();
    let (sleeping, aborted) = tokio::join!(
        world.perform_in(&subagent, "sleeps", json!({})),
        world.perform_in(&session, "writes", json!({"path": "a.txt"})),
    );
    assert_eq!(code(&sleeping), Some(ErrorCode::Cancelled), "a call beside it ends");
    assert_eq!(code(&aborted), Some(ErrorCode::Cancelled));
    assert!(aborted.error.unwrap().message.contains("ada aborted this run"));
    let later = world.perform_in(&session, "read", json!({"path": "a.txt"})).await;
    assert_eq!(code(&later), Some(ErrorCode::Cancelled), "and no more are made");
    assert_eq!(writes.0.load(Ordering::SeqCst), 0);
    assert_eq!(session.aborted_by(), Some("ada"));
    let trail = world.trail();
    for kind in ["approval_denied", "run.aborted"] {
        assert!(trail.iter().any(|recorded| recorded == kind), "{kind} is missing: {trail:?}");
    }
    assert_eq!(trail.iter().filter(|kind| *kind == "tool_call.failed").count(), 3, "every call's end is on record");
    assert!(world.perform("read", json!({"path": "a.txt"})).await.ok, "another session isn't affected");
}

#[tokio::test]
async fn a_reply_says_that_nobody_is_asked() {
    for (preset, said) in [("full", json!("not_held")), ("workspace", Value::Null)] {
        let (world, _) = world(&format!("preset = '{preset}'"));
        let reply = serde_json::to_value(world.perform("read", json!({"path": "a.txt"})).await).unwrap();
        assert_eq!(reply["enforced"]["approvals"], said, "{preset}");
    }
}

#[tokio::test]
async fn arguments_with_a_secret_are_replayed_from_a_private_file() {
    let (world, _) = world("[[rules]]\ndecision = 'ask'\ntool = 'display'");
    let reply = world.perform("display", json!({"content": "API_TOKEN=abcdef123456"})).await;
    let error = reply.error.unwrap();
    let replay = error.details.unwrap()["replay"].as_str().unwrap().to_owned();
    assert!(!replay.contains("abcdef123456"), "{replay}");
    let file = replay.split("--args-file ").nth(1).expect("the arguments are in a file").trim_matches('\'');
    assert!(std::fs::read_to_string(file).unwrap().contains("abcdef123456"));
    let events = serde_json::to_string(&world.events()).unwrap();
    assert!(!events.contains("abcdef123456"), "the record knows no secret");
}

#[tokio::test]
async fn a_deny_is_not_lifted_by_an_approval_or_an_allow() {
    let config = format!("{DENY_WRITES}\n[[rules]]\ndecision = 'allow'\npath = 'a.txt'");
    let (world, writes) = world(&config);
    let approver = Arc::new(ScriptedApprover::grants(ApprovalScope::Always));
    let session = world.session().approved_by(approver.clone());
    let reply = world.perform_in(&session, "writes", json!({"path": "a.txt"})).await;
    assert_eq!(code(&reply), Some(ErrorCode::PolicyDenied));
    assert!(approver.asked().is_empty(), "nobody is even asked");
    assert_eq!(writes.0.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn when_the_record_fails_nothing_runs() {
    for (writes_allowed, config) in [(0, ""), (0, ASK_WRITES), (1, ASK_WRITES), (2, ASK_WRITES)] {
        let (world, writes) = world(config);
        let recorder = FailingRecorder::after(writes_allowed, Arc::new(world.recorder()));
        let session = failing(&world, recorder).approved_by(Arc::new(ScriptedApprover::grants(ApprovalScope::Run)));
        let reply = world.perform_in(&session, "writes", json!({"path": "a.txt"})).await;
        assert_eq!(code(&reply), Some(ErrorCode::IoError), "after {writes_allowed} writes under {config:?}");
        assert!(reply.error.unwrap().message.contains("did not run"));
        assert_eq!(writes.0.load(Ordering::SeqCst), 0, "after {writes_allowed} writes under {config:?}");
    }
}

#[tokio::test]
async fn when_only_the_end_cannot_be_recorded_the_reply_says_that_it_ran() {
    let (world, writes) = world("");
    let session = failing(&world, FailingRecorder::after(1, Arc::new(world.recorder())));
    let reply = world.perform_in(&session, "writes", json!({"path": "a.txt"})).await;
    assert_eq!(code(&reply), Some(ErrorCode::IoError));
    assert_eq!(reply.error.unwrap().details.unwrap()["ran"], json!(true));
    assert_eq!(writes.0.load(Ordering::SeqCst), 1);
    assert_eq!(world.trail(), ["tool_call.started"], "the record shows a call that was taken up");
}

fn failing(world: &TestWorkspace, recorder: impl Recorder + 'static) -> Session {
    Session::new("test", "run_test", Arc::new(recorder), world.run.artifacts.clone())
}

#[tokio::test(start_paused = true)]
async fn a_call_that_takes_too_long_is_stopped() {
    let (world, _) = world("[limits]\ntimeout_seconds = 5");
    let reply = world.perform("sleeps", json!({})).await;
    assert_eq!(code(&reply), Some(ErrorCode::Timeout));
    assert_eq!(world.trail(), PAIR_FAILED);
}

#[tokio::test(start_paused = true)]
async fn a_cancel_takes_effect_wherever_the_call_is() {
    // While it runs, while it waits for a lock, and while a person is asked.
    let (world, _) = world(ASK_WRITES);
    let asking = world.session().approved_by(Arc::new(SilentApprover));
    let session = world.session();
    for (tool, args, session) in [("sleeps", json!({}), &session), ("writes", json!({"path": "a.txt"}), &asking)] {
        let cancel = CancellationToken::new();
        let call = world.gate.perform(world.call(tool, args), session, cancel.clone());
        let stop = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            cancel.cancel();
        };
        let (reply, ()) = tokio::join!(call, stop);
        assert_eq!(code(&reply), Some(ErrorCode::Cancelled), "{tool}");
    }
    assert_eq!(world.trail().last().unwrap(), "tool_call.failed");
    let cancelled = CancellationToken::new();
    cancelled.cancel();
    let reply = world.gate.perform(world.call("panics", json!({})), &session, cancelled).await;
    assert_eq!(code(&reply), Some(ErrorCode::Cancelled), "a call that was cancelled before it began never begins");
}

#[tokio::test]
async fn a_panic_is_an_error_and_the_gate_goes_on() {
    let (world, _) = world("");
    let reply = world.perform("panics", json!({})).await;
    assert!(reply.error.unwrap().message.contains("on purpose"));
    assert!(world.perform("read", json!({"path": "a.txt"})).await.ok);
}

#[tokio::test]
async fn secrets_reach_neither_reply_nor_record() {
    let (world, _) = world("");
    let reply = world.perform("secrets", json!({})).await;
    assert!(reply.redacted);
    let failed = world.perform("fails", json!({})).await;
    assert!(failed.redacted);
    for text in [format!("{reply:?}"), format!("{failed:?}"), format!("{:?}", world.events())] {
        assert!(!text.contains("hunter2") && !text.contains("correct-horse-battery"), "{text}");
        assert!(text.contains("***REDACTED***"));
    }
}

#[tokio::test]
async fn long_output_is_cut_and_can_be_read_back_whole() {
    let (world, _) = world("");
    let reply = world.perform("big", json!({"lines": 30_000})).await;
    let cut = reply.truncated.expect("it was cut");
    let shown = reply.payload.unwrap()["content"].as_str().unwrap().to_owned();
    assert!(shown.len() < 60_000 && shown.starts_with("line 1\n") && shown.ends_with("line 30000\n"));
    assert_eq!(reply.artifacts.refs[0].field.as_deref(), Some("/content"));
    let id = cut.artifact.expect("the whole is kept");
    let page = world.perform("artifact", json!({"id": id, "offset": 29_999})).await;
    let page = page.payload.unwrap();
    assert_eq!(page["content"], "line 29999\nline 30000\n");
    assert_eq!(page["total_lines"], 30_000);
    let found = world.perform("artifact", json!({"id": id, "search": "^line 12345$"})).await;
    assert_eq!(found.payload.unwrap()["content"], "12345: line 12345\n");
    let none = world.perform("artifact", json!({"id": "../events.jsonl"})).await;
    assert_eq!(code(&none), Some(ErrorCode::NotFound));
}

#[tokio::test]
async fn the_record_says_who_decided_what_and_why() {
    let (world, _) = world("");
    world.perform("read", json!({"path": "a.txt"})).await;
    let events = world.events();
    let EventPayload::CallStarted { tool, version, effects, verdict, risk, .. } = &events[0].payload else {
        panic!("{events:?}")
    };
    assert_eq!(tool, "read");
    assert!(version.as_ref().unwrap().starts_with("2."), "{version:?}");
    assert_eq!(effects.len(), 1);
    assert!(verdict.as_ref().unwrap().decided_by.name.rule.contains("workspace"), "{verdict:?}");
    assert!(risk.is_some());
    let EventPayload::CallCompleted(ending) = &events[1].payload else { panic!("{events:?}") };
    assert_eq!(ending.payload.as_ref().unwrap()["content"], "one\ntwo\n");
    assert_eq!(events[0].tool_call_id, events[1].tool_call_id);
}

#[tokio::test]
async fn an_older_major_is_adapted_or_refused_with_what_changed() {
    let (world, _) = world("");
    let session = world.session();
    for (tool, version, args, expected) in [
        ("read", "^1", json!({"path": "a.txt", "offset": 1}), Ok("two\n")),
        ("read", "^2", json!({"path": "a.txt", "offset": 2}), Ok("two\n")),
        ("read", "^3", json!({"path": "a.txt"}), Err("version 2.")),
        ("list", "^7", json!({}), Err("version 1.")),
    ] {
        let mut call = world.call(tool, args);
        call.version = Some(version.parse().unwrap());
        let reply = world.gate.perform(call, &session, CancellationToken::new()).await;
        match expected {
            Ok(content) => assert_eq!(reply.payload.unwrap()["content"], content, "{tool} {version}"),
            Err(words) => {
                let error = reply.error.unwrap();
                assert_eq!(error.code, ErrorCode::UnsupportedVersion);
                assert!(error.message.contains(words), "{}", error.message);
            }
        }
    }
}

#[tokio::test]
async fn a_caller_may_not_ask_for_more_than_its_tool_declares() {
    let (world, _) = world("");
    let mut call = world.call("read", json!({"path": "a.txt"}));
    call.requested_permissions = vec![toolgate_contract::Permission::ProcExec.into()];
    let reply = world.gate.perform(call, &world.session(), CancellationToken::new()).await;
    assert_eq!(code(&reply), Some(ErrorCode::InvalidArgs));
}

#[tokio::test]
async fn what_is_said_is_shown_recorded_and_redacted() {
    let (world, _) = world("");
    let watched = Arc::new(CollectingSink::default());
    let session = world.session().watched_by(watched.clone());
    let reply = world.perform_in(&session, "display", json!({"content": "found DB_PASSWORD=hunter2"})).await;
    assert_eq!(reply.payload.unwrap(), json!({"shown": true}));
    assert_eq!(world.trail(), ["tool_call.started", "display", "tool_call.completed"]);
    let seen = watched.0.lock().clone();
    assert_eq!(seen.len(), 3);
    assert!(!format!("{seen:?}").contains("hunter2"));
    let reply = world.perform("display", json!({"content": "hello?"})).await;
    assert_eq!(reply.payload.unwrap(), json!({"shown": false}), "nobody watched");
}

#[tokio::test]
async fn denied_tools_are_not_offered() {
    let (world, _) = world("preset = 'read-only'");
    let offered: Vec<&str> = world.gate.offered(&[]).map(|tool| tool.name.as_str()).collect();
    assert!(offered.contains(&"read") && !offered.contains(&"writes"), "{offered:?}");
}

#[tokio::test]
async fn many_answers_can_come_from_one_person() {
    let (world, writes) = world(ASK_WRITES);
    let yes = |_| ApprovalAnswer::Granted { scope: ApprovalScope::Call, by: "ada".into() };
    let approver = Arc::new(ScriptedApprover::with((0..8).map(yes)));
    let session = world.session().approved_by(approver);
    let calls = (0..8).map(|n| world.perform_in(&session, "writes", json!({"path": format!("{n}.txt")})));
    let replies = futures_util::future::join_all(calls).await;
    assert!(replies.iter().all(|reply| reply.ok));
    assert_eq!(writes.0.load(Ordering::SeqCst), 8);
}
