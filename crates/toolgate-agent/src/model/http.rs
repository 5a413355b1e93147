//! HTTP access to a model: one request, a stream of events as the response, and errors in words that help.

use std::sync::Once;
use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Response, StatusCode, Url};
use serde_json::Value;

use toolgate_redact::REDACTED;

use super::sse::{ServerEvent, SseParser};
use super::{ApiKey, ModelError, ModelErrorKind};

/// The connect timeout.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);
/// How long a server may send nothing, if nobody says otherwise. Models that reason in silence need a longer one.
const DEFAULT_IDLE_TIMEOUT: Duration = Duration::from_secs(90);
/// How much of an error's text is kept.
const SHOWN_CHARS: usize = 400;
/// The largest response, in bytes.
const MAX_RESPONSE_BYTES: u64 = 32 * 1024 * 1024;

/// The address of a model's API, and the key for it.
#[derive(Debug, Clone)]
pub struct ModelEndpoint {
    client: Client,
    base: Url,
    headers: HeaderMap,
    /// Kept to remove it from error messages of the server.
    key: Option<ApiKey>,
    /// How long to wait for the next byte.
    idle_timeout: Duration,
}

impl ModelEndpoint {
    /// The API below this URL. The key is sent in the header of this name, after the given prefix.
    pub fn new(base: &str, key: Option<(&'static str, &str, &ApiKey)>) -> Result<Self, ModelError> {
        let refused = |message: String| ModelError::new(ModelErrorKind::Refused, message);
        let base = Url::parse(&format!("{}/", base.trim_end_matches('/')))
            .map_err(|fault| refused(format!("`{base}` is not a URL: {fault}.")))?;
        if key.is_some() && !is_encrypted_or_local(&base) {
            let host = base.host_str().unwrap_or_default();
            return Err(refused(format!("The key would be sent to {host} unencrypted. Use an https URL.")));
        }
        let mut headers = HeaderMap::new();
        if let Some((header, word, key)) = key {
            let mut value = HeaderValue::from_str(&format!("{word}{}", key.reveal()))
                .map_err(|_| refused("The key contains characters that an HTTP header can't.".into()))?;
            value.set_sensitive(true);
            headers.insert(HeaderName::from_static(header), value);
        }
        let client = client().map_err(|fault| refused(format!("The HTTP client can't be created: {fault}.")))?;
        let key = key.map(|(_, _, key)| key.clone());
        Ok(Self { client, base, headers, key, idle_timeout: DEFAULT_IDLE_TIMEOUT })
    }

    /// Adds a header to every request.
    #[must_use]
    pub fn with_header(mut self, name: &'static str, value: &'static str) -> Self {
        self.headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        self
    }

    /// Sets how long to wait for the next byte.
    #[must_use]
    pub fn with_idle_timeout(mut self, idle_timeout: Duration) -> Self {
        self.idle_timeout = idle_timeout;
        self
    }

    /// Sends a request, and returns the events of the response.
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

    /// The address for messages: without the path, and without a user and a password that the URL may contain.
    fn address(&self) -> String {
        let port = self.base.port().map(|port| format!(":{port}")).unwrap_or_default();
        format!("{}://{}{port}", self.base.scheme(), self.base.host_str().unwrap_or_default())
    }

    async fn with_timeout<T>(&self, sent: impl Future<Output = reqwest::Result<T>>) -> Result<T, ModelError> {
        match tokio::time::timeout(self.idle_timeout, sent).await {
            Ok(outcome) => outcome.map_err(|fault| transport_error(&fault, &self.address())),
            Err(_) => Err(too_slow(self.idle_timeout, &self.address())),
        }
    }

    /// An error for a response status, with the provider's message.
    async fn failed(&self, status: StatusCode, response: Response) -> ModelError {
        let retry_after = retry_after(response.headers());
        let body = self.with_timeout(response.text()).await.unwrap_or_default();
        let (code, said) = explanation(&without_key(self.key.as_ref(), body));
        // Waiting doesn't restore a quota that is used up.
        let quota_is_used_up = code == "insufficient_quota";
        let kind = match status.as_u16() {
            400 | 413 | 422 | 500 if is_about_length(&code, &said) => ModelErrorKind::TooLong,
            429 | 503 | 529 if !quota_is_used_up => ModelErrorKind::Busy,
            408 | 409 | 425 => ModelErrorKind::Broken,
            500.. => ModelErrorKind::Broken,
            _ => ModelErrorKind::Refused,
        };
        let advice = match status.as_u16() {
            401 | 403 => " Check the key.",
            404 => " Check the model's name and the URL.",
            _ => "",
        };
        let message = format!("The model's server at {} answered {status}: {said}{advice}", self.address());
        ModelError { kind, message: message.trim_end().to_owned(), retry_after }
    }
}

fn client() -> reqwest::Result<Client> {
    static PROVIDER: Once = Once::new();
    // Another crate may have installed a provider; then that one is used.
    PROVIDER.call_once(|| drop(rustls::crypto::ring::default_provider().install_default()));
    let roots = webpki_root_certs::TLS_SERVER_ROOT_CERTS;
    let roots: reqwest::Result<Vec<_>> = roots.iter().map(|der| reqwest::Certificate::from_der(der)).collect();
    Client::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        // A key must not follow a redirect to another host.
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .tls_certs_merge(roots?)
        .user_agent(concat!("toolgate/", env!("CARGO_PKG_VERSION")))
        .build()
}

/// Whether the URL is encrypted or on this machine.
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

/// The code and the message in an error body, as OpenAI, Anthropic and compatible servers write it.
fn explanation(body: &str) -> (String, String) {
    let json: Value = serde_json::from_str(body).unwrap_or_default();
    let error = json.get("error").unwrap_or(&json);
    let text = |field: &str| error.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let said = [text("message"), error.as_str().unwrap_or_default().to_owned(), body.to_owned()];
    let said = said.into_iter().find(|said| !said.trim().is_empty()).unwrap_or_default();
    (text("code"), said.trim().chars().take(SHOWN_CHARS).collect())
}

/// Whether a provider refuses a request because it is longer than the context window, in the words of OpenAI,
/// Anthropic, Google, vLLM, llama.cpp and Ollama.
pub(super) fn is_about_length(code: &str, said: &str) -> bool {
    const WORDS: [&str; 9] = [
        "context length",
        "context window",
        "context size",
        "prompt is too long",
        "input is too long",
        "too many tokens",
        "maximum number of tokens",
        "input token count",
        "reduce the length",
    ];
    let said = said.to_lowercase();
    ["context_length_exceeded", "exceed_context_size_error"].contains(&code)
        || WORDS.iter().any(|words| said.contains(words))
}

fn transport_error(fault: &reqwest::Error, address: &str) -> ModelError {
    let causes = std::iter::successors(std::error::Error::source(fault), |cause| cause.source());
    let why = causes.last().map_or_else(|| "the connection failed".to_owned(), ToString::to_string);
    let (kind, what) = match (fault.is_timeout(), fault.is_connect()) {
        (true, _) => (ModelErrorKind::Slow, "The model's server took too long to connect"),
        (false, true) => (ModelErrorKind::Unreachable, "The model's server can't be reached"),
        (false, false) => (ModelErrorKind::Cut, "The connection to the model broke"),
    };
    ModelError::new(kind, format!("{what} ({address}): {why}."))
}

fn too_slow(idle_timeout: Duration, address: &str) -> ModelError {
    let why = format!(
        "The model's server at {address} sent nothing for {idle_timeout:?}. Raise model.timeout_seconds if it needs longer."
    );
    ModelError::new(ModelErrorKind::Slow, why)
}

/// The events of a response, as they arrive.
pub(super) struct EventStream {
    response: Response,
    parser: SseParser,
    ready: std::collections::VecDeque<ServerEvent>,
    idle_timeout: Duration,
    address: String,
    key: Option<ApiKey>,
    taken: u64,
    /// A response that isn't streamed, as far as it has arrived.
    complete: Option<Vec<u8>>,
}

impl EventStream {
    fn of(response: Response, wire: &ModelEndpoint) -> Self {
        let (idle_timeout, key) = (wire.idle_timeout, wire.key.clone());
        let kind = response.headers().get("content-type").and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        // Not every server streams when asked to.
        let complete = kind.starts_with("application/json").then(Vec::new);
        Self {
            response,
            parser: SseParser::default(),
            ready: Default::default(),
            idle_timeout,
            address: wire.address(),
            key,
            taken: 0,
            complete,
        }
    }

