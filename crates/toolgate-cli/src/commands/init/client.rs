//! The clients that can be set up, one entry each: where they look for MCP servers, and in which words.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use serde_json::{Value, json};

use super::merge::{MergeOutcome, into_json, into_toml, into_yaml};

/// The name under which clients know the gate.
pub(super) const NAME: &str = "toolgate";

/// An agent, or an editor with one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SupportedClient {
    /// Claude Code.
    Claude,
    /// Codex.
    Codex,
    /// Gemini CLI.
    Gemini,
    /// opencode.
    Opencode,
    /// GitHub Copilot CLI.
    Copilot,
    /// Cursor.
    Cursor,
    /// Visual Studio Code.
    Vscode,
    /// goose.
    Goose,
    /// Zed.
    Zed,
}

/// How the gate is started for a client.
pub(super) struct ServerCommand {
    pub(super) program: String,
    pub(super) workspace: PathBuf,
}

/// What has to stand in which file.
pub(super) struct ClientSetup {
    /// The file, absolute.
    pub(super) file: PathBuf,
    /// What to do once it stands there.
    pub(super) next: &'static str,
    entry: SetupEntry,
}

/// The entry, in the client's own format.
enum SetupEntry {
    /// An entry of the object under this key.
    Json { key: &'static str, entry: Value },
    /// A table.
    Toml(toml::Table),
    /// An entry under `extensions`.
    Yaml(Vec<(&'static str, Value)>),
}

impl SupportedClient {
    /// What this client needs, in this workspace and for this user.
    pub(super) fn setup(self, start: &ServerCommand, home: &Path) -> ClientSetup {
        ClientSetup { file: self.file(&start.workspace, home), next: self.next(), entry: self.entry(start) }
    }

    /// The file in which it looks for servers.
    fn file(self, workspace: &Path, home: &Path) -> PathBuf {
        match self {
            Self::Claude => workspace.join(".mcp.json"),
            Self::Codex => workspace.join(".codex/config.toml"),
            Self::Gemini => workspace.join(".gemini/settings.json"),
            Self::Opencode => workspace.join("opencode.json"),
            Self::Copilot => home.join(".copilot/mcp-config.json"),
            Self::Cursor => workspace.join(".cursor/mcp.json"),
            Self::Vscode => workspace.join(".vscode/mcp.json"),
            Self::Goose => home.join(".config/goose/config.yaml"),
            Self::Zed => workspace.join(".zed/settings.json"),
        }
    }

    fn next(self) -> &'static str {
        match self {
            Self::Claude => "Start `claude` here and accept the server; `/mcp` shows it.",
            Self::Codex => {
                "Start `codex` here and trust the directory; `/mcp` shows the server. Codex itself approves its calls \
                 (`default_tools_approval_mode`; without it `codex exec` refuses to edit): toolgate asks instead. In `codex exec` \
                 the answer is always no, so allow beforehand what it needs: `\"--allow\", \"permission=fs.delete\"` among the \
                 arguments lets it delete."
            }
            Self::Gemini => "Start `gemini` here and trust the directory; `/mcp` shows the server.",
            Self::Opencode => "Start `opencode` here; `opencode mcp list` shows the server.",
            Self::Copilot => {
                "Start `copilot` in a project; `/mcp show` lists the server. It works in the directory that it is started in."
            }
            Self::Cursor => "Open the directory in Cursor and switch the server on in its settings.",
            Self::Vscode => {
                "Open the directory in VS Code and start the server from the file, or with `MCP: List Servers`."
            }
            Self::Goose => "Start `goose session`; `goose configure` shows the extension.",
            Self::Zed => "Open the directory in Zed and trust it; the Agent Panel's settings show the server.",
        }
    }

    fn entry(self, start: &ServerCommand) -> SetupEntry {
        let program = &start.program;
        let args = |workspace: &str| json!(["--workspace", workspace, "serve", "--stdio"]);
        let here = args(&start.workspace.display().to_string());
        // Where the client starts its servers in the project's directory, its file fits every machine.
        let anywhere = args(".");
        let opened = args("${workspaceFolder}");
        let stdio = |args: Value| json!({ "type": "stdio", "command": program, "args": args });
        let json = |key: &'static str, entry: Value| SetupEntry::Json { key, entry };
        match self {
            Self::Claude => json("mcpServers", stdio(anywhere)),
            Self::Codex => SetupEntry::Toml(codex(program, &anywhere)),
            Self::Gemini => json("mcpServers", json!({ "command": program, "args": anywhere, "timeout": 700_000 })),
            Self::Opencode => json("mcp", opencode(program, &anywhere)),
            Self::Copilot => {
                json("mcpServers", json!({ "type": "local", "command": program, "args": anywhere, "tools": ["*"] }))
            }
            Self::Cursor => json("mcpServers", stdio(opened)),
            Self::Vscode => json("servers", stdio(opened)),
            Self::Goose => SetupEntry::Yaml(goose(program, here)),
            Self::Zed => json("context_servers", json!({ "command": program, "args": here, "env": {} })),
        }
    }
}

fn codex(program: &str, args: &Value) -> toml::Table {
    let args: Vec<String> =
        args.as_array().into_iter().flatten().filter_map(|word| word.as_str().map(str::to_owned)).collect();
    [
        ("command".to_owned(), program.into()),
        ("args".to_owned(), args.into()),
        // Its own question comes before ours and can't say what a call will do.
        ("default_tools_approval_mode".to_owned(), "approve".into()),
    ]
    .into_iter()
    .collect()
}

/// One list has the program and its arguments.
fn opencode(program: &str, args: &Value) -> Value {
    let words = std::iter::once(json!(program)).chain(args.as_array().into_iter().flatten().cloned());
    json!({ "type": "local", "command": words.collect::<Vec<_>>(), "enabled": true })
}

fn goose(program: &str, args: Value) -> Vec<(&'static str, Value)> {
    vec![
        ("enabled", json!(true)),
        ("type", json!("stdio")),
        ("name", json!(NAME)),
        ("description", json!("Files and commands through the gate")),
        ("cmd", json!(program)),
        ("args", args),
        ("envs", json!({})),
        ("timeout", json!(700)),
    ]
}

impl ClientSetup {
    /// What the file holds if there is nothing else in it.
    pub(super) fn snippet(&self) -> String {
        match self.merged("") {
            MergeOutcome::Changed(text) => text,
            MergeOutcome::There | MergeOutcome::ByHand => String::new(),
        }
    }

    /// The file with the entry in it, and everything else as it was.
    pub(super) fn merged(&self, text: &str) -> MergeOutcome {
        match &self.entry {
            SetupEntry::Json { key, entry } => into_json(text, key, NAME, entry),
            SetupEntry::Toml(table) => into_toml(text, "mcp_servers", NAME, table),
            SetupEntry::Yaml(fields) => into_yaml(text, "extensions", NAME, fields),
        }
    }
}
