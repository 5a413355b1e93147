//! A path in the workspace as the bytes that it is. Printed, read back and given to bash without loss, whatever the
//! bytes.

use std::fmt::{self, Write};
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A path beneath the workspace, without a leading `/`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct TreePath(pub(crate) Vec<u8>);

impl TreePath {
    /// The directory that it is in; none for what is directly in the workspace.
    pub(crate) fn parent(&self) -> Option<Self> {
        let slash = self.0.iter().rposition(|byte| *byte == b'/')?;
        Some(Self(self.0[..slash].to_vec()))
    }

    pub(crate) fn components(&self) -> impl Iterator<Item = &[u8]> {
        self.0.split(|byte| *byte == b'/')
    }

    pub(crate) fn name(&self) -> &[u8] {
        self.components().last().unwrap_or_default()
    }

    pub(crate) fn join(&self, name: &[u8]) -> Self {
        if self.0.is_empty() { Self(name.to_vec()) } else { Self([&self.0, &b"/"[..], name].concat()) }
    }

    /// Whether it is beneath `directory`.
    pub(crate) fn is_in(&self, directory: &Self) -> bool {
        self.0.strip_prefix(directory.0.as_slice()).is_some_and(|rest| rest.first() == Some(&b'/'))
    }

    /// As a word of bash.
    pub(crate) fn quoted(&self) -> String {
        let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_./".contains(byte);
        if !self.0.is_empty() && self.0.iter().all(is_plain) {
            return self.to_string();
        }
        let escaped = self.to_string().replace('\'', "\\'");
        format!("$'{escaped}'")
    }

    /// As a tool's argument, if it can be one.
    pub(crate) fn text(&self) -> Option<&str> {
        std::str::from_utf8(&self.0).ok()
    }

    /// The ways in which a reply may write it.
    pub(crate) fn spellings(&self) -> Vec<String> {
        match self.text() {
            Some(text) => vec![text.to_owned()],
            None => vec![self.shown(), String::from_utf8_lossy(&self.0).into_owned()],
        }
    }

    /// As replies write it: bytes that aren't part of valid UTF-8 are escaped, and so is a backslash that would read as such
    /// an escape.
    fn shown(&self) -> String {
        let mut shown = String::new();
        for chunk in self.0.utf8_chunks() {
            for (at, character) in chunk.valid().char_indices() {
                let rest = &chunk.valid().as_bytes()[at..];
                let is_escape = matches!(rest, [b'\\', b'x', one, other, ..] if one.is_ascii_hexdigit() && other.is_ascii_hexdigit());
                match is_escape {
                    true => shown.push_str("\\x5c"),
                    false => shown.push(character),
                }
            }
            for byte in chunk.invalid() {
                let _ = write!(shown, "\\x{byte:02x}");
            }
        }
        shown
    }
}

impl fmt::Display for TreePath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for byte in &self.0 {
            match byte {
                b'\\' => formatter.write_str("\\\\")?,
                b' '..=b'~' => formatter.write_char(char::from(*byte))?,
                _ => write!(formatter, "\\x{byte:02x}")?,
            }
        }
        Ok(())
    }
}

impl fmt::Debug for TreePath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "`{self}`")
    }
}

impl FromStr for TreePath {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
        while let Some((first, after)) = rest.split_first() {
            let (byte, used) = match (first, after.first()) {
                (b'\\', Some(b'\\')) => (b'\\', 1),
                (b'\\', Some(b'x')) => {
                    let digits = after.get(1..3).and_then(|digits| std::str::from_utf8(digits).ok());
                    let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
                    (byte.ok_or_else(|| format!("`{text}`: two digits have to follow `\\x`"))?, 3)
                }
                (b'\\', _) => return Err(format!("`{text}`: only `\\\\` and `\\xNN` are escapes")),
                _ => (*first, 0),
            };
            bytes.push(byte);
            rest = &after[used..];
        }
        Ok(Self(bytes))
    }
}

impl From<&str> for TreePath {
    fn from(text: &str) -> Self {
        Self(text.as_bytes().to_vec())
    }
}

impl Serialize for TreePath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for TreePath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[test]
fn every_path_can_be_printed_and_read_back() {
    let path = TreePath((1..=255).collect());
    assert_eq!(path.to_string().parse(), Ok(path.clone()));
    let said = std::process::Command::new("bash").args(["-c", &format!("printf %s {}", path.quoted())]).output();
    assert_eq!(said.unwrap().stdout, path.0);
    assert!("a\\x1".parse::<TreePath>().is_err() && "a\\n".parse::<TreePath>().is_err());
}

#[test]
fn a_reply_escapes_only_what_is_not_text() {
    let shown = |bytes: &[u8]| TreePath(bytes.to_vec()).spellings().remove(0);
    assert_eq!(shown(b"\xc3\xbcnicode/\xffa"), "\u{fc}nicode/\\xffa");
    assert_eq!(shown(b"back\\slash/\xff/\\x41"), "back\\slash/\\xff/\\x5cx41");
}
