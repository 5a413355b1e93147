//! Applies changed settings to the text of a configuration file. Everything else in it stays as it is, comments included.

use std::collections::BTreeMap;
use std::ops::Range;

use super::syntax::{ConfigEntry, ConfigHeader, ParsedConfig, SettingName, header, line};

/// The text with these settings changed: each has exactly these values.
pub(super) fn apply(text: &str, config: &ParsedConfig, settings: &BTreeMap<&SettingName, Vec<Option<&str>>>) -> String {
    let removed = config.entries.iter().filter(|entry| settings.contains_key(&entry.name));
    let mut cuts: Vec<(Range<usize>, String)> =
        removed.map(|entry| (whole_line(text, &entry.range), String::new())).collect();
    let mut appended = String::new();
    let mut sections: BTreeMap<(&str, Option<&str>), String> = BTreeMap::new();
    for (name, values) in settings {
        let lines = sections.entry((&name.section, name.subsection.as_deref())).or_default();
        values.iter().for_each(|value| lines.push_str(&line(&name.key, *value)));
    }
    for ((section, subsection), lines) in sections {
        let is_same =
            |header: &&ConfigHeader| (header.section.as_str(), header.subsection.as_deref()) == (section, subsection);
        let stays = |entry: &&ConfigEntry| {
            (entry.name.section.as_str(), entry.name.subsection.as_deref()) == (section, subsection)
                && !settings.contains_key(&entry.name)
        };
        match config.headers.iter().rfind(is_same) {
            None if lines.is_empty() => {}
            None => appended.push_str(&(header(section, subsection) + &lines)),
            // A section that nothing is left of goes as well.
            Some(_) if lines.is_empty() && !config.entries.iter().any(|entry| stays(&entry)) => {
                let headers = config.headers.iter().filter(is_same);
                cuts.extend(headers.map(|header| (whole_line(text, &header.range), String::new())));
            }
            Some(last) => cuts.push((last.range.end..last.range.end, starting_a_line(text, last.range.end, lines))),
        }
    }
    cuts.sort_by_key(|(range, _)| (range.start, range.end));
    let (mut result, mut at) = (String::with_capacity(text.len()), 0);
    for (range, instead) in cuts {
        result.push_str(&text[at.min(range.start)..range.start]);
        result.push_str(&instead);
        at = range.end.max(at);
    }
    result.push_str(&text[at..]);
    if !appended.is_empty() && !result.is_empty() && !result.ends_with('\n') {
        result.push('\n');
    }
    result + &appended
}

/// A range with the blanks before it, if it begins its line.
fn whole_line(text: &str, range: &Range<usize>) -> Range<usize> {
    let before = text[..range.start].trim_end_matches([' ', '\t']);
    let start = if before.is_empty() || before.ends_with('\n') { before.len() } else { range.start };
    start..range.end
}

/// Lines to insert after a header, which may be the end of the text or have a setting beside it.
fn starting_a_line(text: &str, at: usize, lines: String) -> String {
    if text[..at].ends_with('\n') { lines } else { format!("\n{lines}") }
}
