//! Scripted answers to approvals and questions.

use std::collections::VecDeque;

use parking_lot::Mutex;
use toolgate_contract::{ApprovalScope, BoxFuture, Question, QuestionAnswer, QuestionOutcome};
use toolgate_runtime::{ApprovalAnswer, ApprovalRequest, Approver, QuestionAnswerer};

/// Gives its answers in order, then reports that nobody is there; remembers its requests.
#[derive(Default)]
pub struct ScriptedApprover {
    answers: Mutex<VecDeque<ApprovalAnswer>>,
    asked: Mutex<Vec<ApprovalRequest>>,
}

impl ScriptedApprover {
    /// An approver with these answers.
    pub fn with(answers: impl IntoIterator<Item = ApprovalAnswer>) -> Self {
        Self { answers: Mutex::new(answers.into_iter().collect()), asked: Mutex::default() }
    }

    /// Approves once, with this scope.
    pub fn grants(scope: ApprovalScope) -> Self {
        Self::with([ApprovalAnswer::Granted { scope, by: "ada".into() }])
    }

    /// Denies once.
    pub fn denies() -> Self {
        Self::with([ApprovalAnswer::Denied { by: "ada".into(), reason: Some("not today".into()) }])
    }

    /// The requests so far.
    pub fn asked(&self) -> Vec<ApprovalRequest> {
        self.asked.lock().clone()
    }
}

impl Approver for ScriptedApprover {
    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, ApprovalAnswer> {
        self.asked.lock().push(request.clone());
        let answer = self.answers.lock().pop_front();
        Box::pin(std::future::ready(answer.unwrap_or(ApprovalAnswer::Nobody)))
    }
}

/// Answers every question with its first choice, or with this text.
pub struct FirstChoiceAnswerer(pub &'static str);

impl QuestionAnswerer for FirstChoiceAnswerer {
    fn answer<'a>(&'a self, _call: &'a str, question: &'a Question) -> BoxFuture<'a, QuestionOutcome> {
        let choice = question.choices.first().map(|choice| choice.label.clone());
        let answered = QuestionAnswer {
            choice: choice.as_ref().map(|_| 0),
            answer: choice.unwrap_or_else(|| self.0.to_owned()),
            by: "ada".into(),
        };
        Box::pin(std::future::ready(QuestionOutcome::Answered(answered)))
    }
}

/// Never answers.
pub struct SilentApprover;

impl Approver for SilentApprover {
    fn ask<'a>(&'a self, _request: &'a ApprovalRequest) -> BoxFuture<'a, ApprovalAnswer> {
        Box::pin(std::future::pending())
    }
}
