//! `toolgate attach`: attaches a person's terminal to a running process.

use std::time::Duration;

use anstyle::Style;
use anyhow::{Result, bail};
use clap::Args;
use jiff::Timestamp;

use super::{Invocation, block_on};
use crate::attach::{self, AttachEnd, AttachTarget};
use crate::exit::Exit;
use crate::output::{errln, write_list};
use crate::terminal::{DIM, TextTable, paint, plain};
use crate::workspace::person_name;

/// Attach this terminal to a command that an agent has running: see its screen, type into it, and detach with Ctrl-].
///
/// You can attach to the commands of any Toolgate that you run. Without PROCESS it attaches to the only one there is,
/// or lists them. The journal records that you attached, but not what you type.
///
/// Examples:
///   toolgate attach
///   toolgate attach proc_01a1e18c1a7b7289b13056122f1dcff3
///   toolgate attach --list
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct AttachArgs {
    /// The process, or the beginning of its id.
    process: Option<String>,
    /// Only list the running processes.
    #[arg(long)]
    list: bool,
}

/// How long the person has to read how to detach.
const TIME_TO_READ: Duration = Duration::from_millis(1500);

impl AttachArgs {
    pub(crate) fn run(self, invocation: &Invocation) -> Result<Exit> {
        let directory = invocation.location.config.attach_sockets();
        block_on(async {
            let found = attach::find_all(&directory).await?;
            if self.list || invocation.json {
                return show(&found, invocation.json);
            }
            let chosen = match self.choose(&found)? {
                Some(chosen) => chosen,
                None => {
                    show(&found, false)?;
                    bail!("several processes run; name the one to attach to")
                }
            };
            attach_to(chosen).await
        })?
    }

    /// The chosen process; `None` when there are several to choose from.
    fn choose<'a>(&self, found: &'a [AttachTarget]) -> Result<Option<&'a AttachTarget>> {
        let is_meant =
            |one: &&AttachTarget| self.process.as_ref().is_none_or(|name| one.running.process.starts_with(name));
        let mut meant = found.iter().filter(is_meant);
        match (meant.next(), meant.next(), &self.process) {
            (Some(one), None, _) => Ok(Some(one)),
            (Some(_), Some(_), _) => Ok(None),
            (None, _, Some(name)) => bail!("no running process is called {name}; `toolgate attach --list` shows them"),
            (None, _, None) => bail!("no Toolgate of yours has a process running"),
        }
    }
}

async fn attach_to(chosen: &AttachTarget) -> Result<Exit> {
    let words = format!("attached to {}: {}", chosen.running.process, plain(&chosen.running.command));
    errln!("{}", paint(DIM, format!("{words}\nCtrl-] detaches; the process keeps running")));
    if chosen.running.tty {
        // The process' screen is painted over this.
        tokio::time::sleep(TIME_TO_READ).await;
    }
    match attach::attach(chosen, &person_name()).await? {
        AttachEnd::Detached => {
            errln!("\n{}", paint(DIM, "detached; the process keeps running"));
            Ok(Exit::Ok)
        }
        AttachEnd::Ended(code) => {
            errln!("\n{}", paint(DIM, format!("the process ended with code {code}")));
            Ok(Exit::Code(u8::try_from(code).unwrap_or(1)))
        }
    }
}

fn show(found: &[AttachTarget], json: bool) -> Result<Exit> {
    let running: Vec<_> = found.iter().map(|found| &found.running).collect();
    if json {
        write_list(&running)?;
        return Ok(Exit::Ok);
    }
    if running.is_empty() {
        errln!("No Toolgate of yours has a process running.");
        return Ok(Exit::Ok);
    }
    let mut table = TextTable::new(&["PROCESS", "STARTED", "TTY", "SESSION", "COMMAND"]);
    for one in running {
        let (tty, command) = (if one.tty { "yes" } else { "no" }, plain(&one.command).replace('\n', "\\n"));
        let cells = [one.process.clone(), time_of_day(&one.started), tty.into(), plain(&one.session), command];
        table.row(cells.map(|cell| (cell, Style::new())));
    }
    table.print();
    Ok(Exit::Ok)
}

/// The start time as a time of day, which is enough for a running process.
fn time_of_day(time: &str) -> String {
    time.parse::<Timestamp>().map_or_else(|_| plain(time), |time| time.strftime("%H:%M:%SZ").to_string())
}
