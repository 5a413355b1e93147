//! What a rule, the baseline or something built in thinks of one part of a call. Opinions are small and borrow nothing
//! but numbers, so that gathering them costs little; only those that are told become findings, in words.

use toolgate_contract::{Decision, Layer, Permission};

use crate::call_effects::CallEffects;
use crate::host::HostFault;
use crate::sensitive_paths::SensitiveMatch;

/// One opinion.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Opinion {
    pub(crate) decision: Decision,
    pub(crate) layer: Layer,
    /// The effect in question, by its number; none when it is about the call as a whole.
    pub(crate) effect: Option<usize>,
    pub(crate) topic: Topic,
    pub(crate) voice: OpinionSource,
}

/// What an opinion is about, which decides what answers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Topic {
    /// The call as a whole.
    Call,
    /// A permission, be it for one effect or for the call.
    Permission(Permission),
    /// One particular effect: its path, its host, its command.
    Effect,
}

/// Who has the opinion.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum OpinionSource {
    /// A rule, by its number.
    Rule(usize),
    /// The preset.
    Baseline(Permission),
    /// The preset, on a call that touches nothing.
    Nothing,
    /// The preset, on a call that changes this many paths.
    ManyFiles(usize),
    /// A built-in place.
    Guard(SensitiveMatch),
    /// The preset, on a file that programs obey, and why they do.
    Obeyed(&'static str),
    /// A host that can't be read.
    Host(HostFault),
    /// A host in a reserved block of this kind.
    Reserved(&'static str),
    /// All that a command does is known, and judged by itself.
    Known,
    /// A process that the session itself started.
    Own,
    /// A danger of a command, by its number.
    Danger(usize),
    /// More rights than the user has.
    Privilege,
    /// A change outside of all roots.
    Outside,
    /// The setting for commands that can't be understood.
    Unknown,
    /// A layer's list of tools, by its number.
    ToolSet(usize),
    /// A ceiling of this call, by its number.
    Ceiling(usize),
    /// It goes beyond the places that the call is held to.
    OutOfBounds,
    /// A change in a root that is only for reading.
    ReadOnlyRoot,
    /// Nobody looked where this path leads.
    Unlocated,
}

impl Opinion {
    /// Whether this is merely what the preset lets pass: not worth telling when something else spoke.
    pub(crate) fn is_baseline(&self) -> bool {
        matches!(self.voice, OpinionSource::Baseline(_) | OpinionSource::Nothing | OpinionSource::Known)
    }

    /// Whether this is a standing approval: an allow rule, not merely the preset.
    pub(crate) fn is_approval(&self) -> bool {
        self.decision == Decision::Allow && matches!(self.voice, OpinionSource::Rule(_))
    }

    /// Whether this is a standing approval that answers that ask. A rule on a command also answers what the preset asks
    /// about the things that the command touches.
    pub(crate) fn answers(&self, ask: &Self, case: &CallEffects<'_>) -> bool {
        self.is_approval()
            && self.layer >= ask.layer
            && match self.topic {
                // To do without the sandbox has to be said in so many words.
                Topic::Call => !matches!(ask.topic, Topic::Effect | Topic::Permission(Permission::Unsandboxed)),
                Topic::Permission(_) => ask.topic == self.topic,
                Topic::Effect => {
                    let owner = ask.effect.and_then(|effect| case.owner(effect));
                    ask.effect == self.effect || owner == self.effect && ask.topic != Topic::Effect
                }
            }
    }
}
