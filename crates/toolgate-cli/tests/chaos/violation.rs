//! What must always hold, and a case where it didn't.

use std::fmt;

/// What must hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Invariant {
    /// What a reply says changed is what changed on the disk.
    ReplyIsTrue,
    /// Nothing else changed.
    NothingElseChanged,
    /// What disappeared can be undone, is quarantined and named, or was said to be beyond the quota.
    NothingIsLost,
    /// An undo is exact, or refused with a reason and then changes nothing.
    UndoIsExact,
    /// The record is intact.
    AuditHolds,
    /// Every git repository is intact.
    GitIsIntact,
    /// Nothing is left: no process, mount, temporary file, lock or layer.
    NothingIsLeft,
    /// A start after a kill never fails, and a second start changes nothing.
    StartIsIdempotent,
    /// The program answers: no crash, no hang, no internal error.
    ProgramAnswers,
}

/// Words of replies that tell causes apart.
const TELLING: &[&str] = &[
    "None of its changes were written",
    "couldn't be recorded",
    "Permission denied",
    "No such file or directory",
    "too long",
    "quota",
    "has changed since",
    "There are no changes",
    "Not a directory",
    "Directory not empty",
    "File exists",
];

/// An invariant that didn't hold.
#[derive(Debug, Clone)]
pub(crate) struct Violation {
    pub(crate) invariant: Invariant,
    pub(crate) what: String,
    /// The number of the operation after which it was seen.
    pub(crate) operation: Option<u32>,
}

impl Violation {
    pub(crate) fn new(invariant: Invariant, what: impl Into<String>) -> Self {
        Self { invariant, what: what.into(), operation: None }
    }

    /// What cases of one cause have in common: the invariant, the first words, and the words of the program that most
    /// often tell one cause from another.
    pub(crate) fn class(&self) -> String {
        let words = self.what.split(['`', '\n', ':']).next().unwrap_or_default();
        let words: String = words.chars().filter(|letter| !letter.is_ascii_digit()).collect();
        let telling: Vec<&str> = TELLING.iter().filter(|words| self.what.contains(**words)).copied().collect();
        format!("{:?}: {} [{}]", self.invariant, words.trim(), telling.join(", "))
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.operation {
            Some(operation) => write!(formatter, "{:?}, after operation {operation}: {}", self.invariant, self.what),
            None => write!(formatter, "{:?}: {}", self.invariant, self.what),
        }
    }
}

/// Fails with a violation unless something holds.
#[macro_export]
macro_rules! hold {
    ($condition:expr, $invariant:ident, $($what:tt)+) => {
        if !$condition {
            return Err($crate::violation::Violation::new(
                $crate::violation::Invariant::$invariant,
                format!($($what)+),
            ));
        }
    };
}
