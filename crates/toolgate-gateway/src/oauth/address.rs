//! Addresses that a server names. Each has to be one that a token may travel to, and is fetched without following a redirect.

use std::time::Duration;

use serde_json::Value;
use toolgate_contract::{EgressPolicy, ErrorCode, ToolError, Web, WebRequest, counted};
use toolgate_dialects::strict_json;
use url::{Host, Url, form_urlencoded};

use crate::connection::read_body;
use crate::foreign_text::excerpt;

/// Bytes of a document.
const LARGEST: usize = 256 * 1024;

/// How long a request may take.
const TIMEOUT: Duration = Duration::from_secs(30);

/// An address that may be used: encrypted or on this machine, without a user, a password or a fragment.
pub(super) fn checked(what: &str, address: &str) -> Result<Url, ToolError> {
    let refused = |why: &str| {
        let message = format!("The {what} `{}` can't be used: {why}.", excerpt(address, 200));
        Err(ToolError::new(ErrorCode::NetworkDenied, message).with_hint("Ask whoever runs the server."))
    };
    let Ok(url) = Url::parse(address) else { return refused("it isn't a URL") };
    let is_local = match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => return refused("it has no host"),
    };
    match url.scheme() {
        "https" => {}
        "http" if is_local => {}
        _ => return refused("it isn't encrypted (https)"),
    }
    if !url.username().is_empty() || url.password().is_some() || url.fragment().is_some() {
        return refused("it has a user, a password or a fragment");
    }
    Ok(url)
}

/// What is fetched through, for one login or renewal.
pub(super) struct OauthClient<'a> {
    pub(super) web: &'a dyn Web,
    pub(super) egress: &'a dyn EgressPolicy,
}

impl OauthClient<'_> {
    /// Sends a request, and gives status and JSON; an empty object for what isn't JSON.
    pub(super) async fn json(&self, url: &Url, body: Option<RequestBody<'_>>) -> Result<(u16, Value), ToolError> {
        let mut headers = vec![("Accept".to_owned(), "application/json".to_owned())];
        let body = body.map(|body| {
            let (kind, text) = body.encoded();
            headers.push(("Content-Type".to_owned(), kind.to_owned()));
            text
        });
        let method = if body.is_some() { "POST" } else { "GET" };
        let request = WebRequest { url: url.to_string(), method: method.to_owned(), headers, body, timeout: TIMEOUT };
        let asked = async {
            let mut response = self.web.stream(request, self.egress).await?;
            let (bytes, _) = read_body(response.body.as_mut(), LARGEST).await?;
            Ok((response.status, strict_json::parse(&bytes).unwrap_or_else(|_| Value::Object(serde_json::Map::new()))))
        };
        tokio::time::timeout(TIMEOUT, asked).await.unwrap_or_else(|_| {
            let time = counted(TIMEOUT.as_secs(), "second");
            Err(ToolError::new(ErrorCode::Timeout, format!("`{}` took longer than {time}.", shown_host(url))))
        })
    }
}

/// What a request has as its body.
pub(super) enum RequestBody<'a> {
    Form(&'a [(&'a str, &'a str)]),
    Json(&'a Value),
}

impl RequestBody<'_> {
    fn encoded(&self) -> (&'static str, String) {
        match self {
            Self::Form(fields) => (
                "application/x-www-form-urlencoded",
                form_urlencoded::Serializer::new(String::new()).extend_pairs(fields.iter()).finish(),
            ),
            Self::Json(value) => ("application/json", value.to_string()),
        }
    }
}

/// The host of an address, for messages.
pub(super) fn shown_host(url: &Url) -> String {
    url.host_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_travel_encrypted_or_on_this_machine() {
        for (address, is_usable) in [
            ("https://auth.example.com/token", true),
            ("http://127.0.0.1:8080/token", true),
            ("http://localhost/token", true),
            ("http://[::1]:1/token", true),
            ("http://auth.example.com/token", false),
            ("http://localhost.evil.example/token", false),
            ("https://user:pw@auth.example.com/", false),
            ("https://auth.example.com/#x", false),
            ("file:///etc/passwd", false),
            ("javascript:alert(1)", false),
            ("a:$(calc.exe)", false),
        ] {
            assert_eq!(checked("address", address).is_ok(), is_usable, "{address}");
        }
    }
}
