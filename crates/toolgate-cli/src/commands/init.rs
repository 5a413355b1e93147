//! `toolgate init`: a policy file for this workspace, and the gate in an agent's own configuration.
#![allow(clippy::disallowed_methods, reason = "writes the files that the user asked for")]

mod client;
pub(super) mod hooks;
pub(super) mod jsonc;
mod merge;

use std::io::{ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;

use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::json;

pub(super) use self::client::SupportedClient;
use self::client::{ClientSetup, ServerCommand};
use self::hooks::{HookProgram, HookSetup};
use self::merge::MergeOutcome;
use super::Invocation;
use crate::exit::Exit;
use crate::output::{errln, out, outln};
use crate::terminal::{BOLD, DIM, paint};
use crate::workspace::program_name;
use toolgate_config::{WORKSPACE_FILE, read_optional, trust};

/// Write a policy file for this workspace, and trust it; or set up an agent to use the gate.
///
/// The file, toolgate.toml, is yours to edit and meant to be committed. Others who clone the repository get it too;
/// for them it can only tighten until they run `toolgate trust`.
///
/// With `--for`, nothing of that happens: it prints what an agent's own configuration needs so that it calls tools
/// through the gate, and with `--write` adds it there. Everything else in that file stays as it is.
///
/// Examples:
///   toolgate init
///   toolgate init --for claude
///   toolgate init --for codex --write
///   toolgate init --for opencode
///   toolgate init --for claude --hooks --write
///   toolgate init --for claude --hooks --remove
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct InitArgs {
    /// Set up this client instead.
    #[arg(long = "for", value_name = "CLIENT")]
    client: Option<SupportedClient>,
    /// Have the client's own tools judged by its hooks, instead of giving it ours.
    #[arg(long, requires = "client")]
    hooks: bool,
    /// Add the entry to the client's file.
    #[arg(long, requires = "client")]
    write: bool,
    /// Remove our hooks from the client's file.
    #[arg(long, requires = "hooks", conflicts_with = "write")]
    remove: bool,
}

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

# Bytes of an answer that `fetch` takes at the most. This is the default, 10 MiB.
# [fetch]
# body_bytes = 10_485_760

# Bytes of file contents that are kept for `toolgate undo`; past that, the oldest go. This is the default, 1 GiB.
# [undo]
# quota_bytes = 1_073_741_824
"#;

impl InitArgs {
    pub(crate) fn run(self, invocation: &Invocation) -> Result<Exit> {
        match self.client {
            Some(client) if self.hooks => set_up_hooks(client, self.write, self.remove, invocation),
            Some(client) => set_up(client, self.write, invocation),
            None => write_policy(invocation),
        }
    }
}

fn write_policy(invocation: &Invocation) -> Result<Exit> {
    let file = invocation.location.directory.join(WORKSPACE_FILE);
    match std::fs::OpenOptions::new().write(true).create_new(true).open(&file) {
        Ok(mut new) => new.write_all(TEMPLATE.as_bytes())?,
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            bail!("{} exists already. Edit it, then run `toolgate trust`.", file.display())
        }
        Err(error) => return Err(error).with_context(|| format!("{} can't be written", file.display())),
    }
    trust::trust(&invocation.location.config.trusted(), &invocation.location.directory, TEMPLATE)?;
    if invocation.json {
        outln!("{}", json!({ "file": file, "written": true, "trusted": true }));
        return Ok(Exit::Ok);
    }
    outln!("Wrote {} and trusted it.", paint(BOLD, file.display()));
    outln!("Next: `toolgate tools` shows what a model can ask for.");
    Ok(Exit::Ok)
}

