//! Messages and questions to the person while a call runs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{BoxFuture, ToolError};

/// How a message is displayed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MessageLevel {
    /// Plain information.
    #[default]
    Info,
    /// Something worked.
    Success,
    /// Something to be careful about.
    Warning,
    /// Something went wrong.
    Error,
    /// Work is in progress.
    Progress,
}

/// A message for the person.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// How it is displayed.
    pub level: MessageLevel,
    /// A heading.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The text, Markdown.
    pub content: String,
    /// The reasoning behind it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thought: Option<String>,
    /// The evidence: files, lines, commands.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub evidence: Vec<String>,
}

/// A question to the person.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Question {
    /// The question.
    pub question: String,
    /// Answers to choose from.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub choices: Vec<Choice>,
    /// Whether a free-text answer is accepted as well.
    pub free_text: bool,
}

impl Question {
    /// Parses an answer: a choice by its number from 1 or by its label, or free text where it is accepted.
    pub fn answer(&self, words: &str, by: &str) -> Option<QuestionAnswer> {
        let words = words.trim();
        let by_number = words.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        let choice = by_number
            .filter(|index| *index < self.choices.len())
            .or_else(|| self.choices.iter().position(|choice| choice.label.eq_ignore_ascii_case(words)));
        let answer = match choice {
            Some(index) => self.choices[index].label.clone(),
            None if (self.free_text || self.choices.is_empty()) && !words.is_empty() => words.to_owned(),
            None => return None,
        };
        Some(QuestionAnswer { answer, choice, by: by.to_owned() })
    }
}

/// One possible answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Choice {
    /// The answer.
    pub label: String,
    /// What choosing it means.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub description: Option<String>,
}

/// What the person answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuestionAnswer {
    /// The chosen label, or the free text.
    pub answer: String,
    /// The index of the choice, from 0; none for free text.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub choice: Option<usize>,
    /// Who answered.
    pub by: String,
}

/// How a question ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QuestionOutcome {
    /// A person answered.
    Answered(QuestionAnswer),
    /// A person saw the question and closed it without an answer.
    Dismissed {
        /// Who closed it.
        by: String,
    },
    /// Nobody could be asked.
    Nobody,
}

/// The person at the front end.
pub trait Person: Send + Sync {
    /// Shows a message. Returns whether a person was there to see it; never fails and never waits.
    fn say(&self, message: &Message) -> bool;
    /// Asks, and waits for the answer.
    fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Result<QuestionOutcome, ToolError>>;
    /// Passes the parameters of a `sampling/createMessage` of this server on to the client that made the call, and gives its result;
    /// none if there is no client that has a model for others.
    fn sample<'a>(&'a self, server: &'a str, request: Value) -> BoxFuture<'a, Result<Option<Value>, ToolError>>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_offered_counts() {
        let choice = |label: &str| Choice { label: label.into(), description: None };
        let question = |free_text| Question {
            question: "Which?".into(),
            choices: vec![choice("Left"), choice("Right")],
            free_text,
        };
        for (line, free_text, expected) in [
            ("2", false, Some(("Right", Some(1)))),
            (" left\n", false, Some(("Left", Some(0)))),
            ("0", false, None),
            ("3", false, None),
            ("3", true, Some(("3", None))),
            ("neither", true, Some(("neither", None))),
            ("", true, None),
        ] {
            let answer = question(free_text).answer(line, "ada");
            let answer = answer.as_ref().map(|answered| (answered.answer.as_str(), answered.choice));
            assert_eq!(answer, expected, "{line}");
        }
    }
}
