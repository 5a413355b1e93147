//! `ask`: asks the person something and waits for the answer (C-57).

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolgate_contract::{
    Choice, Effect, ErrorCode, Hands, Permission, Question, Risk, SideEffect, Spec, Tool, ToolError,
};

/// Asks the person something.
pub struct AskTool;

/// What to ask.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// The question, one at a time.
    #[schemars(length(min = 1, max = 4000))]
    question: String,
    /// Answers to choose from; without any, the person answers in their own words.
    #[serde(default)]
    #[schemars(length(max = 9))]
    choices: Vec<Choice>,
    /// Whether words of their own will do where there are choices.
    #[serde(default = "yes")]
    free_text: bool,
}

fn yes() -> bool {
    true
}

/// What the person answered.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// The label that was chosen, or the person's own words.
    answer: String,
    /// Which of the choices it was, from 0.
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

    /// A person takes their time.
    const LONGEST: Option<Duration> = Some(Duration::from_secs(3600));

    fn effects(&self, _args: &Args) -> Vec<Effect> {
        vec![Effect::Speak]
    }

    async fn run(&self, args: Args, hands: &Hands) -> Result<Output, ToolError> {
        let Args { question, choices, free_text } = args;
        let free_text = free_text || choices.is_empty();
        let answered = hands.ask(&Question { question, choices, free_text }).await?.ok_or_else(|| {
            ToolError::new(ErrorCode::NotFound, "Nobody is here to answer.")
                .with_hint("Decide yourself and say what you assumed, or finish with the question as your answer.")
        })?;
        Ok(Output { answer: answered.answer, choice: answered.choice })
    }
}
