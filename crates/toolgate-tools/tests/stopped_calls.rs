//! Calls that are cancelled or run out of time: what they did until then is settled first, and then the reply and the record
//! say all of it, in order.
#![allow(clippy::disallowed_methods, reason = "looks at what commands leave behind")]

use std::time::Duration;

use serde_json::{Value, json};
use toolgate_contract::{CancellationToken, ErrorCode, Event, EventPayload, Guarantee, ProcessHandle, Reply};
use toolgate_testkit::{TestWorkspace, wait_until_async};

const COMMAND: &str = "echo two > a.txt; echo new > b.txt; echo wrong >&2; echo said; sleep 1000";

fn world() -> TestWorkspace {
    let config = "preset = 'full'\n[limits]\ntimeout_seconds = 300";
    let world = TestWorkspace::new(toolgate_tools::all(), config).confined();
    world.file("a.txt", "one\n");
    world
}

/// Runs the command until it has said something, and then stops the call.
async fn stopped(world: &TestWorkspace, more: &Value, by_cancel: bool) -> Reply {
    let session = world.session();
    let mut args = json!({ "command": COMMAND, "yield_ms": 600_000, "timeout_seconds": 600 });
    args.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let cancel = CancellationToken::new();
    let call = world.gate.perform(world.call("shell", args), &session, cancel.clone());
    let stop = async {
        let has_spoken = || {
            let running = world.gate.registries().running();
            running.iter().any(|process| process.progress().borrow().stdout > 0)
        };
        wait_until_async("the command has spoken", has_spoken).await;
        if by_cancel {
            return cancel.cancel();
        }
        // All of its time passes at once.
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(300)).await;
        tokio::time::resume();
    };
    tokio::join!(call, stop).0
}

#[tokio::test]
async fn a_stopped_call_says_everything_that_happened_and_in_order() {
    for more in [json!({}), json!({ "stdin": true })] {
        for (by_cancel, code) in [(true, ErrorCode::Cancelled), (false, ErrorCode::Timeout)] {
            let world = world();
            let reply = stopped(&world, &more, by_cancel).await;
            let error = reply.error.clone().unwrap();
            assert_eq!(error.code, code, "{more}: {error:?}");
            let details = error.details.unwrap();
            assert_eq!((&details["stdout"], &details["stderr"]), (&json!("said\n"), &json!("wrong\n")), "{more}");
            assert_eq!(details["changes"]["paths"], json!(["~a.txt", "+b.txt"]), "{more}: {details}");
            assert_eq!(reply.artifacts.files_changed, ["a.txt", "b.txt"], "{more}");
            assert_eq!(reply.artifacts.commands_run, [COMMAND], "{more}");
            assert!(reply.enforced.0.contains_key(&Guarantee::Undo), "{more}: {:?}", reply.enforced);
            let read = |path: &str| std::fs::read_to_string(world.path().join(path)).unwrap();
            assert_eq!((read("a.txt"), read("b.txt")), ("two\n".into(), "new\n".into()), "{more}");
            let events: Vec<Event> = world.events();
            let at = |kind: fn(&EventPayload) -> bool| events.iter().position(|event| kind(&event.payload)).unwrap();
            let changing = at(|payload| matches!(payload, EventPayload::FilesChanging { .. }));
            let failed = at(|payload| matches!(payload, EventPayload::CallFailed { .. }));
            assert!(changing < failed && failed == events.len() - 1, "{more}: {:?}", world.trail());
            let EventPayload::CallFailed { ending, .. } = &events[failed].payload else { unreachable!() };
            assert_eq!(ending.files_changed, ["a.txt", "b.txt"], "{more}");
            assert_eq!(ending.commands_run, [COMMAND], "{more}");
            assert_eq!(ending.enforced, reply.enforced, "{more}");
        }
    }
}
