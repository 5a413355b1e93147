//! Walks a command's syntax tree as a shell would, along every branch that it might take, and collects the simple
//! commands.

use std::ops::Range;

use super::forms::KNOWLEDGE;
use super::shell_changes::ShellChanges;
use super::shell_state::ShellState;
use super::simple_command::SimpleCommand;
use super::syntax::{
    AndOr, CommandList, NestedList, Pipeline, Redirection, ShellCommand, ShellCommandKind, ShellWord, Statement,
};
use super::{CommandAnalysis, PathContext};

/// A command line with more simple commands than this is unknown.
const MOST_PARTS: usize = 2_000;

/// A command line that takes more steps than this, or sets more variables, is unknown.
const MOST_STEPS: usize = 10_000;
const MOST_VARIABLES: usize = 500;

/// A loop is followed for this many words.
const MOST_ROUNDS: usize = 64;

pub(super) struct ShellReader<'t> {
    pub(super) paths: &'t PathContext,
    pub(super) documents: &'t [ShellWord],
    pub(super) parts: Vec<SimpleCommand>,
    pub(super) shell: ShellState<'t>,
    pub(super) level: usize,
    /// How many commands given as text this one is nested in.
    pub(super) depth: usize,
    /// The functions that are being called.
    pub(super) calls: Vec<&'t ShellCommand>,
    /// What runs here may run many times concurrently: in a pipeline or in the background.
    pub(super) concurrent: bool,
    /// The simple commands whose output is the input here.
    pub(super) upstream: Range<usize>,
    /// The input of the command that this text was given to comes from the network or a decoder.
    pub(super) foreign_input: bool,
    /// The input here, if all of it is written in the command.
    pub(super) input: Option<String>,
    /// The input that a bare `cat` copies.
    pub(super) copied_input: Option<String>,
    /// Why the current words may run code that can't be analyzed.
    pub(super) hidden_code: Option<String>,
    pub(super) overflow: bool,
    /// Functions are defined somewhere, so a word may change more than it shows.
    pub(super) has_functions: bool,
    /// How many commands were visited, those in loops each time.
    pub(super) steps: usize,
}

impl<'t> ShellReader<'t> {
    pub(super) fn new(paths: &'t PathContext, documents: &'t [ShellWord], directories: Option<Vec<String>>) -> Self {
        Self {
            paths,
            documents,
            parts: Vec::new(),
            shell: ShellState::in_directories(directories),
            level: 0,
            depth: 0,
            calls: Vec::new(),
            concurrent: false,
            upstream: 0..0,
            foreign_input: false,
            input: None,
            copied_input: None,
            hidden_code: None,
            overflow: false,
            has_functions: false,
            steps: 0,
        }
    }

    /// A function with the name of a program, or with several definitions, makes the meaning of that name uncertain
    /// from the start: it may be defined in a branch, a loop or a trap.
    pub(super) fn watch_functions(&mut self, names: &[String]) {
        self.has_functions |= !names.is_empty();
        let twice = names.iter().enumerate().any(|(index, name)| names[..index].contains(name));
        let taken = |name: &&String| !KNOWLEDGE.forms(name).is_empty() || *name == "command_not_found_handle";
        if let Some(name) = names.iter().find(taken) {
            self.shell.mark_uncertain(format!("a function is called `{name}`, like a program"));
        } else if twice {
            self.shell.mark_uncertain("a function is defined more than once");
        }
    }

    pub(super) fn finish(self) -> CommandAnalysis {
        let fault = self.overflow.then(|| "it has too many parts, or they are nested too deep".to_owned());
        CommandAnalysis { parts: self.parts, fault }
    }

    pub(super) fn push(&mut self, part: SimpleCommand) {
        if self.parts.len() >= MOST_PARTS {
            self.overflow = true;
        } else {
            self.parts.push(part);
        }
    }

    pub(super) fn list(&mut self, list: &'t CommandList) {
        for statement in &list.0 {
            if self.overflow {
                return;
            }
            match statement.background {
                true => self.in_subshell(true, |reader| reader.statement(statement)),
                false => self.statement(statement),
            }
        }
    }

    /// Runs `read` in a subshell: changes to the shell's state are discarded.
    pub(super) fn in_subshell(&mut self, concurrent: bool, read: impl FnOnce(&mut Self)) {
        let (shell, was_concurrent) = (self.shell.clone(), self.concurrent);
        self.concurrent |= concurrent;
        read(self);
        self.shell = shell;
        self.concurrent = was_concurrent;
    }

