//! What commands may change in their own shell, found without following them.

use super::syntax::{Command, List, Shape, Word};

/// What a list of commands may change in its own shell.
#[derive(Default)]
pub(super) struct Changed {
    pub(super) variables: Vec<String>,
    pub(super) folder: bool,
}

impl Changed {
    pub(super) fn by_list(&mut self, list: &List) {
        for statement in &list.0 {
            let pipelines = [&statement.first].into_iter().chain(statement.rest.iter().map(|(_, pipeline)| pipeline));
            for pipeline in pipelines.filter(|pipeline| pipeline.0.len() == 1) {
                self.by_command(&pipeline.0[0]);
            }
        }
    }

    fn by_command(&mut self, command: &Command) {
        match &command.shape {
            Shape::Simple { assignments, words } => {
                if words.is_empty() {
                    self.variables.extend(assignments.iter().map(|assignment| assignment.name.clone()));
                }
                self.by_words(words);
            }
            Shape::Group(list) => self.by_list(list),
            Shape::For { variable, body, .. } => {
                self.variables.push(variable.clone());
                self.by_list(body);
            }
            Shape::Loop { condition, body, .. } => [condition, body].into_iter().for_each(|list| self.by_list(list)),
            Shape::If { branches, otherwise } => {
                for (condition, body) in branches {
                    self.by_list(condition);
                    self.by_list(body);
                }
                self.by_list(otherwise);
            }
            Shape::Case { arms, .. } => arms.iter().for_each(|(_, body)| self.by_list(body)),
            Shape::Function { body, .. } => self.by_command(body),
            Shape::Subshell(_) | Shape::Test(_) | Shape::Arithmetic(..) => {}
        }
    }

    fn by_words(&mut self, words: &[Word]) {
        let Some(first) = words.first() else { return };
        // `\cd` and `"cd"` are `cd`; what isn't plain may be anything.
        match first.literal().as_deref().unwrap_or("eval") {
            "cd" | "pushd" | "popd" | "chdir" | "eval" | "source" | "." | "builtin" | "command" => self.folder = true,
            "export" | "declare" | "typeset" | "local" | "readonly" | "read" | "unset" | "mapfile" | "readarray"
            | "printf" | "getopts" | "let" => {
                let name = |word: &Word| word.written.split(['=', '+']).next().unwrap_or_default().to_owned();
                self.variables.extend(words[1..].iter().map(name));
            }
            _ => {}
        }
    }
}
