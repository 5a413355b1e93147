//! A Telegram bot, using the Bot API. Messages from the chats on its list become tasks; it sends messages, and asks
//! with buttons. Messages from any other chat are ignored.

use parking_lot::Mutex;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use toolgate_contract::{Clock, SystemClock};
use toolgate_journal::{Inbox, NewTask, ReplyAddress};

use super::json_client::JsonClient;

/// Long-poll timeout, in seconds.
const POLL_SECONDS: u64 = 25;
/// Delay after a failure.
const RETRY_DELAY: Duration = Duration::from_secs(3);
/// Maximum length of a message, in characters.
pub(super) const MAX_CHARS: usize = 4000;

/// A bot.
pub(crate) struct TelegramBot {
    web: JsonClient,
    /// Contains the token, so it is never shown.
    base: String,
    /// The chats on its list.
    chats: BTreeSet<i64>,
    /// Buttons that wait to be pressed, and questions that wait for text.
    open: Mutex<PendingPrompts>,
}

#[derive(Default)]
struct PendingPrompts {
    last: u64,
    buttons: HashMap<String, (i64, oneshot::Sender<(usize, String)>)>,
    words: HashMap<i64, oneshot::Sender<(String, String)>>,
}

#[derive(Deserialize)]
struct TelegramUpdate {
    update_id: i64,
    message: Option<TelegramMessage>,
    callback_query: Option<CallbackQuery>,
}

#[derive(Deserialize)]
struct TelegramMessage {
    chat: ChatId,
    from: Option<TelegramUser>,
    text: Option<String>,
}

#[derive(Deserialize)]
struct ChatId {
    id: i64,
}

#[derive(Deserialize)]
struct TelegramUser {
    id: i64,
    username: Option<String>,
}

/// A button press.
#[derive(Deserialize)]
struct CallbackQuery {
    id: String,
    from: TelegramUser,
    message: Option<TelegramMessage>,
    data: Option<String>,
}

impl TelegramUser {
    fn name(&self) -> String {
        let name = self.username.clone().unwrap_or_else(|| self.id.to_string());
        format!("{name} (Telegram)")
    }
}

impl TelegramBot {
    /// A bot with this token, at this server, for these chats.
    pub(crate) fn new(url: &str, token: &str, chats: impl IntoIterator<Item = i64>) -> Result<Self> {
        let base = format!("{}/bot{token}", url.trim_end_matches('/'));
        Ok(Self { web: JsonClient::new()?, base, chats: chats.into_iter().collect(), open: Mutex::default() })
    }

    /// Polls forever. A message becomes a task before the update is acknowledged, so none gets lost; and its task id
    /// depends only on the update, so none is added twice.
    pub(crate) async fn listen(&self, inbox: Arc<dyn Inbox>) {
        let mut heard = 0;
        loop {
            match self.updates(heard).await {
                Ok(updates) => {
                    for update in updates {
                        let number = update.update_id;
                        if self.take(update, &inbox).await.is_err() {
                            // The inbox can't be used at the moment. The server keeps the update.
                            tokio::time::sleep(RETRY_DELAY).await;
                            break;
                        }
                        heard = heard.max(number + 1);
                    }
                }
                Err(_) => tokio::time::sleep(RETRY_DELAY).await,
            }
        }
    }

    async fn updates(&self, from: i64) -> Result<Vec<TelegramUpdate>> {
        let body = json!({ "offset": from, "timeout": POLL_SECONDS, "allowed_updates": ["message", "callback_query"] });
        let answer = self.ask("getUpdates", &body).await?;
        // An update that can't be parsed is skipped, so that it doesn't block the others.
        let updates = answer["result"].as_array().context("no list of updates")?;
        Ok(updates.iter().filter_map(|update| serde_json::from_value(update.clone()).ok()).collect())
    }

