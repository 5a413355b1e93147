//! The shell's own part in a simple command: assignments, redirections, and builtins that change the shell's state.

use toolgate_contract::{Access, Permission};

use super::PathContext;
use super::environment::is_decisive;
use super::program::CommandContext;
use super::shell_reader::ShellReader;
use super::shell_state::NAMES;
use super::simple_command::{Argument, Certainty, Danger, Need, SimpleCommand, Touch};
use super::syntax::{AssignedValue, Assignment, Redirection, RedirectionKind, RedirectionTarget, ShellWord};

/// Files that discard what is written to them.
pub(super) const SINKS: &[&str] =
    &["/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/stdin", "/dev/full", "/dev/zero"];

/// How deep function calls may be nested.
const MOST_CALLS: usize = 16;

impl<'t> ShellReader<'t> {
    pub(super) fn part(&self, words: Vec<Argument>) -> SimpleCommand {
        let directory = self.only_directory().map(str::to_owned);
        SimpleCommand { words, level: self.level, directory, ..SimpleCommand::default() }
    }

    pub(super) fn simple(
        &mut self,
        assignments: &'t [Assignment],
        words: &'t [ShellWord],
        redirections: &'t [Redirection],
    ) {
        let first = self.parts.len();
        let arguments = self.expand_all(words);
        let values: Vec<_> = assignments.iter().map(|assignment| (assignment, self.assigned(assignment))).collect();
        let mut outer = self.part(Vec::new());
        let input = self.redirect(redirections, &mut outer);
        let hidden_code = self.hidden_code.take();
        if let Some(why) = &hidden_code {
            outer.doubt(why);
        }
        let input = input.unwrap_or_else(|| self.input.clone());
        let mut context = CommandContext { inner: first..self.parts.len(), input, ..CommandContext::default() };
        if matches!(&arguments[..], [only] if only.known() == Some("cat")) {
            self.copied_input = context.input.clone();
        }
        if arguments.is_empty() {
            // The words expanded to nothing: the output of a substitution decides what runs.
            if !words.is_empty() && hidden_code.is_none() {
                outer.doubt("what runs isn't written here");
            }
            values.into_iter().for_each(|(assignment, value)| self.shell.set(&assignment.name, value));
            return self.push_outer(outer, &context);
        }
        let is_read = arguments[0].known() == Some("read");
        let decisive = |name: &str, value: &Option<String>| {
            let is_tame = name.ends_with("PAGER") && matches!(value.as_deref(), Some("cat" | ""));
            is_decisive(name) && !is_tame && !(is_read && name == "IFS")
        };
        // A function or builtin may see these variables, and may keep them.
        values.iter().for_each(|(assignment, _)| self.shell.remember(&assignment.name, None));
        if let Some((assignment, _)) = values.iter().find(|(assignment, value)| decisive(&assignment.name, value)) {
            outer.doubt(format!("`{}` decides what it does", assignment.name));
        }
        context.outer = Some(outer);
        self.invoke(arguments, context);
    }

    /// Adds the effects of redirections without a command.
    fn push_outer(&mut self, outer: SimpleCommand, context: &CommandContext) {
        if !outer.touches.is_empty() || !outer.unclear.is_empty() || !outer.dangers.is_empty() {
            let mut outer = outer;
            self.check_sources(&mut outer, context);
            self.push(outer);
        }
    }

    /// The value of an assignment, which is known if it is one plain word.
    fn assigned(&mut self, assignment: &'t Assignment) -> Option<String> {
        match &assignment.value {
            AssignedValue::Word(word) => {
                let argument = self.expand_whole(word);
                let known = matches!(argument.certainty, Certainty::Literal);
                (known && !assignment.appends).then_some(argument.text)
            }
            AssignedValue::Array(words) => {
                self.expand_all(words);
                None
            }
        }
    }

    /// Applies the effects of redirections. Returns the input if they set it: the text, as far as it is written here.
    pub(super) fn redirect(
        &mut self,
        redirections: &'t [Redirection],
        part: &mut SimpleCommand,
    ) -> Option<Option<String>> {
        let mut input = None;
        for redirection in redirections {
            match &redirection.target {
                RedirectionTarget::Text(word) => input = Some(self.expand_whole(word).known().map(str::to_owned)),
                RedirectionTarget::Document(number) => {
                    let documents = self.documents;
                    let body = documents.get(*number);
                    input = Some(body.and_then(|body| self.expand_whole(body).known().map(str::to_owned)));
                }
                RedirectionTarget::File(word) => {
                    if matches!(
                        redirection.flow,
                        RedirectionKind::In | RedirectionKind::InOut | RedirectionKind::DuplicateIn
                    ) {
                        input = Some(None);
                    }
                    for argument in self.expand(word) {
                        self.redirect_file(redirection.flow, &argument, part);
                    }
                }
            }
        }
        input
    }

