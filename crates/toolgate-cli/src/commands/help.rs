//! Reflows help texts to the terminal's width. They are written as comments of a fixed width, with example lines that
//! must stay as written; so each paragraph is joined to one line, which clap then wraps.

use anyhow::Result;
use clap::Command;

use crate::exit::Exit;
use crate::output::err;

/// Reflows the texts of a command and all its subcommands.
pub(super) fn flowing(command: Command) -> Command {
    let about = command.get_long_about().map(|text| flow(&text.to_string()));
    let command = match about {
        Some(text) => command.long_about(text),
        None => command,
    };
    command.mut_subcommands(flowing)
}

/// Says how the program is used, to whoever named no subcommand.
pub(super) fn print_short_help(mut command: Command) -> Result<Exit> {
    err!("{}", command.render_help().ansi());
    Ok(Exit::Usage)
}

/// Joins the lines of each paragraph. A paragraph with example lines stays as it is.
fn flow(text: &str) -> String {
    let paragraphs = text.split("\n\n").map(|paragraph| match paragraph.lines().any(|line| line.starts_with(' ')) {
        true => paragraph.to_owned(),
        false => paragraph.lines().collect::<Vec<_>>().join(" "),
    });
    paragraphs.collect::<Vec<_>>().join("\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_flow_and_examples_stay() {
        let text = "One.\n\nA paragraph\nof two lines.\n\nExamples:\n  toolgate a\n  toolgate b";
        let flowing = "One.\n\nA paragraph of two lines.\n\nExamples:\n  toolgate a\n  toolgate b";
        assert_eq!(flow(text), flowing);
    }
}
