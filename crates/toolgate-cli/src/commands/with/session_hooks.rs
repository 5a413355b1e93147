//! Hooks for one session of a confined client. They stand in a private directory that the client can't change, and are handed to it
//! by what outranks settings in the workspace: a flag, or a variable. So nothing inside switches them off.
#![allow(
    clippy::disallowed_methods,
    reason = "writes settings for the client, and reads what it was to be started with"
)]

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use serde_json::{Map, Value, json};
use tempfile::TempDir;
use toolgate_config::read_optional;
use toolgate_contract::Blob;
use toolgate_journal::new_token;

use crate::commands::Invocation;
use crate::commands::hook::confined::ConfinedJudge;
use crate::commands::hook::own_words;
use crate::commands::init::hooks::{HookProgram, HookSetup};
use crate::commands::init::{SupportedClient, jsonc};
use crate::commands::sandbox::ClientState;

/// Settings of Gemini CLI, in the home directory and in a workspace.
const GEMINI_SETTINGS: &str = ".gemini/settings.json";
/// What switches its hooks on and off.
const GEMINI_SWITCHES: &str = "hooksConfig";
/// Settings of opencode beside those of its files.
const OPENCODE_SETTINGS: &str = "OPENCODE_CONFIG_CONTENT";
/// Values that Codex is started with.
const CODEX_VALUES: &[&str] = &["features.hooks=true", "sandbox_mode=\"danger-full-access\""];
/// How many characters of a token make a name that nobody inside can have known before.
const NAME_LENGTH: usize = 12;

/// Hooks for one session, and who judges them. They are removed when this is dropped.
pub(super) struct SessionHooks {
    client: SupportedClient,
    setup: HookSetup,
    _directory: TempDir,
    /// The directory without links.
    path: PathBuf,
    /// A name that differs from session to session.
    name: String,
    program: PathBuf,
    judge: Arc<ConfinedJudge>,
}

impl SessionHooks {
    /// Begins to listen for hooks of this client.
    pub(super) fn begin(client: SupportedClient, workspace: &Path) -> Result<Self> {
        let directory = tempfile::Builder::new().prefix("toolgate-with-").tempdir()?;
        let path = directory.path().canonicalize()?;
        let judge = Arc::new(ConfinedJudge::bind(&path, new_token()?)?);
        let program = std::env::current_exe()?.canonicalize()?;
        let name = format!("toolgate-{}", new_token()?.chars().take(NAME_LENGTH).collect::<String>());
        let hooks = HookProgram::confined(program.display().to_string(), judge.file(), name.clone());
        let setup = HookSetup::of(client, &hooks, workspace).context("its hooks aren't known here")?;
        Ok(Self { client, setup, _directory: directory, path, name, program, judge })
    }

    /// The host that the client has to reach for them.
    pub(super) fn host(&self) -> String {
        self.judge.host()
    }

    /// Hands the hooks to the client: by words of its command line, which are changed, or by its variables.
    pub(super) fn install(&self, command: &mut Vec<OsString>, home: &Path, state: &mut ClientState) -> Result<()> {
        let words = match self.client {
            SupportedClient::Claude => self.for_claude(command)?,
            SupportedClient::Codex => self.for_codex(),
            SupportedClient::Copilot => self.for_copilot()?,
            SupportedClient::Gemini => return self.for_gemini(home, state).map(|()| self.show(state)),
            SupportedClient::Opencode => return self.for_opencode(state).map(|()| self.show(state)),
            _ => bail!("its hooks can't be installed for one session"),
        };
        command.splice(1..1, words);
        self.show(state);
        Ok(())
    }

    /// Lets the client read its hooks and start this program, and change neither, wherever they are.
    fn show(&self, state: &mut ClientState) {
        let shown = [self.path.clone(), self.program.clone()];
        state.readable.extend(shown.clone());
        state.protected.extend(shown);
        state.judge = Some(Arc::clone(&self.judge));
    }

