//! The test world: a temporary workspace, a clock that ticks only when read, and events to write.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use jiff::Timestamp;
use serde_json::json;
use tempfile::TempDir;
use toolgate_contract::{
    ApprovalScope, CallEnding, Clock, Decision, Effect, ErrorCode, Event, EventPayload, Finding, Layer, NamedChanges,
    Risk, RuleName, RunFacts, ToolError, Truncated, Verdict,
};
use toolgate_journal::{Run, RunOptions, SigningKey, StateDirectory};
use uuid::Uuid;

pub(crate) const RUN: &str = "run-1";

/// One second passes on each reading.
#[derive(Default)]
struct Ticking(AtomicI64);

impl Clock for Ticking {
    fn now(&self) -> Timestamp {
        Timestamp::from_second(1_700_000_000 + self.0.fetch_add(1, Ordering::Relaxed)).unwrap()
    }

    fn id(&self) -> Uuid {
        Uuid::from_u128(self.0.fetch_add(1, Ordering::Relaxed).unsigned_abs().into())
    }
}

/// A workspace with its state directory.
pub(crate) struct World {
    pub(crate) workspace: TempDir,
    pub(crate) state: StateDirectory,
    pub(crate) options: RunOptions,
}

impl World {
    /// A world in which journals are signed.
    pub(crate) fn new() -> Self {
        let workspace = TempDir::new().unwrap();
        let state = StateDirectory::open(workspace.path()).unwrap();
        Self { workspace, state, options: options() }
    }

    /// Begins `RUN`.
    pub(crate) fn begin(&self) -> Run {
        self.state.begin_run(RUN, facts("session-1"), &self.options).unwrap()
    }

    /// Opens `RUN` again.
    pub(crate) fn reopen(&self) -> Run {
        self.state.open_run(RUN, &self.options).unwrap()
    }

    /// A file in the directory of `RUN`.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.state.run_dir(RUN).unwrap().join(name)
    }
}

/// Signed, with a private clock.
pub(crate) fn options() -> RunOptions {
    RunOptions { key: Some(key()), clock: Arc::new(Ticking::default()), ..RunOptions::default() }
}

pub(crate) fn key() -> SigningKey {
    SigningKey::from([42; 32])
}

pub(crate) fn facts(session: &str) -> RunFacts {
    RunFacts {
        workspace: "/work".into(),
        session: session.into(),
        preset: "workspace".into(),
        front_end: "cli".into(),
        version: "0.1.0".into(),
    }
}

/// An event of a call, `second` seconds into the run.
pub(crate) fn event(second: i64, call: &str, payload: EventPayload) -> Event {
    Event {
        time: Timestamp::from_second(1_700_000_000 + second).unwrap(),
        run: RUN.into(),
        turn: Some(1),
        trace_id: Some("trace-1".into()),
        tool_call_id: Some(call.into()),
        payload,
    }
}

/// A call starts.
pub(crate) fn started(second: i64, call: &str) -> Event {
    let finding = Finding {
        decision: Decision::Ask,
        effect: Some(Effect::write("src/lib.rs")),
        name: RuleName { rule: "ask write src/**".into(), layer: Layer::User },
        reason: "The user wants to see changes.".into(),
        code: None,
    };
    let verdict = Verdict {
        decision: Decision::Ask,
        decided_by: finding.clone(),
        asks: vec![finding],
        confined: false,
        only_reads: false,
        named: NamedChanges::default(),
        lost: Vec::new(),
    };
    event(
        second,
        call,
        EventPayload::CallStarted {
            tool: "edit".into(),
            version: Some("1.2.3".into()),
            args: json!({ "path": "src/lib.rs", "find": "a\nb", "replace": "ü", "all": false, "z": 1.5 }),
            effects: vec![Effect::write("src/lib.rs")],
            verdict: Some(verdict),
            approval: Some(ApprovalScope::Run),
            risk: Some(Risk::High),
            justification: Some("The test asks for it.".into()),
            hooked: None,
        },
    )
}

/// It succeeds.
pub(crate) fn completed(second: i64, call: &str) -> Event {
    let ending = CallEnding {
        duration_ms: 12,
        payload: Some(json!({ "replacements": 1 })),
        exit_code: Some(0),
        files_changed: vec!["src/lib.rs".into()],
        commands_run: vec!["cargo fmt".into()],
        truncated: Some(Truncated { lines: 3, bytes: 400, ..Truncated::default() }),
        redacted: true,
        ..CallEnding::default()
    };
    event(second, call, EventPayload::CallCompleted(ending))
}

/// It fails.
pub(crate) fn failed(second: i64, call: &str) -> Event {
    let error = ToolError::new(ErrorCode::NoMatch, "`a` is not in `src/lib.rs`.");
    let ending = CallEnding { duration_ms: 7, ..CallEnding::default() };
    event(second, call, EventPayload::CallFailed { class: error.code.class(), error, ending })
}

/// A few calls, one of them still running.
pub(crate) fn some_calls() -> Vec<Event> {
    vec![started(1, "call-a"), completed(2, "call-a"), started(3, "call-b"), failed(4, "call-b"), started(5, "call-c")]
}
