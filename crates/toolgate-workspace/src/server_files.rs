//! The files that a server is started from, as part of who it is: a package that changes under the same command line is another one.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use toolgate_contract::{counted, sha256};

/// Bytes of a file that are looked at. Programs may be large, and are read once for every start.
const LARGEST: u64 = 64 * 1024 * 1024;

/// Programs that run others. Which version of them there is is the machine's concern, not the server's.
const INTERPRETERS: [&str; 8] = ["python", "node", "bun", "deno", "ruby", "sh", "bash", "env"];

/// What says which versions of packages are installed. The nearest above a script counts.
const LOCK_FILES: [&str; 6] =
    ["package-lock.json", ".package-lock.json", "yarn.lock", "pnpm-lock.yaml", "uv.lock", "requirements.txt"];

/// What a server is started from: its package, where it has one, and a hash of all files that its command names and that say what is
/// installed beside them. None where the command names no file, such as with `npx`.
pub(crate) fn describe(command: &[String], directory: &Path) -> Option<Value> {
    let mut files = BTreeMap::new();
    let mut package = None;
    for script in command.iter().map(|word| directory.join(word)).filter(|path| is_of_server(path)) {
        let above = script.ancestors().skip(1).take_while(|above| above.parent().is_some());
        let manifest = above.clone().map(|above| above.join("package.json")).find(|path| path.is_file());
        let locks = LOCK_FILES.map(|name| above.clone().map(|above| above.join(name)).find(|path| path.is_file()));
        package = package.or_else(|| manifest.as_deref().and_then(name_and_version));
        let beside = manifest.into_iter().chain(locks.into_iter().flatten()).chain(installed_from_pypi(&script));
        for file in beside.chain([script]) {
            let hash = hash_of(&file);
            files.insert(file, hash);
        }
    }
    let listed: Vec<Value> = files.iter().map(|(path, hash)| json!([path, hash])).collect();
    (!listed.is_empty()).then(|| json!({ "package": package, "files": sha256(json!(listed).to_string()) }))
}

/// Whether a word of the command names a file of the server's own.
fn is_of_server(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let bare = name.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
    path.is_file() && !INTERPRETERS.contains(&bare)
}

fn name_and_version(manifest: &Path) -> Option<String> {
    let about: Value = serde_json::from_slice(&read(manifest)?).ok()?;
    Some(format!("{}@{}", about["name"].as_str()?, about["version"].as_str()?))
}

/// The list of what a program of a Python environment was installed with: `lib/python*/site-packages/NAME-VERSION.dist-info/RECORD`.
fn installed_from_pypi(script: &Path) -> Vec<PathBuf> {
    let (Some(environment), Some(name)) = (script.parent().and_then(Path::parent), script.file_name()) else {
        return Vec::new();
    };
    let prefix = format!("{}-", name.to_string_lossy().replace('-', "_").to_lowercase());
    let libraries = entries(&environment.join("lib")).into_iter().map(|library| library.join("site-packages"));
    let packages = libraries.flat_map(|packages| entries(&packages)).filter(|package| {
        let name = package.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
        name.starts_with(&prefix) && name.ends_with(".dist-info")
    });
    packages.map(|package| package.join("RECORD")).filter(|record| record.is_file()).collect()
}

#[allow(clippy::disallowed_methods, reason = "the program of a server that the user's own configuration names")]
fn entries(directory: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

#[allow(clippy::disallowed_methods, reason = "the program of a server that the user's own configuration names")]
fn read(path: &Path) -> Option<Vec<u8>> {
    let size = std::fs::metadata(path).ok()?.len();
    (size <= LARGEST).then(|| std::fs::read(path).ok()).flatten()
}

/// The hash of a file; that of its size alone where it is too large to be read.
fn hash_of(path: &Path) -> String {
    let size = || path.metadata().map(|about| about.len()).unwrap_or_default();
    read(path).map_or_else(|| counted(size(), "byte"), sha256)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods, reason = "tests make files of their own")]

    use super::*;

    #[test]
    fn a_package_that_changes_under_the_same_command_line_is_another_one() {
        let world = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &str| {
            let path = world.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        put("node_modules/server/package.json", r#"{"name":"server","version":"1.2.3"}"#);
        put("node_modules/server/dist/index.js", "serve()");
        put("package-lock.json", "{}");
        put("python/bin/mcp-server-x", "#!python");
        put("python/lib/python3.13/site-packages/mcp_server_x-1.dist-info/RECORD", "a");
        let node = ["node", "node_modules/server/dist/index.js", "."].map(str::to_owned);
        let python = ["python/bin/mcp-server-x".to_owned()];
        let described = |command: &[String]| describe(command, world.path());
        let (first, stub) = (described(&node).unwrap(), described(&python).unwrap());
        assert_eq!(first["package"], "server@1.2.3");
        assert_eq!(described(&node).unwrap(), first, "nothing changed");
        for (name, text) in [("package-lock.json", "{ }"), ("node_modules/server/dist/index.js", "steal()")] {
            let before = described(&node).unwrap();
            put(name, text);
            assert_ne!(described(&node).unwrap()["files"], before["files"], "{name}");
        }
        put("python/lib/python3.13/site-packages/mcp_server_x-1.dist-info/RECORD", "b");
        assert_ne!(described(&python).unwrap(), stub);
        assert_eq!(described(&["npx".to_owned(), "-y".to_owned(), "server@1.2.3".to_owned()]), None);
    }
}
