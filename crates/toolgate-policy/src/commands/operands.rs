//! What one operand, or the value of one flag, means for a simple command.

use toolgate_contract::{Access, Permission};

use super::PathContext;
use super::dangers;
use super::embedded_scripts;
use super::hosts::{add_host, host};
use super::nested_commands::NestedCommands;
use super::roles::OperandRole;
use super::shell_reader::ShellReader;
use super::simple_command::{Argument, Certainty, Need, SimpleCommand, Touch};

/// Parts of a format that make git run gpg (`%G?`, `%(signature)`), and rpm expand macros of a package.
const RUNNING_PLACEHOLDERS: &[&str] = &["%G", "signature", ":expand"];

impl ShellReader<'_> {
    /// Applies one operand, or the value of one flag.
    pub(super) fn operand(
        &mut self,
        part: &mut SimpleCommand,
        role: OperandRole,
        argument: &Argument,
        nested: &mut NestedCommands,
    ) {
        match role {
            OperandRole::Assignments => add_assignment(part, argument),
            OperandRole::Text | OperandRole::Command | OperandRole::Environment | OperandRole::Exec => {}
            OperandRole::Read => self.path(part, Access::Read, argument),
            OperandRole::Write => self.path(part, Access::Write, argument),
            OperandRole::Delete => self.path(part, Access::Delete, argument),
            OperandRole::NewKey => self.new_key(part, argument),
            OperandRole::Workdir => self.visits(part, argument),
            OperandRole::Url if argument.text.starts_with("file://") => {
                let path = argument.text["file://".len()..].to_owned();
                self.path(part, Access::Read, &Argument::new(path, argument.certainty));
            }
            OperandRole::Url | OperandRole::Host | OperandRole::Remote => add_host(part, role, argument),
            OperandRole::Repository => match argument.known() {
                Some(text) if is_local_repository(text) => {
                    let path = text.strip_prefix("file://").unwrap_or(text);
                    self.path(part, Access::Read, &Argument::literal(path));
                }
                _ => add_host(part, OperandRole::Remote, argument),
            },
            OperandRole::Rev | OperandRole::Revpath => self.revision(part, role, argument),
            OperandRole::Dd => self.copy_operand(part, argument),
            OperandRole::Sed | OperandRole::Awk => self.script_text(part, role, argument),
            OperandRole::Clock => {
                if !argument.known().is_some_and(|text| text.starts_with('+')) {
                    part.doubt(format!("`{}` may set the clock", argument.text));
                }
            }
            OperandRole::Format => match argument.known() {
                Some(text) => part.runs_code |= RUNNING_PLACEHOLDERS.iter().any(|name| text.contains(name)),
                None => part.doubt(format!("what `{}` prints isn't known", argument.text)),
            },
            OperandRole::GitRef => part.need(Need::Permission(Permission::GitWrite)),
            OperandRole::Unclear => part.doubt(format!("`{}` can make it do anything", argument.text)),
            OperandRole::Code => {
                part.runs_code = true;
                part.interprets_text = true;
                part.interprets_input |= dangers::may_run_its_input(argument);
                nested.code = true;
            }
            OperandRole::Program => {
                part.runs_code = true;
                nested.code |= argument.text != "-";
                if argument.is_unclear() || argument.text.starts_with("/dev/") {
                    part.interprets_text = true;
                    part.interprets_input = true;
                } else {
                    self.path(part, Access::Read, argument);
                }
            }
            OperandRole::Filter => match argument.known() {
                Some(text) if !embedded_scripts::jq_loads(text) => {}
                _ => part.doubt(format!("what `{}` loads isn't known", argument.text)),
            },
            OperandRole::Data => self.sent(part, argument),
            OperandRole::Copy | OperandRole::CopyTo | OperandRole::Cloud => self.copied(part, role, argument),
            OperandRole::Script | OperandRole::Scripts => add_script(part, argument, nested),
        }
    }

    fn new_key(&mut self, part: &mut SimpleCommand, argument: &Argument) {
        let before = part.touches.len();
        self.path(part, Access::Write, argument);
        let keys = part.touches[before..].iter().filter_map(|touch| match touch {
            Touch::Path { access: Access::Write, path, pattern: false } => Some(path.clone()),
            _ => None,
        });
        part.new_keys.extend(keys.collect::<Vec<_>>());
    }

    /// A directory that is only entered: nothing is read yet, but a sensitive one is denied.
    fn visits(&mut self, part: &mut SimpleCommand, directory: &Argument) {
        let mut probe = SimpleCommand { directory: part.directory.clone(), ..SimpleCommand::default() };
        if directory.certainty == Certainty::Literal && !directory.text.starts_with('-') {
            self.path(&mut probe, Access::Read, directory);
        }
        for touch in probe.touches {
            if matches!(&touch, Touch::Path { path, .. } if dangers::is_sensitive(&self.paths.place(path))) {
                part.touch(touch);
            }
        }
    }

    fn revision(&mut self, part: &mut SimpleCommand, role: OperandRole, argument: &Argument) {
        if argument.is_unclear() {
            return;
        }
        let path = match argument.text.split_once(':') {
            Some((_, path)) if !path.is_empty() => Some(path.rsplit_once(':').map_or(path, |(_, path)| path)),
            _ if role == OperandRole::Revpath && !is_revision(&argument.text) => Some(argument.text.as_str()),
            _ => None,
        };
        if let Some(path) = path {
            // `:(top)a`, `:!a`, `:/a`: git's syntax for paths from elsewhere.
            let path = path.split_once(')').filter(|_| path.starts_with('(')).map_or(path, |(_, path)| path);
            let path = if argument.text.starts_with(':') { path.trim_start_matches(['!', '^', '/']) } else { path };
            self.path(part, Access::Read, &Argument::new(path.to_owned(), argument.certainty));
        }
    }

    /// `dd`'s `if=` and `of=`.
    fn copy_operand(&mut self, part: &mut SimpleCommand, argument: &Argument) {
        let Some((name, value)) = argument.text.split_once('=') else { return };
        let access = match name {
            "if" => Access::Read,
            "of" => Access::Write,
            _ => return,
        };
        self.path(part, access, &Argument::new(value.to_owned(), argument.certainty));
    }

    /// `@file`, `name=@file` and `name=<file` send the content of a file.
    fn sent(&mut self, part: &mut SimpleCommand, argument: &Argument) {
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
            self.path(part, Access::Read, &Argument::new(file.to_owned(), argument.certainty));
        }
    }

    fn copied(&mut self, part: &mut SimpleCommand, role: OperandRole, argument: &Argument) {
        if argument.text.contains("://") && role == OperandRole::Cloud {
            return part.need(Need::Permission(Permission::NetConnect));
        }
        match host(OperandRole::Remote, &argument.text).filter(|_| !argument.is_unclear()) {
            Some((name, port)) => part.touch(Touch::Host { name, port }),
            None if role == OperandRole::Cloud => self.mentions(part, std::slice::from_ref(argument)),
            None => self.path(part, if role == OperandRole::Copy { Access::Read } else { Access::Write }, argument),
        }
    }

    fn script_text(&mut self, part: &mut SimpleCommand, role: OperandRole, argument: &Argument) {
        let found = match argument.known() {
            Some(text) if role == OperandRole::Sed => embedded_scripts::sed(text),
            Some(text) => embedded_scripts::awk(text),
            None => return part.doubt(format!("the content of `{}` isn't known", argument.text)),
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

    /// Changes the directory that the program works in.
    pub(super) fn move_to(&mut self, part: &mut SimpleCommand, directory: &Argument) {
        self.path(part, Access::Read, directory);
        part.touches.pop_if(|touch| matches!(touch, Touch::Path { access: Access::Read, path, .. } if !dangers::is_sensitive(&self.paths.place(path))));
        part.directory = match (directory.known(), &part.directory) {
            (Some(directory), _) if directory.starts_with('/') => Some(PathContext::resolve("/", directory)),
            (Some(directory), Some(from)) => Some(PathContext::resolve(from, directory)),
            _ => None,
        };
        if part.directory.is_none() {
            part.doubt("which directory it runs in isn't known");
        }
    }
}

/// A script in double quotes: whatever is filled in, the rest of it runs.
fn unquoted(written: &str) -> Option<String> {
    let inner = written.strip_prefix('"')?.strip_suffix('"')?;
    Some(inner.replace("\\\"", "\"").replace("\\\\", "\\"))
}

/// Whether git takes an address for a directory of this machine. A colon before the first slash names a host.
fn is_local_repository(address: &str) -> bool {
    address.starts_with("file:///")
        || !address.contains("://") && !address.split('/').next().unwrap_or_default().contains(':')
}

/// Whether a word is clearly a revision and not a path.
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

/// Assignments among the operands. A name that isn't known may have a subscript, which is evaluated as arithmetic.
fn add_assignment(part: &mut SimpleCommand, argument: &Argument) {
    let name = argument.text.split_once('=').map_or(argument.text.as_str(), |(name, _)| name);
    let is_named = argument.known().is_some() || argument.text != name && !name.contains(['$', '`']);
    if argument.text.contains(['[', '(']) || !is_named {
        part.doubt(format!("`{}` may run code", argument.text));
    }
}

/// A script of the shell, which is read in turn as far as it is known.
fn add_script(part: &mut SimpleCommand, argument: &Argument, nested: &mut NestedCommands) {
    part.interprets_text = true;
    part.interprets_input |= argument.known().is_none();
    match argument.known() {
        Some("-") | Some("") => {}
        Some(text) => nested.scripts.push(text.to_owned()),
        None => {
            part.doubt(format!("it runs `{}`, not all of which is known", argument.text));
            nested.scripts.extend(unquoted(&argument.text));
        }
    }
}
