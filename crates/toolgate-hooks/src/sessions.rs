//! The session of a client, and the run that it is recorded in: one for each session of the client, whichever process brings
//! its events.

use toolgate_contract::sha256;
use toolgate_journal::JournalError;
use toolgate_workspace::{RecordedSession, RunChoice, Workspace, WorkspaceError};

use crate::client::HookClient;

/// The longest id of a session that is kept as it is.
const LONGEST_ID: usize = 40;

/// The run of a client's session.
pub(crate) fn run_of(client: &HookClient, session: &str) -> String {
    format!("run_{}", session_of(client, session))
}

fn session_of(client: &HookClient, session: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    let id = match session.len() <= LONGEST_ID && session.bytes().all(is_plain) {
        true => session.to_owned(),
        false => sha256(session)[..32].to_owned(),
    };
    format!("{}_{id}", client.name)
}

/// The session of a client, recorded in this run, or in one of its own.
pub(crate) fn recorded_session(
    workspace: &Workspace,
    client: &HookClient,
    session: &str,
    run: Option<&str>,
) -> Result<RecordedSession, WorkspaceError> {
    let own = run_of(client, session);
    let choice = |run: Option<String>| RunChoice { run, session: session_of(client, session), front_end: client.name };
    if let Some(run) = run {
        return workspace.begin(&choice(Some(run.to_owned())));
    }
    match workspace.begin(&choice(Some(own.clone()))) {
        Err(WorkspaceError::Journal(JournalError::NoSuchRun { .. })) => match workspace.begin_as(&own, &choice(None)) {
            // Another hook of the same session was faster.
            Err(WorkspaceError::Journal(JournalError::RunExists { .. })) => workspace.begin(&choice(Some(own))),
            begun => begun,
        },
        opened => opened,
    }
}
