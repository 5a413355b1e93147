//! Takes secrets out of text, JSON and streams before they reach a model, a log, an artifact or a screen. Pure.
//!
//! `rules.toml` describes what secrets look like; the values of the program's own secrets are given to
//! [`Redactor::new`]. A stream gives the same result however its text is cut into chunks.

mod base64_text;
mod colour_escapes;
mod environment;
#[cfg(test)]
mod examples;
mod json;
mod key_body;
mod keywords;
mod rules;
mod scan;
mod secret_names;
mod stream;
mod value_check;

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, LazyLock};

pub use environment::secrets_of_environment;
pub use stream::StreamRedactor;

use colour_escapes::{ColourEscapes, first_escape};
use environment::SHORTEST;
use scan::{Scanner, TextView};

/// What stands in a secret's place.
pub const REDACTED: &str = "***REDACTED***";

/// Finds secrets and replaces them. Cheap to clone.
#[derive(Clone)]
pub struct Redactor {
    /// Built with the first text: hundreds of rules would slow the start of a program that may never need them.
    scanner: Arc<LazyLock<Scanner, Box<dyn FnOnce() -> Scanner + Send>>>,
    /// The names of the known secrets, never their values.
    names: Arc<[String]>,
}

impl Redactor {
    /// A redactor that knows these secrets, given by name and value, besides the rules. Values that are too short to
    /// tell from other text are left out.
    pub fn new(environment_secrets: impl IntoIterator<Item = (String, String)>) -> Self {
        let usable = |value: &str| value.len() >= SHORTEST && !REDACTED.contains(value);
        let (names, values): (Vec<String>, Vec<String>) =
            environment_secrets.into_iter().filter(|(_, value)| usable(value)).unzip();
        let mut forms: Vec<String> = values.iter().flat_map(|value| forms(value)).collect();
        forms.sort_unstable();
        forms.dedup();
        let scanner: Box<dyn FnOnce() -> Scanner + Send> =
            Box::new(move || Scanner::new(forms.iter().map(String::as_str)));
        Self { scanner: Arc::new(LazyLock::new(scanner)), names: names.into() }
    }

    /// The text without secrets; borrowed if it had none.
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.bytes(text.as_bytes()) {
            Cow::Borrowed(_) => Cow::Borrowed(text),
            Cow::Owned(bytes) => match String::from_utf8(bytes) {
                Ok(text) => Cow::Owned(text),
                Err(fault) => Cow::Owned(String::from_utf8_lossy(fault.as_bytes()).into_owned()),
            },
        }
    }

    /// The bytes without secrets; borrowed if they had none.
    pub fn bytes<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        let secrets = self.secrets(bytes);
        if secrets.is_empty() {
            return Cow::Borrowed(bytes);
        }
        let mut output = Vec::with_capacity(bytes.len());
        let mut written = 0;
        for secret in secrets {
            output.extend_from_slice(&bytes[written..secret.start]);
            output.extend_from_slice(REDACTED.as_bytes());
            written = secret.end;
        }
        output.extend_from_slice(&bytes[written..]);
        Cow::Owned(output)
    }

    /// Whether there is a secret in these bytes, or, if they are nothing but base64, in what they encode. For data that
    /// a replacement would damage.
    pub fn finds_secret(&self, bytes: &[u8]) -> bool {
        !self.secrets(bytes).is_empty() || self.encodes_secret(bytes)
    }

    /// Whether this is base64 of something with a secret in it.
    fn encodes_secret(&self, text: &[u8]) -> bool {
        base64_text::decoded(text).is_some_and(|decoded| !self.secrets(&decoded).is_empty())
    }

    /// Redacts every text in a JSON value, and replaces texts whose field names a secret, or that are base64 of
    /// something with a secret in it. Returns whether it changed anything.
    pub fn json(&self, value: &mut serde_json::Value) -> bool {
        json::redact(self, value)
    }

    /// Redacts text that comes in chunks.
    pub fn stream(&self) -> StreamRedactor {
        StreamRedactor::new(self.clone())
    }

    /// Where the secrets are: in order, with those that touch united.
    fn secrets(&self, bytes: &[u8]) -> Vec<Range<usize>> {
        let mut spans = self.spans(bytes);
        if first_escape(bytes).is_some() {
            let (mut escapes, mut shown) = (ColourEscapes::default(), Vec::with_capacity(bytes.len()));
            escapes.push(bytes, &mut shown);
            escapes.finish(&mut shown);
            let original = |span: Range<usize>| escapes.original(span.start)..escapes.original_end(span.end);
            spans.extend(self.spans(&shown).into_iter().map(original));
        }
        spans.sort_by_key(|span| span.start);
        let mut secrets: Vec<Range<usize>> = Vec::new();
        for span in spans {
            match secrets.last_mut() {
                Some(last) if span.start <= last.end => last.end = last.end.max(span.end),
                _ => secrets.push(span),
            }
        }
        secrets
    }

    /// Each secret in the text, as it is.
    fn spans(&self, bytes: &[u8]) -> Vec<Range<usize>> {
        let view = TextView { bytes, base: 0, complete: true };
        let spans = self.scanner.hits(bytes, 0).flat_map(|hit| self.scanner.spans(hit, view));
        let settled = spans.map(|mut span| {
            span.grow(view);
            span.start..span.end
        });
        settled.collect()
    }
}

impl Default for Redactor {
    /// The rules alone.
    fn default() -> Self {
        Self::new([])
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redactor").field("knows", &self.names).finish_non_exhaustive()
    }
}

impl fmt::Debug for StreamRedactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream").field("redacted", &self.redacted()).finish_non_exhaustive()
    }
}

/// A known secret as it may be written: as it is, inside a JSON string, inside a URL.
fn forms(secret: &str) -> [String; 3] {
    let quoted = serde_json::Value::from(secret).to_string();
    let percent = secret.bytes().map(|byte| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    });
    [secret.to_owned(), quoted[1..quoted.len() - 1].to_owned(), percent.collect()]
}
