//! What a turn costs beside its calls: an agent with a model that answers at once, against the same calls made one by
//! one through the gate in the same run; whether memory stays flat over a thousand turns; and how long the tree of a
//! run with 100,000 events takes.
#![allow(clippy::disallowed_methods, missing_docs, reason = "a benchmark looks at its own memory")]

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use toolgate_agent::model::{Answer, Hear, Model, ModelError, Request};
use toolgate_agent::{Agent, Controls};
use toolgate_contract::{BoxFuture, Call, CancellationToken, Finish, SystemClock};
use toolgate_dialects::{Asked, Shape};
use toolgate_journal::{read_events, tree};
use toolgate_testkit::World;

/// Turns of one task, each with one call.
const TURNS: u64 = 50;
/// Tasks on each side, one after the other, so that noise hits both.
const ROUNDS: usize = 20;
/// Turns for the look at memory.
const MANY: u64 = 1_000;
/// Events of the large tree.
const EVENTS: usize = 100_000;

/// Answers at once: so many reads, each of another part, then the end.
struct Instantly {
    turns: u64,
    taken: AtomicU64,
}

impl Model for Instantly {
    fn name(&self) -> &str {
        "instantly"
    }

    fn answer<'a>(&'a self, _request: &'a Request<'a>, _hear: Hear<'a>) -> BoxFuture<'a, Result<Answer, ModelError>> {
        let turn = self.taken.fetch_add(1, Ordering::Relaxed);
        let answer = match turn < self.turns {
            true => {
                let args = Ok(json!({ "path": "file.rs", "offset": turn + 1 }));
                let call = Asked { id: "1".into(), name: "read".into(), args, shape: Shape::Function };
                Answer { calls: vec![call], ..Answer::default() }
            }
            false => Answer { text: "Done.".into(), ..Answer::default() },
        };
        Box::pin(std::future::ready(Ok(answer)))
    }
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let world = World::new(toolgate_tools::all(), "");
    let line = "fn ordinary(source: &str) -> usize { source.lines().count() } // a line like many\n";
    world.file("file.rs", line.repeat(1_200));
    runtime.block_on(overhead(&world));
    runtime.block_on(memory(&world));
    large_tree(&world);
}

async fn overhead(world: &World) {
    let (mut plain, mut agents) = (Vec::new(), Vec::new());
    for round in 0..=ROUNDS {
        let (bare, gated) = (calls_alone(world, TURNS).await, agent(world, TURNS).await);
        // The first round only warms up.
        if round > 0 {
            plain.push(bare / TURNS as u32);
            agents.push(gated / TURNS as u32);
        }
    }
    let (plain, agent) = (median(plain), median(agents));
    let ratio = agent.as_secs_f64() / plain.as_secs_f64();
    let beside = agent.saturating_sub(plain);
    println!("a turn of an agent: {ratio:.1} x its call made through the gate alone");
    println!("  medians of {ROUNDS} tasks of {TURNS} turns: turn {agent:?}, call {plain:?}");
    println!("  beside the call: {beside:?}   (aim: under 5 ms)");
}

async fn calls_alone(world: &World, calls: u64) -> Duration {
    let session = world.session();
    let began = Instant::now();
    for call in 0..calls {
        let call = Call::new("read", json!({ "path": "file.rs", "offset": call + 1 }), &SystemClock);
        assert!(black_box(world.gate.perform(call, &session, CancellationToken::new()).await).ok);
    }
    began.elapsed()
}

async fn agent(world: &World, turns: u64) -> Duration {
    let model = Arc::new(Instantly { turns, taken: AtomicU64::new(0) });
    let controls = Controls { turns: turns + 1, ..Controls::default() };
    let agent = Agent::new(model, Arc::clone(&world.gate), world.session(), controls);
    let began = Instant::now();
    let outcome = agent.work("Read it all.", CancellationToken::new()).await;
    assert_eq!(outcome.finish, Finish::Answered, "{}", outcome.summary);
    began.elapsed()
}

async fn memory(world: &World) {
    agent(world, MANY).await;
    let before = resident();
    agent(world, MANY).await;
    let after = resident();
    println!("memory: {before} KiB after {MANY} turns and {after} KiB after {MANY} more");
}

fn large_tree(world: &World) {
    let mut events: Vec<_> = read_events(world.run.path()).unwrap().map(|line| line.unwrap().event).collect();
    while events.len() < EVENTS {
        let more = events.len().min(EVENTS - events.len());
        let copies: Vec<_> = events[..more].to_vec();
        let generation = events.len();
        events.extend(copies.into_iter().map(|mut event| {
            event.tool_call_id = event.tool_call_id.map(|id| format!("{id}_{generation}"));
            event.trace_id = event.trace_id.map(|id| format!("{id}_{generation}"));
            event
        }));
    }
    let lines: Vec<String> = events.iter().map(|event| serde_json::to_string(event).unwrap()).collect();
    let began = Instant::now();
    for line in &lines {
        black_box(serde_json::from_str::<toolgate_contract::Event>(line).unwrap());
    }
    let reading = began.elapsed();
    let began = Instant::now();
    black_box(tree(&events));
    let building = began.elapsed();
    let ratio = building.as_secs_f64() / reading.as_secs_f64();
    println!("the tree of {} events: {ratio:.2} x reading them   ({building:?}, reading {reading:?})", events.len());
}

/// Resident memory in KiB.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}
