//! Shortens the lists of a payload that is too large. The fields around them stay: they are few, and the caller needs them.
//! Of a list the first entries stay, each complete; only where not even the first one fits are its own lists shortened.

use serde_json::Value;

use super::TrimLimits;
use super::payload::{FIELD, STRUCTURE, common_cap, lines_of, push_name};

/// For how many bytes a text counts at most: longer ones are cut when the lists are short enough.
const TEXT_BYTES: usize = 256;
/// For how many lines a text counts at most.
const TEXT_LINES: usize = 4;

/// The entries that a list no longer has.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct OmittedEntries {
    /// The JSON pointer of the list.
    pub(super) pointer: String,
    /// How many entries are missing.
    pub(super) entries: usize,
    /// Their size as JSON.
    pub(super) bytes: usize,
    /// Their lines; an entry is at least one.
    pub(super) lines: usize,
}

/// Removes entries from the ends of lists until the payload fits in `limits`, apart from the texts that will be cut.
/// Lists share the room that the fields leave: the longest are shortened first, to a common size.
pub(super) fn shorten_lists(payload: &mut Value, limits: &TrimLimits) -> Vec<OmittedEntries> {
    shorten(payload, Size { bytes: limits.bytes, lines: limits.lines }, "")
}

fn shorten(value: &mut Value, room: Size, pointer: &str) -> Vec<OmittedEntries> {
    let mut survey = ListSurvey::default();
    survey.visit(value, &mut String::new());
    let left = room.less(survey.fields);
    let cap = Size {
        bytes: common_cap(survey.lists.iter().map(|(_, size)| size.bytes), left.bytes),
        lines: common_cap(survey.lists.iter().map(|(_, size)| size.lines), left.lines),
    };
    let mut omitted = Vec::new();
    for (list, _) in survey.lists.iter().filter(|(_, size)| !size.is_within(cap)) {
        if let Some(Value::Array(entries)) = value.pointer_mut(list) {
            omitted.extend(shorten_list(entries, cap, &format!("{pointer}{list}")));
        }
    }
    omitted
}

fn shorten_list(entries: &mut Vec<Value>, room: Size, pointer: &str) -> Vec<OmittedEntries> {
    let (mut used, mut kept) = (Size { bytes: STRUCTURE, lines: 0 }, 0);
    for entry in entries.iter() {
        used = used.plus(Size::of(entry));
        if !used.is_within(room) {
            break;
        }
        kept += 1;
    }
    let mut omitted = Vec::new();
    if let (0, Some(first)) = (kept, entries.first_mut()) {
        let mut part = first.clone();
        let inner = shorten(&mut part, room.less(Size { bytes: STRUCTURE, lines: 0 }), &format!("{pointer}/0"));
        if Size::of(&part).is_within(room) {
            (*first, omitted, kept) = (part, inner, 1);
        }
    }
    let removed = entries.split_off(kept);
    if !removed.is_empty() {
        omitted.push(OmittedEntries {
            pointer: pointer.to_owned(),
            entries: removed.len(),
            bytes: removed.iter().map(|entry| entry.to_string().len()).sum(),
            lines: removed.iter().map(|entry| Size::of(entry).lines.max(1)).sum(),
        });
    }
    omitted
}

/// The size of a part of a payload, with long texts as they will be cut.
#[derive(Debug, Clone, Copy, Default)]
struct Size {
    bytes: usize,
    lines: usize,
}

