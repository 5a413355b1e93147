//! Explains a command to a person: its simple commands and what each touches.

use toolgate_contract::{Effect, LocatedEffect, Permission};

use crate::call_effects::CallEffects;
use crate::commands::Need;
use crate::policy::Policy;

/// The explanation of a command.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    /// The simple commands in it.
    pub parts: Vec<ExplainedCommand>,
    /// Why the command can't be parsed.
    pub fault: Option<String>,
}

/// One simple command.
#[derive(Debug, Clone, PartialEq)]
pub struct ExplainedCommand {
    /// How it could be typed in a shell.
    pub text: String,
    /// Its words, as far as they are known.
    pub words: Vec<String>,
    /// How many other commands it is nested in.
    pub level: usize,
    /// The directory it runs in; none if that is unknown.
    pub workdir: Option<String>,
    /// Whether it only starts another command.
    pub is_wrapper: bool,
    /// Whether it runs code that can't be analyzed beforehand.
    pub runs_code: bool,
    /// What it touches.
    pub effects: Vec<Effect>,
    /// Permissions that it needs in addition to its effects.
    pub needs: Vec<String>,
    /// What is unknown about it.
    pub unclear: Vec<String>,
}

impl Explanation {
    /// Every effect, in order.
    pub fn effects(&self) -> impl Iterator<Item = &Effect> {
        self.parts.iter().flat_map(|part| &part.effects)
    }
}

impl Policy {
    /// Analyzes a command and says what it would do.
    pub fn explain(&self, command: &str, workdir: &str) -> Explanation {
        let effect = Effect::Run { command: command.to_owned(), workdir: workdir.to_owned() };
        let stated = [LocatedEffect::nowhere(effect)];
        let call = CallEffects::new(&stated, &self.paths);
        let Some(read) = call.commands.first() else { return Explanation { parts: Vec::new(), fault: None } };
        let parts = read.parts.iter().map(|found| {
            let part = &found.part;
            ExplainedCommand {
                text: part.text(),
                words: part.words.iter().map(|word| word.text.clone()).collect(),
                level: part.level,
                workdir: part.directory.as_deref().map(|directory| self.paths.shown(directory)),
                is_wrapper: part.is_wrapper,
                runs_code: part.runs_code,
                effects: call.effects[found.touches.clone()].iter().map(|located| located.effect.clone()).collect(),
                needs: part.needs.iter().map(|need| describe_need(*need)).collect(),
                unclear: part.unclear.clone(),
            }
        });
        Explanation { parts: parts.collect(), fault: read.fault.clone() }
    }
}

fn describe_need(need: Need) -> String {
    match need {
        Need::Permission(Permission::NetConnect) => "connect to a host".into(),
        Need::Permission(permission) => permission.to_string(),
        Need::Privilege => "elevated privileges".into(),
    }
}
