//! Decides, from rules alone, whether a call may run, and says why (C-8 to C-16).
//!
//! Nothing here reads a clock, a disk, the network or the environment: configuration comes in as text, a question as a
//! value, and the answer is a value.
//!
//! # How a call is judged
//!
//! Every effect of the call, and the call as a whole, gathers opinions: from what is built in, from the preset's
//! baseline, and from the rules of every layer. The strictest wins: `Allow < Ask < Deny`.
//!
//! - **An `allow` rule is a standing approval.** It answers an *ask* of its own layer or of a layer with less authority
//!   (managed > user > workspace > flags > builtin, where the preset lives). It never touches a deny.
//! - **It answers what it speaks of.** A rule on a path, host or command answers whatever is asked about that effect. A
//!   rule on a permission answers what is asked about that permission. A rule on a tool or a risk answers whatever is
//!   asked about the call, but not an ask that a rule on a path, host or command makes: the general doesn't answer the
//!   particular.
//! - **When in doubt, strict.** Ask and deny rules match a path if the written or the real place matches, whatever the
//!   case of its letters; an allow rule matches only if both places do, letter by letter.
//! - **A permission is judged where it is used**: on each effect that needs it, or on the call as a whole when no effect
//!   shows it (`git.write`, or a call that states no effects). A *denied* permission also refuses every tool that
//!   declares it, since the tool couldn't do its work.
//! - **A deny goes away only where it was declared.** `sensitive.except` lifts built-in sensitive places, and an allow
//!   rule that names a private host lifts the built-in refusal of that host; nothing else does.
//! - **A command is read as its effects.** Every simple command in it is a part, and every part, path and host is judged
//!   by itself. A rule on a command answers what the preset asks about all that the part touches. What can't be known is
//!   *unknown*: no allow rule matches it, nothing answers what is asked about it, and `commands.unknown` decides.
//! - **Known dangers are denied in every preset**; `commands.except` lifts those that aren't fixed.
//! - **More than plain reading is confined**: the verdict says so, and such a call runs only where a sandbox holds it.
//!
//! How the layers of configuration merge is told in `toolgate_config`.

mod autoloaded;
mod call_effects;
mod ceiling;
mod combine;
mod commands;
mod compile;
mod egress;
mod explain;
mod host;
mod judge;
mod judge_command;
mod opinion;
mod path_glob;
mod policy;
mod preset;
#[cfg(test)]
mod properties;
mod rules;
mod sensitive_paths;
mod standing_rules;
#[cfg(test)]
mod testing;

pub use autoloaded::{
    AutoloadedFile, AutoloadedKind, autoloaded, autoloaded_beneath, is_git_autoloaded, suspicious_in_git_config,
    suspicious_in_git_todo,
};
pub use ceiling::Ceiling;
pub use commands::{GrantPattern, PathContext, grant_pattern};
pub use compile::{CompiledConfig, compile};
pub use egress::{ConnectionVerdict, plain_host};
pub use explain::{ExplainedCommand, Explanation};
pub use judge::{PathBounds, PolicyRequest};
pub use policy::{BUILT_IN, ExampleResult, Policy, RuleDescription};
pub use preset::MANY_FILES;
pub use standing_rules::{standing_rules, to_toml};
