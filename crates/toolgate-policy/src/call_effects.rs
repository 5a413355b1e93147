//! All effects of a call: those that the tool states, and those found by analyzing its commands.

use std::borrow::Cow;

use toolgate_contract::{Effect, LocatedEffect};

use crate::commands::{CommandAnalysis, PathContext, SimpleCommand, Touch, analyze};
use crate::host::Host;

/// Every effect of a call, with its origin.
#[derive(Debug, Default)]
pub(crate) struct CallEffects<'a> {
    /// The effects that the tool states, in their order; then those of its commands.
    pub(crate) effects: Cow<'a, [LocatedEffect]>,
    /// For each effect of a command: the index of the simple command that has it. A simple command owns itself.
    owners: Vec<usize>,
    /// How many effects the tool states.
    stated: usize,
    pub(crate) commands: Vec<CommandEffects>,
}

/// The analysis of one command of the call.
#[derive(Debug)]
pub(crate) struct CommandEffects {
    /// Its index among the effects.
    pub(crate) effect: usize,
    /// Whether the command has a loopback and temporary directories of its own because it runs in a sandbox. A process
    /// that gets input may run without one.
    pub(crate) has_own_sandbox: bool,
    /// Its simple commands, each with its own index and those of what it touches.
    pub(crate) parts: Vec<SimpleCommandEffects>,
    /// Why the command can't be parsed.
    pub(crate) fault: Option<String>,
}

#[derive(Debug)]
pub(crate) struct SimpleCommandEffects {
    pub(crate) effect: usize,
    pub(crate) part: SimpleCommand,
    /// The indexes of what it touches, in the order of `part.touches`.
    pub(crate) touches: std::ops::Range<usize>,
}

impl CommandEffects {
    /// Whether a connection to this host stays inside the command's own sandbox.
    pub(crate) fn is_own_loopback(&self, host: &str) -> bool {
        self.has_own_sandbox && Host::read(host).is_ok_and(|host| host.is_loopback())
    }
}

impl<'a> CallEffects<'a> {
    pub(crate) fn new(stated: &'a [LocatedEffect], paths: &PathContext) -> Self {
        let mut call = Self { effects: stated.into(), owners: Vec::new(), stated: stated.len(), commands: Vec::new() };
        let is_confined = !stated.iter().any(|located| matches!(located.effect, Effect::Unsandboxed { .. }));
        for (index, located) in stated.iter().enumerate() {
            match &located.effect {
                Effect::Run { command, workdir } => {
                    call.add_command(index, is_confined, analyze(command, workdir, paths), paths);
                }
                Effect::Feed { text, .. } => call.add_command(index, false, analyze_input(text, paths), paths),
                _ => {}
            }
        }
        call
    }

    fn add_command(&mut self, effect: usize, has_own_sandbox: bool, analysis: CommandAnalysis, paths: &PathContext) {
        let parts = analysis.parts.into_iter().map(|part| self.add_part(part, paths)).collect();
        self.commands.push(CommandEffects { effect, has_own_sandbox, parts, fault: analysis.fault });
    }

    fn add_part(&mut self, part: SimpleCommand, paths: &PathContext) -> SimpleCommandEffects {
        let workdir = part.directory.as_deref().map(|directory| paths.shown(directory)).unwrap_or_default();
        let number =
            self.push(LocatedEffect::nowhere(Effect::Run { command: part.text(), workdir }), self.effects.len());
        let first = self.effects.len();
        for touch in &part.touches {
            self.push(located(touch, paths), number);
        }
        SimpleCommandEffects { effect: number, touches: first..self.effects.len(), part }
    }

    fn push(&mut self, located: LocatedEffect, owner: usize) -> usize {
        self.effects.to_mut().push(located);
        self.owners.push(owner);
        self.effects.len() - 1
    }

    /// The effects that the tool states.
    pub(crate) fn stated(&self) -> &[LocatedEffect] {
        &self.effects[..self.stated]
    }

    /// The simple command that an effect belongs to.
    pub(crate) fn owner(&self, effect: usize) -> Option<usize> {
        self.owners.get(effect.checked_sub(self.stated)?).copied()
    }

    /// Whether an effect stays inside the sandbox of its command: a connection to the command's own loopback.
    pub(crate) fn stays_inside(&self, effect: usize) -> bool {
        let has_it = |command: &&CommandEffects| command.parts.iter().any(|part| part.touches.contains(&effect));
        match &self.effects[effect].effect {
            Effect::Connect { host, .. } => {
                self.commands.iter().find(has_it).is_some_and(|command| command.is_own_loopback(host))
            }
            _ => false,
        }
    }

    pub(crate) fn part_at(&self, effect: usize) -> Option<&SimpleCommand> {
        let parts = self.commands.iter().flat_map(|command| &command.parts);
        parts.filter(|part| part.effect == effect).map(|part| &part.part).next()
    }
}

/// Analyzes text that is written to a process. The text may be a line for a shell, and is judged as one. What the
/// process does with it can't be known, so it also counts as an unknown command. Control keys are not part of the line.
fn analyze_input(text: &str, paths: &PathContext) -> CommandAnalysis {
    let line = text.replace('\r', "\n");
    let is_line = !line.chars().any(|character| character.is_control() && !matches!(character, '\n' | '\t'));
    let parts = if is_line { analyze(&line, "", paths).parts } else { Vec::new() };
    CommandAnalysis { parts, fault: Some("what a process makes of its input can't be seen beforehand".into()) }
}

fn located(touch: &Touch, paths: &PathContext) -> LocatedEffect {
    match touch {
        Touch::Host { name, port } => LocatedEffect::nowhere(Effect::Connect { host: name.clone(), port: *port }),
        Touch::Path { access, path, .. } => {
            let place = Some(paths.place(path));
            LocatedEffect { effect: Effect::at(*access, paths.shown(path)), written: place.clone(), real: place }
        }
    }
}
