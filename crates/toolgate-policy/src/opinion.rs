//! What a rule, the baseline or a built-in check says about one aspect of a call. Opinions are small values of indexes,
//! so gathering them is cheap; only those that are reported become findings, in words.

use toolgate_contract::{Decision, Layer, Permission};

use crate::call_effects::CallEffects;
use crate::host::HostFault;
use crate::instruction_files::InstructionKind;
use crate::sensitive_paths::SensitiveMatch;

/// One opinion.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Opinion {
    pub(crate) decision: Decision,
    pub(crate) layer: Layer,
    /// The index of the effect in question; none if it is about the entire call.
    pub(crate) effect: Option<usize>,
    pub(crate) topic: Topic,
    pub(crate) source: OpinionSource,
}

/// What an opinion is about. This decides which approvals answer it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Topic {
    /// The entire call.
    Call,
    /// A permission, for one effect or for the call.
    Permission(Permission),
    /// One particular effect: its path, its host, its command.
    Effect,
}

/// Where the opinion comes from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum OpinionSource {
    /// A rule, by its index.
    Rule(usize),
    /// The preset.
    Baseline(Permission),
    /// The preset, on a call that touches nothing.
    Nothing,
    /// The preset, on a call that changes this many paths.
    ManyFiles(usize),
    /// A built-in sensitive path.
    SensitivePath(SensitiveMatch),
    /// The preset, on a file that programs load or run automatically, with the reason.
    Autoloaded(&'static str),
    /// The preset, on a file with instructions that somebody else follows later.
    Instructions(&'static InstructionKind),
    /// A host that can't be parsed.
    Host(HostFault),
    /// A host in a reserved block of this kind.
    Reserved(&'static str),
    /// Everything that a command does is known and judged separately.
    Known,
    /// A process that the session itself started.
    Own,
    /// A danger of a command, by its index.
    Danger(usize),
    /// More privileges than the user has.
    Privilege,
    /// A private key that a command makes.
    NewKey,
    /// Another address for a remote, which a command writes out.
    RemoteUrl,
    /// A change outside all roots.
    Outside,
    /// The setting for commands that can't be analyzed.
    Unknown,
    /// A layer's list of tools, by its index.
    ToolSet(usize),
    /// A ceiling of this call, by its index.
    Ceiling(usize),
    /// The effect is outside the paths that the call is limited to.
    OutOfBounds,
    /// A change in a read-only root.
    ReadOnlyRoot,
    /// The path was not resolved.
    Unlocated,
}

impl Opinion {
    /// Whether this is only what the preset allows: not worth reporting when another opinion exists.
    pub(crate) fn is_baseline(&self) -> bool {
        matches!(self.source, OpinionSource::Baseline(_) | OpinionSource::Nothing | OpinionSource::Known)
    }

    /// Whether this is a standing approval: an allow rule, not only the preset.
    pub(crate) fn is_approval(&self) -> bool {
        self.decision == Decision::Allow && matches!(self.source, OpinionSource::Rule(_))
    }

    /// Whether this is a standing approval that answers that ask. A rule on a command also answers what the preset asks
    /// about everything that the command touches.
    pub(crate) fn answers(&self, ask: &Self, call: &CallEffects<'_>) -> bool {
        self.is_approval()
            && self.layer >= ask.layer
            && match self.topic {
                // Running without the sandbox has to be allowed explicitly.
                Topic::Call => !matches!(ask.topic, Topic::Effect | Topic::Permission(Permission::Unsandboxed)),
                Topic::Permission(_) => ask.topic == self.topic,
                Topic::Effect => {
                    let owner = ask.effect.and_then(|effect| call.owner(effect));
                    ask.effect == self.effect || owner == self.effect && ask.topic != Topic::Effect
                }
            }
    }
}
