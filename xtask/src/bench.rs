//! `cargo xtask bench`: runs a benchmark by name. Each measures itself beside a named peer in the same run and prints the
//! ratio, since a bare time says more about the machine than about us. All are built with the profile that packages have.
//! `cargo xtask bench all` runs every one, and writes their figures to `docs/performance.md`.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use serde_json::json;

use crate::clients;
use crate::command_line::{CommandLine, target_directory};
use crate::console;
use crate::figures::{Figure, KeptFigures};
use crate::hooks;
use crate::setup;

#[derive(Args)]
pub(crate) struct BenchOptions {
    /// Which benchmark to run, or `all`; leave it out to list them
    name: Option<String>,
    /// Also write the figures to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Arguments for the benchmark itself
    #[arg(last = true)]
    arguments: Vec<String>,
}

/// The Cargo profile of everything that is measured: whole-program optimization, which takes long to build.
const PROFILE: &str = "dist";

/// A benchmark: bench targets of the crates, whose names are their own in the whole workspace.
struct Benchmark {
    name: &'static str,
    targets: &'static [&'static str],
    measures: &'static str,
    /// What it is measured against, in the same run.
    peer: &'static str,
    /// Installs the peers that a machine doesn't have anyway.
    install: Option<fn() -> Result<()>>,
}

/// All benchmarks. Add a line to have one more.
const BENCHES: &[Benchmark] = &[
    Benchmark {
        name: "path",
        targets: &["path", "hidden_paths"],
        measures: "a 4 KiB read through the whole path, where the time goes, and the search for hidden files among 50,000",
        peer: "a bare std::fs::read, and a plain walk with std::fs::read_dir",
        install: None,
    },
    Benchmark {
        name: "journal",
        targets: &["journal"],
        measures: "events recorded per second",
        peer: "a raw write of the same bytes",
        install: None,
    },
    Benchmark {
        name: "inbox",
        targets: &["inbox"],
        measures: "tasks taken per second with 100,000 finished ones, by one worker and by 32",
        peer: "the same inbox with none finished",
        install: None,
    },
    Benchmark {
        name: "policy",
        targets: &["policy"],
        measures: "decisions on a table of commands, with a thousand rules",
        peer: "bash -n, and codex execpolicy check where it is installed",
        install: None,
    },
    Benchmark {
        name: "files",
        targets: &["grep", "read", "change"],
        measures: "searching, reading and changing files through the gate",
        peer: "rg, fd, sed, tail and git apply",
        install: None,
    },
    Benchmark {
        name: "search",
        targets: &["search"],
        measures: "how well commits, doc comments and names find their files, indexing, refreshing and asking",
        peer: "counting words, the lines that rg counts, SQLite's FTS5, and semble without weights",
        install: Some(install_semble),
    },
    Benchmark {
        name: "agent",
        targets: &["agent", "tree"],
        measures: "what a turn costs beside its calls, memory over a thousand turns, trees of 10,000 to 1,000,000 events",
        peer: "the same calls made one by one through the gate, and reading the same events",
        install: None,
    },
    Benchmark {
        name: "dialects",
        targets: &["dialects"],
        measures: "a 4 KiB read under clients' names for it, and how many tokens the definitions take",
        peer: "the native read, and the definitions that the real clients send",
        install: None,
    },
    Benchmark {
        name: "lsp",
        targets: &["lsp"],
        measures: "what the gate adds to a request of a language server, bytes for a model, and memory of the servers",
        peer: "a bare client of the same servers, and grep with read",
        install: Some(setup::install_language_servers),
    },
    Benchmark {
        name: "sandbox",
        targets: &["spawn"],
        measures: "starting a confined command, prepared, from nothing and on a layer over 50,000 files, and opening files inside",
        peer: "a plain spawn, bwrap, and opening outside",
        install: None,
    },
    Benchmark {
        name: "start",
        targets: &["start"],
        measures: "the program from its start to its end, a confined command as a process, and a list of 10,000 runs",
        peer: "/bin/true and plain bash",
        install: None,
    },
    Benchmark {
        name: "growth",
        targets: &["growth"],
        measures: "calls after a hundred to 100,000 others, after ten thousand runs, beside a thousand rules and a hundred processes",
        peer: "the same calls with a tenth, a hundredth and a thousandth of it",
        install: None,
    },
    Benchmark {
        name: "workspaces",
        targets: &["workspaces"],
        measures: "commands in workspaces of 500, 5,000 and 50,000 files: search, one change, background, removing all",
        peer: "plain bash, and the same in an empty workspace",
        install: None,
    },
    Benchmark {
        name: "writes",
        targets: &["writes"],
        measures: "200 writes at once over HTTP, synced, recorded and undoable",
        peer: "the same files written and synced one after the other",
        install: None,
    },
    Benchmark {
        name: "gateway",
        targets: &["gateway"],
        measures: "a call of another MCP server's tool through the gate, and the list of 220 tools of fifteen servers",
        peer: "direct calls of server-filesystem, and a fastmcp proxy",
        install: Some(setup::install_mcp_proxy),
    },
    Benchmark {
        name: "mcp",
        targets: &["mcp"],
        measures: "starting the MCP server, reading 4 KiB, and memory after 10,000 calls",
        peer: "rust-mcp-filesystem and server-filesystem",
        install: Some(clients::install_peers),
    },
];

