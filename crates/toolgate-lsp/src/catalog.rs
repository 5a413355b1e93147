//! Which language servers and linters there are, as data: the built-in list, and what configuration adds.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

/// The built-in servers and linters.
const BUILT_IN: &str = include_str!("servers.toml");

/// The servers and linters that are known, in the order in which they are tried.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Catalog {
    /// Language servers. Of those for a file, the first that is installed is used.
    #[serde(rename = "server")]
    pub servers: Vec<ServerEntry>,
    /// Linters. All that are installed are used.
    #[serde(rename = "linter")]
    pub linters: Vec<LinterEntry>,
}

/// One language server.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ServerEntry {
    /// Its name.
    pub name: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The files that it understands: name ending, or whole name, and the language's id in the protocol.
    pub files: BTreeMap<String, String>,
    /// Other files whose changes matter to it: endings or whole names.
    pub watches: Vec<String>,
    /// The names of files and directories that a project's directory has.
    pub markers: Vec<String>,
    /// Whether the outermost directory with a marker is the project, not the nearest.
    pub outermost: bool,
    /// The command that installs it.
    pub install: String,
    /// Whether it says by itself when it has read the project (`experimental/serverStatus`).
    pub says_when_ready: bool,
    /// How what it logs begins once it has found the project's files, where it has no other word for that.
    pub found_files_words: Vec<String>,
    /// Whether it goes on reading without a word after its start, so that an answer counts once it is given twice.
    pub settles: bool,
    /// Milliseconds in which it begins to report work after the first document.
    pub grace_ms: u64,
    /// Where diagnostics come from.
    pub diagnostics: DiagnosticsMode,
    /// Whether it has to begin anew with a document when other files changed.
    pub reopens: bool,
    /// Whether what it publishes for a document's present version may still be of older other files, so that it is waited until it is
    /// quiet.
    pub publishes_again: bool,
    /// Files, by ending or whole name, that it reads for good when it starts, or takes its time to read again: where one of them
    /// changed, it is started anew.
    pub restarts_on: Vec<String>,
    /// When it reads the project again, and how that is known.
    pub reload: Reload,
    /// The file that lists a project's files. Without it in the project's directory, or in `build` beneath, the server knows no
    /// documents but those that are open, so those with a symbol's name are opened before it is asked about the symbol.
    pub file_list: Option<String>,
    /// Whether it has no symbols of the workspace to search, so that it isn't started for that.
    pub no_workspace_symbols: bool,
    /// Files of toolchains that it sees with another content, by their path in a toolchain's directory.
    pub toolchain_files: BTreeMap<String, String>,
    /// Variables that it has. `{home}` is its own directory.
    pub environment: BTreeMap<String, String>,
    /// Variables of the person's own that it has, for programs that it starts.
    pub inherits: Vec<String>,
    /// What `workspace/configuration` answers.
    pub settings: Value,
    /// `initializationOptions`.
    pub options: Value,
    /// What is put over both in a workspace that the person trusts.
    pub trusted: Overrides,
    /// What is put over both in any other workspace, and what is kept from the server there.
    pub untrusted: Restrictions,
    /// Other programs without which it has nothing to say: the first of each must be installed.
    pub needs: Vec<String>,
    /// Seconds without a question after which it is stopped.
    pub idle_seconds: Option<u64>,
    /// Bytes of memory that it may use.
    pub memory_bytes: Option<u64>,
}

/// Settings that only a trusted workspace gets: with them a server runs the project's own code, inside its sandbox.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Overrides {
    /// Put over the settings.
    pub settings: Value,
    /// Put over the options.
    pub options: Value,
}

/// What holds in a workspace that the person doesn't trust, so that a server runs none of the project's own code.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Restrictions {
    /// Put over the settings.
    pub settings: Value,
    /// Files of the project's directory and those above it that name programs to run, by path. The server sees them with this
    /// content instead.
    pub files: BTreeMap<String, String>,
}

/// How a server reads the project again: after a moment, in which it would answer of the old one.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Reload {
    /// Files, by ending or whole name, after whose change it does.
    pub on: Vec<String>,
    /// The title of the progress that it reports when it begins.
    pub progress: String,
}

/// Where diagnostics come from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DiagnosticsMode {
    /// The server is asked if it can be; otherwise it publishes them.
    #[default]
    Automatic,
    /// The server is asked; it may offer that only after a while.
    Pull,
    /// The server publishes them, with the version that they are of or after a while.
    Push,
    /// tsserver is asked through `typescript.tsserverRequest`.
    Tsserver,
}

/// One linter.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LinterEntry {
    /// Its name, and the source of its diagnostics.
    pub name: String,
    /// The program and its arguments; `{files}` stands for the files.
    pub command: Vec<String>,
    /// Endings of the files that it understands.
    pub files: Vec<String>,
    /// The form of its output.
    pub output: LinterOutput,
    /// Names of files that the project's directory has; none where it needs no project.
    pub markers: Vec<String>,
    /// Whether it runs code of the workspace, which has to be trusted then.
    pub runs_code: bool,
    /// The command that installs it.
    pub install: String,
    /// Variables that it has.
    pub environment: BTreeMap<String, String>,
}

