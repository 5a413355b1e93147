//! Approvals and questions of a running agent, answered in place: below the conversation, in the input line.
//!
//! A prompt comes at any moment, also while the person is typing. What they type then is meant for something else, so a
//! prompt takes the keys only after a pause: until then they go on with their text, which comes back after the answer.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
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
    async fn withdrawn(&mut self) {
        match self {
            Self::Approval(_, answer) | Self::Reason(answer) => answer.closed().await,
            Self::Question(_, answer) => answer.closed().await,
        }
    }
}

/// How long nothing is typed before a new prompt takes the keys.
const PAUSE: Duration = Duration::from_secs(1);

/// What became of the first prompt by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PromptChange {
    /// No answer is needed any more.
    Withdrawn,
    /// Nothing was typed for a while, so it may take the keys.
    MayOpen,
}

/// The prompts that wait for the person, and whether the first of them takes the keys.
#[derive(Default)]
pub(super) struct PromptQueue {
    prompts: VecDeque<Prompt>,
    /// What the person was typing when the first prompt took the keys; until then `None`.
    draft: Option<String>,
    /// When the first prompt was shown, or a key was pressed since then.
    quiet_since: Option<Instant>,
}

impl PromptQueue {
    pub(super) fn first(&self) -> Option<&Prompt> {
        self.prompts.front()
    }

    /// The first prompt, if it takes the keys.
    pub(super) fn open(&self) -> Option<&Prompt> {
        self.prompts.front().filter(|_| self.draft.is_some())
    }

    /// Adds a prompt, which was shown just now.
    pub(super) fn push(&mut self, prompt: Prompt) {
        if self.prompts.is_empty() {
            self.quiet_since = Some(Instant::now());
        }
        self.prompts.push_back(prompt);
    }

    /// The person typed something else than an answer.
    pub(super) fn typed(&mut self) {
        self.quiet_since = self.quiet_since.map(|_| Instant::now());
    }

    /// Gives the keys to the first prompt, and keeps what the person was typing.
    pub(super) fn begin(&mut self, draft: String) {
        self.draft = Some(draft);
    }

    /// Takes the first prompt to answer it. It can be put back, or another one in its place.
    pub(super) fn take(&mut self) -> Option<Prompt> {
        self.prompts.pop_front()
    }

    /// Puts a prompt in front, which takes the keys at once.
    pub(super) fn put_back(&mut self, prompt: Prompt) {
        self.prompts.push_front(prompt);
    }

    /// The first prompt is done. What the person was typing before it; the next one waits for a pause of its own.
    pub(super) fn done(&mut self) -> Option<String> {
        self.quiet_since = (!self.prompts.is_empty()).then(Instant::now);
        self.draft.take()
    }

    /// Waits until the first prompt needs no answer any more, or may take the keys.
    pub(super) async fn changed(&mut self) -> PromptChange {
        let opens = self.quiet_since.filter(|_| self.draft.is_none()).map(|since| since + PAUSE);
        let pause = async {
            match opens {
                Some(time) => tokio::time::sleep_until(time).await,
                None => std::future::pending().await,
            }
        };
        let Some(prompt) = self.prompts.front_mut() else { return std::future::pending().await };
        tokio::select! {
            biased;
            () = prompt.withdrawn() => PromptChange::Withdrawn,
            () = pause => PromptChange::MayOpen,
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

#[cfg(test)]
mod tests {
    use super::*;

    fn reason() -> (Prompt, oneshot::Receiver<ApprovalAnswer>) {
        let (answer, answered) = oneshot::channel();
        (Prompt::Reason(answer), answered)
    }

    #[tokio::test(start_paused = true)]
    async fn a_prompt_takes_the_keys_after_a_pause_and_gives_the_text_back() {
        let mut queue = PromptQueue::default();
        let (first, _first) = reason();
        let (second, _second) = reason();
        queue.push(first);
        queue.push(second);
        for _ in 0..3 {
            let too_early = tokio::time::timeout(PAUSE / 2, queue.changed()).await;
            assert!(too_early.is_err() && queue.open().is_none(), "the person is typing");
            queue.typed();
        }
        assert_eq!(queue.changed().await, PromptChange::MayOpen);
        queue.begin("half a mess".to_owned());
        assert!(queue.open().is_some() && queue.take().is_some());
        assert_eq!(queue.done().as_deref(), Some("half a mess"));
        assert!(queue.open().is_none() && queue.first().is_some(), "the next one waits, too");
        let too_early = tokio::time::timeout(PAUSE / 2, queue.changed()).await;
        assert!(too_early.is_err());
        assert_eq!(queue.changed().await, PromptChange::MayOpen);
    }
}
