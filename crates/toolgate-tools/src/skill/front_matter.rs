//! Parses the front matter of a `SKILL.md`: the fields of the Agent Skills format, in the subset of YAML that they
//! need. Anything outside this subset is refused with its line number instead of guessed at.

/// The front matter of a skill.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FrontMatter {
    pub(super) name: String,
    pub(super) description: String,
    /// The tools that it allows, as written.
    pub(super) allowed_tools: Option<String>,
    /// The programs that it says it requires: `required-commands` in its `metadata`.
    pub(super) required_commands: Vec<String>,
}

const FIELDS: &[&str] = &["name", "description", "license", "compatibility", "metadata", "allowed-tools"];

/// Parses and checks the front matter, and returns the text after it.
pub(super) fn read<'a>(text: &'a str, directory: &str) -> Result<(FrontMatter, &'a str), String> {
    let (head, body) = divide(text)?;
    let mut facts = FrontMatter::default();
    for (line, name, value) in fields(head)? {
        match name {
            "name" => facts.name = value,
            "description" => facts.description = value,
            "allowed-tools" => facts.allowed_tools = Some(value),
            "metadata" => facts.required_commands = required_commands(&value),
            "compatibility" if value.chars().count() > 500 => {
                return Err(format!("line {line}: `compatibility` has more than 500 characters."));
            }
            known if FIELDS.contains(&known) => {}
            other => {
                return Err(format!("line {line}: unknown field `{other}`. The fields are {}.", FIELDS.join(", ")));
            }
        }
    }
    check(&facts, directory)?;
    Ok((facts, body))
}

fn check(facts: &FrontMatter, directory: &str) -> Result<(), String> {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let name = &facts.name;
    if !(1..=64).contains(&name.len()) || !name.bytes().all(is_plain) {
        return Err("`name` must have 1 to 64 of the characters a-z, 0-9 and `-`.".into());
    }
    if name.starts_with('-') || name.ends_with('-') || name.contains("--") {
        return Err("`name` must not begin or end with `-`, nor have two in a row.".into());
    }
    if name != directory {
        return Err(format!("its `name` is `{name}`, but its directory is called `{directory}`."));
    }
    match facts.description.chars().count() {
        1..=1024 => Ok(()),
        count => Err(format!("`description` must have 1 to 1,024 characters, and has {count}.")),
    }
}

/// The lines between the two `---`, and the text after them.
fn divide(text: &str) -> Result<(&str, &str), String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let rest = text.strip_prefix("---").and_then(|rest| rest.strip_prefix("\r\n").or(rest.strip_prefix('\n')));
    let rest = rest.ok_or("it doesn't begin with a line `---`.")?;
    let mut at = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == "---" {
            return Ok((&rest[..at], rest[at + line.len()..].trim_start_matches(['\r', '\n'])));
        }
        at += line.len();
    }
    Err("its front matter has no end: a line `---` is missing.".into())
}

/// Each field with its line number. Indented lines belong to the field above them.
fn fields(head: &str) -> Result<Vec<(usize, &str, String)>, String> {
    let mut found: Vec<(usize, &str, String)> = Vec::new();
    let mut deeper: Vec<&str> = Vec::new();
    // The first line of the file is `---`.
    for (number, line) in (2..).zip(head.lines()) {
        if line.trim().is_empty() || line.trim_start().starts_with('#') {
            continue;
        }
        if line.starts_with([' ', '\t', '-']) {
            deeper.push(line);
            continue;
        }
        close(&mut found, &mut deeper)?;
        let (name, value) = line.split_once(':').ok_or_else(|| format!("line {number} is not `field: value`."))?;
        if found.iter().any(|(_, known, _)| *known == name.trim()) {
            return Err(format!("line {number}: `{}` is given twice.", name.trim()));
        }
        found.push((number, name.trim(), value.trim().to_owned()));
    }
    close(&mut found, &mut deeper)?;
    Ok(found)
}

/// Completes a field's value with its indented lines.
fn close(found: &mut [(usize, &str, String)], deeper: &mut Vec<&str>) -> Result<(), String> {
    let lines = std::mem::take(deeper);
    let Some((number, name, value)) = found.last_mut() else {
        return if lines.is_empty() { Ok(()) } else { Err("line 2 belongs to no field.".into()) };
    };
    *value = match *name {
        // A mapping, of which only one key has a meaning here.
        "metadata" => lines.join("\n"),
        _ => scalar(value, &lines).map_err(|fault| format!("line {number}: `{name}` {fault}"))?,
    };
    Ok(())
}

