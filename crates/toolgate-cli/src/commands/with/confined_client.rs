//! What each client needs to work in the sandbox: its own state, the variables that it is configured by, and its provider's hosts.
#![allow(clippy::disallowed_methods, reason = "makes the client's own directories, which the sandbox is to show")]

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use toolgate_config::read_optional;

use super::guarded_settings::GuardedSettings;
use crate::commands::Invocation;
use crate::commands::hook::own_words;
use crate::commands::init::SupportedClient;
use crate::commands::init::hooks::HookSetup;
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
        refused: &["--bare", "--dangerously-skip-permissions", "--allow-dangerously-skip-permissions"],
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
        refused: &["--dangerously-bypass-approvals-and-sandbox", "--yolo", "--dangerously-bypass-hook-trust"],
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
        refused: &["--allow-all-paths", "--yolo"],
    },
];

/// The bits of a file's mode that let somebody execute it.
const EXECUTABLE: u32 = 0o111;

/// Variables that make a terminal what it is.
const OF_TERMINAL: &[&str] = &["COLORTERM", "TERM_PROGRAM", "TERM_PROGRAM_VERSION", "LC_TERMINAL"];

impl ConfinedClient {
    /// The client of this name.
    pub(super) fn named(name: &str) -> Option<&'static Self> {
        CLIENTS.iter().find(|client| client.name == name)
    }

    /// The first switch among these words that takes a safeguard away, and why it is refused.
    pub(super) fn refused(&self, words: &[String]) -> Option<(String, String)> {
        let is_refused = |word: &&String| {
            let switch = word.split('=').next().unwrap_or_default();
            self.refused.contains(&switch) || switch.starts_with("--dangerously-")
        };
        let switches_hooks_off = |word: &&String| word.contains("disableAllHooks");
        let found =
            words.iter().take_while(|word| *word != "--").find(|word| is_refused(word) || switches_hooks_off(word));
        let reason =
            "it takes away safeguards of the client itself. Start the client without `toolgate with` if you mean it.";
        found.map(|word| (word.clone(), reason.to_owned()))
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

    /// Refuses to start where the workspace's hooks would be asked: they judge outside, and can't be reached from inside.
    pub(super) fn check_hooks(&self, invocation: &Invocation) -> Result<()> {
        let Ok(client) = SupportedClient::from_str(self.name, true) else { return Ok(()) };
        let words = own_words(invocation)?;
        let Some(setup) = HookSetup::of(client, &words, &invocation.location.directory) else { return Ok(()) };
        let text = read_optional(&setup.file)?.unwrap_or_default();
        if text.contains("toolgate") && text.contains("hook") {
            bail!(
                "{} has Toolgate's hooks. They judge outside of the sandbox, where a confined client doesn't reach them, and would \
                 deny every call. Remove them with `toolgate init --for {} --hooks --remove`, or start the client without \
                 `toolgate with`.",
                setup.file.display(),
                self.name
            );
        }
        Ok(())
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
