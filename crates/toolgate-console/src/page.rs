//! The page of the console: plain ES modules, compiled into the program, and the headers that keep anything else from
//! running beside them. Nothing is built and nothing is loaded from elsewhere.
//!
//! All files are served below one directory that is named by the hash of them all, so a browser may keep them for ever; only
//! the document itself is asked for again.

use std::io::Write;
use std::sync::LazyLock;

use axum::extract::Path;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};

use crate::problem::Problem;

/// A file of the page.
struct PageFile {
    name: &'static str,
    bytes: &'static [u8],
}

macro_rules! files {
    ($($name:literal),+ $(,)?) => {
        &[$(PageFile { name: $name, bytes: include_bytes!(concat!("page/", $name)) }),+]
    };
}

/// Every file but the document. A new module of the page is a line here.
const FILES: &[PageFile] = files![
    "style.css",
    "icon.svg",
    "icon-180.png",
    "icon-512.png",
    "manifest.webmanifest",
    "main.js",
    "core.js",
    "api.js",
    "live.js",
    "router.js",
    "keys.js",
    "format.js",
    "icons.js",
    "parts.js",
    "windowed.js",
    "diff.js",
    "why.js",
    "view_now.js",
    "view_runs.js",
    "view_run.js",
    "view_call.js",
    "view_approvals.js",
    "view_changes.js",
    "view_quarantine.js",
    "view_processes.js",
    "view_policy.js",
    "view_grants.js",
    "view_tools.js",
    "view_inbox.js",
    "view_doctor.js",
    "view_search.js",
    "view_signin.js",
    "vendor/preact.js",
    "vendor/hooks.js",
    "vendor/htm.js",
    "vendor/signals-core.js",
    "vendor/signals.js",
];

/// The document, in which `{{base}}` is the directory of the files.
const DOCUMENT: &str = include_str!("page/index.html");

/// A file as it is sent.
struct ServedFile {
    name: &'static str,
    media_type: &'static str,
    plain: Vec<u8>,
    gzip: Vec<u8>,
}

/// The page, made when it is first asked for.
struct Page {
    hash: String,
    policy: HeaderValue,
    document: ServedFile,
    files: Vec<ServedFile>,
}

static PAGE: LazyLock<Page> = LazyLock::new(Page::new);

impl Page {
    fn new() -> Self {
        let mut hasher = Sha256::new();
        FILES.iter().for_each(|file| hasher.update(file.bytes));
        let hash: String = hasher.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        let document = DOCUMENT.replace("{{base}}", &format!("/page/{hash}"));
        let policy = HeaderValue::from_str(&content_policy(&document)).expect("the policy is plain text");
        let files = FILES.iter().map(|file| ServedFile::new(file.name, file.bytes.to_vec())).collect();
        Self { hash, policy, document: ServedFile::new("index.html", document.into_bytes()), files }
    }
}

impl ServedFile {
    fn new(name: &'static str, plain: Vec<u8>) -> Self {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        let gzip = encoder.write_all(&plain).and_then(|()| encoder.finish()).unwrap_or_default();
        let media_type = match name.rsplit('.').next() {
            Some("js") => "text/javascript; charset=utf-8",
            Some("css") => "text/css; charset=utf-8",
            Some("svg") => "image/svg+xml",
            Some("png") => "image/png",
            Some("webmanifest") => "application/manifest+json",
            _ => "text/html; charset=utf-8",
        };
        Self { name, media_type, plain, gzip }
    }

