//! Proof that this exact call may run. It holds the only way to run a tool, and only the gate can make one: the
//! constructor asks for what the steps before it leave behind.
//!
//! ```compile_fail,E0451
//! // Nothing outside the gate can make one: its fields are private …
//! let forged = toolgate_runtime::Cleared { prepared: todo!(), hands: todo!() };
//! ```
//!
//! ```compile_fail,E0624
//! // … and so is its constructor.
//! let forged = toolgate_runtime::Cleared::new(todo!(), todo!(), todo!(), todo!());
//! ```
//!
//! ```
//! // The name itself is public, so the two above fail for the right reason.
//! fn nameable(_: Option<toolgate_runtime::Cleared>) {}
//! ```

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use serde_json::Value;
use toolgate_contract::{Hands, PreparedCall, ToolError};

/// A call that may run.
pub struct Cleared {
    prepared: Box<dyn PreparedCall>,
    hands: Hands,
}

/// Left behind by the approval step: policy allowed the call, or somebody approved it.
pub(super) struct ApprovalProof(pub(super) ());

/// Left behind by the record step: `started` is on disk.
pub(super) struct RecordProof(pub(super) ());

impl Cleared {
    /// Only the gate's own walk calls this, with the proofs of the steps before.
    pub(super) fn new(
        prepared: Box<dyn PreparedCall>,
        hands: Hands,
        _approved: ApprovalProof,
        _recorded: RecordProof,
    ) -> Self {
        Self { prepared, hands }
    }

    /// Runs the tool. A panic in it becomes an error and the process goes on.
    pub(super) async fn run(self) -> (Result<Value, ToolError>, Hands) {
        let Self { prepared, hands } = self;
        let outcome = AssertUnwindSafe(prepared.run(&hands)).catch_unwind().await;
        let outcome =
            outcome.unwrap_or_else(|panic| Err(ToolError::internal(format!("The tool panicked: {}.", words(&*panic)))));
        (outcome, hands)
    }
}

/// What a panic said.
fn words(panic: &(dyn std::any::Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("it gave no reason")
}
