//! Checks a list of runs against its own chain, its head outside of the workspace, and the runs that are there.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::Read;

use jiff::Timestamp;

use toolgate_contract::counted;

use super::RunList;
use super::entry::{KnownHead, RunListEntry, RunListLine};
use super::list_head::{HeadDirectory, ListHead};
use crate::chain::{LastLine, Tip, walk};
use crate::event_reader::list_runs;
use crate::head::Head;
use crate::hex::Hash;
use crate::{JournalError, JournalFault};

/// What a list of runs says, and what is wrong with it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunListCheck {
    /// How many valid entries there are. None before the first run that this version of the program begins.
    pub entries: u64,
    /// Whether the entries are signed with the user's key.
    pub signed: bool,
    /// What is wrong with the list itself, except for what a person has accepted.
    pub faults: Vec<RunListFault>,
    /// Runs that are on the list and not in the workspace, except for those that a person has accepted.
    pub gone: BTreeMap<String, ListedRun>,
    /// Runs that are on the list, whether they are there or not.
    pub listed: BTreeMap<String, ListedRun>,
    /// How many runs were removed and accepted as removed.
    pub removed: usize,
    /// Since when the list is in this directory, where the workspace is a copy of another.
    pub copied: Option<Timestamp>,
    /// How many lists with other keys are here. They came with the workspace, or belong to other users.
    pub others: usize,
}

impl RunListCheck {
    /// Whether nothing is wrong.
    pub fn is_ok(&self) -> bool {
        self.faults.is_empty() && self.gone.is_empty()
    }
}

/// A run, as the list knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedRun {
    /// When it began, if the list is as old.
    pub began: Option<Timestamp>,
    /// When it was last known to be there.
    pub last_seen: Timestamp,
    /// How many events it had then.
    pub events: u64,
    /// Hash of the last of them.
    pub(crate) hash: Hash,
    /// Whether a person has accepted that it was removed.
    is_removed: bool,
}

/// What is wrong with a list of runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunListFault {
    /// The list is gone.
    Missing {
        /// How many entries it had.
        entries: u64,
        /// The time of the last one.
        last: Timestamp,
    },
    /// Entries are missing at the end, or the list was replaced by another one.
    CutOff {
        /// How many of its entries are left.
        entries: u64,
        /// How many there were.
        expected: u64,
        /// The time of the last one.
        last: Timestamp,
    },
    /// An entry isn't as it was written.
    Changed(JournalFault),
    /// The last entry isn't signed with the user's key.
    NotSigned,
    /// The list had been cut off, removed or changed when a later entry was written.
    Gap {
        /// How many entries it had.
        entries: u64,
        /// The time of the last one.
        last: Option<Timestamp>,
        /// When that was noticed.
        noticed: Timestamp,
        /// The file that holds what was found in its place.
        kept_as: Option<String>,
    },
}

impl RunListFault {
    /// Whether new entries can't repair it, because it is in the chain.
    pub(super) fn is_in_chain(&self) -> bool {
        matches!(self, Self::Changed(_) | Self::NotSigned)
    }
}

impl fmt::Display for RunListFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { entries, last } => {
                write!(f, "The list of runs is gone. It had {}, the last one of {last:.0}.", counted(*entries, "entry"))
            }
            Self::CutOff { entries, expected, last } => write!(
                f,
                "The list of runs was cut off or replaced: it had {}, the last one of {last:.0}, and has \
                 {entries}.",
                counted(*expected, "entry")
            ),
            Self::Changed(fault) => write!(f, "The list of runs was changed. {fault}"),
            Self::NotSigned => f.write_str("The list of runs was changed: its last entry isn't signed with your key."),
            Self::Gap { entries, last, noticed, kept_as } => {
                let last = last.map(|last| format!(" until {last:.0}")).unwrap_or_default();
                write!(
                    f,
                    "On {noticed:.0} the list of runs wasn't as it had been left: its {}{last} ",
                    counted(*entries, "entry")
                )?;
                match kept_as {
                    Some(name) => write!(f, "had changed. What was found is in `.toolgate/run-lists/{name}`."),
                    None => f.write_str("had gone or been cut off."),
                }
            }
        }
    }
}

impl RunList {
    /// Checks the list. Safe while other processes begin runs.
    pub fn check(&self) -> Result<RunListCheck, JournalError> {
        let (bytes, known) = {
            let _lock = self.lock(false)?;
            (self.read_all()?, self.heads.as_ref().and_then(HeadDirectory::read))
        };
        let known = known.filter(|known| known.entries > 0);
        let lines: Vec<&[u8]> =
            bytes.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n")).collect();
        let mut check = RunListCheck { signed: self.options.key.is_some(), ..RunListCheck::default() };
        check.others = self.lists.names()?.iter().filter(|name| is_list(name) && **name != self.name).count();
        let (tip, fault) = self.check_chain(&bytes, &lines, known.as_ref())?;
        check.entries = tip.seq;
        for line in lines.iter().take(tip.seq as usize) {
            // An entry of a kind that a newer version writes says nothing to this one.
            if let Ok(line) = serde_json::from_slice::<RunListLine>(line) {
                check.add(line);
            }
        }
        if self.heads.is_some() && known.is_none() && tip.seq > 0 {
            check.copied.get_or_insert_with(|| self.options.clock.now());
        }
        check.faults.extend(fault);
        // The runs are listed last: each that has an entry by now had begun before.
        check.compare(list_runs(self.state.path())?.into_iter().collect());
        Ok(check)
    }

