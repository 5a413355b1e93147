//! The dialects that one session speaks. Several can be spoken at once, beside the native tools or without them, as long as
//! each name means one thing.

use toolgate_contract::{Declaration, Permission};

use crate::dialect::Dialect;
use crate::{DIALECTS, dialect};

/// The name of the native tools among dialects.
pub const NATIVE: &str = "native";

/// A tool that has its native name in every dialect: results name what was cut by handles that only this one reads.
const STORED_OUTPUT: &str = "artifact";

/// What stands between server and tool in the name of a tool of an MCP server.
const SERVER_SEPARATOR: &str = "__";

/// The dialects of a session, in the order in which they were named.
#[derive(Debug, Clone, PartialEq)]
pub struct DialectSet {
    dialects: Vec<&'static Dialect>,
    has_native: bool,
}

impl Default for DialectSet {
    /// The native tools alone.
    fn default() -> Self {
        Self { dialects: Vec::new(), has_native: true }
    }
}

/// Why dialects can't be spoken together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DialectSetError {
    /// There is no such dialect.
    Unknown(String),
    /// Two of them have a tool of this name.
    SharedName {
        /// The tool.
        tool: String,
        /// The dialects that have it.
        both: [&'static str; 2],
    },
}

impl std::fmt::Display for DialectSetError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unknown(name) => {
                let known: Vec<&str> = DIALECTS.iter().map(|dialect| dialect.name).collect();
                write!(f, "there is no dialect `{name}`; there are {} and {NATIVE}", known.join(", "))
            }
            Self::SharedName { tool, both: [one, other] } => {
                write!(f, "the dialects {one} and {other} both have a tool `{tool}`; choose one of them")
            }
        }
    }
}

impl std::error::Error for DialectSetError {}

impl std::str::FromStr for DialectSet {
    type Err = DialectSetError;

    /// Reads names, separated by commas. `native` stands for the native tools. A dialect that is named twice counts once.
    fn from_str(names: &str) -> Result<Self, DialectSetError> {
        let mut set = Self { dialects: Vec::new(), has_native: false };
        for name in names.split(',').map(str::trim) {
            match dialect(name) {
                _ if name == NATIVE => set.has_native = true,
                Some(known) if set.dialects.contains(&known) => {}
                Some(known) => set.add(known)?,
                None => return Err(DialectSetError::Unknown(name.to_owned())),
            }
        }
        Ok(set)
    }
}

impl DialectSet {
    fn add(&mut self, new: &'static Dialect) -> Result<(), DialectSetError> {
        for spoken in &self.dialects {
            if let Some(tool) = new.names().find(|name| spoken.tool(name).is_some()) {
                let both = [spoken.name, new.name];
                return Err(DialectSetError::SharedName { tool: tool.to_owned(), both });
            }
        }
        self.dialects.push(new);
        Ok(())
    }

