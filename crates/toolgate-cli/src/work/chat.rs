//! One Telegram chat as a commander: answers go there, approvals are asked there with buttons, and so are the agent's own
//! questions.

use std::sync::Arc;

use anyhow::Result;
use toolgate_contract::{Answered, BoxFuture, Choice, Inquiry, Scope};
use toolgate_runtime::{Answer as Approval, ApprovalRequest, Approver, Respondent};

use super::commander::{Answer, Commander};
use super::telegram::{MOST_CHARS, Telegram};

/// One chat as a commander.
#[derive(Clone)]
pub(crate) struct Chat {
    telegram: Arc<Telegram>,
    chat: i64,
}

impl Chat {
    pub(crate) fn new(telegram: Arc<Telegram>, chat: i64) -> Self {
        Self { telegram, chat }
    }
}

impl Commander for Chat {
    fn deliver<'a>(&'a self, answer: &'a Answer<'a>) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let Answer { task, outcome, answer } = answer;
            let mut text = format!("{} {outcome}\n\n{answer}", task.id);
            // Long answers come in pieces.
            while !text.is_empty() {
                let at = text.char_indices().nth(MOST_CHARS).map_or(text.len(), |(at, _)| at);
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

    fn respondent(&self) -> Arc<dyn Respondent> {
        Arc::new(self.clone())
    }
}

impl Approver for Chat {
    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Approval> {
        Box::pin(async move {
            // "Always" writes to the user's configuration; that is for whoever sits at the machine.
            let offers: Vec<_> = request.scopes.iter().filter(|offer| offer.scope != Scope::Always).collect();
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

impl Respondent for Chat {
    fn answer<'a>(&'a self, _call: &'a str, inquiry: &'a Inquiry) -> BoxFuture<'a, Option<Answered>> {
        Box::pin(async move {
            if inquiry.choices.is_empty() {
                let (answer, by) = self.telegram.hear_back(self.chat, &inquiry.question).await?;
                return Some(Answered { answer, choice: None, by });
            }
            let labels: Vec<String> = inquiry.choices.iter().map(|choice: &Choice| choice.label.clone()).collect();
            let (index, by) = self.telegram.choose(self.chat, &inquiry.question, &labels).await?;
            let choice = inquiry.choices.get(index)?;
            Some(Answered { answer: choice.label.clone(), choice: Some(index), by })
        })
    }
}
