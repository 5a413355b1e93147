//! How long a browser may follow a stream. A request is admitted once, but a stream can stay open for days: it ends when its
//! browser is signed out, or its time is over.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::http::{HeaderMap, header};
use toolgate_contract::Clock;
use toolgate_journal::ConsoleAccess;

use crate::authenticator::console_token;
use crate::server_state::ServerState;

/// How often it is looked whether a browser may still follow.
pub(crate) const RECHECK: Duration = Duration::from_secs(1);

/// The admission of a client that follows a stream. One with a token that was sent as such is admitted for good.
pub(crate) struct StreamAdmission {
    browser: Option<SignedInBrowser>,
    checked: Instant,
    holds: bool,
}

/// A browser that is signed in: everything that its session is looked up with.
struct SignedInBrowser {
    token: String,
    access: ConsoleAccess,
    workspace: String,
    clock: Arc<dyn Clock>,
}

impl StreamAdmission {
    /// The admission of a request that authentication let in.
    pub(crate) fn of(state: &ServerState, headers: &HeaderMap) -> Self {
        let console = state.console.as_ref().filter(|_| !headers.contains_key(header::AUTHORIZATION));
        let browser = console.and_then(|console| {
            Some(SignedInBrowser {
                token: console_token(headers, console)?.to_owned(),
                access: console.access.clone(),
                workspace: console.workspace(),
                clock: Arc::clone(&state.workspace.clock),
            })
        });
        Self { browser, checked: Instant::now(), holds: true }
    }

    /// Whether the client may still follow, as it was at most a moment ago.
    pub(crate) fn holds(&mut self) -> bool {
        if self.holds && self.checked.elapsed() >= RECHECK {
            self.holds = self.browser.as_ref().is_none_or(SignedInBrowser::is_signed_in);
            self.checked = Instant::now();
        }
        self.holds
    }
}

impl SignedInBrowser {
    fn is_signed_in(&self) -> bool {
        self.access.session(&self.token, &self.workspace, self.clock.now()).is_some()
    }
}
