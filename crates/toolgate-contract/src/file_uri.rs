//! Paths as `file:` URIs and back.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The URI of a path.
pub fn file_uri(path: &Path) -> String {
    let mut uri = String::from("file://");
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => uri.push(char::from(*byte)),
            other => uri.push_str(&format!("%{other:02X}")),
        }
    }
    uri
}

/// The path of a URI; none if it isn't one of a file on this machine.
pub fn file_uri_path(uri: &str) -> Option<PathBuf> {
    let rest = uri.strip_prefix("file://")?;
    let rest = if rest.starts_with('/') { rest } else { rest.strip_prefix("localhost")? };
    let (mut bytes, raw) = (Vec::new(), rest.as_bytes());
    let mut at = 0;
    while at < raw.len() {
        let escaped = (raw[at] == b'%').then(|| rest.get(at + 1..at + 3)).flatten();
        match escaped.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                at += 3;
            }
            None => {
                bytes.push(raw[at]);
                at += 1;
            }
        }
    }
    let path = PathBuf::from(std::ffi::OsStr::from_bytes(&bytes));
    path.is_absolute().then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_come_back() {
        for path in ["/a/b.rs", "/a b/ä#?%20.py", "/w/@scope/x:y.ts"] {
            assert_eq!(file_uri_path(&file_uri(Path::new(path))).unwrap(), Path::new(path));
        }
        assert_eq!(file_uri_path("file:///c%3A/x%"), Some("/c:/x%".into()));
        for foreign in ["untitled:1", "file://host/x", "zip:///a", "bundled:///a"] {
            assert_eq!(file_uri_path(foreign), None, "{foreign}");
        }
    }
}
