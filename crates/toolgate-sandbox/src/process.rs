//! Runs commands that the kernel confines: files, network, processes and system calls, as a [`Profile`] says.
//!
//! ```text
//!  host (many threads)            zygote (one thread)          first process              command
//!  Sandbox::spawn ── plan ──────▶ clone3 ─────────────────────▶ confines itself
//!                 ── order ──────────────────────────────────▶ starts ──────────────────▶ exec
//!  Running ◀───────── Born, Ready, Started, Ended ──────────── waits, reaps
//! ```
//!
//! The zygote is this same program, executed anew before anything else happens ([`zygote_main_if_asked`]). It dies with the
//! host; the first process of each sandbox dies with the zygote; everything in a sandbox dies with its first process. So
//! nothing outlives the host, however it ends. Sandboxes for profiles in use are built ahead and wait for a command.
//!
//! ```no_run
//! use tokio::io::AsyncReadExt;
//! use toolgate_sandbox::process::{Command, Options, Profile, Sandbox, zygote_main_if_asked};
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     zygote_main_if_asked();
//!     tokio::runtime::Runtime::new()?.block_on(run())
//! }
//!
//! async fn run() -> Result<(), Box<dyn std::error::Error>> {
//!     let sandbox = Sandbox::new(Options::default()).await?;
//!     let profile = Profile::for_workspace("/home/me/project".as_ref(), Some("/home/me".as_ref()));
//!     let mut running = sandbox.spawn(&profile, &Command::shell("make test")).await?;
//!     let mut output = String::new();
//!     running.stdout.as_mut().unwrap().read_to_string(&mut output).await?;
//!     println!("{output}ended with {:?}; {:?}", running.wait().await?, running.enforcement().enforced());
//!     Ok(())
//! }
//! ```

mod cgroup;
mod child;
mod decoy_watch;
pub(crate) mod denied_files;
mod enforcement;
mod error;
mod git_autoloaded;
mod instance;
mod launch;
mod limits;
mod plan;
mod planning;
mod probe;
mod profile;
mod rehearsal;
pub mod requirements;
pub(crate) mod sandboxed_processes;
mod setup;
mod setup_step;
mod spec;
pub(crate) mod syscall;
mod warm_pool;
mod wire;
mod zygote;

pub use child::{Child, ChildExit, PtyMaster, Signaller};
pub(crate) use decoy_watch::DecoyWatch;
pub use enforcement::{Enforcement, GuaranteeReport, Tier};
pub use error::SandboxError;
pub use git_autoloaded::{GitAutoloaded, autoloaded_by_git};
pub use launch::{Sandbox, SandboxOptions};
pub use limits::ResourceLimits;
pub use profile::{HomeDirectory, ListedHosts, NetworkAccess, Profile, Readable, UnixSockets};
pub use rehearsal::Rehearsal;
pub(crate) use rehearsal::remove;
pub use rustix::process::Signal;
pub use setup::zygote_main::zygote_main_if_asked;
pub use setup_step::{SetupFault, SetupStep};
pub use spec::{CommandSpec, PtySize, StandardStreams};
pub use syscall::arenas::share_arenas;
#[cfg(feature = "before-main")]
pub use syscall::before_main::zygote_before_main;
