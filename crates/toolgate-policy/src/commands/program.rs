//! What a program does with these arguments, according to the tables.

use std::ops::Range;

use toolgate_contract::{Access, Permission};

use super::PathContext;
use super::arguments::{ParsedArguments, ParsedFlag, parse_arguments, parse_globals};
use super::dangers;
use super::environment::is_decisive;
use super::forms::{CommandForm, FormKind, KNOWLEDGE, OperandCondition};
use super::nested_commands::NestedCommands;
use super::old_style::{shows_environments, with_dashes};
use super::roles::{FlagEffect, OperandRole};
use super::shell_reader::ShellReader;
use super::simple_command::{Argument, Certainty, Need, SimpleCommand, Touch};

/// Directories in which programs are what their names say.
const SYSTEM_PROGRAMS: &[&str] = &["/bin", "/usr/bin", "/sbin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin"];

/// The context of a command.
#[derive(Clone, Default)]
pub(super) struct CommandContext {
    /// Effects of the redirections and assignments around it.
    pub(super) outer: Option<SimpleCommand>,
    /// The simple commands inside its words.
    pub(super) inner: Range<usize>,
    /// Its input, if all of it is written in the command.
    pub(super) input: Option<String>,
}

/// A form that matches, with its parsed arguments.
struct FormMatch {
    form: &'static CommandForm,
    /// How many words name it, including the program.
    words: usize,
    parsed: ParsedArguments,
}

