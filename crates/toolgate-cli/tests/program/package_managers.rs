//! Real installs by real package managers, from the registries of this machine: what a command downloads lasts for the
//! next one, which needs no network; what the user has already isn't downloaded; and the user's own cache stays as it was.

use std::collections::BTreeMap;
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::json;
use toolgate_testkit::skip;

use crate::world::{PROGRAM, Said, World};

/// Variables of this machine by which clients trust its registries.
const CERTIFICATES: &[&str] = &["SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "PIP_CERT", "REQUESTS_CA_BUNDLE"];

const PACKAGE: &str =
    r#"{ "name": "small", "version": "1.0.0", "license": "MIT", "dependencies": { "is-odd": "3.0.1" } }"#;
const CRATE: &str = "[package]\nname = \"small\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n";

/// A world with a home of its own, in which package managers run outside and inside of the sandbox.
struct Installs {
    world: World,
    tools: PathBuf,
    /// Where programs keep their caches; none for where each of them does by itself. As root, the first yarn has its own in a
    /// directory of the system, which other tests fill.
    cache_home: Option<PathBuf>,
}

impl Installs {
    /// None, with the reason recorded, if there is no registry here or the managers aren't installed.
    fn new(host: &str) -> Option<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/package-managers");
        let Ok(tools) = root.canonicalize() else {
            skip("no-package-managers", "`cargo xtask setup` installs pnpm, yarn and uv for the tests");
            return None;
        };
        let addresses = (host, 443).to_socket_addrs().into_iter().flatten();
        let is_there = addresses.into_iter().any(|to| TcpStream::connect_timeout(&to, Duration::from_secs(20)).is_ok());
        if !is_there {
            skip("no-registry", "real installs need a package registry");
            return None;
        }
        let world = World::new();
        let cache_home = Some(world.home().join(".cache"));
        let installs = Self { world, tools, cache_home };
        installs.allow_registries(false);
        Some(installs)
    }

    /// Says whether commands may reach registries.
    fn allow_registries(&self, allowed: bool) {
        let network = if allowed { "network.allow = ['@registries']\n" } else { "" };
        let tools = self.tools.display();
        self.world.put(&self.world.user_config(), format!("{network}[[roots]]\npath = '{tools}'\n"));
    }

    /// A program with the toolchains of this machine and the home of this world.
    fn command(&self, program: &str) -> Command {
        let mut command = self.world.command(program);
        let sysroot = Command::new("rustc").args(["--print", "sysroot"]).output().unwrap();
        let sysroot = String::from_utf8(sysroot.stdout).unwrap();
        let path = format!("{}/bin:/usr/local/bin:/usr/bin:/bin", sysroot.trim());
        command.env("PATH", path).env("RUSTUP_HOME", sysroot.trim()).env("TOOLS", &self.tools);
        if let Some(directory) = &self.cache_home {
            command.env("XDG_CACHE_HOME", directory);
        }
        for name in CERTIFICATES {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        command
    }

    /// The line, with the directory of the managers filled in: commands don't get variables of ours.
    fn filled_in(&self, line: &str) -> String {
        line.replace("$TOOLS", self.tools.to_str().unwrap())
    }

    /// Runs a line as the user would, outside of the sandbox, in a directory of its own.
    fn outside(&self, line: &str) -> String {
        let elsewhere = self.world.home().join("elsewhere");
        std::fs::create_dir_all(&elsewhere).unwrap();
        let mut command = self.command("bash");
        let said = Said::from(command.current_dir(elsewhere).args(["-c", &self.filled_in(line)]).output().unwrap());
        assert_eq!(said.code, 0, "{line}: {said:?}");
        said.out
    }

    /// Runs a line in the sandbox, where it may reach the registries.
    fn online(&self, line: &str) -> String {
        self.allow_registries(true);
        let args = json!({ "command": self.filled_in(line), "timeout_seconds": 280 }).to_string();
        let mut command = self.command(PROGRAM);
        let reply = Said::from(command.args(["--json", "call", "--approve", "shell", &args]).output().unwrap()).json();
        assert_eq!(reply["payload"]["exit_code"], json!(0), "{line}: {reply}");
        self.allow_registries(false);
        format!("{}{}", reply["payload"]["stdout"].as_str().unwrap(), reply["payload"]["stderr"].as_str().unwrap())
    }

    /// Runs a line in the sandbox, where it can reach nobody.
    fn offline(&self, line: &str) -> String {
        let mut command = self.command(PROGRAM);
        let line = self.filled_in(line);
        let said =
            Said::from(command.args(["sandbox", "--no-quarantine", "--", "bash", "-c", &line]).output().unwrap());
        assert_eq!(said.code, 0, "{line}: {said:?}");
        said.out + &said.err
    }

    fn remove(&self, name: &str) {
        std::fs::remove_dir_all(self.world.workspace().join(name)).unwrap();
    }

    /// Every file of the user's below a path of the home, with size and time of change.
    fn users(&self, path: &str) -> BTreeMap<PathBuf, (u64, i64, i64)> {
        let mut found = BTreeMap::new();
        let mut left = vec![self.world.home().join(path)];
        while let Some(directory) = left.pop() {
            for entry in std::fs::read_dir(directory).unwrap().map(Result::unwrap) {
                let status = entry.path().symlink_metadata().unwrap();
                if status.is_dir() {
                    left.push(entry.path());
                }
                found.insert(entry.path(), (status.len(), status.ctime(), status.ctime_nsec()));
            }
        }
        found
    }

    /// What the user has is enough for `line` without a network, and isn't changed by it, nor by the next install.
    fn uses_what_the_user_has(&self, cache: &str, line: &str, next: &str) {
        let before = self.users(cache);
        assert!(!before.is_empty(), "{cache}");
        self.offline(line);
        self.online(next);
        assert_eq!(self.users(cache), before, "{cache} was changed");
    }
}

#[test]
fn cargo_adds_crates_builds_again_offline_and_takes_what_the_user_has() {
    let Some(installs) = Installs::new("index.crates.io") else { return };
    let source = "fn main() { println!(\"{}\", itoa::Buffer::new().format(42)) }\n";
    for name in ["home/elsewhere", "workspace"] {
        let directory = installs.world.workspace().join("..").join(name);
        installs.world.put(&directory.join("Cargo.toml"), CRATE);
        installs.world.put(&directory.join("src/main.rs"), source);
    }
    installs.outside("cargo add -q itoa@=1.0.11 && cargo fetch -q");
    let build = "cargo add -q --offline itoa@=1.0.11 && cargo build --offline && target/debug/small";
    installs.uses_what_the_user_has(".cargo/registry", build, "cargo add cfg-if@=1.0.0 && cargo build");
    installs.remove("target");
    let built = installs.offline("cargo build --offline --locked && target/debug/small");
    assert!(built.contains("Compiling cfg-if v1.0.0") && built.contains("42"), "{built}");
    installs.online("cargo install -q --root \"$CARGO_HOME\" --path . && small");
    assert_eq!(installs.offline("small"), "42\n", "an installed program lasts");
}

#[test]
fn npm_installs_again_offline_and_takes_what_the_user_has() {
    let Some(installs) = Installs::new("registry.npmjs.org") else { return };
    installs.world.put(&installs.world.home().join("elsewhere/package.json"), PACKAGE);
    installs.outside("npm install --no-audit --no-fund");
    std::fs::copy(
        installs.world.home().join("elsewhere/package-lock.json"),
        installs.world.workspace().join("package-lock.json"),
    )
    .unwrap();
    installs.world.put(&installs.world.workspace().join("package.json"), PACKAGE);
    let next = "npm install --no-audit --no-fund ms@2.1.3";
    installs.uses_what_the_user_has(".npm/_cacache", "npm ci --offline --no-audit && ls node_modules/is-odd", next);
    installs.remove("node_modules");
    installs.offline("npm ci --offline --no-audit && ls node_modules/is-odd node_modules/ms");
    let told = installs.offline("npm --version; npm config get update-notifier");
    assert!(told.contains("false"), "it looks for no newer version of itself: {told}");
}

#[test]
fn npm_installs_programs_for_all_projects_that_last_and_reads_the_machines_configuration() {
    let Some(installs) = Installs::new("registry.npmjs.org") else { return };
    let machine = installs.outside("npm config get globalconfig");
    installs.online("npm install --global --no-audit --no-fund semver@7.7.1");
    assert_eq!(installs.offline("semver 1.2.3"), "1.2.3\n", "an installed program lasts");
    let seen = installs.offline("npm ls --global --depth 0; readlink -f \"$(npm config get globalconfig)\"");
    assert!(seen.contains("semver@7.7.1"), "{seen}");
    let path = std::path::Path::new(machine.trim());
    assert!(!path.exists() || seen.contains(path.canonicalize().unwrap().to_str().unwrap()), "{machine}: {seen}");
    // nvm gives up where a prefix is set.
    assert_eq!(installs.offline("echo \"[$npm_config_prefix]\" # nvm"), "[]\n");
    assert!(installs.outside("npm ls --global --depth 0 || true").lines().all(|line| !line.contains("semver")));
}

/// The lines with which one manager installs.
struct Lines {
    outside: &'static str,
    lock: &'static str,
    offline: &'static str,
    next: &'static str,
    cache: &'static str,
}

fn installs_javascript(lines: &Lines) {
    let Some(installs) = Installs::new("registry.npmjs.org") else { return };
    let yarn = "nodeLinker: node-modules\nenableTelemetry: false\n";
    for directory in [installs.world.home().join("elsewhere"), installs.world.workspace()] {
        installs.world.put(&directory.join("package.json"), PACKAGE);
        installs.world.put(&directory.join(".yarnrc.yml"), yarn);
    }
    installs.outside(lines.outside);
    let lock = installs.world.home().join("elsewhere").join(lines.lock);
    std::fs::copy(lock, installs.world.workspace().join(lines.lock)).unwrap();
    installs.uses_what_the_user_has(lines.cache, lines.offline, lines.next);
    installs.remove("node_modules");
    installs.offline(&format!("{} && ls node_modules/is-odd node_modules/ms", lines.offline));
    let others =
        ["node_modules", ".pnpm-store", ".yarn/cache"].map(|name| installs.world.workspace().join(name).exists());
    assert_eq!(others, [true, false, false], "the cache isn't in the workspace");
}

#[test]
fn pnpm_installs_again_offline_and_takes_what_the_user_has() {
    installs_javascript(&Lines {
        outside: "node $TOOLS/node_modules/pnpm/bin/pnpm.cjs install --store-dir $HOME/.local/share/pnpm/store",
        lock: "pnpm-lock.yaml",
        offline: "node $TOOLS/node_modules/pnpm/bin/pnpm.cjs install --offline --frozen-lockfile",
        next: "node $TOOLS/node_modules/pnpm/bin/pnpm.cjs add ms@2.1.3",
        cache: ".local/share/pnpm/store",
    });
}

#[test]
fn the_first_yarn_installs_again_offline_and_takes_what_the_user_has() {
    installs_javascript(&Lines {
        outside: "node $TOOLS/node_modules/yarn/bin/yarn.js install",
        lock: "yarn.lock",
        offline: "node $TOOLS/node_modules/yarn/bin/yarn.js install --offline --frozen-lockfile",
        next: "node $TOOLS/node_modules/yarn/bin/yarn.js add ms@2.1.3",
        cache: ".cache/yarn",
    });
}

#[test]
fn the_first_yarn_takes_what_root_has() {
    let Some(installs) = Installs::new("registry.npmjs.org") else { return };
    let installs = Installs { cache_home: None, ..installs };
    if std::fs::metadata("/proc/self").unwrap().uid() != 0 {
        return skip("not-root", "only root has yarn's cache in a directory of the system");
    }
    for directory in [installs.world.home().join("elsewhere"), installs.world.workspace()] {
        installs.world.put(&directory.join("package.json"), PACKAGE);
    }
    installs.outside("node $TOOLS/node_modules/yarn/bin/yarn.js install");
    let lock = installs.world.home().join("elsewhere/yarn.lock");
    std::fs::copy(lock, installs.world.workspace().join("yarn.lock")).unwrap();
    installs.offline(
        "node $TOOLS/node_modules/yarn/bin/yarn.js install --offline --frozen-lockfile && ls node_modules/is-odd",
    );
}

#[test]
fn the_second_yarn_installs_again_offline_and_takes_what_the_user_has() {
    installs_javascript(&Lines {
        outside: "touch yarn.lock; node $TOOLS/node_modules/@yarnpkg/cli-dist/bin/yarn.js install",
        lock: "yarn.lock",
        offline: "YARN_ENABLE_NETWORK=0 node $TOOLS/node_modules/@yarnpkg/cli-dist/bin/yarn.js install",
        next: "node $TOOLS/node_modules/@yarnpkg/cli-dist/bin/yarn.js add ms@2.1.3",
        cache: ".yarn/berry",
    });
}

#[test]
fn uv_installs_again_offline_and_takes_what_the_user_has() {
    let Some(installs) = Installs::new("pypi.org") else { return };
    let uv = "$TOOLS/python/bin/uv";
    installs.outside(&format!("{uv} venv -q v && {uv} pip install -q --python v/bin/python six==1.17.0"));
    let offline = format!(
        "{uv} venv -q v && {uv} pip install -q --offline --python v/bin/python six==1.17.0 && v/bin/python -c 'import six'"
    );
    let next = format!("{uv} pip install -q --python v/bin/python idna==3.10 && {uv} tool install cowsay==6.1");
    installs.uses_what_the_user_has(".cache/uv", &offline, &next);
    installs.remove("v");
    let both = "six==1.17.0 idna==3.10 && v/bin/python -c 'import idna; print(idna.__version__)'";
    let said =
        installs.offline(&format!("{uv} venv -q v && {uv} pip install -q --offline --python v/bin/python {both}"));
    assert!(said.contains("3.10"), "{said}");
    assert!(installs.offline("cowsay -t here").contains("here"), "an installed program lasts");
}

#[test]
fn pip_keeps_what_it_built_and_what_it_installed_for_the_user() {
    let Some(installs) = Installs::new("pypi.org") else { return };
    let made = installs.command("/usr/bin/python3").args(["-m", "venv", "v"]).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    let install = "v/bin/pip install --use-pep517 docopt==0.6.2";
    let first = installs.online(install);
    assert!(first.contains("Building wheel"), "it comes as source: {first}");
    // It asks the index in any case, so it is never offline.
    let second = installs.online(&format!("v/bin/pip uninstall -q -y docopt && {install}"));
    assert!(!second.contains("Building wheel") && second.contains("Using cached"), "{second}");
    installs.online("v/bin/pip download -q -d \"$XDG_CACHE_HOME/mine\" idna==3.10");
    installs.offline(
        "v/bin/pip install -q --no-index --find-links \"$XDG_CACHE_HOME/mine\" idna && v/bin/python -c 'import idna'",
    );
}

#[test]
fn pip_installs_for_the_user_beside_what_the_user_has() {
    let Some(installs) = Installs::new("pypi.org") else { return };
    // Not the first python of the path: an environment of its own has no packages of the user's.
    let pip = "/usr/bin/python3 -m pip install --user --break-system-packages -q --no-warn-script-location";
    installs.outside(&format!("{pip} six==1.16.0 idna==3.7"));
    installs.online(&format!("{pip} idna==3.10 cowsay==6.1"));
    let seen = installs
        .offline("/usr/bin/python3 -c 'import six, idna; print(six.__version__, idna.__version__)'; cowsay -t here");
    assert!(seen.starts_with("1.16.0 3.10\n") && seen.contains("here"), "the user's and the workspace's: {seen}");
    let of_user = installs
        .outside("/usr/bin/python3 -c 'import idna; print(idna.__version__)'; ls ~/.local/bin 2>/dev/null || true");
    assert!(of_user.starts_with("3.7\n") && !of_user.contains("cowsay"), "the user's own stay as they were: {of_user}");
}

#[test]
fn caches_are_listed_and_cleared_and_can_be_switched_off() {
    let world = World::new();
    let keep = json!({ "command": "mkdir -p \"$XDG_CACHE_HOME/mine\" && echo kept > \"$XDG_CACHE_HOME/mine/file\"" });
    let look = json!({ "command": "cat \"$XDG_CACHE_HOME/mine/file\"" });
    assert_eq!(world.call("shell", keep.clone())["payload"]["exit_code"], json!(0));
    assert_eq!(world.call("shell", look.clone())["payload"]["stdout"], json!("kept\n"), "it lasts");
    let listed = world.run(&["--json", "caches", "list"]).json();
    assert_eq!(listed["workspace"], json!(world.workspace().canonicalize().unwrap()), "{listed}");
    assert!(listed["caches"]["mine"].as_u64().unwrap() > 0, "{listed}");
    let elsewhere = World::new();
    let other = elsewhere.call("shell", look.clone());
    assert_ne!(other["payload"]["exit_code"], json!(0), "another workspace has its own: {other}");
    assert_eq!(world.run(&["caches", "clear"]).code, 0);
    assert_eq!(world.run(&["--json", "caches", "list"]).out, "");
    assert_ne!(world.call("shell", look)["payload"]["exit_code"], json!(0));
    world.put(&world.user_config(), "caches.packages = 'off'\n");
    let off = world.call("shell", json!({ "command": "echo \"[$XDG_CACHE_HOME]\"" }));
    assert_eq!(off["payload"]["stdout"], json!("[]\n"), "{off}");
}

#[test]
fn a_command_that_only_reads_cannot_change_the_caches() {
    let world = World::new().file("read.sh", "echo x > \"$XDG_CACHE_HOME/file\"\n");
    let args = json!({ "command": "sh read.sh; ls \"$XDG_CACHE_HOME\"" }).to_string();
    let said = world.run(&["--json", "--preset", "read-only", "call", "shell", &args]).json();
    assert_ne!(said["payload"]["exit_code"], json!(0), "{said}");
    let ours =
        world.call("shell", json!({ "command": "mkdir -p $XDG_CACHE_HOME && sh read.sh && cat $XDG_CACHE_HOME/file" }));
    assert_eq!(ours["payload"]["stdout"], json!("x\n"), "{ours}");
}