/// Puts semble into an environment of its own beneath the build directory, where the benchmark looks for it.
fn install_semble() -> Result<()> {
    let directory = target_directory().join("python/semble-0.7.0");
    if !directory.join("bin/semble").is_file() {
        CommandLine::new("python3 -m venv").words([directory.display().to_string()]).run()?;
        let pip = directory.join("bin/pip").display().to_string();
        CommandLine::new(&pip).words(["install", "--quiet", "semble==0.7.0"]).run()?;
    }
    Ok(())
}

pub(crate) fn run(options: &BenchOptions) -> Result<()> {
    let Some(name) = &options.name else {
        print!("{}", list());
        return Ok(());
    };
    let kept = KeptFigures::open();
    let measured = if name == "all" { measure_all(&kept)? } else { measure(name, &options.arguments, &kept)? };
    if name == "all" {
        kept.replace(&measured)?;
    }
    if let Some(file) = &options.json {
        let figures: Vec<_> = measured.iter().map(Figure::to_json).collect();
        std::fs::write(file, format!("{:#}\n", json!(figures))).context("the figures can't be written")?;
    }
    Ok(())
}

/// Runs every benchmark. One that fails costs its own figures; what it said is on the screen.
fn measure_all(kept: &KeptFigures) -> Result<Vec<Figure>> {
    let mut measured = Vec::new();
    for name in BENCHES.iter().map(|bench| bench.name).chain(["console", "hooks"]) {
        match measure(name, &[], kept) {
            Ok(figures) => measured.extend(figures),
            Err(error) => eprintln!("{name}: {error:#}"),
        }
    }
    Ok(measured)
}

/// Runs one benchmark, and returns the figures that it printed.
fn measure(name: &str, arguments: &[String], kept: &KeptFigures) -> Result<Vec<Figure>> {
    let mut measured = Vec::new();
    let mut note = |line: String| match Figure::read(&line) {
        Some(figure) => {
            let before = kept.before(&figure).map(|before| format!(", before: {before}")).unwrap_or_default();
            measured.push(figure);
            format!("{line}{before}")
        }
        None => line,
    };
    if name == "console" {
        console::bench(&mut note)?;
        return Ok(measured);
    }
    if name == "hooks" {
        hooks::bench(arguments, &mut note)?;
        return Ok(measured);
    }
    let bench = find(name)?;
    println!("{}: {}, beside {}", bench.name, bench.measures, bench.peer);
    if let Some(install) = bench.install {
        install()?;
    }
    println!(
        "built with the `{PROFILE}` profile, as packages are; the first time this takes about five minutes on two cores"
    );
    bench.targets.iter().try_for_each(|target| command(target, arguments).run_by_line(&mut note))?;
    Ok(measured)
}

fn find(name: &str) -> Result<&'static Benchmark> {
    let found = BENCHES.iter().find(|bench| bench.name == name);
    found.with_context(|| format!("there is no benchmark `{name}`; there are:\n{}", list()))
}

fn list() -> String {
    let line = |bench: &Benchmark| format!("{:<10}{}, beside {}\n", bench.name, bench.measures, bench.peer);
    let console = "console   first paint, 1,000 events, memory of the page and CPU for 50 pages, in a real browser\n";
    let hooks = "hooks     a call in Claude Code with our hooks, beside none, `/bin/true` and cc-safety-net; `with CLIENT` beside plain\n";
    BENCHES.iter().map(line).chain([console.to_owned(), hooks.to_owned()]).collect()
}

/// With `--workspace`, all benchmarks share the same third-party crates, built once.
fn command(target: &str, arguments: &[String]) -> CommandLine {
    let line = format!("cargo bench --locked --profile {PROFILE} --workspace --bench {target} --");
    CommandLine::new(&line).words(arguments)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_name_is_listed_once() {
        let names: BTreeSet<_> = BENCHES.iter().map(|bench| bench.name).collect();
        assert_eq!(names.len(), BENCHES.len());
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_list() {
        let answer = find("pth").err().unwrap().to_string();
        assert!(answer.contains("no benchmark `pth`") && answer.contains("path "), "{answer}");
    }

    #[test]
    fn each_target_is_named_once() {
        let targets: Vec<_> = BENCHES.iter().flat_map(|bench| bench.targets).collect();
        assert_eq!(targets.iter().collect::<BTreeSet<_>>().len(), targets.len());
    }

    #[test]
    fn arguments_go_to_the_benchmark() {
        let line = command("path", &["--calls".into(), "10".into()]).to_string();
        assert_eq!(line, "cargo bench --locked --profile dist --workspace --bench path -- --calls 10");
    }
}
