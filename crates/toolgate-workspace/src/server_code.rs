//! What a server that is a program has to read so that it runs at all: its own code, and what that was installed with. Whoever configures
//! a server names its program, and expects that it starts.
#![allow(clippy::disallowed_methods, reason = "programs of servers that the user's own configuration names")]

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use toolgate_sandbox::process::Profile;

use crate::server_files::{program, scripts};

/// What every sandbox shows already.
const SYSTEM: [&str; 5] = ["/usr", "/bin", "/sbin", "/lib", "/lib64"];

/// Where npm puts packages, each beside those that it needs.
const NODE_PACKAGES: &str = "node_modules";

/// What makes a directory a Python environment.
const PYTHON_ENVIRONMENT: &str = "pyvenv.cfg";

/// What the command's own code needs to read outside of the workspace: of an npm package the directory of packages, of a Python environment
/// all of it and the Python that it was made from, and otherwise the file alone.
pub(crate) fn readable(
    command: &[String],
    directory: &Path,
    workspace: &Path,
    search_path: Option<&OsStr>,
    home: Option<&Path>,
) -> Vec<PathBuf> {
    let mut found = Vec::new();
    // An interpreter that is found on PATH is found inside too, and one in a home may need more than can be known.
    let named = program(command, directory, search_path).filter(|_| command[0].contains('/'));
    found.extend(named.as_deref().and_then(|named| Profile::installation_of(named, home)));
    // The Python of an environment is a symlink out of it, so its path as written counts too.
    for file in named.into_iter().chain(scripts(command, directory, search_path)) {
        match (environment_of(&file), packages_of(&file)) {
            (Some(environment), _) => {
                let python = environment.join("bin/python").canonicalize().ok();
                found.extend(python.and_then(|python| Profile::installation_of(&python, home)));
                found.push(environment);
            }
            (None, Some(packages)) => found.push(packages),
            (None, None) => found.push(file),
        }
    }
    let is_shown = |path: &PathBuf| SYSTEM.iter().any(|known| path.starts_with(known)) || path.starts_with(workspace);
    found.retain(|path| path.is_absolute() && path.exists() && !is_shown(path));
    found.sort();
    // Sorted, a directory comes before what is in it.
    let mut outermost: Vec<PathBuf> = Vec::new();
    for path in found {
        if !outermost.iter().any(|outer| path.starts_with(outer)) {
            outermost.push(path);
        }
    }
    outermost
}

/// The Python environment that a program belongs to.
fn environment_of(program: &Path) -> Option<PathBuf> {
    let environment = program.parent()?.parent()?;
    environment.join(PYTHON_ENVIRONMENT).is_file().then(|| environment.to_owned())
}

/// The outermost directory of packages that a file is in.
fn packages_of(file: &Path) -> Option<PathBuf> {
    let is_it = |path: &&Path| path.file_name().is_some_and(|name| name == NODE_PACKAGES);
    file.ancestors().filter(is_it).last().map(Path::to_owned)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_server_reads_its_own_code_and_nothing_beside_it() {
        let home = tempfile::tempdir().unwrap();
        let base = home.path().canonicalize().unwrap();
        for file in [
            "apps/node_modules/server/node_modules/dep/index.js",
            "apps/node_modules/server/index.js",
            "apps/.env",
            "venv/pyvenv.cfg",
            "venv/bin/mcp-server",
            "python/bin/python3.13",
            "python/lib/os.py",
            "scripts/server.py",
            "scripts/secret",
            "workspace/server.py",
        ] {
            fs::create_dir_all(base.join(file).parent().unwrap()).unwrap();
            fs::write(base.join(file), "").unwrap();
        }
        symlink(base.join("python/bin/python3.13"), base.join("venv/bin/python")).unwrap();
        symlink(base.join("venv/bin/mcp-server"), base.join("apps/mcp-server")).unwrap();
        let read = |line: &str| {
            let command: Vec<String> =
                line.split(' ').map(|word| word.replace("~", &base.display().to_string())).collect();
            let found =
                readable(&command, &base, &base.join("workspace"), Some(base.join("apps").as_os_str()), Some(&base));
            let shown = |path: PathBuf| path.strip_prefix(&base).unwrap().display().to_string();
            found.into_iter().map(shown).collect::<Vec<_>>()
        };
        assert_eq!(read("node ~/apps/node_modules/server/node_modules/dep/index.js"), ["apps/node_modules"]);
        for line in ["mcp-server", "~/venv/bin/mcp-server", "~/venv/bin/python -m server"] {
            let found = read(line);
            assert!(found.contains(&"venv".to_owned()) && found.contains(&"python".to_owned()), "{line}: {found:?}");
        }
        assert_eq!(read("python3 ~/scripts/server.py"), ["scripts/server.py"], "and not what lies beside it");
        assert_eq!(read("python3 ~/workspace/server.py"), Vec::<String>::new(), "it is shown already");
        assert_eq!(read("sh -c true"), Vec::<String>::new());
    }
}
