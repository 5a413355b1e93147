//! `find`: where it starts, what it deletes, and what it runs on the files it finds.

use toolgate_contract::Access;

use super::arguments::{ParsedArguments, ParsedFlag};
use super::nested_commands::NestedCommands;
use super::roles::FlagEffect;
use super::shell_reader::ShellReader;
use super::simple_command::{Argument, Certainty, SimpleCommand};

impl ShellReader<'_> {
    pub(super) fn find(&mut self, part: &mut SimpleCommand, parsed: &ParsedArguments, nested: &mut NestedCommands) {
        let is_sign = |word: &&Argument| matches!(word.known(), Some("(" | ")" | "!" | "," | "+" | ";" | "{}"));
        let mut starts: Vec<Argument> = parsed.operands.iter().filter(|word| !is_sign(word)).cloned().collect();
        starts.iter().for_each(|start| self.path(part, Access::Read, start));
        if starts.is_empty() {
            starts.push(Argument::literal("."));
        }
        let found: Vec<Argument> = starts.iter().map(|start| what_is_found(start, parsed)).collect();
        if parsed.flags.iter().any(|flag| flag.role.has(FlagEffect::Delete)) {
            nested.recursive = true;
            found.iter().for_each(|found| self.path(part, Access::Delete, found));
        }
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
}

/// With a test on names, only files with such names; without one, everything beneath the start.
fn what_is_found(start: &Argument, parsed: &ParsedArguments) -> Argument {
    let acts = |flag: &ParsedFlag| {
        flag.role.has(FlagEffect::Delete) || flag.name.starts_with("-exec") || flag.name.starts_with("-ok")
    };
    let named = |flag: &&ParsedFlag| matches!(flag.name.as_str(), "-name" | "-iname");
    // A test after the action doesn't limit it.
    let before = parsed.flags.iter().take_while(|flag| !acts(flag));
    let names: Vec<&Argument> = before.filter(named).filter_map(|flag| flag.value.as_ref()).collect();
    let negates = parsed.operands.iter().any(|word| matches!(word.known(), Some("!" | ",")))
        || parsed.flags.iter().any(|flag| matches!(flag.name.as_str(), "-not" | "-o" | "-or"));
    match names[..] {
        [name] if !negates && name.known().is_some_and(|name| !matches!(name, "*" | ".*" | "*.*" | "?*")) => {
            let text = format!("{}/{}", start.text.trim_end_matches('/'), name.text);
            let certainty = if start.is_unclear() { Certainty::Unclear } else { Certainty::Pattern };
            Argument::new(text, certainty)
        }
        _ => start.clone(),
    }
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
