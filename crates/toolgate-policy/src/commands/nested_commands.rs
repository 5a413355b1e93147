//! Commands inside commands: what wrappers run, scripts given to shells as text, and what `xargs` fills in.

use super::dangers;
use super::forms::{CommandForm, StdinRole};
use super::program::CommandContext;
use super::shell_reader::ShellReader;
use super::simple_command::{Argument, Certainty, SimpleCommand};
use super::syntax;

/// How deep wrappers may be nested.
const MOST_LEVELS: usize = 40;

/// How deep commands given as text may be nested.
const MOST_SCRIPTS: usize = 8;

/// What a simple command turns out to run.
#[derive(Default)]
pub(super) struct NestedCommands {
    pub(super) commands: Vec<Vec<Argument>>,
    pub(super) scripts: Vec<String>,
    pub(super) recursive: bool,
    /// What is unknown about the nested commands.
    pub(super) doubt: Option<String>,
    /// The placeholder that `xargs` replaces with its input.
    pub(super) replaces: Option<String>,
    pub(super) moves: bool,
    /// Code was given as an argument, so none is read from standard input.
    pub(super) code: bool,
}

impl ShellReader<'_> {
    /// Analyzes the commands and scripts inside this command.
    pub(super) fn inside(&mut self, nested: NestedCommands, name: &str, context: &CommandContext) {
        if self.level >= MOST_LEVELS {
            self.overflow = true;
            return;
        }
        self.level += 1;
        let outer = context.outer.clone();
        for words in nested.commands {
            // Variables that decide what the wrapper does also decide what it runs.
            let unclear = outer.as_ref().map(|outer| outer.unclear.clone()).unwrap_or_default();
            let mut outer = SimpleCommand { unclear, ..SimpleCommand::default() };
            nested.doubt.iter().for_each(|why| outer.doubt(why.clone()));
            let words = self.with_input(name, nested.replaces.as_deref(), words, &mut outer);
            if !words.is_empty() {
                // Wrappers don't see shell functions: they run the program of that name.
                let functions = std::mem::take(&mut self.shell.functions);
                let (inner, input) = (context.inner.clone(), context.input.clone());
                self.invoke(words, CommandContext { outer: Some(outer), inner, input });
                self.shell.functions = functions;
            }
        }
        for script in nested.scripts {
            self.doubt_dialect(name, &script);
            self.script(&script, name == "eval");
        }
        self.level -= 1;
    }

    /// Shells other than bash parse some of this differently.
    fn doubt_dialect(&mut self, name: &str, script: &str) {
        const BASH_ALONE: &[&str] =
            &["[[", "((", "function ", "&>", "<<<", "$'", "<(", ">(", "{1..", "\\n", "\\0", "\\x"];
        let base = name.rsplit('/').next().unwrap_or(name);
        let differs = match base {
            "sh" | "dash" | "ash" => BASH_ALONE.iter().any(|sign| script.contains(sign)),
            "zsh" | "ksh" | "ksh93" | "mksh" | "yash" => true,
            _ => false,
        };
        if differs {
            let mut part = self.part(Vec::new());
            part.doubt(format!("`{base}` may parse the command differently"));
            self.push(part);
        }
    }

    /// Whether the input was printed by commands that only read.
    pub(super) fn is_fed_by_reading(&self) -> bool {
        let upstream = self.parts.get(self.upstream.clone()).unwrap_or_default();
        !upstream.is_empty() && upstream.iter().all(SimpleCommand::only_reads)
    }

    /// `xargs` appends its input, or fills it in.
    fn with_input(
        &self,
        name: &str,
        replaces: Option<&str>,
        words: Vec<Argument>,
        outer: &mut SimpleCommand,
    ) -> Vec<Argument> {
        if !matches!(name, "xargs" | "parallel" | "fd" | "fdfind") {
            return words;
        }
        let is_tame = name.starts_with("fd") || self.is_fed_by_reading();
        let certainty = if is_tame { Certainty::Names } else { Certainty::Unclear };
        let is_plain = |text: &&String| !text.contains(['"', '\'', '\\', ',']) && replaces.is_none();
        let given: Vec<Argument> = match self.input.as_ref().filter(is_plain) {
            Some(text) => text.split_ascii_whitespace().map(Argument::literal).collect(),
            None => vec![Argument::new(replaces.unwrap_or("…"), certainty)],
        };
        let Some(replaced) = replaces else { return [words, given].concat() };
        if words.iter().any(|word| word.text.contains(replaced) && word.text != replaced) {
            outer.doubt(format!("the replacement for `{replaced}` isn't known"));
        }
        words.into_iter().flat_map(|word| if word.text == replaced { given.clone() } else { vec![word] }).collect()
    }

    /// A command given as text: to a new shell, or to `eval`, which runs it in this one.
    fn script(&mut self, text: &str, here: bool) {
        let script = match syntax::parse(text) {
            Ok(script) if self.depth < MOST_SCRIPTS => script,
            parsed => {
                let mut part = self.part(Vec::new());
                let why = parsed.err().map_or_else(|| "it is nested too deep".to_owned(), |fault| fault.to_string());
                part.doubt(format!("a command in it can't be parsed: {why}"));
                return self.push(part);
            }
        };
        let mut reader = ShellReader::new(self.paths, &script.documents, self.shell.directories.clone());
        reader.watch_functions(&script.functions);
        reader.level = self.level;
        reader.depth = self.depth + 1;
        reader.concurrent = self.concurrent;
        let upstream = self.parts.get(self.upstream.clone()).unwrap_or_default();
        reader.foreign_input = self.foreign_input || upstream.iter().any(dangers::is_foreign);
        reader.shell.uncertainty = reader.shell.uncertainty.or_else(|| self.shell.uncertainty.clone());
        reader.steps = self.steps;
        if here {
            reader.shell.variables = self.shell.variables.clone();
        }
        reader.list(&script.list);
        let defines = !reader.shell.functions.is_empty();
        if here {
            self.shell.variables = reader.shell.variables.clone();
            self.shell.directories = reader.shell.directories.clone();
            self.shell.uncertainty = reader.shell.uncertainty.clone();
            if defines {
                self.shell.mark_uncertain("`eval` defined functions");
            }
        }
        self.overflow |= reader.overflow;
        self.steps = reader.steps;
        for part in reader.parts {
            self.push(part);
        }
    }

    /// Code from the network, or out of a decoder, must never run.
    pub(super) fn check_sources(&mut self, part: &mut SimpleCommand, context: &CommandContext) {
        if !part.interprets_text {
            return;
        }
        let inner = self.parts.get(context.inner.clone()).unwrap_or_default();
        let upstream = self.parts.get(self.upstream.clone()).filter(|_| part.interprets_input).unwrap_or_default();
        dangers::dangers_of_sources(part, inner.iter().chain(upstream));
        if part.interprets_input && self.foreign_input && part.dangers.is_empty() {
            part.dangers.push(dangers::code_from_elsewhere());
        }
    }

    /// Interpreters without a file run their standard input.
    pub(super) fn standard_input(
        &mut self,
        part: &mut SimpleCommand,
        form: &CommandForm,
        context: &CommandContext,
        nested: &mut NestedCommands,
    ) {
        let Some(role) = form.reads_stdin_as else { return };
        if nested.code {
            return;
        }
        part.interprets_text = true;
        part.interprets_input = true;
        match (&context.input, role) {
            (Some(script), StdinRole::Script) if part.form.is_some() => {
                part.runs_code = false;
                nested.scripts.push(script.clone());
            }
            _ => {}
        }
    }
}
