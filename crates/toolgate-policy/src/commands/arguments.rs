//! Tells flags, their values and operands apart, as a form describes them.

use super::forms::{CommandForm, FlagTable, KnownForm};
use super::options::{KnownOptions, OptionName};
use super::roles::{FlagEffect, FlagRole, OperandRole};
use super::simple_command::{Argument, Certainty};

/// The parsed arguments of one command.
#[derive(Debug, Default)]
pub(super) struct ParsedArguments {
    pub(super) flags: Vec<ParsedFlag>,
    pub(super) operands: Vec<Argument>,
    /// The words of another command, with the role of the first one.
    pub(super) rest: Option<(OperandRole, Vec<Argument>)>,
    /// Commands that flags run.
    pub(super) commands: Vec<Vec<Argument>>,
    /// Why flags and operands can't be told apart, or what is unknown about them.
    pub(super) unclear: Vec<String>,
}

/// A flag among the arguments.
#[derive(Debug)]
pub(super) struct ParsedFlag {
    pub(super) name: String,
    pub(super) role: FlagRole,
    pub(super) value: Option<Argument>,
    /// The option that it turns off again, if it is a negation.
    pub(super) negates: Option<String>,
}

impl ParsedFlag {
    fn new(name: &str, role: FlagRole, value: Option<Argument>) -> Self {
        Self { name: name.to_owned(), role, value, negates: None }
    }
}

/// Parses the arguments after the words that name the form.
pub(super) fn parse_arguments(known: &'static KnownForm, arguments: &[Argument]) -> ParsedArguments {
    let (form, options) = (known.form, known.options());
    let parsed = ParsedArguments::default();
    let mut parser = ArgumentParser { form, options, parsed, coming: arguments.iter(), only_operands: form.quiet };
    if let Some(file) = arguments.iter().find(|argument| form.response_files && may_be_response_file(argument)) {
        parser.parsed.unclear.push(format!("`{}` may stand for the options in a file", file.text));
    }
    parser.run();
    parser.parsed
}

/// Whether an argument is `@FILE`, or may be.
fn may_be_response_file(argument: &Argument) -> bool {
    match argument.certainty {
        Certainty::Literal => argument.text.starts_with('@'),
        Certainty::Pattern => argument.text.starts_with(['*', '?', '[', '@']),
        Certainty::Names | Certainty::Unclear => true,
    }
}

struct ArgumentParser<'a> {
    form: &'static CommandForm,
    options: &'static KnownOptions,
    parsed: ParsedArguments,
    coming: std::slice::Iter<'a, Argument>,
    only_operands: bool,
}

