//! Everything that is done to confine a process, step by step. When one fails, this says which, and what that means.

use std::fmt;

use rustix::io::Errno;
use serde::{Deserialize, Serialize};

/// One step on the way from a new process to a confined command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum SetupStep {
    /// A new process in namespaces of its own.
    MakeNamespaces,
    /// The process dies with the one that made it.
    DieWithParent,
    /// A session of its own.
    LeaveSession,
    /// Only the descriptors that it needs.
    CloseDescriptors,
    /// The same user and group inside as outside.
    MapIdentity,
    /// A network of its own.
    MakeNetwork,
    /// A loopback of its own.
    RaiseLoopback,
    /// Doors in its network that are answered outside.
    OpenDoors,
    /// What is mounted later elsewhere doesn't appear here.
    DetachMounts,
    /// Every root is found where it was, by descriptor.
    OpenRoot,
    /// Everything is read-only.
    MakeReadOnly,
    /// Directories of its own: `/tmp`, `/run`, `/dev/shm`, the home.
    MountPrivateDirectory,
    /// A `/dev` with the harmless devices.
    MakeDevices,
    /// What may be seen or changed goes back to its place.
    AttachRoot,
    /// A `/proc` that knows only its own processes.
    MountProc,
    /// Sensitive places are covered.
    Mask,
    /// Decoys stand in for secrets, and are watched.
    PlaceDecoys,
    /// Protected places are read-only, and their parents can't be moved away.
    Protect,
    /// Changes are kept apart.
    MountOverlay,
    /// Only what was put together is left.
    ChangeRoot,
    /// How much may be used.
    LimitResources,
    /// How many processes there may be.
    LimitProcesses,
    /// Nobody inside can look into the first process.
    HideFirstProcess,
    /// No capabilities, now and after.
    DropCapabilities,
    /// No way to gain any.
    NoNewPrivileges,
    /// Landlock.
    RestrictFiles,
    /// The system-call filter.
    FilterSystemCalls,
    /// The command to run is read.
    ReadOrder,
    /// A terminal of its own.
    OpenTerminal,
    /// A process for the command.
    StartCommand,
    /// The standard streams.
    ConnectStreams,
    /// The working directory.
    EnterWorkingDirectory,
    /// The program takes over.
    Execute,
    /// The system's `bwrap` takes over.
    ExecuteBubblewrap,
}

impl SetupStep {
    /// What was being done, to follow "while".
    pub fn doing(self) -> &'static str {
        match self {
            Self::MakeNamespaces => "making namespaces",
            Self::DieWithParent => "binding its life to its parent's",
            Self::LeaveSession => "starting a session",
            Self::CloseDescriptors => "closing inherited descriptors",
            Self::MapIdentity => "mapping the user and group",
            Self::MakeNetwork => "making a network",
            Self::RaiseLoopback => "raising the loopback",
            Self::OpenDoors => "opening the network's doors",
            Self::DetachMounts => "detaching the mounts from the host's",
            Self::OpenRoot => "opening a root",
            Self::MakeReadOnly => "making the machine read-only",
            Self::MountPrivateDirectory => "mounting a private directory",
            Self::MakeDevices => "making the devices",
            Self::AttachRoot => "attaching a root",
            Self::MountProc => "mounting /proc",
            Self::Mask => "masking a sensitive place",
            Self::PlaceDecoys => "placing a decoy",
            Self::Protect => "protecting a place",
            Self::MountOverlay => "mounting the overlay",
            Self::ChangeRoot => "changing the root",
            Self::LimitResources => "limiting resources",
            Self::LimitProcesses => "limiting the number of processes",
            Self::HideFirstProcess => "hiding the first process",
            Self::DropCapabilities => "dropping capabilities",
            Self::NoNewPrivileges => "ruling out new privileges",
            Self::RestrictFiles => "restricting files with Landlock",
            Self::FilterSystemCalls => "filtering system calls",
            Self::ReadOrder => "reading what to run",
            Self::OpenTerminal => "opening a terminal",
            Self::StartCommand => "starting a process for the command",
            Self::ConnectStreams => "connecting the standard streams",
            Self::EnterWorkingDirectory => "entering the working directory",
            Self::Execute => "executing the program",
            Self::ExecuteBubblewrap => "executing bwrap",
        }
    }

    /// Whether the fault lies with the command and not with the confinement.
    pub fn is_about_the_command(self) -> bool {
        matches!(self, Self::ReadOrder | Self::StartCommand | Self::EnterWorkingDirectory | Self::Execute)
    }
}

/// A step that failed: which, on what, and the kernel's word for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetupFault {
    /// What was being done.
    pub step: SetupStep,
    /// What it was done to, where that helps.
    pub subject: String,
    /// The kernel's error number.
    pub errno: i32,
}

impl SetupFault {
    /// Whether something that was there when the sandbox was planned has gone or changed since. Nothing was run.
    pub(super) fn is_stale_path(&self) -> bool {
        let about_places = matches!(
            self.step,
            SetupStep::OpenRoot
                | SetupStep::AttachRoot
                | SetupStep::Mask
                | SetupStep::PlaceDecoys
                | SetupStep::Protect
                | SetupStep::RestrictFiles
        );
        about_places && [Errno::NOENT, Errno::STALE].map(Errno::raw_os_error).contains(&self.errno)
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

/// Names the step that a kernel call belongs to.
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