    fn statement(&mut self, statement: &'t Statement) {
        let before = self.shell.directories.clone();
        self.pipeline(&statement.first);
        for (join, pipeline) in &statement.rest {
            let skipped = self.shell.clone();
            match join {
                AndOr::And => {}
                AndOr::Or => self.shell.merge_directories(before.clone()),
            }
            self.pipeline(pipeline);
            match (join, leaves(pipeline, !self.calls.is_empty())) {
                // `cd x || exit`: commands after it run in the directory that `cd` changed to.
                (AndOr::Or, true) => self.shell = skipped,
                (AndOr::Or, false) => self.shell.merge_branch(skipped),
                // The rest of an `&&` chain runs only if this succeeded.
                (AndOr::And, _) => self.forget_what_changed(&skipped),
            }
        }
        // A `cd` may have failed.
        if self.shell.directories != before
            && !statement
                .rest
                .iter()
                .any(|(join, pipeline)| *join == AndOr::Or && leaves(pipeline, !self.calls.is_empty()))
        {
            self.shell.merge_directories(before);
        }
    }

    /// Variables that changed in a branch that may not be taken are unknown afterwards.
    fn forget_what_changed(&mut self, before: &ShellState<'t>) {
        for (name, value) in &mut self.shell.variables {
            if before.variables.get(name) != Some(value) {
                *value = None;
            }
        }
    }

    fn pipeline(&mut self, pipeline: &'t Pipeline) {
        let (upstream, input) = (self.upstream.clone(), self.input.clone());
        let start = self.parts.len();
        if let [only] = &pipeline.0[..] {
            self.run_command(only);
        } else {
            for (index, stage) in pipeline.0.iter().enumerate() {
                if self.overflow {
                    break;
                }
                let first = self.parts.len();
                self.copied_input = None;
                self.in_subshell(true, |reader| reader.run_command(stage));
                self.input = self.printed(first);
                self.upstream = if index == 0 && upstream.is_empty() {
                    start..self.parts.len()
                } else {
                    upstream.start.min(start)..self.parts.len()
                };
            }
        }
        (self.upstream, self.input) = (upstream, input);
    }

    /// What a stage prints, if it is a single `echo` or `printf` of plain words.
    fn printed(&self, first: usize) -> Option<String> {
        let [part] = self.parts.get(first..)? else { return None };
        let words: Option<Vec<&str>> = part.words.iter().map(|word| word.known()).collect();
        let words = words?;
        match words.split_first()? {
            (&"cat", []) => self.copied_input.clone(),
            (&"echo", rest) => {
                let rest = if rest.first() == Some(&"-n") { &rest[1..] } else { rest };
                let text = rest.join(" ");
                (!text.starts_with('-')).then_some(text)
            }
            (&"printf", [text]) if !text.contains(['%', '\\']) => Some((*text).to_owned()),
            (&"printf", [form, text]) if matches!(*form, "%s" | "%s\\n") => Some((*text).to_owned()),
            _ => None,
        }
    }

    pub(super) fn run_command(&mut self, command: &'t ShellCommand) {
        self.steps += 1;
        if self.steps > MOST_STEPS || self.shell.variables.len() > MOST_VARIABLES {
            self.overflow = true;
        }
        if self.overflow {
            return;
        }
        let redirections = &command.redirections;
        match &command.shape {
            ShellCommandKind::Simple { assignments, words } => self.simple(assignments, words, redirections),
            ShellCommandKind::Function { name, body } => {
                let certain = !self.concurrent && KNOWLEDGE.forms(name).is_empty();
                self.shell.functions.insert(name.clone(), (body, certain));
            }
            shape => {
                let input = self.redirect_compound(redirections);
                let replaced = input.is_some();
                let outer = self.input.clone();
                if replaced {
                    self.input = input.flatten();
                }
                self.compound(shape);
                self.input = outer;
            }
        }
    }

    /// Redirections of a compound command count as a simple command of their own. Returns the input, if it is written
    /// here.
    fn redirect_compound(&mut self, redirections: &'t [Redirection]) -> Option<Option<String>> {
        let mut part = self.part(Vec::new());
        let input = self.redirect(redirections, &mut part);
        if let Some(why) = self.hidden_code.take() {
            part.doubt(why);
        }
        if !part.touches.is_empty() || !part.unclear.is_empty() || !part.dangers.is_empty() {
            self.push(part);
        }
        input
    }

    fn compound(&mut self, shape: &'t ShellCommandKind) {
        match shape {
            ShellCommandKind::Group(list) => self.list(list),
            ShellCommandKind::Subshell(list) => self.in_subshell(false, |reader| reader.list(list)),
            ShellCommandKind::For { variable, words, body } => self.for_each(variable, words.as_deref(), body),
            ShellCommandKind::Loop { condition, arithmetic, body } => self.repeat(condition, arithmetic.as_ref(), body),
            ShellCommandKind::If { branches, otherwise } => self.choose(branches, otherwise),
            ShellCommandKind::Case { subject, arms } => {
                self.visit_words(std::slice::from_ref(subject));
                let before = self.shell.clone();
                let mut after = self.shell.clone();
                for (patterns, body) in arms {
                    self.visit_words(patterns);
                    self.list(body);
                    after.merge_branch(std::mem::replace(&mut self.shell, before.clone()));
                }
                self.shell = after;
            }
            ShellCommandKind::Test(words) => self.test(words),
            ShellCommandKind::Arithmetic(expression, nested) => {
                nested.iter().for_each(|list| self.in_subshell(false, |reader| reader.list(list)));
                self.calculate(expression);
            }
            ShellCommandKind::Simple { .. } | ShellCommandKind::Function { .. } => {}
        }
    }

