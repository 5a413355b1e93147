//! The lines of a native `grep` reply, which each client lays out in its own way.

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

/// The texts of a list.
pub(crate) fn texts(list: &Value) -> Vec<&str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}
