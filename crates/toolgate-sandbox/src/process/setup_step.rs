//! The steps that confine a process. When one fails, a fault says which, on what, and why.

use std::fmt;

use rustix::io::Errno;
use serde::{Deserialize, Serialize};

/// One step between a new process and a confined command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum SetupStep {
    /// A new process in namespaces of its own.
    MakeNamespaces,
    /// The process dies with its parent.
    DieWithParent,
    /// The process starts a session of its own.
    LeaveSession,
    /// Inherited file descriptors are closed.
    CloseDescriptors,
    /// User and group are mapped onto themselves in the user namespace.
    MapIdentity,
    /// A network namespace.
    MakeNetwork,
    /// The loopback interface of the network namespace.
    RaiseLoopback,
    /// Listeners in the network namespace that are answered outside.
    OpenListeners,
    /// The mounts become private: later mounts on the host don't appear in them.
    DetachMounts,
    /// A root is opened, and is still the directory that was planned.
    OpenRoot,
    /// The mounts become read-only.
    MakeReadOnly,
    /// A tmpfs of its own: `/tmp`, `/run`, `/dev/shm`, the home directory.
    MountPrivateDirectory,
    /// A `/dev` with the harmless devices.
    MakeDevices,
    /// A root that was granted is mounted at its path.
    AttachRoot,
    /// A `/proc` of the PID namespace.
    MountProc,
    /// Sensitive paths are hidden.
    Mask,
    /// Decoys are mounted over secrets, and watched.
    PlaceDecoys,
    /// Files with another content are mounted over files of the workspace.
    MountSubstitutes,
    /// Protected paths become read-only, and their parents can't be renamed.
    Protect,
    /// An overlayfs takes the changes, so that they are staged.
    MountOverlay,
    /// `pivot_root` to a root that holds only what was granted.
    ChangeRoot,
    /// The rlimits.
    LimitResources,
    /// The number of processes.
    LimitProcesses,
    /// The first process can't be traced or dumped.
    HideFirstProcess,
    /// All capabilities are dropped.
    DropCapabilities,
    /// `no_new_privs`: no program that is executed gains privileges.
    NoNewPrivileges,
    /// The Landlock ruleset.
    RestrictFiles,
    /// The seccomp filter.
    FilterSystemCalls,
    /// The command to run is received.
    ReadRequest,
    /// A pseudoterminal for the command.
    OpenTerminal,
    /// The command's process.
    StartCommand,
    /// The command's standard streams.
    ConnectStreams,
    /// The command's working directory.
    EnterWorkingDirectory,
    /// The command's program is executed.
    Execute,
    /// The system's `bwrap` is executed.
    ExecuteBubblewrap,
}

impl SetupStep {
    /// What was being done, to follow "while".
    pub fn doing(self) -> &'static str {
        match self {
            Self::MakeNamespaces => "making namespaces",
            Self::DieWithParent => "setting the parent-death signal",
            Self::LeaveSession => "starting a session",
            Self::CloseDescriptors => "closing inherited descriptors",
            Self::MapIdentity => "mapping the user and group",
            Self::MakeNetwork => "making a network namespace",
            Self::RaiseLoopback => "bringing up the loopback interface",
            Self::OpenListeners => "opening the network listeners",
            Self::DetachMounts => "making the mounts private",
            Self::OpenRoot => "opening a root",
            Self::MakeReadOnly => "making the mounts read-only",
            Self::MountPrivateDirectory => "mounting a private tmpfs",
            Self::MakeDevices => "making the devices",
            Self::AttachRoot => "bind-mounting a root",
            Self::MountProc => "mounting /proc",
            Self::Mask => "hiding a sensitive path",
            Self::PlaceDecoys => "placing a decoy",
            Self::MountSubstitutes => "mounting a substitute",
            Self::Protect => "protecting a path",
            Self::MountOverlay => "mounting the overlayfs",
            Self::ChangeRoot => "changing the root (pivot_root)",
            Self::LimitResources => "setting resource limits",
            Self::LimitProcesses => "limiting the number of processes",
            Self::HideFirstProcess => "protecting the first process from tracing",
            Self::DropCapabilities => "dropping capabilities",
            Self::NoNewPrivileges => "setting no_new_privs",
            Self::RestrictFiles => "restricting files with Landlock",
            Self::FilterSystemCalls => "installing the seccomp filter",
            Self::ReadRequest => "receiving the command",
            Self::OpenTerminal => "opening a terminal",
            Self::StartCommand => "starting a process for the command",
            Self::ConnectStreams => "connecting the standard streams",
            Self::EnterWorkingDirectory => "entering the working directory",
            Self::Execute => "executing the program",
            Self::ExecuteBubblewrap => "executing bwrap",
        }
    }

    /// Whether a fault of this step is the command's and not the confinement's.
    pub fn is_about_the_command(self) -> bool {
        matches!(self, Self::ReadRequest | Self::StartCommand | Self::EnterWorkingDirectory | Self::Execute)
    }
}

/// A step that failed: which, on what, and with which `errno`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetupFault {
    /// What was being done.
    pub step: SetupStep,
    /// What it was done to, where that helps.
    pub subject: String,
    /// The `errno`.
    pub errno: i32,
}

impl SetupFault {
    /// Whether a path that existed when the sandbox was planned has gone or changed since. Nothing was run.
    pub(super) fn is_stale_path(&self) -> bool {
        let is_about_a_path = matches!(
            self.step,
            SetupStep::OpenRoot
                | SetupStep::AttachRoot
                | SetupStep::Mask
                | SetupStep::PlaceDecoys
                | SetupStep::MountSubstitutes
                | SetupStep::Protect
                | SetupStep::RestrictFiles
        );
        is_about_a_path && [Errno::NOENT, Errno::STALE].map(Errno::raw_os_error).contains(&self.errno)
    }
}

impl fmt::Display for SetupFault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reason = std::io::Error::from_raw_os_error(self.errno);
        match self.subject.as_str() {
            "" => write!(formatter, "{} failed: {reason}", self.step.doing()),
            subject => write!(formatter, "{} ({subject}) failed: {reason}", self.step.doing()),
        }
    }
}

/// Names the step that a system call belongs to.
pub(super) trait StepContext<T> {
    /// The fault of `step`.
    fn during(self, step: SetupStep) -> Result<T, SetupFault>;

    /// The fault of `step` on `subject`.
    fn during_on(self, step: SetupStep, subject: &std::ffi::CStr) -> Result<T, SetupFault>;
}

impl<T, E: Into<Errno>> StepContext<T> for Result<T, E> {
    fn during(self, step: SetupStep) -> Result<T, SetupFault> {
        self.map_err(|error| SetupFault { step, subject: String::new(), errno: error.into().raw_os_error() })
    }

    fn during_on(self, step: SetupStep, subject: &std::ffi::CStr) -> Result<T, SetupFault> {
        let subject = subject.to_string_lossy();
        self.map_err(|error| SetupFault { step, subject: subject.into_owned(), errno: error.into().raw_os_error() })
    }
}
