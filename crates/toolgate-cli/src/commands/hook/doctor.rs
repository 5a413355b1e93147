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

/// Files of the workspace or the home in which a client's hooks can be switched off.
const SWITCH_FILES: &[(&str, &[&str])] = &[
    ("claude", &[".claude/settings.json", ".claude/settings.local.json"]),
    ("codex", &[".codex/config.toml"]),
    ("gemini", &[".gemini/settings.json"]),
    ("copilot", &[".github/copilot/settings.json", ".github/copilot/settings.local.json", ".copilot/settings.json"]),
    ("goose", &[".config/goose/settings.json"]),
];
/// Variables that switch a client's hooks off.
const SWITCH_VARIABLES: &[(&str, &str)] =
    &[("claude", "CLAUDE_CODE_SIMPLE"), ("claude", "CLAUDE_CODE_SAFE_MODE"), ("opencode", "OPENCODE_PURE")];

/// Whether a settings file or a variable switches hooks off.
fn switched_off(name: &str, invocation: &Invocation) -> Result<HookCheck> {
    let off = |says: String| Ok(HookCheck { what: "switch", is_good: false, says });
    let is_set = |variable: &str| std::env::var_os(variable).is_some_and(|value| !value.is_empty() && value != "0");
    if let Some((_, variable)) = SWITCH_VARIABLES.iter().find(|(client, variable)| *client == name && is_set(variable))
    {
        return off(format!("the variable {variable} switches all hooks off"));
    }
    let files = SWITCH_FILES.iter().filter(|(client, _)| *client == name).flat_map(|(_, files)| files.iter());
    let homes = [Some(&invocation.location.directory), invocation.location.home.as_ref()];
    for (file, directory) in files.flat_map(|file| homes.into_iter().flatten().map(move |home| (file, home))) {
        let file = directory.join(file);
        if switches_off(&file, &read_optional(&file)?.unwrap_or_default()) {
            return off(format!("{} switches hooks off", file.display()));
        }
    }
    Ok(HookCheck { what: "switch", is_good: true, says: "no settings file or variable switches hooks off".into() })
}

/// Whether these settings switch hooks off, by any client's words for that.
fn switches_off(file: &Path, text: &str) -> bool {
    let settings: Value = match file.extension().is_some_and(|extension| extension == "toml") {
        true => toml::from_str(text).unwrap_or_default(),
        false => serde_json::from_str(text).unwrap_or_default(),
    };
    let has_ours = |list: &Value| list.as_array().into_iter().flatten().any(|name| name == "toolgate");
    settings["disableAllHooks"] == true
        || settings["hooksConfig"]["enabled"] == false
        || settings["features"]["hooks"] == false
        || has_ours(&settings["hooksConfig"]["disabled"])
        || has_ours(&settings["disabledPlugins"])
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
        "goose" => (
            json!({ "event": "PreToolUse", "session_id": "doctor", "working_dir": directory, "tool_name": "shell",
                    "tool_input": { "command": command } }),
            None,
        ),
        other => {
            let (event, tool) = match other {
                "gemini" => ("BeforeTool", "run_shell_command"),
                "cursor" => ("preToolUse", "Shell"),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_switch_hooks_off_are_known() {
        for (file, text, expected) in [
            ("settings.json", r#"{"disableAllHooks": true}"#, true),
            ("settings.json", r#"{"disableAllHooks": false, "hooks": {}}"#, false),
            ("settings.json", r#"{"hooksConfig": {"enabled": false}}"#, true),
            ("settings.json", r#"{"hooksConfig": {"disabled": ["toolgate"]}}"#, true),
            ("settings.json", r#"{"disabledPlugins": ["other"]}"#, false),
            ("settings.json", r#"{"disabledPlugins": ["toolgate"]}"#, true),
            ("config.toml", "[features]\nhooks = false\n", true),
            ("config.toml", "model = \"x\"\n", false),
            ("settings.json", "", false),
        ] {
            assert_eq!(switches_off(Path::new(file), text), expected, "{text}");
        }
    }
}
