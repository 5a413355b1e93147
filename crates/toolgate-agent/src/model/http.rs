//! The way to a model over HTTP: one request, a stream of events back, and what went wrong in words that help.

use std::sync::Once;
use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Response, StatusCode, Url};
use serde_json::Value;

use toolgate_redact::REDACTED;

use super::sse::{ServerEvent, SseParser};
use super::{ApiKey, ModelError, ModelErrorKind};

/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(20);
/// How much of an error's text is kept.
const SHOWN_CHARS: usize = 400;
/// Bytes of one answer that are taken at most.
const MOST_ANSWER: u64 = 32 * 1024 * 1024;

/// Where a model is, and how we show that we may ask.
#[derive(Debug, Clone)]
pub struct ModelEndpoint {
    client: Client,
    base: Url,
    headers: HeaderMap,
    /// Kept to take it out of what a server says about it.
    key: Option<ApiKey>,
    /// How long nothing may come.
    patience: Duration,
}

impl ModelEndpoint {
    /// A way to the API beneath this address. The key goes into the header of this name, after the word before it.
    pub fn new(base: &str, key: Option<(&'static str, &str, &ApiKey)>) -> Result<Self, ModelError> {
        let refused = |message: String| ModelError::new(ModelErrorKind::Refused, message);
        let base = Url::parse(&format!("{}/", base.trim_end_matches('/')))
            .map_err(|fault| refused(format!("`{base}` is not an address: {fault}.")))?;
        if key.is_some() && !is_encrypted_or_local(&base) {
            let host = base.host_str().unwrap_or_default();
            return Err(refused(format!("The key would travel to {host} unencrypted. Use an address with https.")));
        }
        let mut headers = HeaderMap::new();
        if let Some((header, word, key)) = key {
            let mut value = HeaderValue::from_str(&format!("{word}{}", key.reveal()))
                .map_err(|_| refused("The key holds characters that no key has.".into()))?;
            value.set_sensitive(true);
            headers.insert(HeaderName::from_static(header), value);
        }
        let client = client().map_err(|fault| refused(format!("No HTTP client can be made: {fault}.")))?;
        let key = key.map(|(_, _, key)| key.clone());
        Ok(Self { client, base, headers, key, patience: Duration::from_secs(180) })
    }

    /// The same way, with a header.
    #[must_use]
    pub fn with_header(mut self, name: &'static str, value: &'static str) -> Self {
        self.headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        self
    }

    /// The same way, for those who wait so long for the next byte.
    #[must_use]
    pub fn with_idle_timeout(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Sends a request, and gives the events of the answer.
    pub(super) async fn post(&self, path: &str, body: &Value) -> Result<EventStream, ModelError> {
        let url = self.base.join(path).map_err(|fault| ModelError::new(ModelErrorKind::Refused, fault.to_string()))?;
        let request = self
            .client
            .post(url)
            .headers(self.headers.clone())
            .header("content-type", "application/json")
            .header("accept", "text/event-stream")
            .body(body.to_string());
        let response = self.with_timeout(request.send()).await?;
        match response.status() {
            status if status.is_success() => Ok(EventStream::of(response, self)),
            status => Err(self.failed(status, response).await),
        }
    }

    async fn with_timeout<T>(&self, sent: impl Future<Output = reqwest::Result<T>>) -> Result<T, ModelError> {
        match tokio::time::timeout(self.patience, sent).await {
            Ok(outcome) => outcome.map_err(|fault| transport_error(&fault)),
            Err(_) => Err(too_slow(self.patience)),
        }
    }

    /// What an error's status means, and what the provider says about it.
    async fn failed(&self, status: StatusCode, response: Response) -> ModelError {
        let retry_after = retry_after(response.headers());
        let body = self.with_timeout(response.text()).await.unwrap_or_default();
        let (code, said) = explanation(&without(self.key.as_ref(), body));
        // Money that is used up doesn't come back by waiting.
        let is_spent = code == "insufficient_quota";
        let kind = match status.as_u16() {
            429 | 503 | 529 if !is_spent => ModelErrorKind::Busy,
            408 | 409 | 425 => ModelErrorKind::Broken,
            500.. => ModelErrorKind::Broken,
            _ => ModelErrorKind::Refused,
        };
        let advice = match status.as_u16() {
            401 | 403 => " Check the key.",
            404 => " Check the model's name and the address.",
            _ => "",
        };
        let message = format!("The model's server answered {status}: {said}{advice}");
        ModelError { kind, message: message.trim_end().to_owned(), retry_after }
    }
}

fn client() -> reqwest::Result<Client> {
    static PROVIDER: Once = Once::new();
    // Somebody else may have installed one; then that one is used.
    PROVIDER.call_once(|| drop(rustls::crypto::ring::default_provider().install_default()));
    let roots = webpki_root_certs::TLS_SERVER_ROOT_CERTS;
    let roots: reqwest::Result<Vec<_>> = roots.iter().map(|der| reqwest::Certificate::from_der(der)).collect();
    Client::builder()
        .connect_timeout(CONNECT)
        // A key must not follow a redirection to another place.
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .tls_certs_merge(roots?)
        .user_agent(concat!("toolgate/", env!("CARGO_PKG_VERSION")))
        .build()
}

/// Encrypted, or not leaving this machine.
fn is_encrypted_or_local(url: &Url) -> bool {
    let is_here = match url.host_str() {
        Some("localhost" | "[::1]") => true,
        Some(host) => host.parse::<std::net::Ipv4Addr>().is_ok_and(|address| address.is_loopback()),
        None => false,
    };
    url.scheme() == "https" || is_here
}

/// `Retry-After` as seconds or as a date, or the finer `retry-after-ms`.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    if let Some(milliseconds) = text("retry-after-ms").and_then(|text| text.parse().ok()) {
        return Some(Duration::from_millis(milliseconds));
    }
    let text = text("retry-after")?;
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let date = jiff::fmt::rfc2822::parse(text).ok()?.timestamp();
    Duration::try_from(date.duration_since(jiff::Timestamp::now())).ok()
}

