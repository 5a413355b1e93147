//! The vocabulary of the tables: what an operand is, what a flag does.

use serde::Deserialize;

/// What an operand, or the value of a flag, is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum OperandRole {
    /// Not touched.
    #[serde(alias = "signal")]
    Text,
    /// A file or directory that is read.
    #[serde(alias = "list")]
    Read,
    Write,
    Delete,
    /// A URL whose host is connected to.
    Url,
    /// `[user@]host[:…]`.
    Host,
    /// A repository: a name from the configuration, a URL, or `host:path`.
    Remote,
    /// A repository to copy: a URL, `host:path`, or a directory.
    Repository,
    /// A revision; `REV:PATH` reads a path.
    Rev,
    /// A revision or a path.
    Revpath,
    /// The directory to work in.
    Workdir,
    /// The first word of another command; the rest belongs to it.
    Command,
    /// The text of a shell command.
    Script,
    /// Code in another language.
    Code,
    /// A file whose code is run.
    Program,
    /// A program of `sed`.
    Sed,
    /// A program of `awk`.
    Awk,
    /// The expression of `find`.
    Exec,
    /// `name=value` words of `dd`.
    Dd,
    /// `NAME` and `NAME=value` words.
    Assignments,
    /// `NAME=value` words, then a command.
    #[serde(rename = "assignments-then-command")]
    Environment,
    /// A program of `jq`, which may load files.
    Filter,
    /// Text to send; `@file` sends a file.
    Data,
    /// A local file that is read, or `host:path`.
    Copy,
    /// A local file that is written, or `host:path`.
    CopyTo,
    /// A local file, or an address in a cloud.
    Cloud,
    /// Each operand is a shell command of its own.
    Scripts,
    /// A format after `+`. Any other operand of `date` sets the clock.
    Clock,
    /// A format. Some placeholders run a program: git's for signatures, rpm's for macros.
    Format,
    /// A private key that is made.
    NewKey,
    /// A git reference, which changes.
    GitRef,
    /// It decides what happens in an unknown way.
    Unclear,
}

impl OperandRole {
    fn read(word: &str) -> Result<Self, String> {
        let reader = serde::de::value::StrDeserializer::<serde::de::value::Error>::new(word);
        Self::deserialize(reader).map_err(|fault| format!("`{word}`: {fault}"))
    }

    /// Whether an argument in this role may do more than read or print.
    pub(super) fn is_risky(self) -> bool {
        !matches!(
            self,
            Self::Text | Self::Read | Self::Rev | Self::Revpath | Self::Workdir | Self::Assignments | Self::Clock
        )
    }

    /// Whether it is a file initially, which a flag may also change or delete.
    pub(super) fn is_source(self) -> bool {
        matches!(self, Self::Read | Self::Revpath | Self::Copy)
    }

    /// Whether the following words are no longer the program's own: the parameters of a script.
    pub(super) fn ends_flags(self) -> bool {
        matches!(self, Self::Program | Self::Script)
    }

    /// Whether all remaining words belong to another command.
    pub(super) fn takes_the_rest(self) -> bool {
        matches!(self, Self::Command | Self::Environment)
    }
}

/// The roles of all operands, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct OperandRoles {
    /// Roles of the first operands.
    first: Vec<OperandRole>,
    /// The role of all operands in between: the one written with a star, or the last one.
    middle: Option<OperandRole>,
    /// The role of the last operand, where it differs.
    last: Option<OperandRole>,
}

impl TryFrom<String> for OperandRoles {
    type Error = String;

    fn try_from(written: String) -> Result<Self, String> {
        let mut roles = Self::default();
        let words: Vec<&str> = written.split_whitespace().collect();
        for (index, word) in words.iter().enumerate() {
            match word.strip_suffix('*') {
                Some(starred) => {
                    roles.middle = Some(OperandRole::read(starred)?);
                    roles.last = words.get(index + 1).map(|last| OperandRole::read(last)).transpose()?;
                    break;
                }
                None => roles.first.push(OperandRole::read(word)?),
            }
        }
        if roles.middle.is_none() {
            roles.middle = roles.first.pop();
        }
        Ok(roles)
    }
}

impl OperandRoles {
    /// The role of the operand at `index` of `count`.
    pub(super) fn role(&self, index: usize, count: usize) -> OperandRole {
        match self.last {
            Some(last) if index + 1 == count && index >= self.first.len() && count > self.first.len() => last,
            _ => self.first.get(index).copied().or(self.middle).unwrap_or(OperandRole::Text),
        }
    }

