//! Which places a command tried to change and only confinement kept from it. The kernel doesn't tell, so this is read out
//! of the command's complaints; a path counts only if the profile really forbids it and nothing else does.

use std::path::{Component, Path, PathBuf};

use rustix::fs::Access;
use toolgate_contract::{Denial, Effect, ErrorCode};

use crate::process::command_paths::CommandPaths;

/// How programs say that the kernel refused them.
const COMPLAINTS: &[&str] = &["Read-only file system", "Permission denied", "EROFS", "EACCES"];

/// Lines of errors that are looked at, from the end, and places that are told.
const LINES: usize = 200;
const MOST: usize = 8;

/// What a command that may go here, started in this directory, was kept from changing.
pub(super) fn denied_files(errors: &str, paths: &CommandPaths, workdir: &Path) -> Vec<Denial> {
    let mut denials: Vec<Denial> = Vec::new();
    let complaints =
        errors.lines().rev().take(LINES).filter(|line| COMPLAINTS.iter().any(|words| line.contains(words)));
    for line in complaints {
        for denial in paths_in(without_program_name(line)).filter_map(|path| denial(&path, paths, workdir)) {
            if !denials.contains(&denial) && denials.len() < MOST {
                denials.push(denial);
            }
        }
    }
    denials
}

/// Many a line begins with the name of whoever complains: a program, or what stands before another path.
fn without_program_name(line: &str) -> &str {
    let Some((speaker, rest)) = line.split_once(": ") else { return line };
    let complains_of_itself = COMPLAINTS.iter().any(|words| rest.starts_with(words));
    let is_program = || rustix::fs::access(speaker, Access::EXEC_OK).is_ok() && !Path::new(speaker).is_dir();
    let speaks = !speaker.contains(char::is_whitespace) && !complains_of_itself && (rest.contains('/') || is_program());
    if speaks { rest } else { line }
}

/// Words of a line that could be paths: what stands in quotes, and what looks like one.
fn paths_in(line: &str) -> impl Iterator<Item = String> + '_ {
    let quoted = line.split(['\'', '"', '`', '‘', '’']).skip(1).step_by(2);
    let bare = line.split([' ', '\t', '\'', '"', '`', '‘', '’', '(', ')']);
    let bare = bare.map(|word| word.trim_end_matches([':', ',', ';', '.']));
    quoted.chain(bare).filter(|word| word.contains('/')).map(str::to_owned)
}

fn denial(written: &str, paths: &CommandPaths, workdir: &Path) -> Option<Denial> {
    let path = plain(&workdir.join(written))?;
    let lies_in = |places: &[PathBuf]| places.iter().any(|place| path.starts_with(place));
    if lies_in(&paths.protected) {
        let reason = format!("`{written}` stays as it is: commands don't change it.");
        return Some(of(&path, reason));
    }
    // The kernel's, or the command's own and gone with it.
    let is_nobodys = ["/proc", "/sys", "/dev", "/tmp", "/run"].iter().any(|place| path.starts_with(place));
    if is_nobodys || lies_in(&paths.writable) || lies_in(&paths.own) || lies_in(&paths.masked) {
        return None;
    }
    // The place itself, or the directory in which it was to be made; links are told as what they lead to.
    let there = path.ancestors().find(|place| rustix::fs::lstat(*place).is_ok())?;
    let real = std::fs::canonicalize(there).ok().filter(|real| real.components().count() > 1)?;
    // Whoever may not change it anyway wasn't stopped by confinement.
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
    let missing = vec![Effect::write(path.to_string_lossy())];
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
    use toolgate_contract::{ApplyMode, LaunchSpec};

    use super::*;
    use crate::process::Profile;

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
        let profile = Profile::for_workspace(&workspace, None);
        let paths = CommandPaths::of(&profile, &LaunchSpec::shell(""), ApplyMode::InPlace).unwrap();
        let missing = |errors: &str| -> Vec<String> {
            let errors = errors
                .replace("OUT", outside.to_str().unwrap())
                .replace("LINK", directory.join("link").to_str().unwrap());
            let denials = denied_files(&errors, &paths, &workspace);
            denials.iter().map(|denial| denial.missing_in_words().replace(directory.to_str().unwrap(), "")).collect()
        };
        for (errors, expected) in [
            ("touch: cannot touch 'OUT/new': Read-only file system", &["write /outside"][..]),
            ("bash: line 1: OUT/file: Read-only file system", &["write /outside/file"]),
            ("OSError: [Errno 30] Read-only file system: 'OUT/file'", &["write /outside/file"]),
            ("mkdir: cannot create directory ‘LINK/x’: Read-only file system", &["write /outside"]),
            ("sh: 1: cannot create ../outside/a: Read-only file system", &["write /outside"]),
            (
                "cp: cannot create regular file '.git/hooks/x': Read-only file system",
                &["write /workspace/.git/hooks/x"],
            ),
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
        ] {
            assert_eq!(missing(errors), expected, "{errors}");
        }
        let errors = format!("touch: cannot touch '{}/new': Read-only file system", outside.display());
        let reason = &denied_files(&errors, &paths, &workspace)[0].reason;
        let words = format!("`{0}/new` wasn't made: to make it the command has to write in `{0}`", outside.display());
        assert!(reason.starts_with(&words), "both are named: {reason}");
    }
}