    async fn take(&self, update: TelegramUpdate, inbox: &Arc<dyn Inbox>) -> Result<()> {
        match update {
            TelegramUpdate { update_id, message: Some(message), .. } if self.chats.contains(&message.chat.id) => {
                self.receive(update_id, message, inbox).await
            }
            TelegramUpdate { callback_query: Some(pressed), .. } => {
                self.press(pressed).await;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    async fn receive(&self, number: i64, message: TelegramMessage, inbox: &Arc<dyn Inbox>) -> Result<()> {
        let TelegramMessage { chat: ChatId { id: chat }, from, text: Some(text) } = message else { return Ok(()) };
        let waiting = self.open().words.remove(&chat);
        let by = from.map_or_else(|| "Telegram".to_owned(), |author| author.name());
        let text = match waiting.map(|waiting| waiting.send((text.clone(), by))) {
            Some(Ok(())) => return Ok(()),
            // The question was withdrawn, so this is not an answer.
            Some(Err(_)) | None => text,
        };
        let (id, reply_to) = (format!("telegram_{number}"), ReplyAddress::TelegramChat(chat));
        let (task, inbox) = (NewTask { id: id.clone(), task: text, reply_to }, Arc::clone(inbox));
        tokio::task::spawn_blocking(move || inbox.add(&task)).await??;
        // The task is in the inbox, whether or not this message arrives.
        let _ = self.say(chat, &format!("Queued as {id}."), None).await;
        Ok(())
    }

    async fn press(&self, pressed: CallbackQuery) {
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
        let notice = if waiting.is_some() { "Noted." } else { "This question is no longer open." };
        if let (Some((_, waiting)), Some(index)) = (waiting, index) {
            let _ = waiting.send((index, pressed.from.name()));
        }
        let _ = self.ask("answerCallbackQuery", &json!({ "callback_query_id": pressed.id, "text": notice })).await;
    }

    /// Asks with buttons, and waits for one to be pressed: its index, and who pressed it.
    pub(super) async fn choose(&self, chat: i64, text: &str, labels: &[String]) -> Option<(usize, String)> {
        let (sender, pressed) = oneshot::channel();
        let token = {
            let mut open = self.open();
            open.last += 1;
            // Unguessable, so that a button of an earlier worker has no effect here.
            let token = format!("{}-{}", open.last, SystemClock.id().simple());
            open.buttons.insert(token.clone(), (chat, sender));
            token
        };
        let buttons: Vec<Value> = labels
            .iter()
            .enumerate()
            .map(|(index, label)| json!([{ "text": label, "callback_data": format!("{token}:{index}") }]))
            .collect();
        let _withdrawn = ButtonsGuard { telegram: self, token };
        self.say(chat, text, Some(json!({ "inline_keyboard": buttons }))).await.ok()?;
        pressed.await.ok()
    }

    pub(super) async fn say(&self, chat: i64, text: &str, buttons: Option<Value>) -> Result<()> {
        let text: String = text.chars().take(MAX_CHARS).collect();
        let mut body = json!({ "chat_id": chat, "text": if text.is_empty() { "(nothing)".into() } else { text } });
        if let Some(buttons) = buttons {
            body["reply_markup"] = buttons;
        }
        self.ask("sendMessage", &body).await.map(drop)
    }

    /// Sends a message, and waits for the chat's next message: its text, and its sender.
    pub(super) async fn ask_for_text(&self, chat: i64, text: &str) -> Option<(String, String)> {
        let (sender, words) = oneshot::channel();
        self.open().words.insert(chat, sender);
        self.say(chat, text, None).await.ok()?;
        words.await.ok()
    }

    async fn ask(&self, method: &str, body: &Value) -> Result<Value> {
        self.web.post(&format!("{}/{method}", self.base), body).await
    }

    fn open(&self) -> parking_lot::MutexGuard<'_, PendingPrompts> {
        self.open.lock()
    }
}

/// Removes buttons when their answer is no longer needed.
struct ButtonsGuard<'a> {
    telegram: &'a TelegramBot,
    token: String,
}

impl Drop for ButtonsGuard<'_> {
    fn drop(&mut self) {
        self.telegram.open().buttons.remove(&self.token);
    }
}
