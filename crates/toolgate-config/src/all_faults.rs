//! Everything that is wrong with a configuration file, not only the first thing: what is wrong is taken out, and the rest is
//! read again.

use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeArray, DeString, DeTable, DeValue};

use crate::config::Config;
use crate::error::{ConfigError, from_toml};

/// Faults that are looked for in one file.
const MOST_FAULTS: usize = 100;

/// What is wrong with the text of a file, in the order of its lines; `source` is how errors call it.
pub fn all_faults(text: &str, source: &str) -> Vec<ConfigError> {
    let (mut table, misread) = DeTable::parse_recoverable(text);
    let mut faults: Vec<ConfigError> = misread.iter().map(|fault| from_toml(fault, text, source)).collect();
    // Where the text itself can't be read, what its values are isn't known.
    while misread.is_empty() && faults.len() < MOST_FAULTS {
        let Err(fault) = Config::deserialize(toml::Deserializer::from(table.clone())) else { break };
        faults.push(from_toml(&fault, text, source));
        if !fault.span().is_some_and(|span| remove(table.get_mut(), span.start)) {
            break;
        }
    }
    faults.sort_by_key(|fault| (fault.line, fault.column));
    faults
}

/// Removes the innermost entry that this byte is in. False if there is none.
fn remove(table: &mut DeTable<'_>, byte: usize) -> bool {
    if table.iter_mut().any(|(_, value)| remove_inside(value, byte)) {
        return true;
    }
    let holds = |key: &Spanned<DeString<'_>>, value: &Spanned<DeValue<'_>>| {
        key.span().contains(&byte) || value.span().contains(&byte)
    };
    let found = table.iter().find(|(key, value)| holds(key, value)).map(|(key, _)| key.get_ref().to_string());
    found.is_some_and(|name| table.remove(name.as_str()).is_some())
}

fn remove_inside(value: &mut Spanned<DeValue<'_>>, byte: usize) -> bool {
    match value.get_mut() {
        DeValue::Table(table) => remove(table, byte),
        DeValue::Array(array) => {
            if array.iter_mut().any(|entry| remove_inside(entry, byte)) {
                return true;
            }
            let Some(at) = array.iter().position(|entry| entry.span().contains(&byte)) else { return false };
            let mut rest = DeArray::new();
            array.iter().enumerate().filter(|(index, _)| *index != at).for_each(|(_, entry)| rest.push(entry.clone()));
            *array = rest;
            true
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> String {
        all_faults(text, "f").iter().map(|fault| format!("{fault}\n")).collect()
    }

    #[test]
    fn every_fault_is_found_with_its_line_and_column() {
        let text = "preste = 'full'\n\
                    [limits]\n\
                    lines = 'many'\n\
                    byts = 5\n\
                    bytes = -1\n\
                    [[rules]]\n\
                    path = 'a'\n\
                    [[rules]]\n\
                    decision = 'deny'\n\
                    pth = 'a'\n\
                    [[rules]]\n\
                    decision = 'deny'\n\
                    path = 'b'\n\
                    [comands]\n\
                    allow = ['x']\n\
                    [tools]\n\
                    deny = ['a', 5]\n";
        insta::assert_snapshot!(found(text), @r#"
        f:1:1: Unknown field `preste`. Did you mean `preset`?
        f:3:9: Invalid type: string "many", expected a whole number of 1 or more.
        f:4:1: Unknown field `byts`. Did you mean `bytes`?
        f:5:9: Invalid value: integer `-1`, expected a whole number of 1 or more.
        f:6:1: Missing field `decision`.
        f:10:1: Unknown field `pth`. Did you mean `path`?
        f:14:2: Unknown field `comands`. Did you mean `commands`?
        f:17:14: Invalid type: integer `5`, expected a string.
        "#);
        assert_eq!(found("preset = 'full'\n[limits]\nlines = 5\n"), "");
    }

    #[test]
    fn text_that_cannot_be_read_is_told_as_such() {
        insta::assert_snapshot!(found("preset = \n[limits\nlines = 5"), @r#"
        f:1:10: String values must be quoted, expected literal string.
        f:2:8: Unclosed table, expected `]`.
        "#);
    }
}
