//! A command read aloud: its parts, what each touches, and what was decided about it.

use toolgate_contract::{Effect, LocatedEffect, Permission};

use crate::call_effects::CallEffects;
use crate::commands::Need;
use crate::policy::Policy;

/// A command with all that can be told of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    /// The simple commands in it.
    pub parts: Vec<ExplainedCommand>,
    /// Why it can't be read.
    pub fault: Option<String>,
}

/// One simple command.
#[derive(Debug, Clone, PartialEq)]
pub struct ExplainedCommand {
    /// How it could be typed.
    pub text: String,
    /// Its words, as far as they are known.
    pub words: Vec<String>,
    /// How deep it stands inside others.
    pub level: usize,
    /// The directory it runs in; none if that can't be told.
    pub workdir: Option<String>,
    /// It only starts another command.
    pub wraps: bool,
    /// It runs code that can't be seen beforehand.
    pub runs: bool,
    /// What it touches.
    pub effects: Vec<Effect>,
    /// Rights that it needs beyond those.
    pub needs: Vec<String>,
    /// What can't be known of it.
    pub unclear: Vec<String>,
}

impl Explanation {
    /// Everything that is touched, in order.
    pub fn effects(&self) -> impl Iterator<Item = &Effect> {
        self.parts.iter().flat_map(|part| &part.effects)
    }
}

impl Policy {
    /// Reads a command, and says what it would do.
    pub fn explain(&self, command: &str, workdir: &str) -> Explanation {
        let effect = Effect::Run { command: command.to_owned(), workdir: workdir.to_owned() };
        let stated = [LocatedEffect::nowhere(effect)];
        let case = CallEffects::new(&stated, &self.ground);
        let Some(read) = case.commands.first() else { return Explanation { parts: Vec::new(), fault: None } };
        let parts = read.parts.iter().map(|found| {
            let part = &found.part;
            ExplainedCommand {
                text: part.text(),
                words: part.words.iter().map(|word| word.text.clone()).collect(),
                level: part.level,
                workdir: part.directory.as_deref().map(|directory| self.ground.shown(directory)),
                wraps: part.wraps,
                runs: part.runs,
                effects: case.effects[found.touches.clone()].iter().map(|located| located.effect.clone()).collect(),
                needs: part.needs.iter().map(|need| said(*need)).collect(),
                unclear: part.unclear.clone(),
            }
        });
        Explanation { parts: parts.collect(), fault: read.fault.clone() }
    }
}

fn said(need: Need) -> String {
    match need {
        Need::Permission(Permission::NetConnect) => "connect to a host".into(),
        Need::Permission(permission) => permission.to_string(),
        Need::Privilege => "other rights".into(),
    }
}
