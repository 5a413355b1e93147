//! Many commands at a time through the gate, half of them ended by force: every one is on record with its ending, and
//! nothing piles up.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::task::JoinSet;
use toolgate_contract::{Call, CancellationToken, EventPayload};
use toolgate_testkit::{TestWorkspace, unique_sleep, wait_until_async};

use super::{resident_kilobytes, wait_until_gone, world};

const COMMANDS: usize = 500;
const AT_A_TIME: usize = 32;
/// Sandboxes that wait for the next command, and the threads that come and go, hold a few.
const SLACK: usize = 16;

#[tokio::test(flavor = "multi_thread")]
async fn five_hundred_calls_are_all_on_record_and_leave_nothing() {
    let world = Arc::new(world(""));
    let marker = unique_sleep();
    round(&world, &marker, 0..AT_A_TIME).await;
    let (before, memory) = (descriptors(), resident_kilobytes());
    round(&world, &marker, AT_A_TIME..AT_A_TIME + COMMANDS).await;
    wait_until_gone(&marker).await;
    wait_until_async("the descriptors are closed", || descriptors() <= before + SLACK).await;
    let grown = resident_kilobytes() - memory;
    assert!(grown < 16 * 1024, "{grown} KiB more after {COMMANDS} commands");
    let layers: Vec<_> = std::fs::read_dir(world.path().join(".toolgate/layers")).into_iter().flatten().collect();
    assert!(layers.is_empty(), "{layers:?}");

    let mut endings: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for event in world.events() {
        let Some(call) = event.tool_call_id else { continue };
        let (started, ended) = endings.entry(call).or_default();
        match event.payload {
            EventPayload::CallStarted { .. } => *started += 1,
            EventPayload::CallCompleted(_) | EventPayload::CallFailed { .. } => *ended += 1,
            _ => {}
        }
    }
    let (commands, stops) = (AT_A_TIME + COMMANDS, (AT_A_TIME + COMMANDS) / 2);
    assert_eq!(endings.len(), commands + stops);
    let unpaired: Vec<_> = endings.iter().filter(|(_, counts)| **counts != (1, 1)).collect();
    assert!(unpaired.is_empty(), "{unpaired:?}");
}

async fn round(world: &Arc<TestWorkspace>, marker: &str, numbers: std::ops::Range<usize>) {
    let mut calls = JoinSet::new();
    for number in numbers {
        if calls.len() == AT_A_TIME {
            calls.join_next().await.unwrap().unwrap();
        }
        let (world, marker) = (Arc::clone(world), marker.to_owned());
        calls.spawn(async move { one(&world, &marker, number).await });
    }
    while let Some(call) = calls.join_next().await {
        call.unwrap();
    }
}

/// Every other command is stopped while it runs; the rest end by themselves.
async fn one(world: &TestWorkspace, marker: &str, number: usize) {
    let session = world.session();
    let named = |tool: &str, what: &str, args: Value| {
        let call = Call { tool_call_id: format!("call_{number}_{what}"), ..world.call(tool, args) };
        world.gate.perform(call, &session, CancellationToken::new())
    };
    if number.is_multiple_of(2) {
        let args = json!({ "command": format!("echo {number}"), "yield_ms": 600_000 });
        let reply = named("shell", "alone", args).await;
        assert_eq!(reply.payload.as_ref().unwrap()["stdout"], json!(format!("{number}\n")), "{reply:?}");
        return;
    }
    let command = format!("setsid nohup sleep {marker} & sleep {marker}");
    let started = named("shell", "start", json!({ "command": command, "background": true })).await;
    let process = &started.payload.as_ref().unwrap()["process"];
    let stopped = named("process", "stop", json!({ "action": "stop", "process": process })).await;
    assert_eq!(stopped.payload.as_ref().unwrap()["running"], json!(false), "{stopped:?}");
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}
