//! Parses the paths in a unified diff's headers: quotes, prefixes, timestamps.

use toolgate_contract::escape_path;

use super::PatchFault;

/// The path that a diff gives for a missing file.
pub(super) const DEV_NULL: &str = "/dev/null";

/// Both paths of a file, as its headers give them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct HeaderPaths {
    /// Before.
    pub(super) old: Option<String>,
    /// After.
    pub(super) new: Option<String>,
}

/// A path, unquoted, and the rest of the line.
pub(super) fn name(at: usize, text: &[u8]) -> Result<(String, &[u8]), PatchFault> {
    let (path, rest) = match text.strip_prefix(b"\"") {
        // Git quotes every name that isn't plain text, one with a backslash too.
        Some(quoted) => unquoted(quoted)
            .map(|(bytes, rest)| (escape_path(&bytes).into_owned(), rest))
            .ok_or_else(|| PatchFault::malformed(at, "the quoted path doesn't end."))?,
        // Otherwise it is written as in an argument.
        None => {
            let end = text.iter().position(|&byte| byte == b'\t').unwrap_or(text.len());
            let path = String::from_utf8(text[..end].to_vec());
            (path.map_err(|_| PatchFault::unsupported(at, "the path isn't valid UTF-8."))?, &text[end..])
        }
    };
    if path.is_empty() || path.contains('\0') {
        return Err(PatchFault::malformed(at, "the path is empty or contains a zero byte."));
    }
    Ok((path, rest))
}

/// The bytes of a quoted path up to its closing quote, and the rest.
fn unquoted(text: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut bytes = Vec::new();
    let mut rest = text;
    loop {
        let (&byte, after) = rest.split_first()?;
        rest = after;
        match byte {
            b'"' => return Some((bytes, rest)),
            b'\\' => {
                let (byte, after) = escaped(rest)?;
                bytes.push(byte);
                rest = after;
            }
            other => bytes.push(other),
        }
    }
}

/// The byte that a C-style escape after a backslash stands for.
fn escaped(text: &[u8]) -> Option<(u8, &[u8])> {
    let (&byte, rest) = text.split_first()?;
    let plain = match byte {
        b'a' => 7,
        b'b' => 8,
        b't' => b'\t',
        b'n' => b'\n',
        b'v' => 11,
        b'f' => 12,
        b'r' => b'\r',
        b'"' | b'\\' => byte,
        b'0'..=b'3' => {
            let octal = std::str::from_utf8(text.get(..3)?).ok()?;
            return Some((u8::from_str_radix(octal, 8).ok()?, &text[3..]));
        }
        _ => return None,
    };
    Some((plain, rest))
}

/// Both paths of a `diff --git` line, where they can be separated.
pub(super) fn git_pair(at: usize, text: &[u8]) -> Result<Option<(String, String)>, PatchFault> {
    if text.starts_with(b"\"") {
        let (old, rest) = name(at, text)?;
        let rest = rest.strip_prefix(b" ").ok_or_else(|| PatchFault::malformed(at, "the second path is missing."))?;
        return Ok(Some((old, name(at, rest)?.0)));
    }
    if let Some(space) = memchr::memmem::find(text, b" \"") {
        return Ok(Some((name(at, &text[..space])?.0, name(at, &text[space + 1..])?.0)));
    }
    let Ok(text) = std::str::from_utf8(text) else {
        return Err(PatchFault::unsupported(at, "the path isn't valid UTF-8."));
    };
    let halves = |(space, _)| (&text[..space], &text[space + 1..]);
    let same = |(old, new): &(&str, &str)| old == new || without_directories(old, new).is_some();
    let pair = text.match_indices(' ').map(halves).find(same);
    Ok(pair.map(|(old, new)| (old.to_owned(), new.to_owned())))
}

/// The path that both sides share without their first directories, such as `a/` and `b/`.
fn without_directories<'a>(old: &'a str, new: &'a str) -> Option<&'a str> {
    let (old_directory, old_rest) = old.split_once('/')?;
    let (new_directory, new_rest) = new.split_once('/')?;
    (old_directory != new_directory && old_rest == new_rest && !old_rest.is_empty()).then_some(new_rest)
}

