//! Adds one entry to somebody's configuration file without touching anything else in it: comments, order and spacing
//! stay. What comes out is read back and compared; where that can't be done safely, the person adds it by hand.

use serde_json::Value;

use super::jsonc;

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
    let Some(root) = jsonc::parse(text) else { return MergeOutcome::ByHand };
    let (Some(outer), Value::Object(before)) = (root.object, root.value) else { return MergeOutcome::ByHand };
    let inner = outer.members.iter().find(|member| member.key == key);
    let changed = match (inner, before.get(key)) {
        (_, Some(Value::Object(known))) if known.contains_key(name) => return MergeOutcome::There,
        (Some(member), Some(Value::Object(_))) => {
            let Some(object) = &member.object else { return MergeOutcome::ByHand };
            insert(text, object, name, entry, 2)
        }
        (None, None) => insert(text, &outer, key, &serde_json::json!({ name: entry }), 1),
        _ => return MergeOutcome::ByHand,
    };
    let mut expected = before;
    expected.entry(key).or_insert_with(|| serde_json::json!({}))[name] = entry.clone();
    match jsonc::parse(&changed) {
        Some(root) if root.value == Value::Object(expected) => MergeOutcome::Changed(changed),
        _ => MergeOutcome::ByHand,
    }
}

/// Puts a member at the beginning of an object, indented as deep as it belongs.
fn insert(text: &str, object: &jsonc::ObjectSpan, key: &str, value: &Value, depth: usize) -> String {
    let indent = "  ".repeat(depth);
    let value = serde_json::to_string_pretty(value).unwrap_or_default().replace('\n', &format!("\n{indent}"));
    let (before, after) = text.split_at(object.start);
    let end = match object.members.is_empty() {
        // Whatever stands in an empty object is space or a comment, which has its own line end.
        true if after[..object.length].trim().is_empty() => format!("\n{}", "  ".repeat(depth - 1)),
        true => String::new(),
        false => ",".into(),
    };
    let rest = if object.members.is_empty() { after.trim_start_matches([' ', '\t']) } else { after };
    format!("{before}\n{indent}{}: {value}{end}{rest}", Value::from(key))
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
    let is_block = lines[head].trim_end() == format!("{key}:");
    let first = lines[head + 1..].iter().find(|line| !line.trim().is_empty() && !line.trim_start().starts_with('#'));
    let Some(first) = first.filter(|_| is_block) else { return MergeOutcome::ByHand };
    let indent = &first[..first.len() - first.trim_start().len()];
    let is_entry = |line: &str| line.strip_prefix(indent).is_some_and(|rest| !rest.starts_with([' ', '-', '?']));
    if indent.is_empty() || indent.contains('\t') || !first.trim_end().ends_with(':') {
        return MergeOutcome::ByHand;
    }
    let block = lines[head + 1..].iter().take_while(|line| line.is_empty() || line.starts_with([' ', '#']));
    if block.into_iter().any(|line| is_entry(line) && line.trim() == format!("{name}:")) {
        return MergeOutcome::There;
    }
    let (before, after) = lines.split_at(head + 1);
    MergeOutcome::Changed(format!("{}\n{}{}\n", before.join("\n"), yaml_entry(name, fields, indent), after.join("\n")))
}

/// JSON's scalars and flow collections are YAML too, so values need no escaping of their own.
fn yaml_entry(name: &str, fields: &[(&str, Value)], indent: &str) -> String {
    let lines = fields.iter().map(|(field, value)| format!("{indent}{indent}{field}: {value}\n"));
    std::iter::once(format!("{indent}{name}:\n")).chain(lines).collect()
}
