//! What a program does when it is called with these arguments, by what the tables know of it.

use std::ops::Range;

use toolgate_contract::{Access, Permission};

use super::arguments::{Flag, Sorted, sort, sort_globals};
use super::dangers;
use super::environment::is_decisive;
use super::forms::{Form, FormKind, KNOWLEDGE, StdinRole, When};
use super::part::{Argument, Certainty, Need, Part, Touch};
use super::roles::{Mark, Role};
use super::scripts;
use super::walk::Walk;
use super::{Ground, syntax};

/// Folders whose programs are what their names say.
const SYSTEM_PROGRAMS: &[&str] = &["/bin", "/usr/bin", "/sbin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin"];

/// How deep wrappers may stand inside each other.
const MOST_LEVELS: usize = 40;

/// How deep commands given as text may stand inside each other.
const MOST_SCRIPTS: usize = 8;

/// What stands around a command.
#[derive(Clone, Default)]
pub(super) struct Context {
    /// Effects of the redirections and assignments around it.
    pub(super) outer: Option<Part>,
    /// The parts inside its words.
    pub(super) inner: Range<usize>,
    /// Its input, if all of it is written in the command.
    pub(super) input: Option<String>,
}

/// A form that fits, with its arguments sorted.
struct Match {
    form: &'static Form,
    /// How many words name it, the program included.
    words: usize,
    sorted: Sorted,
}