    /// A settings file of the command line outranks those of the workspace. There can be one only, so the person's own is part of it.
    fn for_claude(&self, command: &mut Vec<OsString>) -> Result<Vec<OsString>> {
        let own = taken_settings(command)?;
        let merged = self.setup.merged(&own, false).context("the file of `--settings` is no JSON object")?;
        let mut settings: Map<String, Value> = serde_json::from_str(&merged)?;
        settings.insert("disableAllHooks".into(), json!(false));
        Ok(vec!["--settings".into(), self.write("settings.json", &json!(settings).to_string())?.into()])
    }

    /// Values of the command line outrank files. Hooks that come with them are trusted by a flag. The background server of Codex runs
    /// outside, so it isn't used; its own sandbox can't start in ours, which takes its place.
    fn for_codex(&self) -> Vec<OsString> {
        let mut words = vec!["--dangerously-bypass-hook-trust".into(), "--no-daemon".into()];
        let hooks = self.setup.lists().iter().filter_map(|(event, hook)| {
            let list = toml::Value::try_from(json!([hook])).ok()?;
            Some(format!("hooks.{event}={list}"))
        });
        for value in CODEX_VALUES.iter().map(|value| (*value).to_owned()).chain(hooks) {
            words.extend(["-c".into(), value.into()]);
        }
        words
    }

    /// A plugin of the command line; its hooks count like those of files.
    fn for_copilot(&self) -> Result<Vec<OsString>> {
        let about = json!({ "name": self.name, "version": "1.0.0", "description": "Judged by Toolgate.", "hooks": "hooks.json" });
        self.write("hooks.json", &self.alone()?)?;
        self.write("plugin.json", &about.to_string())?;
        Ok(vec!["--plugin-dir".into(), self.path.clone().into()])
    }

    /// The person's own settings are shown with the hooks in them, and count beside those of the workspace, which can switch hooks off by
    /// name alone: so the name is another each time. Settings of the system would outrank all others, and have to belong to root.
    fn for_gemini(&self, home: &Path, state: &mut ClientState) -> Result<()> {
        let file = home.join(GEMINI_SETTINGS).canonicalize().context("Gemini's settings can't be found")?;
        let own = read_optional(&file)?.unwrap_or_default();
        let merged = self.setup.merged(&own, false).with_context(|| format!("{} is no JSON object", file.display()))?;
        let mut settings: Map<String, Value> = serde_json::from_str(&merged)?;
        let switches = settings.entry(GEMINI_SWITCHES).or_insert_with(|| json!({}));
        switches
            .as_object_mut()
            .with_context(|| format!("`{GEMINI_SWITCHES}` is no object"))?
            .insert("enabled".into(), json!(true));
        state.replaced.push((file, json!(settings).to_string().into_bytes().into()));
        Ok(())
    }

    /// Plugins of the variable are loaded beside those of files. Of two with one file name only one is, so ours is another each time.
    fn for_opencode(&self, state: &mut ClientState) -> Result<()> {
        let plugin = self.write(&format!("{}.js", self.name), &self.alone()?)?;
        let named = state.environment.get(std::ffi::OsStr::new(OPENCODE_SETTINGS));
        let own = named.map(|text| text.to_string_lossy().into_owned()).unwrap_or_else(|| "{}".into());
        let mut settings: Map<String, Value> =
            serde_json::from_str(&own).with_context(|| format!("{OPENCODE_SETTINGS} is no JSON object"))?;
        let plugins = settings.entry("plugin").or_insert_with(|| json!([]));
        plugins.as_array_mut().context("`plugin` is no list")?.push(json!(format!("file://{}", plugin.display())));
        state.environment.insert(OPENCODE_SETTINGS.into(), json!(settings).to_string().into());
        Ok(())
    }

    /// The hooks as a file of their own.
    fn alone(&self) -> Result<String> {
        self.setup.merged("", false).context("its hooks can't be written")
    }

    fn write(&self, name: &str, text: &str) -> Result<PathBuf> {
        let file = self.path.join(name);
        std::fs::write(&file, text).with_context(|| format!("{} can't be written", file.display()))?;
        Ok(file)
    }
}

