//! `toolgate approvals`: what waits for an answer, and answering it from here.

use std::io::IsTerminal;

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand, ValueEnum};
use jiff::Timestamp;
use serde_json::{Value, json};
use toolgate_contract::Scope;
use toolgate_journal::{ApprovalDesk, Ask, DeskAnswer};
use toolgate_runtime::{Answer, ApprovalRequest};

use super::Setting;
use crate::exit::Exit;
use crate::terminal::{BOLD, DIM, Table, ask_here, paint, plain, show_request};
use crate::wiring::person_name;

/// Answer calls that wait for approval, wherever they were made.
///
/// Every call that waits for a person lies on the workspace's desk: from another terminal, from an agent over MCP, over
/// HTTP. The first answer counts. Without a verb, this lists what waits and, at a terminal, asks for the answers.
///
/// ID is an ask's id, the beginning of one, or `last`.
///
/// Examples:
///   toolgate approvals
///   toolgate approvals approve last
///   toolgate approvals approve ask_0195… --scope session
///   toolgate approvals deny last --reason "use the staging database"
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Approvals {
    #[command(subcommand)]
    verb: Option<ApprovalsVerb>,
}

#[derive(Debug, Subcommand)]
enum ApprovalsVerb {
    /// List what waits, oldest first.
    List,
    /// Show a request whole: effects, diff, and what each answer would grant.
    Show {
        /// The ask.
        #[arg(default_value = "last")]
        id: String,
    },
    /// Say yes.
    Approve {
        /// The ask.
        id: String,
        /// How far the yes reaches.
        #[arg(long, default_value = "call")]
        scope: ScopeName,
    },
    /// Say no.
    Deny {
        /// The ask.
        id: String,
        /// Why; told to the model.
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ScopeName {
    /// This one call.
    Call,
    /// What it touches, for the rest of the run.
    Run,
    /// What it touches, for the rest of the session.
    Session,
    /// From now on: writes a rule to your configuration.
    Always,
}

impl From<ScopeName> for Scope {
    fn from(name: ScopeName) -> Self {
        match name {
            ScopeName::Call => Self::Call,
            ScopeName::Run => Self::Run,
            ScopeName::Session => Self::Session,
            ScopeName::Always => Self::Always,
        }
    }
}

impl Approvals {
    pub(crate) fn run(self, setting: &Setting) -> Result<Exit> {
        let desk = setting.place.approvals()?;
        match self.verb {
            None if !setting.json && std::io::stdin().is_terminal() => answer_all(&desk),
            None | Some(ApprovalsVerb::List) => list(&desk, setting.json),
            Some(ApprovalsVerb::Show { id }) => show(&find(&desk, &id)?, setting.json),
            Some(ApprovalsVerb::Approve { id, scope }) => {
                let ask = find(&desk, &id)?;
                offered(&ask, scope.into())?;
                give(&desk, &ask, DeskAnswer::Granted { scope: scope.into(), by: person_name() }, setting.json)
            }
            Some(ApprovalsVerb::Deny { id, reason }) => {
                give(&desk, &find(&desk, &id)?, DeskAnswer::Denied { by: person_name(), reason }, setting.json)
            }
        }
    }
}

fn find(desk: &ApprovalDesk, wanted: &str) -> Result<Ask> {
    let asks = desk.asks(Timestamp::now())?;
    let mut found = match wanted {
        "last" => asks.into_iter().last().into_iter().collect(),
        start => asks.into_iter().filter(|ask| ask.id.starts_with(start)).collect::<Vec<_>>(),
    };
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => bail!("Nothing waits for an answer under `{wanted}`. `toolgate approvals list` shows what waits."),
        count => bail!("`{wanted}` is the beginning of {count} asks. Give more of the id."),
    }
}

/// Only what was offered can be granted.
fn offered(ask: &Ask, scope: Scope) -> Result<()> {
    let request = request_of(ask)?;
    if request.scopes.iter().any(|offer| offer.scope == scope) {
        return Ok(());
    }
    let offers: Vec<String> = request.scopes.iter().map(|offer| format!("{:?}", offer.scope).to_lowercase()).collect();
    bail!("That scope wasn't offered for this call. Offered: {}.", offers.join(", "))
}

fn request_of(ask: &Ask) -> Result<ApprovalRequest> {
    serde_json::from_value(ask.request.clone()).context("the request is of another version of toolgate")
}

fn list(desk: &ApprovalDesk, as_json: bool) -> Result<Exit> {
    let asks = desk.asks(Timestamp::now())?;
    if as_json {
        anstream::println!("{}", serde_json::to_string(&asks)?);
        return Ok(Exit::Ok);
    }
    if asks.is_empty() {
        anstream::println!("Nothing waits for an answer.");
        return Ok(Exit::Ok);
    }
    let mut table = Table::new(&["ASK", "SINCE", "SESSION", "TOOL", "WHAT IT WILL DO"]);
    for ask in &asks {
        table.row([
            (ask.id.clone(), BOLD),
            (format!("{:.0}", ask.asked).replace('T', " "), DIM),
            (plain(&ask.session), anstyle::Style::new()),
            (plain(ask.request["tool"].as_str().unwrap_or_default()), BOLD),
            (summary(ask), anstyle::Style::new()),
        ]);
    }
    table.print();
    Ok(Exit::Ok)
}

/// What it will do, in one line.
fn summary(ask: &Ask) -> String {
    let effects = request_of(ask).map(|request| request.effects).unwrap_or_default();
    let changing = effects.iter().filter(|effect| !matches!(effect, toolgate_contract::Effect::Read { .. }));
    let words: Vec<String> = changing.map(|effect| plain(&effect.to_string()).replace('\n', "\\n")).collect();
    let line = words.join(", ");
    match line.char_indices().nth(80) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

fn show(ask: &Ask, as_json: bool) -> Result<Exit> {
    match as_json {
        true => anstream::println!("{}", serde_json::to_string(ask)?),
        false => show_request(&request_of(ask)?),
    }
    Ok(Exit::Ok)
}

fn give(desk: &ApprovalDesk, ask: &Ask, answer: DeskAnswer, as_json: bool) -> Result<Exit> {
    desk.answer(&ask.id, &answer, Timestamp::now())?;
    if as_json {
        let answer: Value = serde_json::to_value(&answer)?;
        anstream::println!("{}", json!({ "ask": ask.id, "answer": answer }));
        return Ok(Exit::Ok);
    }
    let word = if matches!(answer, DeskAnswer::Granted { .. }) { "Approved" } else { "Denied" };
    let tool = plain(ask.request["tool"].as_str().unwrap_or_default());
    anstream::println!("{word} {} ({tool}, session {}).", paint(BOLD, &ask.id), plain(&ask.session));
    Ok(Exit::Ok)
}

/// Goes through what waits, one question each.
fn answer_all(desk: &ApprovalDesk) -> Result<Exit> {
    let asks = desk.asks(Timestamp::now())?;
    if asks.is_empty() {
        anstream::println!("Nothing waits for an answer.");
    }
    for ask in asks {
        anstream::eprintln!("\n{} {}", paint(BOLD, &ask.id), paint(DIM, format!("session {}", plain(&ask.session))));
        let answer = match ask_here(&request_of(&ask)?, person_name()) {
            Answer::Granted { scope, by } => DeskAnswer::Granted { scope, by },
            Answer::Denied { by, reason } => DeskAnswer::Denied { by, reason },
            Answer::Nobody => break,
        };
        match give(desk, &ask, answer, false) {
            Ok(_) => {}
            // Somebody else was quicker: that is an answer too, and the next one waits.
            Err(late) => anstream::println!("{late}"),
        }
    }
    Ok(Exit::Ok)
}
