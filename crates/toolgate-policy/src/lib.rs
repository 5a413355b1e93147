//! Decides from rules alone whether a call may run, and explains the decision.
//!
//! This crate is pure: it reads no clock, disk, network or environment. Configuration is text, a request is a value,
//! and the verdict is a value.
//!
//! # How a call is judged
//!
//! Every effect of the call, and the call itself, gathers opinions: from built-in rules, from the preset's baseline,
//! and from the rules of every configuration layer. The strictest opinion wins: `Allow < Ask < Deny`.
//!
//! - **An `allow` rule is a standing approval.** It answers an *ask* of its own layer or of a layer with less authority
//!   (managed > user > workspace > flags > builtin, where the preset belongs). It never lifts a deny.
//! - **An approval answers only its own subject.** A rule on a path, host or command answers every ask about that
//!   effect. A rule on a permission answers every ask about that permission. A rule on a tool or a risk answers every
//!   ask about the call, except an ask from a rule on a path, host or command: a general rule doesn't answer a specific
//!   one.
//! - **When in doubt, strict.** Ask and deny rules match if the written or the resolved path matches, ignoring case;
//!   an allow rule matches only if both paths match exactly.
//! - **A permission is judged where it is used**: on each effect that needs it, or on the entire call when no effect
//!   shows it (`git.write`, or a call that states no effects). A *denied* permission also refuses every tool that
//!   declares it, since the tool couldn't do its work.
//! - **A deny is lifted only where it was declared.** `sensitive.except` lifts built-in sensitive paths, and an allow
//!   rule that names a private host lifts the built-in refusal of that host; nothing else does.
//! - **A command is analyzed into its effects.** Every simple command in it, and every path and host, is judged
//!   separately. A rule on a command answers what the preset asks about everything that the command touches. What can't
//!   be known is *unknown*: no allow rule matches it, no approval answers an ask about it, and `commands.unknown`
//!   decides.
//! - **Known dangers are denied in every preset**; `commands.except` lifts those that aren't fixed.
//! - **Everything beyond plain reading is confined**: the verdict says so, and such a call runs only in a sandbox.
//!
//! How the layers of configuration merge is described in `toolgate_config`.

mod autoloaded;
mod call_effects;
mod ceiling;
mod certificates;
mod combine;
mod commands;
mod compile;
mod egress;
mod explain;
mod facts;
mod host;
mod host_sets;
mod instruction_files;
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
mod standing_approval;
#[cfg(test)]
mod testing;

pub use autoloaded::{
    AutoloadedFile, AutoloadedKind, GitConfigJudgement, autoloaded, autoloaded_beneath, is_git_autoloaded,
    judge_git_config, suspicious_in_git_config, suspicious_in_git_todo,
};
pub use ceiling::Ceiling;
pub use certificates::holds_only_certificates;
#[doc(hidden)]
pub use commands::program_options;
pub use commands::{GrantPattern, PathContext, grant_pattern};
pub use compile::{CompiledConfig, compile};
pub use egress::{ConnectionVerdict, plain_host};
pub use explain::{ExplainedCommand, Explanation};
pub use facts::WorkspaceFacts;
pub use host_sets::{REGISTRIES, is_registry};
pub use instruction_files::{InstructionKind, instruction_kind, is_instruction_kind};
pub use judge::{PathBounds, PolicyRequest};
pub use policy::{BUILT_IN, ExampleResult, Policy, RuleDescription};
pub use preset::MANY_FILES;
pub use standing_approval::may_be_standing;
