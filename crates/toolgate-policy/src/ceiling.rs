//! A set of tools that a call is held to (C-14). It can only narrow. Where it names a tool with words in brackets, such as
//! `shell(git log)`, only commands of which every part begins with such words are within it.

use toolgate_contract::{Decision, Declaration, Layer};

use crate::call_effects::{CallEffects, CommandEffects};
use crate::commands::SimpleCommand;
use crate::judge::about;
use crate::opinion::{Opinion, OpinionSource};

/// A set of tools that a call is held to: an active skill's, a sub-agent's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ceiling {
    /// Whose it is, such as `skill review`.
    pub source: String,
    /// The tools, by name; one that runs commands may have the first words of some behind it, in brackets.
    pub tools: Vec<String>,
}

impl Ceiling {
    /// Whether the tool is in it at all.
    pub(crate) fn names(&self, tool: &str) -> bool {
        self.tools.iter().any(|entry| entry == tool || words_for(entry, tool).is_some())
    }

    /// Whether it lets the tool run whatever it likes.
    fn names_whole(&self, tool: &str) -> bool {
        self.tools.iter().any(|entry| entry == tool)
    }

    /// What can't be understood begins with no words that anybody could know.
    fn holds(&self, tool: &str, command: &CommandEffects) -> bool {
        let begins = |part: &SimpleCommand, words: &str| {
            let mut known = part.words.iter().map(|word| word.known());
            words.split_whitespace().all(|word| known.next() == Some(Some(word)))
        };
        let within = |part: &SimpleCommand| {
            self.tools.iter().filter_map(|entry| words_for(entry, tool)).any(|w| begins(part, w))
        };
        command.fault.is_none() && !command.parts.is_empty() && command.parts.iter().all(|case| within(&case.part))
    }
}

/// The words in the brackets behind a tool's name.
fn words_for<'a>(entry: &'a str, tool: &str) -> Option<&'a str> {
    entry.strip_prefix(tool)?.strip_prefix('(')?.strip_suffix(')')
}

/// Refuses commands that a ceiling's brackets don't cover.
pub(crate) fn on_commands_outside_ceiling(
    tool: &Declaration,
    ceilings: &[Ceiling],
    case: &CallEffects<'_>,
    opinions: &mut Vec<Opinion>,
) {
    for (index, ceiling) in ceilings.iter().enumerate().filter(|(_, ceiling)| !ceiling.names_whole(&tool.name)) {
        for command in case.commands.iter().filter(|command| !ceiling.holds(&tool.name, command)) {
            opinions.push(about(command.effect, Decision::Deny, Layer::Builtin, OpinionSource::Ceiling(index)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{judge_tool, policy, tool};
    use toolgate_contract::{Effect, Permission, Risk};

    #[test]
    fn brackets_hold_every_part_of_a_command() {
        let shell = tool("shell", Risk::Medium, &[Permission::ProcExec]);
        let tools = ["read", "shell(git log)", "shell(git status)", "shell(wc)"];
        let ceiling = Ceiling { source: "skill review".into(), tools: tools.map(str::to_owned).to_vec() };
        for (command, expected) in [
            ("git log --oneline", Decision::Allow),
            ("git status && git log | wc -l", Decision::Allow),
            ("git commit -m x", Decision::Deny),
            ("git log | sh", Decision::Deny),
            ("git $(echo log)", Decision::Deny),
            ("git log; (", Decision::Deny),
            ("env git log", Decision::Deny),
            ("", Decision::Deny),
        ] {
            let effects = [Effect::Run { command: command.into(), workdir: String::new() }];
            let verdict = judge_tool(&policy(""), &shell, &effects, std::slice::from_ref(&ceiling));
            assert_eq!(verdict.decision, expected, "{command}: {verdict:?}");
        }
        assert!(ceiling.names("shell") && !ceiling.names("she") && !ceiling.names("write"));
    }
}
