//! The syntax of a git configuration file, as git itself reads it. Whatever git would refuse, or what isn't text, is refused here too.

use std::ops::Range;

/// A setting of a configuration file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ConfigEntry {
    pub(super) name: SettingName,
    /// The value, without quotes and escapes; none if only the key is there, which means true.
    pub(super) value: Option<String>,
    /// Where it is in the text, from the key to the end of its last line.
    pub(super) range: Range<usize>,
}

/// Names a setting: `remote`, `origin` and `url` for `remote.origin.url`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SettingName {
    /// In lower case.
    pub(super) section: String,
    pub(super) subsection: Option<String>,
    /// In lower case.
    pub(super) key: String,
}

/// A section's header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ConfigHeader {
    pub(super) section: String,
    pub(super) subsection: Option<String>,
    /// Where it is in the text, to the end of its line if nothing else is on it.
    pub(super) range: Range<usize>,
}

/// What a configuration file holds, in its order.
#[derive(Debug, Default)]
pub(super) struct ParsedConfig {
    pub(super) headers: Vec<ConfigHeader>,
    pub(super) entries: Vec<ConfigEntry>,
}

/// Parses a configuration file; none if git wouldn't read it.
pub(super) fn parse(text: &str) -> Option<ParsedConfig> {
    if text.contains('\0') {
        return None;
    }
    let mut reader = ConfigReader { text, at: 0 };
    let mut parsed = ParsedConfig::default();
    loop {
        match reader.peek() {
            None => return Some(parsed),
            Some(b' ' | b'\t' | b'\n' | b'\r') => reader.at += 1,
            Some(b'#' | b';') => reader.skip_line(),
            Some(b'[') => parsed.headers.push(reader.header()?),
            Some(_) => {
                let ConfigHeader { section, subsection, .. } = parsed.headers.last()?.clone();
                parsed.entries.push(reader.entry(section, subsection)?);
            }
        }
    }
}

struct ConfigReader<'a> {
    text: &'a str,
    at: usize,
}

impl ConfigReader<'_> {
    /// The next byte; a carriage return before a newline doesn't count.
    fn peek(&self) -> Option<u8> {
        match self.text.as_bytes()[self.at..] {
            [b'\r', b'\n', ..] => Some(b'\n'),
            [byte, ..] => Some(byte),
            [] => None,
        }
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += if self.text.as_bytes()[self.at] == b'\r' && byte == b'\n' { 2 } else { 1 };
        Some(byte)
    }

    fn skip_line(&mut self) {
        while self.next().is_some_and(|byte| byte != b'\n') {}
    }

    fn skip_blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t')) {
            self.at += 1;
        }
    }

    /// Characters of a name, in lower case.
    fn name(&mut self, is_allowed: fn(u8) -> bool) -> String {
        let start = self.at;
        while self.peek().is_some_and(is_allowed) {
            self.at += 1;
        }
        self.text[start..self.at].to_ascii_lowercase()
    }

    fn header(&mut self) -> Option<ConfigHeader> {
        let start = self.at;
        self.at += 1;
        let name = self.name(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'.');
        let quoted = matches!(self.peek(), Some(b' ' | b'\t'));
        self.skip_blanks();
        let subsection = if quoted { Some(self.subsection()?) } else { None };
        (self.next()? == b']' && !name.is_empty()).then_some(())?;
        let end = self.at;
        self.skip_blanks();
        if self.peek() == Some(b'\n') {
            self.next();
        } else {
            self.at = end;
        }
        let (section, subsection) = match (name.split_once('.'), subsection) {
            (None, subsection) => (name, subsection),
            (Some((section, rest)), None) => (section.to_owned(), Some(rest.to_owned())),
            (Some(_), Some(_)) => return None,
        };
        Some(ConfigHeader { section, subsection, range: start..self.at })
    }

    /// A subsection in quotes.
    fn subsection(&mut self) -> Option<String> {
        (self.next()? == b'"').then_some(())?;
        let mut bytes = Vec::new();
        loop {
            match self.next()? {
                b'\n' => return None,
                b'"' => return String::from_utf8(bytes).ok(),
                b'\\' => bytes.push(self.next().filter(|byte| *byte != b'\n')?),
                byte => bytes.push(byte),
            }
        }
    }

    fn entry(&mut self, section: String, subsection: Option<String>) -> Option<ConfigEntry> {
        let start = self.at;
        self.peek()?.is_ascii_alphabetic().then_some(())?;
        let key = self.name(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        self.skip_blanks();
        let value = match self.next() {
            None | Some(b'\n') => None,
            Some(b'=') => Some(self.value()?),
            Some(_) => return None,
        };
        Some(ConfigEntry { name: SettingName { section, subsection, key }, value, range: start..self.at })
    }

    /// A value to the end of its line, over lines that end with a backslash.
    fn value(&mut self) -> Option<String> {
        let (mut bytes, mut is_quoted, mut kept) = (Vec::new(), false, 0);
        loop {
            match self.next() {
                None | Some(b'\n') if is_quoted => return None,
                None | Some(b'\n') => break,
                Some(b' ' | b'\t' | b'\r') if !is_quoted && bytes.is_empty() => {}
                Some(byte @ (b' ' | b'\t' | b'\r')) if !is_quoted => bytes.push(byte),
                Some(b'#' | b';') if !is_quoted => {
                    self.skip_line();
                    break;
                }
                Some(b'"') => {
                    is_quoted = !is_quoted;
                    kept = bytes.len();
                }
                Some(b'\\') => {
                    match self.next()? {
                        b'\n' => continue,
                        b't' => bytes.push(b'\t'),
                        b'b' => bytes.push(8),
                        b'n' => bytes.push(b'\n'),
                        byte @ (b'"' | b'\\') => bytes.push(byte),
                        _ => return None,
                    }
                    kept = bytes.len();
                }
                Some(byte) => {
                    bytes.push(byte);
                    kept = bytes.len();
                }
            }
        }
        bytes.truncate(kept);
        String::from_utf8(bytes).ok()
    }
}

/// A setting as one line of a configuration file, without its section.
pub(super) fn line(key: &str, value: Option<&str>) -> String {
    let Some(value) = value else { return format!("\t{key}\n") };
    let needs_quotes = value.starts_with(' ')
        || value.ends_with(' ')
        || value.contains(['#', ';', '"', '\\', '\n', '\t', '\r', '\u{8}']);
    if !needs_quotes {
        return format!("\t{key} = {value}\n");
    }
    let escape = |text: char| match text {
        '"' | '\\' => format!("\\{text}"),
        '\n' => "\\n".to_owned(),
        '\t' => "\\t".to_owned(),
        '\u{8}' => "\\b".to_owned(),
        other => other.to_string(),
    };
    format!("\t{key} = \"{}\"\n", value.chars().map(escape).collect::<String>())
}

/// A section's header as one line.
pub(super) fn header(section: &str, subsection: Option<&str>) -> String {
    match subsection {
        None => format!("[{section}]\n"),
        Some(subsection) => format!("[{section} \"{}\"]\n", subsection.replace('\\', "\\\\").replace('"', "\\\"")),
    }
}
