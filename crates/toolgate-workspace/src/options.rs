//! What a front end decides when it opens a workspace.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::Arc;

use toolgate_contract::{AnyTool, Clock, SystemClock};
use toolgate_sandbox::process::SandboxOptions;

/// Receives warnings, a sentence each.
pub type WarningSink = Arc<dyn Fn(&str) + Send + Sync>;

/// What a front end decides when it opens a workspace. Everything else comes from configuration.
pub struct WorkspaceOptions {
    /// The tools, apart from `undo` and `commit`, which every workspace has.
    pub tools: Vec<Arc<dyn AnyTool>>,
    /// Secrets to redact, by name, besides those in the environment and in the configuration.
    pub secrets: Vec<(String, String)>,
    /// The source of times and ids.
    pub clock: Arc<dyn Clock>,
    /// The environment: secrets in it are redacted, and commands see a few harmless variables of it.
    pub environment: BTreeMap<OsString, OsString>,
    /// How commands are confined; without it none can run.
    pub sandbox: Option<SandboxOptions>,
    /// Whether the index of runs is kept up to date while calls are made. It can be made from the journals at any time.
    pub indexed: bool,
    /// The program as it is named in the command that repeats a call.
    pub program: String,
    /// The owner's name, for the record.
    pub owner: String,
    /// Where warnings go.
    pub warn: WarningSink,
}

impl WorkspaceOptions {
    /// The built-in tools, the environment of this process, and a sandbox.
    pub fn new(warn: WarningSink) -> Self {
        Self {
            tools: toolgate_tools::all(),
            secrets: Vec::new(),
            clock: Arc::new(SystemClock),
            environment: std::env::vars_os().collect(),
            sandbox: Some(SandboxOptions { warm: 0, ..SandboxOptions::default() }),
            indexed: true,
            program: "toolgate".into(),
            owner: "user".into(),
            warn,
        }
    }
}
