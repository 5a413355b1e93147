//! The files that a server is started from, as part of who it is: a package that changes under the same command line is another one.
//! Arguments that are data, such as a database, aren't looked at: they change while the server works.
#![allow(clippy::disallowed_methods, reason = "programs of servers that the user's own configuration names")]

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use toolgate_contract::{sha256, sha256_of};

/// Programs that run others. Which version of them there is is the machine's concern, not the server's.
const INTERPRETERS: [&str; 17] = [
    "python", "node", "bun", "deno", "ruby", "sh", "bash", "env", "npx", "npm", "pnpm", "yarn", "bunx", "uv", "uvx",
    "pipx", "docker",
];

/// Words of interpreters that come before the script.
const VERBS: [&str; 4] = ["run", "exec", "tool", "x"];
/// Options of interpreters whose value is code as well.
const LOADING: [&str; 3] = ["--require", "-r", "--import"];
/// Options that say where the script is.
const DIRECTORY_OPTIONS: [&str; 2] = ["--directory", "--project"];

/// What says which versions of packages are installed. The nearest above a script counts.
const LOCK_FILES: [&str; 6] =
    ["package-lock.json", ".package-lock.json", "yarn.lock", "pnpm-lock.yaml", "uv.lock", "requirements.txt"];

/// Stands for the hash of a file that can't be read.
const UNREADABLE: &str = "unreadable";

/// What a server is started from: its package, where it has one, and a hash of its program or script, of the whole package that this
/// is installed with, and of the lock files above it. None where the command names no file, such as with `npx`.
pub(crate) fn describe(command: &[String], directory: &Path, search_path: Option<&OsStr>) -> Option<Value> {
    let mut files = BTreeMap::new();
    let mut package = None;
    for script in scripts(command, directory, search_path) {
        let above = script.ancestors().skip(1).take_while(|above| above.parent().is_some());
        let manifest = above.clone().map(|above| above.join("package.json")).find(|path| path.is_file());
        let locks = LOCK_FILES.map(|name| above.clone().map(|above| above.join(name)).find(|path| path.is_file()));
        package = package.or_else(|| manifest.as_deref().and_then(name_and_version));
        let installed = manifest.as_deref().map(installed_from_npm).unwrap_or_default();
        let beside = manifest.into_iter().chain(locks.into_iter().flatten()).chain(installed);
        for file in beside.chain(installed_from_pypi(&script)).chain([script]) {
            files.entry(file).or_insert_with_key(|file| hash_of(file));
        }
    }
    let listed: Vec<Value> = files.iter().map(|(path, hash)| json!([path, hash])).collect();
    (!listed.is_empty()).then(|| json!({ "package": package, "files": sha256(json!(listed).to_string()) }))
}

/// The program of a command, where it is found.
pub(crate) fn program(command: &[String], directory: &Path, search_path: Option<&OsStr>) -> Option<PathBuf> {
    let program = command.first()?;
    match program.contains('/') {
        true => Some(directory.join(program)),
        false => search_path.and_then(|path| {
            std::env::split_paths(path).map(|directory| directory.join(program)).find(|path| path.is_file())
        }),
    }
}

/// The files of a command that are the server's own code, without symlinks: the program, or what an interpreter is told to run.
pub(crate) fn scripts(command: &[String], directory: &Path, search_path: Option<&OsStr>) -> Vec<PathBuf> {
    let Some((_, arguments)) = command.split_first() else { return Vec::new() };
    let program = program(command, directory, search_path);
    let is_interpreter = INTERPRETERS.contains(&bare_name(command[0].as_ref()).as_str());
    let found = match is_interpreter {
        true => interpreted(program.as_deref(), arguments, directory),
        false => program.into_iter().collect(),
    };
    found.iter().filter_map(|path| path.canonicalize().ok()).filter(|path| path.is_file()).collect()
}

