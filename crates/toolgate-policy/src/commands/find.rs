//! `find`: where it starts, what it deletes, and what it runs on the files it finds.

use std::collections::BTreeSet;

use toolgate_contract::{Access, Permission};

use super::arguments::ParsedArguments;
use super::find_expression::{FoundBy, acted_on, names_some};
use super::nested_commands::NestedCommands;
use super::path_context::PathContext;
use super::roles::FlagEffect;
use super::shell_reader::ShellReader;
use super::simple_command::{Argument, Certainty, Need, SimpleCommand};

impl ShellReader<'_> {
    pub(super) fn find(&mut self, part: &mut SimpleCommand, parsed: &ParsedArguments, nested: &mut NestedCommands) {
        let is_sign = |word: &&Argument| matches!(word.known(), Some("(" | ")" | "!" | "," | "+" | ";" | "{}"));
        let mut starts: Vec<Argument> = parsed.operands.iter().filter(|word| !is_sign(word)).cloned().collect();
        starts.iter().for_each(|start| self.path(part, Access::Read, start));
        if starts.is_empty() {
            starts.push(Argument::literal("."));
        }
        let tests = acted_on(&part.words[1..]);
        if parsed.flags.iter().any(|flag| flag.role.has(FlagEffect::Delete)) {
            nested.recursive = true;
            for start in &starts {
                if self.deletes_what_is_empty(part, start, tests.as_ref()) {
                    part.need(Need::Permission(Permission::FsDelete));
                } else {
                    what_is_found(start, tests.as_ref())
                        .iter()
                        .for_each(|found| self.path(part, Access::Delete, found));
                }
            }
        }
        let found: Vec<Argument> = starts.iter().flat_map(|start| what_is_found(start, tests.as_ref())).collect();
        let is_within = |word: &Argument| word.text.contains("{}") && word.text != "{}";
        if parsed.commands.iter().flatten().any(is_within) {
            nested.doubt = Some("the replacement for `{}` isn't known".to_owned());
        }
        // Files beneath a directory: for a read, the sandbox hides sensitive ones; a change affects all of them.
        let each: Vec<Argument> = found.iter().map(everything_in).collect();
        for words in &parsed.commands {
            nested.commands.push(words.iter().flat_map(|word| filled_in(word, &each)).collect());
        }
    }

    /// Whether it deletes nothing but empty files and directories of the workspace: no content is lost.
    fn deletes_what_is_empty(&self, part: &SimpleCommand, start: &Argument, tests: Option<&BTreeSet<FoundBy>>) -> bool {
        let is_inside = |directory: &String| {
            start.known().is_some_and(|start| self.paths.place(&PathContext::resolve(directory, start)).root == 0)
        };
        part.directory.as_ref().is_some_and(is_inside)
            && tests.is_some_and(|tests| tests.iter().eq([&FoundBy::Emptiness]))
    }
}

/// What the tests let pass, where they say by name or path which files those are; otherwise everything beneath the start.
fn what_is_found(start: &Argument, tests: Option<&BTreeSet<FoundBy>>) -> Vec<Argument> {
    let directory = start.text.trim_end_matches('/');
    let certainty = if start.is_unclear() { Certainty::Unclear } else { Certainty::Pattern };
    let located = |test: &FoundBy| match test {
        FoundBy::Name(name) => Some(Argument::new(format!("{directory}/{name}"), certainty)),
        // What begins with `*` fits whatever the start is called, unless that is `.`.
        FoundBy::Path(path) if path.starts_with('*') => {
            (directory == "." && names_some(path)).then(|| Argument::new(format!("./{path}"), certainty))
        }
        FoundBy::Path(path) => {
            let is_beneath = |rest: &str| rest.strip_prefix('/').is_some_and(names_some);
            path.strip_prefix(directory).is_some_and(is_beneath).then(|| Argument::new(path.clone(), certainty))
        }
        FoundBy::Emptiness => None,
    };
    let all = || tests?.iter().map(located).collect::<Option<Vec<_>>>();
    all().unwrap_or_else(|| vec![start.clone()])
}

fn everything_in(found: &Argument) -> Argument {
    match found.certainty {
        Certainty::Literal => Argument::new(format!("{}/*", found.text.trim_end_matches('/')), Certainty::Pattern),
        _ => found.clone(),
    }
}

/// Replaces `{}` with the files that were found.
fn filled_in(word: &Argument, found: &[Argument]) -> Vec<Argument> {
    match word.known() {
        Some("{}") => found.to_vec(),
        _ => vec![word.clone()],
    }
}
