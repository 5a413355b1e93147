//! What commands may change in their own shell, found without following them.

use super::syntax::{CommandList, ShellCommand, ShellCommandKind, ShellWord};

/// What a list of commands may change in its own shell.
#[derive(Default)]
pub(super) struct ShellChanges {
    pub(super) variables: Vec<String>,
    pub(super) directory: bool,
}

impl ShellChanges {
    pub(super) fn by_list(&mut self, list: &CommandList) {
        for statement in &list.0 {
            let pipelines = [&statement.first].into_iter().chain(statement.rest.iter().map(|(_, pipeline)| pipeline));
            for pipeline in pipelines.filter(|pipeline| pipeline.0.len() == 1) {
                self.by_command(&pipeline.0[0]);
            }
        }
    }

    fn by_command(&mut self, command: &ShellCommand) {
        match &command.shape {
            ShellCommandKind::Simple { assignments, words } => {
                if words.is_empty() {
                    self.variables.extend(assignments.iter().map(|assignment| assignment.name.clone()));
                }
                self.by_words(words);
            }
            ShellCommandKind::Group(list) => self.by_list(list),
            ShellCommandKind::For { variable, body, .. } => {
                self.variables.push(variable.clone());
                self.by_list(body);
            }
            ShellCommandKind::Loop { condition, body, .. } => {
                [condition, body].into_iter().for_each(|list| self.by_list(list))
            }
            ShellCommandKind::If { branches, otherwise } => {
                for (condition, body) in branches {
                    self.by_list(condition);
                    self.by_list(body);
                }
                self.by_list(otherwise);
            }
            ShellCommandKind::Case { arms, .. } => arms.iter().for_each(|(_, body)| self.by_list(body)),
            ShellCommandKind::Function { body, .. } => self.by_command(body),
            ShellCommandKind::Subshell(_) | ShellCommandKind::Test(_) | ShellCommandKind::Arithmetic(..) => {}
        }
    }

    fn by_words(&mut self, words: &[ShellWord]) {
        let Some(first) = words.first() else { return };
        // `\cd` and `"cd"` are `cd`; a word that isn't literal may be anything.
        match first.literal().as_deref().unwrap_or("eval") {
            "cd" | "pushd" | "popd" | "chdir" | "eval" | "source" | "." | "builtin" | "command" => {
                self.directory = true
            }
            "export" | "declare" | "typeset" | "local" | "readonly" | "read" | "unset" | "mapfile" | "readarray"
            | "printf" | "getopts" | "let" => {
                let name = |word: &ShellWord| word.written.split(['=', '+']).next().unwrap_or_default().to_owned();
                self.variables.extend(words[1..].iter().map(name));
            }
            _ => {}
        }
    }
}
