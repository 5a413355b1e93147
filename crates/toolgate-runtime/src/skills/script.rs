//! Starts a skill's script: only from the skill's `scripts` directory, directly if it is executable, otherwise with the
//! interpreter that its first line or its file name extension names. A path that leaves that directory is refused.

use std::ffi::OsString;
use std::io::Read;
use std::path::Path;

use toolgate_contract::{
    DirectoryEntry, ErrorCode, LaunchSpec, SkillCandidate, SkillScript, StartDirectory, ToolError, WorkspacePath,
};

use super::{SkillDirectory, SkillLoader};

/// The directory of a skill that holds its scripts.
const SCRIPTS: &str = "scripts/";
/// The part of a file that the kernel reads to find the interpreter.
const HEAD_BYTES: u64 = 256;
/// The execute bits of a file's mode.
const EXECUTABLE: u32 = 0o111;

/// Interpreters of scripts that can't be executed directly, by file name extension.
const INTERPRETERS: &[(&str, &str)] = &[
    ("bash", "bash"),
    ("cjs", "node"),
    ("js", "node"),
    ("mjs", "node"),
    ("pl", "perl"),
    ("py", "python3"),
    ("rb", "ruby"),
    ("sh", "sh"),
];

impl SkillLoader {
    /// What runs a script: in a directory of its own, with the skill's directory readable, and no shell before it.
    pub(super) fn starter(&self, script: &SkillScript) -> Result<LaunchSpec, ToolError> {
        let (skills, skill) = self.find(&script.skill)?;
        let place = skill.join(inside_scripts(&script.path)?);
        if self.hides(skills, &place) {
            return Err(no_such_script(script));
        }
        let file = skills.files.open(&place).map_err(|error| unopenable(script, error))?;
        let (is_executable, mut head) = (file.mode & EXECUTABLE != 0, Vec::new());
        file.take(HEAD_BYTES)
            .read_to_end(&mut head)
            .map_err(|error| ToolError::io("The script can't be read", &error))?;
        let directory = skills.directory.join(&script.skill);
        let path = WorkspacePath::in_workspace(&script.path).beneath(&directory);
        let interpreter = interpreter(&path, is_executable, &head).ok_or_else(|| no_interpreter(script))?;
        let arguments = script.arguments.iter().map(Into::into);
        let mut words = interpreter.into_iter().chain([path.into()]).chain(arguments);
        let program = words.next().unwrap_or_default();
        let own = self.changes.script_directory(&self.run, &script.skill)?;
        Ok(LaunchSpec {
            command: script.line(),
            arguments: words.collect(),
            directory: StartDirectory::Machine(own.clone()),
            read_only: vec![directory],
            own: vec![own],
            ..LaunchSpec::program(program)
        })
    }

    /// The programs that run the scripts of a skill. A script that can't be read can't be run either, and counts for nothing.
    pub(crate) fn interpreters(&self, skill: &SkillCandidate) -> Vec<String> {
        let Ok((skills, place)) = self.find(&skill.name) else { return Vec::new() };
        let scripts = skill.files.iter().filter(|path| path.starts_with(SCRIPTS));
        let mut programs: Vec<String> = scripts
            .filter_map(|path| {
                let mut head = Vec::new();
                skills.files.open(&place.join(path)).ok()?.take(HEAD_BYTES).read_to_end(&mut head).ok()?;
                program(Path::new(path), &head)
            })
            .collect();
        programs.sort();
        programs.dedup();
        programs
    }

    /// The directory of a skill; of two with the same name the first counts.
    fn find(&self, name: &str) -> Result<(&SkillDirectory, WorkspacePath), ToolError> {
        let is_skill = |skills: &SkillDirectory, entry: &DirectoryEntry| {
            self.may_be_skill(skills, entry) && self.directory(skills, entry.name.clone(), &entry.place).is_some()
        };
        for skills in self.skill_directories.iter() {
            let entries = skills.files.entries(&skills.place).unwrap_or_default();
            let found = entries.into_iter().find(|entry| entry.name == name && is_skill(skills, entry));
            if let Some(entry) = found {
                return Ok((skills, entry.place));
            }
        }
        Err(ToolError::new(ErrorCode::NotFound, format!("There is no skill `{name}`.")))
    }
}

/// Checks that a path begins with `scripts/` and has no `..` or empty parts.
fn inside_scripts(path: &str) -> Result<&str, ToolError> {
    let is_plain = |name: &str| !matches!(name, "" | "." | "..") && !name.contains('\0');
    match path.strip_prefix(SCRIPTS) {
        Some(rest) if rest.split('/').all(is_plain) => Ok(path),
        _ => {
            let message = format!("`{path}` isn't a plain path inside the skill's directory `{SCRIPTS}`.");
            Err(ToolError::new(ErrorCode::PathOutsideWorkspace, message).with_hint(
                "Use the path that the tool `skill` lists, such as `scripts/fill.py`; only scripts in that directory are run.",
            ))
        }
    }
}