/// The programs that the metadata names, separated by spaces or commas.
fn required_commands(metadata: &str) -> Vec<String> {
    let listed = metadata.lines().find_map(|line| line.trim().strip_prefix("required-commands:")).unwrap_or_default();
    let names = listed.split([' ', ',', '\t']).map(|name| name.trim_matches(['"', '\'', '[', ']']));
    names.filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// A YAML string: plain, quoted, folded, or a list of words.
fn scalar(value: &str, lines: &[&str]) -> Result<String, String> {
    let trimmed = || lines.iter().map(|line| line.trim());
    match value.as_bytes().first() {
        Some(b'|') => Ok(trimmed().collect::<Vec<_>>().join("\n")),
        Some(b'>') => Ok(trimmed().collect::<Vec<_>>().join(" ")),
        Some(b'"') if lines.is_empty() => {
            serde_json::from_str(value).map_err(|_| "is not a valid string in double quotes.".to_owned())
        }
        Some(b'\'') if lines.is_empty() => {
            let inner = value.strip_prefix('\'').and_then(|value| value.strip_suffix('\''));
            inner.map(|text| text.replace("''", "'")).ok_or_else(|| "lacks its closing quote.".into())
        }
        Some(b'[') if lines.is_empty() => {
            let inner = value.strip_prefix('[').and_then(|value| value.strip_suffix(']'));
            inner.map(|text| text.replace(['"', '\''], "")).ok_or_else(|| "lacks its closing bracket.".into())
        }
        None if trimmed().all(|line| line.starts_with("- ")) => {
            Ok(trimmed().map(|line| line[2..].trim().trim_matches(['"', '\''])).collect::<Vec<_>>().join(" "))
        }
        Some(b'"' | b'\'' | b'[' | b'{' | b'&' | b'*' | b'!' | b'%' | b'@' | b'`') => {
            Err("uses YAML syntax that isn't supported; put it on one line, in double quotes.".into())
        }
        _ => Ok([value].into_iter().chain(trimmed()).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_skill_may_say() {
        let text = "---\nname: pdf-forms\ndescription: >\n  Fill in forms.\n  Use it for PDF.\nlicense: MIT\n\
                    metadata:\n  author: ada\n  required-commands: \"pdftk, qpdf\"\nallowed-tools: Read Bash(pdftk:*)\n---\n\n# Forms\n";
        let (facts, body) = read(text, "pdf-forms").unwrap();
        assert_eq!(facts.description, "Fill in forms. Use it for PDF.");
        assert_eq!(facts.allowed_tools.as_deref(), Some("Read Bash(pdftk:*)"));
        assert_eq!(facts.required_commands, ["pdftk", "qpdf"]);
        assert_eq!(body, "# Forms\n");
    }

    #[test]
    fn texts_in_every_writing() {
        for (written, expected) in [
            ("description: plain: with a colon", "plain: with a colon"),
            ("description: \"quo\\\"ted\"", "quo\"ted"),
            ("description: 'it''s'", "it's"),
            ("description: |\n  one\n  two", "one\ntwo"),
            ("description: one\n  two", "one two"),
            ("description:\n  - one\n  - two", "one two"),
            ("description: [one, two]", "one, two"),
        ] {
            let text = format!("---\nname: a\n{written}\n---\n");
            assert_eq!(read(&text, "a").unwrap().0.description, expected, "{written}");
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        let long = format!("---\nname: a\ndescription: {}\n---\n", "x".repeat(1025));
        for (text, expected) in [
            ("# no front matter", "doesn't begin with"),
            ("---\nname: a\n", "has no end"),
            ("---\nname: A\ndescription: x\n---\n", "a-z, 0-9"),
            ("---\nname: b\ndescription: x\n---\n", "directory is called `a`"),
            ("---\nname: a\n---\n", "has 0"),
            ("---\nname: a\nname: a\ndescription: x\n---\n", "line 3: `name` is given twice"),
            ("---\nname: a\nauthor: x\ndescription: x\n---\n", "line 3: unknown field `author`"),
            ("---\nname: a\ndescription: {x: y}\n---\n", "isn't supported"),
            ("---\nname: a\ndescription: \"x\n---\n", "double quotes"),
            ("---\n  - x\nname: a\n---\n", "belongs to no field"),
            (&long, "has 1025"),
        ] {
            let fault = read(text, "a").unwrap_err();
            assert!(fault.contains(expected), "{text:?}: {fault}");
        }
    }
}
