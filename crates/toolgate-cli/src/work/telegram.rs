//! Telegram as a commander, by its Bot API: messages from chats on a list become tasks, answers go back to their chat,
//! and where policy asks, the chat gets buttons. What comes from any other chat is as if it had never been sent.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use toolgate_contract::{Answered, BoxFuture, Choice, Clock, Inquiry, Scope, SystemClock};
use toolgate_journal::NewTask;
use toolgate_runtime::{Answer as Approval, ApprovalRequest, Approver, Respondent};

use super::commander::{Answer, Commander};
use super::web::Web;

/// How long the server may wait for something to tell, in seconds.
const POLL_SECONDS: u64 = 25;
/// How long to wait after a failure.
const REST: Duration = Duration::from_secs(3);
/// The longest message, in characters.
const MOST_CHARS: usize = 4000;

/// A bot.
pub(crate) struct Telegram {
    web: Web,
    /// Holds the token, so it is never shown.
    base: String,
    /// The chats that it listens to.
    chats: BTreeSet<i64>,
    /// Buttons that wait to be pressed, and questions that wait for words.
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    last: u64,
    buttons: HashMap<String, (i64, oneshot::Sender<(usize, String)>)>,
    words: HashMap<i64, oneshot::Sender<(String, String)>>,
}

#[derive(Deserialize)]
struct Update {
    update_id: i64,
    message: Option<Message>,
    callback_query: Option<Pressed>,
}

#[derive(Deserialize)]
struct Message {
    chat: ChatId,
    from: Option<From>,
    text: Option<String>,
}

#[derive(Deserialize)]
struct ChatId {
    id: i64,
}

#[derive(Deserialize)]
struct From {
    id: i64,
    username: Option<String>,
}

/// A button that somebody pressed.
#[derive(Deserialize)]
struct Pressed {
    id: String,
    from: From,
    message: Option<Message>,
    data: Option<String>,
}

impl From {
    fn name(&self) -> String {
        let name = self.username.clone().unwrap_or_else(|| self.id.to_string());
        format!("{name} (Telegram)")
    }
}

impl Telegram {
    /// A bot with this token, at this server, for these chats.
    pub(crate) fn new(url: &str, token: &str, chats: impl IntoIterator<Item = i64>) -> Result<Self> {
        let base = format!("{}/bot{token}", url.trim_end_matches('/'));
        Ok(Self { web: Web::new()?, base, chats: chats.into_iter().collect(), open: Mutex::default() })
    }

    /// Listens for ever. A message becomes a task before the server is told that it was heard, so none gets lost; and it
    /// has the same id whenever it comes, so none comes twice.
    pub(crate) async fn listen(&self, add: impl Fn(NewTask) -> Result<()>) {
        let mut heard = 0;
        loop {
            match self.updates(heard).await {
                Ok(updates) => {
                    for update in updates {
                        let number = update.update_id;
                        if self.take(update, &add).await.is_err() {
                            break;
                        }
                        heard = heard.max(number + 1);
                    }
                }
                Err(_) => tokio::time::sleep(REST).await,
            }
        }
    }

    async fn updates(&self, from: i64) -> Result<Vec<Update>> {
        let body = json!({ "offset": from, "timeout": POLL_SECONDS, "allowed_updates": ["message", "callback_query"] });
        let answer = self.ask("getUpdates", &body).await?;
        // One that can't be read is no message; it must not stop the others.
        let updates = answer["result"].as_array().context("no list of updates")?;
        Ok(updates.iter().filter_map(|update| serde_json::from_value(update.clone()).ok()).collect())
    }

