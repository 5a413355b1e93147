//! `toolgate trust`: accepts the workspace's own policy file as it is now.

use anyhow::Result;
use clap::Args;
use toolgate_config::{UNTIL_TRUSTED, WORKSPACE_FILE, read_optional, trust};

use super::Invocation;
use crate::exit::Exit;
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
            anstream::println!("{}", if was_trusted { "No longer trusted." } else { "It was not trusted." });
            return Ok(Exit::Ok);
        }
        let Some(text) = read_optional(&workspace.join(WORKSPACE_FILE))? else {
            trust::trust(&trusted, workspace, "")?;
            anstream::println!("Trusted {}. It has no {WORKSPACE_FILE} as yet.", paint(BOLD, workspace.display()));
            return Ok(Exit::Ok);
        };
        for now in invocation.location.load()?.warnings.iter().filter_map(|warning| warning.strip_suffix(UNTIL_TRUSTED))
        {
            anstream::println!("{} {}", paint(YELLOW, "now takes effect:"), plain(now));
        }
        trust::trust(&trusted, workspace, &text)?;
        anstream::println!("Trusted {} as it is now.", paint(BOLD, workspace.join(WORKSPACE_FILE).display()));
        Ok(Exit::Ok)
    }
}
