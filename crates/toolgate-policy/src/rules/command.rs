//! Rules about commands: the first words of a command, `command = ["git", "push"]`, each of which may be a pattern.
//! With `exact`, no further words may follow; `flags`, `workdir` and `writes` narrow the rule further.

use std::collections::HashMap;
use std::fmt;

use globset::GlobMatcher;
use toolgate_config::{ConfigFault, RuleConfig};
use toolgate_contract::{Access, Decision};

use super::{Rule, RuleKind, word_glob};
use crate::commands::{Argument, Certainty, PathContext, SimpleCommand, Touch, analyze};
use crate::path_glob::{CaseFolding, PathGlob, PathSet};

/// Matches every simple command that begins with these words.
#[derive(Debug)]
pub(crate) struct CommandRule {
    words: Vec<GlobMatcher>,
    exact: bool,
    flags: Option<Vec<GlobMatcher>>,
    workdir: Option<(String, PathSet)>,
    writes: Option<(Vec<String>, PathSet)>,
    /// A rule that tightens also matches uncertain cases: a program called by its path, an unknown word. A rule that
    /// loosens doesn't.
    tightens: bool,
}

impl CommandRule {
    pub(crate) fn new(words: &[String], config: &RuleConfig) -> Result<Self, ConfigFault> {
        if words.is_empty() {
            return Err(ConfigFault::new(
                "The command has no words.",
                "Name at least the program: `command = [\"git\"]`.",
            ));
        }
        let globs =
            |words: &[String]| words.iter().map(|word| word_glob(word, "command word")).collect::<Result<Vec<_>, _>>();
        let letters = if config.decision == Decision::Allow { CaseFolding::Exact } else { CaseFolding::Folded };
        let set = |patterns: &[String]| {
            let globs =
                patterns.iter().map(|pattern| PathGlob::new(pattern, letters)).collect::<Result<Vec<_>, _>>()?;
            PathSet::new(letters, globs.iter().map(|glob| (0, glob)))
        };
        let workdir = config.workdir.as_ref().map(|pattern| Ok((pattern.clone(), set(std::slice::from_ref(pattern))?)));
        let writes = config.writes.as_ref().map(|patterns| Ok((patterns.clone(), set(patterns)?)));
        Ok(Self {
            words: globs(words)?,
            exact: config.exact,
            flags: config.flags.as_deref().map(globs).transpose()?,
            workdir: workdir.transpose()?,
            writes: writes.transpose()?,
            tightens: config.decision != Decision::Allow,
        })
    }

    pub(crate) fn matches(&self, part: &SimpleCommand, paths: &PathContext) -> bool {
        if part.words.is_empty() || !self.tightens && !part.unclear.is_empty() {
            return false;
        }
        let plain = part.without_globals();
        let begins = self.begins(&part.words.iter().collect::<Vec<_>>()) || self.begins(&plain);
        begins && self.has_only_flags(&plain) && self.is_there(part, paths) && self.changes_only(part, paths)
    }

    fn begins(&self, words: &[&Argument]) -> bool {
        let enough = if self.exact { words.len() == self.words.len() } else { words.len() >= self.words.len() };
        let is_word = |(wanted, word): (&GlobMatcher, &&Argument)| match word.certainty {
            Certainty::Literal | Certainty::Pattern => wanted.is_match(&word.text),
            Certainty::Names | Certainty::Unclear => self.tightens,
        };
        enough && self.is_program(&words[0].text) && self.words.iter().zip(words).skip(1).all(is_word)
    }

    fn is_program(&self, program: &str) -> bool {
        let name = program.rsplit('/').next().unwrap_or(program);
        self.words[0].is_match(program) || self.tightens && self.words[0].is_match(name)
    }

    fn has_only_flags(&self, words: &[&Argument]) -> bool {
        let Some(flags) = &self.flags else { return true };
        let rest = words.iter().skip(self.words.len()).map(|word| word.text.as_str());
        rest.filter(|word| word.starts_with('-')).all(|word| {
            let name = word.split('=').next().unwrap_or(word);
            flags.iter().any(|flag| flag.is_match(word) || flag.is_match(name))
        })
    }

    fn is_there(&self, part: &SimpleCommand, paths: &PathContext) -> bool {
        let Some((_, set)) = &self.workdir else { return true };
        match &part.directory {
            Some(directory) => set.is_match(&paths.place(directory).path),
            None => self.tightens,
        }
    }

    fn changes_only(&self, part: &SimpleCommand, paths: &PathContext) -> bool {
        let Some((_, set)) = &self.writes else { return true };
        let mut changed = part.touches.iter().filter_map(|touch| match touch {
            Touch::Path { access: Access::Write | Access::Delete, path, .. } => Some(paths.place(path)),
            _ => None,
        });
        // The sandbox limits writes that the analysis can't see.
        changed.all(|place| place.root == 0 && set.is_match(&place.path))
    }

    /// An example is an entire command line: the rule matches if it matches one of its simple commands.
    pub(crate) fn matches_example(&self, example: &str) -> bool {
        let paths = PathContext::default();
        let analysis = analyze(example, ".", &paths);
        analysis.fault.is_none() && analysis.parts.iter().any(|part| self.matches(part, &paths))
    }
}