/// The form of a linter's output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinterOutput {
    /// `ruff check --output-format=json`.
    #[default]
    Ruff,
    /// `eslint --format=json`.
    Eslint,
    /// `shellcheck --format=json`.
    Shellcheck,
    /// `cargo clippy --message-format=json`.
    Cargo,
}

/// A server that can be used for a file.
#[derive(Debug, Clone)]
pub struct InstalledServer {
    /// The server's name.
    pub name: String,
    /// The languages that it is for.
    pub languages: Vec<String>,
    /// Where its program is; none if it isn't installed.
    pub program: Option<std::path::PathBuf>,
    /// The command that installs it.
    pub install: String,
}

impl Catalog {
    /// The built-in servers and linters.
    ///
    /// # Panics
    ///
    /// Never: the list is part of the program, and a test reads it.
    pub fn built_in() -> Self {
        toml::from_str(BUILT_IN).expect("the built-in list of servers can be read")
    }

    /// Puts servers in front: for their files they are tried first. One with a known name takes its place.
    pub fn add(&mut self, servers: Vec<ServerEntry>) {
        self.servers.retain(|known| servers.iter().all(|new| new.name != known.name));
        self.servers.splice(0..0, servers);
    }

    /// The built-in server of this name.
    pub fn server(&self, name: &str) -> Option<&ServerEntry> {
        self.servers.iter().find(|server| server.name == name)
    }
}

impl ServerEntry {
    /// Whether it understands a file.
    pub fn takes(&self, path: &str) -> bool {
        self.files.keys().any(|ending| is_named(path, ending))
    }

    /// Whether changes of a file matter to it.
    pub(crate) fn watches(&self, path: &str) -> bool {
        let mut others = self.watches.iter().chain(&self.markers).chain(&self.restarts_on).chain(&self.reload.on);
        self.takes(path) || others.any(|ending| is_named(path, ending))
    }

    /// Whether it is started anew when this file changes.
    pub(crate) fn restarts_on(&self, path: &str) -> bool {
        self.restarts_on.iter().any(|ending| is_named(path, ending))
    }

    /// Whether it reads the project again when this file changes.
    pub(crate) fn reloads_on(&self, path: &str) -> bool {
        self.reload.on.iter().any(|ending| is_named(path, ending))
    }

    /// The id of the language of a file that it understands.
    pub(crate) fn language_of(&self, path: &str) -> &str {
        self.files.iter().find(|(ending, _)| is_named(path, ending)).map_or("plaintext", |(_, language)| language)
    }

    /// The languages that it is for.
    pub fn languages(&self) -> Vec<String> {
        let mut languages: Vec<String> = self.files.values().cloned().collect();
        languages.sort_unstable();
        languages.dedup();
        languages
    }
}

/// Whether a path has this ending, or this name.
pub(crate) fn is_named(path: &str, ending: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name == ending || name.rsplit_once('.').is_some_and(|(stem, last)| !stem.is_empty() && last == ending)
}

/// Puts one JSON value over another: objects field by field, everything else as a whole.
pub(crate) fn merged(under: &Value, over: &Value) -> Value {
    match (under, over) {
        (Value::Object(under), Value::Object(over)) => {
            let mut all: Map<String, Value> = under.clone();
            for (name, value) in over {
                let known = all.get(name).cloned().unwrap_or(Value::Null);
                all.insert(name.clone(), merged(&known, value));
            }
            Value::Object(all)
        }
        (under, Value::Null) => under.clone(),
        (_, over) => over.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_built_in_list_is_usable() {
        let catalog = Catalog::built_in();
        for server in &catalog.servers {
            assert!(!server.command.is_empty() && !server.files.is_empty(), "{}", server.name);
            assert!(!server.install.is_empty(), "{}: how is it installed?", server.name);
        }
        for path in ["a.rs", "b.py", "c.ts", "d.jsx", "e.cpp", "f.go", "g.sh", "h.json", "i.yaml", "j.toml", "x/k.h"] {
            assert!(catalog.servers.iter().any(|server| server.takes(path)), "{path}");
        }
        assert!(!catalog.servers.iter().any(|server| server.takes("notes.txt") || server.takes(".rs")));
    }

    #[test]
    fn a_configured_server_comes_first_and_replaces_its_namesake() {
        let mut catalog = Catalog::built_in();
        let count = catalog.servers.len();
        let own = ServerEntry { name: "clangd".into(), command: vec!["my-clangd".into()], ..ServerEntry::default() };
        catalog.add(vec![own]);
        assert_eq!((catalog.servers.len(), catalog.servers[0].command[0].as_str()), (count, "my-clangd"));
    }

    #[test]
    fn settings_are_merged_field_by_field() {
        let under = json!({ "a": { "b": 1, "c": 2 }, "d": [1] });
        let over = json!({ "a": { "b": 3 }, "d": [2], "e": true });
        assert_eq!(merged(&under, &over), json!({ "a": { "b": 3, "c": 2 }, "d": [2], "e": true }));
        assert_eq!(merged(&under, &Value::Null), under);
    }
}