impl ArgumentParser<'_> {
    fn run(&mut self) {
        while let Some(argument) = self.coming.next() {
            let begins = self.form.operands.command_at().filter(|(at, _)| *at == self.parsed.operands.len());
            match argument.known() {
                Some(text) if self.form.numbers && is_number(text, '+') => {}
                Some(text) if self.form.plus && !self.only_operands && text.starts_with('+') => {}
                Some("--") if !self.only_operands => {
                    self.only_operands = !begins.is_some_and(|(_, role)| role == OperandRole::Environment)
                }
                Some(text) if !self.only_operands && text.starts_with("--") => self.long(text),
                Some(text) if !self.only_operands && text.len() > 1 && text.starts_with('-') => self.short(text),
                None if !self.only_operands && self.pattern_option(argument) => {}
                _ => {
                    if let Some((_, role)) = begins {
                        let rest = [argument].into_iter().chain(self.coming.by_ref()).cloned().collect();
                        self.parsed.rest = Some((role, rest));
                        return;
                    }
                    self.operand(argument);
                }
            }
        }
    }

    /// `--include=*.rs`: an option whose value is a pattern that nobody quoted. It matches no file but one that is named
    /// like this very option.
    fn pattern_option(&mut self, argument: &Argument) -> bool {
        let is_pattern = argument.certainty == Certainty::Pattern;
        let Some((name, value)) =
            argument.text.split_once('=').filter(|(name, _)| is_pattern && name.starts_with("--"))
        else {
            return false;
        };
        let OptionName::Exact(name) = self.options.resolve(name) else { return false };
        let Some(role) = self.options.role(name).filter(|role| role.takes_value()) else { return false };
        let value = Argument::new(value, Certainty::Pattern);
        self.parsed.flags.push(ParsedFlag::new(name, role, Some(value)));
        true
    }

    /// An argument with an unknown beginning may be a flag.
    fn operand(&mut self, argument: &Argument) {
        let may_be_flag = match argument.certainty {
            Certainty::Literal => false,
            Certainty::Pattern => argument.text.starts_with(['*', '?', '[', '-']),
            Certainty::Names | Certainty::Unclear => argument.splits || !begins_plainly(&argument.text),
        };
        if may_be_flag && !self.only_operands && self.options.is_risky {
            self.parsed.unclear.push(format!("`{}` could be an option", argument.text));
        }
        let role = self.form.operands.role(self.parsed.operands.len(), usize::MAX);
        self.only_operands |= role.ends_flags() || self.form.options_first;
        self.parsed.operands.push(argument.clone());
    }

    /// `--name`, `--name=value`; the name may be abbreviated.
    fn long(&mut self, text: &str) {
        let (name, attached) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (text, None),
        };
        match self.options.resolve(name) {
            OptionName::Exact(name) => self.known(name, attached),
            OptionName::Abbreviated(full) => {
                let role = self.options.role(full).unwrap_or_default();
                // The next word is its value only if no option of the program has exactly this name.
                let takes_next = role.takes_value() && !role.optional && attached.is_none();
                if takes_next || !self.options.is_complete() && self.options.strict {
                    self.parsed.unclear.push(format!("`{name}` may be short for `{full}`"));
                }
                self.known(full, attached);
            }
            OptionName::Negated(positive) => {
                let flag = ParsedFlag::new(name, FlagRole::default(), None);
                self.parsed.flags.push(ParsedFlag { negates: Some(positive.to_owned()), ..flag });
            }
            OptionName::Ambiguous => {
                self.parsed.unclear.push(format!("`{name}` is short for several options"));
                self.unlisted(name);
            }
            OptionName::Unknown => self.unlisted(name),
        }
    }

    /// An option by its complete name, which this form or another one of the program describes.
    fn known(&mut self, name: &str, attached: Option<&str>) {
        match self.options.role(name) {
            Some(role) => self.found(name, role, attached.map(str::to_owned)),
            None => self.unlisted(name),
        }
    }

    /// `-abc`, `-ovalue`, or `-name` where names have one dash.
    fn short(&mut self, text: &str) {
        if self.form.numbers && is_number(text, '-') {
            return;
        }
        if let Some(role) = self.options.role(text) {
            return self.found(text, role, None);
        }
        if self.form.long {
            return match text.split_once('=') {
                Some((name, value)) => match self.options.role(name) {
                    Some(role) => self.found(name, role, Some(value.to_owned())),
                    None => self.unlisted(name),
                },
                None => self.unlisted(text),
            };
        }
        for (at, letter) in text.char_indices().skip(1) {
            let name = format!("-{letter}");
            if let Some(longer) = self.risky_option_at(&text[at..]) {
                self.parsed.unclear.push(format!("`{text}` may be the option `{longer}`"));
            }
            match self.options.role(&name) {
                Some(role) if role.takes_value() && (!role.optional || !text[at + letter.len_utf8()..].is_empty()) => {
                    let attached = &text[at + letter.len_utf8()..];
                    let attached = (!attached.is_empty()).then(|| attached.to_owned());
                    return self.found(&name, role, attached);
                }
                Some(role) => self.found(&name, role, None),
                None => self.unlisted(&name),
            }
        }
    }

    /// An option of one dash and several letters that begins here, in a bundle of letters, and does more than read: `-lfout` of
    /// `zip` is `-lf out`.
    fn risky_option_at(&self, letters: &str) -> Option<String> {
        let ends = letters.char_indices().map(|(at, letter)| at + letter.len_utf8()).skip(1);
        let names = ends.map(|end| format!("-{}", &letters[..end]));
        names.into_iter().find(|name| self.options.role(name).is_some_and(FlagRole::is_risky))
    }

    fn found(&mut self, name: &str, role: FlagRole, attached: Option<String>) {
        if role.value == Some(OperandRole::Command) {
            return self.nested_command(name, role, attached);
        }
        let is_separate = role.takes_value() && !role.optional && attached.is_none();
        let value = match is_separate {
            true => self.coming.next().cloned(),
            false => attached.map(Argument::literal),
        };
        if let Some(value) = value.as_ref().filter(|value| is_separate && self.may_be_option(value)) {
            self.parsed.unclear.push(format!("`{}` could be an option", value.text));
        }
        let second = role.second.and_then(|second| Some((second, self.coming.next()?.clone())));
        let role = self.unless_harmless(name, role, value.as_ref());
        self.parsed.flags.push(ParsedFlag::new(name, role, value));
        if let Some((second, value)) = second {
            let role = FlagRole { value: Some(second), ..FlagRole::default() };
            self.parsed.flags.push(ParsedFlag::new(name, role, Some(value)));
        }
    }

    /// Whether the word after a flag, which counts as its value, may be or bring an option that matters.
    fn may_be_option(&self, value: &Argument) -> bool {
        if !self.options.is_risky {
            return false;
        }
        match value.certainty {
            // Should this version of the program take no value here, the next word is an option. `git archive` looks for
            // `-o` before it knows which options have a value.
            Certainty::Literal if value.text.starts_with("--") => value.text.len() > 2,
            Certainty::Literal => self.begins_as_risky_option(&value.text),
            // Where options have one dash and no attached value, a pattern such as `*.rs` matches none.
            Certainty::Pattern if self.form.long => self.options.matches_any(&value.text),
            Certainty::Pattern => value.text.starts_with(['*', '?', '[', '-']),
            Certainty::Names | Certainty::Unclear => value.splits || !begins_plainly(&value.text),
        }
    }

    /// `-o`, `-oFILE`, or `-name` where names have one dash, if that option does more than read.
    fn begins_as_risky_option(&self, word: &str) -> bool {
        let is_risky = |name: &str| self.options.role(name).is_some_and(FlagRole::is_risky);
        let short = word.char_indices().nth(2).map_or(word, |(end, _)| &word[..end]);
        word.starts_with('-') && (is_risky(word) || is_risky(short))
    }

    /// A flag whose value is an entire command: up to `;` or `+` where flags have one dash, otherwise all remaining
    /// words.
    fn nested_command(&mut self, name: &str, role: FlagRole, attached: Option<String>) {
        let mut words: Vec<Argument> = attached.map(Argument::literal).into_iter().collect();
        for word in self.coming.by_ref() {
            let ends = word.known() == Some(";") || word.known() == Some("+") && !words.is_empty();
            if self.form.long && ends {
                break;
            }
            words.push(word.clone());
        }
        self.parsed.commands.push(words);
        self.parsed.flags.push(ParsedFlag::new(name, FlagRole { value: None, ..role }, None));
    }

    fn unless_harmless(&self, name: &str, role: FlagRole, value: Option<&Argument>) -> FlagRole {
        match is_harmless(&self.form.harmless, name, value) {
            true => FlagRole::default(),
            false => role,
        }
    }

    fn unlisted(&mut self, name: &str) {
        if self.options.strict {
            self.parsed.unclear.push(format!("the option `{name}` isn't known"));
        }
        self.parsed.flags.push(ParsedFlag::new(name, FlagRole::default(), None));
    }
}

