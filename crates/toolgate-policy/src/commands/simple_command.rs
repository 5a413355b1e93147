//! One simple command that may run, and what is known about it.

use serde::Deserialize;
use toolgate_contract::{Access, Permission};

/// One argument, as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Argument {
    /// Its value, or its source text if the value is unknown.
    pub(crate) text: String,
    pub(crate) certainty: Certainty,
    /// It comes from an unquoted expansion or a pattern, so it may be several words, or none.
    pub(crate) splits: bool,
}

/// How much is known about an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Certainty {
    /// The exact value.
    Literal,
    /// A glob pattern that matches existing files.
    Pattern,
    /// File names from the output of commands that only read, as `xargs` passes them on.
    Names,
    /// Nothing.
    Unclear,
}

impl Argument {
    /// One word.
    pub(crate) fn new(text: impl Into<String>, certainty: Certainty) -> Self {
        Self { text: text.into(), certainty, splits: false }
    }

    pub(crate) fn literal(text: impl Into<String>) -> Self {
        Self::new(text, Certainty::Literal)
    }

    pub(crate) fn unclear(text: impl Into<String>) -> Self {
        Self::new(text, Certainty::Unclear)
    }

    pub(crate) fn is_unclear(&self) -> bool {
        self.certainty == Certainty::Unclear
    }

    /// Whether it may become several words when the command runs.
    pub(crate) fn may_be_several(&self) -> bool {
        self.splits || matches!(self.certainty, Certainty::Pattern | Certainty::Names)
    }

    /// The value, if it is certain.
    pub(crate) fn known(&self) -> Option<&str> {
        (self.certainty == Certainty::Literal).then_some(&self.text)
    }
}

/// Something that a simple command touches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Touch {
    Path {
        access: Access,
        /// Absolute.
        path: String,
        /// Whether the path contains wildcards.
        pattern: bool,
    },
    Host {
        name: String,
        port: u16,
    },
}

/// A permission that a simple command needs and no touch shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) enum Need {
    Permission(Permission),
    /// More privileges than the user has.
    Privilege,
}

impl TryFrom<String> for Need {
    type Error = String;

    /// Parses a need by its name in the tables.
    fn try_from(name: String) -> Result<Self, String> {
        Ok(match name.as_str() {
            "git.write" => Self::Permission(Permission::GitWrite),
            "net.connect" => Self::Permission(Permission::NetConnect),
            "fs.write" => Self::Permission(Permission::FsWrite),
            "fs.delete" => Self::Permission(Permission::FsDelete),
            "privilege" => Self::Privilege,
            _ => return Err(format!("`{name}` is not a need")),
        })
    }
}

/// Why a simple command is denied in every preset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Danger {
    pub(crate) rule: String,
    pub(crate) reason: String,
    /// Whether no configuration can make an exception.
    pub(crate) fixed: bool,
}

/// One simple command.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct SimpleCommand {
    pub(crate) words: Vec<Argument>,
    /// How many other commands it is nested in.
    pub(crate) level: usize,
    /// How many words after the program are options before a subcommand.
    pub(crate) globals: usize,
    /// The directory it runs in, absolute; none if that is unknown.
    pub(crate) directory: Option<String>,
    /// How many words name the known form: `cargo test` has two. None for an unknown program.
    pub(crate) form: Option<usize>,
    /// It only starts another command, which is analyzed separately.
    pub(crate) is_wrapper: bool,
    /// It runs code that can't be analyzed.
    pub(crate) runs_code: bool,
    /// The code that it runs is given to it as text, so a prefix of its words means nothing.
    pub(crate) interprets_text: bool,
    /// The code that it runs is its standard input.
    pub(crate) interprets_input: bool,
    pub(crate) touches: Vec<Touch>,
    /// What it deletes it only moves to another place in the workspace.
    pub(crate) only_moves: bool,
    /// The keys that it makes.
    pub(crate) new_keys: Vec<String>,
    /// It reads files whose names come from elsewhere.
    pub(crate) names: bool,
    pub(crate) needs: Vec<Need>,
    /// What is unknown about it, in words.
    pub(crate) unclear: Vec<String>,
    pub(crate) dangers: Vec<Danger>,
}

impl SimpleCommand {
    /// The command in one line.
    pub(crate) fn text(&self) -> String {
        self.words.iter().map(shown).collect::<Vec<_>>().join(" ")
    }

    /// The words without options before a subcommand: `git -C sub push` is `git push`.
    pub(crate) fn without_globals(&self) -> Vec<&Argument> {
        let (first, rest) = self.words.split_at(self.words.len().min(1));
        first.iter().chain(rest.iter().skip(self.globals)).collect()
    }

    /// Whether everything that it does is known.
    pub(crate) fn is_known(&self) -> bool {
        !self.runs_code && self.unclear.is_empty()
    }

    /// Whether it is known to do nothing but read files.
    pub(crate) fn only_reads(&self) -> bool {
        let reads = |touch: &Touch| matches!(touch, Touch::Path { access: Access::Read, .. });
        self.is_known() && self.needs.is_empty() && self.touches.iter().all(reads)
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

/// A word as it could be typed in a shell.
fn shown(word: &Argument) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "-_./:=,+@%^{}".contains(letter);
    match word.certainty {
        Certainty::Literal if word.text.is_empty() || !word.text.chars().all(is_plain) => {
            format!("'{}'", word.text.replace('\'', r"'\''"))
        }
        _ => word.text.clone(),
    }
}
