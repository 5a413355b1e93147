//! Which paths a command tried to change or read and only confinement kept it from. The kernel doesn't report that, so it is read
//! from the error messages that the command wrote; a path counts only if the profile forbids it and nothing else does.

use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::Access;
use toolgate_contract::{Denial, Effect, ErrorCode, escape_path};

use crate::process::command_paths::{CommandPaths, only_read};

/// What programs print when the kernel refused a write.
const WRITE_ERRORS: &[&str] = &["Read-only file system", "Permission denied", "EROFS", "EACCES"];

/// What programs print when something isn't there, or can't be read.
const READ_ERRORS: &[&str] = &["No such file or directory", "ENOENT", "not found", "Permission denied", "EACCES"];

/// What only a refused write gives.
const READ_ONLY_ERRORS: &[&str] = &["Read-only file system", "EROFS"];

/// What programs print when they wanted to write.
const WRITING: &[&str] =
    &["cannot create", "can't create", "cannot touch", "cannot make", "cannot copy", "cannot move", "for writing"];

/// What programs put around a name.
const QUOTES: [char; 5] = ['\'', '"', '`', '‘', '’'];

/// What programs print when a mount kept them from replacing or removing a path. Other mounts than ours say so too, so this counts for
/// protected and hidden paths alone.
const BUSY_ERRORS: &[&str] = &["Device or resource busy", "EBUSY"];

/// What git prints when it can't write to its directory, where it names no path.
const GIT_WRITE_ERRORS: &[&str] =
    &["error: unable to create temporary file", "error: could not write index", "unable to write new index file"];

/// Lines of standard error that are read, from the end.
const MAX_LINES: usize = 200;
/// Denials that are returned.
const MAX_DENIALS: usize = 8;

/// What a command with these paths, started in `workdir`, was kept from changing. A line that tells of writing may be about a
/// path that isn't shown, and so isn't there for the command.
pub(super) fn denied_files(errors: &str, paths: &CommandPaths, workdir: &Path) -> Vec<Denial> {
    let shows = |written: &String| plain(&workdir.join(written)).is_none_or(|path| paths.shows(&path));
    let refused = refusals(errors).flat_map(|line| {
        let writes = tells_of_writing(line);
        paths_in(without_source(without_program_name(line))).filter(move |written| writes || shows(written))
    });
    let unseen = last_lines(errors).filter(|line| tells_of_writing(line) && has_any(line, READ_ERRORS));
    let unseen = unseen.flat_map(|line| paths_in(without_source(without_program_name(line))));
    let found = refused.chain(unseen.filter(|written| !shows(written)));
    let busy = last_lines(errors).filter(|line| has_any(line, BUSY_ERRORS));
    let busy = busy.flat_map(|line| paths_in(without_program_name(line)).chain(quoted(line).map(str::to_owned)));
    let mounted = busy
        .filter_map(|path| protected_denial(&path, paths, workdir).or_else(|| hidden_denial(&path, paths, workdir)));
    let of_git = last_lines(errors).filter(|line| has_any(line, GIT_WRITE_ERRORS));
    let of_git = of_git.filter_map(|_| paths.git_directory.as_deref().map(git_denial));
    first_different(found.filter_map(|path| denial(&path, paths, workdir)).chain(mounted).chain(of_git))
}

/// Why a command didn't find what it looked for outside of what commands see. Whether something is there isn't told.
pub(super) fn unseen_files(errors: &str, paths: &CommandPaths, workdir: &Path) -> Vec<Denial> {
    let lines = last_lines(errors).filter(|line| has_any(line, READ_ERRORS) && !tells_of_writing(line));
    let found = lines.flat_map(|line| paths_in(without_program_name(line))).filter_map(|written| {
        let path = plain(&workdir.join(&written)).filter(|path| !paths.shows(path))?;
        let directory = path.parent().filter(|parent| parent.components().count() > 1).unwrap_or(&path);
        let reason = format!(
            "`{written}` is outside of what commands see, whether it exists or not: the system, toolchains, the workspace \
             and `[[roots]]`. To let them read it, the person adds `[[roots]]` with `path = \"{0}\"` to their \
             configuration; to change it, ask for `fs.write={0}`.",
            directory.display()
        );
        Some(Denial { code: ErrorCode::SandboxDenied, missing: Vec::new(), reason, rule: None })
    });
    first_different(found)
}

