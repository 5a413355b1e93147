//! What a client is told, in one form for all clients. Each client's file writes it in the client's own form.

use serde_json::Value;

/// What a client is told.
#[derive(Debug, Clone, PartialEq)]
pub enum HookAnswer {
    /// Nothing was asked, so there is nothing to decide.
    Noted,
    /// The client goes on as it would without us.
    Proceed,
    /// The client executes the call with other arguments.
    Rewrite {
        /// The arguments.
        input: Value,
        /// Why the client has to ask its person first; none if nobody has to be asked.
        ask: Option<String>,
    },
    /// The client asks its person first.
    Ask {
        /// Why.
        reason: String,
    },
    /// The client must not do it.
    Deny {
        /// Why, and what to do instead.
        reason: String,
    },
    /// The model gets another result than the client's.
    Replace {
        /// The result, in the form that the client reported it in.
        result: Value,
    },
}

/// What a hook prints, and how it exits.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct HookOutput {
    /// What goes to standard output.
    pub stdout: String,
    /// What goes to standard error.
    pub stderr: String,
    /// The exit code.
    pub code: u8,
}

impl HookOutput {
    /// A JSON value, and success.
    pub(crate) fn json(value: &Value) -> Self {
        Self { stdout: format!("{value}\n"), ..Self::default() }
    }

    /// A refusal that every client with hooks of commands understands: exit code 2, with the reason on standard error. Some read
    /// the JSON as well.
    pub(crate) fn refusal(value: &Value, reason: &str) -> Self {
        Self { stdout: format!("{value}\n"), stderr: format!("{reason}\n"), code: 2 }
    }
}
