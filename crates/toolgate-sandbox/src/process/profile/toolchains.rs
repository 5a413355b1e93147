//! Toolchains outside of the system's own directories: what `PATH` leads to, and what well-known variables name. A command
//! needs them to build and run things; nothing else around them is shown.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::{OsStrExt, OsStringExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

/// Variables that name the directory of a toolchain.
const VARIABLES: &[&str] = &[
    "AGENT_TOOLSDIRECTORY",
    "ANDROID_HOME",
    "ANDROID_SDK_ROOT",
    "CONDA_PREFIX",
    "DOTNET_ROOT",
    "FLUTTER_ROOT",
    "GOROOT",
    "GRADLE_HOME",
    "JAVA_HOME",
    "MAVEN_HOME",
    "NVM_DIR",
    "PYENV_ROOT",
    "RBENV_ROOT",
    "RUNNER_TOOL_CACHE",
    "RUSTUP_HOME",
    "SDKMAN_DIR",
    "VIRTUAL_ENV",
];

/// Variables that name a directory of which only a part is a toolchain's: Cargo's also holds credentials, Go's also projects.
const PARTS: &[(&str, &[&str])] =
    &[("CARGO_HOME", &["bin", "config.toml", "env", "git", "registry"]), ("GOPATH", &["bin", "pkg"])];

/// Directories with programs, next to those with their libraries.
const PROGRAM_DIRECTORIES: &[&str] = &["bin", "sbin", "libexec"];
/// What an installation has beside its programs. A project with a `bin` of its own mostly has none of them.
const LIBRARY_DIRECTORIES: &[&str] = &["include", "lib", "lib64", "libexec", "share"];
/// Directories of people. What is shown of them is decided elsewhere.
const HOMES: &[&str] = &["/home", "/root"];
/// Where packages put what isn't the distribution's own. The system's programs may be symlinks to there.
const ADD_ONS: &str = "/opt";

/// The toolchains that an environment leads to, outside of what is shown already. `PATH` shows nothing of a home.
pub(super) fn find(environment: &BTreeMap<OsString, OsString>, home: Option<&Path>, shown: &[PathBuf]) -> Vec<PathBuf> {
    let value = |name: &str| environment.get(OsStr::new(name)).map(PathBuf::from).and_then(|path| real(&path));
    let parts = PARTS.iter().filter_map(|(name, parts)| Some((value(name)?, parts)));
    let parts = parts.flat_map(|(path, parts)| parts.iter().map(move |name| path.join(name)));
    let named = VARIABLES.iter().filter_map(|name| value(name)).chain(parts);
    let path = environment.get(OsStr::new("PATH")).cloned().unwrap_or_default();
    let directories: Vec<PathBuf> = std::env::split_paths(&path).filter_map(|directory| real(&directory)).collect();
    let is_in_a_home = |path: &PathBuf| HOMES.iter().map(Path::new).chain(home).any(|home| path.starts_with(home));
    let on_path = directories.iter().map(|directory| installation(directory));
    let is_shown = |path: &Path| shown.iter().any(|known| path.starts_with(known));
    let linked =
        directories.iter().filter(|directory| may_link_out(directory)).flat_map(|directory| symlinks(directory));
    // Most lead to what is shown anyway, and many into one directory.
    let linked: BTreeSet<PathBuf> = linked
        .filter_map(|program| program.parent().map(Path::to_owned))
        .filter(|directory| directory.parent().is_none_or(|outer| !is_shown(outer)))
        .collect();
    let linked = linked.iter().map(|directory| installation(directory));
    let mut found: Vec<PathBuf> = named.chain(on_path.chain(linked).filter(|path| !is_in_a_home(path))).collect();
    found.retain(|path| is_narrow(path, home) && !is_shown(path));
    found.sort();
    found.dedup();
    found
}

/// The directory to show so that a program can be run that a person names by its path; none if it would show more than that.
pub(crate) fn installation_of(program: &Path, home: Option<&Path>) -> Option<PathBuf> {
    let found = installation(real(program)?.parent()?);
    is_narrow(&found, home).then_some(found)
}