impl Walk<'_> {
    /// Reads one call of a program and pushes it, and what it runs in turn.
    pub(super) fn program(&mut self, arguments: Vec<Argument>, context: Context) {
        let mut part = self.part(arguments);
        if let Some(outer) = &context.outer {
            (part.touches, part.unclear, part.dangers) =
                (outer.touches.clone(), outer.unclear.clone(), outer.dangers.clone());
        }
        if let Some(why) = &self.shell.trouble {
            part.doubt(why.clone());
        }
        let Some(name) = self.name(&mut part) else {
            part.doubt("which program runs isn't known");
            part.interprets = true;
            self.check_sources(&mut part, &context);
            return self.push(part);
        };
        let mut arguments = part.words[1..].to_vec();
        if matches!(name.as_str(), "tar" | "gtar" | "bsdtar") {
            with_dash(&mut arguments);
        }
        let (globals, skipped) = match KNOWLEDGE.globals(&name) {
            Some(globals) => sort_globals(&globals.flags, &globals.harmless, &arguments),
            None => (Vec::new(), 0),
        };
        part.globals = skipped;
        self.globals(&mut part, &globals);
        let found = choose(&name, &arguments[skipped..]);
        let mut nested = Nested::default();
        match &found {
            _ if globals.iter().any(|flag| flag.role.has(Mark::Help)) => {}
            _ if asks_for_help(&name, &arguments) => {}
            Some(found) => self.apply(&mut part, found, &context, &mut nested),
            None => self.unlisted(&mut part, &arguments),
        }
        let sorted = found.as_ref().map(|found| &found.sorted);
        dangers::from_table(&mut part, &name, &arguments[skipped..], sorted);
        dangers::of_touches(&mut part, self.ground, nested.moves, nested.recursive);
        self.check_sources(&mut part, &context);
        part.wraps = !nested.commands.is_empty() || !nested.scripts.is_empty();
        self.push(part);
        self.inside(nested, &name, &context);
    }

    /// The program's name. One that isn't in a system folder may be anything, whatever it is called.
    fn name(&self, part: &mut Part) -> Option<String> {
        let text = part.words.first()?.known()?;
        if text.is_empty() {
            return None;
        }
        let Some((_, base)) = text.rsplit_once('/') else { return Some(text.to_owned()) };
        let folder = part.folder.as_deref().unwrap_or("/");
        let resolved = Ground::resolve(folder, text);
        let parent = resolved.rsplit_once('/').map_or("", |(parent, _)| parent);
        if !SYSTEM_PROGRAMS.contains(&parent) {
            part.runs = true;
        }
        Some(base.to_owned())
    }

    fn globals(&mut self, part: &mut Part, flags: &[Flag]) {
        for flag in flags {
            if flag.role.has(Mark::Unclear) {
                part.doubt(format!("`{}` decides what it runs", flag.name));
            }
            match (&flag.value, flag.role.value) {
                (Some(value), Some(Role::Workdir)) => self.move_to(part, value),
                (Some(value), Some(role)) => self.operand(part, role, value, &mut Nested::default()),
                _ => {}
            }
        }
    }

    /// A program that no table knows. It runs; what it is given that is plainly a sensitive file counts as read.
    fn unlisted(&mut self, part: &mut Part, arguments: &[Argument]) {
        part.runs = true;
        self.mentions(part, arguments);
    }

    /// What a program is given that can't be seen into.
    fn mentions(&mut self, part: &mut Part, arguments: &[Argument]) {
        for argument in arguments {
            if argument.is_unclear() {
                part.doubt(format!("what `{}` is isn't known", argument.text));
            }
            let value = argument.known().map(|text| text.rsplit_once('=').map_or(text, |(_, value)| value));
            let Some(value) = value.filter(|value| !value.is_empty() && !value.starts_with('-')) else { continue };
            let value = value.strip_prefix('@').unwrap_or(value);
            let folder = part.folder.clone().unwrap_or_else(|| self.ground.workspace().to_owned());
            let path = Ground::resolve(&folder, value);
            if dangers::is_sensitive(&self.ground.place(&path)) {
                part.touch(Touch::Path { access: Access::Read, path, pattern: false });
            }
        }
    }

    fn apply(&mut self, part: &mut Part, found: &Match, context: &Context, nested: &mut Nested) {
        let Match { form, words, sorted } = found;
        let is_risky = sorted.flags.iter().any(|flag| flag.role.is_risky()) || !sorted.unclear.is_empty();
        if sorted.flags.iter().any(|flag| flag.role.has(Mark::Help)) && !is_risky {
            part.form = Some(*words);
            return;
        }
        part.form = Some(*words);
        part.runs |= form.kind == FormKind::Run;
        form.needs.iter().for_each(|need| part.need(need.need()));
        form.hosts.iter().for_each(|host| part.touch(Touch::Host { name: host.clone(), port: 443 }));
        sorted.unclear.iter().for_each(|why| part.doubt(why.clone()));
        nested.moves = form.operands.moves();
        self.flags(part, &sorted.flags, nested);
        self.operands(part, found, nested);
        self.standard_input(part, found, context, nested);
        if let Some(role) = form.here {
            self.operand(part, role, &Argument::literal("."), nested);
        }
        let looks_around = form.operands.role(0, 1).is_source() || form.operands.role(0, 1) == Role::Exec;
        if looks_around && sorted.operands.is_empty() && part.folder.is_none() && self.shell.folders.is_none() {
            part.doubt("which folder it runs in isn't known");
        }
        // `test $a 'b[$(c)]'`: what is compared may be calculated.
        if form.quiet
            && sorted
                .operands
                .iter()
                .any(|word| word.text.contains(['`', '[']) && word.text.len() > 1 && !word.is_unclear())
        {
            part.doubt("what it compares may run code");
        }
        if form.operands.role(0, 1) != Role::Exec {
            nested.commands.extend(sorted.commands.iter().cloned());
        }
        if let Some((role, rest)) = &sorted.rest {
            let from = if *role == Role::Environment { self.leading_assignments(part, rest) } else { 0 };
            nested.commands.extend((from < rest.len()).then(|| rest[from..].to_vec()));
        }
        if part.runs {
            self.mentions(part, &sorted.operands);
        }
    }

    fn flags(&mut self, part: &mut Part, flags: &[Flag], nested: &mut Nested) {
        for flag in flags {
            for mark in flag.role.marks.into_iter().flatten() {
                match mark {
                    Mark::Unclear => part.doubt(format!("`{}` can make it do anything", flag.name)),
                    Mark::Run => part.runs = true,
                    Mark::Net => part.need(Need::Permission(Permission::NetConnect)),
                    Mark::GitWrite => part.need(Need::Permission(Permission::GitWrite)),
                    Mark::FsWrite => part.need(Need::Permission(Permission::FsWrite)),
                    Mark::FsDelete => part.need(Need::Permission(Permission::FsDelete)),
                    Mark::Recursive => nested.recursive = true,
                    Mark::Write | Mark::Delete | Mark::Read | Mark::Text | Mark::Shift | Mark::Help => {}
                }
            }
            match (flag.role.value, &flag.value) {
                (Some(Role::Workdir), Some(folder)) => self.move_to(part, folder),
                (Some(role), Some(value)) => self.operand(part, role, value, nested),
                _ => {}
            }
            if matches!(flag.name.as_str(), "-I" | "-i" | "--replace") {
                let replaced = flag.value.as_ref().and_then(Argument::known).unwrap_or("{}");
                nested.replaces = Some(replaced.to_owned());
            }
        }
    }

    fn operands(&mut self, part: &mut Part, found: &Match, nested: &mut Nested) {
        let Match { form, sorted, .. } = found;
        let has = |mark| sorted.flags.iter().any(|flag| flag.role.has(mark));
        let roles = if has(Mark::Shift) { form.operands.shifted() } else { form.operands.clone() };
        if roles.role(0, 1) == Role::Exec {
            return self.find(part, sorted, nested);
        }
        let as_well = [(Mark::Write, Access::Write), (Mark::Delete, Access::Delete), (Mark::Read, Access::Read)];
        let as_well: Vec<Access> =
            as_well.into_iter().filter(|(mark, _)| has(*mark)).map(|(_, access)| access).collect();
        let count = sorted.operands.len();
        let roles: Vec<Role> =
            (0..count).map(|index| if has(Mark::Text) { Role::Text } else { roles.role(index, count) }).collect();
        let reads = roles.iter().any(|role| role.is_source());
        let together = joined_script(&roles, &sorted.operands);
        for (role, operand) in roles.iter().zip(&sorted.operands) {
            if *role == Role::Script && together.is_some() {
                continue;
            }
            self.operand(part, *role, operand, nested);
            if role.is_source()
                || !reads && matches!(role, Role::Write | Role::Delete)
                || *role == Role::Text && has(Mark::Read)
            {
                as_well.iter().for_each(|access| self.path(part, *access, operand));
            }
        }
        if let Some(text) = together {
            self.operand(part, Role::Script, &text, nested);
        }
    }

    /// Interpreters without a file run what comes in.
    fn standard_input(&mut self, part: &mut Part, found: &Match, context: &Context, nested: &mut Nested) {
        let Some(role) = found.form.reads_stdin_as else { return };
        if nested.code {
            return;
        }
        part.interprets = true;
        nested.reads_input = true;
        match (&context.input, role) {
            (Some(script), StdinRole::Script) if part.form.is_some() => {
                part.runs = false;
                nested.scripts.push(script.clone());
            }
            _ => {}
        }
    }

    /// `NAME=value` words before a command. Gives how many there are.
    fn leading_assignments(&mut self, part: &mut Part, words: &[Argument]) -> usize {
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

    fn move_to(&mut self, part: &mut Part, folder: &Argument) {
        self.path(part, Access::Read, folder);
        part.touches.pop_if(|touch| matches!(touch, Touch::Path { access: Access::Read, path, .. } if !dangers::is_sensitive(&self.ground.place(path))));
        part.folder = match (folder.known(), &part.folder) {
            (Some(folder), _) if folder.starts_with('/') => Some(Ground::resolve("/", folder)),
            (Some(folder), Some(from)) => Some(Ground::resolve(from, folder)),
            _ => None,
        };
        if part.folder.is_none() {
            part.doubt("which folder it runs in isn't known");
        }
    }

    /// One operand, or the value of one flag.
    pub(super) fn operand(&mut self, part: &mut Part, role: Role, argument: &Argument, nested: &mut Nested) {
        match role {
            Role::Text | Role::Assignments | Role::Command | Role::Environment | Role::Exec => {}
            Role::Read => self.path(part, Access::Read, argument),
            Role::Write => self.path(part, Access::Write, argument),
            Role::Delete => self.path(part, Access::Delete, argument),
            Role::Workdir => self.visits(part, argument),
            Role::Url | Role::Host | Role::Remote => reach(part, role, argument),
            Role::Rev | Role::Revpath => self.revision(part, role, argument),
            Role::Dd => self.copy_operand(part, argument),
            Role::Sed | Role::Awk => self.script_text(part, role, argument),
            Role::GitRef => part.need(Need::Permission(Permission::GitWrite)),
            Role::Unclear => part.doubt(format!("`{}` can make it do anything", argument.text)),
            Role::Code => {
                part.runs = true;
                part.interprets = true;
                nested.code = true;
            }
            Role::Program => {
                part.runs = true;
                nested.code |= argument.text != "-";
                if argument.is_unclear() || argument.text.starts_with("/dev/") {
                    part.interprets = true;
                } else {
                    self.path(part, Access::Read, argument);
                }
            }
            Role::Filter => match argument.known() {
                Some(text) if ["import", "include", "load", "env", "ENV"].iter().all(|word| !text.contains(word)) => {}
                _ => part.doubt(format!("what `{}` loads isn't known", argument.text)),
            },
            Role::Data => self.sent(part, argument),
            Role::Copy | Role::CopyTo | Role::Cloud => self.copied(part, role, argument),
            Role::Script | Role::Scripts => {
                part.interprets = true;
                match argument.known() {
                    Some("-") | Some("") => {}
                    Some(text) => nested.scripts.push(text.to_owned()),
                    None => {
                        part.doubt(format!("it runs `{}`, not all of which is known", argument.text));
                        nested.scripts.extend(unquoted(&argument.text));
                    }
                }
            }
        }
    }

    /// A folder that is gone to: nothing is read yet, but a sensitive one is no place to be.
    fn visits(&mut self, part: &mut Part, folder: &Argument) {
        let mut probe = Part { folder: part.folder.clone(), ..Part::default() };
        if folder.certainty == Certainty::Literal && !folder.text.starts_with('-') {
            self.path(&mut probe, Access::Read, folder);
        }
        for touch in probe.touches {
            if matches!(&touch, Touch::Path { path, .. } if dangers::is_sensitive(&self.ground.place(path))) {
                part.touch(touch);
            }
        }
    }

    fn revision(&mut self, part: &mut Part, role: Role, argument: &Argument) {
        if argument.is_unclear() {
            return;
        }
        let path = match argument.text.split_once(':') {
            Some((_, path)) if !path.is_empty() => Some(path.rsplit_once(':').map_or(path, |(_, path)| path)),
            _ if role == Role::Revpath && !is_revision(&argument.text) => Some(argument.text.as_str()),
            _ => None,
        };
        if let Some(path) = path {
            // `:(top)a`, `:!a`, `:/a`: how git writes paths from elsewhere.
            let path = path.split_once(')').filter(|_| path.starts_with('(')).map_or(path, |(_, path)| path);
            let path = if argument.text.starts_with(':') { path.trim_start_matches(['!', '^', '/']) } else { path };
            self.path(part, Access::Read, &Argument { text: path.to_owned(), certainty: argument.certainty });
        }
    }

    /// `dd`'s `if=` and `of=`.
    fn copy_operand(&mut self, part: &mut Part, argument: &Argument) {
        let Some((name, value)) = argument.text.split_once('=') else { return };
        let access = match name {
            "if" => Access::Read,
            "of" => Access::Write,
            _ => return,
        };
        self.path(part, access, &Argument { text: value.to_owned(), certainty: argument.certainty });
    }

    /// `@file`, `name=@file` and `name=<file` send what is in a file.
    fn sent(&mut self, part: &mut Part, argument: &Argument) {
        if argument.is_unclear() {
            return part.doubt(format!("what `{}` sends isn't known", argument.text));
        }
        let whole = argument.text.strip_prefix('@');
        let file = match argument.text.split_once('=') {
            Some((_, value)) => value.strip_prefix(['@', '<']),
            None => argument
                .text
                .split_once('@')
                .filter(|(name, _)| name.bytes().all(|byte| byte.is_ascii_alphanumeric()))
                .map(|(_, file)| file),
        };
        if let Some(file) = whole.or(file) {
            let file = file.split(';').next().unwrap_or(file);
            self.path(part, Access::Read, &Argument { text: file.to_owned(), certainty: argument.certainty });
        }
    }

    fn copied(&mut self, part: &mut Part, role: Role, argument: &Argument) {
        if argument.text.contains("://") && role == Role::Cloud {
            return part.need(Need::Permission(Permission::NetConnect));
        }
        match host(Role::Remote, &argument.text).filter(|_| !argument.is_unclear()) {
            Some((name, port)) => part.touch(Touch::Host { name, port }),
            None if role == Role::Cloud => self.mentions(part, std::slice::from_ref(argument)),
            None => self.path(part, if role == Role::Copy { Access::Read } else { Access::Write }, argument),
        }
    }

    fn script_text(&mut self, part: &mut Part, role: Role, argument: &Argument) {
        let found = match argument.known() {
            Some(text) if role == Role::Sed => scripts::sed(text),
            Some(text) => scripts::awk(text),
            None => return part.doubt(format!("what `{}` says isn't known", argument.text)),
        };
        match found {
            Ok(files) => {
                for (access, file) in files {
                    self.path(part, access, &Argument::literal(file));
                }
            }
            Err(why) => part.doubt(why),
        }
    }

    /// Commands and scripts inside this one.
    fn inside(&mut self, nested: Nested, name: &str, context: &Context) {
        if self.level >= MOST_LEVELS {
            self.overflow = true;
            return;
        }
        self.level += 1;
        let outer = context.outer.clone();
        for words in nested.commands {
            // What decides for the wrapper decides for what it runs.
            let unclear = outer.as_ref().map(|outer| outer.unclear.clone()).unwrap_or_default();
            let mut outer = Part { unclear, ..Part::default() };
            nested.doubt.iter().for_each(|why| outer.doubt(why.clone()));
            let words = self.with_input(name, nested.replaces.as_deref(), words, &mut outer);
            if !words.is_empty() {
                let (inner, input) = (context.inner.clone(), context.input.clone());
                self.invoke(words, Context { outer: Some(outer), inner, input });
            }
        }
        for script in nested.scripts {
            self.script(&script, name == "eval");
        }
        self.level -= 1;
    }

    /// `xargs` appends what it reads, or fills it in.
    fn with_input(&self, name: &str, replaces: Option<&str>, words: Vec<Argument>, outer: &mut Part) -> Vec<Argument> {
        if !matches!(name, "xargs" | "parallel" | "fd" | "fdfind") {
            return words;
        }
        let fed = self.parts.get(self.feeding.clone()).unwrap_or_default();
        let only_reads = |part: &Part| {
            let reads = |touch: &Touch| matches!(touch, Touch::Path { access: Access::Read, .. });
            part.is_known() && part.needs.is_empty() && part.touches.iter().all(reads)
        };
        let is_tame = name.starts_with("fd") || !fed.is_empty() && fed.iter().all(only_reads);
        let certainty = if is_tame { Certainty::Names } else { Certainty::Unclear };
        let given: Vec<Argument> = match &self.input {
            Some(text) => text.split_ascii_whitespace().map(Argument::literal).collect(),
            None => vec![Argument { text: replaces.unwrap_or("…").to_owned(), certainty }],
        };
        let Some(replaced) = replaces else { return [words, given].concat() };
        if words.iter().any(|word| word.text.contains(replaced) && word.text != replaced) {
            outer.doubt(format!("what comes in for `{replaced}` isn't known"));
        }
        words.into_iter().flat_map(|word| if word.text == replaced { given.clone() } else { vec![word] }).collect()
    }

    /// A command given as text: to a shell of its own, or to `eval`, which is this one.
    fn script(&mut self, text: &str, here: bool) {
        let script = match syntax::parse(text) {
            Ok(script) if self.depth < MOST_SCRIPTS => script,
            parsed => {
                let mut part = self.part(Vec::new());
                let why = parsed.err().map_or_else(|| "it is nested too deep".to_owned(), |fault| fault.to_string());
                part.doubt(format!("a command in it can't be read: {why}"));
                return self.push(part);
            }
        };
        let mut walk = Walk::new(self.ground, &script.documents, self.shell.folders.clone());
        walk.level = self.level;
        walk.depth = self.depth + 1;
        walk.beside = self.beside;
        walk.shell.trouble = self.shell.trouble.clone();
        if here {
            walk.shell.variables = self.shell.variables.clone();
        }
        walk.list(&script.list);
        let defines = !walk.shell.functions.is_empty();
        if here {
            self.shell.variables = walk.shell.variables.clone();
            self.shell.folders = walk.shell.folders.clone();
            self.shell.trouble = walk.shell.trouble.clone();
            if defines {
                self.shell.disturb("`eval` defined functions");
            }
        }
        self.overflow |= walk.overflow;
        for part in walk.parts {
            self.push(part);
        }
    }

    /// Code that comes from the network, or out of a decoder, is never run.
    pub(super) fn check_sources(&mut self, part: &mut Part, context: &Context) {
        if !part.interprets {
            return;
        }
        let inner = self.parts.get(context.inner.clone()).unwrap_or_default();
        let fed = self.parts.get(self.feeding.clone()).unwrap_or_default();
        dangers::of_sources(part, inner.iter().chain(fed));
    }
}