    fn redirect_file(&mut self, flow: RedirectionKind, file: &Argument, part: &mut SimpleCommand) {
        let is_descriptor =
            |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
        match (flow, file.known()) {
            (_, None) => {
                part.doubt(format!("where `{}` leads isn't known", file.text));
                if file.certainty == Certainty::Pattern {
                    let access = if flow == RedirectionKind::In { Access::Read } else { Access::Write };
                    self.path(part, access, file);
                }
            }
            (RedirectionKind::Duplicate | RedirectionKind::DuplicateIn, Some(text)) if is_descriptor(text) => {}
            (_, Some(text)) if text.starts_with("/dev/tcp/") || text.starts_with("/dev/udp/") => {
                let mut names = text.split('/').skip(3);
                let name = names.next().unwrap_or_default().to_owned();
                let port = names.next().and_then(|port| port.parse().ok()).unwrap_or(0);
                part.touch(Touch::Host { name, port });
            }
            (RedirectionKind::In | RedirectionKind::DuplicateIn, Some(_)) => self.path(part, Access::Read, file),
            (RedirectionKind::InOut, Some(_)) => {
                self.path(part, Access::Read, file);
                self.path(part, Access::Write, file);
            }
            (RedirectionKind::Out | RedirectionKind::Duplicate, Some(_)) => self.path(part, Access::Write, file),
        }
    }

    /// Adds a path that a simple command touches, in every possible working directory.
    pub(super) fn path(&self, part: &mut SimpleCommand, access: Access, argument: &Argument) {
        let pattern = match argument.certainty {
            Certainty::Unclear => {
                if access == Access::Delete {
                    part.need(Need::Permission(Permission::FsDelete));
                }
                return part.doubt(format!("which file `{}` is isn't known", argument.text));
            }
            // File names from elsewhere: the sandbox decides about a read; a person decides about a change.
            Certainty::Names if access == Access::Read => return part.names = true,
            Certainty::Names => {
                if access == Access::Delete {
                    part.need(Need::Permission(Permission::FsDelete));
                }
                return part.doubt(format!("which files it would {} isn't known", verb(access)));
            }
            Certainty::Pattern => true,
            Certainty::Literal => false,
        };
        // For input, `-` is what the command is fed with; `tee -` and `cp a -` make a file of that name.
        if argument.text == "-" && access == Access::Read || argument.text.is_empty() {
            return;
        }
        let directories = match (&part.directory, &self.shell.directories) {
            _ if argument.text.starts_with('/') => vec!["/".to_owned()],
            (Some(directory), _) => vec![directory.clone()],
            (None, Some(directories)) => directories.clone(),
            (None, None) => return part.doubt("which directory it runs in isn't known"),
        };
        for directory in directories {
            let path = PathContext::resolve(&directory, &argument.text);
            // A path through another process's `/proc` entry is judged by its target, and by its own name.
            let written = PathContext::written(&directory, &argument.text);
            if written != path {
                part.touch(Touch::Path { access, path: written, pattern });
            }
            let is_descriptor = path.starts_with("/dev/fd/") || path.starts_with("/proc/self/fd/");
            if access != Access::Read && (SINKS.contains(&path.as_str()) || is_descriptor) {
                continue;
            }
            part.touch(Touch::Path { access, path, pattern });
        }
    }

    /// Runs a command by its arguments: a function, a builtin, or a program.
    pub(super) fn invoke(&mut self, arguments: Vec<Argument>, context: CommandContext) {
        let name = arguments[0].known().unwrap_or_default().to_owned();
        if let Some((body, certain)) = self.shell.functions.get(&name).copied() {
            self.call(&arguments, body);
            if certain {
                return self.push_outer(context.outer.clone().unwrap_or_default(), &context);
            }
        }
        self.program(arguments.clone(), context);
        self.change_shell(&name, &arguments[1..]);
    }

    fn call(&mut self, arguments: &[Argument], body: &'t super::syntax::ShellCommand) {
        if self.calls.iter().any(|called| std::ptr::eq(*called, body)) {
            let mut part = self.part(arguments.to_vec());
            match self.concurrent {
                true => part.dangers.push(Danger {
                    rule: "deny fork bombs".into(),
                    reason: "It starts itself again and again until the machine stops responding.".into(),
                    fixed: true,
                }),
                false => part.doubt("it calls itself"),
            }
            return self.push(part);
        }
        if self.calls.len() >= MOST_CALLS {
            self.overflow = true;
            return;
        }
        self.calls.push(body);
        self.level += 1;
        for (number, argument) in arguments.iter().enumerate().skip(1) {
            self.shell.set(&number.to_string(), argument.known().map(str::to_owned));
        }
        self.run_command(body);
        // It is unknown which assignments were made, and which variables were local.
        self.shell.forget_variables();
        self.level -= 1;
        self.calls.pop();
    }