/// What an interpreter is told to run: a script, a module of its own environment, and what is loaded before it.
fn interpreted(interpreter: Option<&Path>, arguments: &[String], directory: &Path) -> Vec<PathBuf> {
    let mut directory = directory.to_owned();
    let (mut found, mut words) = (Vec::new(), arguments.iter());
    while let Some(word) = words.next() {
        let (option, value) = word.split_once('=').map_or((word.as_str(), None), |(name, value)| (name, Some(value)));
        let mut value = || value.map(str::to_owned).or_else(|| words.next().cloned()).unwrap_or_default();
        if LOADING.contains(&option) {
            found.push(directory.join(value()));
        } else if DIRECTORY_OPTIONS.contains(&option) {
            directory = directory.join(value());
        } else if option == "-m" {
            found.extend(module(interpreter, &value()));
            break;
        } else if !word.starts_with('-') && !VERBS.contains(&word.as_str()) {
            found.push(directory.join(word));
            break;
        }
    }
    found
}

/// The first file of a module in the environment of an interpreter.
fn module(interpreter: Option<&Path>, name: &str) -> Option<PathBuf> {
    let environment = interpreter?.parent()?.parent()?;
    let path = name.replace('.', "/");
    let places = site_packages(environment).into_iter().flat_map(|packages| {
        ["__main__.py", "__init__.py"]
            .map(|file| packages.join(&path).join(file))
            .into_iter()
            .chain([packages.join(format!("{path}.py"))])
    });
    places.into_iter().find(|path| path.is_file())
}

/// The name of a program without the version behind it.
fn bare_name(program: &Path) -> String {
    let name = program.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    name.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '.').to_owned()
}

fn name_and_version(manifest: &Path) -> Option<String> {
    let about: Value = serde_json::from_slice(&std::fs::read(manifest).ok()?).ok()?;
    Some(format!("{}@{}", about["name"].as_str()?, about["version"].as_str()?))
}

/// All files of a package that npm installed; none of a project that somebody works on, which changes all the time.
fn installed_from_npm(manifest: &Path) -> Vec<PathBuf> {
    let is_installed = manifest.components().any(|part| part.as_os_str() == "node_modules");
    manifest.parent().filter(|_| is_installed).map(files_below).unwrap_or_default()
}

/// The files of a directory, but for the packages in it.
fn files_below(directory: &Path) -> Vec<PathBuf> {
    let (mut files, mut waiting) = (Vec::new(), vec![directory.to_owned()]);
    while let Some(directory) = waiting.pop() {
        for path in entries(&directory) {
            match path.symlink_metadata() {
                Ok(about) if about.is_dir() && path.file_name() != Some("node_modules".as_ref()) => waiting.push(path),
                Ok(about) if about.is_file() => files.push(path),
                _ => {}
            }
        }
    }
    files
}

/// What pip and uv installed a program or module with: `lib/python*/site-packages/NAME-VERSION.dist-info/RECORD`, and the files that it lists.
fn installed_from_pypi(script: &Path) -> Vec<PathBuf> {
    let packages = |directory: &&Path| directory.file_name().is_some_and(|name| name == "site-packages");
    let (places, name) = match script.ancestors().find(packages) {
        Some(packages) => {
            (vec![packages.to_owned()], script.strip_prefix(packages).ok().and_then(|rest| rest.iter().next()))
        }
        None => (script.ancestors().nth(2).map(site_packages).unwrap_or_default(), script.file_name()),
    };
    let Some(name) = name.map(|name| name.to_string_lossy().trim_end_matches(".py").replace('-', "_").to_lowercase())
    else {
        return Vec::new();
    };
    let is_its = |package: &PathBuf| {
        let about = package.file_name().map(|about| about.to_string_lossy().to_lowercase()).unwrap_or_default();
        about.starts_with(&format!("{name}-")) && about.ends_with(".dist-info")
    };
    let records = places.iter().flat_map(|packages| entries(packages)).filter(is_its).map(|about| about.join("RECORD"));
    records
        .filter(|record| record.is_file())
        .flat_map(|record| listed_in(&record).into_iter().chain([record.clone()]).collect::<Vec<_>>())
        .collect()
}

/// The files that a list of installed files names. Compiled copies come and go.
fn listed_in(record: &Path) -> Vec<PathBuf> {
    let Some(packages) = record.ancestors().nth(2) else { return Vec::new() };
    let text = std::fs::read_to_string(record).unwrap_or_default();
    let names = text.lines().filter_map(|line| line.split(',').next()).filter(|name| !name.ends_with(".pyc"));
    names.map(|name| packages.join(name)).filter(|path| path.is_file()).collect()
}

