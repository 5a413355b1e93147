//! `[lsp]`: language servers, which answer questions about code.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// `[lsp]`: language servers.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LspConfig {
    /// Whether new errors are told after a change.
    pub after_changes: Option<AfterChanges>,
    /// Bytes of memory that each server may use.
    pub memory_bytes: Option<u64>,
    /// Seconds that a question waits for a server that is still indexing.
    pub wait_seconds: Option<u64>,
    /// `[lsp.servers.NAME]`: further servers, by name.
    pub servers: BTreeMap<String, LspServerConfig>,
}

/// Whether the errors that a change caused are told with it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AfterChanges {
    /// They aren't.
    Off,
    /// They are, by servers that run already.
    #[default]
    On,
}

/// `[lsp.servers.NAME]`: a language server beside the built-in ones, or in place of the one of that name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LspServerConfig {
    /// The program and its arguments, without a shell.
    pub command: Vec<String>,
    /// The files that it understands: the ending of names, and the language's id in the protocol.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, String>,
    /// Names of files that a project's directory has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub markers: Vec<String>,
    /// Variables that it has, as they are.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// What it is answered when it asks for its configuration.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub settings: Value,
    /// Its `initializationOptions`.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub options: Value,
    /// The command that installs it, for messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub install: Option<String>,
    /// Seconds without a question after which it is stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_seconds: Option<u64>,
}
