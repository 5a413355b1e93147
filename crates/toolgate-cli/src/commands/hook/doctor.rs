//! `toolgate hook doctor`: whether a client's hooks hold. The installed client itself is started, against a scripted model.
#![allow(
    clippy::disallowed_methods,
    reason = "reads the client's own settings, and starts the client and this very program"
)]

mod real_client;
mod scripted_model;

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use toolgate_config::read_optional;
use toolgate_hooks::client_named;

use super::own_words;
use crate::commands::Invocation;
use crate::commands::init::SupportedClient;
use crate::commands::init::hooks::{HookProgram, HookSetup};
use crate::exit::Exit;
use crate::output::outln;
use crate::terminal::{DIM, GREEN, RED, YELLOW, paint, plain};

/// Check that a client's hooks are set up and deny what has to be denied, and say what they can't hold.
///
/// The installed client is started once, with your own settings and a scripted model on this machine that asks for a command which has
/// to be denied. What your own settings start, such as MCP servers, runs as usual.
///
/// Examples:
///   toolgate hook doctor claude
///   toolgate hook doctor codex --json
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(super) struct HookDoctorArgs {
    /// The client.
    client: SupportedClient,
}

/// One thing that was looked at.
struct HookCheck {
    what: &'static str,
    is_good: bool,
    says: String,
}

impl HookDoctorArgs {
    pub(super) fn run(&self, invocation: &Invocation) -> Result<Exit> {
        let name = self.client.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
        let client = client_named(&name).with_context(|| format!("{name} has no hooks that are known here"))?;
        let mut checks = vec![
            version(&name),
            self.set_up(invocation)?,
            switched_off(&name, invocation)?,
            canary(&name, invocation)?,
        ];
        if checks[0].is_good {
            checks.extend(real_client::check(&name, invocation)?);
        }
        let is_good = checks.iter().all(|check| check.is_good);
        if invocation.json {
            let list: Vec<Value> = checks
                .iter()
                .map(|check| json!({ "check": check.what, "ok": check.is_good, "says": check.says }))
                .collect();
            outln!("{}", json!({ "client": name, "checks": list, "not_held": client.not_held, "ok": is_good }));
        } else {
            for check in &checks {
                let mark = if check.is_good { paint(GREEN, "✓") } else { paint(RED, "✗") };
                outln!("{mark} {}: {}", check.what, plain(&check.says));
            }
            outln!("{}", paint(YELLOW, "What its hooks can't hold:"));
            client.not_held.iter().for_each(|gap| outln!("  {} {}", paint(DIM, "–"), gap));
        }
        Ok(if is_good { Exit::Ok } else { Exit::Failed })
    }

    /// Whether its settings have our hooks, as they are today.
    fn set_up(&self, invocation: &Invocation) -> Result<HookCheck> {
        let setup =
            HookSetup::of(self.client, &HookProgram::judging(own_words(invocation)?), &invocation.location.directory);
        let setup = setup.context("its hooks can't be set up here")?;
        let text = read_optional(&setup.file)?.unwrap_or_default();
        let is_good = setup.merged(&text, false).is_some_and(|merged| merged == text);
        let says = match is_good {
            true => format!("they are in {}", setup.file.display()),
            false => format!(
                "{} lacks them, or has older ones; `toolgate init --hooks --write` adds them",
                setup.file.display()
            ),
        };
        Ok(HookCheck { what: "hooks", is_good, says })
    }
}

/// Which version is installed.
fn version(name: &str) -> HookCheck {
    let said = Command::new(name).arg("--version").stdin(Stdio::null()).stderr(Stdio::null()).output();
    let (is_good, says) = match said {
        Ok(said) => (true, String::from_utf8_lossy(&said.stdout).trim().to_owned()),
        Err(error) => (false, format!("`{name}` can't be started: {error}")),
    };
    HookCheck { what: "version", is_good, says }
}

/// Whether a settings file switches all hooks off.
fn switched_off(name: &str, invocation: &Invocation) -> Result<HookCheck> {
    const FILES: &[(&str, &str)] = &[
        ("claude", ".claude/settings.json"),
        ("claude", ".claude/settings.local.json"),
        ("gemini", ".gemini/settings.json"),
    ];
    let homes = [Some(invocation.location.directory.clone()), invocation.location.home.clone()];
    for directory in homes.iter().flatten() {
        for (_, file) in FILES.iter().filter(|(client, _)| *client == name) {
            let file = Path::new(directory).join(file);
            let settings: Value = serde_json::from_str(&read_optional(&file)?.unwrap_or_default()).unwrap_or_default();
            if settings["disableAllHooks"] == true || settings["hooksConfig"]["enabled"] == false {
                let says = format!("{} switches all hooks off", file.display());
                return Ok(HookCheck { what: "switch", is_good: false, says });
            }
        }
    }
    Ok(HookCheck { what: "switch", is_good: true, says: "no settings file switches hooks off".into() })
}

/// Has the hook judge a command that has to be denied. Nothing runs.
fn canary(name: &str, invocation: &Invocation) -> Result<HookCheck> {
    const COMMAND: &str = "rm -rf ~";
    let denial = denial_of(name, COMMAND, invocation)?;
    let is_good = denial.is_some();
    let says = match denial {
        Some(reason) => format!("`{COMMAND}` is denied: {reason}"),
        None => format!("`{COMMAND}` wasn't denied"),
    };
    Ok(HookCheck { what: "canary", is_good, says })
}

/// Why the hook of this client denies a command; none if it doesn't. Nothing runs.
fn denial_of(name: &str, command: &str, invocation: &Invocation) -> Result<Option<String>> {
    let directory = &invocation.location.directory;
    let (event, word) = match name {
        "copilot" => (
            json!({ "sessionId": "doctor", "cwd": directory, "toolName": "bash", "toolArgs": { "command": command } }),
            Some("preToolUse"),
        ),
        "opencode" => (
            json!({ "event": "before", "session": "doctor", "directory": directory, "tool": "bash", "input": { "command": command } }),
            None,
        ),
        other => {
            let (event, tool) = match other {
                "gemini" => ("BeforeTool", "run_shell_command"),
                "cursor" => ("preToolUse", "Shell"),
                "goose" => ("PreToolUse", "developer__shell"),
                _ => ("PreToolUse", "Bash"),
            };
            (
                json!({ "hook_event_name": event, "session_id": "doctor", "cwd": directory, "tool_name": tool,
                     "tool_input": { "command": command } }),
                None,
            )
        }
    };
    let words = own_words(invocation)?;
    let mut hook = Command::new(&words[0]);
    hook.args(&words[1..])
        .args(["hook", name])
        .args(word)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut running = hook.spawn().context("the hook can't be started")?;
    if let Some(mut input) = running.stdin.take() {
        input.write_all(event.to_string().as_bytes())?;
    }
    let said = running.wait_with_output()?;
    let reason = String::from_utf8_lossy(&said.stderr).trim().to_owned();
    Ok(Some(reason).filter(|reason| said.status.code() == Some(2) && !reason.is_empty()))
}