/// Where the packages of a Python environment are.
fn site_packages(environment: &Path) -> Vec<PathBuf> {
    entries(&environment.join("lib")).into_iter().map(|library| library.join("site-packages")).collect()
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

fn hash_of(path: &Path) -> String {
    File::open(path).and_then(sha256_of).map_or_else(|_| UNREADABLE.to_owned(), |(hash, _)| hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct World(tempfile::TempDir);

    impl World {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn put(&self, name: &str, text: &str) {
            let path = self.0.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }

        fn described(&self, line: &str) -> Option<Value> {
            let command: Vec<String> = line.split(' ').map(str::to_owned).collect();
            describe(&command, self.0.path(), Some(self.0.path().join("bin").as_os_str()))
        }

        /// Whether another text in this file makes the server another one.
        fn is_pinned(&self, line: &str, name: &str) -> bool {
            let before = self.described(line);
            self.put(name, "changed");
            self.described(line) != before
        }
    }

    #[test]
    fn a_package_that_changes_under_the_same_command_line_is_another_one() {
        let world = World::new();
        world.put("node_modules/server/package.json", r#"{"name":"server","version":"1.2.3"}"#);
        world.put("node_modules/server/dist/index.js", "serve()");
        world.put("node_modules/server/dist/lib.js", "help()");
        world.put("package-lock.json", "{}");
        world.put("python/bin/mcp-server-x", "#!python");
        world.put("python/lib/python3.13/site-packages/mcp_server_x/server.py", "serve()");
        world.put("python/lib/python3.13/site-packages/mcp_server_x/__main__.py", "serve()");
        let record = "mcp_server_x/server.py,sha256=a,7\nmcp_server_x/__pycache__/server.pyc,,\n";
        world.put("python/lib/python3.13/site-packages/mcp_server_x-1.dist-info/RECORD", record);
        std::fs::create_dir(world.0.path().join("bin")).unwrap();
        for (link, target) in
            [("bin/mcp-server-x", "../python/bin/mcp-server-x"), ("bin/tool", "../node_modules/server/dist/index.js")]
        {
            std::os::unix::fs::symlink(target, world.0.path().join(link)).unwrap();
        }
        let node = "node --no-warnings node_modules/server/dist/index.js .";
        assert_eq!(world.described(node).unwrap()["package"], "server@1.2.3");
        assert_eq!(world.described("tool"), world.described(node), "found on PATH, and through a link");
        let python = ["mcp-server-x", "./python/bin/mcp-server-x", "./python/bin/python -m mcp_server_x"];
        for line in python {
            assert!(world.is_pinned(line, "python/lib/python3.13/site-packages/mcp_server_x/server.py"), "{line}");
            world.put("python/lib/python3.13/site-packages/mcp_server_x/server.py", "serve()");
        }
        for name in ["package-lock.json", "node_modules/server/dist/lib.js", "node_modules/server/dist/index.js"] {
            assert!(world.is_pinned(node, name), "{name}");
        }
        assert!(world.is_pinned("mcp-server-x", "python/lib/python3.13/site-packages/mcp_server_x-1.dist-info/RECORD"));
        assert_eq!(world.described("npx -y server@1.2.3"), None);
    }

    #[test]
    fn what_is_loaded_is_pinned_and_what_is_data_is_not() {
        let world = World::new();
        for name in ["server.py", "sub/server.py", "before.js", "server.js", "test.db"] {
            world.put(name, "first");
        }
        for (line, name) in [
            ("python3.13 -u server.py test.db", "server.py"),
            ("uv --directory sub run server.py", "sub/server.py"),
            ("node --require=./before.js server.js", "before.js"),
            ("./server.js --db test.db", "server.js"),
        ] {
            assert!(world.is_pinned(line, name), "{line}");
            assert!(!world.is_pinned(line, "test.db"), "{line}");
            world.put(name, "first");
            world.put("test.db", "first");
        }
    }
}
