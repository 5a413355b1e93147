//! Named keys, as the bytes that a terminal sends for them.

use toolgate_contract::ToolError;

/// Keys with names.
const NAMED: &[(&str, &[u8])] = &[
    ("enter", b"\r"),
    ("return", b"\r"),
    ("tab", b"\t"),
    ("shift-tab", b"\x1b[Z"),
    ("space", b" "),
    ("backspace", b"\x7f"),
    ("escape", b"\x1b"),
    ("esc", b"\x1b"),
    ("up", b"\x1b[A"),
    ("down", b"\x1b[B"),
    ("right", b"\x1b[C"),
    ("left", b"\x1b[D"),
    ("home", b"\x1b[H"),
    ("end", b"\x1b[F"),
    ("insert", b"\x1b[2~"),
    ("delete", b"\x1b[3~"),
    ("page-up", b"\x1b[5~"),
    ("page-down", b"\x1b[6~"),
    ("f1", b"\x1bOP"),
    ("f2", b"\x1bOQ"),
    ("f3", b"\x1bOR"),
    ("f4", b"\x1bOS"),
    ("f5", b"\x1b[15~"),
    ("f6", b"\x1b[17~"),
    ("f7", b"\x1b[18~"),
    ("f8", b"\x1b[19~"),
    ("f9", b"\x1b[20~"),
    ("f10", b"\x1b[21~"),
    ("f11", b"\x1b[23~"),
    ("f12", b"\x1b[24~"),
];

/// The bytes that a terminal sends for these keys, in order.
pub(super) fn bytes(keys: &[String]) -> Result<Vec<u8>, ToolError> {
    let mut sent = Vec::new();
    for key in keys {
        sent.extend(one(&key.to_lowercase()).ok_or_else(|| unknown(key))?);
    }
    Ok(sent)
}

fn one(key: &str) -> Option<Vec<u8>> {
    if let Some((_, bytes)) = NAMED.iter().find(|(name, _)| *name == key) {
        return Some(bytes.to_vec());
    }
    if let Some(with_control) = key.strip_prefix("ctrl-").or_else(|| key.strip_prefix("c-")) {
        return control(with_control).map(|byte| vec![byte]);
    }
    let with_alt = key.strip_prefix("alt-").or_else(|| key.strip_prefix("m-"))?;
    let mut characters = with_alt.chars();
    match (characters.next(), characters.next()) {
        (Some(character), None) => Some(format!("\x1b{character}").into_bytes()),
        _ => None,
    }
}

/// A letter or symbol together with the control key.
fn control(key: &str) -> Option<u8> {
    match key.as_bytes() {
        [letter @ b'a'..=b'z'] => Some(letter - b'a' + 1),
        [b'@'] | b"space" => Some(0),
        [sign @ b'['..=b'_'] => Some(sign - b'@'),
        _ => None,
    }
}

fn unknown(key: &str) -> ToolError {
    let names: Vec<&str> = NAMED.iter().map(|(name, _)| *name).collect();
    ToolError::invalid_args(format!("There is no key `{key}`.")).with_hint(format!(
        "Keys are {}, and `ctrl-` or `alt-` with a letter. Other text goes into `text`.",
        names.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_sent_as_a_terminal_would() {
        for (key, expected) in [
            ("ctrl-c", Some(&b"\x03"[..])),
            ("Ctrl-D", Some(b"\x04")),
            ("ctrl-]", Some(b"\x1d")),
            ("alt-x", Some(b"\x1bx")),
            ("up", Some(b"\x1b[A")),
            ("Enter", Some(b"\r")),
            ("ctrl-enter", None),
            ("hello", None),
            ("", None),
        ] {
            assert_eq!(bytes(&[key.to_owned()]).ok().as_deref(), expected, "{key}");
        }
    }
}
