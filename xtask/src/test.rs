//! `cargo xtask test`: everything that must hold before a change is taken, cheapest first, so that a slip in the format
//! is known in seconds. CI runs just this.

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Args;
use clap::builder::PossibleValuesParser;

use crate::clients;
use crate::command_line::CommandLine;
use crate::console;
use crate::schemathesis;
use crate::setup;
use crate::skip::{self, SkippedTest};
use crate::step::{self, TestStep};

#[derive(Args)]
pub(crate) struct TestOptions {
    /// Run this step alone
    #[arg(long, value_name = "STEP", value_parser = step_names())]
    only: Option<String>,
}

/// Every step, in order.
fn steps() -> Vec<TestStep> {
    vec![
        TestStep::new("setup", "install what the tests use", || setup::install().map(|()| Vec::new())),
        TestStep::command("fmt", "the code is formatted", CommandLine::new("cargo fmt --all --check")),
        TestStep::command(
            "clippy",
            "no warnings from compiler and linter",
            CommandLine::new("cargo clippy --workspace --all-targets --all-features --locked -- -D warnings"),
        ),
        TestStep::new("nextest", "unit and integration tests", run_tests),
        TestStep::new("http", "no request breaks the HTTP server", schemathesis::run),
        TestStep::new("console", "the console in a real browser, with attacks on it", console::run),
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
        TestStep::new("deny", "licences, versions and origins of dependencies", check_dependencies),
    ]
}

pub(crate) fn run(options: &TestOptions) -> Result<()> {
    let mut steps = steps();
    if let Some(only) = &options.only {
        steps.retain(|step| step.name == only);
    }
    let summary = step::run_in_order(&steps);
    println!("\n{summary}");
    if let Some((name, error)) = summary.failure {
        bail!("{error:#}\nrepeat this step alone: cargo xtask test --only {name}");
    }
    skip::check(&summary.skips)
}

fn step_names() -> PossibleValuesParser {
    steps().iter().map(|step| step.name).collect::<Vec<_>>().into()
}

/// nextest gives each test a process of its own and ends those that hang. Tests that can't run here say so in a file.
fn run_tests() -> Result<Vec<SkippedTest>> {
    setup::install_cargo_tool(&setup::NEXTEST)?;
    let record = skip::fresh_record()?;
    CommandLine::new("cargo nextest run --locked --workspace")
        .environment(skip::SKIPS_FILE, &record.display().to_string())
        .run()?;
    skip::read_record(&record)
}

/// Everything that can be checked without the network, apart from the crates themselves.
fn check_dependencies() -> Result<Vec<SkippedTest>> {
    setup::install_cargo_tool(&setup::DENY)?;
    // The checks read every crate of the lock file, also those that only other systems compile.
    CommandLine::new("cargo fetch --locked").run()?;
    CommandLine::new("cargo deny --offline check --hide-inclusion-graph licenses bans sources").run()?;
    if !has_advisory_database() {
        let reason =
            "known vulnerabilities were not checked, as their database is not here; `cargo deny fetch` gets it";
        return Ok(vec![SkippedTest::new("no-advisory-database", "deny", reason)]);
    }
    CommandLine::new("cargo deny --offline check advisories").run()?;
    Ok(Vec::new())
}

/// Whether cargo-deny has fetched the database before. It lies in a repository, not in the registry, and a failed try
/// to fetch it leaves other files behind: only the directory that holds the advisories counts.
fn has_advisory_database() -> bool {
    let cargo_home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let cargo_home = cargo_home.or_else(|| std::env::home_dir().map(|home| home.join(".cargo")));
    let databases = cargo_home.and_then(|directory| directory.join("advisory-dbs").read_dir().ok());
    databases.into_iter().flatten().flatten().any(|database| database.path().join("crates").is_dir())
}
