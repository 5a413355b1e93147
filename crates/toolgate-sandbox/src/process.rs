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

mod cage;
mod command;
mod decoys;
mod enforcement;
mod error;
mod inside;
pub(crate) mod kernel;
mod limits;
mod pen;
mod plan;
mod planning;
mod probe;
mod profile;
mod rehearsal;
mod repositories;
mod running;
mod sandbox;
mod step;
mod warm;
mod wire;
mod zygote;

pub use command::{Command, Streams, TerminalSize};
pub(crate) use decoys::Decoys;
pub use enforcement::{Enforcement, GuaranteeReport, Tier};
pub use error::SandboxError;
pub use inside::zygote::zygote_main_if_asked;
#[cfg(feature = "before-main")]
pub use kernel::before_main::zygote_before_main;
pub use kernel::heaps::share_heaps;
pub use limits::Limits;
pub use profile::{Home, Listed, Network, Profile, Readable, UnixSockets};
pub use rehearsal::Rehearsal;
pub(crate) use rehearsal::remove;
pub use repositories::{Obeyed, obeyed_by_git};
pub use running::{Ended, Running, Signaller, Terminal};
pub use rustix::process::Signal;
pub use sandbox::{Options, Sandbox};
pub use step::{Fault, Step};
