//! The clients whose hooks are understood, one file each in `clients/`.

use serde_json::Value;
use toolgate_contract::ToolError;
use toolgate_dialects::Dialect;

use crate::answer::{HookAnswer, HookOutput};
use crate::clients;
use crate::event::ClientEvent;
use crate::own_rules::OwnRuleFiles;

/// A client, and how its hooks speak.
pub struct HookClient {
    /// Its name on the command line, and in the record.
    pub name: &'static str,
    /// What people call it.
    pub title: &'static str,
    /// The names and arguments of its tools; none if all that is needed is in `tools`.
    pub dialect: Option<&'static Dialect>,
    /// Its tools that the dialect doesn't have, or has only for its own purposes.
    pub tools: &'static [(&'static str, ToolUse)],
    /// The tool of the dialect that a tool of the hook is, with the arguments as the dialect has them.
    pub as_dialect: fn(&str, &Value) -> Option<(&'static str, Value)>,
    /// The server and the tool of a name that stands for a tool of an MCP server.
    pub server_tool: fn(&str) -> Option<(String, String)>,
    /// Directories of the client's own, in the home directory: it keeps output there that its model reads.
    pub own_directories: &'static [&'static str],
    /// Where it keeps rules of its own about commands; none if those aren't judged here.
    pub own_rules: Option<&'static OwnRuleFiles>,
    /// What its model is told of a command that may run, where the client can't be told to run it here; none where it can.
    pub not_rewritten: Option<&'static str>,
    /// Whether `cd` in one command counts for the next.
    pub keeps_directory: bool,
    /// Reads an event.
    pub read: fn(&Value) -> Result<ClientEvent, ToolError>,
    /// Writes an answer.
    pub write: fn(&ClientEvent, &HookAnswer) -> HookOutput,
    /// What its hooks can't hold, a sentence each.
    pub not_held: &'static [&'static str],
}

/// What a tool of a client does, as far as its arguments tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolUse {
    /// Nothing to the machine: it talks, plans, or starts agents whose calls have hooks of their own.
    Harmless,
    /// Reads the file of this argument.
    Reads(&'static str),
    /// Shows names in the directory of this argument.
    Lists(&'static str),
    /// Shows content of the files in the directory of this argument; of the current one if it isn't given.
    Searches(&'static str),
    /// Changes the file of this argument.
    Writes(&'static str),
    /// Applies the patch of this argument.
    Patches(&'static str),
    /// Runs the command of this argument.
    Runs(&'static str),
    /// Fetches the address of this argument.
    Fetches(&'static str),
    /// Starts an agent or tells it something; the items of this argument may name files to attach.
    Messages(&'static str),
}

impl HookClient {
    /// What the client's own table says of a tool.
    pub(crate) fn listed(&self, tool: &str) -> Option<ToolUse> {
        self.tools.iter().find(|(name, _)| *name == tool).map(|(_, does)| *does)
    }
}

/// The client of this name.
pub fn client_named(name: &str) -> Option<&'static HookClient> {
    hook_clients().iter().copied().find(|client| client.name == name)
}

/// Every client.
pub fn hook_clients() -> &'static [&'static HookClient] {
    static CLIENTS: &[&HookClient] = &[
        &clients::claude::CLAUDE_HOOKS,
        &clients::codex::CODEX_HOOKS,
        &clients::gemini::GEMINI_HOOKS,
        &clients::opencode::OPENCODE_HOOKS,
        &clients::copilot::COPILOT_HOOKS,
        &clients::cursor::CURSOR_HOOKS,
        &clients::goose::GOOSE_HOOKS,
    ];
    CLIENTS
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What real clients let run when they were tried (`tests/hooks/matrix.py` of the program).
    const NOT_HELD: &str = include_str!("../../toolgate-cli/tests/hooks/not_held.json");

    #[test]
    fn every_case_that_a_client_lets_run_is_named() {
        let cases: Vec<[String; 2]> = serde_json::from_str(NOT_HELD).unwrap();
        for [client, case] in cases {
            let named = match case.as_str() {
                "hook_fails" => "fails",
                "hook_is_missing" => "missing",
                "hook_is_killed" => "killed",
                "hook_hangs" => "takes too long",
                "hook_prints_garbage" | "hook_prints_half" => "prints something else",
                "hooks_disabled" => "switch",
                "own_rules" => "own rules",
                other => panic!("{other}"),
            };
            let sentences = client_named(&client).unwrap().not_held;
            assert!(sentences.iter().any(|sentence| sentence.contains(named)), "{client}: {case}");
        }
    }
}
