//! `cargo xtask test`: everything that must hold before a change is taken, cheapest first, so that a slip in the format
//! is known in seconds. CI runs just this.

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Args;
use clap::builder::PossibleValuesParser;

use crate::clients;
use crate::command_line::CommandLine;
use crate::schemathesis;
use crate::setup;
use crate::step::{self, StepOutcome, TestStep};

#[derive(Args)]
pub(crate) struct TestOptions {
    /// Also install the tools that take long to build, so that no step is skipped for want of one
    #[arg(long)]
    full: bool,
    /// Run this step alone
    #[arg(long, value_name = "STEP", value_parser = step_names())]
    only: Option<String>,
}

/// Every step, in order. `full` allows tools that take long to build.
fn steps(full: bool) -> Vec<TestStep> {
    vec![
        TestStep::new("setup", "install what the tests use", || {
            setup::install_packages().map(|()| StepOutcome::Passed)
        }),
        TestStep::command("fmt", "the code is formatted", CommandLine::new("cargo fmt --all --check")),
        TestStep::command(
            "clippy",
            "no warnings from compiler and linter",
            CommandLine::new("cargo clippy --workspace --all-targets --all-features --locked -- -D warnings"),
        ),
        TestStep::new("nextest", "unit and integration tests", || run_tests("--workspace", "--tests")),
        TestStep::new("http", "no request breaks the HTTP server", schemathesis::run),
        TestStep::new("clients", "real clients of MCP, and the public conformance suite", clients::run),
        TestStep::command(
            "doctest",
            "the examples in the documentation",
            CommandLine::new("cargo test --doc --workspace --locked"),
        ),
        TestStep::command(
            "doc",
            "the documentation has no broken links",
            CommandLine::new("cargo doc --workspace --all-features --no-deps --locked --document-private-items")
                .environment("RUSTDOCFLAGS", "-Dwarnings"),
        ),
        TestStep::new("deny", "licences, versions and origins of dependencies", move || check_dependencies(full)),
    ]
}

pub(crate) fn run(options: &TestOptions) -> Result<()> {
    let mut steps = steps(options.full);
    if let Some(only) = &options.only {
        steps.retain(|step| step.name == only);
    }
    let summary = step::run_in_order(&steps);
    println!("\n{summary}");
    if let Some((name, error)) = summary.failure {
        bail!("{error:#}\nrepeat this step alone: cargo xtask test --only {name}");
    }
    Ok(())
}

fn step_names() -> PossibleValuesParser {
    steps(false).iter().map(|step| step.name).collect::<Vec<_>>().into()
}

/// nextest gives each test a process of its own and ends those that hang; plain `cargo test` does for want of it, and
/// has to be told when to leave out the examples in the documentation, which are a step of their own.
fn run_tests(selection: &str, without_doctests: &str) -> Result<StepOutcome> {
    if let Err(error) = setup::install_cargo_tool("nextest") {
        CommandLine::new(&format!("cargo test --locked --no-fail-fast {selection} {without_doctests}")).run()?;
        return Ok(StepOutcome::PassedWith(format!(
            "by `cargo test`, as cargo-nextest could not be installed: {error:#}"
        )));
    }
    CommandLine::new(&format!("cargo nextest run --locked {selection}")).run()?;
    Ok(StepOutcome::Passed)
}

/// Everything that can be checked without the network, apart from the crates themselves.
fn check_dependencies(full: bool) -> Result<StepOutcome> {
    if full {
        setup::install_cargo_tool("deny")?;
    } else if !setup::has_cargo_tool("deny") {
        return Ok(StepOutcome::Skipped(
            "cargo-deny is not installed; `cargo xtask test --full --only deny` installs it (some minutes)".into(),
        ));
    }
    // The checks read every crate of the lock file, also those that only other systems compile.
    CommandLine::new("cargo fetch --locked").run()?;
    CommandLine::new("cargo deny --offline check --hide-inclusion-graph licenses bans sources").run()?;
    if !has_advisory_database() {
        return Ok(StepOutcome::PassedWith(
            "known vulnerabilities were not checked, as their database is not here; `cargo deny fetch` gets it".into(),
        ));
    }
    CommandLine::new("cargo deny --offline check advisories").run()?;
    Ok(StepOutcome::Passed)
}

/// Whether cargo-deny has fetched the database before. It lies in a repository, not in the registry, and a failed try
/// to fetch it leaves other files behind: only the directory that holds the advisories counts.
fn has_advisory_database() -> bool {
    let cargo_home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let cargo_home = cargo_home.or_else(|| std::env::home_dir().map(|home| home.join(".cargo")));
    let databases = cargo_home.and_then(|directory| directory.join("advisory-dbs").read_dir().ok());
    databases.into_iter().flatten().flatten().any(|database| database.path().join("crates").is_dir())
}