/// What a part turns out to run, and what else is known of it on the way.
#[derive(Default)]
pub(super) struct Nested {
    pub(super) commands: Vec<Vec<Argument>>,
    pub(super) scripts: Vec<String>,
    pub(super) recursive: bool,
    /// What can't be known of the commands in it.
    pub(super) doubt: Option<String>,
    /// What `xargs` fills in for what it reads.
    replaces: Option<String>,
    moves: bool,
    /// Code was given, so none is read from the input.
    code: bool,
    reads_input: bool,
}

/// A script in double quotes: whatever is filled in, the rest of it runs.
fn unquoted(written: &str) -> Option<String> {
    let inner = written.strip_prefix('"')?.strip_suffix('"')?;
    Some(inner.replace("\\\"", "\"").replace("\\\\", "\\"))
}

/// A program that is known and is only asked what it is.
fn asks_for_help(name: &str, arguments: &[Argument]) -> bool {
    let [only] = arguments else { return false };
    only.known() == Some("--version") && !KNOWLEDGE.forms(name).is_empty()
}

/// `tar xzf a.tgz` is `tar -xzf a.tgz`.
fn with_dash(arguments: &mut [Argument]) {
    if let Some(first) = arguments.first_mut()
        && first.known().is_some_and(|text| {
            text.starts_with(['c', 'x', 't', 'r', 'u', 'A']) && text.bytes().all(|byte| byte.is_ascii_alphabetic())
        })
    {
        first.text.insert(0, '-');
    }
}

