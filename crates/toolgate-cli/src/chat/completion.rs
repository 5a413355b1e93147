//! Completes `@path` in the input by the names in the workspace, and `/command` by the commands.
#![allow(clippy::disallowed_methods, reason = "shows the person the names in their own directory")]

use std::path::Path;

use super::slash_command::SlashCommand;

/// The most names that are shown.
const MAX_SHOWN: usize = 40;

/// What a word can become.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Completion {
    /// How many bytes before the cursor are replaced.
    pub(super) replaced: usize,
    /// What stands there then.
    pub(super) with: String,
    /// The names to choose from, if there are several.
    pub(super) choices: Vec<String>,
}

/// Completes the word before the cursor.
pub(super) fn complete(before: &str, workspace: &Path) -> Option<Completion> {
    let word = before.rsplit(char::is_whitespace).next().unwrap_or_default();
    if word.starts_with('/') && word.len() == before.len() {
        let names = SlashCommand::NAMES.iter().filter(|name| name.starts_with(word));
        return chosen(word, word, names.map(|name| format!("{name} ")).collect());
    }
    let path = word.strip_prefix('@')?;
    let (directory, start) = path.rsplit_once('/').map_or(("", path), |(directory, start)| (directory, start));
    if Path::new(directory).is_absolute() || path.split('/').any(|part| part == "..") {
        return None;
    }
    chosen(word, start, names(&workspace.join(directory), start))
}

/// The names in a directory that begin like this; hidden ones only if asked for, and never Toolgate's own.
fn names(directory: &Path, start: &str) -> Vec<String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let is_shown = name.starts_with(start) && (start.starts_with('.') || !name.starts_with('.'));
            let is_directory = entry.path().is_dir();
            (is_shown && name != ".toolgate").then(|| format!("{name}{}", if is_directory { "/" } else { " " }))
        })
        .collect();
    names.sort();
    names
}

/// The name, or as much as all of them have in common.
fn chosen(word: &str, start: &str, names: Vec<String>) -> Option<Completion> {
    let first = names.first()?;
    let common = names.iter().fold(first.as_str(), |common, name| {
        let shared = common.char_indices().zip(name.chars()).find(|((_, one), other)| one != other);
        shared.map_or(&common[..common.len().min(name.len())], |((at, _), _)| &common[..at])
    });
    let with = format!("{}{common}", &word[..word.len() - start.len()]);
    let choices = if names.len() > 1 {
        names.iter().take(MAX_SHOWN).map(|name| name.trim().to_owned()).collect()
    } else {
        Vec::new()
    };
    Some(Completion { replaced: word.len(), with, choices })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_completed_as_far_as_they_agree() {
        let directory = tempfile::tempdir().unwrap();
        for path in ["src/main.rs", "src/mail.rs", "Cargo.toml", ".env", ".toolgate/x"] {
            let path = directory.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let with = |before: &str| complete(before, directory.path()).map(|found| found.with);
        assert_eq!(with("look at @sr").as_deref(), Some("@src/"));
        assert_eq!(with("@src/m").as_deref(), Some("@src/mai"));
        assert_eq!(complete("@src/m", directory.path()).unwrap().choices, ["mail.rs", "main.rs"]);
        assert_eq!(with("@src/main").as_deref(), Some("@src/main.rs "));
        assert_eq!(with("@.").as_deref(), Some("@.env "));
        assert_eq!((with("@../"), with("@/etc/"), with("src"), with("@nothing")), (None, None, None, None));
    }

    #[test]
    fn commands_are_completed_at_the_start_of_the_input() {
        let with = |before: &str| complete(before, Path::new("/")).map(|found| found.with);
        assert_eq!(with("/und").as_deref(), Some("/undo "));
        assert_eq!(with("look /und"), None);
    }
}