/// Takes `--settings` from a command line. It is JSON, or a file with that.
fn taken_settings(command: &mut Vec<OsString>) -> Result<String> {
    let words = command.iter().take_while(|word| *word != "--").map(|word| word.to_string_lossy().into_owned());
    let words: Vec<String> = words.collect();
    let Some(at) = words.iter().position(|word| word == "--settings" || word.starts_with("--settings=")) else {
        return Ok(String::new());
    };
    let (value, count) = match words[at].strip_prefix("--settings=") {
        Some(value) => (value.to_owned(), 1),
        None => (words.get(at + 1).context("`--settings` has no value")?.clone(), 2),
    };
    command.drain(at..at + count);
    if words[at + count..].iter().any(|word| word == "--settings" || word.starts_with("--settings=")) {
        bail!("`--settings` is given twice, and the client's hooks have to be in the last one. Give it once.");
    }
    if value.trim_start().starts_with('{') {
        return Ok(value);
    }
    std::fs::read_to_string(&value).with_context(|| format!("{value} can't be read"))
}

/// Files of the workspace that have Toolgate's hooks or switch hooks off, as the client sees them: without. Those hooks judge where
/// Toolgate's state is, which is hidden inside; the session's own take their place.
pub(super) fn without_workspace_hooks(invocation: &Invocation) -> Result<Vec<(PathBuf, Blob)>> {
    let (workspace, program) = (&invocation.location.directory, HookProgram::judging(own_words(invocation)?));
    let mut without = Vec::new();
    for client in SupportedClient::value_variants() {
        let Some(setup) = HookSetup::of(*client, &program, workspace) else { continue };
        let text = read_optional(&setup.file)?.unwrap_or_default();
        let rest = match HookSetup::is_in(&text) {
            true => setup.merged(&text, true),
            false => Some(text.clone()),
        };
        let rest = match client {
            SupportedClient::Gemini => rest.and_then(|rest| without_switches(&rest)),
            _ => rest,
        };
        let Some(rest) = rest else {
            bail!(
                "{} has Toolgate's hooks, which can't be reached from inside, or switches hooks off, and isn't in a form that can be \
                 shown without that. Change it by hand, or start the client without `toolgate with`.",
                setup.file.display()
            );
        };
        if rest != text {
            let file = setup.file.canonicalize().with_context(|| format!("{} can't be found", setup.file.display()))?;
            without.push((file, rest.into_bytes().into()));
        }
    }
    Ok(without)
}

/// Settings of Gemini CLI without what switches hooks off; none if they can't be read.
fn without_switches(text: &str) -> Option<String> {
    // The name of a setting can be written with escapes, so it is compared as it is read.
    if text.trim().is_empty() || jsonc::parse(text)?.get(GEMINI_SWITCHES).is_none() {
        return Some(text.to_owned());
    }
    let mut settings: Map<String, Value> = serde_json::from_str(text).ok()?;
    settings.shift_remove(GEMINI_SWITCHES);
    Some(json!(settings).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_switches_hooks_off_is_found_however_it_is_written() {
        let without = |text: &str| without_switches(text);
        assert_eq!(
            without(r#"{"hooks\u0043onfig":{"enabled":false},"theme":"x"}"#).as_deref(),
            Some(r#"{"theme":"x"}"#)
        );
        assert_eq!(without("{ // mine\n \"theme\": \"x\" }").as_deref(), Some("{ // mine\n \"theme\": \"x\" }"));
        assert_eq!(without("{ // mine\n \"hooksConfig\": {} }"), None, "only JSON without comments is rewritten");
        assert_eq!((without("{\"hooks"), without("")), (None, Some(String::new())));
    }

    #[test]
    fn settings_are_given_once() {
        let taken = |words: &[&str]| taken_settings(&mut words.iter().map(OsString::from).collect());
        assert_eq!(taken(&["claude", "--settings", "{}", "-p", "x"]).unwrap(), "{}");
        assert!(taken(&["claude", "--settings", "{}", "--settings={\"a\":1}"]).is_err());
    }
}
