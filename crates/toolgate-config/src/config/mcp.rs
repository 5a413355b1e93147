//! `[mcp]`: other MCP servers, whose tools are offered beside the built-in ones.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use toolgate_contract::RootAccess;

use super::tools::EffectsConfig;

/// `[mcp]`: other MCP servers.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct McpConfig {
    /// `[mcp.servers.NAME]`: the servers, by name.
    pub servers: BTreeMap<String, McpServerConfig>,
    /// How many of their tools models are told of one by one.
    pub listed_tools: Option<u64>,
}

/// `[mcp.servers.NAME]`: a server that is started as a program and spoken to over its standard streams, or one elsewhere that is
/// spoken to over HTTP.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct McpServerConfig {
    /// The program and its arguments, without a shell.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// The address of a server elsewhere, in place of a program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Where a token for a server elsewhere is, in place of a login.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bearer: Option<SecretSource>,
    /// Which protocol versions are tried.
    #[serde(default, skip_serializing_if = "ServerProtocol::is_auto")]
    pub protocol: ServerProtocol,
    /// Variables that it has, as they are.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Variables that it has, each by where its value is.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub secrets: BTreeMap<String, SecretSource>,
    /// What it may do in the workspace.
    #[serde(default)]
    pub workspace: RootAccess,
    /// Where it starts.
    #[serde(default)]
    pub directory: ServerDirectory,
    /// Directories beside the workspace that it may read: absolute paths.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roots: Vec<String>,
    /// Hosts that it may connect to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    /// Seconds that a call of one of its tools may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u64>,
    /// Seconds without a call after which it is stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_seconds: Option<u64>,
    /// Bytes of memory that it and everything that it starts may use together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Whether it may use the model of whoever calls it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sampling: bool,
    /// `[mcp.servers.NAME.effects.TOOL]`: what a call of one of its tools touches.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub effects: BTreeMap<String, EffectsConfig>,
}

/// Which protocol versions are tried with a server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerProtocol {
    /// The one with a handshake first, then the one without.
    #[default]
    Auto,
    /// Only the one with a handshake (2025-11-25 and before).
    Handshake,
    /// Only the one without (2026-07-28).
    Stateless,
}

impl ServerProtocol {
    fn is_auto(&self) -> bool {
        *self == Self::Auto
    }
}

/// Where a server starts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerDirectory {
    /// In its own home.
    #[default]
    Home,
    /// In the workspace, where it may take what a repository has for a part of itself.
    Workspace,
}

/// Where a secret is: `env:NAME` or `file:/PATH`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretSource {
    /// In a variable of Toolgate's own environment.
    Variable(String),
    /// In a file, whose last newline isn't part of it.
    File(String),
}

impl fmt::Display for SecretSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variable(name) => write!(f, "env:{name}"),
            Self::File(path) => write!(f, "file:{path}"),
        }
    }
}

impl Serialize for SecretSource {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for SecretSource {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        match text.split_once(':') {
            Some(("env", name)) if !name.is_empty() => Ok(Self::Variable(name.to_owned())),
            Some(("file", path)) if path.starts_with('/') => Ok(Self::File(path.to_owned())),
            // What was written may be the secret itself, so it isn't repeated.
            _ => Err(D::Error::custom(
                "a secret is `env:NAME` or `file:/PATH`; its value doesn't belong into a file of settings",
            )),
        }
    }
}