/// The directory to show for programs in `directory`: the installation that they belong to, if it looks like one and not like
/// somebody's project.
fn installation(directory: &Path) -> PathBuf {
    let is_for_programs =
        directory.file_name().is_some_and(|name| PROGRAM_DIRECTORIES.iter().any(|known| name == *known));
    let whole = directory.parent().filter(|prefix| {
        is_for_programs
            && LIBRARY_DIRECTORIES.iter().any(|name| prefix.join(name).is_dir())
            && !prefix.join(".git").exists()
    });
    whole.unwrap_or(directory).to_owned()
}

/// Whether a directory is too deep to hold other projects, and holds no home.
fn is_narrow(path: &Path, home: Option<&Path>) -> bool {
    path.components().count() > 2 && !home.is_some_and(|home| home.starts_with(path))
}

/// Whether programs of a directory may be symlinks that lead out of the system. Its own directories are large, so they are
/// read only where there is something to lead to.
fn may_link_out(directory: &Path) -> bool {
    let is_systems_own = ["/usr/bin", "/usr/sbin", "/bin", "/sbin"].iter().any(|known| directory == Path::new(known));
    !is_systems_own || std::fs::read_dir(ADD_ONS).is_ok_and(|mut entries| entries.next().is_some())
}

/// What the symlinks of a directory lead to.
fn symlinks(directory: &Path) -> Vec<PathBuf> {
    let is_link = |entry: &std::fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_symlink());
    let leads_away = |entry: &std::fs::DirEntry| {
        std::fs::read_link(entry.path()).is_ok_and(|target| target.as_os_str().as_bytes().contains(&b'/'))
    };
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter(is_link).filter(leads_away).filter_map(|entry| real(&entry.path())).collect()
}

/// An absolute path that exists, without symlinks: that of its descriptor, which takes three system calls however deep it is.
fn real(path: &Path) -> Option<PathBuf> {
    let opened =
        path.is_absolute().then(|| rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok())??;
    let real = rustix::fs::readlink(format!("/proc/self/fd/{}", opened.as_raw_fd()), Vec::new()).ok()?;
    Some(PathBuf::from(OsString::from_vec(real.into_bytes())))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn toolchains_are_found_and_projects_are_not() {
        let directory = tempfile::tempdir_in("/var/tmp").unwrap();
        let base = directory.path().canonicalize().unwrap();
        for name in [
            "jdk/bin",
            "jdk/lib",
            "project/bin",
            "project/lib",
            "project/.git",
            "tool/bin",
            "node/bin",
            "node/lib",
            "links",
            "cargo/bin",
            "go/src",
            "home/me/x/bin",
            "home/me/x/lib",
        ] {
            fs::create_dir_all(base.join(name)).unwrap();
        }
        fs::write(base.join("node/bin/node"), "").unwrap();
        fs::write(base.join("cargo/credentials.toml"), "").unwrap();
        symlink(base.join("node/bin/node"), base.join("links/node")).unwrap();
        let home = base.join("home/me");
        let path = ["project/bin", "tool/bin", "links", "missing/bin", "home/me/x/bin"].map(|name| base.join(name));
        let environment: BTreeMap<OsString, OsString> = [
            ("PATH", std::env::join_paths(path.iter().chain([&PathBuf::from("/usr/bin")])).unwrap()),
            ("JAVA_HOME", base.join("jdk").into()),
            ("CARGO_HOME", base.join("cargo").into()),
            ("GOROOT", "/".into()),
            ("GOPATH", base.join("go").into()),
            ("SDKMAN_DIR", home.parent().unwrap().into()),
            ("NVM_DIR", "relative".into()),
        ]
        .map(|(name, value)| (name.into(), value))
        .into();
        let found = find(&environment, Some(&home), &[PathBuf::from("/usr")]);
        let below: Vec<&str> = found.iter().filter_map(|path| path.strip_prefix(&base).ok()?.to_str()).collect();
        assert_eq!(
            below,
            [
                "cargo/bin",
                "cargo/config.toml",
                "cargo/env",
                "cargo/git",
                "cargo/registry",
                "go/bin",
                "go/pkg",
                "jdk",
                "links",
                "node",
                "project/bin",
                "tool/bin"
            ]
        );
    }
}
