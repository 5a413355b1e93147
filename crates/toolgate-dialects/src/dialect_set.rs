//! The dialects that one session speaks. Several can be spoken at once, beside the native tools or without them, as long as
//! each name means one thing.

use toolgate_contract::{Declaration, Permission, TOOLS_FIND, TOOLS_USE};

use crate::dialect::{Dialect, ServerNames};
use crate::{DIALECTS, dialect};

/// The name of the native tools among dialects.
pub const NATIVE: &str = "native";

/// Tools that have their native names in every dialect. Results name what was cut by handles that only `artifact` reads, and where
/// servers have many tools, two find and use them.
const EVERYWHERE: [&str; 3] = ["artifact", TOOLS_FIND, TOOLS_USE];

/// Whether there is a native tool of this name.
pub type IsTool<'a> = &'a dyn Fn(&str) -> bool;

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
    pub fn beside<'a>(self, mut native: impl Iterator<Item = &'a Declaration>) -> Result<Self, DialectSetError> {
        // To look at a tool's declaration is to make it.
        if !self.has_native || self.is_native() {
            return Ok(self);
        }
        let shared = native.find_map(|tool| Some((tool, self.owner(&tool.name)?)));
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
    pub(crate) fn speaker(&self, tool: &str, is_tool: IsTool<'_>) -> Option<usize> {
        if let Some(known) = self.owner(tool) {
            return Some(known);
        }
        let is_servers = || self.server_tool(tool, is_tool).is_some_and(|native| is_tool(&native));
        let is_nobodys = EVERYWHERE.contains(&tool) || is_servers();
        (!is_nobodys && !self.has_native && !self.dialects.is_empty()).then_some(0)
    }

    /// The dialect that has a tool of this name.
    fn owner(&self, tool: &str) -> Option<usize> {
        self.dialects.iter().position(|dialect| dialect.tool(tool).is_some())
    }

    /// The names of the tools that do what this native one does.
    pub fn names_for<'a>(&'a self, native: &'a str) -> impl Iterator<Item = &'a str> {
        let tools = self.dialects.iter().flat_map(|dialect| dialect.tools);
        let mapped = tools.filter(move |tool| tool.native == native).map(|tool| tool.name);
        mapped.chain(self.has_native.then_some(native))
    }

    /// The native name of a tool of an MCP server, if this can be one: written as clients write it, or natively. `server/tool` is
    /// the same as `server__tool`.
    pub fn server_tool(&self, tool: &str, is_tool: IsTool<'_>) -> Option<String> {
        if EVERYWHERE.contains(&tool) || self.owner(tool).is_some() {
            return None;
        }
        let native = ServerNames::NATIVE.separator;
        if self.has_native && is_tool(tool) {
            return tool.contains(native).then(|| tool.to_owned());
        }
        let schemes = || self.dialects.iter().map(|dialect| dialect.server_names);
        if let Some(known) = schemes().flat_map(|scheme| scheme.native_names(tool)).find(|name| is_tool(name)) {
            return Some(known);
        }
        let prefixed = schemes().filter(|scheme| scheme.separator == native);
        let plain = prefixed.filter_map(|scheme| tool.strip_prefix(scheme.prefix)).next().unwrap_or(tool);
        let plain = match plain.split_once('/') {
            Some((server, tool)) if !plain.contains(native) => format!("{server}{native}{tool}"),
            _ => plain.to_owned(),
        };
        plain.contains(native).then_some(plain)
    }

    /// Beside native tools, tools of servers have their native names.
    fn server_names(&self) -> ServerNames {
        match self.dialects.first() {
            Some(first) if !self.has_native => first.server_names,
            _ => ServerNames::NATIVE,
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
        let mut declared: Vec<Declaration> = mapped.collect();
        let is_tool = |name: &str| offered.iter().any(|tool| tool.name == name);
        declared.extend(offered.iter().filter_map(|tool| self.unmapped(tool, &is_tool)));
        declared
    }

    /// A tool that no dialect maps, as it is offered all the same: every tool beside the native ones, those with native names
    /// everywhere, and tools of MCP servers. One of a server keeps its native name where the client's form of it means another tool.
    fn unmapped(&self, tool: &Declaration, is_tool: IsTool<'_>) -> Option<Declaration> {
        let of_server = tool.name.split_once(ServerNames::NATIVE.separator);
        match of_server.filter(|_| tool.required_permissions.contains(&Permission::McpCall)) {
            Some((server, name)) => {
                let ServerNames { prefix, separator } = self.server_names();
                let short = format!("{prefix}{server}{separator}{name}");
                let is_its_own = self.server_tool(&short, is_tool).as_deref() == Some(tool.name.as_str());
                Some(Declaration { name: if is_its_own { short } else { tool.name.clone() }, ..tool.clone() })
            }
            None => {
                let is_mapped =
                    self.dialects.iter().any(|dialect| dialect.tools.iter().any(|own| own.native == tool.name));
                let is_offered = self.has_native || (EVERYWHERE.contains(&tool.name.as_str()) && !is_mapped);
                is_offered.then(|| tool.clone())
            }
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
        let speaker =
            |names: &str, tool: &str| names.parse::<DialectSet>().unwrap().speaker(tool, &|name| name == "time__now");
        assert_eq!((speaker("claude,codex", "Read"), speaker("claude,codex", "exec_command")), (Some(0), Some(1)));
        assert_eq!(speaker("claude,codex", "unknown"), Some(0), "the first says that it doesn't know it");
        assert_eq!(speaker("claude,native", "unknown"), None, "the gate says that it doesn't know it");
        assert_eq!((speaker("native", "read"), speaker("claude", "artifact")), (None, None));
        assert_eq!(speaker("claude", "mcp__time__now"), None, "a server's tool is nobody's own");
        assert_eq!(speaker("claude", "mcp__time__then"), Some(0), "a server has no such tool");
        assert_eq!((speaker("gemini", "mcp_time_now"), speaker("gemini", "mcp_time_then")), (None, Some(0)));
        assert_eq!((speaker("opencode", "time_now"), speaker("opencode", "apply_patch")), (None, Some(0)));
        assert_eq!(speaker("gemini", "tools_find"), None, "many servers' tools are found in every dialect");
    }

    #[test]
    fn tools_of_servers_have_the_clients_names() {
        let is_tool = |name: &str| {
            let of_servers =
                ["time__now", "my_time__now", "time__right_now", "apply__patch", "tools__find", "lsp__symbols"];
            of_servers.contains(&name) || name == "lsp_symbols"
        };
        let native = |names: &str, tool: &str| names.parse::<DialectSet>().unwrap().server_tool(tool, &is_tool);
        for (dialect, tool, expected) in [
            ("claude", "mcp__time__now", "time__now"),
            ("codex", "mcp__time__now", "time__now"),
            ("codex-2026-01", "time/now", "time__now"),
            ("gemini", "mcp_time_now", "time__now"),
            ("gemini", "mcp_my_time_now", "my_time__now"),
            ("gemini", "mcp_time_right_now", "time__right_now"),
            ("gemini", "time__now", "time__now"),
            ("opencode", "time_now", "time__now"),
            ("opencode", "my_time_now", "my_time__now"),
            ("opencode", "apply__patch", "apply__patch"),
            ("claude,native", "time__now", "time__now"),
            ("claude,native", "mcp__time__now", "time__now"),
        ] {
            assert_eq!(native(dialect, tool).as_deref(), Some(expected), "{dialect} {tool}");
        }
        for (dialect, tool) in [
            ("claude", "Read"),
            ("claude", "mcp__time"),
            ("gemini", "mcp_time_later"),
            ("gemini", "time_now"),
            ("opencode", "apply_patch"),
            ("opencode", "tools_find"),
            ("opencode,native", "lsp_symbols"),
        ] {
            assert_eq!(native(dialect, tool), None, "{dialect} {tool}");
        }
    }

    fn tool(name: &str, permission: Permission) -> Declaration {
        Declaration {
            name: name.into(),
            version: "1.0.0".parse().unwrap(),
            description: String::new(),
            args_schema: Default::default(),
            return_schema: Default::default(),
            required_permissions: vec![permission],
            side_effects: Vec::new(),
            risk: toolgate_contract::Risk::Low,
            parallel: true,
            form: toolgate_contract::ArgumentFormat::Function { strict: false },
            result_form: Default::default(),
        }
    }

    #[test]
    fn a_name_that_two_servers_tools_would_share_is_given_once() {
        let of_server = |name: &str| tool(name, Permission::McpCall);
        let tools =
            [of_server("a__b_c"), of_server("a_b__c"), of_server("apply__patch"), tool("patch", Permission::FsWrite)];
        let declared = |dialect: &str| {
            let set: DialectSet = dialect.parse().unwrap();
            set.declarations(tools.iter()).into_iter().map(|tool| tool.name).collect::<Vec<_>>()
        };
        assert_eq!(declared("opencode"), ["apply_patch", "a_b_c", "a_b__c", "apply__patch"]);
        assert_eq!(declared("gemini"), ["mcp_a_b_c", "a_b__c", "mcp_apply_patch"]);
        assert_eq!(declared("claude"), ["mcp__a__b_c", "mcp__a_b__c", "mcp__apply__patch"]);
    }
}