/// Whether a word begins with text that is certain and isn't a dash: `src/$name`.
fn begins_plainly(written: &str) -> bool {
    written.starts_with(|letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '/' | '.' | '_'))
}

/// `-5` or `+5`.
fn is_number(text: &str, sign: char) -> bool {
    text.strip_prefix(sign).is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Whether a table marks this flag with this value as harmless: `"-c color.*"`.
fn is_harmless(patterns: &[String], name: &str, value: Option<&Argument>) -> bool {
    let Some(value) = value.and_then(Argument::known) else { return false };
    patterns.iter().filter_map(|pattern| pattern.split_once(' ')).any(|(flag, pattern)| {
        flag == name
            && match pattern.strip_suffix('*') {
                Some(beginning) => value.starts_with(beginning),
                None => value == pattern,
            }
    })
}

/// Parses the flags before a subcommand. Returns them and how many words they take.
pub(super) fn parse_globals(
    flags: &FlagTable,
    harmless: &[String],
    arguments: &[Argument],
) -> (Vec<ParsedFlag>, usize) {
    let (mut found, mut at) = (Vec::new(), 0);
    while let Some(text) = arguments.get(at).and_then(Argument::known) {
        if text.len() > 1 && text.starts_with('+') {
            // The name of a toolchain, or the directory of any program: `cargo +/tmp/x build`.
            let marks = [text.contains('/').then_some(FlagEffect::Unclear), None];
            found.push(ParsedFlag::new(text, FlagRole { marks, ..FlagRole::default() }, None));
            at += 1;
            continue;
        }
        if text.len() < 2 || !text.starts_with('-') || text == "--" {
            break;
        }
        let (name, attached) = match text.split_once('=') {
            Some((name, value)) if text.starts_with("--") => (name, Some(value)),
            _ => (text, None),
        };
        let short = |flag: &str| flag.get(..2).filter(|_| !flag.starts_with("--")).map(str::to_owned);
        let (name, role, attached) = match flags.role(name) {
            Some(role) => (name.to_owned(), role, attached.map(str::to_owned)),
            // `-Cdir`: a short flag with its value attached.
            None => match short(name).and_then(|short| flags.role(&short).map(|role| (short, role))) {
                Some((short, role)) if role.takes_value() => (short, role, Some(text[2..].to_owned())),
                _ => break,
            },
        };
        at += 1;
        let value = match (role.takes_value() && !role.optional, attached) {
            (true, None) => {
                at += 1;
                arguments.get(at - 1).cloned()
            }
            (_, attached) => attached.map(Argument::literal),
        };
        let role = if is_harmless(harmless, &name, value.as_ref()) { FlagRole::default() } else { role };
        found.push(ParsedFlag::new(&name, role, value));
    }
    (found, at.min(arguments.len()))
}
