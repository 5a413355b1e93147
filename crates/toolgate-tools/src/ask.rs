//! `ask`: asks the person a question and waits for the answer.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolgate_contract::{
    Choice, Effect, ErrorCode, Hands, Permission, Question, Risk, SideEffect, Spec, Tool, ToolError,
};

/// Asks the person a question.
pub struct AskTool;

/// A question.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// One question at a time.
    #[schemars(length(min = 1, max = 4000))]
    question: String,
    /// Answers to choose from; without any, the person types an answer.
    #[serde(default)]
    #[schemars(length(max = 9))]
    choices: Vec<Choice>,
    /// Whether the person may also answer freely.
    #[serde(default = "enabled")]
    free_text: bool,
}

fn enabled() -> bool {
    true
}

/// The person's answer.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// The chosen label, or the person's own text.
    answer: String,
    /// Index of the choice, from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    choice: Option<usize>,
}

impl Tool for AskTool {
    type Args = Args;
    type Output = Output;

    const SPEC: Spec = Spec {
        name: "ask",
        version: "1.0.0",
        description: "Ask the person a question that only they can answer, and wait for the answer. Offer choices where \
                      you can.",
        risk: Risk::Low,
        permissions: &[Permission::Agent],
        side_effects: &[SideEffect::SpeaksToPerson],
        parallel: true,
    };

    /// A person may take any amount of time.
    const LONGEST: Option<Duration> = Some(Duration::from_secs(3600));

    fn effects(&self, _args: &Args) -> Vec<Effect> {
        vec![Effect::Speak]
    }

    async fn run(&self, args: Args, hands: &dyn Hands) -> Result<Output, ToolError> {
        let Args { question, choices, free_text } = args;
        let free_text = free_text || choices.is_empty();
        let answered = hands.ask(&Question { question, choices, free_text }).await?.ok_or_else(|| {
            ToolError::new(ErrorCode::NotFound, "No person is available to answer.")
                .with_hint("Decide yourself and say what you assumed, or finish with the question as your answer.")
        })?;
        Ok(Output { answer: answered.answer, choice: answered.choice })
    }
}
