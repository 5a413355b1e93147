//! The entries of a list of runs.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::chain::Tip;
use crate::hex::{self, Hash};

/// One line of the list; the chain adds its number, the hash of the line before, and a signature.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct RunListLine {
    /// The id of the list, the same in all its lines.
    pub(super) list: String,
    pub(super) time: Timestamp,
    #[serde(flatten)]
    pub(super) entry: RunListEntry,
}

/// The end of a run's journal at some moment: later, the journal has at least these events.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct KnownHead {
    pub(super) run: String,
    pub(super) events: u64,
    /// Hash of the last of them.
    #[serde(with = "hash_text")]
    pub(super) hash: Hash,
}

impl KnownHead {
    pub(super) fn of(run: &str, tip: &Tip) -> Self {
        Self { run: run.to_owned(), events: tip.seq, hash: tip.hash }
    }
}

/// Entries that an earlier list had and this one doesn't.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Gap {
    /// How many entries the list had.
    pub(super) entries: u64,
    /// The time of its last entry.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) last: Option<Timestamp>,
    /// The file, next to the list, that holds what was found in its place.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) kept_as: Option<String>,
}

/// What happened to a run, or to the list itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind")]
pub(super) enum RunListEntry {
    /// The list began in a workspace that has these runs.
    #[serde(rename = "list.started")]
    Started { workspace: String, runs: Vec<KnownHead> },
    /// The list was found in a directory that had none: the workspace was copied.
    #[serde(rename = "list.copied")]
    Copied { workspace: String },
    /// The list wasn't as its head said.
    #[serde(rename = "list.gap")]
    Gap(Gap),
    /// A person knows of every gap until here, and that these runs were removed.
    #[serde(rename = "list.accepted")]
    Accepted { by: String, runs: Vec<String> },
    /// A run began.
    #[serde(rename = "run.started")]
    RunStarted {
        #[serde(flatten)]
        head: KnownHead,
        /// The run that was entered before, as it was when this one began.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        before: Option<KnownHead>,
    },
    /// A run was continued.
    #[serde(rename = "run.continued")]
    RunContinued(KnownHead),
    /// A run ended.
    #[serde(rename = "run.ended")]
    RunEnded(KnownHead),
}

impl RunListEntry {
    /// The heads of runs that this entry has.
    pub(super) fn heads(&self) -> Vec<&KnownHead> {
        match self {
            Self::Started { runs, .. } => runs.iter().collect(),
            Self::RunStarted { head, before } => [head].into_iter().chain(before).collect(),
            Self::RunContinued(head) | Self::RunEnded(head) => vec![head],
            Self::Copied { .. } | Self::Gap(_) | Self::Accepted { .. } => Vec::new(),
        }
    }

    /// The run that this entry is about.
    pub(super) fn run(&self) -> Option<&str> {
        match self {
            Self::RunStarted { head, .. } | Self::RunContinued(head) | Self::RunEnded(head) => Some(&head.run),
            _ => None,
        }
    }
}

/// A hash as hexadecimal text.
pub(super) mod hash_text {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    use super::{Hash, hex};

    pub(in super::super) fn serialize<S: Serializer>(hash: &Hash, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&hex::string(hash))
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Hash, D::Error> {
        let text = String::deserialize(deserializer)?;
        hex::decode(text.as_bytes()).ok_or_else(|| D::Error::custom("not a hash of 64 lower-case digits"))
    }
}
