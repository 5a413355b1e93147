//! The program's subcommands, one file each; a subcommand's doc comment is its help text.

mod applied_report;
mod approvals;
mod attach;
mod audit;
mod caches;
mod call;
mod changes;
mod chat;
mod commit;
mod completions;
mod config;
mod console;
mod demo;
mod dialects;
mod doctor;
mod help;
mod hook;
mod inbox;
mod index;
mod init;
mod lsp;
mod mcp;
mod policy;
mod quarantine;
mod replay;
mod run;
mod runs;
mod sandbox;
mod search;
mod serve;
mod tools;
mod trust;
mod undo;
mod watch;
mod with;
mod work;

use std::path::PathBuf;

use anyhow::Result;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use toolgate_workspace::WorkspaceLocation;

use crate::exit::Exit;
use crate::policy_flags::PolicyFlags;
use crate::workspace::find_workspace;

pub(crate) use self::changes::ChangesArgs;
pub(crate) use self::run::resume::events as recorded_events;
pub(crate) use self::run::{AgentArgs, AgentRun, OpenedModel, RunObservers};
pub(crate) use self::undo::UndoArgs;

/// The gate between a language model and a machine.
///
/// Every action that a model asks for becomes a declared, validated, judged, approved, confined, bounded, redacted,
/// recorded and undoable tool call.
#[derive(Debug, Parser)]
#[command(name = "toolgate", version, propagate_version = true, max_term_width = 110, after_long_help = AFTER_HELP)]
pub(crate) struct CommandLine {
    #[command(subcommand)]
    verb: Option<Verb>,
    #[command(flatten)]
    pub(crate) color: colorchoice_clap::Color,
    #[command(flatten)]
    common: GlobalOptions,
}

const AFTER_HELP: &str = "\
Examples:
  toolgate                                         a conversation with an agent, at a terminal
  toolgate demo                                    see an agent at work, without any key
  toolgate run \"make the tests pass\" --model anthropic:claude-sonnet-4-5
  toolgate init                                    write a policy file for this directory
  toolgate call list                               what is in this directory
  toolgate serve --stdio                           be the hands of an agent, by MCP
  toolgate call read '{\"path\":\"README.md\",\"limit\":20}'
  toolgate policy explain --tool read '{\"path\":\".env\"}'
  toolgate serve                                   the console, and the tools over HTTP, on loopback
  toolgate console                                 a link to the console of a server that runs
  toolgate approvals                               answer what waits for approval, from any front end
  toolgate watch                                   follow this workspace on the terminal, and answer
  toolgate runs tree                               what the last run did
  toolgate replay                                  would it do the same again?
  toolgate inbox add \"tidy up\"                     queue a task for a worker
  toolgate audit verify                            has the record been changed?

Exit codes:
  0  it worked
  1  the tool or the check failed
  2  the command line, the arguments or the configuration are wrong
  3  policy or a person said no
  4  a person has to approve first
  5  the database that hosts share isn't available
  130  it was interrupted, or a person aborted the run
  `toolgate call shell` exits with the command's own code, once the command ran
  `toolgate run --help` has those of a task that ends without an answer

