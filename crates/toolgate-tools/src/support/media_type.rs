//! The media type of a file: by its first bytes if it is binary, otherwise by the ending of its name.

/// Formats that their first bytes show.
const MAGIC: &[(&[u8], &str)] = &[
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xFF\xD8\xFF", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"BM", "image/bmp"),
    (b"\0\0\x01\0", "image/x-icon"),
    (b"%PDF-", "application/pdf"),
    (b"PK\x03\x04", "application/zip"),
    (b"\x1F\x8B", "application/gzip"),
    (b"BZh", "application/x-bzip2"),
    (b"\xFD7zXZ\0", "application/x-xz"),
    (b"\x28\xB5\x2F\xFD", "application/zstd"),
    (b"\x7FELF", "application/x-executable"),
    (b"\0asm", "application/wasm"),
    (b"SQLite format 3\0", "application/vnd.sqlite3"),
    (b"OggS", "audio/ogg"),
    (b"ID3", "audio/mpeg"),
    (b"fLaC", "audio/flac"),
    (b"wOFF", "font/woff"),
    (b"wOF2", "font/woff2"),
];

/// Text formats by the ending of a name.
const ENDINGS: &[(&str, &str)] = &[
    ("css", "text/css"),
    ("csv", "text/csv"),
    ("htm", "text/html"),
    ("html", "text/html"),
    ("js", "text/javascript"),
    ("json", "application/json"),
    ("jsonl", "application/jsonl"),
    ("md", "text/markdown"),
    ("mjs", "text/javascript"),
    ("svg", "image/svg+xml"),
    ("toml", "application/toml"),
    ("tsv", "text/tab-separated-values"),
    ("xml", "application/xml"),
    ("yaml", "application/yaml"),
    ("yml", "application/yaml"),
];

/// The media type of a file of this name, with this content if it is binary.
pub(crate) fn media_type(path: &str, binary: Option<&[u8]>) -> String {
    let known = match binary {
        Some(bytes) => of_bytes(bytes).unwrap_or("application/octet-stream"),
        None => {
            let ending = path.rsplit('/').next().and_then(|name| name.rsplit_once('.')).map(|(_, ending)| ending);
            let is_it = |(known, _): &&(&str, &str)| ending.is_some_and(|ending| ending.eq_ignore_ascii_case(known));
            ENDINGS.iter().find(is_it).map_or("text/plain", |(_, found)| found)
        }
    };
    known.to_owned()
}

fn of_bytes(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'A', b'V', b'E', ..] => Some("audio/wav"),
        [_, _, _, _, b'f', b't', b'y', b'p', ..] => Some("video/mp4"),
        _ => MAGIC.iter().find(|(magic, _)| bytes.starts_with(magic)).map(|(_, found)| *found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_counts_for_binary_files_and_the_name_for_text() {
        for (path, binary, expected) in [
            ("a.png", Some(&b"\x89PNG\r\n\x1a\n\0"[..]), "image/png"),
            ("a.png", Some(b"\0\0\0"), "application/octet-stream"),
            ("a.png", None, "text/plain"),
            ("a", Some(b"RIFF\0\0\0\0WEBPVP8 "), "image/webp"),
            ("dir.md/README", None, "text/plain"),
            ("Notes.MD", None, "text/markdown"),
            ("a.tar.json", None, "application/json"),
        ] {
            assert_eq!(media_type(path, binary), expected, "{path}");
        }
    }
}
