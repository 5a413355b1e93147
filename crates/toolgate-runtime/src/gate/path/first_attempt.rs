//! The changes of a first attempt. A command that lacked a right may have changed something before it failed; that stays when it
//! runs once more, so the reply says what both did.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use toolgate_contract::{SettledChanges, ToolError};

const RAN_TWICE: &str =
    "The command ran twice: it failed for want of a right, and ran again with it. These are the changes of both.";

/// The result of a second attempt, with the changes of the first one.
pub(super) fn with_first_changes(
    second: Result<Value, ToolError>,
    first: Result<Value, ToolError>,
) -> Result<Value, ToolError> {
    let first = match &first {
        Ok(payload) => changes(payload),
        Err(error) => error.details.as_ref().and_then(changes),
    };
    let Some(first) = first.filter(|first| !first.is_empty()) else { return second };
    match second {
        Ok(mut payload) => {
            add(&mut payload, first);
            Ok(payload)
        }
        Err(mut error) => {
            add(error.details.get_or_insert_with(|| json!({})), first);
            Err(error)
        }
    }
}

fn changes(facts: &Value) -> Option<SettledChanges> {
    serde_json::from_value(facts.get("changes")?.clone()).ok()
}

fn add(facts: &mut Value, first: SettledChanges) {
    let both = changes(facts).map_or_else(|| first.clone(), |second| joined(first.clone(), second));
    if let Value::Object(facts) = facts {
        facts.insert("changes".into(), json!(both));
    }
}

/// What two commands changed that ran one after the other. Of paths that a list leaves out nobody can tell whether both changed
/// them: they count twice.
fn joined(first: SettledChanges, second: SettledChanges) -> SettledChanges {
    let signs = |changes: &SettledChanges| {
        let one = |path: &String| Some((path.get(1..)?.to_owned(), path.chars().next()?));
        changes.paths.iter().filter_map(one).collect::<BTreeMap<String, char>>()
    };
    let (mut paths, later) = (signs(&first), signs(&second));
    let mut both = SettledChanges {
        created: first.created + second.created,
        changed: first.changed + second.changed,
        deleted: first.deleted + second.deleted,
        folded: [first.folded, second.folded].concat(),
        kept_aside: first.kept_aside,
        more_kept_aside: first.more_kept_aside + second.more_kept_aside,
        refused: [first.refused, second.refused].concat(),
        notes: first.notes,
        ..second
    };
    for (path, sign) in later {
        let net = match (paths.get(&path), sign) {
            (None, sign) => Some(sign),
            (Some(earlier), sign) => {
                [*earlier, sign].into_iter().for_each(|sign| *counter(&mut both, sign) -= 1);
                let net = followed(*earlier, sign);
                net.into_iter().for_each(|net| *counter(&mut both, net) += 1);
                net
            }
        };
        match net {
            Some(net) => drop(paths.insert(path, net)),
            None => drop(paths.remove(&path)),
        }
    }
    both.paths = paths.into_iter().map(|(path, sign)| format!("{sign}{path}")).collect();
    let is_new = |one: &String| !both.notes.contains(one);
    let notes: Vec<String> = second.notes.into_iter().filter(is_new).collect();
    both.notes.extend(notes);
    both.notes.insert(0, RAN_TWICE.to_owned());
    let known = |path: &str| both.kept_aside.iter().any(|one| one.path == path);
    let quarantined: Vec<_> = second.kept_aside.into_iter().filter(|one| !known(&one.path)).collect();
    both.kept_aside.extend(quarantined);
    both
}

/// The count that a change with this sign is part of.
fn counter(changes: &mut SettledChanges, sign: char) -> &mut usize {
    match sign {
        '+' => &mut changes.created,
        '-' => &mut changes.deleted,
        _ => &mut changes.changed,
    }
}

/// What comes of two changes of one path.
fn followed(first: char, second: char) -> Option<char> {
    match (first, second) {
        ('+', '-') => None,
        ('+', _) => Some('+'),
        ('-', '+') => Some('~'),
        (_, second) => Some(second),
    }
}
