//! A question with all that it comes to: the effects that the tool states, and those that are read out of its commands.

use std::borrow::Cow;

use toolgate_contract::{Effect, LocatedEffect};

use crate::commands::{CommandAnalysis, PathContext, SimpleCommand, Touch, read};
use crate::host::Host;

/// Every effect in question, with where it came from.
#[derive(Debug, Default)]
pub(crate) struct CallEffects<'a> {
    /// The tool's effects first, in their order; then those of commands.
    pub(crate) effects: Cow<'a, [LocatedEffect]>,
    /// For each effect of a command: the part that has it, by the part's number; a part has itself.
    owners: Vec<usize>,
    /// How many effects the tool states.
    stated: usize,
    pub(crate) commands: Vec<CommandEffects>,
}

/// One command of the question, read.
#[derive(Debug)]
pub(crate) struct CommandEffects {
    /// Its number among the effects.
    pub(crate) effect: usize,
    /// Whether its loopback is its own, since it runs in a sandbox. Who is fed may run in none.
    has_own_loopback: bool,
    /// Its parts, each with its number and those of what it touches.
    pub(crate) parts: Vec<SimpleCommandEffects>,
    /// Why it can't be read.
    pub(crate) fault: Option<String>,
}

#[derive(Debug)]
pub(crate) struct SimpleCommandEffects {
    pub(crate) effect: usize,
    pub(crate) part: SimpleCommand,
    /// The numbers of what it touches, in the order of `part.touches`.
    pub(crate) touches: std::ops::Range<usize>,
}

impl CommandEffects {
    /// Whether whoever connects to this host gets no further than the command's own sandbox.
    pub(crate) fn keeps(&self, host: &str) -> bool {
        self.has_own_loopback && Host::read(host).is_ok_and(|host| host.is_loopback())
    }
}

impl<'a> CallEffects<'a> {
    pub(crate) fn new(stated: &'a [LocatedEffect], ground: &PathContext) -> Self {
        let mut case = Self { effects: stated.into(), owners: Vec::new(), stated: stated.len(), commands: Vec::new() };
        let is_confined = !stated.iter().any(|located| matches!(located.effect, Effect::Unsandboxed { .. }));
        for (index, located) in stated.iter().enumerate() {
            match &located.effect {
                Effect::Run { command, workdir } => {
                    case.read(index, is_confined, read(command, workdir, ground), ground);
                }
                Effect::Feed { text, .. } => case.read(index, false, fed(text, ground), ground),
                _ => {}
            }
        }
        case
    }

    fn read(&mut self, effect: usize, has_own_loopback: bool, reading: CommandAnalysis, ground: &PathContext) {
        let parts = reading.parts.into_iter().map(|part| self.part(part, ground)).collect();
        self.commands.push(CommandEffects { effect, has_own_loopback, parts, fault: reading.fault });
    }

    fn part(&mut self, part: SimpleCommand, ground: &PathContext) -> SimpleCommandEffects {
        let workdir = part.directory.as_deref().map(|directory| ground.shown(directory)).unwrap_or_default();
        let number =
            self.push(LocatedEffect::nowhere(Effect::Run { command: part.text(), workdir }), self.effects.len());
        let first = self.effects.len();
        for touch in &part.touches {
            self.push(located(touch, ground), number);
        }
        SimpleCommandEffects { effect: number, touches: first..self.effects.len(), part }
    }

    fn push(&mut self, located: LocatedEffect, owner: usize) -> usize {
        self.effects.to_mut().push(located);
        self.owners.push(owner);
        self.effects.len() - 1
    }

    /// The part of a command that an effect belongs to.
    pub(crate) fn owner(&self, effect: usize) -> Option<usize> {
        self.owners.get(effect.checked_sub(self.stated)?).copied()
    }

    /// Whether an effect stays inside the sandbox of the command that has it: a host that is the command's own loopback.
    pub(crate) fn stays_inside(&self, effect: usize) -> bool {
        let has_it = |command: &&CommandEffects| command.parts.iter().any(|part| part.touches.contains(&effect));
        match &self.effects[effect].effect {
            Effect::Connect { host, .. } => {
                self.commands.iter().find(has_it).is_some_and(|command| command.keeps(host))
            }
            _ => false,
        }
    }

    pub(crate) fn part_at(&self, effect: usize) -> Option<&SimpleCommand> {
        let parts = self.commands.iter().flat_map(|command| &command.parts);
        parts.filter(|part| part.effect == effect).map(|part| &part.part).next()
    }
}

/// What is written into a process may be a line for a shell, and is judged as one. But nobody knows what the process makes
/// of it, so it is an unknown command besides. Keys that a person would press are no part of a line.
fn fed(text: &str, ground: &PathContext) -> CommandAnalysis {
    let line = text.replace('\r', "\n");
    let is_line = !line.chars().any(|character| character.is_control() && !matches!(character, '\n' | '\t'));
    let parts = if is_line { read(&line, "", ground).parts } else { Vec::new() };
    CommandAnalysis { parts, fault: Some("what a process makes of its input can't be seen beforehand".into()) }
}

fn located(touch: &Touch, ground: &PathContext) -> LocatedEffect {
    match touch {
        Touch::Host { name, port } => LocatedEffect::nowhere(Effect::Connect { host: name.clone(), port: *port }),
        Touch::Path { access, path, .. } => {
            let place = Some(ground.place(path));
            LocatedEffect { effect: Effect::at(*access, ground.shown(path)), written: place.clone(), real: place }
        }
    }
}