/// What a command that may only read tried to change: paths in the roots that others can change, and that the user could
/// change.
pub(super) fn refused_changes(errors: &str, paths: &CommandPaths, workdir: &Path) -> Vec<PathBuf> {
    let is_read_only = |path: &PathBuf| paths.read_only.iter().any(|root| path.starts_with(root));
    let could_be_changed = |path: &PathBuf| {
        let there = path.ancestors().find(|place| rustix::fs::lstat(*place).is_ok());
        there.is_some_and(|there| rustix::fs::access(there, Access::WRITE_OK).is_ok())
    };
    let words = refusals(errors).flat_map(|line| paths_in(without_program_name(line)).chain(subject_of(line)));
    let found = words.filter_map(|path| plain(&workdir.join(path))).filter(is_read_only).filter(could_be_changed);
    first_different(found)
}

/// The lines that may tell of a refused write, the last ones first.
fn refusals(errors: &str) -> impl Iterator<Item = &str> {
    last_lines(errors).filter(|line| has_any(line, WRITE_ERRORS))
}

fn last_lines(errors: &str) -> impl Iterator<Item = &str> {
    errors.lines().rev().take(MAX_LINES)
}

fn has_any(line: &str, phrases: &[&str]) -> bool {
    phrases.iter().any(|phrase| line.contains(phrase))
}

/// Whether a line is about writing, whatever the error is.
fn tells_of_writing(line: &str) -> bool {
    has_any(line, WRITING) || has_any(line, READ_ONLY_ERRORS)
}

/// The name that a refusal is about, where it needn't look like a path: what is quoted, or the last word before the error.
fn subject_of(line: &str) -> impl Iterator<Item = String> {
    let quoted = quoted(line).map(str::to_owned);
    let before = WRITE_ERRORS.iter().find_map(|words| line.split_once(words)).map(|(before, _)| before);
    let last = before.and_then(|before| before.trim_end_matches([':', ' ']).rsplit(' ').next());
    quoted.chain(last.map(|word| word.trim_matches(QUOTES).to_owned()))
}

fn first_different<T: PartialEq>(found: impl Iterator<Item = T>) -> Vec<T> {
    let mut different: Vec<T> = Vec::new();
    for one in found {
        if !different.contains(&one) && different.len() < MAX_DENIALS {
            different.push(one);
        }
    }
    different
}

/// Many lines begin with the name of the program that prints them, or with another prefix before the path.
fn without_program_name(line: &str) -> &str {
    let Some((prefix, rest)) = line.split_once(": ") else { return line };
    let is_about_prefix = WRITE_ERRORS.iter().any(|words| rest.starts_with(words));
    let is_program = || rustix::fs::access(prefix, Access::EXEC_OK).is_ok() && !Path::new(prefix).is_dir();
    let is_name = !prefix.contains(char::is_whitespace) && !is_about_prefix && (rest.contains('/') || is_program());
    if is_name { rest } else { line }
}

/// Of `cannot copy 'A' to 'B'`, the part about B: a copy doesn't change what it is made from.
fn without_source(line: &str) -> &str {
    let Some((_, copied)) = line.split_once("cannot copy ") else { return line };
    let target = |start: &char| copied.split_once(format!("{start} to ").as_str()).map(|(_, target)| target);
    QUOTES.iter().find_map(target).unwrap_or(line)
}

/// What stands in quotes.
fn quoted(line: &str) -> impl Iterator<Item = &str> {
    line.split(QUOTES).skip(1).step_by(2)
}

/// Words of a line that could be paths: what stands in quotes, and what looks like one.
fn paths_in(line: &str) -> impl Iterator<Item = String> + '_ {
    let quoted = quoted(line);
    let bare = line.split([' ', '\t', '\'', '"', '`', '‘', '’', '(', ')']);
    let bare = bare.map(|word| word.trim_end_matches([':', ',', ';', '.']));
    quoted.chain(bare).filter(|word| word.contains('/')).map(str::to_owned)
}

/// A protected path that the command was kept from changing. Only a command that works in place meets a protected configuration of
/// git.
fn protected_denial(written: &str, paths: &CommandPaths, workdir: &Path) -> Option<Denial> {
    let path = plain(&workdir.join(written))?;
    paths.protected.iter().find(|place| path.starts_with(place))?;
    let reason = match path.ends_with(".git/config") {
        false => format!("`{written}` is protected: commands can't change it."),
        true => format!(
            "`{written}` is protected from commands that work in place. Without `stdin`, `tty` and `background` git can change it: \
             then the change is checked and applied when the command ends."
        ),
    };
    Some(of(&path, reason))
}