    /// Applies what builtins change in the shell's state. Their effects are in the tables, like those of programs.
    fn change_shell(&mut self, name: &str, arguments: &[Argument]) {
        match name {
            "cd" | "chdir" => self.change_directory(arguments),
            "pushd" | "popd" => self.shell.directories = None,
            "export" | "declare" | "typeset" | "local" | "readonly" => self.declare(name, arguments),
            "read" | "mapfile" | "readarray" | "getopts" | "unset" | "let" | "printf" => {
                self.forget_variables(name, arguments)
            }
            "alias" if !arguments.is_empty() => self.shell.mark_uncertain("`alias` changed what names mean"),
            "shopt"
                if arguments.iter().any(|word| {
                    !matches!(
                        word.known(),
                        Some("-s" | "-u" | "-q" | "globstar" | "nullglob" | "failglob" | "pipefail")
                    )
                }) =>
            {
                self.shell.mark_uncertain("`shopt` changed how words are parsed");
            }
            "enable" | "bind" | "complete" | "hash" if arguments.iter().any(|word| word.known() != Some("-r")) => {
                self.shell.mark_uncertain(format!("`{name}` changed what names mean"));
            }
            "set"
                if arguments
                    .iter()
                    .any(|word| word.known().is_none_or(|text| text == "posix" || text == "keyword")) =>
            {
                self.shell.mark_uncertain("`set` changed how commands are parsed");
            }
            "source" | "." => self.shell.mark_uncertain(format!("`{name}` ran code that can't be analyzed")),
            _ => {}
        }
    }

    fn change_directory(&mut self, arguments: &[Argument]) {
        let operands: Vec<_> =
            arguments.iter().filter(|word| !matches!(word.known(), Some("-P" | "-L" | "-e" | "--"))).collect();
        let target = match operands[..] {
            [] => Some(self.paths.home().to_owned()),
            [target] => target.known().filter(|text| !text.starts_with('-')).map(str::to_owned),
            _ => None,
        };
        self.shell.directories = match (target, &self.shell.directories) {
            (Some(target), _) if target.starts_with('/') => Some(vec![PathContext::resolve("/", &target)]),
            (Some(target), Some(directories)) => {
                Some(directories.iter().map(|directory| PathContext::resolve(directory, &target)).collect())
            }
            _ => None,
        };
    }

    fn declare(&mut self, command: &str, arguments: &[Argument]) {
        if command == "readonly" || arguments.iter().any(|word| word.text.starts_with('-') && word.text.contains('r')) {
            self.shell.mark_uncertain("a variable can't be changed any more");
        }
        for argument in arguments {
            let text = argument.text.as_str();
            match text.split_once('=') {
                _ if text.starts_with(['-', '+']) && text.contains(['n', 'i', 'A', 'a', 'u', 'l']) => {
                    self.shell.mark_uncertain("a variable was given a special meaning");
                }
                _ if text.starts_with(['-', '+']) => {}
                Some((name, value)) => {
                    let value = argument.known().map(|_| value.to_owned());
                    self.shell.set(name.trim_end_matches('+'), value);
                }
                None if argument.is_unclear() => self.shell.mark_uncertain("a variable that isn't known was set"),
                // `local PATH` has no value until it gets one.
                None if command == "local" => self.shell.set(text, None),
                None => {}
            }
        }
    }

    fn forget_variables(&mut self, command: &str, arguments: &[Argument]) {
        let is_printed = |at: usize| {
            let after_option = at.checked_sub(1).is_some_and(|before| arguments[before].known() == Some("-v"));
            command == "printf" && !after_option
        };
        for argument in (0..arguments.len()).filter(|at| !is_printed(*at)).map(|at| &arguments[at]) {
            match argument.known() {
                Some(name) => self.shell.set(name.split(['=', '+', '[']).next().unwrap_or_default(), None),
                None => self.shell.mark_uncertain("a variable that isn't known was set"),
            }
        }
        ["REPLY", "MAPFILE", "OPTARG", "OPTIND"].iter().for_each(|name| self.shell.set(name, None));
        // Names that a reading command printed are file names, as `xargs` would pass them on.
        if command == "read" && self.is_fed_by_reading() {
            for name in arguments.iter().filter_map(Argument::known).filter(|name| !name.starts_with('-')) {
                self.shell.set_file_names(name, NAMES.to_owned());
            }
        }
    }
}

fn verb(access: Access) -> &'static str {
    match access {
        Access::Read => "read",
        Access::Write => "write",
        Access::Delete => "delete",
    }
}