impl Size {
    fn of(value: &Value) -> Self {
        let inside = match value {
            Value::String(text) => Self { bytes: text.len().min(TEXT_BYTES), lines: lines_of(text).min(TEXT_LINES) },
            Value::Array(items) => items.iter().map(Self::of).fold(Self::default(), Self::plus),
            Value::Object(fields) => {
                let field = |(name, value): (&String, &Value)| Self::of(value).plus(Self::of_name(name));
                fields.iter().map(field).fold(Self::default(), Self::plus)
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => Self::default(),
        };
        inside.plus(Self { bytes: STRUCTURE, lines: 0 })
    }

    fn of_name(name: &str) -> Self {
        Self { bytes: name.len() + FIELD, lines: 0 }
    }

    fn plus(self, other: Self) -> Self {
        Self { bytes: self.bytes + other.bytes, lines: self.lines + other.lines }
    }

    fn less(self, other: Self) -> Self {
        Self { bytes: self.bytes.saturating_sub(other.bytes), lines: self.lines.saturating_sub(other.lines) }
    }

    fn is_within(self, room: Self) -> bool {
        self.bytes <= room.bytes && self.lines <= room.lines
    }
}

/// The lists of a value that aren't inside of other lists, by pointer, and the size of all the rest.
#[derive(Default)]
struct ListSurvey {
    lists: Vec<(String, Size)>,
    fields: Size,
}

impl ListSurvey {
    fn visit(&mut self, value: &Value, pointer: &mut String) {
        match value {
            Value::Array(_) => self.lists.push((pointer.clone(), Size::of(value))),
            Value::Object(fields) => {
                let length = pointer.len();
                for (name, field) in fields {
                    self.fields = self.fields.plus(Size::of_name(name));
                    push_name(pointer, name);
                    self.visit(field, pointer);
                    pointer.truncate(length);
                }
            }
            _ => self.fields = self.fields.plus(Size::of(value)),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const LIMITS: TrimLimits = TrimLimits { lines: 20, bytes: 400, line_chars: 200 };

    fn omitted(pointer: &str, entries: usize, bytes: usize, lines: usize) -> OmittedEntries {
        OmittedEntries { pointer: pointer.to_owned(), entries, bytes, lines }
    }

    #[test]
    fn what_fits_stays() {
        let payload = json!({"a": [1, 2, 3], "b": {"c": ["x", "y"]}, "text": "long ".repeat(1000)});
        let mut shortened = payload.clone();
        assert_eq!((shorten_lists(&mut shortened, &LIMITS), shortened), (vec![], payload));
    }

    #[test]
    fn the_longest_list_gives_way_to_the_others() {
        let mut payload = json!({"code": 1, "few": ["x", "y"], "in/side": {"many": vec!["name"; 100]}});
        let found = shorten_lists(&mut payload, &LIMITS);
        let left = payload["in/side"]["many"].as_array().unwrap().len();
        assert_eq!(payload["few"], json!(["x", "y"]));
        assert!(left > 40 && left < 67, "{payload}");
        assert_eq!(found, [omitted("/in~1side/many", 100 - left, (100 - left) * 6, 100 - left)]);
    }

    #[test]
    fn an_entry_that_is_too_large_is_shortened_inside() {
        let mut payload = json!([{"file": "f", "matches": vec!["a line"; 100]}, "second"]);
        let found = shorten_lists(&mut payload, &LIMITS);
        let left = payload[0]["matches"].as_array().unwrap().len();
        assert!(left > 5, "{payload}");
        assert_eq!(payload[0]["file"], "f");
        assert_eq!(found, [omitted("/0/matches", 100 - left, (100 - left) * 8, 100 - left), omitted("", 1, 8, 1)]);
    }

    #[test]
    fn lines_count_too() {
        let mut payload = json!({"notes": vec!["a\nb\n"; 30]});
        shorten_lists(&mut payload, &LIMITS);
        assert_eq!(payload["notes"].as_array().unwrap().len(), 10);
    }

    #[test]
    fn an_entry_that_fits_nowhere_is_counted() {
        let huge: Value = (0..100).map(|n| (format!("f{n}"), json!(n))).collect::<serde_json::Map<_, _>>().into();
        let bytes = huge.to_string().len();
        let mut payload = json!({ "list": [huge] });
        assert_eq!(shorten_lists(&mut payload, &LIMITS), [omitted("/list", 1, bytes, 1)]);
        assert_eq!(payload, json!({ "list": [] }));
    }
}
