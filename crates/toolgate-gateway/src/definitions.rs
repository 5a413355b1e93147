//! The definitions of a server's tools, as a person approved them. They are what listing and calling go by; what the server says
//! now only has to equal them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolgate_contract::ServerDescription;

use crate::definition::{Definition, DefinitionFault};

/// Tools that are looked at of one server.
const MOST_TOOLS: usize = 2000;

/// What a person approved of a server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerDefinitions {
    /// The server's name in the configuration.
    pub server: String,
    /// What it says that it is. Approved with the tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<Value>,
    /// What it says to models. Approved with the tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// The definitions of its approved tools, as the server wrote them.
    pub tools: Vec<Value>,
}

/// A part of what a server says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DefinedPart {
    /// What it says that it is.
    Identity,
    /// What it says to models.
    Instructions,
    /// The definition of this tool.
    Tool(String),
}

impl DefinedPart {
    /// The tool's name, if it is about one.
    pub fn tool(&self) -> Option<&str> {
        match self {
            Self::Tool(name) => Some(name),
            Self::Identity | Self::Instructions => None,
        }
    }
}

/// A difference between what was approved and what a server says now.
#[derive(Debug, Clone, PartialEq)]
pub struct DefinitionChange {
    /// What it is about.
    pub part: DefinedPart,
    /// What was approved; none if it is new.
    pub before: Option<Value>,
    /// What it is now; none if it is gone.
    pub after: Option<Value>,
}

impl ServerDefinitions {
    /// Everything that a server says now, and the tools that can't be offered.
    pub fn of(server: &str, description: &ServerDescription) -> (Self, Vec<DefinitionFault>) {
        let (mut tools, mut faults) = (BTreeMap::<String, Option<Definition>>::new(), Vec::new());
        for raw in description.tools.iter().take(MOST_TOOLS) {
            match Definition::read(raw.clone()) {
                Ok(definition) => {
                    // Names that differ by case alone are one name to whoever reads them.
                    let entry = tools.entry(definition.name().to_lowercase());
                    entry.and_modify(|known| *known = None).or_insert(Some(definition));
                }
                Err(fault) => faults.push(fault),
            }
        }
        let twice = tools.iter().filter(|(_, definition)| definition.is_none()).map(|(name, _)| DefinitionFault {
            tool: name.clone(),
            reason: "the server defines it more than once, and which of them counts can't be known".into(),
        });
        faults.extend(twice);
        let more = description.tools.len().saturating_sub(MOST_TOOLS);
        faults.extend((more > 0).then(|| DefinitionFault {
            tool: "(others)".into(),
            reason: format!("the server defines more than {MOST_TOOLS} tools, and {more} weren't looked at"),
        }));
        let tools = tools.into_values().flatten().map(|definition| definition.raw().clone()).collect();
        let about = Some(description.server.clone()).filter(|about| !about.is_null());
        (Self { server: server.to_owned(), about, instructions: description.instructions.clone(), tools }, faults)
    }

    /// The definitions. They were checked when the server described itself, and are signed since.
    pub fn definitions(&self) -> impl Iterator<Item = Definition> {
        self.tools.iter().map(|raw| Definition::checked_before(raw.clone()))
    }

    /// What is different now.
    pub fn changes_to(&self, now: &Self) -> Vec<DefinitionChange> {
        let by_name = |definitions: &Self| -> BTreeMap<String, Value> {
            definitions.definitions().map(|tool| (tool.name().to_owned(), tool.raw().clone())).collect()
        };
        let (before, after) = (by_name(self), by_name(now));
        let mut changes = Vec::new();
        let text = |instructions: &Option<String>| instructions.clone().map(Value::String);
        for (part, before, after) in [
            (DefinedPart::Identity, self.about.clone(), now.about.clone()),
            (DefinedPart::Instructions, text(&self.instructions), text(&now.instructions)),
        ] {
            if before != after {
                changes.push(DefinitionChange { part, before, after });
            }
        }
        let names: std::collections::BTreeSet<&String> = before.keys().chain(after.keys()).collect();
        for name in names {
            let (before, after) = (before.get(name).cloned(), after.get(name).cloned());
            let hash = |raw: &Option<Value>| raw.as_ref().map(Definition::hash_of);
            if hash(&before) != hash(&after) {
                changes.push(DefinitionChange { part: DefinedPart::Tool(name.clone()), before, after });
            }
        }
        changes
    }

    /// These definitions with some changes approved.
    #[must_use]
    pub fn with(mut self, approved: &[DefinitionChange]) -> Self {
        for change in approved {
            match &change.part {
                DefinedPart::Identity => self.about.clone_from(&change.after),
                DefinedPart::Instructions => {
                    self.instructions = change.after.as_ref().and_then(Value::as_str).map(str::to_owned);
                }
                DefinedPart::Tool(name) => {
                    self.tools.retain(|raw| raw["name"] != name.as_str());
                    self.tools.extend(change.after.clone());
                }
            }
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool(name: &str, description: &str) -> Value {
        json!({ "name": name, "description": description, "inputSchema": { "type": "object" } })
    }

    fn described(tools: Vec<Value>) -> ServerDefinitions {
        let description = ServerDescription { tools, instructions: Some("Be nice.".into()), ..Default::default() };
        ServerDefinitions::of("s", &description).0
    }

    #[test]
    fn what_is_new_changed_or_gone_is_found_and_approved_one_by_one() {
        let before = described(vec![tool("same", "s"), tool("changed", "old"), tool("gone", "g")]);
        let now = described(vec![tool("changed", "new"), tool("added", "a"), tool("same", "s")]);
        let changes = before.changes_to(&now);
        let names: Vec<_> = changes.iter().map(|change| change.part.tool().unwrap()).collect();
        assert_eq!(names, ["added", "changed", "gone"]);
        let partly = before.clone().with(&changes[1..2]);
        assert_eq!(partly.changes_to(&now).len(), 2);
        assert!(before.with(&changes).changes_to(&now).is_empty());
        assert_eq!(ServerDefinitions::default().changes_to(&now).len(), 4, "with the instructions");
    }

    #[test]
    fn a_name_that_is_used_twice_is_used_by_nobody() {
        let tools =
            vec![tool("dup", "first"), tool("dup", "second"), tool("Echo", "e"), tool("echo", "e"), tool("ok", "o")];
        let description = ServerDescription { tools, ..Default::default() };
        let (definitions, faults) = ServerDefinitions::of("s", &description);
        assert_eq!(definitions.tools.len(), 1);
        assert_eq!(faults.iter().map(|fault| fault.tool.as_str()).collect::<Vec<_>>(), ["dup", "echo"]);
    }
}
