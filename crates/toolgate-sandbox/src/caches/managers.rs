//! The package managers that have a private cache, one entry each: how a workspace is known to use it, which variables lead it
//! to its private directories, and what of the user's own cache lies below them.

/// A package manager.
#[derive(Debug)]
pub(super) struct Manager {
    pub(super) name: &'static str,
    /// Words of a command line that run it.
    pub(super) programs: &'static [&'static str],
    /// Files in the top directory of a workspace that is built with it.
    pub(super) project_files: &'static [&'static str],
    /// The variables of a command. A later one replaces an earlier one of the same name.
    pub(super) variables: &'static [Variable],
    /// Where it installs programs, in the private directory.
    pub(super) installs: &'static [&'static str],
    /// A cache of the user's that it can read by itself as a second one: `{user}` in the variables.
    pub(super) second: Option<UserPath>,
    /// What is mirrored from the user's cache.
    pub(super) layers: &'static [UserLayer],
}

/// A variable that a command gets.
#[derive(Debug)]
pub(super) struct Variable {
    pub(super) name: &'static str,
    /// Its value. `{private}` is the private directory. With `{user}`, it is set only if the second cache exists.
    pub(super) value: &'static str,
    /// It isn't set for a command line with this word, whose program doesn't work with it.
    pub(super) unless_named: Option<&'static str>,
}

/// A directory of the user's: named by a variable or at its usual place, and a path below it.
#[derive(Debug, Clone, Copy)]
pub(super) struct UserPath {
    pub(super) variable: &'static str,
    pub(super) usual: UsualPlace,
    pub(super) below: &'static str,
}

