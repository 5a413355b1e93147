//! A stand-in for Telegram, over real HTTP: it speaks as much of the Bot API as a bot needs, and takes posted answers.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

/// A server on loopback.
pub(crate) struct Bot {
    pub(crate) url: String,
    shared: Arc<(Mutex<Shared>, Condvar)>,
}

#[derive(Default)]
struct Shared {
    updates: Vec<Value>,
    /// What was sent, with the path it was sent to.
    heard: Vec<(String, Value)>,
    refusals: u32,
    /// Posts that are heard and never answered.
    holds: u32,
}

impl Bot {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let shared = Arc::<(Mutex<Shared>, Condvar)>::default();
        let server = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let server = Arc::clone(&server);
                std::thread::spawn(move || serve(stream, &server));
            }
        });
        Self { url, shared }
    }

    /// Somebody writes to the bot.
    pub(crate) fn message(&mut self, chat: i64, text: &str) {
        self.update(json!({ "message": { "message_id": 1, "date": 0, "chat": { "id": chat, "type": "private" },
            "from": { "id": chat, "is_bot": false, "first_name": "A", "username": format!("user{chat}") }, "text": text } }));
    }

    /// Somebody presses a button.
    pub(crate) fn press(&mut self, chat: i64, data: &str) {
        self.update(json!({ "callback_query": { "id": "1", "data": data, "chat_instance": "1",
            "from": { "id": chat, "is_bot": false, "first_name": "A" },
            "message": { "message_id": 2, "date": 0, "chat": { "id": chat, "type": "private" } } } }));
    }

    fn update(&mut self, mut update: Value) {
        let (lock, changed) = &*self.shared;
        let mut shared = lock.lock().unwrap();
        update["update_id"] = json!(100 + shared.updates.len());
        shared.updates.push(update);
        changed.notify_all();
    }

    /// The next request is answered with an error.
    pub(crate) fn refuse_next(&mut self) {
        self.shared.0.lock().unwrap().refusals += 1;
    }

    /// The next post is heard, and its sender waits for an answer that never comes.
    pub(crate) fn hold_next(&mut self) {
        self.shared.0.lock().unwrap().holds += 1;
    }

    /// How often something was posted to a path.
    pub(crate) fn count(&self, wanted: &str) -> usize {
        self.shared.0.lock().unwrap().heard.iter().filter(|(path, _)| path == wanted).count()
    }

    /// Waits for a message of the bot that is the one in question.
    pub(crate) fn sent(&mut self, is_it: impl Fn(&Value) -> bool) -> Value {
        self.heard(|path, body| path.ends_with("/sendMessage") && is_it(body))
    }

    /// Waits for what is posted to a path.
    pub(crate) fn posted(&mut self, wanted: &str) -> Value {
        self.heard(|path, _| path == wanted)
    }

    fn heard(&self, is_it: impl Fn(&str, &Value) -> bool) -> Value {
        let (lock, changed) = &*self.shared;
        let mut shared = lock.lock().unwrap();
        loop {
            if let Some((_, body)) = shared.heard.iter().find(|(path, body)| is_it(path, body)) {
                return body.clone();
            }
            shared = changed.wait(shared).unwrap();
        }
    }
}

fn serve(stream: TcpStream, shared: &(Mutex<Shared>, Condvar)) {
    let mut input = BufReader::new(stream.try_clone().unwrap());
    let mut output = stream;
    while let Some((path, body)) = request(&mut input) {
        let (status, answer) = answer(&path, body, shared);
        let text = answer.to_string();
        let head =
            format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n", text.len());
        if output.write_all(format!("{head}{text}").as_bytes()).is_err() {
            return;
        }
    }
}

fn request(input: &mut impl BufRead) -> Option<(String, Value)> {
    let mut line = String::new();
    input.read_line(&mut line).ok().filter(|read| *read > 0)?;
    let path = line.split(' ').nth(1)?.to_owned();
    let mut length = 0;
    loop {
        let mut header = String::new();
        input.read_line(&mut header).ok()?;
        match header.trim().to_ascii_lowercase().split_once(": ") {
            Some(("content-length", value)) => length = value.parse().ok()?,
            Some(_) => {}
            None => break,
        }
    }
    let mut body = vec![0; length];
    input.read_exact(&mut body).ok()?;
    Some((path, serde_json::from_slice(&body).unwrap_or_default()))
}

fn answer(path: &str, body: Value, (lock, changed): &(Mutex<Shared>, Condvar)) -> (&'static str, Value) {
    let mut shared = lock.lock().unwrap();
    if shared.refusals > 0 {
        shared.refusals -= 1;
        return ("503 Service Unavailable", json!({ "ok": false }));
    }
    if path.ends_with("/getUpdates") {
        let offset = body["offset"].as_i64().unwrap_or(0);
        let new = |shared: &Shared| -> Vec<Value> {
            shared.updates.iter().filter(|update| update["update_id"].as_i64() >= Some(offset)).cloned().collect()
        };
        // As the real one: it waits until there is something to tell, for a while.
        let (shared, _) =
            changed.wait_timeout_while(shared, Duration::from_secs(2), |shared| new(shared).is_empty()).unwrap();
        return ("200 OK", json!({ "ok": true, "result": new(&shared) }));
    }
    shared.heard.push((path.to_owned(), body));
    changed.notify_all();
    if shared.holds > 0 {
        shared.holds -= 1;
        drop(shared);
        loop {
            std::thread::park();
        }
    }
    ("200 OK", json!({ "ok": true, "result": { "message_id": 7 } }))
}
