//! What each client needs to work in the sandbox: its own state, the variables that it is configured by, and its provider's hosts.
#![allow(clippy::disallowed_methods, reason = "makes the client's own directories, which the sandbox is to show")]

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use jsonc_parser::ast::{BooleanLit, ObjectProp, Value};
use toolgate_config::read_optional;

use super::guarded_settings::GuardedSettings;
use crate::commands::init::{SupportedClient, jsonc};
use crate::commands::sandbox::ClientState;

/// A client that can be confined as a whole.
pub(super) struct ConfinedClient {
    name: &'static str,
    /// Directories of its own in the home directory; they are made if they don't exist.
    directories: &'static [&'static str],
    /// Files of its own in the home directory.
    files: &'static [&'static str],
    /// What of its directories its later sessions run or load by themselves; directories end with `/`.
    loaded: &'static [&'static str],
    /// Variables that it is configured by: whole names, or beginnings that end with `*`.
    variables: &'static [&'static str],
    /// Its provider's hosts.
    hosts: &'static [&'static str],
    /// Switches that are refused.
    refused: &'static [&'static str],
    /// Parts of other words that are refused, and why.
    refused_parts: &'static [(&'static str, &'static str)],
    /// Files of the workspace or the home whose `disableAllHooks` reaches the hooks of a session.
    switches: &'static [&'static str],
    /// Variables that are refused: they do what a refused switch does.
    refused_variables: &'static [&'static str],
}

const CLIENTS: &[ConfinedClient] = &[
    ConfinedClient {
        name: "claude",
        directories: &[".claude", ".cache/claude", ".cache/claude-cli-nodejs"],
        files: &[".claude.json"],
        loaded: &[
            ".claude/settings.json",
            ".claude/settings.local.json",
            ".claude/CLAUDE.md",
            ".claude/agents/",
            ".claude/commands/",
            ".claude/hooks/",
            ".claude/local/",
            ".claude/output-styles/",
            ".claude/plugins/",
            ".claude/rules/",
            ".claude/skills/",
        ],
        variables: &["ANTHROPIC_*", "CLAUDE_*", "DISABLE_*"],
        hosts: &[
            "api.anthropic.com",
            "claude.ai",
            "platform.claude.com",
            "console.anthropic.com",
            "statsig.anthropic.com",
        ],
        refused: &["--bare", "--safe-mode", "--dangerously-skip-permissions", "--allow-dangerously-skip-permissions"],
        refused_parts: &[("disableAllHooks", TAKES_AWAY)],
        switches: &[],
        refused_variables: &["CLAUDE_CODE_SIMPLE", "CLAUDE_CODE_SAFE_MODE"],
    },
    ConfinedClient {
        name: "codex",
        directories: &[".codex"],
        files: &[],
        loaded: &[
            ".codex/config.toml",
            ".codex/.env",
            ".codex/hooks.json",
            ".codex/AGENTS.md",
            ".codex/AGENTS.override.md",
            ".codex/hooks/",
            ".codex/plugins/",
            ".codex/prompts/",
            ".codex/rules/",
            ".codex/skills/",
        ],
        variables: &["OPENAI_*", "CODEX_*"],
        hosts: &["api.openai.com", "chatgpt.com", "auth.openai.com"],
        refused: &[
            "--dangerously-bypass-approvals-and-sandbox",
            "--yolo",
            "--dangerously-bypass-hook-trust",
            "--remote",
        ],
        refused_parts: &[
            ("-c=features", TAKES_AWAY),
            ("-cfeatures", TAKES_AWAY),
            ("--config=features", TAKES_AWAY),
            ("-c=hooks", TAKES_AWAY),
            ("-chooks", TAKES_AWAY),
            ("--config=hooks", TAKES_AWAY),
            ("bypass_hook_trust", TAKES_AWAY),
            ("--disable=hooks", TAKES_AWAY),
            ("--disable=codex_hooks", TAKES_AWAY),
            ("--sandbox=workspace-write", OWN_SANDBOX),
            ("--sandbox=read-only", OWN_SANDBOX),
            ("-s=workspace-write", OWN_SANDBOX),
            ("-s=read-only", OWN_SANDBOX),
            ("sandbox_mode", OWN_SANDBOX),
            ("--approve-for-me", OWN_SANDBOX),
        ],
        switches: &[],
        refused_variables: &[],
    },
    ConfinedClient {
        name: "gemini",
        directories: &[".gemini"],
        files: &[],
        loaded: &[
            ".gemini/settings.json",
            ".gemini/trustedFolders.json",
            ".gemini/.env",
            ".gemini/GEMINI.md",
            ".gemini/agents/",
            ".gemini/bin/",
            ".gemini/commands/",
            ".gemini/extensions/",
            ".gemini/hooks/",
            ".gemini/policies/",
            ".gemini/skills/",
            ".gemini/tmp/bin/",
        ],
        variables: &["GEMINI_*", "GOOGLE_*"],
        hosts: &[
            "generativelanguage.googleapis.com",
            "cloudcode-pa.googleapis.com",
            "oauth2.googleapis.com",
            "accounts.google.com",
        ],
        refused: &[],
        refused_parts: &[],
        switches: &[],
        refused_variables: &[],
    },
    ConfinedClient {
        name: "opencode",
        directories: &[".config/opencode", ".local/share/opencode", ".local/state/opencode", ".cache/opencode"],
        files: &[],
        loaded: &[
            ".config/opencode/opencode.json",
            ".config/opencode/opencode.jsonc",
            ".config/opencode/config",
            ".config/opencode/config.json",
            ".config/opencode/AGENTS.md",
            ".config/opencode/agent/",
            ".config/opencode/agents/",
            ".config/opencode/command/",
            ".config/opencode/commands/",
            ".config/opencode/mode/",
            ".config/opencode/modes/",
            ".config/opencode/node_modules/",
            ".config/opencode/plugin/",
            ".config/opencode/plugins/",
            ".config/opencode/skill/",
            ".config/opencode/skills/",
            ".config/opencode/tool/",
            ".config/opencode/tools/",
            ".local/share/opencode/bin/",
            ".cache/opencode/bin/",
            ".cache/opencode/node_modules/",
            ".cache/opencode/packages/",
        ],
        variables: &["OPENCODE_*", "ANTHROPIC_*", "OPENAI_*"],
        hosts: &["opencode.ai", "models.dev", "api.anthropic.com", "api.openai.com"],
        refused: &["--pure"],
        refused_parts: &[],
        switches: &[],
        refused_variables: &["OPENCODE_PURE"],
    },
    ConfinedClient {
        name: "copilot",
        directories: &[".copilot"],
        files: &[],
        loaded: &[
            ".copilot/settings.json",
            ".copilot/mcp-config.json",
            ".copilot/lsp-config.json",
            ".copilot/permissions-config.json",
            ".copilot/copilot-instructions.md",
            ".copilot/agents/",
            ".copilot/hooks/",
            ".copilot/installed-plugins/",
            ".copilot/instructions/",
            ".copilot/pkg/",
            ".copilot/skills/",
        ],
        variables: &["COPILOT_*", "GITHUB_TOKEN", "GH_TOKEN"],
        hosts: &["api.github.com", "github.com", "*.githubcopilot.com"],
        refused: &["--allow-all-paths", "--allow-all", "--yolo"],
        refused_parts: &[("disableAllHooks", TAKES_AWAY)],
        switches: &[
            ".github/copilot/settings.json",
            ".github/copilot/settings.local.json",
            ".claude/settings.json",
            ".claude/settings.local.json",
            ".copilot/settings.json",
        ],
        refused_variables: &[],
    },
];

