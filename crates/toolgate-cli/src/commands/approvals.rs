//! `toolgate approvals`: lists the approval queue and answers it: calls to approve, and questions of agents. Lists and
//! revokes what was approved for longer than one call.

mod grants;

use std::io::IsTerminal;

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand, ValueEnum};
use jiff::Timestamp;
use serde_json::{Value, json};
use toolgate_contract::{ApprovalScope, Effect, QuestionAnswer, counted};
use toolgate_journal::{ApprovalQueue, QueueEntry, QueuedAnswer};
use toolgate_runtime::{ApprovalAnswer, ApprovalRequest, QueueItem};

use self::grants::GrantChoice;
use super::Invocation;
use crate::exit::Exit;
use crate::output::{errln, outln, write_list};
use crate::terminal::{
    BOLD, DIM, TextTable, paint, plain, prompt_for_answer, prompt_for_approval, show_question, show_request,
};
use crate::workspace::person_name;

/// Answer calls that wait for approval, wherever they were made.
///
/// Every call that waits for a person is in the workspace's approval queue: from another terminal, from an agent over
/// MCP, or over HTTP. Questions that an agent asks with the tool `ask` are in the queue too. The first answer counts.
/// Without a subcommand, this lists the queue and, at a terminal, asks for the answers.
///
/// ID is the id of a queue entry, its beginning, or `last`.
///
/// An approval for a session or for "always" is a grant: it applies in this workspace alone, and it ends
/// (`approvals.session_hours`, 12 by default, and `approvals.always_days`, 30 by default, in your configuration).
///
/// Examples:
///   toolgate approvals
///   toolgate approvals approve last
///   toolgate approvals approve ask_0195… --scope session
///   toolgate approvals deny last --reason "use the staging database"
///   toolgate approvals abort last --reason "wrong repository"
///   toolgate approvals answer last "the one in Berlin"
///   toolgate approvals grants
///   toolgate approvals revoke grant_3f9a1c22b0
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct ApprovalsArgs {
    #[command(subcommand)]
    verb: Option<ApprovalsVerb>,
}

