//! What the page needs beside the workspace: who may sign in, how its cookie is called, and what only the program can do.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;
use toolgate_journal::ConsoleAccess;
use toolgate_workspace::WorkspaceLocation;

use crate::other_processes::OtherProcesses;

/// Runs the checks of `toolgate doctor`, and returns them as JSON. It may block.
pub type DoctorReport = Arc<dyn Fn() -> Result<Value, String> + Send + Sync>;

/// What the page needs beside the workspace.
#[derive(Clone)]
pub struct ConsoleOptions {
    /// One-time links and browser sessions.
    pub access: ConsoleAccess,
    /// Where the workspace is: to judge drafts of a policy, and to release what is quarantined.
    pub location: WorkspaceLocation,
    /// The checks of `toolgate doctor`.
    pub doctor: DoctorReport,
    /// The processes that other programs run here; none where they can't be reached.
    pub others: Option<Arc<dyn OtherProcesses>>,
    /// The port that clients see. Cookies don't know ports, so it is part of the cookie's name.
    pub port: u16,
    /// Whether connections are encrypted.
    pub is_encrypted: bool,
}

impl ConsoleOptions {
    /// The workspace as sessions name it.
    pub(crate) fn workspace(&self) -> String {
        self.location.directory.display().to_string()
    }

    /// The name of the cookie. `__Host-` makes browsers insist on TLS and on this very host.
    pub(crate) fn cookie_name(&self) -> String {
        let prefix = if self.is_encrypted { "__Host-" } else { "" };
        format!("{prefix}toolgate-{}", self.port)
    }

    /// The cookie of a session, or one that removes it.
    pub(crate) fn cookie(&self, token: Option<&str>, seconds: i64) -> String {
        let (name, secure) = (self.cookie_name(), if self.is_encrypted { "; Secure" } else { "" });
        let value = token.unwrap_or_default();
        format!("{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}")
    }
}

impl fmt::Debug for ConsoleOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ConsoleOptions").field("port", &self.port).finish_non_exhaustive()
    }
}