/// Why a switch is refused.
const TAKES_AWAY: &str =
    "it takes away safeguards of the client itself. Start the client without `toolgate with` if you mean it.";
/// Why a sandbox of the client's own is refused.
const OWN_SANDBOX: &str = "a sandbox of its own can't start inside of this one, which takes its place. Leave it out.";

/// The bits of a file's mode that let somebody execute it.
const EXECUTABLE: u32 = 0o111;

/// Variables that make a terminal what it is.
const OF_TERMINAL: &[&str] = &["COLORTERM", "TERM_PROGRAM", "TERM_PROGRAM_VERSION", "LC_TERMINAL"];

impl ConfinedClient {
    /// The client of this name.
    pub(super) fn named(name: &str) -> Option<&'static Self> {
        CLIENTS.iter().find(|client| client.name == name)
    }

    /// The first of these words, or of the variables, that is refused, and why.
    pub(super) fn refused(&self, words: &[String]) -> Option<(String, &'static str)> {
        let words: Vec<&String> = words.iter().take_while(|word| *word != "--").collect();
        // A switch and its value may be one word or two.
        let pairs = words.windows(2).map(|pair| format!("{}={}", pair[0], pair[1]));
        let mut given = words.iter().map(|word| (*word).clone()).chain(pairs);
        let is_set = |name: &&&str| std::env::var_os(name).is_some_and(|value| !value.is_empty() && value != "0");
        let variable = || self.refused_variables.iter().find(is_set).map(|name| ((*name).to_owned(), TAKES_AWAY));
        given.find_map(|word| Some((word.clone(), self.reason_to_refuse(&word)?))).or_else(variable)
    }

    fn reason_to_refuse(&self, word: &str) -> Option<&'static str> {
        let switch = word.split('=').next().unwrap_or_default();
        if self.refused.contains(&switch) || switch.starts_with("--dangerously-") {
            return Some(TAKES_AWAY);
        }
        // The key of a value may be quoted, and have spaces around it.
        let bare: String = word.chars().filter(|letter| !letter.is_whitespace() && !"\"'".contains(*letter)).collect();
        self.refused_parts.iter().find(|(part, _)| bare.contains(part)).map(|(_, reason)| *reason)
    }

    /// Refuses to start where a settings file switches off the hooks that the client is handed.
    pub(super) fn check_switches(&self, workspace: &Path, home: &Path) -> Result<()> {
        for file in [workspace, home].iter().flat_map(|directory| self.switches.iter().map(|file| directory.join(file)))
        {
            let text = read_optional(&file)?.unwrap_or_default();
            if text.trim().is_empty() {
                continue;
            }
            let settings = jsonc::parse(&text).with_context(|| {
                format!(
                    "{} isn't JSON, so nobody can tell whether it switches hooks off. Correct it first",
                    file.display()
                )
            })?;
            let is_off = |property: &ObjectProp<'_>| {
                !matches!(&property.value, Value::BooleanLit(BooleanLit { value: false, .. }))
            };
            if settings.get("disableAllHooks").is_some_and(is_off) {
                bail!("`disableAllHooks` in {} is refused: {TAKES_AWAY}", file.display());
            }
        }
        Ok(())
    }

    /// The client as `toolgate init` knows it.
    pub(super) fn supported(&self) -> Option<SupportedClient> {
        SupportedClient::from_str(self.name, true).ok()
    }

    /// The hosts of its provider, and those of addresses that its variables name.
    pub(super) fn hosts(&self) -> Vec<String> {
        let named = std::env::vars().filter(|(name, _)| self.is_passed_on(name) && name.ends_with("_BASE_URL"));
        let host = |address: &str| {
            let rest = address.split_once("://")?.1;
            Some(rest.split('/').next()?.to_owned())
        };
        let own = self.hosts.iter().map(|host| (*host).to_owned());
        own.chain(named.filter_map(|(_, address)| host(&address))).collect()
    }

    fn is_passed_on(&self, name: &str) -> bool {
        self.variables.iter().any(|known| match known.strip_suffix('*') {
            Some(beginning) => name.starts_with(beginning),
            None => name == *known,
        })
    }

    /// Its own state and its variables.
    pub(super) fn state(&self, home: &Path) -> Result<ClientState> {
        let mut state = ClientState::default();
        for directory in self.directories {
            let directory = home.join(directory);
            std::fs::create_dir_all(&directory).with_context(|| format!("{} can't be made", directory.display()))?;
            state.writable.push(directory.canonicalize()?);
        }
        state.protected = self.loaded.iter().map(|path| protected(home, path)).collect::<Result<_>>()?;
        state.protected.extend(state.writable.iter().flat_map(|directory| programs(directory)));
        let files = self.files.iter().map(|file| home.join(file)).filter(|file| file.is_file());
        state.writable.extend(files);
        let of_terminal = |name: &str| OF_TERMINAL.contains(&name);
        let passed = std::env::vars_os()
            .filter(|(name, _)| name.to_str().is_some_and(|name| self.is_passed_on(name) || of_terminal(name)));
        state.environment.extend(passed);
        state.readable.extend(self.installed());
        // Its screen is for a person.
        state.environment.insert("NO_COLOR".into(), "".into());
        Ok(state)
    }

    /// The directory of the packages that it is installed with, if it comes from npm: parts of it are packages beside it.
    fn installed(&self) -> Option<PathBuf> {
        let path = std::env::var_os("PATH")?;
        let program =
            std::env::split_paths(&path).find_map(|directory| directory.join(self.name).canonicalize().ok())?;
        let is_of_npm = |directory: &&Path| directory.file_name().is_some_and(|name| name == "node_modules");
        program.ancestors().filter(is_of_npm).last().map(Path::to_owned)
    }

    /// What to restore when it has ended: a file that it keeps changing, and that names programs and rights as well.
    pub(super) fn guarded(&self, home: &Path, workspace: &Path) -> Result<Vec<GuardedSettings>> {
        let files = self.files.iter().map(|file| home.join(file)).filter(|file| file.is_file());
        files.map(|file| GuardedSettings::read(file, workspace)).collect()
    }
}

/// Programs of the person's own in a client's directory, such as those that its settings name for a status line.
fn programs(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let is_program = |entry: &std::fs::DirEntry| {
        entry.metadata().is_ok_and(|about| about.is_file() && about.permissions().mode() & EXECUTABLE != 0)
    };
    entries.filter(is_program).map(|entry| entry.path()).collect()
}

/// Something that the client loads by itself, to be protected. Only what exists can be: it is made empty if it isn't there, or the
/// client could make it inside.
fn protected(home: &Path, path: &str) -> Result<PathBuf> {
    let place = home.join(path.trim_end_matches('/'));
    if place.is_symlink() {
        bail!(
            "{} is a symlink, so the sandbox can't keep the client from replacing it. Put the file itself there, or start the \
             client without `toolgate with`.",
            place.display()
        );
    }
    let made = match (place.exists(), path.ends_with('/')) {
        (true, _) => Ok(()),
        (false, true) => std::fs::create_dir_all(&place),
        (false, false) => std::fs::write(&place, if path.ends_with(".json") { "{}\n" } else { "" }),
    };
    made.with_context(|| format!("{} can't be made", place.display()))?;
    place.canonicalize().with_context(|| format!("{} can't be found", place.display()))
}