JSON:
  With --json, standard output holds JSON alone, one value a line: a single one, or one for each thing
  that is listed or happens. An error is one line on standard error: {\"error\":{\"code\":…,\"message\":…}}.
  The README lists the few commands whose output isn't JSON.";

/// Options that every subcommand takes.
#[derive(Debug, clap::Args)]
pub(crate) struct GlobalOptions {
    /// The directory that tools work in [default: the current directory].
    #[arg(long, short = 'w', global = true, env = "TOOLGATE_WORKSPACE", value_name = "DIR", hide_env_values = true)]
    workspace: Option<PathBuf>,
    /// Print JSON for programs instead of text for people, one value a line.
    #[arg(long, global = true)]
    json: bool,
    #[command(flatten)]
    policy: PolicyFlags,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Chat(chat::ChatArgs),
    Run(run::RunArgs),
    Demo(demo::DemoArgs),
    Call(call::CallArgs),
    Search(search::SearchArgs),
    Index(index::IndexArgs),
    Serve(serve::ServeArgs),
    Console(console::ConsoleArgs),
    Tools(tools::ToolsArgs),
    Dialects(dialects::DialectsArgs),
    Mcp(mcp::McpArgs),
    Lsp(lsp::LspArgs),
    Policy(policy::PolicyArgs),
    Config(config::ConfigArgs),
    Approvals(approvals::ApprovalsArgs),
    Watch(watch::WatchArgs),
    Runs(runs::RunsArgs),
    Replay(replay::ReplayArgs),
    Inbox(inbox::InboxArgs),
    Work(work::WorkArgs),
    Audit(audit::AuditArgs),
    Sandbox(sandbox::SandboxArgs),
    With(with::WithArgs),
    Attach(attach::AttachArgs),
    Changes(changes::ChangesArgs),
    Undo(undo::UndoArgs),
    Commit(commit::CommitArgs),
    Quarantine(quarantine::QuarantineArgs),
    Caches(caches::CachesArgs),
    Init(init::InitArgs),
    Hook(hook::HookArgs),
    Trust(trust::TrustArgs),
    Doctor(doctor::DoctorArgs),
    Completions(completions::CompletionsArgs),
    Man(completions::ManArgs),
}

/// Runs a future to its end. The program makes one call at a time, so two threads are enough.
fn block_on<T>(future: impl Future<Output = T>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let done = runtime.block_on(future);
    // An unanswered prompt must not keep the program alive.
    runtime.shutdown_background();
    Ok(done)
}

/// What a subcommand works with: the workspace, the configuration, and the output format.
pub(crate) struct Invocation {
    pub(crate) location: WorkspaceLocation,
    pub(crate) policy: PolicyFlags,
    pub(crate) json: bool,
}

/// The dialects that `--dialect` of a subcommand names, whichever subcommand it is. `tools` only lists: nothing starts that the
/// environment would have to be right for.
fn named_dialects(matches: &clap::ArgMatches) -> Vec<String> {
    let subcommand = matches.subcommand().filter(|(name, _)| *name != "tools");
    let given = subcommand.and_then(|(_, matches)| matches.try_get_raw("dialect").ok().flatten());
    let names = given.into_iter().flatten().map(|names| names.to_string_lossy().into_owned());
    names.flat_map(|names| names.split(',').map(|name| name.trim().to_owned()).collect::<Vec<_>>()).collect()
}

impl CommandLine {
    /// Parses the command line. Prints help and usage errors, and exits the program with either.
    pub(crate) fn from_arguments() -> Self {
        let is_asked = std::env::args_os().any(|word| word == "--help" || word == "help");
        let command = if is_asked { help::flowing(Self::command()) } else { Self::command() };
        let matches = command.clone().get_matches();
        // At a terminal, the program without a subcommand opens a conversation.
        let matches = match matches.subcommand_name() {
            None if chat::is_possible() => command.get_matches_from(std::env::args_os().chain(["chat".into()])),
            _ => matches,
        };
        let mut parsed = Self::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
        parsed.common.policy.dialects = named_dialects(&matches);
        parsed
    }

    /// Whether output is for programs.
    pub(crate) fn is_json(&self) -> bool {
        self.common.json
    }

    /// Runs the subcommand.
    pub(crate) fn run(self) -> Result<Exit> {
        let invocation = || -> Result<Invocation> {
            let location = find_workspace(self.common.workspace, &self.common.policy)?;
            Ok(Invocation { location, policy: self.common.policy, json: self.common.json })
        };
        let Some(verb) = self.verb else { return help::print_short_help(Self::command()) };
        match verb {
            Verb::Chat(verb) => verb.run(invocation()?),
            Verb::Run(verb) => verb.run(&invocation()?),
            Verb::Demo(verb) => verb.run(self.common.json),
            Verb::Call(verb) => verb.run(&invocation()?),
            Verb::Search(verb) => verb.run(&invocation()?),
            Verb::Index(verb) => verb.run(&invocation()?),
            Verb::Serve(verb) => verb.run(&invocation()?),
            Verb::Console(verb) => verb.run(&invocation()?),
            Verb::Tools(verb) => verb.run(&invocation()?),
            Verb::Dialects(verb) => verb.run(&invocation()?),
            Verb::Mcp(verb) => verb.run(&invocation()?),
            Verb::Lsp(verb) => verb.run(&invocation()?),
            Verb::Policy(verb) => verb.run(&invocation()?),
            Verb::Config(verb) => verb.run(&invocation()?),
            Verb::Approvals(verb) => verb.run(&invocation()?),
            Verb::Watch(verb) => verb.run(&invocation()?),
            Verb::Runs(verb) => verb.run(&invocation()?),
            Verb::Replay(verb) => verb.run(&invocation()?),
            Verb::Inbox(verb) => verb.run(&invocation()?),
            Verb::Work(verb) => verb.run(&invocation()?),
            Verb::Audit(verb) => verb.run(&invocation()?),
            Verb::Sandbox(verb) => verb.run(&invocation()?),
            Verb::With(verb) => verb.run(&invocation()?),
            Verb::Attach(verb) => verb.run(&invocation()?),
            Verb::Changes(verb) => verb.run(&invocation()?),
            Verb::Undo(verb) => verb.run(&invocation()?),
            Verb::Commit(verb) => verb.run(&invocation()?),
            Verb::Quarantine(verb) => verb.run(&invocation()?),
            Verb::Caches(verb) => verb.run(&invocation()?),
            Verb::Init(verb) => verb.run(&invocation()?),
            Verb::Hook(verb) => verb.run(invocation),
            Verb::Trust(verb) => verb.run(&invocation()?),
            Verb::Doctor(verb) => verb.run(&invocation()?),
            Verb::Completions(verb) => verb.run(),
            Verb::Man(verb) => verb.run(),
        }
    }
}
