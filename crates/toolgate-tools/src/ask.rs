//! `ask`: asks the person one or more questions and waits for the answers.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolgate_contract::{
    Choice, Effect, ErrorCode, Hands, Permission, Question, QuestionOutcome, Risk, SideEffect, Spec, Tool, ToolError,
    schemars,
};

/// Asks the person.
pub struct AskTool;

/// One question, or several.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// The question.
    #[serde(default)]
    #[schemars(length(max = 4000))]
    question: String,
    /// Without any, the person types an answer.
    #[serde(default)]
    #[schemars(length(max = 9))]
    choices: Vec<Choice>,
    /// The person may also type an answer.
    #[serde(default = "enabled")]
    free_text: bool,
    /// In place of `question`: several.
    #[serde(default)]
    #[schemars(length(max = 5))]
    questions: Vec<AskedQuestion>,
}

// One of several questions.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AskedQuestion {
    // Described where a single one is: the list of tools has to stay short.
    #[schemars(length(min = 1, max = 4000))]
    question: String,
    #[serde(default)]
    #[schemars(length(max = 9))]
    choices: Vec<Choice>,
    #[serde(default = "enabled")]
    free_text: bool,
}

fn enabled() -> bool {
    true
}

/// The person's answer, or answers.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct Output {
    /// The chosen label, or the person's own text.
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<String>,
    /// Index of the choice, from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    choice: Option<usize>,
    /// The answers to several questions, in their order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    answers: Vec<GivenAnswer>,
}

/// The answer to one of several questions.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct GivenAnswer {
    /// The question.
    question: String,
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
        version: "1.1.0",
        description: "Ask the person what only they can answer, and wait. Offer choices where you can.",
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
        let Args { question, choices, free_text, questions } = args;
        if question.trim().is_empty() == questions.is_empty() {
            return Err(ToolError::invalid_args("Give either `question` or `questions`."));
        }
        if questions.is_empty() {
            let GivenAnswer { answer, choice, .. } =
                ask(AskedQuestion { question, choices, free_text }, &[], hands).await?;
            return Ok(Output { answer: Some(answer), choice, ..Output::default() });
        }
        let mut answers = Vec::new();
        for question in questions {
            let answer = ask(question, &answers, hands).await?;
            answers.push(answer);
        }
        Ok(Output { answers, ..Output::default() })
    }
}

/// Asks one question. If there is no answer, the error names the question and the answers before it.
async fn ask(asked: AskedQuestion, before: &[GivenAnswer], hands: &dyn Hands) -> Result<GivenAnswer, ToolError> {
    let AskedQuestion { question, choices, free_text } = asked;
    let free_text = free_text || choices.is_empty();
    let question = Question { question, choices, free_text };
    let message = match hands.ask(&question).await? {
        QuestionOutcome::Answered(given) => {
            return Ok(GivenAnswer { question: question.question, answer: given.answer, choice: given.choice });
        }
        QuestionOutcome::Dismissed { .. } => {
            format!("The person dismissed the question \"{}\" without an answer.", question.question)
        }
        QuestionOutcome::Nobody => "No person is available to answer.".to_owned(),
    };
    let given: Vec<String> = before.iter().map(|given| format!("\n{}: {}", given.question, given.answer)).collect();
    let answered = if given.is_empty() { String::new() } else { format!(" Answered before:{}", given.concat()) };
    Err(ToolError::new(ErrorCode::NoAnswer, message + &answered))
}
