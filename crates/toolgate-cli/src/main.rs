//! The program `toolgate`: reads the configuration, wires the crates together, and talks to the person.

mod attach;
mod commands;
mod config;
mod exit;
mod signals;
mod skill_directories;
mod stores;
mod terminal;
mod wiring;
mod work;

use crate::commands::CommandLine;

fn main() -> std::process::ExitCode {
    // Commands are confined by a copy of this program; if this process is that copy, it doesn't return from here.
    toolgate_sandbox::process::zygote_main_if_asked();
    toolgate_sandbox::process::share_arenas();
    let program = CommandLine::from_arguments();
    program.color.write_global();
    match program.run() {
        Ok(code) => code.into(),
        Err(error) => {
            terminal::print_error(&error);
            exit::Exit::of(&error).into()
        }
    }
}
