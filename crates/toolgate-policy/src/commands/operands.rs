//! What one operand, or the value of one flag, means for a part.

use toolgate_contract::{Access, Permission};

use super::Ground;
use super::dangers;
use super::hosts::{host, reach};
use super::inside::Nested;
use super::part::{Argument, Certainty, Need, Part, Touch};
use super::roles::Role;
use super::scripts;
use super::walk::Walk;

impl Walk<'_> {
    /// One operand, or the value of one flag.
    pub(super) fn operand(&mut self, part: &mut Part, role: Role, argument: &Argument, nested: &mut Nested) {
        match role {
            Role::Assignments => {
                if argument.text.contains(['[', '(']) {
                    part.doubt(format!("`{}` may run code", argument.text));
                }
            }
            Role::Text | Role::Command | Role::Environment | Role::Exec => {}
            Role::Read => self.path(part, Access::Read, argument),
            Role::Write => self.path(part, Access::Write, argument),
            Role::Delete => self.path(part, Access::Delete, argument),
            Role::Workdir => self.visits(part, argument),
            Role::Url if argument.text.starts_with("file://") => {
                let path = argument.text["file://".len()..].to_owned();
                self.path(part, Access::Read, &Argument { text: path, certainty: argument.certainty });
            }
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
                Some(text) if !scripts::jq_loads(text) => {}
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

    /// A folder that the program works in from here on.
    pub(super) fn move_to(&mut self, part: &mut Part, folder: &Argument) {
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
}

/// A script in double quotes: whatever is filled in, the rest of it runs.
fn unquoted(written: &str) -> Option<String> {
    let inner = written.strip_prefix('"')?.strip_suffix('"')?;
    Some(inner.replace("\\\"", "\"").replace("\\\\", "\\"))
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