    /// Whether an operand would get a role in which it does more than read or print, if the one at `at` of `count` became
    /// `more` further words.
    pub(super) fn shift_to_risk(&self, at: usize, count: usize, more: usize) -> bool {
        let moved = |index: usize| match index {
            before if before < at => before..before + 1,
            same if same == at => at..at + more + 1,
            after => after + more..after + more + 1,
        };
        (0..count).any(|index| {
            let role = self.role(index, count);
            moved(index).map(|index| self.role(index, count + more)).any(|other| other != role && other.is_risky())
        })
    }

    /// Where another command begins, if one does.
    pub(super) fn command_at(&self) -> Option<(usize, OperandRole)> {
        let at = self.first.iter().position(|role| role.takes_the_rest());
        let middle = self.middle.filter(|role| role.takes_the_rest());
        at.map(|at| (at, self.first[at])).or(middle.map(|role| (self.first.len(), role)))
    }

    /// The roles without the first one: a flag has replaced that operand.
    pub(super) fn shifted(&self) -> Self {
        let mut shifted = self.clone();
        if !shifted.first.is_empty() {
            shifted.first.remove(0);
        }
        shifted
    }

    /// Whether the operands are moved: deleted, and written under another name.
    pub(super) fn moves(&self) -> bool {
        let roles = [self.first.first().copied(), self.middle, self.last];
        roles.contains(&Some(OperandRole::Delete)) && roles.contains(&Some(OperandRole::Write))
    }

    pub(super) fn is_risky(&self) -> bool {
        self.first.iter().chain(&self.middle).chain(&self.last).any(|role| role.is_risky())
    }
}

/// What a flag changes, without a value or in addition to its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FlagEffect {
    /// Operands are written as well.
    Write,
    /// Operands are deleted as well.
    Delete,
    /// Operands are read as well.
    Read,
    /// Operands are plain text.
    Text,
    /// Its input replaces this value, or `{}`.
    Fill,
    /// The flag replaces the first operand.
    Shift,
    Unclear,
    Run,
    Net,
    #[serde(rename = "git.write")]
    GitWrite,
    /// It writes files that aren't named.
    #[serde(rename = "fs.write")]
    FsWrite,
    /// It deletes files that aren't named.
    #[serde(rename = "fs.delete")]
    FsDelete,
    Recursive,
    /// It prints help or a version and does nothing else.
    Help,
}

/// A flag: the role of its value, if it takes one, and what else it does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct FlagRole {
    pub(super) value: Option<OperandRole>,
    /// `find -fprintf FILE FORMAT` takes two.
    pub(super) second: Option<OperandRole>,
    /// `[text]`: the value is optional, and attached if present.
    pub(super) optional: bool,
    pub(super) marks: [Option<FlagEffect>; 2],
}

impl TryFrom<String> for FlagRole {
    type Error = String;

    fn try_from(written: String) -> Result<Self, String> {
        let mut role = Self::default();
        for word in written.split_whitespace().filter(|word| *word != "switch") {
            match word.strip_prefix('!') {
                None if role.value.is_some() => role.second = Some(OperandRole::read(word)?),
                None => {
                    let inner = word.strip_prefix('[').and_then(|word| word.strip_suffix(']'));
                    role.optional = inner.is_some();
                    role.value = Some(OperandRole::read(inner.unwrap_or(word))?);
                }
                Some(name) => {
                    let reader = serde::de::value::StrDeserializer::<serde::de::value::Error>::new(name);
                    let mark = FlagEffect::deserialize(reader).map_err(|fault| format!("`{word}`: {fault}"))?;
                    let slot = role.marks.iter_mut().find(|slot| slot.is_none());
                    *slot.ok_or_else(|| format!("`{written}` has too many words"))? = Some(mark);
                }
            }
        }
        Ok(role)
    }
}

impl FlagRole {
    pub(super) fn takes_value(self) -> bool {
        self.value.is_some()
    }

    pub(super) fn has(self, mark: FlagEffect) -> bool {
        self.marks.contains(&Some(mark))
    }

    pub(super) fn is_risky(self) -> bool {
        let harmless = |mark: FlagEffect| {
            matches!(
                mark,
                FlagEffect::Read
                    | FlagEffect::Text
                    | FlagEffect::Shift
                    | FlagEffect::Fill
                    | FlagEffect::Recursive
                    | FlagEffect::Help
            )
        };
        self.value.is_some_and(OperandRole::is_risky) || self.marks.into_iter().flatten().any(|mark| !harmless(mark))
    }
}