    fn read_all(&self) -> Result<Vec<u8>, JournalError> {
        let mut bytes = Vec::new();
        if let Some(mut file) = self.lists.existing(&self.name)? {
            file.read_to_end(&mut bytes).map_err(|error| self.lists.error("couldn't be read", &self.name, error))?;
        }
        Ok(bytes)
    }

    /// Where the valid part of the list ends, and what is wrong after it.
    fn check_chain(
        &self,
        bytes: &[u8],
        lines: &[&[u8]],
        known: Option<&ListHead>,
    ) -> Result<(Tip, Option<RunListFault>), JournalError> {
        let Some(last) = lines.last() else {
            let missing = known.map(|known| RunListFault::Missing { entries: known.entries, last: known.time });
            return Ok((Tip::START, missing));
        };
        let first: Option<RunListLine> = serde_json::from_slice(lines[0]).ok();
        let is_same = known.is_none_or(|known| first.is_some_and(|first| first.list == known.list));
        let head = known.filter(|_| is_same);
        let head = head.map(|known| Head { seq: known.entries, hash: known.hash, signature: None });
        let walked = walk(bytes, Tip::START, head.as_ref(), None)
            .map_err(|error| self.lists.error("couldn't be read", &self.name, error))?;
        let tip = walked.tip;
        let is_signed = LastLine::read(&last[..last.len() - 1], self.signer()).is_some();
        let fault = match walked.fault {
            // A process that was killed while writing leaves a part of a line; the head is written after the line.
            Some(JournalFault::Torn { .. }) if tip.seq == lines.len() as u64 => None,
            Some(JournalFault::Torn { .. }) => Some(RunListFault::NotSigned),
            Some(JournalFault::AfterSignature { .. } | JournalFault::CutOff { .. }) | None if is_signed => None,
            Some(JournalFault::AfterSignature { .. } | JournalFault::CutOff { .. }) | None => {
                Some(RunListFault::NotSigned)
            }
            Some(fault) => Some(RunListFault::Changed(fault)),
        };
        let is_cut_off = |known: &&ListHead| !is_same || known.entries > tip.seq;
        let cut_off = known.filter(is_cut_off).map(|known| RunListFault::CutOff {
            entries: tip.seq,
            expected: known.entries,
            last: known.time,
        });
        let fault = fault.or(cut_off);
        Ok((tip, fault))
    }
}

fn is_list(name: &str) -> bool {
    name.ends_with(".jsonl")
}

impl RunListCheck {
    fn add(&mut self, line: RunListLine) {
        let RunListLine { time, entry, .. } = line;
        for head in entry.heads() {
            self.see(head, time, matches!(&entry, RunListEntry::RunStarted { head: new, .. } if new.run == head.run));
        }
        match entry {
            RunListEntry::Copied { .. } => self.copied = Some(time),
            RunListEntry::Gap(gap) => self.faults.push(RunListFault::Gap {
                entries: gap.entries,
                last: gap.last,
                noticed: time,
                kept_as: gap.kept_as,
            }),
            RunListEntry::Accepted { runs, .. } => {
                self.faults.clear();
                for run in runs {
                    self.listed.entry(run).and_modify(|listed| listed.is_removed = true);
                }
            }
            _ => {}
        }
    }

    fn see(&mut self, head: &KnownHead, time: Timestamp, has_begun: bool) {
        let (events, hash) = (head.events, head.hash);
        let new = ListedRun { began: has_begun.then_some(time), last_seen: time, events, hash, is_removed: false };
        self.listed
            .entry(head.run.clone())
            .and_modify(|listed| {
                (listed.last_seen, listed.is_removed) = (time, false);
                listed.began = listed.began.or(new.began);
                if events >= listed.events {
                    (listed.events, listed.hash) = (events, hash);
                }
            })
            .or_insert_with(|| new.clone());
    }

    /// Finds the listed runs that aren't there.
    fn compare(&mut self, there: BTreeSet<String>) {
        let missing = self.listed.iter().filter(|(run, _)| !there.contains(*run));
        let (removed, gone): (Vec<_>, Vec<_>) = missing.partition(|(_, listed)| listed.is_removed);
        let gone = gone.into_iter().map(|(run, listed)| (run.clone(), listed.clone())).collect();
        (self.removed, self.gone) = (removed.len(), gone);
    }
}
