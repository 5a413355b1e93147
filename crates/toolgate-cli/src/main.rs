//! The program `toolgate`: parses the command line, opens a workspace, and talks to the person.

mod attach;
mod chat;
mod commands;
mod dialect_settings;
mod exit;
mod output;
mod policy_flags;
mod signals;
mod terminal;
mod watcher;
mod work;
mod workspace;

use crate::commands::CommandLine;

fn main() -> std::process::ExitCode {
    // Commands are confined by a copy of this program; if this process is that copy, it doesn't return from here.
    toolgate_sandbox::process::zygote_main_if_asked();
    toolgate_sandbox::process::share_arenas();
    let program = CommandLine::from_arguments();
    program.color.write_global();
    let as_json = program.is_json();
    match program.run() {
        Ok(code) => code.into(),
        Err(error) => {
            let exit = exit::Exit::of(&error);
            match as_json {
                true => terminal::print_error_as_json(&error, exit),
                false => terminal::print_error(&error),
            }
            exit.into()
        }
    }
}
