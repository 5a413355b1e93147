//! `toolgate trust`: accepts the workspace's own policy file as it is now.

use anyhow::Result;
use clap::Args;
use serde_json::json;
use toolgate_config::{UNTIL_TRUSTED, WORKSPACE_FILE, read_optional, trust};

use super::Invocation;
use crate::exit::Exit;
use crate::output::outln;
use crate::terminal::{BOLD, YELLOW, paint, plain};

/// Trust this workspace: its toolgate.toml as it is now, and its skills.
///
/// Until then its toolgate.toml can only tighten the policy, and its skills are ignored. Trust applies to the file's
/// current content: when the file changes, it has to be trusted again. The command shows what would be loosened.
#[derive(Debug, Args)]
pub(crate) struct TrustArgs {
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
        let Some(text) = read_optional(&workspace.join(WORKSPACE_FILE))? else {
            trust::trust(&trusted, workspace, "")?;
            outln!("Trusted {}. It has no {WORKSPACE_FILE} as yet.", paint(BOLD, workspace.display()));
            return Ok(Exit::Ok);
        };
        for now in invocation.location.load()?.warnings.iter().filter_map(|warning| warning.strip_suffix(UNTIL_TRUSTED))
        {
            outln!("{} {}", paint(YELLOW, "now takes effect:"), plain(now));
        }
        trust::trust(&trusted, workspace, &text)?;
        outln!("Trusted {} as it is now.", paint(BOLD, workspace.join(WORKSPACE_FILE).display()));
        Ok(Exit::Ok)
    }
}