#[derive(Debug, Subcommand)]
enum ApprovalsVerb {
    /// List what waits for an answer, oldest first.
    List,
    /// Show a complete request: effects, diff, and what each answer would grant.
    Show {
        /// The queue entry.
        #[arg(default_value = "last")]
        id: String,
    },
    /// Approve a call.
    Approve {
        /// The queue entry.
        id: String,
        /// How far the approval reaches.
        #[arg(long, default_value = "call")]
        scope: ScopeName,
    },
    /// Deny a call.
    Deny {
        /// The queue entry.
        id: String,
        /// The reason; shown to the model.
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
    /// Deny a call, and end its run: the run's other calls are cancelled, and no more are made in it.
    Abort {
        /// The queue entry.
        id: String,
        /// The reason; shown to the model.
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
    /// Answer an agent's question.
    Answer {
        /// The queue entry.
        id: String,
        /// A choice by number or label, or your own text.
        words: String,
    },
    /// List what was approved for longer than one call: scope, reach, since when, until when, and by whom.
    Grants {
        /// Those of all your workspaces.
        #[arg(long)]
        everywhere: bool,
        /// Those that were revoked, until they would have expired: by whom and when.
        #[arg(long)]
        revoked: bool,
    },
    /// Revoke grants. It takes effect at once, in running sessions too.
    Revoke {
        /// The grants, by id or its beginning.
        #[arg(value_name = "GRANT", required_unless_present = "all", conflicts_with = "all")]
        ids: Vec<String>,
        /// All grants of this workspace.
        #[arg(long)]
        all: bool,
        /// Those of all your workspaces.
        #[arg(long)]
        everywhere: bool,
    },
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ScopeName {
    /// This one call.
    Call,
    /// The same effects, for the rest of the run.
    Run,
    /// The same effects, for the rest of the session.
    Session,
    /// The same effects, in every session of the workspace.
    Always,
}

impl From<ScopeName> for ApprovalScope {
    fn from(name: ScopeName) -> Self {
        match name {
            ScopeName::Call => Self::Call,
            ScopeName::Run => Self::Run,
            ScopeName::Session => Self::Session,
            ScopeName::Always => Self::Always,
        }
    }
}

impl ApprovalsArgs {
    pub(crate) fn run(self, invocation: &Invocation) -> Result<Exit> {
        match &self.verb {
            Some(ApprovalsVerb::Grants { everywhere, revoked }) => {
                let choice = GrantChoice { everywhere: *everywhere, revoked: *revoked, as_json: invocation.json };
                return grants::list(&invocation.location, &choice);
            }
            Some(ApprovalsVerb::Revoke { ids, everywhere, .. }) => {
                let choice = GrantChoice { everywhere: *everywhere, revoked: false, as_json: invocation.json };
                return grants::revoke(&invocation.location, ids, &choice);
            }
            _ => {}
        }
        let workspace = invocation.location.approvals()?;
        match self.verb {
            None if !invocation.json && std::io::stdin().is_terminal() => answer_all(&workspace),
            None | Some(ApprovalsVerb::List | ApprovalsVerb::Grants { .. } | ApprovalsVerb::Revoke { .. }) => {
                list(&workspace, invocation.json)
            }
            Some(ApprovalsVerb::Show { id }) => show(&find(&workspace, &id)?, invocation.json),
            Some(ApprovalsVerb::Approve { id, scope }) => {
                let ask = find(&workspace, &id)?;
                offered(&ask, scope.into())?;
                give(
                    &workspace,
                    &ask,
                    QueuedAnswer::Granted { scope: scope.into(), by: person_name() },
                    invocation.json,
                )
            }
            Some(ApprovalsVerb::Deny { id, reason }) => {
                let ask = find(&workspace, &id)?;
                request_of(&ask)?;
                give(&workspace, &ask, QueuedAnswer::Denied { by: person_name(), reason }, invocation.json)
            }
            Some(ApprovalsVerb::Abort { id, reason }) => {
                let ask = find(&workspace, &id)?;
                request_of(&ask)?;
                give(&workspace, &ask, QueuedAnswer::Aborted { by: person_name(), reason }, invocation.json)
            }
            Some(ApprovalsVerb::Answer { id, words }) => {
                let ask = find(&workspace, &id)?;
                give(&workspace, &ask, in_words(&ask, &words)?, invocation.json)
            }
        }
    }
}

fn find(workspace: &ApprovalQueue, wanted: &str) -> Result<QueueEntry> {
    let asks = workspace.asks(Timestamp::now())?;
    let mut found = match wanted {
        "last" => asks.into_iter().last().into_iter().collect(),
        start => asks.into_iter().filter(|ask| ask.id.starts_with(start)).collect::<Vec<_>>(),
    };
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => bail!("No entry of the approval queue matches `{wanted}`. `toolgate approvals list` shows the queue."),
        count => bail!("`{wanted}` matches {}. Give more of the id.", counted(count, "entry")),
    }
}

/// Only an offered scope can be granted.
fn offered(ask: &QueueEntry, scope: ApprovalScope) -> Result<()> {
    let request = request_of(ask)?;
    if request.offers(scope) {
        return Ok(());
    }
    let offers: Vec<String> = request.scopes.iter().map(|offer| format!("{:?}", offer.scope).to_lowercase()).collect();
    bail!("That scope wasn't offered for this call. Offered: {}.", offers.join(", "))
}

fn queued_request(ask: &QueueEntry) -> Result<QueueItem> {
    serde_json::from_value(ask.request.clone()).context("the request was made by another version of toolgate")
}

fn request_of(ask: &QueueEntry) -> Result<ApprovalRequest> {
    match queued_request(ask)? {
        QueueItem::Approval(request) => Ok(request),
        QueueItem::Question(_) => {
            bail!("That is a question. Answer it with `toolgate approvals answer {} WORDS`.", ask.id)
        }
    }
}

/// Turns text into an answer to a question.
fn in_words(ask: &QueueEntry, words: &str) -> Result<QueuedAnswer> {
    let QueueItem::Question(question) = queued_request(ask)? else {
        bail!("That is a call to approve. Say `toolgate approvals approve {0}` or `deny {0}`.", ask.id);
    };
    match question.question.answer(words, &person_name()) {
        Some(QuestionAnswer { answer, choice, by }) => Ok(QueuedAnswer::Said { words: answer, choice, by }),
        None => {
            let labels: Vec<String> = question.question.choices.iter().map(|choice| plain(&choice.label)).collect();
            bail!("That is not one of the choices: {}.", labels.join(", "))
        }
    }
}

fn list(workspace: &ApprovalQueue, as_json: bool) -> Result<Exit> {
    let asks = workspace.asks(Timestamp::now())?;
    if as_json {
        write_list(&asks)?;
        return Ok(Exit::Ok);
    }
    if asks.is_empty() {
        outln!("Nothing waits for an answer.");
        return Ok(Exit::Ok);
    }
    let mut table = TextTable::new(&["ASK", "SINCE", "SESSION", "TOOL", "WHAT IT WILL DO"]);
    for ask in &asks {
        table.row([
            (ask.id.clone(), BOLD),
            (format!("{:.0}", ask.asked).replace('T', " "), DIM),
            (plain(&ask.session), anstyle::Style::new()),
            (tool_of(ask), BOLD),
            (summary(ask), anstyle::Style::new()),
        ]);
    }
    table.print();
    Ok(Exit::Ok)
}

/// The tool whose call waits.
fn tool_of(ask: &QueueEntry) -> String {
    match queued_request(ask) {
        Ok(QueueItem::Approval(request)) => plain(&request.tool),
        Ok(QueueItem::Question(_)) => "ask".into(),
        Err(_) => String::new(),
    }
}

/// What the call will do, or the question, in one line.
fn summary(ask: &QueueEntry) -> String {
    let words = match queued_request(ask) {
        Ok(QueueItem::Approval(request)) => {
            let is_change = |effect: &&Effect| !matches!(effect, Effect::Read { .. });
            request.effects.iter().filter(is_change).map(ToString::to_string).collect()
        }
        Ok(QueueItem::Question(question)) => vec![question.question.question],
        Err(_) => Vec::new(),
    };
    let line = plain(&words.join(", ")).replace('\n', "\\n");
    match line.char_indices().nth(80) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

fn show(ask: &QueueEntry, as_json: bool) -> Result<Exit> {
    match as_json {
        true => outln!("{}", serde_json::to_string(ask)?),
        false => match queued_request(ask)? {
            QueueItem::Approval(request) => show_request(&request),
            QueueItem::Question(question) => show_question(&question.question),
        },
    }
    Ok(Exit::Ok)
}

fn give(workspace: &ApprovalQueue, ask: &QueueEntry, answer: QueuedAnswer, as_json: bool) -> Result<Exit> {
    workspace.answer(&ask.id, &answer, Timestamp::now())?;
    if as_json {
        let answer: Value = serde_json::to_value(&answer)?;
        outln!("{}", json!({ "ask": ask.id, "answer": answer }));
        return Ok(Exit::Ok);
    }
    let word = match answer {
        QueuedAnswer::Granted { .. } => "Approved",
        QueuedAnswer::Denied { .. } => "Denied",
        QueuedAnswer::Aborted { .. } => "Denied, and ended the run of",
        QueuedAnswer::Said { .. } => "Answered",
    };
    outln!("{word} {} ({}, session {}).", paint(BOLD, &ask.id), tool_of(ask), plain(&ask.session));
    Ok(Exit::Ok)
}

/// Goes through the queue and asks the person about each entry.
fn answer_all(workspace: &ApprovalQueue) -> Result<Exit> {
    let asks = workspace.asks(Timestamp::now())?;
    if asks.is_empty() {
        outln!("Nothing waits for an answer.");
    }
    for ask in asks {
        errln!("\n{} {}", paint(BOLD, &ask.id), paint(DIM, format!("session {}", plain(&ask.session))));
        let Some(answer) = answer_here(&ask)? else { break };
        match give(workspace, &ask, answer, false) {
            Ok(_) => {}
            // Another person answered first; continue with the next entry.
            Err(late) => outln!("{late}"),
        }
    }
    Ok(Exit::Ok)
}

/// The answer of the person at this terminal; `None` when they quit.
fn answer_here(ask: &QueueEntry) -> Result<Option<QueuedAnswer>> {
    let by = person_name();
    Ok(match queued_request(ask)? {
        QueueItem::Question(question) => prompt_for_answer(&question.question, &by)
            .map(|answered| QueuedAnswer::Said { words: answered.answer, choice: answered.choice, by: answered.by }),
        QueueItem::Approval(request) => match prompt_for_approval(&request, by) {
            ApprovalAnswer::Granted { scope, by } => Some(QueuedAnswer::Granted { scope, by }),
            ApprovalAnswer::Denied { by, reason } => Some(QueuedAnswer::Denied { by, reason }),
            ApprovalAnswer::Aborted { by, reason } => Some(QueuedAnswer::Aborted { by, reason }),
            ApprovalAnswer::Nobody => None,
        },
    })
}
