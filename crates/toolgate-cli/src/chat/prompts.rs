//! Approvals and questions of a running agent, answered in place: below the conversation, in the input line.

use tokio::sync::{mpsc, oneshot};
use toolgate_contract::{BoxFuture, Question, QuestionOutcome};
use toolgate_runtime::{ApprovalAnswer, ApprovalRequest, Approver, QuestionAnswerer};

/// Something that the person is asked. Its sender is closed once no answer is needed any more.
pub(super) enum Prompt {
    Approval(Box<ApprovalRequest>, oneshot::Sender<ApprovalAnswer>),
    /// The person said no, and may say why.
    Reason(oneshot::Sender<ApprovalAnswer>),
    Question(Question, oneshot::Sender<QuestionOutcome>),
}

impl Prompt {
    /// Waits until no answer is needed any more: somebody else answered, or the call was cancelled.
    pub(super) async fn withdrawn(&mut self) {
        match self {
            Self::Approval(_, answer) | Self::Reason(answer) => answer.closed().await,
            Self::Question(_, answer) => answer.closed().await,
        }
    }
}

/// Passes what an agent asks to the conversation.
#[derive(Clone)]
pub(super) struct Prompter(pub(super) mpsc::UnboundedSender<Prompt>);

impl Approver for Prompter {
    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, ApprovalAnswer> {
        Box::pin(async move {
            let (answer, answered) = oneshot::channel();
            // Where the conversation is over, nobody answers.
            let _ = self.0.send(Prompt::Approval(Box::new(request.clone()), answer));
            answered.await.unwrap_or(ApprovalAnswer::Nobody)
        })
    }
}

impl QuestionAnswerer for Prompter {
    fn answer<'a>(&'a self, _call: &'a str, question: &'a Question) -> BoxFuture<'a, QuestionOutcome> {
        Box::pin(async move {
            let (answer, answered) = oneshot::channel();
            let _ = self.0.send(Prompt::Question(question.clone(), answer));
            answered.await.unwrap_or(QuestionOutcome::Nobody)
        })
    }
}
