//! `toolgate trust`: shows what a workspace would be allowed to decide, and accepts it as it is now.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use serde_json::{Value, json};
use toolgate_config::{UNTIL_TRUSTED, WORKSPACE_FILE, read_optional, trust};
use toolgate_contract::{counted, sha256};
use toolgate_tools::text::unified;
use toolgate_workspace::SKILL_DIRECTORIES;

use super::Invocation;
use crate::exit::Exit;
use crate::output::{errln, outln};
use crate::terminal::{BOLD, DIM, YELLOW, confirm, diff_line, paint, plain};

/// Trust this workspace: its toolgate.toml as it is now, its skills and its instructions for agents.
///
/// Until then its toolgate.toml can only tighten the policy, and its skills and AGENTS.md are ignored. The command shows
/// the file, or what changed in it since you last trusted it, and what takes effect; then it asks. Trust applies to the
/// content of toolgate.toml that was shown: when the file changes, it has to be trusted again.
///
/// Examples:
///   toolgate trust
///   toolgate trust --yes              without a question, for scripts
///   toolgate --json trust             only show it, for programs
///   toolgate trust --revoke
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct TrustArgs {
    /// Trust it without asking.
    #[arg(long, short, conflicts_with = "revoke")]
    yes: bool,
    /// Revoke the trust.
    #[arg(long)]
    revoke: bool,
}

impl TrustArgs {
    pub(crate) fn run(self, invocation: &Invocation) -> Result<Exit> {
        let (workspace, trusted) = (&invocation.location.directory, invocation.location.config.trusted());
        if self.revoke {
            let was_trusted = trust::revoke(&trusted, workspace)?;
            match invocation.json {
                true => outln!("{}", json!({ "workspace": workspace, "trusted": false, "was_trusted": was_trusted })),
                false => outln!("{}", if was_trusted { "No longer trusted." } else { "It was not trusted." }),
            }
            return Ok(Exit::Ok);
        }
        let offered = TrustOffer::read(invocation)?;
        let is_agreed = self.yes || offered.is_trusted;
        if invocation.json {
            if is_agreed {
                trust::trust(&trusted, workspace, offered.text())?;
            }
            outln!("{}", offered.json(workspace, is_agreed));
            return Ok(if is_agreed { Exit::Ok } else { Exit::ApprovalNeeded });
        }
        offered.show(workspace);
        if !is_agreed && !confirm("Trust this?", "toolgate trust --yes")? {
            errln!("Nothing was trusted.");
            return Ok(Exit::Denied);
        }
        trust::trust(&trusted, workspace, offered.text())?;
        outln!("Trusted {} as it is now.", paint(BOLD, workspace.display()));
        Ok(Exit::Ok)
    }
}

/// What the person is asked to trust.
struct TrustOffer {
    /// The workspace's own policy file.
    policy: Option<String>,
    /// That file as it was last trusted.
    before: Option<String>,
    /// Whether it is trusted already, just as it is.
    is_trusted: bool,
    /// What the file decides from then on, and doesn't yet.
    takes_effect: Vec<String>,
    /// The workspace's skills, by the files that describe them.
    skills: Vec<PathBuf>,
    /// Whether there are instructions for agents.
    has_instructions: bool,
}

/// Instructions that agents follow in a trusted workspace.
const INSTRUCTIONS: &str = "AGENTS.md";

impl TrustOffer {
    fn read(invocation: &Invocation) -> Result<Self> {
        let location = &invocation.location;
        let (workspace, trusted) = (&location.directory, location.config.trusted());
        let policy = read_optional(&workspace.join(WORKSPACE_FILE))?;
        let warnings = location.load()?.warnings;
        let takes_effect = warnings.iter().filter_map(|warning| warning.strip_suffix(UNTIL_TRUSTED));
        Ok(Self {
            before: trust::last_trusted(&trusted, workspace),
            is_trusted: trust::is_trusted(&trusted, workspace, policy.as_deref().unwrap_or_default()),
            takes_effect: takes_effect.map(str::to_owned).collect(),
            skills: skills(workspace),
            has_instructions: workspace.join(INSTRUCTIONS).is_file(),
            policy,
        })
    }

    /// The text that is trusted; a workspace without the file is trusted without it.
    fn text(&self) -> &str {
        self.policy.as_deref().unwrap_or_default()
    }

    fn json(&self, workspace: &Path, trusted: bool) -> Value {
        json!({
            "workspace": workspace, "trusted": trusted, "was_trusted": self.is_trusted,
            "file": self.policy.as_ref().map(|_| workspace.join(WORKSPACE_FILE)),
            "sha256": self.policy.as_ref().map(sha256), "content": self.policy, "last_trusted": self.before,
            "takes_effect": self.takes_effect, "skills": self.skills, "instructions": self.has_instructions,
        })
    }

    fn show(&self, workspace: &Path) {
        match (&self.policy, &self.before) {
            (None, _) => outln!("{} has no {WORKSPACE_FILE}.", paint(BOLD, workspace.display())),
            (Some(now), Some(before)) if now == before => {
                outln!("{} is as you last trusted it.", paint(BOLD, workspace.join(WORKSPACE_FILE).display()));
            }
            (Some(now), before) => {
                let file = paint(BOLD, workspace.join(WORKSPACE_FILE).display());
                outln!("{file} {}", paint(DIM, format!("sha256 {}", sha256(now))));
                match before.as_deref().filter(|before| !before.is_empty()) {
                    Some(before) => show_difference(before, now),
                    None => now.lines().for_each(|line| outln!("  {}", plain(line))),
                }
            }
        }
        let takes_effect = |what: &str| outln!("{} {}", paint(YELLOW, "takes effect once trusted:"), plain(what));
        self.takes_effect.iter().for_each(|what| takes_effect(what));
        for skill in &self.skills {
            takes_effect(&format!("the skill {}", skill.display()));
        }
        if self.has_instructions {
            takes_effect(&format!("the instructions for agents in {INSTRUCTIONS}"));
        }
        if self.takes_effect.is_empty() && self.skills.is_empty() && !self.has_instructions {
            outln!("{}", paint(DIM, "Nothing is allowed by it that isn't allowed already."));
        }
    }
}

/// Shows what changed since the file was last trusted.
fn show_difference(before: &str, now: &str) {
    let diff = unified(Some(WORKSPACE_FILE), Some(WORKSPACE_FILE), before.as_bytes(), now.as_bytes()).text;
    outln!("{}", paint(DIM, "changed since you last trusted it:"));
    diff.lines().for_each(|line| outln!("  {}", diff_line(line)));
    outln!("{}", paint(DIM, format!("the whole file has {}", counted(now.lines().count(), "line"))));
}

/// The skills of the workspace: the files that describe them, relative to it.
#[allow(clippy::disallowed_methods, reason = "shows the person what they are about to trust, before there is any gate")]
fn skills(workspace: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for directory in SKILL_DIRECTORIES {
        for entry in std::fs::read_dir(workspace.join(directory)).into_iter().flatten().flatten() {
            let file = Path::new(directory).join(entry.file_name()).join("SKILL.md");
            if workspace.join(&file).is_file() {
                found.push(file);
            }
        }
    }
    found.sort();
    found
}
