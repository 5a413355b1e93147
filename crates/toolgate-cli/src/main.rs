//! The program `toolgate`: reads configuration, wires the rest, and speaks to the person.

mod attach;
mod commands;
mod config;
mod exit;
mod shelves;
mod signals;
mod stores;
mod terminal;
mod trust;
mod wiring;
mod work;

use crate::commands::Program;

fn main() -> std::process::ExitCode {
    // Commands are confined by a copy of this program; if this is that copy, it goes no further.
    toolgate_sandbox::process::zygote_main_if_asked();
    toolgate_sandbox::process::share_heaps();
    let program = Program::typed();
    program.color.write_global();
    match program.run() {
        Ok(code) => code.into(),
        Err(error) => {
            terminal::complain(&error);
            exit::Exit::of(&error).into()
        }
    }
}
