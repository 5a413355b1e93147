//! The project's chores, run as `cargo xtask CHORE`: one command each, the same for a person and for CI.
//!
//! Each chore is a file whose top holds a table that can be read as documentation: the steps of `test`, the packages of
//! `setup`, the benchmarks of `bench`.

// Chores start cargo and apt-get: that is their whole work, and no tool call ever comes near them.
#![allow(clippy::disallowed_methods)]

mod bench;
mod chaos;
mod clients;
mod command_line;
mod console;
mod dialects;
mod differential;
#[cfg(test)]
mod documents;
mod figures;
mod fuzz;
mod hooks;
mod house;
mod language_servers;
mod oracle;
mod schemathesis;
mod setup;
mod skip;
mod step;
mod test;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Project chores
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Install what the tests need and run every check, stopping at the first that fails
    Test(test::TestOptions),
    /// Install the programs that the tests use
    Setup,
    /// Try a million random and mutated commands on the reader of commands
    Fuzz(fuzz::FuzzOptions),
    /// Try random sequences of calls, commands, undos, kills and other people's work on a model of the workspace
    Chaos(chaos::ChaosOptions),
    /// Run commands that are judged plain reading in throw-away roots, where nothing may change
    Oracle(oracle::OracleOptions),
    /// Run ordinary commands by plain bash and by `shell`, and compare what they say and leave
    Differential(differential::DifferentialOptions),
    /// Break and fix files many times with each real language server, without one stale answer
    Lsp(language_servers::LspOptions),
    /// Record what the models of real clients are shown
    Dialects(dialects::DialectsOptions),
    /// Try real clients with our hooks
    Hooks(hooks::HooksOptions),
    /// Run a benchmark; without a name, list them
    Bench(bench::BenchOptions),
    /// Measure how easy the code is to find one's way in: crates, type names, functions, files
    House(house::HouseOptions),
}

fn main() -> ExitCode {
    let result = match Arguments::parse().chore {
        Chore::Test(options) => test::run(&options),
        Chore::Setup => setup::install(),
        Chore::Fuzz(options) => fuzz::run(&options),
        Chore::Chaos(options) => chaos::run(&options),
        Chore::Oracle(options) => oracle::run(&options),
        Chore::Differential(options) => differential::run(&options),
        Chore::Lsp(options) => language_servers::run(&options),
        Chore::Dialects(options) => dialects::run(&options),
        Chore::Hooks(options) => hooks::run(&options),
        Chore::Bench(options) => bench::run(&options),
        Chore::House(options) => house::run(&options),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed() {
        super::Arguments::command().debug_assert();
    }
}