/// The code and the words inside an error's body, as OpenAI, Anthropic and their followers write it.
fn explanation(body: &str) -> (String, String) {
    let json: Value = serde_json::from_str(body).unwrap_or_default();
    let error = json.get("error").unwrap_or(&json);
    let text = |field: &str| error.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let said = [text("message"), error.as_str().unwrap_or_default().to_owned(), body.to_owned()];
    let said = said.into_iter().find(|said| !said.trim().is_empty()).unwrap_or_default();
    (text("code"), said.trim().chars().take(SHOWN_CHARS).collect())
}

fn transport_error(fault: &reqwest::Error) -> ModelError {
    // The address may hold a password, so it isn't repeated.
    let causes = std::iter::successors(std::error::Error::source(fault), |cause| cause.source());
    let why = causes.last().map_or_else(|| "the connection failed".to_owned(), ToString::to_string);
    let (kind, what) = match (fault.is_timeout(), fault.is_connect()) {
        (true, _) => (ModelErrorKind::Slow, "The model's server took too long"),
        (false, true) => (ModelErrorKind::Unreachable, "The model's server can't be reached"),
        (false, false) => (ModelErrorKind::Cut, "The connection to the model broke"),
    };
    ModelError::new(kind, format!("{what}: {why}."))
}

fn too_slow(patience: Duration) -> ModelError {
    ModelError::new(ModelErrorKind::Slow, format!("Nothing came from the model for {patience:?}."))
}

/// The events of an answer, as they come.
pub(super) struct EventStream {
    response: Response,
    parser: SseParser,
    ready: std::collections::VecDeque<ServerEvent>,
    patience: Duration,
    key: Option<ApiKey>,
    taken: u64,
    /// An answer that isn't streamed, as far as it has come.
    whole: Option<Vec<u8>>,
}

impl EventStream {
    fn of(response: Response, wire: &ModelEndpoint) -> Self {
        let (patience, key) = (wire.patience, wire.key.clone());
        let kind = response.headers().get("content-type").and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        // Not every server streams because it was asked to.
        let whole = kind.starts_with("application/json").then(Vec::new);
        Self { response, parser: SseParser::default(), ready: Default::default(), patience, key, taken: 0, whole }
    }

    /// The next event; none when the stream has ended.
    pub(super) async fn next(&mut self) -> Result<Option<ServerEvent>, ModelError> {
        loop {
            if let Some(mut event) = self.ready.pop_front() {
                event.data = without(self.key.as_ref(), event.data);
                return Ok(Some(event));
            }
            let chunk = tokio::time::timeout(self.patience, self.response.chunk()).await;
            let chunk = chunk.map_err(|_| too_slow(self.patience))?.map_err(|fault| transport_error(&fault))?;
            let Some(chunk) = chunk else { return Ok(self.whole()) };
            self.taken += chunk.len() as u64;
            let endless = || ModelError::new(ModelErrorKind::Refused, "The model's answer has no end.");
            if self.taken > MOST_ANSWER {
                return Err(endless());
            }
            match &mut self.whole {
                Some(whole) => whole.extend_from_slice(&chunk),
                None => self.ready.extend(self.parser.push(&chunk).map_err(|_| endless())?),
            }
        }
    }

