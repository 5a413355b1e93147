//! A client's own prompt as an approver: the client asks its person, and executes the call only if that one agrees.

use parking_lot::Mutex;
use toolgate_contract::{ApprovalScope, BoxFuture};
use toolgate_runtime::{ApprovalAnswer, ApprovalRequest, Approver};

/// Hands a question to the client. The call stays unexecuted unless the client's person agrees.
pub(crate) struct ClientPrompt {
    client: &'static str,
    asked: Mutex<Option<String>>,
}

impl ClientPrompt {
    pub(crate) fn new(client: &'static str) -> Self {
        Self { client, asked: Mutex::default() }
    }

    /// Why the client has to ask; none if it doesn't have to.
    pub(crate) fn reason(&self) -> Option<String> {
        self.asked.lock().clone()
    }
}

impl Approver for ClientPrompt {
    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, ApprovalAnswer> {
        *self.asked.lock() = Some(request.reason.clone());
        let by = format!("the prompt of {}", self.client);
        Box::pin(std::future::ready(ApprovalAnswer::Granted { scope: ApprovalScope::Call, by }))
    }
}
