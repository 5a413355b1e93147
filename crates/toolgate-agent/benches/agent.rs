//! The cost of an agent's turn besides its calls: an agent with a model that answers at once, compared with the same
//! calls made one by one through the gate in the same run; and whether memory stays flat over a thousand turns.
#![allow(missing_docs, reason = "a benchmark has no readers but its own")]

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use toolgate_agent::model::{Model, ModelAnswer, ModelError, ModelRequest, OnText};
use toolgate_agent::{Agent, AgentLimits};
use toolgate_contract::{BoxFuture, Call, CancellationToken, FinishReason, SystemClock};
use toolgate_dialects::{ToolCall, ToolCallKind};
use toolgate_testkit::{TestWorkspace, median, resident};

/// Turns of one task, each with one call.
const TURNS: u64 = 50;
/// Tasks on each side, alternating, so that noise affects both.
const ROUNDS: usize = 20;
/// Turns for the memory measurement.
const MANY: u64 = 1_000;

/// A model that answers at once: a number of reads, each of another part, then the end.
struct Instantly {
    turns: u64,
    taken: AtomicU64,
}

impl Model for Instantly {
    fn name(&self) -> &str {
        "instantly"
    }

    fn answer<'a>(
        &'a self,
        _request: &'a ModelRequest<'a>,
        _hear: OnText<'a>,
    ) -> BoxFuture<'a, Result<ModelAnswer, ModelError>> {
        let turn = self.taken.fetch_add(1, Ordering::Relaxed);
        let answer = match turn < self.turns {
            true => {
                let args = Ok(json!({ "path": "file.rs", "offset": turn + 1 }));
                let call = ToolCall { id: "1".into(), name: "read".into(), args, shape: ToolCallKind::Function };
                ModelAnswer { calls: vec![call], ..ModelAnswer::default() }
            }
            false => ModelAnswer { text: "Done.".into(), ..ModelAnswer::default() },
        };
        Box::pin(std::future::ready(Ok(answer)))
    }
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let world = TestWorkspace::new(toolgate_tools::all(), "");
    let line = "fn ordinary(source: &str) -> usize { source.lines().count() } // a line like many\n";
    world.file("file.rs", line.repeat(1_200));
    runtime.block_on(overhead(&world));
    runtime.block_on(memory(&world));
}

async fn overhead(world: &TestWorkspace) {
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
    let overhead = agent.saturating_sub(plain);
    println!("a turn of an agent ÷ its call through the gate alone: {ratio:.2} x   (wanted: no worse)");
    println!("  medians of {ROUNDS} tasks of {TURNS} turns: turn {agent:?}, call {plain:?}");
    println!("a turn of an agent besides its call: {:.0} µs   (wanted: under 5000)", overhead.as_secs_f64() * 1e6);
}

async fn calls_alone(world: &TestWorkspace, calls: u64) -> Duration {
    let session = world.session();
    let began = Instant::now();
    for call in 0..calls {
        let call = Call::new("read", json!({ "path": "file.rs", "offset": call + 1 }), &SystemClock);
        assert!(black_box(world.gate.perform(call, &session, CancellationToken::new()).await).ok);
    }
    began.elapsed()
}

async fn agent(world: &TestWorkspace, turns: u64) -> Duration {
    let model = Arc::new(Instantly { turns, taken: AtomicU64::new(0) });
    let controls = AgentLimits { turns: turns + 1, ..AgentLimits::default() };
    let agent = Agent::new(model, Arc::clone(&world.gate), world.session(), controls);
    let began = Instant::now();
    let outcome = agent.work("Read it all.", CancellationToken::new()).await;
    assert_eq!(outcome.finish, FinishReason::Answered, "{}", outcome.summary);
    began.elapsed()
}

async fn memory(world: &TestWorkspace) {
    agent(world, MANY).await;
    let before = resident();
    agent(world, MANY).await;
    let after = resident();
    let growth = after.saturating_sub(before);
    println!("memory that {MANY} more turns of an agent take: {growth} KiB   (wanted: under 4096)");
}
