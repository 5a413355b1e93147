//! How the command ended, as text or as one JSON object. Both are printed to standard error, since standard output is the
//! command's.

use anyhow::Result;
use serde_json::{Value, json};
use toolgate_contract::{SettledChanges, StagedChanges, counted};
use toolgate_sandbox::OverlayChanges;
use toolgate_sandbox::process::Enforcement;
use toolgate_sandbox::process::requirements;

use super::SandboxArgs;
use super::preview::RehearsalPreview;
use crate::commands::Invocation;
use crate::commands::commit::CommitArgs;
use crate::exit::Exit;
use crate::output::errln;
use crate::terminal::{BOLD, DIM, MOST_LINES, YELLOW, guarantee, holding_mark, paint, plain, show_quarantined};

const HOW_TO_RELEASE: &str = "`toolgate quarantine` shows and releases it.";

/// How a command ended.
pub(super) struct SandboxReport {
    pub(super) code: i32,
    pub(super) enforcement: Enforcement,
    /// What it was denied, a sentence each.
    pub(super) denied: Vec<String>,
    /// Its staged changes, if they were staged.
    pub(super) staged: Option<OverlayChanges>,
    /// What it changed in place, if that was watched.
    pub(super) settled: Option<SettledChanges>,
}

impl SandboxReport {
    /// Prints the report, and applies the changes that are to be applied.
    pub(super) fn tell(mut self, asked: &SandboxArgs, invocation: &Invocation) -> Result<Exit> {
        let exit = Exit::Code(u8::try_from(self.code).unwrap_or(1));
        if !invocation.json {
            self.print_confinement(asked.verbose);
            self.print_quarantined(asked.verbose);
        }
        let Some(mut staged) = self.staged.take() else {
            if invocation.json {
                errln!("{}", self.json());
            }
            return Ok(exit);
        };
        let files = invocation.location.roots(&invocation.location.load()?.settings)?;
        let handle = staged.keep(None, &[])?;
        let rehearsed = RehearsalPreview::of(&staged, &files, &handle, invocation)?;
        let count = rehearsed.count();
        self.print_changes(&rehearsed, asked.commit, invocation.json)?;
        if count == 0 {
            staged.discard();
        }
        drop(staged);
        match asked.commit && self.code == 0 && count > 0 {
            true => CommitArgs::of(handle).run(invocation),
            false => Ok(exit),
        }
    }

    fn print_changes(&self, rehearsed: &RehearsalPreview<'_>, commit: bool, as_json: bool) -> Result<()> {
        if as_json {
            let fields = [self.json(), rehearsed.json()?].into_iter().filter_map(|value| value.as_object().cloned());
            errln!("{}", Value::Object(fields.flatten().collect()));
            return Ok(());
        }
        match (commit, self.code) {
            (false, _) => rehearsed.show(false),
            (true, 0) if rehearsed.count() == 0 => {
                errln!("{}", paint(BOLD, "It changed nothing."));
                Ok(())
            }
            (true, 0) => {
                errln!("{}", paint(BOLD, format!("It changed {}:", counted(rehearsed.count(), "path"))));
                rehearsed.show_diffs(MOST_LINES)
            }
            (true, code) => {
                errln!("{}", paint(YELLOW.bold(), format!("Not applied: it ended with {code}.")));
                rehearsed.show(false)
            }
        }
    }

    fn print_confinement(&self, verbose: bool) {
        for reason in &self.denied {
            errln!("{}", paint(DIM, plain(reason)));
        }
        if verbose {
            errln!("{}", paint(DIM, format!("confined by {}", self.enforcement.tier.name())));
            for report in &self.enforcement.guarantees {
                let (mark, style) = holding_mark(report.holding);
                let line = format!("{}: {}", guarantee(report.guarantee), report.reason);
                errln!("  {} {}", paint(style, mark), paint(DIM, line));
            }
        } else if let Some(gaps) = requirements::gaps(&self.enforcement) {
            // Configuration accepts less here; the person should see what doesn't hold.
            errln!("{}", paint(YELLOW, gaps));
        }
    }

    /// Lists what was quarantined, and how to get it back.
    fn print_quarantined(&self, verbose: bool) {
        let Some(settled) = &self.settled else { return };
        show_quarantined("Quarantined, not in the workspace:", &settled.kept_aside, settled.more_kept_aside);
        if !settled.kept_aside.is_empty() {
            errln!("{}", paint(DIM, HOW_TO_RELEASE));
        }
        if verbose || !settled.kept_aside.is_empty() {
            settled.notes.iter().for_each(|note| errln!("{}", paint(DIM, plain(note))));
        }
    }

    fn json(&self) -> Value {
        let report = |report: &toolgate_sandbox::process::GuaranteeReport| json!({ "guarantee": report.guarantee, "holding": report.holding, "reason": report.reason });
        let guarantees: Vec<Value> = self.enforcement.guarantees.iter().map(report).collect();
        let mut told = json!({
            "exit_code": self.code, "tier": self.enforcement.tier.name(), "guarantees": guarantees,
            "denied": self.denied,
        });
        if let Some(settled) = self.settled.as_ref().filter(|settled| !settled.is_empty()) {
            told["changes"] = json!(settled);
        }
        told
    }
}