/// A hidden path, or a directory with one in it, that the command couldn't move, replace or remove. Nobody can be asked for that.
fn hidden_denial(written: &str, paths: &CommandPaths, workdir: &Path) -> Option<Denial> {
    let path = plain(&workdir.join(written))?;
    let is_committed = paths.substitutes.iter().any(|(place, _)| place.starts_with(&path));
    let is_hidden = paths.secret.iter().any(|place| place.starts_with(&path));
    let reason = match (is_committed, is_hidden) {
        (true, _) => format!(
            "`{written}` is hidden, or has hidden files in it. Commands that work in place see the committed version of such a file, \
             and can't replace, move or remove it. Git can without `stdin`, `tty` and `background`, where changes are staged; otherwise \
             the person runs it outside of Toolgate."
        ),
        (false, true) => format!(
            "`{written}` is hidden, or has something hidden in it: commands can't replace, move or remove it. The person can, outside \
             of Toolgate."
        ),
        (false, false) => return None,
    };
    Some(Denial { code: ErrorCode::SandboxDenied, missing: Vec::new(), reason, rule: None })
}

/// The git directory outside of the roots that the command couldn't change. A right to write there isn't offered.
fn git_denial(git_directory: &Path) -> Denial {
    Denial { code: ErrorCode::SandboxDenied, missing: Vec::new(), reason: only_read(git_directory), rule: None }
}

fn denial(written: &str, paths: &CommandPaths, workdir: &Path) -> Option<Denial> {
    let path = plain(&workdir.join(written))?;
    let lies_in = |places: &[PathBuf]| places.iter().any(|place| path.starts_with(place));
    if lies_in(&paths.read_only) {
        return None;
    }
    if let Some(protected) = protected_denial(written, paths, workdir) {
        return Some(protected);
    }
    if let Some(git) = paths.git_directory.as_deref().filter(|git| path.starts_with(git)) {
        return Some(git_denial(git));
    }
    // Virtual file systems, or the sandbox's own tmpfs.
    let is_virtual = ["/proc", "/sys", "/dev", "/tmp", "/run"].iter().any(|place| path.starts_with(place));
    if is_virtual || lies_in(&paths.writable) || lies_in(&paths.own) || lies_in(&paths.masked) {
        return None;
    }
    // The path itself, or the directory in which it was to be created; symlinks are resolved.
    let there = path.ancestors().find(|place| rustix::fs::lstat(*place).is_ok())?;
    let real = std::fs::canonicalize(there).ok().filter(|real| real.components().count() > 1)?;
    // What the user can't write anyway wasn't denied by confinement.
    rustix::fs::access(&real, Access::WRITE_OK).ok()?;
    let reason = match there == path {
        true => format!("`{written}` wasn't changed: it lies outside of what commands may write."),
        false => {
            let directory = real.display();
            format!("`{written}` wasn't made: to make it the command has to write in `{directory}`, which it may not.")
        }
    };
    Some(of(&real, reason))
}

fn of(path: &Path, reason: String) -> Denial {
    let missing = vec![Effect::write(escape_path(path.as_os_str().as_bytes()))];
    Denial { code: ErrorCode::SandboxDenied, missing, reason, rule: None }
}

