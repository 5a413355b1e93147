//! What dialects have in common about commands: units of time, words, and the directory that a command leaves the shell in.

use toolgate_contract::ToolError;

use crate::dialect::Returned;
use crate::memory::DialectMemory;
use crate::remarks::of_command;

/// The longest wait of a native call, in milliseconds: for clients that wait for a command's end.
pub(crate) const MOST_WAIT_MS: i64 = 600_000;

/// The exit code of a command that took too long.
pub(crate) const TIMED_OUT: i64 = 124;

/// Seconds for a limit in milliseconds, rounded up: a limit never gets shorter.
pub(crate) fn seconds(milliseconds: i64) -> i64 {
    milliseconds.div_euclid(1000) + i64::from(milliseconds.rem_euclid(1000) != 0)
}

/// Where a command that succeeded leaves the shell, relative to the workspace: `Some` if it begins with a plain `cd`, and an error
/// if that leads out of the workspace. What a `cd` further on does isn't followed: only running it would tell.
pub fn changed_directory(command: &str, memory: &DialectMemory) -> Option<Result<String, ()>> {
    let rest = command.trim().strip_prefix("cd ")?;
    let target = rest.split("&&").next()?.trim();
    let is_plain = !target.is_empty()
        && target.chars().all(|letter| letter.is_alphanumeric() || "/._-+@".contains(letter))
        && !target.starts_with('-');
    if !is_plain {
        return None;
    }
    let (from, path) = match target.strip_prefix(memory.workspace.as_str()) {
        Some(inner) if !memory.workspace.is_empty() && (inner.is_empty() || inner.starts_with('/')) => ("", inner),
        _ if target.starts_with('/') => return Some(Err(())),
        _ => (memory.directory.as_str(), target),
    };
    let mut names: Vec<&str> = from.split('/').filter(|name| !name.is_empty()).collect();
    for name in path.split('/') {
        match name {
            "" | "." => {}
            ".." => {
                if names.pop().is_none() {
                    return Some(Err(()));
                }
            }
            other => names.push(other),
        }
    }
    Some(Ok(names.join("/")))
}

/// Whether this is the shell that commands run in, by name or path. What is written for `sh` runs in it too.
pub(crate) fn is_our_shell(shell: &str) -> bool {
    ["bash", "sh"].contains(&shell.rsplit('/').next().unwrap_or(shell))
}

/// Both streams of a command as one text, standard output first. Their order among each other isn't recorded.
pub(crate) fn both_streams(returned: &Returned<'_>) -> String {
    joined(returned.text("stdout"), returned.text("stderr"))
}

fn joined(output: &str, errors: &str) -> String {
    let has_open_line = !output.is_empty() && !output.ends_with('\n') && !errors.is_empty();
    format!("{output}{}{errors}", if has_open_line { "\n" } else { "" })
}

/// What a command had printed until the limit of its call stopped it: both streams as one text.
pub(crate) fn printed_until_stopped(error: &ToolError) -> String {
    let stream = |name: &str| error.details.as_ref().and_then(|details| details[name].as_str()).unwrap_or_default();
    joined(stream("stdout"), stream("stderr"))
}

/// What the model has to know of a command beside its output: what the sandbox denied, what was noted, and what was quarantined.
pub(crate) fn command_notes(returned: &Returned<'_>) -> Vec<String> {
    returned.reply.payload.as_ref().map_or_else(Vec::new, of_command)
}

/// Words as one line for a shell. `bash -lc LINE` and `sh -c LINE` are the line itself, so that it is read as what it is.
pub(crate) fn command_line(words: &[&str]) -> String {
    if let [shell, flags, line] = words
        && ["bash", "sh", "/bin/bash", "/bin/sh", "/usr/bin/bash", "/usr/bin/sh"].contains(shell)
        && ["-c", "-lc", "-cl"].contains(flags)
    {
        return (*line).to_owned();
    }
    words.iter().map(|word| toolgate_contract::quoted(word)).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_rounded_up() {
        assert_eq!([1, 999, 1000, 1001, 120_000].map(seconds), [1, 1, 1, 2, 120]);
    }

    #[test]
    fn a_plain_cd_stays_and_leads_out_of_no_workspace() {
        let stays_at = |command, current: &str| {
            let mut memory = DialectMemory::new("/srv/work");
            memory.directory = current.into();
            changed_directory(command, &memory).map(|to| to.unwrap_or("outside".into()))
        };
        for (command, current, expected) in [
            ("cd src", "", Some("src")),
            ("cd ../lib && ls", "src", Some("lib")),
            ("cd ..", "src/deep", Some("src")),
            ("cd ..", "", Some("outside")),
            ("cd /tmp", "src", Some("outside")),
            ("cd /srv/work/lib && ls", "src", Some("lib")),
            ("cd /srv/work", "src", Some("")),
            ("cd /srv/work/../x", "src", Some("outside")),
            ("cd /srv/works", "src", Some("outside")),
            ("cd", "src", None),
            ("cd $HOME", "src", None),
            ("cd 'a b'", "src", None),
            ("ls && cd src", "", None),
            ("cdparanoia", "", None),
        ] {
            assert_eq!(stays_at(command, current).as_deref(), expected, "{command}");
        }
    }

    #[test]
    fn other_shells_are_not_ours() {
        let shells = ["bash", "/bin/sh", "zsh", "/usr/bin/fish", "pwsh"];
        assert_eq!(shells.map(is_our_shell), [true, true, false, false, false]);
    }

    #[test]
    fn words_become_a_line_that_policy_can_read() {
        assert_eq!(command_line(&["bash", "-lc", "ls | wc -l"]), "ls | wc -l");
        assert_eq!(command_line(&["/usr/bin/sh", "-c", "ls"]), "ls");
        assert_eq!(command_line(&["zsh", "-c", "ls"]), "zsh -c ls");
        assert_eq!(command_line(&["rm", "-rf", "a b"]), "rm -rf 'a b'");
        assert_eq!(command_line(&["bash", "script.sh", "-c"]), "bash script.sh -c");
    }
}
