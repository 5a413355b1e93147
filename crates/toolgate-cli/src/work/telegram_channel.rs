//! A Telegram chat as a reply channel: answers go there, and approvals and the agent's questions are asked there.

use std::sync::Arc;

use anyhow::Result;
use toolgate_contract::{ApprovalScope, BoxFuture, Choice, Question, QuestionAnswer, QuestionOutcome};
use toolgate_runtime::{ApprovalAnswer as Approval, ApprovalRequest, Approver, QuestionAnswerer};

use super::reply_channel::{ReplyChannel, TaskAnswer};
use super::telegram::{MAX_CHARS, TelegramBot};

/// A Telegram chat as a reply channel.
#[derive(Clone)]
pub(crate) struct TelegramChannel {
    telegram: Arc<TelegramBot>,
    chat: i64,
}

impl TelegramChannel {
    pub(crate) fn new(telegram: Arc<TelegramBot>, chat: i64) -> Self {
        Self { telegram, chat }
    }
}

impl ReplyChannel for TelegramChannel {
    fn deliver<'a>(&'a self, answer: &'a TaskAnswer<'a>) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let TaskAnswer { task, outcome, answer } = answer;
            let mut text = format!("{} {outcome}\n\n{answer}", task.id);
            // Long answers are sent in pieces.
            while !text.is_empty() {
                let at = text.char_indices().nth(MAX_CHARS).map_or(text.len(), |(at, _)| at);
                let rest = text.split_off(at);
                self.telegram.say(self.chat, &text, None).await?;
                text = rest;
            }
            Ok(())
        })
    }

    fn approver(&self) -> Arc<dyn Approver> {
        Arc::new(self.clone())
    }

    fn answerer(&self) -> Arc<dyn QuestionAnswerer> {
        Arc::new(self.clone())
    }
}

impl Approver for TelegramChannel {
    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Approval> {
        Box::pin(async move {
            // "Always" writes to the user's configuration; that is only offered at the machine itself.
            let offers: Vec<_> = request.scopes.iter().filter(|offer| offer.scope != ApprovalScope::Always).collect();
            let labels: Vec<String> = offers
                .iter()
                .map(|offer| format!("Approve: {}", offer.grants))
                .chain(["Deny".to_owned()])
                .map(|label| label.chars().take(60).collect())
                .collect();
            let effects: Vec<String> = request.effects.iter().map(ToString::to_string).collect();
            let preview = request.preview.as_deref().unwrap_or_default();
            let text = format!("{} wants to: {}\n{}\n\n{preview}", request.tool, effects.join(", "), request.reason);
            match self.telegram.choose(self.chat, &text, &labels).await {
                Some((index, by)) => match offers.get(index) {
                    Some(offer) => Approval::Granted { scope: offer.scope, by },
                    None => Approval::Denied { by, reason: None },
                },
                None => Approval::Nobody,
            }
        })
    }
}

impl QuestionAnswerer for TelegramChannel {
    fn answer<'a>(&'a self, _call: &'a str, question: &'a Question) -> BoxFuture<'a, QuestionOutcome> {
        Box::pin(
            async move { self.answer_of(question).await.map_or(QuestionOutcome::Nobody, QuestionOutcome::Answered) },
        )
    }
}

impl TelegramChannel {
    async fn answer_of(&self, question: &Question) -> Option<QuestionAnswer> {
        if question.choices.is_empty() {
            let (answer, by) = self.telegram.ask_for_text(self.chat, &question.question).await?;
            return Some(QuestionAnswer { answer, choice: None, by });
        }
        let labels: Vec<String> = question.choices.iter().map(|choice: &Choice| choice.label.clone()).collect();
        let (index, by) = self.telegram.choose(self.chat, &question.question, &labels).await?;
        let choice = question.choices.get(index)?;
        Some(QuestionAnswer { answer: choice.label.clone(), choice: Some(index), by })
    }
}