    /// Checks that no native tool has the name of a dialect's, if both are spoken.
    pub fn beside<'a>(self, native: impl Iterator<Item = &'a Declaration>) -> Result<Self, DialectSetError> {
        let shared = native.filter(|_| self.has_native).find_map(|tool| Some((tool, self.speaker(&tool.name)?)));
        match shared {
            None => Ok(self),
            Some((tool, speaker)) => {
                let both = [self.dialects[speaker].name, NATIVE];
                Err(DialectSetError::SharedName { tool: tool.name.clone(), both })
            }
        }
    }

    /// The dialects, without the native tools.
    pub fn dialects(&self) -> &[&'static Dialect] {
        &self.dialects
    }

    /// Whether only the native tools are spoken.
    pub fn is_native(&self) -> bool {
        self.dialects.is_empty()
    }

    /// Which dialect reads a call of this tool; none if it is a native call. A name that nobody knows belongs to the first
    /// dialect, which says so in its own words.
    pub(crate) fn speaker(&self, tool: &str) -> Option<usize> {
        if tool == STORED_OUTPUT || self.server_tool(tool).is_some() {
            return None;
        }
        let known = self.dialects.iter().position(|dialect| dialect.tool(tool).is_some());
        known.or((!self.has_native && !self.dialects.is_empty()).then_some(0))
    }

    /// The names of the tools that do what this native one does.
    pub fn names_for<'a>(&'a self, native: &'a str) -> impl Iterator<Item = &'a str> {
        let tools = self.dialects.iter().flat_map(|dialect| dialect.tools);
        let mapped = tools.filter(move |tool| tool.native == native).map(|tool| tool.name);
        mapped.chain(self.has_native.then_some(native))
    }

    /// The native name of a tool of an MCP server, if this can be one: the clients' prefix is taken off, and `server/tool` is
    /// the same as `server__tool`.
    pub fn server_tool(&self, tool: &str) -> Option<String> {
        let plain = tool.strip_prefix(self.server_prefix()).unwrap_or(tool);
        let plain = match plain.split_once('/') {
            Some((server, tool)) if !plain.contains(SERVER_SEPARATOR) => format!("{server}{SERVER_SEPARATOR}{tool}"),
            _ => plain.to_owned(),
        };
        plain.contains(SERVER_SEPARATOR).then_some(plain)
    }

    /// Beside native tools, tools of servers have their native names.
    fn server_prefix(&self) -> &'static str {
        match self.dialects.first() {
            Some(first) if !self.has_native => first.server_prefix,
            _ => "",
        }
    }

    /// The native tool behind this name, or the name itself where it is nobody's.
    pub fn native_name<'a>(&self, tool: &'a str) -> &'a str {
        self.dialects.iter().find_map(|dialect| dialect.tool(tool)).map_or(tool, |tool| tool.native)
    }

    /// The tools that a model is offered, where these native ones are.
    pub fn declarations<'a>(&self, offered: impl Iterator<Item = &'a Declaration>) -> Vec<Declaration> {
        let offered: Vec<&Declaration> = offered.collect();
        let mapped = self.dialects.iter().flat_map(|dialect| dialect.declarations(offered.iter().copied()));
        let native = offered.iter().filter_map(|tool| self.unmapped(tool));
        mapped.chain(native).collect()
    }

    /// A tool that no dialect maps, as it is offered all the same: every tool beside the native ones, stored output, and tools of MCP
    /// servers, which nobody knows by other names.
    fn unmapped(&self, tool: &Declaration) -> Option<Declaration> {
        let is_servers =
            tool.required_permissions.contains(&Permission::McpCall) && tool.name.contains(SERVER_SEPARATOR);
        match is_servers {
            true => Some(Declaration { name: format!("{}{}", self.server_prefix(), tool.name), ..tool.clone() }),
            false => (self.has_native || tool.name == STORED_OUTPUT).then(|| tool.clone()),
        }
    }
}

impl std::fmt::Display for DialectSet {
    /// The names as they are read.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let native = self.has_native.then_some(NATIVE);
        let names: Vec<&str> = self.dialects.iter().map(|dialect| dialect.name).chain(native).collect();
        f.write_str(&names.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(names: &str) -> String {
        names.parse::<DialectSet>().map_or_else(|error| error.to_string(), |set| set.to_string())
    }

    #[test]
    fn several_dialects_are_spoken_together_unless_they_share_a_name() {
        for (names, expected) in [
            ("native", "native"),
            ("claude", "claude"),
            ("claude, codex", "claude,codex"),
            ("claude,native,claude", "claude,native"),
            ("claude,claude-2.0", "the dialects claude and claude-2.0 both have a tool `Read`; choose one of them"),
            (
                "codex,codex-2026-01",
                "the dialects codex and codex-2026-01 both have a tool `exec_command`; choose one of them",
            ),
        ] {
            assert_eq!(said(names), expected, "{names}");
        }
        for unknown in ["clod", "", "claude,"] {
            assert!(said(unknown).starts_with("there is no dialect `"), "{unknown}");
        }
    }

    #[test]
    fn a_call_belongs_to_the_dialect_that_has_its_tool() {
        let speaker = |names: &str, tool: &str| names.parse::<DialectSet>().unwrap().speaker(tool);
        assert_eq!((speaker("claude,codex", "Read"), speaker("claude,codex", "exec_command")), (Some(0), Some(1)));
        assert_eq!(speaker("claude,codex", "unknown"), Some(0), "the first says that it doesn't know it");
        assert_eq!(speaker("claude,native", "unknown"), None, "the gate says that it doesn't know it");
        assert_eq!((speaker("native", "read"), speaker("claude", "artifact")), (None, None));
        assert_eq!(speaker("claude", "mcp__time__now"), None, "a server's tool is nobody's own");
    }

    #[test]
    fn tools_of_servers_have_the_clients_prefix() {
        let native = |names: &str, tool: &str| names.parse::<DialectSet>().unwrap().server_tool(tool);
        for (dialect, tool) in [
            ("claude", "mcp__time__now"),
            ("codex", "mcp__time__now"),
            ("codex-2026-01", "time/now"),
            ("gemini", "time__now"),
        ] {
            assert_eq!(native(dialect, tool).as_deref(), Some("time__now"), "{dialect}");
        }
        assert_eq!((native("claude", "Read"), native("claude", "mcp__time")), (None, None));
        assert_eq!(native("claude,native", "time__now").as_deref(), Some("time__now"));
    }
}