/// The first form that fits.
fn choose(name: &str, arguments: &[Argument]) -> Option<Match> {
    let says = |words: &[&str]| {
        words.len() <= arguments.len()
            && words.iter().zip(arguments).all(|(word, argument)| argument.known() == Some(word))
    };
    let forms = KNOWLEDGE.forms(name).iter().filter(|(words, _)| says(words));
    forms
        .map(|(words, form)| Match { form, words: words.len() + 1, sorted: sort(form, &arguments[words.len()..]) })
        .find(fits)
}

fn fits(found: &Match) -> bool {
    let Match { form, sorted, .. } = found;
    let has = |names: &[String]| sorted.flags.iter().any(|flag| names.contains(&flag.name));
    let is_bare = sorted.operands.is_empty() && sorted.rest.is_none();
    (form.with.is_empty() || has(&form.with))
        && !has(&form.without)
        && match form.when {
            None => true,
            Some(When::Bare) => is_bare,
            Some(When::Operands) => !is_bare,
        }
}

/// Several words that together are one script, as `eval` and `watch` take them.
fn joined_script(roles: &[Role], operands: &[Argument]) -> Option<Argument> {
    let words: Vec<&Argument> =
        roles.iter().zip(operands).filter(|(role, _)| **role == Role::Script).map(|(_, word)| word).collect();
    if words.len() < 2 {
        return None;
    }
    let text: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
    let is_known = words.iter().all(|word| word.known().is_some());
    Some(Argument { text: text.join(" "), certainty: if is_known { Certainty::Literal } else { Certainty::Unclear } })
}