/// Prints the hooks that the client needs, adds them, or removes them.
fn set_up_hooks(client: SupportedClient, write: bool, remove: bool, invocation: &Invocation) -> Result<Exit> {
    let program = HookProgram::judging(super::hook::own_words(invocation)?);
    let Some(setup) = HookSetup::of(client, &program, &invocation.location.directory) else {
        bail!("This client has no hooks that can be set up here; `docs/hooks.md` says what holds for each.")
    };
    let text = read_optional(&setup.file)?.unwrap_or_default();
    let merged = match write || remove {
        true => setup.merged(&text, remove),
        false => setup.merged("", false),
    };
    let Some(merged) = merged else {
        errln!("{} isn't in a form that can be changed safely. Add this to it by hand:", setup.file.display());
        out!("{}", setup.merged("", false).unwrap_or_default());
        return Ok(Exit::Failed);
    };
    if !write && !remove {
        errln!("{}", paint(DIM, format!("In {}, or with --write from here:", setup.file.display())));
        out!("{merged}");
        return Ok(Exit::Ok);
    }
    match remove && merged.is_empty() {
        true if text.is_empty() => {}
        true => {
            std::fs::remove_file(&setup.file).with_context(|| format!("{} can't be removed", setup.file.display()))?
        }
        false => replace(&setup.file, &merged)?,
    }
    if invocation.json {
        let state = if remove { "removed" } else { "written" };
        outln!("{}", json!({ "file": setup.file, "state": state, "next": setup.next }));
        return Ok(Exit::Ok);
    }
    let file = paint(BOLD, setup.file.display());
    match remove {
        true => outln!("Removed toolgate's hooks from {file}."),
        false => outln!("Added toolgate's hooks to {file}.\nNext: {}", setup.next),
    }
    Ok(Exit::Ok)
}

/// Prints what the client needs, or adds it.
fn set_up(client: SupportedClient, write: bool, invocation: &Invocation) -> Result<Exit> {
    let home = std::env::home_dir().context("HOME is not set, so the client's files can't be found")?;
    let start = ServerCommand { program: program_name(), workspace: invocation.location.directory.clone() };
    let setup = client.setup(&start, &home);
    let file = paint(BOLD, setup.file.display());
    if invocation.json {
        return set_up_as_json(&setup, write);
    }
    if !write {
        errln!("{}", paint(DIM, format!("In {}, or with --write from here:", setup.file.display())));
        out!("{}", setup.snippet());
        return Ok(Exit::Ok);
    }
    let text = read_optional(&setup.file)?.unwrap_or_default();
    match setup.merged(&text) {
        MergeOutcome::Changed(changed) => {
            replace(&setup.file, &changed)?;
            outln!("Added toolgate to {file}.");
            if start.program.contains('/') {
                let hint =
                    "put `toolgate` on the PATH and run `toolgate init` again for one that works on other machines";
                outln!("The entry names the program of this machine; {hint}.");
            }
            outln!("Next: {}", setup.next);
        }
        MergeOutcome::There => {
            outln!("{file} has an entry `{}` already; it was left as it is.", client::NAME)
        }
        MergeOutcome::ByHand => {
            errln!("{file} isn't in a form that can be changed safely. Add this to it by hand:");
            out!("{}", setup.snippet());
            return Ok(Exit::Failed);
        }
    }
    Ok(Exit::Ok)
}

/// Adds the entry, if that is asked for, and says for programs what it is and where it goes.
fn set_up_as_json(setup: &ClientSetup, write: bool) -> Result<Exit> {
    let text = read_optional(&setup.file)?.unwrap_or_default();
    let (state, exit) = match (write, setup.merged(&text)) {
        (false, _) => ("not_written", Exit::Ok),
        (true, MergeOutcome::There) => ("already_there", Exit::Ok),
        (true, MergeOutcome::ByHand) => ("by_hand", Exit::Failed),
        (true, MergeOutcome::Changed(changed)) => {
            replace(&setup.file, &changed)?;
            ("written", Exit::Ok)
        }
    };
    outln!("{}", json!({ "file": setup.file, "state": state, "snippet": setup.snippet(), "next": setup.next }));
    Ok(exit)
}

/// Writes the file whole or not at all, with the mode that it had.
pub(super) fn replace(file: &std::path::Path, text: &str) -> Result<()> {
    let written = || -> std::io::Result<()> {
        let directory = file.parent().unwrap_or(std::path::Path::new("."));
        std::fs::create_dir_all(directory)?;
        let mut new = tempfile::NamedTempFile::new_in(directory)?;
        new.write_all(text.as_bytes())?;
        new.as_file().sync_all()?;
        let mode = std::fs::metadata(file).map_or(0o644, |facts| facts.permissions().mode());
        new.as_file().set_permissions(std::fs::Permissions::from_mode(mode))?;
        new.persist(file)?;
        Ok(())
    };
    written().with_context(|| format!("{} can't be written", file.display()))
}