impl ShellReader<'_> {
    /// Analyzes one call of a program, and what it runs in turn.
    pub(super) fn program(&mut self, arguments: Vec<Argument>, context: CommandContext) {
        let mut part = self.part(arguments);
        if let Some(outer) = &context.outer {
            (part.touches, part.unclear, part.dangers) =
                (outer.touches.clone(), outer.unclear.clone(), outer.dangers.clone());
        }
        if let Some(why) = &self.shell.uncertainty {
            part.doubt(why.clone());
        }
        let Some(name) = self.name(&mut part) else {
            part.doubt("which program runs isn't known");
            part.interprets_text = true;
            part.interprets_input = true;
            self.check_sources(&mut part, &context);
            return self.push(part);
        };
        let mut arguments = part.words[1..].to_vec();
        with_dashes(&name, &mut arguments);
        let (globals, skipped) = match KNOWLEDGE.globals(&name) {
            Some(globals) => parse_globals(&globals.flags, &globals.harmless, &arguments),
            None => (Vec::new(), 0),
        };
        part.globals = skipped;
        self.globals(&mut part, &globals);
        let found = choose(&name, &arguments[skipped..]);
        let mut nested = NestedCommands::default();
        match &found {
            _ if globals.iter().any(|flag| flag.role.has(FlagEffect::Help)) => {}
            _ if asks_for_version(&name, &arguments) => {}
            Some(found) => self.apply(&mut part, found, &context, &mut nested),
            None => self.unlisted(&mut part, &arguments),
        }
        if matches!(name.as_str(), "source" | ".") {
            part.doubt("it runs code that can't be analyzed in this shell");
        }
        let parsed = found.as_ref().map(|found| &found.parsed);
        dangers::from_table(&mut part, &name, &arguments[skipped..], parsed);
        dangers::dangers_of_touches(&mut part, self.paths, nested.moves, nested.recursive);
        if shows_environments(&name, &part.words[1..]) {
            part.dangers.push(dangers::environments_of_others());
        }
        self.check_sources(&mut part, &context);
        part.only_moves = nested.moves && self.stays_in_workspace(&part);
        part.is_wrapper = !nested.commands.is_empty() || !nested.scripts.is_empty();
        self.push(part);
        self.inside(nested, &name, &context);
    }

    /// Whether everything that a command changes is known and in the workspace.
    fn stays_in_workspace(&self, part: &SimpleCommand) -> bool {
        let is_inside = |touch: &Touch| match touch {
            Touch::Path { access: Access::Read, .. } => true,
            Touch::Path { path, .. } => self.paths.place(path).root == 0,
            Touch::Host { .. } => false,
        };
        part.needs.is_empty() && part.is_known() && part.touches.iter().all(is_inside)
    }

    /// The program's name. A program outside the system directories may be anything, regardless of its name.
    fn name(&self, part: &mut SimpleCommand) -> Option<String> {
        let text = part.words.first()?.known()?;
        if text.is_empty() {
            return None;
        }
        let Some((_, base)) = text.rsplit_once('/') else { return Some(text.to_owned()) };
        let directory = part.directory.as_deref().unwrap_or("/");
        let resolved = PathContext::resolve(directory, text);
        let parent = resolved.rsplit_once('/').map_or("", |(parent, _)| parent);
        if !SYSTEM_PROGRAMS.contains(&parent) {
            part.runs_code = true;
        }
        Some(base.to_owned())
    }

    fn globals(&mut self, part: &mut SimpleCommand, flags: &[ParsedFlag]) {
        for flag in flags {
            if flag.role.has(FlagEffect::Unclear) {
                part.doubt(format!("`{}` decides what it runs", flag.name));
            }
            match (&flag.value, flag.role.value) {
                (Some(value), Some(OperandRole::Workdir)) => self.move_to(part, value),
                (Some(value), Some(role)) => self.operand(part, role, value, &mut NestedCommands::default()),
                _ => {}
            }
        }
    }

    /// A program that no table knows. It runs; arguments that are clearly sensitive files count as read.
    fn unlisted(&mut self, part: &mut SimpleCommand, arguments: &[Argument]) {
        part.runs_code = true;
        self.mentions(part, arguments);
    }

    /// Adds the arguments of a program whose behaviour is unknown.
    pub(super) fn mentions(&mut self, part: &mut SimpleCommand, arguments: &[Argument]) {
        for argument in arguments {
            if argument.is_unclear() {
                part.doubt(format!("what `{}` is isn't known", argument.text));
            }
            let value = argument.known().map(|text| text.rsplit_once('=').map_or(text, |(_, value)| value));
            let Some(value) = value.filter(|value| !value.is_empty() && !value.starts_with('-')) else { continue };
            let value = value.strip_prefix('@').unwrap_or(value);
            let directory = part.directory.clone().unwrap_or_else(|| self.paths.workspace().to_owned());
            let path = PathContext::resolve(&directory, value);
            if dangers::is_sensitive(&self.paths.place(&path)) {
                part.touch(Touch::Path { access: Access::Read, path, pattern: false });
            }
        }
    }

    fn apply(
        &mut self,
        part: &mut SimpleCommand,
        found: &FormMatch,
        context: &CommandContext,
        nested: &mut NestedCommands,
    ) {
        let FormMatch { form, words, parsed } = found;
        let is_risky = parsed.flags.iter().any(|flag| flag.role.is_risky()) || !parsed.unclear.is_empty();
        // After an operand it may be an option of the code that runs: `cargo run x --help`.
        let is_own = form.kind == FormKind::Known || parsed.operands.is_empty() && parsed.rest.is_none();
        let mut helps = parsed.flags.iter().map(|flag| flag.role.has(FlagEffect::Help));
        // What another option does to a program that runs something can't be told: `gcc --version -v -B.` runs `./cc1`.
        let asks_for_help = if form.kind == FormKind::Known {
            helps.any(|help| help)
        } else {
            helps.len() > 0 && helps.all(|help| help)
        };
        if asks_for_help && !is_risky && is_own {
            part.form = Some(*words);
            return;
        }
        part.form = Some(*words);
        part.runs_code |= form.kind == FormKind::Run;
        form.needs.iter().for_each(|need| part.need(*need));
        form.hosts.iter().for_each(|host| part.touch(Touch::Host { name: host.clone(), port: 443 }));
        parsed.unclear.iter().for_each(|why| part.doubt(why.clone()));
        nested.moves = form.operands.moves();
        self.flags(part, &parsed.flags, nested);
        self.operands(part, found, nested);
        nested.code |= parsed.commands.iter().any(|words| {
            words.first().and_then(Argument::known).is_some_and(|module| dangers::DATA_MODULES.contains(&module))
        });
        self.standard_input(part, form, context, nested);
        if let Some(role) = form.here {
            self.operand(part, role, &Argument::literal("."), nested);
        }
        let looks_around = form.operands.role(0, 1).is_source() || form.operands.role(0, 1) == OperandRole::Exec;
        if looks_around && parsed.operands.is_empty() && part.directory.is_none() && self.shell.directories.is_none() {
            part.doubt("which directory it runs in isn't known");
        }
        if form.quiet {
            test_conditions(part, parsed);
        }
        // `declare -a x="$y"`: the value of an array is expanded once more.
        let is_array = parsed.flags.iter().any(|flag| matches!(flag.name.as_str(), "-a" | "-A"));
        if form.operands.role(0, 1) == OperandRole::Assignments && is_array {
            parsed.operands.iter().filter(|word| word.known().is_none()).for_each(|word| {
                part.doubt(format!("`{}` may run code", word.text));
            });
        }
        if form.operands.role(0, 1) != OperandRole::Exec {
            nested.commands.extend(parsed.commands.iter().cloned());
        }
        if let Some((role, rest)) = &parsed.rest {
            let from = if *role == OperandRole::Environment { self.leading_assignments(part, rest) } else { 0 };
            nested.commands.extend((from < rest.len()).then(|| rest[from..].to_vec()));
        }
        if part.runs_code {
            self.mentions(part, &parsed.operands);
        }
    }

    fn flags(&mut self, part: &mut SimpleCommand, flags: &[ParsedFlag], nested: &mut NestedCommands) {
        for flag in flags {
            for mark in flag.role.marks.into_iter().flatten() {
                match mark {
                    FlagEffect::Unclear => part.doubt(format!("`{}` can make it do anything", flag.name)),
                    FlagEffect::Run => part.runs_code = true,
                    FlagEffect::Net => part.need(Need::Permission(Permission::NetConnect)),
                    FlagEffect::GitWrite => part.need(Need::Permission(Permission::GitWrite)),
                    FlagEffect::FsWrite => part.need(Need::Permission(Permission::FsWrite)),
                    FlagEffect::FsDelete => part.need(Need::Permission(Permission::FsDelete)),
                    FlagEffect::Recursive => nested.recursive = true,
                    FlagEffect::Fill => {
                        let filled = flag.value.as_ref().and_then(Argument::known).unwrap_or("{}");
                        nested.replaces = Some(filled.to_owned());
                    }
                    FlagEffect::Write
                    | FlagEffect::Delete
                    | FlagEffect::Read
                    | FlagEffect::Text
                    | FlagEffect::Shift
                    | FlagEffect::Help => {}
                }
            }
            match (flag.role.value, &flag.value) {
                (Some(OperandRole::Workdir), Some(directory)) => self.move_to(part, directory),
                (Some(role), Some(value)) => self.operand(part, role, value, nested),
                _ => {}
            }
        }
    }

    fn operands(&mut self, part: &mut SimpleCommand, found: &FormMatch, nested: &mut NestedCommands) {
        let FormMatch { form, parsed, .. } = found;
        let has = |mark| parsed.flags.iter().any(|flag| flag.role.has(mark));
        let roles = if has(FlagEffect::Shift) { form.operands.shifted() } else { form.operands.clone() };
        if roles.role(0, 1) == OperandRole::Exec {
            return self.find(part, parsed, nested);
        }
        let as_well = [
            (FlagEffect::Write, Access::Write),
            (FlagEffect::Delete, Access::Delete),
            (FlagEffect::Read, Access::Read),
        ];
        let as_well: Vec<Access> =
            as_well.into_iter().filter(|(mark, _)| has(*mark)).map(|(_, access)| access).collect();
        let operands = if form.plus { after_lone_dash(&parsed.operands) } else { &parsed.operands };
        let count = operands.len();
        let shifts = |(at, operand): &(usize, &Argument)| {
            operand.may_be_several() && (1..=2).any(|more| roles.shift_to_risk(*at, count, more))
        };
        if let Some((_, operand)) = operands.iter().enumerate().find(shifts).filter(|_| !has(FlagEffect::Text)) {
            part.doubt(format!("`{}` may be several words, and one of them may do more", operand.text));
        }
        let roles: Vec<OperandRole> = (0..count)
            .map(|index| if has(FlagEffect::Text) { OperandRole::Text } else { roles.role(index, count) })
            .collect();
        let reads = roles.iter().any(|role| role.is_source());
        let together = joined_script(&roles, operands);
        for (role, operand) in roles.iter().zip(operands) {
            if *role == OperandRole::Script && together.is_some() {
                continue;
            }
            self.operand(part, *role, operand, nested);
            if role.is_source()
                || !reads && matches!(role, OperandRole::Write | OperandRole::Delete)
                || *role == OperandRole::Text && has(FlagEffect::Read)
            {
                as_well.iter().for_each(|access| self.path(part, *access, operand));
            }
        }
        if let Some(text) = together {
            self.operand(part, OperandRole::Script, &text, nested);
        }
    }

    /// `NAME=value` words before a command. Returns how many there are.
    fn leading_assignments(&mut self, part: &mut SimpleCommand, words: &[Argument]) -> usize {
        let mut count = 0;
        for word in words {
            let Some((name, _)) = word.text.split_once('=').filter(|_| word.certainty != Certainty::Pattern) else {
                break;
            };
            if is_decisive(name) {
                part.doubt(format!("`{name}` decides what it does"));
            }
            count += 1;
        }
        count
    }
}

