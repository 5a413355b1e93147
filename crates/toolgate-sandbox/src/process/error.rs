//! Why a command couldn't be run confined. Each says what, why, and what to do next.

use std::path::PathBuf;

use rustix::io::Errno;
use toolgate_contract::{ErrorCode, ToolError};

use super::enforcement::Tier;
use super::setup_step::SetupFault;

/// Why a command couldn't be run confined.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SandboxError {
    /// No tier works on this machine.
    #[error("Commands can't be confined on this machine: {}. Nothing was run.", reasons(tried))]
    Unavailable {
        /// What was tried, and why it didn't work.
        tried: Vec<(Tier, String)>,
    },
    /// The zygote couldn't be started.
    #[error("The helper that makes sandboxes couldn't be started: {reason}.")]
    Zygote {
        /// Why.
        reason: String,
    },
    /// A root of the profile can't be used.
    #[error("The root {} can't be used: {error}. Check that it exists and that you may enter it.", path.display())]
    Root {
        /// Which.
        path: PathBuf,
        /// Why.
        error: Errno,
    },
    /// A path that has to be protected can't be.
    #[error("{} can't be protected, since the directory that holds it is a link. Replace the link by a directory.", path.display())]
    ProtectedBehindLink {
        /// Which.
        path: PathBuf,
    },
    /// Something that goes to the kernel has a NUL byte in it.
    #[error("There is a NUL byte in {text:?}. Leave it out.")]
    NulByte {
        /// In what.
        text: String,
    },
    /// What the launch spec asks for can't be provided.
    #[error(transparent)]
    Refused(#[from] ToolError),
    /// A step failed. Nothing was run.
    #[error("The command wasn't run: {0}.")]
    Step(SetupFault),
    /// The cgroup that limits its memory didn't take it.
    #[error(
        "The command wasn't run: its processes couldn't be put into the cgroup that limits their memory. Try again."
    )]
    MemoryLimit,
    /// The sandbox went away before it could say why.
    #[error("The sandbox ended before the command could start. Try again.")]
    Vanished,
    /// Something on the host's side failed.
    #[error("{what}: {error}.")]
    Host {
        /// What was being done.
        what: &'static str,
        /// Why it failed.
        error: Errno,
    },
}

fn reasons(tried: &[(Tier, String)]) -> String {
    let reasons: Vec<String> = tried.iter().map(|(tier, reason)| format!("{}: {reason}", tier.name())).collect();
    reasons.join("; ")
}

/// Names what the host was doing.
pub(super) trait HostContext<T> {
    /// The error of doing `what`.
    fn doing(self, what: &'static str) -> Result<T, SandboxError>;
}

impl<T> HostContext<T> for Result<T, Errno> {
    fn doing(self, what: &'static str) -> Result<T, SandboxError> {
        self.map_err(|error| SandboxError::Host { what, error })
    }
}

impl<T> HostContext<T> for std::io::Result<T> {
    fn doing(self, what: &'static str) -> Result<T, SandboxError> {
        self.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO)).doing(what)
    }
}

impl From<SandboxError> for ToolError {
    fn from(error: SandboxError) -> Self {
        let error = match error {
            SandboxError::Refused(refused) => return refused,
            other => other,
        };
        let code = match &error {
            SandboxError::Unavailable { .. } | SandboxError::Zygote { .. } => ErrorCode::SandboxUnavailable,
            SandboxError::NulByte { .. } => ErrorCode::InvalidArgs,
            SandboxError::Step(fault) if fault.step.is_about_the_command() => {
                match Errno::from_raw_os_error(fault.errno) {
                    Errno::NOENT | Errno::NOTDIR => ErrorCode::NotFound,
                    Errno::ACCESS | Errno::PERM => ErrorCode::SandboxDenied,
                    _ => ErrorCode::IoError,
                }
            }
            SandboxError::Step(_) => ErrorCode::SandboxUnavailable,
            _ => ErrorCode::IoError,
        };
        Self::new(code, error.to_string())
    }
}
