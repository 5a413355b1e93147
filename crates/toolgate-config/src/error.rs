//! What is wrong with a configuration, where, and how to fix it.

use std::fmt;

use toolgate_contract::Layer;

/// A configuration that can't be used. Nothing runs under a half-understood policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    /// The file, or whatever the text came from.
    pub file: String,
    /// The line, where it is known.
    pub line: Option<usize>,
    /// The column, where it is known.
    pub column: Option<usize>,
    /// The layer it was for, where it is known.
    pub layer: Option<Layer>,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        if let Some(column) = self.column {
            write!(f, ":{column}")?;
        }
        if let Some(layer) = self.layer {
            write!(f, " ({layer})")?;
        }
        write!(f, ": {}", self.message)?;
        self.hint.as_ref().map_or(Ok(()), |hint| write!(f, " {hint}"))
    }
}

impl std::error::Error for ConfigError {}

/// A fault that doesn't know yet which file it is in.
#[derive(Debug, PartialEq, Eq)]
pub struct ConfigFault {
    message: String,
    hint: String,
}

impl ConfigFault {
    /// A fault and what to do about it.
    pub fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { message: message.into(), hint: hint.into() }
    }

    /// The error that this is in a file and layer.
    pub fn at(self, file: &str, layer: Layer, line: Option<usize>) -> ConfigError {
        let (file, layer, hint) = (file.to_owned(), Some(layer), Some(self.hint));
        ConfigError { file, line, column: None, layer, message: self.message, hint }
    }
}

/// Words what the TOML reader found, with the nearest known name where a name is unknown.
pub(crate) fn from_toml(fault: &toml::de::Error, text: &str, file: &str) -> ConfigError {
    let start = fault.span().map(|span| span.start);
    let (line, column) = (start.map(|byte| line_at(text, byte)), start.map(|byte| column_at(text, byte)));
    let (message, hint) = reword(fault.message());
    ConfigError { file: file.to_owned(), line, column, layer: None, message, hint }
}

/// The line, counted from 1, that holds this byte.
pub(crate) fn line_at(text: &str, byte: usize) -> usize {
    text.as_bytes().iter().take(byte).filter(|&&b| b == b'\n').count() + 1
}

/// The column, counted from 1 in characters, of this byte.
fn column_at(text: &str, byte: usize) -> usize {
    let before = text.get(..byte).unwrap_or(text);
    before.rsplit('\n').next().unwrap_or_default().chars().count() + 1
}

/// serde words an unknown name as "unknown field `x`, expected one of `a`, `b`": every name stands in backticks.
fn reword(message: &str) -> (String, Option<String>) {
    let Some(what) = ["field", "variant"].into_iter().find(|what| message.starts_with(&format!("unknown {what} `")))
    else {
        return (capitalised(&message.replace("expected u64", "expected a whole number of 1 or more")), None);
    };
    let mut names = message.split('`').skip(1).step_by(2);
    let given = names.next().unwrap_or_default();
    let known: Vec<&str> = names.collect();
    let what = if what == "field" { "field" } else { "value" };
    let hint = match nearest(given, &known) {
        Some(name) => format!("Did you mean `{name}`?"),
        None => format!("Known here: `{}`.", known.join("`, `")),
    };
    (format!("Unknown {what} `{given}`."), Some(hint))
}

fn nearest<'a>(given: &str, known: &[&'a str]) -> Option<&'a str> {
    let distance = |name: &str| strsim::damerau_levenshtein(given, name);
    let best = known.iter().copied().min_by_key(|name| distance(name))?;
    (distance(best) <= (given.chars().count() / 3).max(1)).then_some(best)
}

/// A sentence out of a reader's message, which starts small and has no full stop.
fn capitalised(message: &str) -> String {
    let message = message.trim().replace('\n', "; ");
    let mut letters = message.chars();
    let first = letters.next().map(|letter| letter.to_uppercase().to_string()).unwrap_or_default();
    let stop = if message.ends_with('.') { "" } else { "." };
    format!("{first}{}{stop}", letters.as_str())
}
