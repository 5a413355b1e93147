//! The lines of a native `grep` reply, which each client lays out in its own way.

use regex::Regex;
use serde_json::Value;

/// A line that a search shows.
pub(crate) struct MatchLine<'a> {
    /// Its number, from 1.
    pub(crate) number: i64,
    /// The line.
    pub(crate) text: &'a str,
    /// Whether it matches; otherwise it is around a match.
    pub(crate) is_match: bool,
}

/// A match with the lines around it, in order.
pub(crate) fn matched_lines(found: &Value) -> Vec<MatchLine<'_>> {
    let (before, after) = (texts(&found["before"]), texts(&found["after"]));
    let matched: Vec<&str> = found["text"].as_str().unwrap_or_default().split('\n').collect();
    let first = found["line"].as_i64().unwrap_or(1) - before.len() as i64;
    let (matches_from, matches_until) = (before.len(), before.len() + matched.len());
    let lines = before.into_iter().chain(matched).chain(after).enumerate();
    lines
        .map(|(index, text)| MatchLine {
            number: first + index as i64,
            text,
            is_match: (matches_from..matches_until).contains(&index),
        })
        .collect()
}

/// Only what matches in the lines of a match, each part with the number of its line.
pub(crate) fn only_matches<'a>(found: &'a Value, expression: &Regex) -> Vec<MatchLine<'a>> {
    let (text, first) = (found["text"].as_str().unwrap_or_default(), found["line"].as_i64().unwrap_or(1));
    let parts = expression.find_iter(text).filter(|part| !part.is_empty());
    let lines = parts.flat_map(|part| {
        let number = first + text[..part.start()].matches('\n').count() as i64;
        (number..).zip(part.as_str().split('\n'))
    });
    lines.map(|(number, text)| MatchLine { number, text, is_match: true }).collect()
}

/// The texts of a list.
pub(crate) fn texts(list: &Value) -> Vec<&str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_matches_is_shown_with_the_number_of_its_line() {
        let found = json!({ "line": 7, "text": "one two one\nthree one" });
        let parts = |pattern: &str| -> Vec<(i64, String)> {
            let expression = Regex::new(pattern).unwrap();
            only_matches(&found, &expression).iter().map(|line| (line.number, line.text.to_owned())).collect()
        };
        assert_eq!(parts("one"), [(7, "one".into()), (7, "one".into()), (8, "one".into())]);
        assert_eq!(parts("(?s)o one.three"), [(7, "o one".into()), (8, "three".into())]);
        assert_eq!(parts("x*"), []);
    }
}
