//! Rules about a tool, by its name or a pattern over names: `tool = "mcp__*"`.

use std::fmt;

use globset::GlobMatcher;

use toolgate_config::ConfigFault;

use super::word_glob;

/// Matches every call of the tools that it names.
#[derive(Debug)]
pub(crate) struct ToolRule {
    names: GlobMatcher,
}

impl ToolRule {
    pub(crate) fn new(pattern: &str) -> Result<Self, ConfigFault> {
        if pattern.is_empty() {
            return Err(ConfigFault::new("The tool pattern is empty.", "Use `*` for every tool."));
        }
        Ok(Self { names: word_glob(pattern, "tool")? })
    }

    pub(crate) fn matches(&self, name: &str) -> bool {
        self.names.is_match(name)
    }
}

impl fmt::Display for ToolRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tool {}", self.names.glob())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_patterns() {
        for (pattern, name, expected) in [
            ("read", "read", true),
            ("read", "Read", false),
            ("read", "read_file", false),
            ("mcp__*", "mcp__git__log", true),
            ("{read,list}", "list", true),
            ("*", "anything/at all", true),
        ] {
            assert_eq!(ToolRule::new(pattern).unwrap().matches(name), expected, "{pattern} {name}");
        }
        assert!(ToolRule::new("a[").is_err() && ToolRule::new("").is_err());
    }
}