    /// An answer that wasn't streamed, once all of it is there.
    fn whole(&mut self) -> Option<ServerEvent> {
        let bytes = self.whole.take()?;
        let data = without(self.key.as_ref(), String::from_utf8_lossy(&bytes).into_owned());
        Some(ServerEvent { name: String::new(), data, is_whole: true })
    }
}

/// A server's words without our key, which some of them repeat.
fn without(key: Option<&ApiKey>, said: String) -> String {
    match key.map(ApiKey::reveal).filter(|key| said.contains(key)) {
        Some(key) => said.replace(key, REDACTED),
        None => said,
    }
}

/// The stream ended, and the answer hadn't.
pub(super) fn cut_off() -> ModelError {
    ModelError::new(ModelErrorKind::Cut, "The model's answer broke off.")
}

/// An event's data as the JSON of a stream's events: one, or those that a whole answer comes to. An error inside the
/// stream is one of ours too.
pub(super) fn understood(event: &ServerEvent, as_stream: fn(Value) -> Vec<Value>) -> Result<Vec<Value>, ModelError> {
    let json: Value = serde_json::from_str(&event.data).map_err(|fault| {
        let start: String = event.data.chars().take(80).collect();
        ModelError::new(ModelErrorKind::Garbled, format!("The model sent what isn't JSON ({fault}): {start}"))
    })?;
    if let Some(error) = json.get("error").filter(|error| !error.is_null()) {
        let kind = match error.get("type").and_then(Value::as_str) {
            Some("invalid_request_error" | "authentication_error" | "permission_error" | "not_found_error") => {
                ModelErrorKind::Refused
            }
            Some("rate_limit_error" | "overloaded_error") => ModelErrorKind::Busy,
            _ => ModelErrorKind::Broken,
        };
        return Err(ModelError::new(kind, format!("The model's server says: {}", explanation(&event.data).1)));
    }
    Ok(if event.is_whole { as_stream(json) } else { vec![json] })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_travels_encrypted_or_not_at_all() {
        let key = ApiKey::new("sk-very-secret").unwrap();
        let wire = |base: &str| ModelEndpoint::new(base, Some(("authorization", "Bearer ", &key)));
        for base in ["https://api.example.com/v1", "http://127.0.0.1:9", "http://localhost:9/v1", "http://[::1]:9"] {
            let wire = wire(base).unwrap();
            assert!(!format!("{wire:?}").contains("very-secret"), "a header that is marked isn't printed");
        }
        for base in ["http://api.example.com/v1", "http://127.0.0.1.example.com", "http://10.0.0.1"] {
            assert!(wire(base).unwrap_err().message.contains("unencrypted"), "{base}");
        }
        assert!(ModelEndpoint::new("http://10.0.0.1", None).is_ok(), "without a key there is nothing to lose");
    }

    #[test]
    fn how_long_to_wait_is_read_in_every_form() {
        let read = |name: &'static str, value: &str| {
            retry_after(&[(HeaderName::from_static(name), HeaderValue::from_str(value).unwrap())].into_iter().collect())
        };
        assert_eq!(read("retry-after", "7"), Some(Duration::from_secs(7)));
        assert_eq!(read("retry-after-ms", "250"), Some(Duration::from_millis(250)));
        assert_eq!(read("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT"), None, "that is over");
        assert!(read("retry-after", "Wed, 21 Oct 2099 07:28:00 GMT").unwrap() > Duration::from_secs(1 << 30));
        assert_eq!(read("retry-after", "soon"), None);
    }

    #[test]
    fn an_error_inside_the_stream_is_told_apart() {
        let event = |data: &str| ServerEvent { data: data.into(), ..ServerEvent::default() };
        let kind = |data: &str| understood(&event(data), |_| Vec::new()).unwrap_err().kind;
        assert_eq!(
            kind(r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#),
            ModelErrorKind::Busy
        );
        assert_eq!(kind(r#"{"error":{"message":"boom"}}"#), ModelErrorKind::Broken);
        assert_eq!(kind(r#"{"error":{"type":"invalid_request_error","message":"no"}}"#), ModelErrorKind::Refused);
        assert_eq!(kind("<html>"), ModelErrorKind::Garbled);
    }
}