/// `bash -c - TEXT`: for a shell a lone dash only ends the options.
fn after_lone_dash(operands: &[Argument]) -> &[Argument] {
    match operands {
        [dash, rest @ ..] if dash.text == "-" && !rest.is_empty() => rest,
        all => all,
    }
}

/// Whether a known program is only asked for its version. A program that runs code may run some even for that, unless
/// a table says otherwise.
fn asks_for_version(name: &str, arguments: &[Argument]) -> bool {
    let [only] = arguments else { return false };
    let is_known = KNOWLEDGE.forms(name).iter().any(|known| known.form.kind == FormKind::Known);
    only.known() == Some("--version") && is_known
}

/// `[` and `test` evaluate a name after `-v` as arithmetic, which can run code: `[ -v 'a[$(x)]' ]`. Words that aren't
/// known must not be able to become such an operator and its operand.
fn test_conditions(part: &mut SimpleCommand, parsed: &ParsedArguments) {
    let words = &parsed.operands;
    if let Some(word) = words.iter().find(|word| word.splits && word.known().is_none()) {
        part.doubt(format!("`{}` may be several words, which can run code", word.text));
    }
    let is_operand = |word: &Argument| word.known().is_none() || word.text.contains(['`', '[']) && word.text.len() > 1;
    let names_variable = |word: &Argument| matches!(word.known(), Some("-v" | "-R"));
    let is_plain = |word: &Argument| {
        word.known().is_some_and(|text| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_'))
    };
    if words.windows(2).any(|pair| pair[0].known().is_none() && is_operand(&pair[1]))
        || words.windows(2).any(|pair| names_variable(&pair[0]) && !is_plain(&pair[1]))
        || words.iter().any(|word| word.known().is_some() && is_operand(word))
    {
        part.doubt("what it compares may run code");
    }
}

/// The first form that matches.
fn choose(name: &str, arguments: &[Argument]) -> Option<FormMatch> {
    let says = |words: &[&str]| {
        words.len() <= arguments.len()
            && words.iter().zip(arguments).all(|(word, argument)| argument.known() == Some(word))
    };
    let forms = KNOWLEDGE.forms(name).iter().filter(|known| says(&known.words));
    forms
        .map(|known| FormMatch {
            form: known.form,
            words: known.words.len() + 1,
            parsed: parse_arguments(known, &arguments[known.words.len()..]),
        })
        .find(fits)
}

fn fits(found: &FormMatch) -> bool {
    let FormMatch { form, parsed, .. } = found;
    let has = |names: &[String]| parsed.flags.iter().any(|flag| names.contains(&flag.name));
    // Of an option and its negation, the last one counts.
    let negated =
        parsed.flags.iter().rposition(|flag| flag.negates.as_ref().is_some_and(|name| form.with.contains(name)));
    let has_now = |names: &[String]| {
        parsed.flags.iter().skip(negated.map_or(0, |at| at + 1)).any(|flag| names.contains(&flag.name))
    };
    let is_bare = parsed.operands.is_empty() && parsed.rest.is_none();
    (form.with.is_empty() || has_now(&form.with))
        && !has(&form.without)
        && match form.when {
            None => true,
            Some(OperandCondition::Bare) => is_bare,
            Some(OperandCondition::Operands) => !is_bare,
        }
}

/// Several words that together are one script, as `eval` and `watch` take them.
fn joined_script(roles: &[OperandRole], operands: &[Argument]) -> Option<Argument> {
    let words: Vec<&Argument> =
        roles.iter().zip(operands).filter(|(role, _)| **role == OperandRole::Script).map(|(_, word)| word).collect();
    if words.len() < 2 {
        return None;
    }
    let text: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
    let is_known = words.iter().all(|word| word.known().is_some());
    Some(Argument::new(text.join(" "), if is_known { Certainty::Literal } else { Certainty::Unclear }))
}