    fn choose(&mut self, branches: &'t [(CommandList, CommandList)], otherwise: &'t CommandList) {
        let mut ends: Option<ShellState<'t>> = None;
        for (condition, body) in branches {
            self.list(condition);
            let skipped = self.shell.clone();
            self.list(body);
            let taken = std::mem::replace(&mut self.shell, skipped);
            match &mut ends {
                Some(ends) => ends.merge_branch(taken),
                None => ends = Some(taken),
            }
        }
        self.list(otherwise);
        if let Some(ends) = ends {
            self.shell.merge_branch(ends);
        }
    }

    fn repeat(
        &mut self,
        condition: &'t CommandList,
        arithmetic: Option<&'t (String, Vec<NestedList>)>,
        body: &'t CommandList,
    ) {
        if let Some((expressions, nested)) = arithmetic {
            nested.iter().for_each(|list| self.in_subshell(false, |reader| reader.list(list)));
            self.count(expressions);
        }
        let directories = self.shell.directories.clone();
        let moves = self.forget_what_a_round_changes(condition) | self.forget_what_a_round_changes(body);
        let skipped = self.shell.clone();
        for directories in rounds(directories, moves) {
            self.shell.directories = directories;
            self.list(condition);
            self.list(body);
        }
        self.shell.merge_branch(skipped);
    }

    /// Walks the body once for each word that is certain; if one isn't, once with any value.
    fn for_each(&mut self, variable: &str, words: Option<&'t [ShellWord]>, body: &'t CommandList) {
        let directories = self.shell.directories.clone();
        let moves = self.forget_what_a_round_changes(body);
        let arguments = words.map(|words| self.expand_all(words));
        self.note_hidden_code();
        // Files that match one pattern: what is done with one is done with the pattern.
        let pattern = match arguments.as_deref() {
            Some([only]) if only.certainty == super::Certainty::Pattern => Some(only.text.clone()),
            _ => None,
        };
        let values: Option<Vec<String>> = arguments.and_then(|arguments| {
            let known = |argument: &super::Argument| argument.known().map(str::to_owned);
            arguments.iter().map(known).collect::<Option<Vec<_>>>().filter(|values| values.len() <= MOST_ROUNDS)
        });
        let skipped = self.shell.clone();
        let values: Vec<Option<String>> = values.map_or(vec![None], |values| values.into_iter().map(Some).collect());
        if let Some(pattern) = pattern {
            self.shell.set_file_names(variable, pattern);
        }
        for directories in rounds(directories, moves) {
            for value in &values {
                self.shell.directories.clone_from(&directories);
                if let Some(value) = value {
                    self.shell.set(variable, Some(value.clone()));
                } else if !self.shell.file_names.contains_key(variable) {
                    self.shell.set(variable, None);
                }
                self.list(body);
                if self.overflow {
                    return;
                }
            }
        }
        self.shell.merge_branch(skipped);
        self.shell.set(variable, None);
    }

    /// A later round sees the changes of an earlier one, so variables that a round may change are unknown from the
    /// start. Returns whether a round may change the directory.
    fn forget_what_a_round_changes(&mut self, list: &CommandList) -> bool {
        let mut changed = ShellChanges::default();
        changed.by_list(list);
        for name in changed.variables {
            self.shell.remember(&name, None);
        }
        let moves = changed.directory || self.has_functions;
        if moves {
            self.shell.directories = None;
        }
        if self.has_functions {
            self.shell.forget_variables();
        }
        moves
    }

    /// Visits words whose value has no effect, only their expansions.
    fn visit_words(&mut self, words: &'t [ShellWord]) {
        self.expand_all(words);
        self.note_hidden_code();
    }

    /// Records for words without a command that they may run code.
    pub(super) fn note_hidden_code(&mut self) {
        if let Some(why) = self.hidden_code.take() {
            let mut part = self.part(Vec::new());
            part.doubt(why);
            self.push(part);
        }
    }
}

/// Where the rounds of a loop may begin: the first one in the current directory, a later one anywhere if rounds change
/// it.
fn rounds(directories: Option<Vec<String>>, moves: bool) -> Vec<Option<Vec<String>>> {
    match (directories, moves) {
        (Some(directories), true) => vec![Some(directories), None],
        (directories, _) => vec![directories],
    }
}

/// Whether a pipeline is `exit`, or `return` inside a function.
fn leaves(pipeline: &Pipeline, in_function: bool) -> bool {
    let [ShellCommand { shape, .. }] = &pipeline.0[..] else { return false };
    match shape {
        ShellCommandKind::Simple { words, .. } => {
            words.first().is_some_and(|word| word.written == "exit" || in_function && word.written == "return")
        }
        ShellCommandKind::Group(list) => {
            list.0.last().is_some_and(|statement| statement.rest.is_empty() && leaves(&statement.first, in_function))
        }
        _ => false,
    }
}
