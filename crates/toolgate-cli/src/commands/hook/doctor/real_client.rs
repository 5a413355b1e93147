//! Starts the installed client against a scripted model, in this workspace and with the person's own settings, and has the model ask
//! for a command that must be denied. Were it run after all, a file made for that would be gone, and nothing else.
#![allow(clippy::disallowed_methods, reason = "starts the client, and makes the file that the command is about")]

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};
use tokio::task::block_in_place;
use toolgate_config::read_optional;

use super::scripted_model::{CanaryCall, CanaryModel, ToldModel};
use super::{HookCheck, denial_of};
use crate::commands::{Invocation, block_on};

/// How long a client may take for one turn: some set themselves up at their first start.
const LIMIT: Duration = Duration::from_secs(180);
/// How often it is looked whether it has ended.
const EVERY: Duration = Duration::from_millis(50);
const WHAT: &str = "real client";
/// What the client is asked to do; its model does what the script says.
const PROMPT: &str = "canary";

/// How a client is started for one turn against a scripted model.
struct ClientStart {
    words: Vec<String>,
    variables: Vec<(&'static str, String)>,
    shell: &'static str,
    /// The name of the shell's argument.
    argument: &'static str,
}

/// Has the installed client ask for the command. None for clients that can't be started without a person.
pub(super) fn check(name: &str, invocation: &Invocation) -> Result<Option<HookCheck>> {
    let model = CanaryModel::bind()?;
    let scratch = tempfile::Builder::new().prefix("toolgate-canary-").tempdir()?;
    let Some(start) = start(name, model.port(), scratch.path(), invocation)? else { return Ok(None) };
    let canary = scratch.path().join("canary");
    std::fs::write(&canary, "alive\n").context("the canary can't be made")?;
    let command = format!("shred -u {}", canary.display());
    let Some(reason) = denial_of(name, &command, invocation)? else {
        return Ok(Some(HookCheck { what: WHAT, is_good: false, says: format!("the hook doesn't deny `{command}`") }));
    };
    let mut input = json!({ start.argument: command });
    if name == "copilot" {
        input["description"] = json!(PROMPT);
    }
    let call = CanaryCall { tool: start.shell, input };
    let work = async { block_in_place(|| run(name, &start, &invocation.location.directory, scratch.path())) };
    let (said, told) = block_on(model.answer_during(call, work))??;
    let said = said?;
    // What follows it is a hint, which may differ from call to call.
    let reason = reason.split(". ").next().unwrap_or_default();
    Ok(Some(outcome(&command, reason, canary.is_file(), &told, &said)))
}

/// Runs the client to its end, or until its time is up; what it said, in one text.
fn run(name: &str, start: &ClientStart, workspace: &Path, scratch: &Path) -> Result<String> {
    let output = scratch.join("output");
    let said = std::fs::File::create(&output)?;
    let mut client = Command::new(name);
    client.args(&start.words).envs(start.variables.iter().map(|(name, value)| (*name, value))).current_dir(workspace);
    client.stdin(Stdio::null()).stdout(said.try_clone()?).stderr(said).process_group(0);
    let mut running = client.spawn().with_context(|| format!("`{name}` can't be started"))?;
    let until = Instant::now() + LIMIT;
    while running.try_wait()?.is_none() && Instant::now() < until {
        std::thread::sleep(EVERY);
    }
    if running.try_wait()?.is_none() {
        let group = Pid::from_child(&running);
        let _ = kill_process_group(group, Signal::KILL);
        running.wait()?;
    }
    Ok(String::from_utf8_lossy(&std::fs::read(&output)?).trim().to_owned())
}

fn outcome(command: &str, reason: &str, is_alive: bool, told: &ToldModel, said: &str) -> HookCheck {
    let last = said.lines().last().unwrap_or_default();
    let (is_good, says) = match (told.is_asked, is_alive) {
        (false, _) => (false, format!("it never asked the scripted model, so nothing is known: {last}")),
        (true, false) => (
            false,
            format!("`{command}` was run, so its hooks aren't asked. Does it trust this directory, and the hooks?"),
        ),
        (true, true) if told.has(reason) => {
            (true, "a command that has to be denied was denied by Toolgate, and its model was told so".to_owned())
        }
        (true, true) => {
            (false, format!("its hooks weren't asked about `{command}`, which came to nothing otherwise: {last}"))
        }
    };
    HookCheck { what: WHAT, is_good, says }
}

/// How to start a client. Its hooks, and whether they are trusted, come from the person's own settings.
fn start(name: &str, port: u16, scratch: &Path, invocation: &Invocation) -> Result<Option<ClientStart>> {
    let base = format!("http://127.0.0.1:{port}");
    Ok(Some(match name {
        "claude" => claude(base),
        "codex" => codex(&base),
        "gemini" => {
            let home = invocation.location.home.clone().context("HOME is not set")?;
            gemini(base, gemini_home(&home, scratch)?)
        }
        "opencode" => opencode(&base),
        "copilot" => copilot(&base),
        "goose" => goose(base),
        _ => return Ok(None),
    }))
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn claude(base: String) -> ClientStart {
    let settings = json!({ "env": { "ANTHROPIC_BASE_URL": base, "ANTHROPIC_API_KEY": "none" } }).to_string();
    let variables = vec![
        ("ANTHROPIC_BASE_URL", base),
        ("ANTHROPIC_API_KEY", "none".into()),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".into()),
    ];
    let words = owned(&["-p", PROMPT, "--allowedTools", "Bash", "--settings", &settings]);
    ClientStart { words, variables, shell: "Bash", argument: "command" }
}

fn codex(base: &str) -> ClientStart {
    let provider = format!(
        "model_providers.scripted={{name=\"scripted\",base_url=\"{base}/v1\",env_key=\"CODEX_SCRIPTED_KEY\",\
         wire_api=\"responses\",request_max_retries=0,stream_max_retries=0}}"
    );
    let model = ["-c", "model_provider=scripted", "-c", &provider, "-m", "gpt-5.5"];
    let words = owned(&[&["exec", "--skip-git-repo-check"][..], &model, &[PROMPT]].concat());
    let variables = vec![("CODEX_SCRIPTED_KEY", "none".into())];
    ClientStart { words, variables, shell: "exec_command", argument: "cmd" }
}

fn gemini(base: String, mut variables: Vec<(&'static str, String)>) -> ClientStart {
    variables.extend([("GEMINI_API_KEY", "none".into()), ("GOOGLE_GEMINI_BASE_URL", base)]);
    let words = owned(&["-p", PROMPT, "--approval-mode", "yolo"]);
    ClientStart { words, variables, shell: "run_shell_command", argument: "command" }
}

fn opencode(base: &str) -> ClientStart {
    let models = json!({ "scripted": { "name": "scripted" } });
    let provider = json!({
        "npm": "@ai-sdk/openai-compatible", "name": "scripted", "models": models,
        "options": { "baseURL": format!("{base}/v1"), "apiKey": "none" },
    });
    let settings = json!({
        "provider": { "scripted": provider }, "model": "scripted/scripted", "small_model": "scripted/scripted",
        "autoupdate": false, "permission": { "bash": "allow" },
    });
    let variables = vec![
        ("OPENCODE_CONFIG_CONTENT", settings.to_string()),
        ("OPENCODE_DISABLE_MODELS_FETCH", "1".into()),
        ("OPENCODE_DISABLE_LSP_DOWNLOAD", "1".into()),
    ];
    ClientStart { words: owned(&["run", PROMPT]), variables, shell: "bash", argument: "command" }
}

fn copilot(base: &str) -> ClientStart {
    let variables = vec![
        ("COPILOT_PROVIDER_BASE_URL", format!("{base}/v1")),
        ("COPILOT_PROVIDER_TYPE", "openai".into()),
        ("COPILOT_PROVIDER_API_KEY", "none".into()),
        ("COPILOT_MODEL", "gpt-5.5".into()),
        ("COPILOT_OFFLINE", "true".into()),
    ];
    let words = owned(&["-p", PROMPT, "--allow-all-tools"]);
    ClientStart { words, variables, shell: "bash", argument: "command" }
}

fn goose(base: String) -> ClientStart {
    let variables = vec![
        ("GOOSE_PROVIDER", "openai".into()),
        ("OPENAI_HOST", base),
        ("OPENAI_API_KEY", "none".into()),
        ("GOOSE_MODEL", "gpt-4o".into()),
        ("GOOSE_MODE", "auto".into()),
    ];
    let words = owned(&["run", "--no-session", "--with-builtin", "developer", "--text", PROMPT]);
    ClientStart { words, variables, shell: "shell", argument: "command" }
}

/// A home for Gemini CLI with the person's settings, and the way of signing in that needs no account; nothing else can change that way. The
/// hooks that it starts work with the person's own configuration and record.
fn gemini_home(home: &Path, scratch: &Path) -> Result<Vec<(&'static str, String)>> {
    let (own, made) = (home.join(".gemini"), scratch.join(".gemini"));
    std::fs::create_dir_all(&made)?;
    for file in ["trustedFolders.json", "trusted_hooks.json"] {
        if let Some(text) = read_optional(&own.join(file))? {
            std::fs::write(made.join(file), text)?;
        }
    }
    let text = read_optional(&own.join("settings.json"))?.unwrap_or_else(|| "{}".into());
    let mut settings: Value = serde_json::from_str(&text).context("Gemini's settings can't be read")?;
    settings["security"]["auth"]["selectedType"] = json!("gemini-api-key");
    std::fs::write(made.join("settings.json"), settings.to_string())?;
    let kept = |variable: &'static str, beneath: &str| {
        let named = std::env::var(variable).unwrap_or_else(|_| home.join(beneath).display().to_string());
        (variable, named)
    };
    let home = ("HOME", scratch.display().to_string());
    Ok(vec![home, kept("XDG_CONFIG_HOME", ".config"), kept("XDG_STATE_HOME", ".local/state")])
}
