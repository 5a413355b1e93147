//! Run: the tool, with its hands, until it ends, is cancelled or times out. Proof that this exact call may run is a
//! [`Cleared`]: it holds the only way to run a tool, and only the step before it makes one.
//!
//! ```compile_fail,E0451
//! // Nothing outside the gate can make one: its fields are private …
//! let forged = toolgate_runtime::Cleared { record: todo!(), call: todo!(), hands: todo!(), parallel: true };
//! ```
//!
//! ```compile_fail,E0624
//! // … and so is its constructor.
//! let forged = toolgate_runtime::Cleared::new(todo!(), todo!(), todo!(), true);
//! ```
//!
//! ```
//! // The name itself is public, so the two above fail for the right reason.
//! fn nameable(_: Option<toolgate_runtime::Cleared<'_>>) {}
//! ```

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use serde_json::Value;
use toolgate_changes::EntrustedCall;
use toolgate_config::AfterChanges;
use toolgate_contract::{ApprovalScope, ErrorCode, PreparedCall, ToolError};

use super::Stopped;
use super::outcome::Outcome;
use crate::gate::call_record::CallRecord;
use crate::gate::hands::CallHands;

/// How long language servers may take to say which errors a change caused.
const NEW_ERRORS_TIMEOUT: Duration = Duration::from_secs(2);

/// A call that may run.
pub struct Cleared<'a> {
    record: Box<CallRecord<'a>>,
    call: Box<dyn PreparedCall>,
    hands: CallHands,
    parallel: bool,
}

impl<'a> Cleared<'a> {
    /// Only [`Recorded::clear`](super::approved::Recorded::clear) calls this.
    pub(super) fn new(
        record: Box<CallRecord<'a>>,
        call: Box<dyn PreparedCall>,
        hands: CallHands,
        parallel: bool,
    ) -> Self {
        Self { record, call, hands, parallel }
    }

    /// Waits for its lock and runs. However it ends, what its hands did is part of the outcome.
    pub(super) async fn run(self) -> Outcome<'a> {
        let Self { mut record, call, hands, parallel } = self;
        let result = act(&mut record, call, &hands, parallel).await;
        let lsp = &record.gate.parts.settings.lsp;
        if result.is_ok() && lsp.after_changes == AfterChanges::On {
            hands.find_new_errors(NEW_ERRORS_TIMEOUT).await;
            record.timings.done("new errors");
        }
        record.session.flow.note(&record.effects, &record.gate.parts.servers);
        record.tally = hands.tally().following(std::mem::take(&mut record.tally));
        Outcome { record, result }
    }

    /// Leaves running to the client whose hook brought the call. Its hands are asked first whether everything may be reached, and
    /// what the client may change is stored, so that its change can be found and undone.
    pub(super) async fn entrust(self, key: &str) -> Result<EntrustedCall, Stopped<'a>> {
        let Self { record, hands, .. } = self;
        let (session, gate) = (record.session, record.gate);
        let (recorder, origin) = (Arc::clone(&session.recorder), Arc::clone(&record.origin));
        let applier = gate.parts.changes.for_call(recorder, origin, session.id.clone());
        let (hooked, key) = (record.call.hooked.clone(), key.to_owned());
        let is_asked = record.approval == Some(ApprovalScope::Call);
        let searches = record.call.name == SEARCHES_CONTENT;
        let work = hands.blocking(move |hands| {
            let hooked = hooked.ok_or_else(|| ToolError::internal("No client's hook brought this call."))?;
            applier.entrust(hooked, &key, is_asked, &hands.entrusted_places(searches)?)
        });
        match work.await {
            Ok(entrusted) => Ok(entrusted),
            Err(error) => Err(record.stopped(error)),
        }
    }
}

/// The tool that shows what is in the files of a directory.
const SEARCHES_CONTENT: &str = "grep";

async fn act(
    record: &mut CallRecord<'_>,
    call: Box<dyn PreparedCall>,
    hands: &CallHands,
    parallel: bool,
) -> Result<Value, ToolError> {
    let _stop_the_tool_when_this_ends = record.stop.clone().drop_guard();
    let (_, timeout) = record.limits();
    let lock = tokio::select! {
        biased;
        () = record.cancel.cancelled() => return Err(ToolError::cancelled()),
        lock = record.gate.locks.acquire(&record.session.id, &record.effects, parallel) => lock,
    };
    record.timings.done("lock");
    let ended = tokio::select! {
        biased;
        () = record.cancel.cancelled() => Err(ToolError::cancelled()),
        ended = tokio::time::timeout(timeout, run_guarded(call, hands)) => ended.unwrap_or_else(|_| {
            let message = format!("`{}` was stopped after {timeout:?}.", record.call.name);
            Err(ToolError::new(ErrorCode::Timeout, message))
        }),
    };
    // The tool is gone, but what it began may not be: that is settled before anybody else gets the lock, and before the call's
    // end is recorded.
    let ended = match ended {
        Err(error) => Err(hands.stop(error).await),
        done => done,
    };
    drop(lock);
    record.timings.done("run");
    ended
}

/// Runs the tool. A panic in it becomes an error, and this process continues.
async fn run_guarded(call: Box<dyn PreparedCall>, hands: &CallHands) -> Result<Value, ToolError> {
    let ended = AssertUnwindSafe(call.run(hands)).catch_unwind().await;
    ended.unwrap_or_else(|panic| Err(ToolError::internal(format!("The tool panicked: {}.", panic_message(&*panic)))))
}

fn panic_message(panic: &(dyn std::any::Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("it gave no reason")
}
