//! Maps the tool names in a skill, written for another client, to the names of the built-in tools.

/// Names that other clients use for our tools.
const ALIASES: &[(&str, &str)] = &[
    ("applypatch", "patch"),
    ("askuserquestion", "ask"),
    ("bash", "shell"),
    ("glob", "find"),
    ("ls", "list"),
    ("multiedit", "edit"),
    ("notebookedit", "notebook"),
    ("notebookread", "notebook"),
    ("runscript", "script"),
    ("runterminalcmd", "shell"),
    ("todoread", "todo_read"),
    ("todowrite", "todo_write"),
    ("updateplan", "plan"),
    ("viewimage", "image"),
    ("webfetch", "fetch"),
];

/// Tools that only affect the agent itself: every skill may use them, since they give no access to anything.
const AGENT_TOOLS: &[&str] = &["artifact", "ask", "display", "plan", "skill", "todo_read", "todo_write"];

/// The front matter's list in our own names: `Read Bash(git log:*)` is `read`, `shell(git log)`.
pub(super) fn canonical_names(listed: &str) -> Vec<String> {
    split(listed).iter().map(|entry| canonical_name(entry)).collect()
}

/// Adds the tools that every agent needs.
pub(super) fn with_agent_tools(mut tools: Vec<String>) -> Vec<String> {
    tools.extend(AGENT_TOOLS.iter().map(|name| (*name).to_owned()));
    tools
}

/// The program that an entry such as `shell(git log)` allows.
pub(super) fn program(tool: &str) -> Option<&str> {
    tool.strip_prefix("shell(")?.strip_suffix(')')?.split_whitespace().next().filter(|word| !word.contains(['*', '?']))
}

fn canonical_name(entry: &str) -> String {
    let (name, words) = match entry.strip_suffix(')').and_then(|entry| entry.split_once('(')) {
        Some((name, words)) => (name, Some(words)),
        None => (entry, None),
    };
    let plain: String = name.chars().filter(|letter| !matches!(letter, '_' | '-')).collect::<String>().to_lowercase();
    let name = match ALIASES.iter().find(|(theirs, _)| *theirs == plain) {
        Some((_, canonical_names)) => (*canonical_names).to_owned(),
        None => name.to_lowercase(),
    };
    match words.map(|words| words.trim_end_matches('*').trim_end_matches(':').trim()) {
        None | Some("") => name,
        Some(words) => format!("{name}({words})"),
    }
}

/// Entries are separated by spaces or commas, but not inside brackets.
fn split(listed: &str) -> Vec<String> {
    let (mut entries, mut depth) = (vec![String::new()], 0_usize);
    for letter in listed.chars() {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        match letter {
            ' ' | ',' | '\t' | '\n' if depth == 0 => entries.push(String::new()),
            _ => entries.last_mut().expect("there is always one").push(letter),
        }
    }
    entries.retain(|entry| !entry.is_empty());
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_other_clients_become_ours() {
        for (listed, expected) in [
            ("read grep", &["read", "grep"][..]),
            ("Read, Write, Glob", &["read", "write", "find"]),
            ("Bash(git log:*) Bash(npm run test)", &["shell(git log)", "shell(npm run test)"]),
            ("Bash(*)", &["shell"]),
            ("TodoWrite todo_read", &["todo_write", "todo_read"]),
            ("NotebookEdit", &["notebook"]),
            ("mcp__github__list", &["mcp__github__list"]),
            ("", &[]),
        ] {
            assert_eq!(canonical_names(listed), expected, "{listed}");
        }
    }

    #[test]
    fn programs_are_the_first_words_of_allowed_commands() {
        let programs = |listed: &str| -> Vec<String> {
            canonical_names(listed).iter().filter_map(|tool| program(tool)).map(str::to_owned).collect()
        };
        assert_eq!(programs("Read Bash(git log:*) Bash(npm run test) Bash Bash(*.sh:*)"), ["git", "npm"]);
    }
}