/// Whether a word is plainly a revision and no path.
fn is_revision(word: &str) -> bool {
    let is_name = |name: &str| matches!(name, "main" | "master" | "develop" | "dev" | "trunk" | "stash");
    let is_hash = |word: &str| (7..=64).contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_version = |word: &str| {
        word.strip_prefix('v').is_some_and(|rest| rest.starts_with(|letter: char| letter.is_ascii_digit()))
    };
    let simple = |word: &str| {
        let stem = word.split(['~', '^', '@']).next().unwrap_or_default();
        stem.is_empty() && !word.is_empty()
            || stem == "HEAD"
            || stem.ends_with("_HEAD")
            || is_name(stem)
            || is_hash(stem)
            || is_version(stem)
            || ["origin/", "upstream/", "refs/", "heads/", "tags/"].iter().any(|start| stem.starts_with(start))
    };
    match word.split_once("..") {
        Some((first, last)) => {
            let last = last.trim_start_matches('.');
            !(word.contains("../") || word.starts_with('/') || first.is_empty() && last.is_empty())
        }
        None => simple(word.trim_start_matches('^')),
    }
}

/// The host that an operand leads to.
fn reach(part: &mut Part, role: Role, argument: &Argument) {
    // Brackets around an address look like a pattern.
    let Some(text) = (!argument.is_unclear()).then(|| argument.text.replace('\\', "")) else {
        part.doubt(format!("which host `{}` is isn't known", argument.text));
        return part.need(Need::Permission(Permission::NetConnect));
    };
    if text.starts_with("ext::") || text.starts_with("fd::") {
        part.doubt(format!("`{text}` runs a command"));
    }
    match host(role, &text) {
        Some((name, port)) => part.touch(Touch::Host { name, port }),
        None => part.need(Need::Permission(Permission::NetConnect)),
    }
}