    async fn take(&self, update: Update, add: &impl Fn(NewTask) -> Result<()>) -> Result<()> {
        match update {
            Update { update_id, message: Some(message), .. } if self.chats.contains(&message.chat.id) => {
                self.hear(update_id, message, add).await
            }
            Update { callback_query: Some(pressed), .. } => {
                self.press(pressed).await;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    async fn hear(&self, number: i64, message: Message, add: &impl Fn(NewTask) -> Result<()>) -> Result<()> {
        let Message { chat: ChatId { id: chat }, from, text: Some(text) } = message else { return Ok(()) };
        let waiting = self.open().words.remove(&chat);
        if let Some(waiting) = waiting {
            let by = from.map_or_else(|| "Telegram".to_owned(), |from| from.name());
            // Whoever asked may be gone; then the words were for nobody.
            let _ = waiting.send((text, by));
            return Ok(());
        }
        let (id, reply_to) = (format!("telegram_{number}"), format!("telegram:{chat}"));
        add(NewTask { id: id.clone(), task: text, reply_to, created: SystemClock.now() })?;
        // It waits in the inbox, whether or not this arrives.
        let _ = self.say(chat, &format!("Taken up as {id}."), None).await;
        Ok(())
    }

    async fn press(&self, pressed: Pressed) {
        let chat = pressed.message.as_ref().map(|message| message.chat.id);
        let (token, index) = match pressed.data.as_deref().and_then(|data| data.split_once(':')) {
            Some((token, index)) => (token.to_owned(), index.parse::<usize>().ok()),
            None => return,
        };
        let waiting = {
            let mut open = self.open();
            match (open.buttons.get(&token), index) {
                (Some((of, _)), Some(_)) if Some(*of) == chat && self.chats.contains(of) => open.buttons.remove(&token),
                _ => None,
            }
        };
        let told = if waiting.is_some() { "Noted." } else { "This is no longer asked." };
        if let (Some((_, waiting)), Some(index)) = (waiting, index) {
            let _ = waiting.send((index, pressed.from.name()));
        }
        let _ = self.ask("answerCallbackQuery", &json!({ "callback_query_id": pressed.id, "text": told })).await;
    }

    /// Asks with buttons, and waits for one to be pressed: its number, and who pressed it.
    async fn choose(&self, chat: i64, text: &str, labels: &[String]) -> Option<(usize, String)> {
        let (sender, pressed) = oneshot::channel();
        let token = {
            let mut open = self.open();
            open.last += 1;
            // Unguessable, so that a button of an earlier worker presses nothing here.
            let token = format!("{}-{}", open.last, SystemClock.id().simple());
            open.buttons.insert(token.clone(), (chat, sender));
            token
        };
        let buttons: Vec<Value> = labels
            .iter()
            .enumerate()
            .map(|(index, label)| json!([{ "text": label, "callback_data": format!("{token}:{index}") }]))
            .collect();
        let _withdrawn = Withdraw { telegram: self, token };
        self.say(chat, text, Some(json!({ "inline_keyboard": buttons }))).await.ok()?;
        pressed.await.ok()
    }

    async fn say(&self, chat: i64, text: &str, buttons: Option<Value>) -> Result<()> {
        let text: String = text.chars().take(MOST_CHARS).collect();
        let mut body = json!({ "chat_id": chat, "text": if text.is_empty() { "(nothing)".into() } else { text } });
        if let Some(buttons) = buttons {
            body["reply_markup"] = buttons;
        }
        self.ask("sendMessage", &body).await.map(drop)
    }

    async fn ask(&self, method: &str, body: &Value) -> Result<Value> {
        self.web.post(&format!("{}/{method}", self.base), body).await
    }

    fn open(&self) -> std::sync::MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes buttons back when nobody waits for them any more.
struct Withdraw<'a> {
    telegram: &'a Telegram,
    token: String,
}

impl Drop for Withdraw<'_> {
    fn drop(&mut self) {
        self.telegram.open().buttons.remove(&self.token);
    }
}

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
    fn answer<'a>(&'a self, inquiry: &'a Inquiry) -> BoxFuture<'a, Option<Answered>> {
        Box::pin(async move {
            if inquiry.choices.is_empty() {
                let (sender, words) = oneshot::channel();
                self.telegram.open().words.insert(self.chat, sender);
                self.telegram.say(self.chat, &inquiry.question, None).await.ok()?;
                let (answer, by) = words.await.ok()?;
                return Some(Answered { answer, choice: None, by });
            }
            let labels: Vec<String> = inquiry.choices.iter().map(|choice: &Choice| choice.label.clone()).collect();
            let (index, by) = self.telegram.choose(self.chat, &inquiry.question, &labels).await?;
            let choice = inquiry.choices.get(index)?;
            Some(Answered { answer: choice.label.clone(), choice: Some(index), by })
        })
    }
}