/// An absolute path without `.` and `..`; none if it leads above the root.
fn plain(path: &Path) -> Option<PathBuf> {
    let mut plain = PathBuf::from("/");
    for part in path.components() {
        match part {
            Component::Normal(name) => plain.push(name),
            Component::ParentDir => drop(plain.pop().then_some(())?),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    Some(plain)
}

#[cfg(test)]
mod tests {
    use toolgate_contract::LaunchSpec;

    use super::*;
    use crate::process::Profile;
    use crate::process::command_paths::WorkspaceMount;

    /// What programs print, and which rights that shows to be missing.
    const KEPT: &[(&str, &[&str])] = &[
        ("touch: cannot touch 'OUT/new': Read-only file system", &["write /outside"]),
        ("bash: line 1: OUT/file: Read-only file system", &["write /outside/file"]),
        ("OSError: [Errno 30] Read-only file system: 'OUT/file'", &["write /outside/file"]),
        ("mkdir: cannot create directory ‘LINK/x’: Read-only file system", &["write /outside"]),
        ("sh: 1: cannot create ../outside/a: Read-only file system", &["write /outside"]),
        ("cp: cannot create regular file '.git/hooks/x': Read-only file system", &["write /workspace/.git/hooks/x"]),
        ("error: could not write config file .git/config: Device or resource busy", &["write /workspace/.git/config"]),
        ("rm: cannot remove '.git/hooks': Device or resource busy", &["write /workspace/.git/hooks"]),
        ("rm: cannot remove 'OUT/new': Device or resource busy", &[]),
        ("touch: cannot touch 'OUT/new': No space left on device", &[]),
        ("rm: cannot remove './inside/x': Permission denied", &[]),
        ("cat: /etc/shadow: Permission denied", &[]),
        ("/proc/sys/kernel/x: Read-only file system", &[]),
        ("mkdir: cannot create directory '/new': Read-only file system", &[]),
        ("a story about OUT/file", &[]),
        ("OUT/file: line 1: /etc/shadow: Permission denied", &[]),
        ("OUT/file: Permission denied", &["write /outside/file"]),
        ("OUT/file: cannot open: Permission denied", &["write /outside/file"]),
        ("/bin/sh: cannot open x: Permission denied", &[]),
        ("can't write OUT/file: it said: Permission denied", &["write /outside/file"]),
        ("fatal: cannot copy 'OUT/file' to './inside/file': Read-only file system", &[]),
        ("fatal: cannot copy './inside/file' to 'OUT/new': Read-only file system", &["write /outside"]),
        ("cp: cannot copy 'OUT/file': Read-only file system", &["write /outside/file"]),
    ];

    #[test]
    fn only_what_confinement_kept_is_told() {
        let directory = tempfile::tempdir_in("/var/tmp").unwrap();
        let directory = directory.path().canonicalize().unwrap();
        let (workspace, outside) = (directory.join("workspace"), directory.join("outside"));
        for place in [&workspace, &outside, &workspace.join(".git/hooks")] {
            std::fs::create_dir_all(place).unwrap();
        }
        std::fs::write(outside.join("file"), "").unwrap();
        std::os::unix::fs::symlink(&outside, directory.join("link")).unwrap();
        let mut profile = Profile::for_workspace(&workspace, None);
        profile.shown.extend([outside.clone(), directory.join("link")]);
        let paths = CommandPaths::of(&profile, &LaunchSpec::shell(""), WorkspaceMount::Writable).unwrap();
        let missing = |errors: &str| -> Vec<String> {
            let errors = errors
                .replace("OUT", outside.to_str().unwrap())
                .replace("LINK", directory.join("link").to_str().unwrap());
            let denials = denied_files(&errors, &paths, &workspace);
            denials.iter().map(|denial| denial.missing_in_words().replace(directory.to_str().unwrap(), "")).collect()
        };
        for (errors, expected) in KEPT {
            assert_eq!(missing(errors), *expected, "{errors}");
        }
        // Somewhere that isn't shown: what is to be written can be asked for, what is to be read can't.
        let hidden = directory.join("hidden");
        std::fs::create_dir_all(&hidden).unwrap();
        for (errors, asked, told) in [
            ("touch: cannot touch 'HIDDEN/new': No such file or directory", 1, 0),
            ("touch: cannot touch 'HIDDEN/new': Permission denied", 1, 0),
            ("cp: cannot create regular file 'HIDDEN/new': No such file or directory", 1, 0),
            ("cat: HIDDEN/new: No such file or directory", 0, 1),
            ("cat: HIDDEN/new: Permission denied", 0, 1),
            ("touch: cannot touch '/usr/missing/new': No such file or directory", 0, 0),
            ("cat: ./missing: No such file or directory", 0, 0),
        ] {
            let errors = errors.replace("HIDDEN", hidden.to_str().unwrap());
            let found = (denied_files(&errors, &paths, &workspace), unseen_files(&errors, &paths, &workspace));
            assert_eq!((found.0.len(), found.1.len()), (asked, told), "{errors}: {found:?}");
        }
        let errors = format!("touch: cannot touch '{}/new': Read-only file system", outside.display());
        let reason = &denied_files(&errors, &paths, &workspace)[0].reason;
        let words = format!("`{0}/new` wasn't made: to make it the command has to write in `{0}`", outside.display());
        assert!(reason.starts_with(&words), "both are named: {reason}");
    }
}
