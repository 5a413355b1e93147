//! The kinds of agents that can be started: their instructions, and the tools that they are limited to.

use serde::Deserialize;
use toolgate_runtime::Ceiling;

/// A kind of agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentDefinition {
    /// Its name.
    #[serde(skip)]
    pub name: String,
    /// What it is good for, for the model that may start it.
    pub description: String,
    /// Its instructions, besides its task.
    #[serde(default)]
    pub instructions: String,
    /// The tools that it is limited to; none for the tools of the agent that starts it.
    #[serde(default)]
    pub tools: Option<Vec<String>>,
}

impl AgentDefinition {
    /// The kinds that always exist.
    pub fn built_in() -> Vec<Self> {
        let reading = ["read", "list", "find", "grep", "image", "artifact", "display"];
        vec![
            Self {
                name: "general".into(),
                description: "Does a piece of work on its own, with your tools.".into(),
                instructions: String::new(),
                tools: None,
            },
            Self {
                name: "explore".into(),
                description: "Looks something up in the workspace and reports; changes nothing.".into(),
                instructions: "You only look; you have no tools that change anything. Report what you found, with \
                               paths and line numbers."
                    .into(),
                tools: Some(reading.map(str::to_owned).to_vec()),
            },
        ]
    }

    /// Parses a kind of this name from TOML.
    ///
    /// ```
    /// let text = r#"
    ///     description = "Reviews a change and reports what is wrong with it."
    ///     instructions = "Look for mistakes, not for style."
    ///     tools = ["read", "grep", "list"]
    /// "#;
    /// let reviewer = toolgate_agent::AgentDefinition::parse("reviewer", text).unwrap();
    /// assert_eq!((reviewer.name.as_str(), reviewer.tools.unwrap().len()), ("reviewer", 3));
    /// assert!(toolgate_agent::AgentDefinition::parse("x", "tools = []").unwrap_err().contains("description"));
    /// ```
    pub fn parse(name: &str, text: &str) -> Result<Self, String> {
        let kind: Self = toml::from_str(text).map_err(|fault| format!("The agent `{name}` can't be read: {fault}"))?;
        Ok(Self { name: name.to_owned(), ..kind })
    }

    /// The tools that limit its session.
    pub(crate) fn ceiling(&self) -> Option<Ceiling> {
        let tools = self.tools.clone()?;
        Some(Ceiling { source: format!("agent {}", self.name), tools })
    }
}