fn host(role: Role, text: &str) -> Option<(String, u16)> {
    let (scheme, rest) = match text.split_once("://") {
        Some((scheme, rest)) => (scheme, rest),
        None if role == Role::Url => ("http", text),
        None => return host_of_copy(role, text),
    };
    let default = match scheme {
        "http" | "ws" => 80,
        "ssh" | "git+ssh" | "sftp" => 22,
        "ftp" => 21,
        "git" => 9418,
        "file" => return None,
        _ => 443,
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let authority = authority.rsplit('@').next().unwrap_or_default();
    let (name, port) = match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((name, rest)) => (name, rest.strip_prefix(':')),
        None => authority.rsplit_once(':').map_or((authority, None), |(name, port)| (name, Some(port))),
    };
    (!name.is_empty()).then(|| (name.to_owned(), port.and_then(|port| port.parse().ok()).unwrap_or(default)))
}

/// `user@host`, `host:path`; the bare name of a repository says nothing.
fn host_of_copy(role: Role, text: &str) -> Option<(String, u16)> {
    let (before, path) = text.split_once(':').map_or((text, None), |(before, path)| (before, Some(path)));
    let name = before.rsplit('@').next().unwrap_or_default();
    let is_host = role == Role::Host || path.is_some() && !before.contains('/');
    let port = path.and_then(|path| path.parse().ok()).unwrap_or(22);
    (is_host && !name.is_empty() && !name.starts_with('-')).then(|| (name.to_owned(), port))
}