    /// The next event; none when the stream has ended.
    pub(super) async fn next(&mut self) -> Result<Option<ServerEvent>, ModelError> {
        loop {
            if let Some(mut event) = self.ready.pop_front() {
                event.data = without_key(self.key.as_ref(), event.data);
                return Ok(Some(event));
            }
            let chunk = tokio::time::timeout(self.idle_timeout, self.response.chunk()).await;
            let chunk = chunk.map_err(|_| too_slow(self.idle_timeout, &self.address))?;
            let chunk = chunk.map_err(|fault| transport_error(&fault, &self.address))?;
            let Some(chunk) = chunk else { return Ok(self.complete()) };
            self.taken += chunk.len() as u64;
            let endless = || ModelError::new(ModelErrorKind::Refused, "The model's answer exceeds the size limit.");
            if self.taken > MAX_RESPONSE_BYTES {
                return Err(endless());
            }
            match &mut self.complete {
                Some(complete) => complete.extend_from_slice(&chunk),
                None => self.ready.extend(self.parser.push(&chunk).map_err(|_| endless())?),
            }
        }
    }

    /// A response that wasn't streamed, once it is complete.
    fn complete(&mut self) -> Option<ServerEvent> {
        let bytes = self.complete.take()?;
        let data = without_key(self.key.as_ref(), String::from_utf8_lossy(&bytes).into_owned());
        Some(ServerEvent { name: String::new(), data, is_complete: true })
    }
}

/// A server's message without our key, which some servers repeat.
fn without_key(key: Option<&ApiKey>, said: String) -> String {
    match key.and_then(ApiKey::telling).filter(|key| said.contains(key)) {
        Some(key) => said.replace(key, REDACTED),
        None => said,
    }
}

/// The error for a stream that ended before the answer did.
pub(super) fn cut_off() -> ModelError {
    ModelError::new(ModelErrorKind::Cut, "The model's answer broke off.")
}

/// An event's data as JSON events: one, or those equivalent to a response that wasn't streamed. An error inside the
/// stream becomes an error.
pub(super) fn understood(event: &ServerEvent, as_stream: fn(Value) -> Vec<Value>) -> Result<Vec<Value>, ModelError> {
    let json: Value = serde_json::from_str(&event.data).map_err(|fault| {
        let start: String = event.data.chars().take(80).collect();
        ModelError::new(
            ModelErrorKind::Garbled,
            format!("The model's server sent text that isn't JSON ({fault}): {start}"),
        )
    })?;
    if let Some(error) = json.get("error").filter(|error| !error.is_null()) {
        let (code, said) = explanation(&event.data);
        let kind = match error.get("type").and_then(Value::as_str) {
            _ if is_about_length(&code, &said) => ModelErrorKind::TooLong,
            Some("invalid_request_error" | "authentication_error" | "permission_error" | "not_found_error") => {
                ModelErrorKind::Refused
            }
            Some("rate_limit_error" | "overloaded_error") => ModelErrorKind::Busy,
            _ => ModelErrorKind::Broken,
        };
        return Err(ModelError::new(kind, format!("The model's server says: {said}")));
    }
    Ok(if event.is_complete { as_stream(json) } else { vec![json] })
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
    fn our_key_is_replaced_in_what_a_server_says_unless_it_is_an_ordinary_word() {
        let said =
            |key: &str| without_key(ApiKey::new(key).as_ref(), r#"{"name":"call","at":"sk-very-secret"}"#.into());
        assert_eq!(said("sk-very-secret"), r#"{"name":"call","at":"***REDACTED***"}"#);
        assert_eq!(said("a"), r#"{"name":"call","at":"sk-very-secret"}"#);
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
