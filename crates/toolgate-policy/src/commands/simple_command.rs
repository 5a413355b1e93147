//! One simple command that may run, and what is known of it.

use toolgate_contract::{Access, Permission};

/// One argument, as far as it can be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Argument {
    /// Its value, or the way it is written where the value can't be told.
    pub(crate) text: String,
    pub(crate) certainty: Certainty,
}

/// How much is known of an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Certainty {
    /// All of it.
    Literal,
    /// It stands for the names of existing files like this.
    Pattern,
    /// It comes from the output of commands that only read, as `xargs` hands it on.
    Names,
    /// Nothing.
    Unclear,
}

impl Argument {
    pub(crate) fn literal(text: impl Into<String>) -> Self {
        Self { text: text.into(), certainty: Certainty::Literal }
    }

    pub(crate) fn unclear(text: impl Into<String>) -> Self {
        Self { text: text.into(), certainty: Certainty::Unclear }
    }

    pub(crate) fn is_unclear(&self) -> bool {
        self.certainty == Certainty::Unclear
    }

    /// The value, if it is certain.
    pub(crate) fn known(&self) -> Option<&str> {
        (self.certainty == Certainty::Literal).then_some(&self.text)
    }
}

/// Something that a part touches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Touch {
    Path {
        access: Access,
        /// Absolute.
        path: String,
        /// The last names hold wildcards.
        pattern: bool,
    },
    Host {
        name: String,
        port: u16,
    },
}

/// A right that a part needs and no touch shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    Permission(Permission),
    /// More rights than the user has.
    Privilege,
}

/// Why a part is refused in every preset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Danger {
    pub(crate) rule: String,
    pub(crate) reason: String,
    /// No configuration makes an exception.
    pub(crate) fixed: bool,
}

/// One simple command.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct SimpleCommand {
    pub(crate) words: Vec<Argument>,
    /// How deep it stands inside others.
    pub(crate) level: usize,
    /// How many words after the program are options before a subcommand.
    pub(crate) globals: usize,
    /// The directory it runs in, absolute; none if that can't be told.
    pub(crate) directory: Option<String>,
    /// How many words name the form that is known: `cargo test` has two. None for a program that isn't known.
    pub(crate) form: Option<usize>,
    /// It only starts another command, which is a part of its own.
    pub(crate) wraps: bool,
    /// It runs code that can't be seen from here.
    pub(crate) runs: bool,
    /// The code that it runs is given to it as text: a prefix of it means nothing.
    pub(crate) interprets: bool,
    pub(crate) touches: Vec<Touch>,
    /// It reads files whose names come from elsewhere.
    pub(crate) names: bool,
    pub(crate) needs: Vec<Need>,
    /// What can't be known of it, in words.
    pub(crate) unclear: Vec<String>,
    pub(crate) dangers: Vec<Danger>,
}

impl SimpleCommand {
    /// The command in one line.
    pub(crate) fn text(&self) -> String {
        self.words.iter().map(shown).collect::<Vec<_>>().join(" ")
    }

    /// The words without options that stand before a subcommand: `git -C sub push` is `git push`.
    pub(crate) fn without_globals(&self) -> Vec<&Argument> {
        let (first, rest) = self.words.split_at(self.words.len().min(1));
        first.iter().chain(rest.iter().skip(self.globals)).collect()
    }

    /// Whether all that it does is known.
    pub(crate) fn is_known(&self) -> bool {
        !self.runs && self.unclear.is_empty()
    }

    pub(crate) fn reaches_out(&self) -> bool {
        let connects = |touch: &Touch| matches!(touch, Touch::Host { .. });
        self.needs.contains(&Need::Permission(Permission::NetConnect)) || self.touches.iter().any(connects)
    }

    pub(crate) fn touch(&mut self, touch: Touch) {
        if !self.touches.contains(&touch) {
            self.touches.push(touch);
        }
    }

    pub(crate) fn need(&mut self, need: Need) {
        if !self.needs.contains(&need) {
            self.needs.push(need);
        }
    }

    pub(crate) fn doubt(&mut self, why: impl Into<String>) {
        let why = why.into();
        if !self.unclear.contains(&why) {
            self.unclear.push(why);
        }
    }
}

/// A word as it could be typed.
fn shown(word: &Argument) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "-_./:=,+@%^{}".contains(letter);
    match word.certainty {
        Certainty::Literal if word.text.is_empty() || !word.text.chars().all(is_plain) => {
            format!("'{}'", word.text.replace('\'', r"'\''"))
        }
        _ => word.text.clone(),
    }
}
