//! What is said to the person while a call runs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a message should look.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Plain news.
    #[default]
    Info,
    /// Something worked.
    Success,
    /// Something to be careful about.
    Warning,
    /// Something went wrong.
    Error,
    /// Work is going on.
    Progress,
}

/// A message for the person.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// How it should look.
    pub level: Level,
    /// A heading.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The text, Markdown.
    pub content: String,
    /// The reasoning behind it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thought: Option<String>,
    /// What it rests on: files, lines, commands.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub evidence: Vec<String>,
}

/// Whoever watches. A front end brings one; saying something never fails and never waits.
pub trait Person: Send + Sync {
    /// Shows a message. Returns whether anyone was there to see it.
    fn say(&self, message: &Message) -> bool;
}