/// Where a directory is that no variable names.
#[derive(Debug, Clone, Copy)]
pub(super) enum UsualPlace {
    /// In the home.
    Home(&'static str),
    /// In the home; for root, at this path of the system.
    HomeUnlessRoot(&'static str, &'static str),
    /// Where this program is installed: two above its file.
    Installation(&'static str),
}

/// A directory of the user's cache that is mirrored into a private one.
#[derive(Debug)]
pub(super) struct UserLayer {
    pub(super) source: UserPath,
    /// Where it is mirrored, in the private directory.
    pub(super) target: &'static str,
    pub(super) method: MirrorMethod,
    /// Another path below the same directory whose time changes whenever the manager adds something.
    pub(super) witness: Option<&'static str>,
}

/// How a directory is mirrored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MirrorMethod {
    /// Directories are made, files are copied, once: the manager writes into them in place.
    Copies,
    /// As [`MirrorMethod::Copies`], but a newer file of the user's replaces an older one.
    NewerCopies,
    /// Directories are made, files are symlinks: the manager only ever reads them or replaces them.
    FileLinks,
    /// Directories are made down to this depth, and what is there is a symlink, be it a file or a whole directory.
    EntryLinks(u32),
    /// One file, copied once.
    FileCopy,
    /// One file, as a symlink.
    FileLink,
    /// One file, as a symlink, unless the manager finds the original by itself in a parent of the workspace.
    Configuration,
    /// Python's directories of modules, `python3.*/site-packages`: each gets a `.pth` file that adds the user's own behind it.
    ModulePaths,
}

use MirrorMethod::{Configuration, Copies, EntryLinks, FileCopy, FileLink, FileLinks, ModulePaths, NewerCopies};
use UsualPlace::{Home, HomeUnlessRoot, Installation};

const fn set(name: &'static str, value: &'static str) -> Variable {
    Variable { name, value, unless_named: None }
}

const fn user(variable: &'static str, in_home: &'static str, below: &'static str) -> UserPath {
    UserPath { variable, usual: Home(in_home), below }
}

const fn layer(source: UserPath, target: &'static str, method: MirrorMethod) -> UserLayer {
    UserLayer { source, target, method, witness: None }
}

const fn cargo(below: &'static str) -> UserPath {
    user("CARGO_HOME", ".cargo", below)
}

const fn cached(below: &'static str) -> UserPath {
    user("XDG_CACHE_HOME", ".cache", below)
}

const fn npm(below: &'static str) -> UserPath {
    user("npm_config_cache", ".npm", below)
}

const fn pnpm(below: &'static str) -> UserPath {
    user("PNPM_HOME", ".local/share/pnpm", below)
}

/// The variable that most programs put their caches by: pip, uv, the first yarn, Go's build cache and many others. It is set
/// for every command.
pub(super) const CACHE_HOME: Variable = set("XDG_CACHE_HOME", "{private}/cache");

/// Every manager that has a private cache.
pub(super) static MANAGERS: &[Manager] = &[
    Manager {
        name: "cargo",
        programs: &["cargo", "cross", "rustc", "rustup", "wasm-pack", "maturin"],
        project_files: &["Cargo.toml"],
        variables: &[set("CARGO_HOME", "{private}/cargo")],
        installs: &["cargo/bin"],
        second: None,
        layers: &[
            // The index is rewritten in place; crates and their unpacked sources never change.
            layer(cargo("registry/index"), "cargo/registry/index", NewerCopies),
            layer(cargo("registry/cache"), "cargo/registry/cache", EntryLinks(2)),
            layer(cargo("registry/src"), "cargo/registry/src", EntryLinks(2)),
            layer(cargo("git/db"), "cargo/git/db", FileLinks),
            layer(cargo("git/checkouts"), "cargo/git/checkouts", EntryLinks(2)),
            layer(cargo("config.toml"), "cargo/config.toml", Configuration),
        ],
    },
    Manager {
        name: "npm",
        programs: &["npm", "npx", "node-gyp"],
        project_files: &["package-lock.json", "npm-shrinkwrap.json"],
        variables: &[
            set("npm_config_cache", "{private}/npm"),
            // What is installed with `-g`. nvm refuses to work with this variable.
            Variable { unless_named: Some("nvm"), ..set("npm_config_prefix", "{private}/npm-global") },
        ],
        installs: &["npm-global/bin"],
        second: None,
        layers: &[
            // Content is named by its hash; lines are added to the index in place.
            UserLayer {
                witness: Some("_cacache/tmp"),
                ..layer(npm("_cacache/content-v2"), "npm/_cacache/content-v2", FileLinks)
            },
            UserLayer {
                witness: Some("_cacache/tmp"),
                ..layer(npm("_cacache/index-v5"), "npm/_cacache/index-v5", Copies)
            },
            // The machine's own configuration, which is looked for below the prefix.
            layer(
                UserPath { variable: "", usual: Installation("node"), below: "etc/npmrc" },
                "npm-global/etc/npmrc",
                FileLink,
            ),
        ],
    },
    Manager {
        name: "pnpm",
        programs: &["pnpm", "pnpx"],
        project_files: &["pnpm-lock.yaml", "pnpm-workspace.yaml"],
        // Version 10 knows the first variable alone, and takes it for projects in the top directory of a workspace.
        variables: &[set("PNPM_HOME", "{private}/pnpm"), set("pnpm_config_store_dir", "{private}/pnpm/store")],
        installs: &["pnpm", "pnpm/bin"],
        second: None,
        layers: &[
            layer(pnpm("store/v10/files"), "pnpm/store/v10/files", FileLinks),
            layer(pnpm("store/v10/index"), "pnpm/store/v10/index", FileLinks),
            layer(pnpm("store/v11/files"), "pnpm/store/v11/files", FileLinks),
            layer(pnpm("store/v11/index.db"), "pnpm/store/v11/index.db", FileCopy),
            layer(cached("pnpm"), "cache/pnpm", Copies),
        ],
    },
    Manager {
        name: "yarn",
        programs: &["yarn", "yarnpkg"],
        project_files: &["yarn.lock"],
        // The first yarn goes by XDG_CACHE_HOME. The second one has a folder for all projects; where a project keeps its cache
        // in the repository, that stays so, as it would not with YARN_CACHE_FOLDER.
        variables: &[set("YARN_GLOBAL_FOLDER", "{private}/yarn")],
        installs: &[],
        second: None,
        layers: &[
            layer(
                UserPath { usual: HomeUnlessRoot(".cache", "/usr/local/share/.cache"), ..cached("yarn/v6") },
                "cache/yarn/v6",
                EntryLinks(1),
            ),
            layer(user("YARN_GLOBAL_FOLDER", ".yarn/berry", "cache"), "yarn/cache", EntryLinks(1)),
        ],
    },
    Manager {
        name: "pip",
        programs: &["pip", "pip3", "pipx", "poetry", "tox"],
        project_files: &["requirements.txt", "setup.py"],
        variables: &[set("PYTHONUSERBASE", "{private}/python")],
        installs: &["python/bin"],
        second: None,
        layers: &[
            layer(cached("pip/http-v2"), "cache/pip/http-v2", FileLinks),
            layer(cached("pip/wheels"), "cache/pip/wheels", FileLinks),
            // What the user has installed with `--user`.
            layer(user("PYTHONUSERBASE", ".local", "lib"), "python/lib", ModulePaths),
        ],
    },
    Manager {
        name: "uv",
        programs: &["uv", "uvx"],
        project_files: &["uv.lock"],
        // It would try to make hard links first and say that it can't.
        variables: &[
            set("UV_LINK_MODE", "copy"),
            set("UV_TOOL_DIR", "{private}/uv/tools"),
            set("UV_TOOL_BIN_DIR", "{private}/uv/bin"),
        ],
        installs: &["uv/bin"],
        second: None,
        layers: &[
            // Files are replaced, never written to. Unpacked wheels can't be links: it refuses to copy from one to a directory.
            UserLayer { witness: Some("uv/archive-v0"), ..layer(cached("uv"), "cache/uv", FileLinks) },
        ],
    },
    Manager {
        name: "go",
        programs: &["go", "gofmt", "gopls"],
        project_files: &["go.mod", "go.work"],
        variables: &[
            set("GOPATH", "{private}/go"),
            // Otherwise nobody can remove what it downloaded.
            set("GOFLAGS", "-modcacherw"),
            set("GOPROXY", "file://{user},https://proxy.golang.org,direct"),
        ],
        installs: &["go/bin"],
        second: Some(user("GOPATH", "go", "pkg/mod/cache/download")),
        layers: &[],
    },
    Manager {
        name: "maven",
        programs: &["mvn", "mvnw", "mvnd"],
        project_files: &["pom.xml"],
        variables: &[
            set("MAVEN_OPTS", "-Dmaven.repo.local={private}/maven"),
            set("MAVEN_OPTS", "-Dmaven.repo.local={private}/maven -Dmaven.repo.local.tail={user}"),
        ],
        installs: &[],
        second: Some(user("", ".m2", "repository")),
        layers: &[],
    },
    Manager {
        name: "gradle",
        programs: &["gradle", "gradlew"],
        project_files: &["build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"],
        variables: &[set("GRADLE_USER_HOME", "{private}/gradle"), set("GRADLE_RO_DEP_CACHE", "{user}")],
        installs: &[],
        second: Some(user("GRADLE_USER_HOME", ".gradle", "caches")),
        // Depth three is a distribution, beside files that say that it is complete.
        layers: &[layer(user("GRADLE_USER_HOME", ".gradle", "wrapper/dists"), "gradle/wrapper/dists", EntryLinks(3))],
    },
];

impl Manager {
    /// Whether a command line names one of its programs.
    pub(super) fn is_named_in(&self, command: &str) -> bool {
        names_any(command, self.programs)
    }
}

/// Whether one of these is a word of a command line, be it in a path.
pub(super) fn names_any(command: &str, programs: &[&str]) -> bool {
    let is_part = |character: char| character.is_ascii_alphanumeric() || "-_".contains(character);
    command.split(|character| !is_part(character)).any(|word| programs.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manager_is_known_by_its_programs_names() {
        for (command, expected) in [
            ("cargo add serde", "cargo"),
            ("cd a && CARGO_TERM_COLOR=never /root/.cargo/bin/cargo build", "cargo"),
            ("python3 -m pip install x; npm ci", "npm pip"),
            ("./gradlew build", "gradle"),
            ("pip3.11 install x", "pip"),
            ("cat cargo.log my-npm npm-cli.js", "cargo"),
            ("ls -l", ""),
        ] {
            let named: Vec<&str> =
                MANAGERS.iter().filter(|manager| manager.is_named_in(command)).map(|manager| manager.name).collect();
            assert_eq!(named.join(" "), expected, "{command}");
        }
    }

    #[test]
    fn no_two_layers_share_a_target_and_none_is_outside() {
        let targets: Vec<&str> = MANAGERS.iter().flat_map(|manager| manager.layers).map(|layer| layer.target).collect();
        let mut different = targets.clone();
        different.sort_unstable();
        different.dedup();
        assert_eq!(different.len(), targets.len());
        assert!(targets.iter().all(|target| !target.starts_with('/') && !target.contains("..")));
    }
}
