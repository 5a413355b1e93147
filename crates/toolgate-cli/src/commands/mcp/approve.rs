//! `toolgate mcp approve`: starts a server in its sandbox, shows what it says, and approves what the person agrees to.

use std::io::Read;

use anyhow::{Context, Result};
use clap::Args;
use serde_json::{Value, json};
use toolgate_contract::{Artifacts, ServerDescription, counted, erase};
use toolgate_gateway::{
    DefinedPart, DefinitionChange, DefinitionFault, DescribeServerTool, ServerDefinitions, visible,
};
use toolgate_tools::text::unified;
use toolgate_workspace::pin_name;

use super::KnownServer;
use super::fetched_package::FetchedPackage;
use crate::commands::Invocation;
use crate::commands::call::CallArgs;
use crate::exit::Exit;
use crate::output::{errln, outln};
use crate::terminal::{BOLD, DIM, YELLOW, confirm, diff_line, paint, plain};

/// Look at what a server says of itself and its tools, and approve it.
///
/// Everything that is new or different since you last approved it is shown, with invisible characters written as their code. A tool
/// that you don't approve isn't offered; the others are.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(super) struct ApproveArgs {
    /// The server's name.
    name: String,
    /// Approve these tools alone; all of them if none is named.
    #[arg(value_name = "TOOL")]
    tools: Vec<String>,
    /// Approve without asking.
    #[arg(long, short)]
    yes: bool,
}

impl ApproveArgs {
    pub(super) fn run(self, invocation: &Invocation) -> Result<Exit> {
        let server = KnownServer::find(invocation, &self.name)?;
        if let Some(obstacle) = server.obstacle(invocation) {
            anyhow::bail!("{obstacle}");
        }
        if !invocation.json {
            warn_of_package(&server);
        }
        let call = CallArgs::approved("mcp_describe", json!({ "server": self.name }).to_string());
        let performed = call.perform(invocation, vec![erase(DescribeServerTool)])?;
        if let Some(error) = performed.reply.error {
            return Err(error.into());
        }
        let artifact = performed.reply.payload.as_ref().and_then(|payload| payload["description"].as_str());
        let description = read_description(invocation, &performed.run, artifact.unwrap_or_default())?;
        let (now, faults) = ServerDefinitions::of(&self.name, &description);
        let before = server.approved.clone().unwrap_or_default();
        let changes = self.chosen(before.changes_to(&now))?;
        let is_agreed = self.agrees(&changes, &faults, invocation.json)?;
        if is_agreed {
            let approved = ServerDefinitions { server: self.name.clone(), ..before.with(&changes) };
            invocation.location.mcp_pins()?.put(&pin_name(&self.name, &server.config), &approved)?;
        }
        if invocation.json {
            outln!("{}", report(&self.name, &changes, &faults, is_agreed));
            return Ok(if is_agreed { Exit::Ok } else { Exit::ApprovalNeeded });
        }
        match is_agreed {
            true if changes.is_empty() => outln!("Everything is as you approved it."),
            true => outln!("Approved {}. `toolgate tools` lists them.", counted(changes.len(), "definition")),
            false => errln!("Nothing was approved."),
        }
        Ok(if is_agreed { Exit::Ok } else { Exit::Denied })
    }

    /// The changes that are about the named tools.
    fn chosen(&self, mut changes: Vec<DefinitionChange>) -> Result<Vec<DefinitionChange>> {
        if self.tools.is_empty() {
            return Ok(changes);
        }
        let is_about = |change: &DefinitionChange, name: &String| change.part.tool() == Some(name);
        if let Some(name) = self.tools.iter().find(|name| !changes.iter().any(|change| is_about(change, name))) {
            anyhow::bail!("`{name}` is no tool of `{}` that is new or different", self.name);
        }
        // Whoever approves a tool approves it of the server that it is from.
        let is_chosen = |change: &DefinitionChange| {
            change.part == DefinedPart::Identity || self.tools.iter().any(|name| is_about(change, name))
        };
        changes.retain(is_chosen);
        Ok(changes)
    }

