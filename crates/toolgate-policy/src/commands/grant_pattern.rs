//! The narrowest pattern that a person can sensibly allow for a command: `cargo test *`, not `cargo *`, and never an
//! interpreter or `sudo`, which would allow anything.

use super::simple_command::{Argument, Need, SimpleCommand};
use super::{PathContext, analyze};

/// Programs whose first operand decides what runs.
const TASKS: &[&str] = &[
    "make",
    "gmake",
    "just",
    "task",
    "npm run",
    "yarn run",
    "pnpm run",
    "bun run",
    "deno task",
    "rake",
    "invoke",
    "nox",
    "tox",
];

/// What the approval of a command may cover later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantPattern {
    /// The words that a command must begin with.
    pub words: Vec<String>,
    /// Whether no further words may follow.
    pub exact: bool,
}

impl std::fmt::Display for GrantPattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let part =
            SimpleCommand { words: self.words.iter().map(Argument::literal).collect(), ..SimpleCommand::default() };
        f.write_str(&part.text())?;
        f.write_str(if self.exact { "" } else { " *" })
    }
}

/// The pattern for one simple command; none if not all of it is known.
pub fn grant_pattern(command: &str) -> Option<GrantPattern> {
    let analysis = analyze(command, ".", &PathContext::default());
    let part = analysis.parts.first().filter(|_| analysis.fault.is_none())?;
    let words: Vec<String> = part.words.iter().map(|word| word.known().map(str::to_owned)).collect::<Option<_>>()?;
    if words.is_empty() || !part.unclear.is_empty() {
        return None;
    }
    let is_alone = analysis.parts.len() == 1
        && !part.interprets_text
        && !part.is_wrapper
        && !part.needs.contains(&Need::Privilege);
    match naming_words(part).filter(|_| is_alone) {
        Some(words) => Some(GrantPattern { words, exact: false }),
        None => Some(GrantPattern { words, exact: true }),
    }
}

/// The words that name the action.
fn naming_words(part: &SimpleCommand) -> Option<Vec<String>> {
    let plain: Vec<String> = part.without_globals().iter().map(|word| word.text.clone()).collect();
    let Some(known) = part.form else {
        // A program that no table knows: the program, with any arguments.
        return Some(vec![plain.first()?.clone()]);
    };
    let mut words: Vec<String> = plain.iter().take(known).cloned().collect();
    if TASKS.contains(&words.join(" ").as_str()) {
        let task = plain.get(known).filter(|word| !word.starts_with('-'))?;
        words.push(task.clone());
    }
    Some(words)
}

/// The words of a line that is one plain simple command, such as an entry of a list in configuration.
pub(crate) fn plain_words(line: &str) -> Option<Vec<String>> {
    let script = super::syntax::parse(line).ok().filter(|script| script.documents.is_empty())?;
    let [statement] = &script.list.0[..] else { return None };
    let [command] = &statement.first.0[..] else { return None };
    let super::syntax::ShellCommandKind::Simple { assignments, words } = &command.shape else { return None };
    let is_plain =
        statement.rest.is_empty() && !statement.background && assignments.is_empty() && command.redirections.is_empty();
    words
        .iter()
        .map(super::syntax::ShellWord::literal)
        .collect::<Option<Vec<_>>>()
        .filter(|words| is_plain && !words.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grant_is_as_narrow_as_makes_sense() {
        for (command, expected) in [
            ("cargo test --lib", Some("cargo test *")),
            ("git commit -m 'a b'", Some("git commit *")),
            ("git -C sub commit", Some("git commit *")),
            ("npm run build -- --watch", Some("npm run build *")),
            ("make test", Some("make test *")),
            ("./deploy.sh production", Some("./deploy.sh *")),
            ("curl https://example.org", Some("curl *")),
            ("python3 -c 'print(1)'", Some("python3 -c 'print(1)'")),
            ("bash -c ls", Some("bash -c ls")),
            ("sudo apt install x", Some("sudo apt install x")),
            ("env X=1 make", Some("env X=1 make")),
            ("git commit -m $message", None),
            ("$program", None),
        ] {
            let pattern = grant_pattern(command).map(|pattern| pattern.to_string());
            assert_eq!(pattern.as_deref(), expected, "{command}");
        }
    }

    #[test]
    fn lists_hold_plain_words() {
        assert_eq!(plain_words("git status"), Some(vec!["git".into(), "status".into()]));
        for line in ["", "a | b", "a; b", "a > b", "$x", "X=1 a", "a &", "a\rb", "a *"] {
            assert_eq!(plain_words(line), None, "{line}");
        }
    }
}
