//! Reads JSON with comments and trailing commas, as editors keep their settings, and remembers where objects begin.

use serde_json::{Map, Value};

/// How deep values may lie in each other.
const DEEPEST: usize = 64;

/// A value and, if it is an object, where it is.
pub(super) struct JsoncValue {
    pub(super) value: Value,
    pub(super) object: Option<ObjectSpan>,
}

/// Where an object is and what it holds.
pub(super) struct ObjectSpan {
    /// Just behind its opening brace.
    pub(super) start: usize,
    /// Bytes between its braces.
    pub(super) length: usize,
    pub(super) members: Vec<ObjectMember>,
}

/// A member of an object.
pub(super) struct ObjectMember {
    pub(super) key: String,
    pub(super) object: Option<ObjectSpan>,
}

/// Reads a whole text; none when it is anything else.
pub(super) fn parse(text: &str) -> Option<JsoncValue> {
    let mut reader = JsoncParser { text, at: 0 };
    let node = reader.value(0)?;
    reader.space()?;
    (reader.at == text.len()).then_some(node)
}

struct JsoncParser<'a> {
    text: &'a str,
    at: usize,
}

impl JsoncParser<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    /// Skips space and comments; none when a comment has no end.
    fn space(&mut self) -> Option<()> {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start_matches(['\u{feff}', ' ', '\t', '\r', '\n']);
            let skipped = rest.len() - trimmed.len();
            let comment = match trimmed {
                text if text.starts_with("//") => text.find('\n').unwrap_or(text.len()),
                text if text.starts_with("/*") => text.find("*/")? + 2,
                _ => 0,
            };
            self.at += skipped + comment;
            if skipped + comment == 0 {
                return Some(());
            }
        }
    }

    /// Takes this character if it comes next, after any space.
    fn take(&mut self, character: char) -> Option<bool> {
        self.space()?;
        let is_next = self.rest().starts_with(character);
        self.at += if is_next { character.len_utf8() } else { 0 };
        Some(is_next)
    }

    fn value(&mut self, depth: usize) -> Option<JsoncValue> {
        if depth > DEEPEST {
            return None;
        }
        if self.take('{')? {
            return self.object(depth);
        }
        let value = if self.take('[')? { self.array(depth)? } else { self.plain()? };
        Some(JsoncValue { value, object: None })
    }

    fn object(&mut self, depth: usize) -> Option<JsoncValue> {
        let start = self.at;
        let (mut map, mut members) = (Map::new(), Vec::new());
        while !self.take('}')? {
            let key = self.plain()?.as_str()?.to_owned();
            if !self.take(':')? || map.contains_key(&key) {
                return None;
            }
            let JsoncValue { value, object } = self.value(depth + 1)?;
            map.insert(key.clone(), value);
            members.push(ObjectMember { key, object });
            if !self.take(',')? && !self.rest().starts_with('}') {
                return None;
            }
        }
        let length = self.at - 1 - start;
        Some(JsoncValue { value: Value::Object(map), object: Some(ObjectSpan { start, length, members }) })
    }

    fn array(&mut self, depth: usize) -> Option<Value> {
        let mut items = Vec::new();
        while !self.take(']')? {
            items.push(self.value(depth + 1)?.value);
            if !self.take(',')? && !self.rest().starts_with(']') {
                return None;
            }
        }
        Some(Value::Array(items))
    }

    /// A string, a number or a word.
    fn plain(&mut self) -> Option<Value> {
        self.space()?;
        let mut values = serde_json::Deserializer::from_str(self.rest()).into_iter::<Value>();
        let value = values.next()?.ok()?;
        self.at += values.byte_offset();
        (!value.is_object() && !value.is_array()).then_some(value)
    }
}
