//! The workspace as this program opens it: warnings go to standard error, and the person can attach to its processes.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result};
use toolgate_config::ConfigPaths;
use toolgate_contract::AnyTool;
use toolgate_runtime::quoted;
use toolgate_workspace::{Workspace, WorkspaceLocation, WorkspaceOptions};

use crate::attach::{AttachSocket, ServedProcesses};
use crate::dialect_settings::real;
use crate::output::errln;
use crate::policy_flags::PolicyFlags;
use crate::terminal::{YELLOW, paint, plain};

/// The front end that makes one call and ends with it.
pub(crate) const CLI: &str = "cli";

/// The directory that was named, or the current one, under the user's configuration and these flags.
pub(crate) fn find_workspace(named: Option<PathBuf>, flags: &PolicyFlags) -> Result<WorkspaceLocation> {
    let directory = match named {
        Some(directory) => directory,
        None => std::env::current_dir().context("the current directory can't be found")?,
    };
    Ok(WorkspaceLocation::find(&directory, ConfigPaths::usual()?, flags.layer(&real(&directory))?)?)
}

/// Opens a workspace with the built-in tools.
pub(crate) fn open_workspace(location: &WorkspaceLocation) -> Result<Workspace> {
    open_workspace_with(location, Vec::new(), Vec::new())
}

/// Opens a workspace with more tools and secrets than the built-in ones.
pub(crate) fn open_workspace_with(
    location: &WorkspaceLocation,
    tools: Vec<Arc<dyn AnyTool>>,
    secrets: Vec<(String, String)>,
) -> Result<Workspace> {
    let mut options = WorkspaceOptions::new(Arc::new(warn));
    options.tools.extend(tools);
    options.secrets = secrets;
    options.program = program_name();
    options.owner = person_name();
    Ok(Workspace::open(location, options)?)
}

/// Lets the user attach to the processes of all sessions while this work goes on. Nothing else depends on it, so it is no
/// error if no socket can be made.
pub(crate) async fn with_attach_socket<T>(
    workspace: &Workspace,
    location: &WorkspaceLocation,
    work: impl Future<Output = T>,
) -> T {
    let socket = AttachSocket::open(&location.config.attach_sockets(), ServedProcesses::of(workspace, location));
    let done = work.await;
    if let Ok(socket) = socket {
        socket.close().await;
    }
    done
}

/// Prints a warning.
pub(crate) fn warn(warning: &str) {
    errln!("{} {}", paint(YELLOW.bold(), "warning:"), plain(warning));
}

/// Who is at the keyboard, for the record.
pub(crate) fn person_name() -> String {
    std::env::var("USER").or_else(|_| std::env::var("LOGNAME")).unwrap_or_else(|_| "user".into())
}

/// The program as it can be started again: by name when it was found by name, else by its full path.
pub(crate) fn program_name() -> String {
    let called = std::env::args().next().unwrap_or_default();
    match (called.contains('/'), std::env::current_exe()) {
        (true, Ok(path)) => path.display().to_string(),
        _ => "toolgate".into(),
    }
}

/// The program as the person types it in their current directory, to work in this workspace again.
#[allow(clippy::disallowed_methods, reason = "compares the workspace with the directory that the person is in")]
pub(crate) fn typed_program(location: &WorkspaceLocation) -> String {
    let here = std::env::current_dir().and_then(std::fs::canonicalize);
    match here.is_ok_and(|here| here == location.directory) {
        true => program_name(),
        false => format!("{} -w {}", program_name(), quoted(&location.directory.display().to_string())),
    }
}
