//! `toolgate init`: a policy file for this workspace.
#![allow(clippy::disallowed_methods, reason = "writes the policy file that the user asked for")]

use std::io::{ErrorKind, Write};

use anyhow::{Context, Result, bail};
use clap::Args;

use super::Setting;
use crate::config::WORKSPACE_FILE;
use crate::exit::Exit;
use crate::terminal::{BOLD, paint};
use crate::trust;

/// Write a policy file for this workspace, and trust it.
///
/// The file, toolgate.toml, is yours to edit and meant to be committed. Others who clone the repository get it too;
/// for them it can only tighten until they run `toolgate trust`.
#[derive(Debug, Args)]
pub(crate) struct Init;

const TEMPLATE: &str = r#"# What tools may do in this workspace. `toolgate policy explain` shows how a call is judged,
# `toolgate policy test` checks the examples below, `toolgate trust` accepts a changed file.

# read-only: look, don't touch.          workspace: read, write, sandboxed commands (the default).
# autonomous: as workspace, nobody asks.  full: everything but what is denied below.
preset = "workspace"

# Rules: deny, ask or allow one of tool, risk, permission, path, host, command.
# The strictest wins; an allow answers an ask and never lifts a deny.

# [[rules]]
# decision = "deny"
# path = "migrations/**"
# access = ["write", "delete"]
# reason = "Migrations that ran are history. Add a new one instead."
# match = ["migrations/0001_users.sql"]
# no_match = ["src/migrations.rs"]

# [[rules]]
# decision = "ask"
# command = ["git", "push"]
# match = ["git push origin main"]
# no_match = ["git status"]

# Bytes of file contents that are kept for `toolgate undo`; past that, the oldest go. This is the default, 1 GiB.
# [undo]
# quota_bytes = 1_073_741_824
"#;

impl Init {
    pub(crate) fn run(self, setting: &Setting) -> Result<Exit> {
        let file = setting.place.workspace.join(WORKSPACE_FILE);
        match std::fs::OpenOptions::new().write(true).create_new(true).open(&file) {
            Ok(mut new) => new.write_all(TEMPLATE.as_bytes())?,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                bail!("{} exists already. Edit it, then run `toolgate trust`.", file.display())
            }
            Err(error) => return Err(error).with_context(|| format!("{} can't be written", file.display())),
        }
        trust::trust(&setting.place.sources.trusted(), &setting.place.workspace, TEMPLATE)?;
        anstream::println!("Wrote {} and trusted it.", paint(BOLD, file.display()));
        anstream::println!("Next: `toolgate tools` shows what a model can ask for.");
        Ok(Exit::Ok)
    }
}
