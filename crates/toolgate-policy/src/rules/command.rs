//! Rules about commands: the words that a command begins with, `command = ["git", "push"]`, each of which may be a
//! pattern. With `exact`, no further words may follow.

use std::fmt;

use globset::GlobMatcher;
use toolgate_contract::Decision;

use super::word_glob;
use crate::command::plain_words;
use crate::error::Fault;

/// Speaks of every plain command that begins so. Nothing here matches a command that isn't plain.
#[derive(Debug)]
pub(crate) struct CommandRule {
    words: Vec<GlobMatcher>,
    exact: bool,
    /// What tightens also means the program when it is called by its path; what loosens doesn't.
    by_path: bool,
}

impl CommandRule {
    pub(crate) fn new(words: &[String], exact: bool, decision: Decision) -> Result<Self, Fault> {
        if words.is_empty() {
            return Err(Fault::new("The command has no words.", "Name at least the program: `command = [\"git\"]`."));
        }
        let words = words.iter().map(|word| word_glob(word, "command word")).collect::<Result<_, _>>()?;
        Ok(Self { words, exact, by_path: decision != Decision::Allow })
    }

    pub(crate) fn matches(&self, words: &[String]) -> bool {
        let enough = if self.exact { words.len() == self.words.len() } else { words.len() >= self.words.len() };
        enough
            && self.is_program(&words[0])
            && self.words.iter().zip(words).skip(1).all(|(wanted, word)| wanted.is_match(word))
    }

    fn is_program(&self, program: &str) -> bool {
        let name = program.rsplit('/').next().unwrap_or(program);
        self.words[0].is_match(program) || self.by_path && self.words[0].is_match(name)
    }

    pub(crate) fn matches_example(&self, example: &str) -> bool {
        plain_words(example).is_some_and(|words| self.matches(&words))
    }
}

impl fmt::Display for CommandRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<_> = self.words.iter().map(|word| word.glob().glob()).collect();
        write!(f, "command {}{}", words.join(" "), if self.exact { " (exact)" } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(words: &[&str], exact: bool, decision: Decision) -> CommandRule {
        let words: Vec<_> = words.iter().map(|word| (*word).to_owned()).collect();
        CommandRule::new(&words, exact, decision).unwrap()
    }

    #[test]
    fn a_command_begins_with_the_words() {
        for (words, command, expected) in [
            (&["git", "push"][..], "git push", true),
            (&["git", "push"], "git push origin main", true),
            (&["git", "push"], "git pull", false),
            (&["git", "push"], "git", false),
            (&["git", "push"], "'git' \"push\"", true),
            (&["cargo", "{test,check}"], "cargo check --all", true),
            (&["npm", "run", "test*"], "npm run test:unit", true),
            (&["git"], "git push; rm x", false),
            (&["rm"], "/bin/rm x", true),
        ] {
            assert_eq!(rule(words, false, Decision::Deny).matches_example(command), expected, "{words:?} {command}");
        }
    }

    #[test]
    fn loosening_means_exactly_the_program_that_it_names() {
        assert!(!rule(&["git"], false, Decision::Allow).matches_example("./git status"));
        assert!(rule(&["/usr/bin/git"], false, Decision::Allow).matches_example("/usr/bin/git status"));
    }

    #[test]
    fn an_exact_rule_takes_no_further_words() {
        let rule = rule(&["rm", "build"], true, Decision::Allow);
        assert!(rule.matches_example("rm build") && !rule.matches_example("rm build -rf src"));
    }
}