impl fmt::Display for CommandRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |globs: &[GlobMatcher]| globs.iter().map(|glob| glob.glob().glob()).collect::<Vec<_>>().join(" ");
        write!(f, "command {}{}", list(&self.words), if self.exact { " (exact)" } else { "" })?;
        if let Some(flags) = &self.flags {
            write!(f, ", options {}", if flags.is_empty() { "none".to_owned() } else { list(flags) })?;
        }
        if let Some((pattern, _)) = &self.workdir {
            write!(f, ", in {pattern}")?;
        }
        if let Some((patterns, _)) = &self.writes {
            write!(f, ", writing only {}", patterns.join(" "))?;
        }
        Ok(())
    }
}

/// The rules that may match a program, so that a thousand rules cost no more than the few that matter.
#[derive(Debug, Default)]
pub(crate) struct CommandIndex {
    by_program: HashMap<String, Vec<usize>>,
    /// Rules whose first word is a pattern.
    of_any: Vec<usize>,
}

impl CommandIndex {
    pub(crate) fn new(rules: &[Rule]) -> Self {
        let mut index = Self::default();
        for (at, rule) in rules.iter().enumerate() {
            let RuleKind::Command(command) = &rule.kind else { continue };
            let program = command.words[0].glob().glob();
            match program.contains(['*', '?', '[', '{', '\\']) {
                true => index.of_any.push(at),
                false => index.by_program.entry(base_name(program).to_owned()).or_default().push(at),
            }
        }
        index
    }

    /// The rules to check for a simple command.
    pub(crate) fn about(&self, part: &SimpleCommand) -> impl Iterator<Item = &usize> {
        let program = part.words.first().map_or("", |word| base_name(&word.text));
        self.by_program.get(program).into_iter().flatten().chain(&self.of_any)
    }
}

fn base_name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(words: &[&str], exact: bool, decision: Decision) -> CommandRule {
        let words: Vec<_> = words.iter().map(|word| (*word).to_owned()).collect();
        CommandRule::new(&words, &RuleConfig { exact, ..RuleConfig::new(decision) }).unwrap()
    }

    #[test]
    fn a_command_begins_with_the_words() {
        for (words, command, expected) in [
            (&["git", "push"][..], "git push", true),
            (&["git", "push"], "git push origin main", true),
            (&["git", "push"], "git pull", false),
            (&["git", "push"], "git", false),
            (&["git", "push"], "'git' \"push\"", true),
            (&["git", "push"], "git -C sub push", true),
            (&["git", "push"], "git $what", true),
            (&["git", "push"], "git log $what", false),
            (&["cargo", "{test,check}"], "cargo check --all", true),
            (&["npm", "run", "test*"], "npm run test:unit", true),
            (&["git"], "git push; rm x", true),
            (&["rm"], "cd a && sudo env X=1 timeout 5 rm x", true),
            (&["rm"], "/bin/rm x", true),
            (&["sudo"], "sudo rm x", true),
        ] {
            assert_eq!(rule(words, false, Decision::Deny).matches_example(command), expected, "{words:?} {command}");
        }
    }

    #[test]
    fn loosening_means_exactly_the_program_that_it_names() {
        for (words, command, expected) in [
            (&["git"][..], "./git status", false),
            (&["/usr/bin/git"], "/usr/bin/git status", true),
            (&["git", "push"], "git $what", false),
            (&["make"], "PATH=. make", false),
        ] {
            assert_eq!(rule(words, false, Decision::Allow).matches_example(command), expected, "{command}");
        }
    }

    #[test]
    fn an_exact_rule_takes_no_further_words() {
        let rule = rule(&["rm", "build"], true, Decision::Allow);
        assert!(rule.matches_example("rm build") && !rule.matches_example("rm build -rf src"));
    }

    #[test]
    fn options_directory_and_changes_narrow_a_rule() {
        let words = ["tool".to_owned()];
        let list = |words: &[&str]| Some(words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
        let allow = || RuleConfig::new(Decision::Allow);
        for (config, command, expected) in [
            (RuleConfig { flags: list(&["--fast", "-j*"]), ..allow() }, "tool --fast -j8 a", true),
            (RuleConfig { flags: list(&["--fast"]), ..allow() }, "tool --fast=2", true),
            (RuleConfig { flags: list(&["--fast"]), ..allow() }, "tool --slow", false),
            (RuleConfig { workdir: Some("sub/**".into()), ..allow() }, "cd sub && tool", true),
            (RuleConfig { workdir: Some("sub/**".into()), ..allow() }, "tool", false),
            (RuleConfig { writes: list(&["out/**"]), ..allow() }, "tool > out/a", true),
            (RuleConfig { writes: list(&["out/**"]), ..allow() }, "tool > src/a", false),
        ] {
            let rule = CommandRule::new(&words, &config).unwrap();
            assert_eq!(rule.matches_example(command), expected, "{rule}: {command}");
        }
    }
}