fn unopenable(script: &SkillScript, error: ToolError) -> ToolError {
    match error.code {
        ErrorCode::NotFound => no_such_script(script),
        ErrorCode::PathOutsideWorkspace => {
            let message = format!(
                "`{}` of the skill `{}` is a symbolic link, or is reached through one.",
                script.path, script.skill
            );
            ToolError::new(error.code, message)
                .with_hint("Scripts are never run through symbolic links. Ask the person to put the file itself there.")
        }
        _ => error,
    }
}

fn no_such_script(script: &SkillScript) -> ToolError {
    let SkillScript { skill, path, .. } = script;
    ToolError::new(ErrorCode::NotFound, format!("The skill `{skill}` has no script `{path}`."))
        .with_hint(format!("The tool `skill` lists the files of `{skill}` when it loads it."))
}

fn no_interpreter(script: &SkillScript) -> ToolError {
    let message = format!(
        "`{}` has no known interpreter: neither its first line nor its file name extension names one.",
        script.path
    );
    ToolError::new(ErrorCode::NotAFile, message).with_hint(
        "Ask the person to give it a first line such as `#!/usr/bin/env python3` and to make it executable (`chmod +x`).",
    )
}

/// The interpreter and its arguments, before the script's path; empty if the kernel can execute the script. None if
/// nothing can start it.
fn interpreter(path: &Path, is_executable: bool, head: &[u8]) -> Option<Vec<OsString>> {
    let first_line = head.strip_prefix(b"#!").map(words_of_first_line).filter(|words| !words.is_empty());
    let can_be_executed = first_line.is_some() || head.starts_with(b"\x7fELF");
    if is_executable && can_be_executed {
        return Some(Vec::new());
    }
    let end = path.extension().unwrap_or_default();
    let by_name = || INTERPRETERS.iter().find(|(known, _)| end == *known).map(|(_, name)| vec![name.into()]);
    first_line.or_else(by_name)
}

/// The program that has to be there for a script to run: what its `#!` line names, behind `env` too, or else its extension.
fn program(path: &Path, head: &[u8]) -> Option<String> {
    let words = interpreter(path, false, head)?;
    let words: Vec<&str> = words.iter().filter_map(|word| word.to_str()).flat_map(str::split_whitespace).collect();
    let (first, rest) = words.split_first()?;
    let named = match first.ends_with("/env") {
        true => rest.iter().find(|word| !word.starts_with('-') && !word.contains('='))?,
        false => first,
    };
    Some((*named).to_owned())
}

/// The interpreter in a `#!` line, and its one argument, as the kernel parses them.
fn words_of_first_line(rest: &[u8]) -> Vec<OsString> {
    let line = rest.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line.trim_ascii()).into_owned();
    let (interpreter, argument) = line.split_once([' ', '\t']).unwrap_or((&line, ""));
    [interpreter, argument.trim()].into_iter().filter(|word| !word.is_empty()).map(Into::into).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_paths_inside_scripts_are_meant() {
        for path in ["scripts/a.py", "scripts/deep/er/a", "scripts/..a", "scripts/a b"] {
            assert_eq!(inside_scripts(path), Ok(path));
        }
        for path in [
            "",
            "a.py",
            "scripts",
            "scripts/",
            "scripts//a",
            "scripts/../SKILL.md",
            "scripts/a/../../b",
            "scripts/./a",
            "./scripts/a",
            "/bin/sh",
            "../other/scripts/a",
            "scripts/a\0b",
        ] {
            assert!(inside_scripts(path).is_err(), "{path}");
        }
    }

    #[test]
    fn the_program_behind_env_is_the_one_that_is_needed() {
        for (name, head, expected) in [
            ("a.py", &b"#!/usr/bin/env python3\n"[..], Some("python3")),
            ("a", b"#!/usr/bin/env -S LANG=C deno run\n", Some("deno")),
            ("a", b"#!/bin/sh -e\n", Some("/bin/sh")),
            ("a.rb", b"puts 1", Some("ruby")),
            ("a", b"\x7fELF", None),
        ] {
            assert_eq!(program(Path::new(name), head).as_deref(), expected, "{name}");
        }
    }

    #[test]
    fn a_script_says_itself_what_runs_it() {
        for (name, head, is_executable, expected) in [
            ("a.py", &b"#!/usr/bin/env python3\n"[..], true, Some("")),
            ("a.py", b"#!/usr/bin/env  python3 \nimport os", false, Some("/usr/bin/env python3")),
            ("a", b"#!/bin/sh", false, Some("/bin/sh")),
            ("a.py", b"print(1)\n", true, Some("python3")),
            ("a.py", b"print(1)\n", false, Some("python3")),
            ("a.sh", b"#!\n", true, Some("sh")),
            ("a", b"\x7fELF\x02", true, Some("")),
            ("a", b"\x7fELF\x02", false, None),
            ("a", b"echo hi\n", true, None),
            ("a.txt", b"", false, None),
        ] {
            let words = interpreter(Path::new(name), is_executable, head);
            let words = words.map(|words| words.join(" ".as_ref()).into_string().unwrap());
            assert_eq!(words.as_deref(), expected, "{name} {head:?} {is_executable}");
        }
    }
}
