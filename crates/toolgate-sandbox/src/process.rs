//! Runs commands that the kernel confines: files, network, processes and system calls, as the workspace's [`Profile`] and
//! the command's [`LaunchSpec`](toolgate_contract::LaunchSpec) say.
//!
//! ```text
//!  host (many threads)               zygote (one thread)     first process of a sandbox         command
//!
//!  Sandbox::launch ─ SandboxPlan ──▶ clone3 ───────────────▶ namespaces, mounts, listeners,
//!                                    (new namespaces)        rlimits, Landlock, seccomp
//!                 ── ExecRequest ──────────────────────────▶ vfork ───────────────────────────▶ execve
//!  Child ◀────────── SandboxMessage: Created, Ready, Started, Ended ── waits, reaps
//! ```
//!
//! The zygote is this same program, executed again before anything else happens ([`zygote_main_if_asked`]). It dies with the
//! host; the first process of each sandbox dies with the zygote; everything in a sandbox dies with its first process. So
//! nothing outlives the host, however it ends. Sandboxes for profiles in use are built ahead and wait for a command. Beside them the
//! zygote keeps a spare one, with namespaces and a root that are the same for every plan, for the command that comes next.
//!
//! ```no_run
//! use toolgate_contract::LaunchSpec;
//! use toolgate_sandbox::process::{Profile, Sandbox, SandboxOptions, zygote_main_if_asked};
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     zygote_main_if_asked();
//!     tokio::runtime::Runtime::new()?.block_on(run())
//! }
//!
//! async fn run() -> Result<(), Box<dyn std::error::Error>> {
//!     let sandbox = Sandbox::new(SandboxOptions::default()).await?;
//!     let profile = Profile::for_workspace("/home/me/project".as_ref(), Some("/home/me".as_ref()));
//!     let child = sandbox.launch(&profile, &LaunchSpec::shell("make test")).await?;
//!     let (output, _errors) = child.read_to_end().await;
//!     println!("{} bytes; ended with {:?}; {:?}", output.len(), child.wait().await?, child.enforcement());
//!     Ok(())
//! }
//! ```

mod bound_sockets;
mod cgroup;
mod child;
mod command_paths;
mod command_plan;
mod connect_broker;
mod decoy_watch;
mod denied_files;
mod enforcement;
mod error;
mod git_autoloaded;
mod instance;
mod launch;
mod limits;
mod pipes;
mod plan;
mod planning;
mod probe;
mod profile;
mod rehearsal;
pub mod requirements;
pub(crate) mod sandboxed_processes;
mod setup;
mod setup_step;
pub(crate) mod syscall;
mod warm_pool;
mod wire;
mod zygote;

pub use child::{Child, ChildExit};
pub use enforcement::{Enforcement, GuaranteeReport, Tier};
pub use error::SandboxError;
pub use git_autoloaded::{GitAutoloaded, autoloaded_by_git};
pub use launch::{Sandbox, SandboxOptions};
pub use limits::ResourceLimits;
pub(crate) use plan::OverlayMount;
pub use profile::{HomeDirectory, Profile, Readable, UnixSockets};
pub(crate) use rehearsal::{Rehearsal, remove};
pub use setup::zygote_main::zygote_main_if_asked;
pub use setup_step::{SetupFault, SetupStep};
pub use syscall::arenas::share_arenas;
#[cfg(feature = "before-main")]
pub use syscall::before_main::zygote_before_main;
