//! A set of tools that a call is limited to. A ceiling can only narrow. An entry with words in parentheses, such as
//! `shell(git log)`, allows only command lines in which every simple command begins with these words.

use toolgate_contract::{Decision, Declaration, Layer};

use crate::call_effects::{CallEffects, CommandEffects};
use crate::commands::SimpleCommand;
use crate::judge::about;
use crate::opinion::{Opinion, OpinionSource};

/// A set of tools that a call is limited to, such as that of an active skill or of a sub-agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ceiling {
    /// Who sets it, such as `skill review`.
    pub source: String,
    /// The tools by name. A tool that runs commands can be followed by the first words of a command, in parentheses.
    pub tools: Vec<String>,
}

impl Ceiling {
    /// Whether it names the tool, with or without parentheses.
    pub(crate) fn names(&self, tool: &str) -> bool {
        self.tools.iter().any(|entry| entry == tool || words_for(entry, tool).is_some())
    }

    /// Whether it allows every call of the tool.
    fn allows_every_call(&self, tool: &str) -> bool {
        self.tools.iter().any(|entry| entry == tool)
    }

    /// Whether it covers the command. A command that can't be analyzed begins with no known words, so it isn't covered.
    fn covers(&self, tool: &str, command: &CommandEffects) -> bool {
        let begins = |part: &SimpleCommand, words: &str| {
            let mut known = part.words.iter().map(|word| word.known());
            words.split_whitespace().all(|word| known.next() == Some(Some(word)))
        };
        let within = |part: &SimpleCommand| {
            self.tools.iter().filter_map(|entry| words_for(entry, tool)).any(|w| begins(part, w))
        };
        command.fault.is_none()
            && !command.parts.is_empty()
            && command.parts.iter().all(|command| within(&command.part))
    }
}

/// The words in the parentheses after a tool's name.
fn words_for<'a>(entry: &'a str, tool: &str) -> Option<&'a str> {
    entry.strip_prefix(tool)?.strip_prefix('(')?.strip_suffix(')')
}

/// Denies commands that the words in a ceiling's parentheses don't cover.
pub(crate) fn on_commands_outside_ceiling(
    tool: &Declaration,
    ceilings: &[Ceiling],
    call: &CallEffects<'_>,
    opinions: &mut Vec<Opinion>,
) {
    for (index, ceiling) in ceilings.iter().enumerate().filter(|(_, ceiling)| !ceiling.allows_every_call(&tool.name)) {
        for command in call.commands.iter().filter(|command| !ceiling.covers(&tool.name, command)) {
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