impl HeaderPaths {
    /// The paths without git's prefixes, if it wrote any.
    pub(super) fn without_prefixes(self, pair: Option<&(String, String)>) -> Self {
        let unprefixed = pair.is_some_and(|(old, new)| old == new);
        match (self.old, self.new) {
            names if unprefixed => Self { old: names.0, new: names.1 },
            (Some(old), Some(new)) => match without_directories(&old, &new) {
                Some(path) => Self { old: Some(path.to_owned()), new: Some(path.to_owned()) },
                None => match (old.strip_prefix("a/"), new.strip_prefix("b/")) {
                    (Some(old), Some(new)) => Self { old: Some(old.to_owned()), new: Some(new.to_owned()) },
                    _ => Self { old: Some(old), new: Some(new) },
                },
            },
            (old, new) => {
                let mnemonic = pair.is_some_and(|(old, new)| without_directories(old, new).is_some());
                Self {
                    old: old.map(|path| single(path, "a/", mnemonic)),
                    new: new.map(|path| single(path, "b/", mnemonic)),
                }
            }
        }
    }

    /// The path of a file whose two names differ without a move, as in `diff -u file.orig file`.
    pub(super) fn common_path(old: String, new: String) -> String {
        if new.starts_with(old.as_str()) { old } else { new }
    }
}

/// A path whose other side doesn't exist.
fn single(path: String, prefix: &str, mnemonic: bool) -> String {
    let stripped = match mnemonic {
        true => path.split_once('/').map(|(_, rest)| rest),
        false => path.strip_prefix(prefix),
    };
    match stripped {
        Some(rest) if !rest.is_empty() => rest.to_owned(),
        _ => path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(old: &str, new: &str) -> (Option<String>, Option<String>) {
        let some = |name: &str| (name != DEV_NULL).then(|| name.to_owned());
        let names = HeaderPaths { old: some(old), new: some(new) }.without_prefixes(None);
        (names.old, names.new)
    }

    #[test]
    fn names_are_unquoted_and_end_at_a_tab() {
        assert_eq!(name(0, br#""a/\303\244 \"b\"\t" rest"#).unwrap(), ("a/ä \"b\"\t".to_owned(), &b" rest"[..]));
        assert_eq!(name(0, br#""a/\377\\xff""#).unwrap().0, r"a/\xff\x5cxff", "bytes that aren't text");
        assert_eq!(name(0, br"a/\xff").unwrap().0, r"a/\xff", "as in an argument");
        assert_eq!(name(0, b"a/x y\t2020-01-01").unwrap(), ("a/x y".to_owned(), &b"\t2020-01-01"[..]));
        assert!(name(4, b"\"open").unwrap_err().to_string().contains("line 5"));
        assert!(name(0, b"").is_err());
        assert!(name(0, br#""\000""#).is_err());
    }

    #[test]
    fn prefixes_go_only_where_there_are_some() {
        let both = |path: &str| (Some(path.to_owned()), Some(path.to_owned()));
        assert_eq!(names("a/src/x", "b/src/x"), both("src/x"));
        assert_eq!(names("i/src/x", "w/src/x"), both("src/x"));
        assert_eq!(names("src/x", "src/x"), both("src/x"), "written with --no-prefix");
        assert_eq!(names(DEV_NULL, "b/x"), (None, Some("x".to_owned())));
        assert_eq!(names("x", DEV_NULL), (Some("x".to_owned()), None));
        assert_eq!(HeaderPaths::common_path("f.c.orig".into(), "f.c".into()), "f.c");
        assert_eq!(HeaderPaths::common_path("f.c".into(), "f.c.new".into()), "f.c");
    }

    #[test]
    fn a_git_line_with_spaces_is_told_apart() {
        for (line, old, new) in [
            (&b"a/x b/x"[..], "a/x", "b/x"),
            (b"a/x b/y b/x b/y", "a/x b/y", "b/x b/y"),
            (b"same name same name", "same name", "same name"),
            (br#""a/\t" "b/\t""#, "a/\t", "b/\t"),
            (br#"a/x "b/\t""#, "a/x", "b/\t"),
        ] {
            assert_eq!(git_pair(0, line).unwrap(), Some((old.to_owned(), new.to_owned())));
        }
        assert_eq!(git_pair(0, b"a/x b/y").unwrap(), None, "a rename says so on its own lines");
    }
}
