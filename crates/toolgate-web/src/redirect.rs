//! The next request after a redirect. Each redirect is judged like a first request. Headers of the caller were meant
//! for the original host and aren't sent to another.

use reqwest::Method;
use reqwest::header::{ACCEPT, ACCEPT_LANGUAGE, HeaderMap, USER_AGENT};
use toolgate_contract::{ErrorCode, ToolError};

use crate::hop::Hop;

/// The request that a redirect leads to.
pub(crate) fn next_hop(from: &Hop, status: u16, to: &str) -> Result<Hop, ToolError> {
    let refuse = |why: &str| {
        let message = format!("The server redirects to `{}`, {why}", to.chars().take(300).collect::<String>());
        Err(ToolError::new(ErrorCode::NetworkDenied, message))
    };
    let Ok(url) = from.url.join(to) else { return refuse("which is not a valid URL.") };
    match (from.url.scheme(), url.scheme()) {
        (_, "https") | ("http", "http") => {}
        ("https", "http") => {
            return refuse(
                "which isn't encrypted, while the original URL was. Fetch that URL directly if this is intended.",
            );
        }
        _ => return refuse("which is neither http nor https."),
    }
    if !url.username().is_empty() || url.password().is_some() {
        return refuse("which contains a user name and a password.");
    }
    let becomes_get = status == 303 || matches!(status, 301 | 302) && from.method == Method::POST;
    let (method, body) = match becomes_get && from.method != Method::HEAD {
        true => (Method::GET, None),
        false => (from.method.clone(), from.body.clone()),
    };
    let is_same_origin = from.url.origin() == url.origin();
    let headers = if is_same_origin { from.headers.clone() } else { cross_origin_headers(&from.headers) };
    Ok(Hop { url, method, headers, body })
}

/// The headers that carry no private information.
fn cross_origin_headers(headers: &HeaderMap) -> HeaderMap {
    let kept = [ACCEPT, ACCEPT_LANGUAGE, USER_AGENT];
    kept.into_iter().filter_map(|name| headers.get(&name).cloned().map(|value| (name, value))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use toolgate_contract::WebRequest;

    fn hop(url: &str, method: &str) -> Hop {
        let headers = [("Authorization", "Bearer x"), ("Accept", "text/html"), ("X-Odd", "1")];
        Hop::first(WebRequest {
            url: url.into(),
            method: method.into(),
            headers: headers.map(|(name, value)| (name.into(), value.into())).to_vec(),
            body: Some("secret".into()),
            timeout: Duration::from_secs(1),
        })
        .unwrap()
    }

    #[test]
    fn where_redirects_lead() {
        for (from, to, expected) in [
            ("https://a.example/x", "/y", Some("https://a.example/y")),
            ("http://a.example/", "https://a.example/", Some("https://a.example/")),
            ("http://a.example/", "//b.example/", Some("http://b.example/")),
            ("https://a.example/", "http://a.example/", None),
            ("https://a.example/", "file:///etc/passwd", None),
            ("https://a.example/", "gopher://a.example/", None),
            ("https://a.example/", "https://user:pass@a.example/", None),
            ("https://a.example/", "https://[::1", None),
        ] {
            let next = next_hop(&hop(from, "GET"), 302, to).map(|hop| hop.url.to_string());
            assert_eq!(next.as_deref().ok(), expected, "{from} {to}");
        }
    }

    #[test]
    fn what_goes_along() {
        let same = next_hop(&hop("https://a.example/", "POST"), 307, "/y").unwrap();
        assert_eq!((same.method.as_str(), same.body.as_deref(), same.headers.len()), ("POST", Some("secret"), 4));
        let other = next_hop(&hop("https://a.example/", "POST"), 302, "https://b.example/").unwrap();
        assert_eq!((other.method.as_str(), other.body), ("GET", None));
        assert!(!other.headers.contains_key("authorization") && !other.headers.contains_key("x-odd"));
        assert!(other.headers.contains_key("accept") && other.headers.contains_key("user-agent"));
        let port = next_hop(&hop("https://a.example/", "GET"), 302, "https://a.example:8443/").unwrap();
        assert!(!port.headers.contains_key("authorization"), "another port is another place");
    }
}
