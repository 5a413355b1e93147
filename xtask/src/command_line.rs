//! A command as a person would type it: what is printed is exactly what runs, so any line of a log can be pasted to
//! repeat it. Commands run in the repository's root with no input, so none of them can wait for a terminal.

use std::ffi::OsStr;
use std::fmt;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// Words to run and the environment to add.
#[derive(Clone)]
pub(crate) struct CommandLine {
    environment: Vec<(&'static str, String)>,
    words: Vec<String>,
}

impl CommandLine {
    /// Splits at blanks; there is no quoting. Use [`CommandLine::words`] for words that may hold blanks.
    pub(crate) fn new(line: &str) -> Self {
        Self { environment: Vec::new(), words: line.split_whitespace().map(str::to_owned).collect() }
    }

    pub(crate) fn environment(mut self, name: &'static str, value: &str) -> Self {
        self.environment.push((name, value.to_owned()));
        self
    }

    pub(crate) fn words<Word: AsRef<str>>(mut self, words: impl IntoIterator<Item = Word>) -> Self {
        self.words.extend(words.into_iter().map(|word| word.as_ref().to_owned()));
        self
    }

    /// Prints the command, runs it with its output passed through, and fails unless it succeeds.
    pub(crate) fn run(&self) -> Result<()> {
        println!("$ {self}");
        let status = self.command().status().with_context(|| format!("cannot start `{self}`"))?;
        if !status.success() {
            bail!("`{self}` failed ({status})");
        }
        Ok(())
    }

    /// As [`CommandLine::run`], and gives each line of its output to `each`, which says how it is shown.
    pub(crate) fn run_by_line(&self, mut each: impl FnMut(String) -> String) -> Result<()> {
        println!("$ {self}");
        let mut child =
            self.command().stdout(Stdio::piped()).spawn().with_context(|| format!("cannot start `{self}`"))?;
        for line in BufReader::new(child.stdout.take().context("its output")?).lines() {
            println!("{}", each(line?));
        }
        let status = child.wait()?;
        if !status.success() {
            bail!("`{self}` failed ({status})");
        }
        Ok(())
    }

    /// Runs the command unseen and returns what it printed.
    pub(crate) fn output(&self) -> Result<String> {
        let output = self.command().output().with_context(|| format!("cannot start `{self}`"))?;
        if !output.status.success() {
            bail!("`{self}` failed ({})", output.status);
        }
        Ok(String::from_utf8(output.stdout)?.trim().to_owned())
    }

    /// Runs the command unseen and tells whether it succeeded. A program that isn't there didn't.
    pub(crate) fn succeeds(&self) -> bool {
        let status = self.command().stdout(Stdio::null()).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.words[0]);
        command.args(&self.words[1..]).envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.current_dir(repository_root()).stdin(Stdio::null());
        for (name, _) in std::env::vars_os().filter(|(name, _)| describes_this_package(name)) {
            command.env_remove(name);
        }
        command
    }
}

/// `cargo run` tells its child which package it runs. Passed on to another cargo, that looks to some build scripts like
/// a changed environment, and they build anew.
fn describes_this_package(variable: &OsStr) -> bool {
    let variable = variable.to_string_lossy();
    variable.starts_with("CARGO_PKG_") || variable.starts_with("CARGO_MANIFEST_")
}

/// The directory that holds the workspace's `Cargo.toml`.
pub(crate) fn repository_root() -> &'static Path {
    let own_directory = Path::new(env!("CARGO_MANIFEST_DIR"));
    own_directory.parent().expect("xtask lies in the repository")
}

/// Where Cargo puts what it builds.
pub(crate) fn target_directory() -> PathBuf {
    let chosen = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    repository_root().join(chosen.unwrap_or_else(|| "target".into()))
}

impl fmt::Display for CommandLine {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let environment = self.environment.iter().map(|(name, value)| format!("{name}={}", quoted(value)));
        let line: Vec<String> = environment.chain(self.words.iter().map(|word| quoted(word))).collect();
        formatter.write_str(&line.join(" "))
    }
}

/// The word as a shell has to see it.
fn quoted(word: &str) -> String {
    let plain = |character: char| character.is_ascii_alphanumeric() || "-_./=:,@%+".contains(character);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_can_be_pasted() {
        let line =
            CommandLine::new("cargo doc  --no-deps").environment("RUSTDOCFLAGS", "-Dwarnings").words(["it's", ""]);
        assert_eq!(line.to_string(), r"RUSTDOCFLAGS=-Dwarnings cargo doc --no-deps 'it'\''s' ''");
    }

    #[test]
    fn a_failure_names_the_command_and_its_status() {
        let failure = CommandLine::new("false").run().unwrap_err().to_string();
        assert_eq!(failure, "`false` failed (exit status: 1)");
    }

    #[test]
    fn a_program_that_is_not_there_is_an_error_with_its_name() {
        let absent = CommandLine::new("no-such-program --help");
        assert_eq!(absent.run().unwrap_err().to_string(), "cannot start `no-such-program --help`");
        assert!(!absent.succeeds());
        assert!(CommandLine::new("true").succeeds());
    }

    #[test]
    fn commands_run_in_the_root_without_input_and_without_this_package() {
        CommandLine::new("test -f xtask/Cargo.toml").run().unwrap();
        CommandLine::new("sh -c").words([r#"test -z "$(cat)""#]).run().unwrap();
        CommandLine::new("sh -c").words([r#"test -z "${CARGO_PKG_NAME:-}""#]).run().unwrap();
    }
}