    fn send(&self, headers: &HeaderMap, caching: &'static str, tag: &str) -> Response {
        let tag = HeaderValue::from_str(&format!("\"{tag}\"")).expect("a hash is plain text");
        let mut response = match headers.get(header::IF_NONE_MATCH) == Some(&tag) {
            true => StatusCode::NOT_MODIFIED.into_response(),
            false if accepts_gzip(headers) && !self.gzip.is_empty() => {
                ([(header::CONTENT_ENCODING, "gzip")], self.gzip.clone()).into_response()
            }
            false => self.plain.clone().into_response(),
        };
        let sent = response.headers_mut();
        sent.insert(header::ETAG, tag);
        for (name, value) in [
            (header::CONTENT_TYPE, self.media_type),
            (header::CACHE_CONTROL, caching),
            (header::VARY, "Accept-Encoding"),
            (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        ] {
            sent.insert(name, HeaderValue::from_static(value));
        }
        response
    }
}

/// Adds what holds for the document, and with it for everything that runs in it. Its files don't repeat this: together they
/// would be a seventh of the first paint.
fn confine_document(mut response: Response) -> Response {
    let sent = response.headers_mut();
    for (name, value) in [
        (header::REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("permissions-policy"), "camera=(), geolocation=(), microphone=(), usb=()"),
        (header::X_FRAME_OPTIONS, "DENY"),
    ] {
        sent.insert(name, HeaderValue::from_static(value));
    }
    sent.insert(header::CONTENT_SECURITY_POLICY, PAGE.policy.clone());
    response
}

/// What the page may load and do: its own files, and the one inline script of the document, which maps names of modules to
/// files. No text can become markup or code (Trusted Types), and no page can frame this one.
fn content_policy(document: &str) -> String {
    let import_map =
        document.split("<script type=\"importmap\">").nth(1).and_then(|rest| rest.split("</script>").next());
    let hash = STANDARD.encode(Sha256::digest(import_map.unwrap_or_default()));
    format!(
        "default-src 'none'; script-src 'self' 'sha256-{hash}'; style-src 'self'; connect-src 'self'; \
         img-src 'self' data:; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
         require-trusted-types-for 'script'; trusted-types 'none'"
    )
}

fn accepts_gzip(headers: &HeaderMap) -> bool {
    let encodings = headers.get(header::ACCEPT_ENCODING).and_then(|value| value.to_str().ok()).unwrap_or_default();
    encodings.split(',').any(|encoding| encoding.split(';').next().unwrap_or_default().trim() == "gzip")
}

/// The document. It says nothing about the workspace, so it needs no token.
pub(crate) async fn document(headers: HeaderMap) -> Response {
    let page = &*PAGE;
    confine_document(page.document.send(&headers, "no-cache", &page.hash))
}

/// One of the files.
pub(crate) async fn file(Path((hash, name)): Path<(String, String)>, headers: HeaderMap) -> Result<Response, Problem> {
    let page = &*PAGE;
    #[cfg(debug_assertions)]
    if let Some(file) = from_disk(&name) {
        return Ok(file.send(&headers, "no-store", "development"));
    }
    let file = page.files.iter().find(|file| hash == page.hash && file.name == name);
    let file = file.ok_or_else(|| Problem::not_found("such file of the page"))?;
    Ok(file.send(&headers, "public, max-age=31536000, immutable", &page.hash))
}

/// With `TOOLGATE_PAGE_FROM`, a debug build reads the files of the page from this directory at every request, so that
/// working on the page needs no compiler. Release builds don't have this.
#[cfg(debug_assertions)]
#[allow(clippy::disallowed_methods, reason = "only in debug builds, only names of the list")]
fn from_disk(name: &str) -> Option<ServedFile> {
    let directory = std::env::var_os("TOOLGATE_PAGE_FROM")?;
    let known = FILES.iter().find(|file| file.name == name)?;
    let bytes = std::fs::read(std::path::Path::new(&directory).join(known.name)).ok()?;
    Some(ServedFile::new(known.name, bytes))
}

/// Whether this path is part of the page, which everybody may load.
pub(crate) fn is_page(path: &str) -> bool {
    path == "/" || path.starts_with("/page/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_paint_is_less_than_100_kb() {
        let page = &*PAGE;
        let total: usize = page.files.iter().chain([&page.document]).map(|file| file.gzip.len()).sum();
        assert!(total < 100_000, "{total}");
    }

    #[test]
    fn every_module_that_is_imported_is_served() {
        for file in FILES.iter().filter(|file| file.name.ends_with(".js") && !file.name.starts_with("vendor/")) {
            let text = std::str::from_utf8(file.bytes).unwrap();
            for import in text.lines().filter_map(|line| line.split(" from \"./").nth(1)) {
                let name = import.split('"').next().unwrap();
                assert!(FILES.iter().any(|file| file.name == name), "{} imports {name}", file.name);
            }
            for forbidden in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "dangerously"]
            {
                assert!(!text.contains(forbidden), "{} uses {forbidden}", file.name);
            }
        }
    }

    #[test]
    fn vendored_files_are_those_of_the_list() {
        let list = include_str!("page/vendor/README.md");
        for file in FILES.iter().filter(|file| file.name.starts_with("vendor/")) {
            let hash: String = Sha256::digest(file.bytes).iter().map(|byte| format!("{byte:02x}")).collect();
            assert!(list.contains(&hash), "{} isn't what the list says: {hash}", file.name);
        }
    }
}
