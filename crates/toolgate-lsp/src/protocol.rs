//! The few shapes of the protocol that are needed, read leniently: a field that is missing or of another kind counts as
//! absent.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolgate_contract::CodeSeverity;

/// How columns are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PositionEncoding {
    Utf8,
    Utf16,
}

impl PositionEncoding {
    /// What a server chose; without a word from it, UTF-16.
    pub(crate) fn of(capabilities: &Value) -> Self {
        match capabilities["positionEncoding"].as_str() {
            Some("utf-8") => Self::Utf8,
            _ => Self::Utf16,
        }
    }

    /// How much a character adds to a column.
    pub(crate) fn width(self, character: char) -> u32 {
        match self {
            Self::Utf8 => character.len_utf8() as u32,
            Self::Utf16 => character.len_utf16() as u32,
        }
    }
}

/// A place in a document, counted from 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Position {
    pub(crate) line: u32,
    pub(crate) character: u32,
}

/// A part of a document.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Range {
    pub(crate) start: Position,
    pub(crate) end: Position,
}

impl Range {
    /// A range in a message.
    pub(crate) fn of(value: &Value) -> Option<Self> {
        Self::deserialize(value).ok()
    }
}

/// A part of a document that has a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Location {
    pub(crate) uri: String,
    pub(crate) range: Range,
}

impl Location {
    /// All locations of an answer: one, several, or links.
    pub(crate) fn all(answer: &Value) -> Vec<Self> {
        match answer {
            Value::Array(several) => several.iter().filter_map(Self::one).collect(),
            single => Self::one(single).into_iter().collect(),
        }
    }

    fn one(value: &Value) -> Option<Self> {
        let (uri, range) = match value.get("targetUri") {
            Some(uri) => (uri, value.get("targetSelectionRange").or_else(|| value.get("targetRange"))?),
            None => (value.get("uri")?, value.get("range")?),
        };
        Some(Self { uri: uri.as_str()?.to_owned(), range: Range::of(range)? })
    }
}

/// The severity of a diagnostic; one without is an error, as editors show it.
pub(crate) fn severity(value: &Value) -> CodeSeverity {
    match value.as_u64() {
        Some(2) => CodeSeverity::Warning,
        Some(3) => CodeSeverity::Information,
        Some(4) => CodeSeverity::Hint,
        _ => CodeSeverity::Error,
    }
}

/// The kinds of symbols, by their number.
pub(crate) fn symbol_kind(number: u64) -> &'static str {
    const KINDS: [&str; 26] = [
        "file",
        "module",
        "namespace",
        "package",
        "class",
        "method",
        "property",
        "field",
        "constructor",
        "enum",
        "interface",
        "function",
        "variable",
        "constant",
        "string",
        "number",
        "boolean",
        "array",
        "object",
        "key",
        "null",
        "enum member",
        "struct",
        "event",
        "operator",
        "type parameter",
    ];
    let index = usize::try_from(number).unwrap_or_default().wrapping_sub(1);
    KINDS.get(index).copied().unwrap_or("symbol")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn locations_come_in_three_shapes() {
        let range = json!({ "start": { "line": 1, "character": 2 }, "end": { "line": 1, "character": 3 } });
        let plain = json!({ "uri": "file:///a", "range": range });
        let link = json!({ "targetUri": "file:///a", "targetRange": range, "targetSelectionRange": range });
        for (answer, count) in [(plain.clone(), 1), (json!([plain, link]), 2), (Value::Null, 0), (json!([{}]), 0)] {
            let found = Location::all(&answer);
            assert_eq!(found.len(), count, "{answer}");
            assert!(found.iter().all(|location| location.uri == "file:///a" && location.range.start.line == 1));
        }
        assert_eq!((symbol_kind(12), symbol_kind(0), symbol_kind(99)), ("function", "symbol", "symbol"));
    }
}
