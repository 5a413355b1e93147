//! The kinds of agents that can be set to work: what each is told, and the tools that it can't go beyond.

use toolgate_policy::Ceiling;

/// A kind of agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    /// Its name.
    pub name: String,
    /// What it is good for, for the model that may send it.
    pub description: String,
    /// What it is told beside its task.
    pub instructions: String,
    /// The tools that it can't go beyond; none for the tools of whoever sends it.
    pub tools: Option<Vec<String>>,
}

impl Definition {
    /// The kinds that are always there.
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

    /// What its session can't go beyond.
    pub(crate) fn ceiling(&self) -> Option<Ceiling> {
        let tools = self.tools.clone()?;
        Some(Ceiling { source: format!("agent {}", self.name), tools })
    }
}
