//! Classifies a response body: text in some encoding, an HTML page to make readable, or binary data.

use encoding_rs::Encoding as Known;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::fetch::html;
use crate::support::encoding::{Encoding, is_binary};

/// The form in which text is returned.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum BodyFormat {
    /// Readable text: pages without tags.
    #[default]
    Text,
    /// With headings, lists and links.
    Markdown,
    /// Unchanged.
    Raw,
}

/// A classified response body.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FetchedBody {
    /// Readable text.
    Text { title: Option<String>, text: String },
    /// Anything else.
    Binary { bytes: Vec<u8>, mime: String },
}

/// Only this many bytes at the start are searched for a `<meta charset>`.
const META_CHARSET_BYTES: usize = 2048;

pub(super) fn read(bytes: Vec<u8>, content_type: Option<&str>, format: BodyFormat) -> FetchedBody {
    let (mime, charset) = split(content_type.unwrap_or_default());
    let encoding = declared_encoding(&bytes, charset.as_deref());
    if !is_text(&mime, &bytes, encoding) {
        let mime = if mime.is_empty() { "application/octet-stream".to_owned() } else { mime };
        return FetchedBody::Binary { bytes, mime };
    }
    let text = encoding.unwrap_or_else(|| Encoding::of(&bytes)).decode_all(without_bom(bytes)).text;
    let is_page = matches!(mime.as_str(), "text/html" | "application/xhtml+xml") || mime.is_empty() && is_page(&text);
    if !is_page || format == BodyFormat::Raw {
        return FetchedBody::Text { title: None, text };
    }
    let page = html::read(&text, format == BodyFormat::Markdown);
    FetchedBody::Text { title: page.title, text: page.text }
}

/// The media type and the charset in a `Content-Type` header.
fn split(content_type: &str) -> (String, Option<String>) {
    let mut parts = content_type.split(';');
    let mime = parts.next().unwrap_or_default().trim().to_ascii_lowercase();
    let charset = parts.find_map(|part| {
        let (name, value) = part.split_once('=')?;
        let is_charset = name.trim().eq_ignore_ascii_case("charset");
        is_charset.then(|| value.trim().trim_matches(['"', '\'']).to_owned())
    });
    (mime, charset)
}

/// The declared encoding, from a byte order mark, the server's header, or the page itself.
fn declared_encoding(bytes: &[u8], charset: Option<&str>) -> Option<Encoding> {
    let by_label = |label: &str| Known::for_label(label.as_bytes()).map(Encoding::from);
    let from_bom = || Encoding::from_bom(bytes).map(|(encoding, _)| encoding);
    from_bom().or_else(|| charset.and_then(by_label)).or_else(|| meta_charset(bytes).and_then(|label| by_label(&label)))
}

/// `<meta charset="…">` and `<meta … content="…; charset=…">`.
fn meta_charset(bytes: &[u8]) -> Option<String> {
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(META_CHARSET_BYTES)]).to_ascii_lowercase();
    let meta = head.split("<meta").skip(1).find_map(|tag| tag.split('>').next()?.split_once("charset="))?.1;
    let label: String =
        meta.trim_start_matches(['"', '\'', ' ']).chars().take_while(|c| !"\"' />;".contains(*c)).collect();
    (!label.is_empty()).then_some(label)
}

fn is_text(mime: &str, bytes: &[u8], declared: Option<Encoding>) -> bool {
    const TEXTUAL: &[&str] =
        &["json", "xml", "javascript", "ecmascript", "yaml", "toml", "x-www-form-urlencoded", "graphql"];
    let is_wide = matches!(declared, Some(Encoding::Utf16Le | Encoding::Utf16Be));
    let claims = mime.is_empty() || mime.starts_with("text/") || TEXTUAL.iter().any(|kind| mime.contains(kind));
    match claims {
        true => is_wide || !is_binary(bytes),
        // Many servers use this type for anything they don't recognise. Content not shown as text isn't searched for
        // secrets either.
        false => is_utf8_text(bytes),
    }
}

/// Whether the bytes are text regardless of any declared type: valid UTF-8 without binary control characters.
fn is_utf8_text(bytes: &[u8]) -> bool {
    memchr::memchr(0, bytes).is_none() && !is_binary(bytes) && std::str::from_utf8(bytes).is_ok()
}

fn is_page(text: &str) -> bool {
    let start: String = text.trim_start().chars().take(15).collect::<String>().to_ascii_lowercase();
    start.starts_with("<!doctype html") || start.starts_with("<html")
}

/// Removes the byte order mark.
fn without_bom(mut bytes: Vec<u8>) -> Vec<u8> {
    if let Some((_, length)) = Encoding::from_bom(&bytes) {
        bytes.drain(..length);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: &[u8], content_type: &str) -> String {
        match read(bytes.to_vec(), Some(content_type), BodyFormat::Raw) {
            FetchedBody::Text { text, .. } => text,
            FetchedBody::Binary { mime, .. } => format!("binary {mime}"),
        }
    }

    #[test]
    fn text_is_decoded_as_declared() {
        for (bytes, content_type, expected) in [
            (&b"caf\xe9"[..], "text/plain; charset=ISO-8859-1", "café"),
            (b"caf\xc3\xa9", "text/plain", "café"),
            (b"\xef\xbb\xbfcaf\xc3\xa9", "text/plain; charset=latin1", "café"),
            (b"<meta charset=\"windows-1251\">\xcf\xf0\xe8", "text/html", "<meta charset=\"windows-1251\">При"),
            (b"\xff\xfeh\0i\0", "text/plain", "hi"),
            (b"caf\xc3\xa9", "text/plain; charset=no-such-thing", "café"),
            (b"{}", "application/json", "{}"),
            (b"{}", "application/vnd.api+json; charset=\"utf-8\"", "{}"),
            (b"plain", "", "plain"),
            (b"caf\xc3\xa9\n", "application/octet-stream", "café\n"),
            (b"<svg/>", "image/svg", "<svg/>"),
            (b"caf\xe9\n", "application/octet-stream", "binary application/octet-stream"),
            (b"a\0b", "application/octet-stream", "binary application/octet-stream"),
            (b"", "application/octet-stream", ""),
            (b"\x89PNG\r\n\x1a\n\0\0\0\r", "image/png", "binary image/png"),
            (b"\x89PNG\r\n\x1a\n\0\0\0\r", "text/plain", "binary text/plain"),
            (b"\x1f\x8b\x08\0\0\0\0\0", "", "binary application/octet-stream"),
        ] {
            assert_eq!(text(bytes, content_type), expected, "{content_type} {}", bytes.escape_ascii());
        }
    }

    #[test]
    fn a_page_becomes_readable_unless_it_is_wanted_raw() {
        let page = b"<!doctype html><title>T</title><p>Hello <b>you</b>";
        for (format, content_type, expected) in [
            (BodyFormat::Text, "text/html", "Hello you"),
            (BodyFormat::Text, "", "Hello you"),
            (BodyFormat::Markdown, "text/html", "Hello **you**"),
            (BodyFormat::Raw, "text/html", "<!doctype html><title>T</title><p>Hello <b>you</b>"),
            (BodyFormat::Text, "text/plain", "<!doctype html><title>T</title><p>Hello <b>you</b>"),
        ] {
            let read = read(page.to_vec(), Some(content_type), format);
            let FetchedBody::Text { text, .. } = read else { panic!("{read:?}") };
            assert_eq!(text, expected, "{format:?} {content_type}");
        }
    }
}
