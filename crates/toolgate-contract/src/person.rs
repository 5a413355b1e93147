//! What is said to the person while a call runs, and what they are asked.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{BoxFuture, ToolError};

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

/// A question to the person.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Inquiry {
    /// The question.
    pub question: String,
    /// Answers to choose from.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub choices: Vec<Choice>,
    /// Whether words of their own will do as well.
    pub free_text: bool,
}

/// One answer to choose.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Choice {
    /// The answer.
    pub label: String,
    /// What it would mean.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub description: Option<String>,
}

/// What the person answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answered {
    /// The label that they chose, or their own words.
    pub answer: String,
    /// Which choice it was, from 0; none for words of their own.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub choice: Option<usize>,
    /// Who.
    pub by: String,
}

/// Whoever watches. A front end brings one.
pub trait Person: Send + Sync {
    /// Shows a message. Returns whether anyone was there to see it; never fails and never waits.
    fn say(&self, message: &Message) -> bool;
    /// Asks, and waits for the answer; none when nobody is there.
    fn ask<'a>(&'a self, inquiry: &'a Inquiry) -> BoxFuture<'a, Result<Option<Answered>, ToolError>>;
}
