//! A client's own rules about commands. The client judges what a command is replaced by, and an answer that allows it goes past those
//! rules; so they are judged here, on the command as the model wrote it.

use std::path::Path;

use serde_json::Value;
use toolgate_config::read_optional;
use toolgate_contract::{ErrorCode, ToolError};
use toolgate_policy::Explanation;

/// Where a client keeps its rules, and how they are read.
#[derive(Debug)]
pub struct OwnRuleFiles {
    /// Files in the workspace.
    pub workspace: &'static [&'static str],
    /// Files in the home directory.
    pub home: &'static [&'static str],
    /// Files of the machine.
    pub machine: &'static [&'static str],
    /// Reads the rules of one file.
    pub read: fn(&Value) -> OwnRules,
}

/// Patterns of commands, as the client's person wrote them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OwnRules {
    /// What is never run.
    pub deny: Vec<String>,
    /// What the person is asked about.
    pub ask: Vec<String>,
}

/// What the client's own rules say of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OwnVerdict {
    /// No rule matches.
    Silent,
    /// This rule has the person asked.
    Ask(String),
    /// This rule denies it.
    Deny(String),
}

impl OwnRuleFiles {
    /// The rules of all files. One that can't be read might deny, so that is an error.
    pub(crate) fn rules(&self, workspace: &Path, home: &Path) -> Result<OwnRules, ToolError> {
        let in_workspace = self.workspace.iter().map(|file| workspace.join(file));
        let in_home = self.home.iter().map(|file| home.join(file));
        let mut rules = OwnRules::default();
        for file in in_workspace.chain(in_home).chain(self.machine.iter().map(Into::into)) {
            let fault = |why: String| {
                let message = format!("The client's own rules in {} can't be read: {why}.", file.display());
                ToolError::new(ErrorCode::PolicyDenied, message)
            };
            let Some(text) = read_optional(&file).map_err(|error| fault(error.to_string()))? else { continue };
            if text.trim().is_empty() {
                continue;
            }
            let settings: Value = serde_json::from_str(&text).map_err(|error| fault(error.to_string()))?;
            let found = (self.read)(&settings);
            rules.deny.extend(found.deny);
            rules.ask.extend(found.ask);
        }
        Ok(rules)
    }
}

impl OwnRules {
    /// What these rules say of a command, and of each simple command in it.
    pub(crate) fn judge(&self, command: &str, explained: &Explanation) -> OwnVerdict {
        let parts = explained.parts.iter().flat_map(|part| [part.text.clone(), part.words.join(" ")]);
        let texts: Vec<String> = std::iter::once(command.trim().to_owned()).chain(parts).collect();
        let matching =
            |rules: &[String]| rules.iter().find(|rule| texts.iter().any(|text| matches(rule, text))).cloned();
        match (matching(&self.deny), matching(&self.ask)) {
            (Some(rule), _) => OwnVerdict::Deny(rule),
            (None, Some(rule)) => OwnVerdict::Ask(rule),
            (None, None) => OwnVerdict::Silent,
        }
    }
}

/// Whether a command matches a pattern: `*` stands for anything, and `:*` or ` *` at the end for any arguments or none.
fn matches(pattern: &str, command: &str) -> bool {
    let prefix = pattern.strip_suffix(":*").or_else(|| pattern.strip_suffix(" *"));
    match prefix {
        Some(prefix) => matches_wildcards(prefix, command) || matches_wildcards(&format!("{prefix} *"), command),
        None => matches_wildcards(pattern, command),
    }
}

fn matches_wildcards(pattern: &str, text: &str) -> bool {
    let mut pieces = pattern.split('*');
    let Some(mut rest) = pieces.next().and_then(|first| text.strip_prefix(first)) else { return false };
    let Some(last) = pieces.next_back() else { return rest.is_empty() };
    for piece in pieces {
        let Some(at) = rest.find(piece) else { return false };
        rest = &rest[at + piece.len()..];
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_clients_match_them() {
        for (pattern, command, expected) in [
            ("npm test", "npm test", true),
            ("npm test", "npm test -- x", false),
            ("npm:*", "npm", true),
            ("npm:*", "npm run build", true),
            ("npm:*", "npmx", false),
            ("git *", "git push origin", true),
            ("git *", "gitk", false),
            ("git * main", "git push main", true),
            ("git * main", "git push dev", false),
            ("touch forb*", "touch forbidden.txt", true),
            ("*", "anything", true),
            ("*--force*", "git push --force origin", true),
            ("a*a", "a", false),
        ] {
            assert_eq!(matches(pattern, command), expected, "{pattern} {command}");
        }
    }
}