    /// Shows the changes, and asks about them.
    fn agrees(&self, changes: &[DefinitionChange], faults: &[DefinitionFault], as_json: bool) -> Result<bool> {
        if as_json || changes.is_empty() {
            faults.iter().filter(|_| !as_json).for_each(|fault| errln!("{}", paint(YELLOW, fault)));
            return Ok(self.yes || changes.is_empty());
        }
        changes.iter().for_each(show);
        faults.iter().for_each(|fault| outln!("{}", paint(YELLOW, plain(&fault.to_string()))));
        if self.yes {
            return Ok(true);
        }
        let question = format!("Approve {}?", counted(changes.len(), "definition"));
        confirm(&question, &format!("toolgate mcp approve {} --yes", self.name))
    }
}

/// Says what may be wrong with a package that is fetched when the server starts.
fn warn_of_package(server: &KnownServer) {
    let Some(package) = FetchedPackage::of(&server.config.command) else { return };
    let name = plain(package.name);
    if !package.has_exact_version() {
        let words =
            format!("`{name}` has no exact version, so another program may run tomorrow; write it as NAME@VERSION.");
        errln!("{}", paint(YELLOW, words));
    }
    let hosts = package.unlisted_hosts(&server.config.hosts);
    if !hosts.is_empty() {
        let words = format!(
            "`{}` fetches it from {}, which the `hosts` of [mcp.servers.{}] don't list.",
            package.runner,
            hosts.join(", "),
            server.name
        );
        errln!("{}", paint(YELLOW, words));
    }
}

/// What the server said, as it was stored with the call.
fn read_description(invocation: &Invocation, run: &str, artifact: &str) -> Result<ServerDescription> {
    let (_, mut file) = invocation.location.state()?.artifacts(run)?.open(artifact)?;
    let mut text = String::new();
    file.read_to_string(&mut text).context("what the server said can't be read")?;
    serde_json::from_str(&text).context("what the server said can't be read")
}

/// Shows one change as a difference, with everything visible.
fn show(change: &DefinitionChange) {
    let what = match &change.part {
        DefinedPart::Tool(tool) => format!("the tool {}", visible(tool)),
        DefinedPart::Instructions => "the server's instructions for models".to_owned(),
        DefinedPart::Identity => "what the server says that it is".to_owned(),
    };
    let state = match (&change.before, &change.after) {
        (None, _) => "new",
        (Some(_), Some(_)) => "different from what you approved",
        (Some(_), None) => "gone",
    };
    outln!("{} {}", paint(BOLD, what), paint(DIM, format!("({state})")));
    let (before, after) = (text(change.before.as_ref()), text(change.after.as_ref()));
    let diff = unified(Some("approved"), Some("now"), before.as_bytes(), after.as_bytes()).text;
    diff.lines().skip_while(|line| !line.starts_with("@@")).skip(1).for_each(|line| outln!("  {}", diff_line(line)));
}

fn text(value: Option<&Value>) -> String {
    let text = match value {
        None => return String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => format!("{other:#}"),
    };
    visible(&text) + "\n"
}

fn report(server: &str, changes: &[DefinitionChange], faults: &[DefinitionFault], approved: bool) -> Value {
    let changes: Vec<Value> = changes
        .iter()
        .map(|change| {
            let part = match change.part {
                DefinedPart::Tool(_) => "tool",
                DefinedPart::Instructions => "instructions",
                DefinedPart::Identity => "identity",
            };
            json!({ "part": part, "tool": change.part.tool(), "before": change.before, "after": change.after })
        })
        .collect();
    let faults: Vec<Value> = faults.iter().map(|fault| json!({ "tool": fault.tool, "reason": fault.reason })).collect();
    json!({ "server": server, "changes": changes, "not_offered": faults, "approved": approved })
}
