//! Adds one entry to somebody's configuration file without touching anything else in it: comments, order and spacing
//! stay. What comes out is read back and compared; where that can't be done safely, the person adds it by hand.

use jsonc_parser::ast;
use serde_json::Value;

use super::jsonc;

/// Some editors write it at the beginning of a file.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// How it went.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum MergeOutcome {
    /// The file's new text.
    Changed(String),
    /// An entry of that name stands there already.
    There,
    /// The file isn't what was expected; it is better left alone.
    ByHand,
}

/// JSON, with or without comments: an entry of the object under `key`.
pub(super) fn into_json(text: &str, key: &str, name: &str, entry: &Value) -> MergeOutcome {
    let text = if text.trim().is_empty() { "{}\n" } else { text };
    let body = text.trim_start_matches(BYTE_ORDER_MARK);
    let Some(outer) = jsonc::parse(body) else { return MergeOutcome::ByHand };
    let changed = match outer.get(key).map(|property| &property.value) {
        None => insert(body, &outer, key, &serde_json::json!({ name: entry }), 1),
        Some(ast::Value::Object(inner)) if inner.get(name).is_some() => return MergeOutcome::There,
        Some(ast::Value::Object(inner)) => insert(body, inner, name, entry, 2),
        Some(_) => return MergeOutcome::ByHand,
    };
    let mut expected = Value::from(ast::Value::Object(outer));
    expected[key][name] = entry.clone();
    match jsonc::parse(&changed).map(|read| Value::from(ast::Value::Object(read))) {
        Some(read) if read == expected => {
            MergeOutcome::Changed(format!("{}{changed}", &text[..text.len() - body.len()]))
        }
        _ => MergeOutcome::ByHand,
    }
}

/// Puts a member at the beginning of an object, indented as deep as it belongs.
fn insert(text: &str, object: &ast::Object<'_>, key: &str, value: &Value, depth: usize) -> String {
    let indent = "  ".repeat(depth);
    let value = serde_json::to_string_pretty(value).unwrap_or_default().replace('\n', &format!("\n{indent}"));
    let (start, end) = (object.range.start + 1, object.range.end - 1);
    let (before, inside, after) = (&text[..start], &text[start..end], &text[end..]);
    let (gap, inside) = match object.properties.is_empty() {
        false => (",".into(), inside),
        true if inside.trim().is_empty() => {
            (format!("\n{}", "  ".repeat(depth - 1)), inside.trim_start_matches([' ', '\t']))
        }
        // A comment, which has its own line end.
        true => (String::new(), inside.trim_start_matches([' ', '\t'])),
    };
    format!("{before}\n{indent}{}: {value}{gap}{inside}{after}", Value::from(key))
}

/// TOML: a table at the end of the file.
pub(super) fn into_toml(text: &str, key: &str, name: &str, table: &toml::Table) -> MergeOutcome {
    let Ok(mut expected) = text.parse::<toml::Table>() else { return MergeOutcome::ByHand };
    let known = expected.entry(key).or_insert_with(|| toml::Table::new().into());
    let Some(known) = known.as_table_mut() else { return MergeOutcome::ByHand };
    if known.contains_key(name) {
        return MergeOutcome::There;
    }
    known.insert(name.to_owned(), table.clone().into());
    let gap = match text {
        "" => "",
        text if text.ends_with('\n') => "\n",
        _ => "\n\n",
    };
    let changed = format!("{text}{gap}[{key}.{name}]\n{table}");
    match changed.parse::<toml::Table>() {
        Ok(read) if read == expected => MergeOutcome::Changed(changed),
        _ => MergeOutcome::ByHand,
    }
}

/// YAML: an entry under a key of the first level. Only the plainest form is touched, a block of indented entries.
pub(super) fn into_yaml(text: &str, key: &str, name: &str, fields: &[(&str, Value)]) -> MergeOutcome {
    let lines: Vec<&str> = text.lines().collect();
    let heads = lines.iter().enumerate().filter(|(_, line)| line.starts_with(&format!("{key}:")));
    let head = match heads.map(|(number, _)| number).collect::<Vec<_>>()[..] {
        [] => {
            let gap = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
            return MergeOutcome::Changed(format!("{text}{gap}{key}:\n{}", yaml_entry(name, fields, "  ")));
        }
        [head] => head,
        _ => return MergeOutcome::ByHand,
    };
    let is_block = without_comment(lines[head]) == format!("{key}:");
    let first = lines[head + 1..].iter().find(|line| !line.trim().is_empty() && !line.trim_start().starts_with('#'));
    let Some(first) = first.filter(|_| is_block) else { return MergeOutcome::ByHand };
    let indent = &first[..first.len() - first.trim_start().len()];
    let is_entry = |line: &str| line.strip_prefix(indent).is_some_and(|rest| !rest.starts_with([' ', '-', '?']));
    if indent.is_empty() || indent.contains('\t') || !without_comment(first).ends_with(':') {
        return MergeOutcome::ByHand;
    }
    let block = lines[head + 1..].iter().take_while(|line| line.is_empty() || line.starts_with([' ', '#']));
    if block.into_iter().any(|line| is_entry(line) && without_comment(line).trim() == format!("{name}:")) {
        return MergeOutcome::There;
    }
    let (before, after) = lines.split_at(head + 1);
    MergeOutcome::Changed(format!("{}\n{}{}\n", before.join("\n"), yaml_entry(name, fields, indent), after.join("\n")))
}

/// A line without the comment at its end. A `#` begins one only after a space.
fn without_comment(line: &str) -> &str {
    line.find(" #").map_or(line, |comment| &line[..comment]).trim_end()
}

/// JSON's scalars and flow collections are YAML too, so values need no escaping of their own.
fn yaml_entry(name: &str, fields: &[(&str, Value)], indent: &str) -> String {
    let lines = fields.iter().map(|(field, value)| format!("{indent}{indent}{field}: {value}\n"));
    std::iter::once(format!("{indent}{name}:\n")).chain(lines).collect()
}
