//! `fetch`: makes an HTTP request. The host is judged like every other effect, and so is every redirect target. HTML
//! pages come back as readable text, non-text bodies as artifacts.

mod content;
pub(crate) mod html;

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize};
use toolgate_contract::{
    Effect, Hands, Permission, ResultForm, Risk, SideEffect, Spec, Tool, ToolError, WebRequest, WebResponse,
};
use url::Url;

use self::content::{BodyFormat, FetchedBody};

/// Makes an HTTP request.
pub struct FetchTool;

const DEFAULT_SECONDS: u64 = 30;
const MAX_SECONDS: u64 = 300;

/// The request.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// With http or https.
    url: FetchUrl,
    /// The HTTP method.
    #[serde(default)]
    method: HttpMethod,
    /// By name.
    #[serde(default)]
    headers: BTreeMap<String, String>,
    /// The body.
    #[serde(default)]
    body: Option<String>,
    /// From connecting to the last byte.
    #[serde(default = "default_seconds")]
    #[schemars(range(min = 1, max = 300))]
    timeout_seconds: u64,
    /// Of pages: `text` is readable, `markdown` keeps headings and links, `raw` changes nothing.
    #[serde(default)]
    format: BodyFormat,
}

fn default_seconds() -> u64 {
    DEFAULT_SECONDS
}

/// An HTTP method.
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum HttpMethod {
    #[default]
    Get,
    Head,
    Post,
    Put,
    Patch,
    Delete,
    Options,
}

impl HttpMethod {
    fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
            Self::Options => "OPTIONS",
        }
    }
}

/// An http or https URL with a host and without credentials. It is parsed once, so the URL that is judged is the URL
/// that is fetched.
#[derive(Debug)]
pub(crate) struct FetchUrl {
    url: Url,
    host: String,
    port: u16,
}

impl FetchUrl {
    fn read(text: &str) -> Result<Self, String> {
        let url =
            Url::parse(text).map_err(|fault| format!("{fault}; write it in full, such as https://example.com/"))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(format!("`{}` can't be fetched; only http and https can", url.scheme()));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err("it contains a user name or password; send those in a header".into());
        }
        let host = url.host_str().map(|host| host.trim_matches(['[', ']']).to_owned());
        match (host, url.port_or_known_default()) {
            (Some(host), Some(port)) => Ok(Self { host, port, url }),
            _ => Err("it has no host".into()),
        }
    }
}

impl<'de> Deserialize<'de> for FetchUrl {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Self::read(&String::deserialize(from)?).map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for FetchUrl {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Address".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "minLength": 8 })
    }
}

/// The response.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// The URL after redirects.
    url: String,
    /// The HTTP status code.
    status: u16,
    /// The server's content type.
    #[serde(skip_serializing_if = "Option::is_none")]
    content_type: Option<String>,
    /// The page's title.
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    /// The text; empty if there is none.
    content: String,
    /// The stored bytes of a non-text body.
    #[serde(skip_serializing_if = "Option::is_none")]
    artifact: Option<String>,
    /// Bytes received.
    bytes: u64,
    /// Whether this is the complete body; false if it exceeds the size limit.
    complete: bool,
    /// URLs that redirected here.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    redirects: Vec<String>,
    /// The response headers.
    headers: BTreeMap<String, String>,
}

impl Tool for FetchTool {
    type Args = Args;
    type Output = Output;

    const SPEC: Spec = Spec {
        name: "fetch",
        version: "1.0.0",
        description: "Get a page, a file or an API's answer over HTTP. Each host has to be allowed, also those of \
                      redirects.",
        risk: Risk::High,
        permissions: &[Permission::NetConnect],
        side_effects: &[SideEffect::UsesNetwork],
        parallel: true,
    };

    const RESULT_FORM: ResultForm = ResultForm::Content;

    fn effects(&self, args: &Args) -> Vec<Effect> {
        vec![Effect::Connect { host: args.url.host.clone(), port: args.url.port }]
    }

    async fn run(&self, args: Args, hands: &dyn Hands) -> Result<Output, ToolError> {
        let seconds = args.timeout_seconds.clamp(1, MAX_SECONDS);
        let request = WebRequest {
            url: args.url.url.to_string(),
            method: args.method.as_str().into(),
            headers: args.headers.into_iter().collect(),
            body: args.body,
            timeout: Duration::from_secs(seconds),
        };
        let response = hands.fetch(request, &args.url.host, args.url.port).await?;
        into_output(response, args.format, hands)
    }
}

fn into_output(response: WebResponse, format: BodyFormat, hands: &dyn Hands) -> Result<Output, ToolError> {
    let headers: BTreeMap<String, String> = response.headers.into_iter().collect();
    let content_type = headers.get("content-type").cloned();
    let bytes = response.body.len() as u64;
    let (title, content, artifact) = match content::read(response.body, content_type.as_deref(), format) {
        FetchedBody::Text { title, text } => (title, text, None),
        FetchedBody::Binary { bytes, mime } => (None, String::new(), Some(hands.keep(&bytes, &mime)?.id)),
    };
    Ok(Output {
        url: response.url,
        status: response.status,
        content_type,
        title,
        content,
        artifact,
        bytes,
        complete: response.complete,
        redirects: response.redirects,
        headers,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_once_and_plainly() {
        for (text, expected) in [
            ("https://Example.com/a?b", Some(("example.com", 443))),
            ("http://example.com:8080", Some(("example.com", 8080))),
            ("http://[::1]/", Some(("::1", 80))),
            ("http://127.1/", Some(("127.0.0.1", 80))),
            ("http://0x7f000001/", Some(("127.0.0.1", 80))),
            ("http://bücher.example/", Some(("xn--bcher-kva.example", 80))),
            ("http://evil\u{3002}com/", Some(("evil.com", 80))),
            ("file:///etc/passwd", None),
            ("ftp://example.com/", None),
            ("https://user:pass@example.com/", None),
            ("https://user@example.com/", None),
            ("example.com", None),
            ("http://a\0b.example/", None),
            ("https://", None),
        ] {
            let read = FetchUrl::read(text);
            let found = read.as_ref().ok().map(|address| (address.host.as_str(), address.port));
            assert_eq!(found, expected, "{text}");
        }
    }
}
