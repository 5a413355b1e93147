//! `toolgate doctor`: checks whether Toolgate's guarantees hold here, and says what to do if not.

mod language_servers;
mod required_commands;

use std::sync::Arc;

use anyhow::Result;
use clap::Args;
use serde::Serialize;
use toolgate_config::{PackageCacheMode, Preset, WORKSPACE_FILE, read_optional, trust};
use toolgate_contract::{
    EventPayload, GuaranteeLevel, LaunchSpec, MisreadCommand, NetworkAccess, WorkspacePath, counted,
};
use toolgate_journal::{RecordedEvent, RunFilter};
use toolgate_policy::CompiledConfig;
use toolgate_runtime::CallEgress;
use toolgate_sandbox::process::requirements;
use toolgate_sandbox::process::{Enforcement, Profile, Sandbox, SandboxOptions, Tier};
use toolgate_sandbox::{OpenMethod, Roots, test_host_list};
use toolgate_workspace::{FULL_WARNING, Stores, WorkspaceError, create_private_directory, sandbox_profile};

use super::caches::in_words;
use super::index::in_a_sentence;
use super::mcp::server_states;
use super::sandbox::restricted_paths;
use super::{Invocation, block_on, policy::holds};
use crate::exit::Exit;
use crate::output::{outln, write_list};
use crate::terminal::{BOLD, guarantee, holding_mark, paint, plain, wrapped};

/// Check which guarantees hold on this machine and in this workspace, and how to fix those that don't.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs;

/// One check.
#[derive(Debug, Serialize)]
struct DoctorCheck {
    /// Its name; checks that belong to the one above are indented.
    name: String,
    state: GuaranteeLevel,
    found: String,
    /// How to fix it.
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
}

impl DoctorArgs {
    pub(crate) fn run(self, invocation: &Invocation) -> Result<Exit> {
        let checks = check_all(invocation)?;
        print(&checks, invocation.json)?;
        let is_broken = checks.iter().any(|check| check.state == GuaranteeLevel::NotHeld);
        Ok(if is_broken { Exit::Failed } else { Exit::Ok })
    }
}

/// Every check as JSON, for the console.
pub(super) fn report(invocation: &Invocation) -> Result<serde_json::Value> {
    Ok(serde_json::to_value(check_all(invocation)?)?)
}

fn check_all(invocation: &Invocation) -> Result<Vec<DoctorCheck>> {
    let mut checks = vec![files(invocation), record(invocation), signature(invocation)];
    match invocation.location.load() {
        Ok(compiled) => {
            checks.push(store(invocation, &compiled));
            checks.extend(misread_commands(invocation));
            checks.push(package_caches(invocation, &compiled));
            checks.push(search_index(invocation, &compiled));
            checks.extend(mcp_servers(invocation));
            checks.extend(policy(invocation, &compiled)?);
            checks.extend(commands(invocation, compiled)?);
        }
        Err(error) => checks.push(broken("policy", with_causes(error), "Fix the file that the message names.")),
    }
    Ok(checks)
}

fn held(name: impl Into<String>, found: impl Into<String>) -> DoctorCheck {
    DoctorCheck { name: name.into(), state: GuaranteeLevel::Held, found: found.into(), remedy: None }
}

fn partly(name: impl Into<String>, found: impl Into<String>, remedy: impl Into<String>) -> DoctorCheck {
    DoctorCheck { name: name.into(), state: GuaranteeLevel::Partly, found: found.into(), remedy: Some(remedy.into()) }
}

fn broken(name: impl Into<String>, found: impl Into<String>, remedy: impl Into<String>) -> DoctorCheck {
    DoctorCheck { name: name.into(), state: GuaranteeLevel::NotHeld, found: found.into(), remedy: Some(remedy.into()) }
}

fn files(invocation: &Invocation) -> DoctorCheck {
    match Roots::open(&invocation.location.directory) {
        Ok(roots) if roots.open_method() == OpenMethod::Kernel => {
            held("files", "opened beneath the workspace in one step (openat2), no link followed")
        }
        Ok(_) => held("files", "opened beneath the workspace name by name, no link followed (no openat2 here)"),
        Err(error) => broken("files", error.to_string(), "Name a directory that you may enter with --workspace."),
    }
}

fn record(invocation: &Invocation) -> DoctorCheck {
    match invocation.location.state() {
        Ok(state) => held("record", format!("{}", state.path().display())),
        Err(error) => {
            broken("record", with_causes(error), "Nothing runs without a journal: make the workspace writable.")
        }
    }
}

/// An error and its causes.
fn with_causes(error: WorkspaceError) -> String {
    format!("{:#}", anyhow::Error::from(error))
}

fn store(invocation: &Invocation, compiled: &CompiledConfig) -> DoctorCheck {
    let found =
        Stores::of(&invocation.location, &compiled.settings).shared().map_err(anyhow::Error::from).and_then(|shared| {
            let found = match &shared {
                Some(shared) => format!("PostgreSQL, database {}, for many hosts", shared.place()),
                None => "SQLite, next to the journal".to_owned(),
            };
            invocation.location.stores()?.store()?.runs(&RunFilter { limit: 1, ..RunFilter::default() })?;
            Ok(found)
        });
    let remedy = match compiled.settings.store.url {
        Some(_) => "Fix `store.url` or TOOLGATE_STORE, or start the server. Calls keep working meanwhile.",
        None => "Run `toolgate runs reindex`; calls keep working meanwhile.",
    };
    found.map_or_else(|error| partly("store", format!("{error:#}"), remedy), |found| held("store", found))
}

/// Lists the commands that were read as ones that change nothing, and tried to; none if there are none, or none is known.
fn misread_commands(invocation: &Invocation) -> Option<DoctorCheck> {
    const MOST: usize = 5;
    let workspace = invocation.location.directory.display().to_string();
    let store = invocation.location.stores().and_then(|stores| stores.store()).ok()?;
    let events = store.events_of_kind("command.misread", Some(&workspace), MOST).ok()?;
    let told = |event: &RecordedEvent| match &event.event.payload {
        EventPayload::CommandMisread(MisreadCommand { command, paths }) => {
            Some(format!("`{command}` tried to change {}", paths.join(", ")))
        }
        _ => None,
    };
    let told: Vec<String> = events.iter().filter_map(told).collect();
    let remedy = "Nothing was changed: the workspace was read-only for them. Please report these commands as faults of \
                  Toolgate; `toolgate runs` has the calls.";
    (!told.is_empty()).then(|| {
        partly("misread commands", format!("read as commands that change nothing: {}", told.join("; ")), remedy)
    })
}

/// Says which MCP servers' tools are offered; nothing where none is configured.
fn mcp_servers(invocation: &Invocation) -> Option<DoctorCheck> {
    const NAME: &str = "MCP servers";
    match server_states(invocation) {
        Err(error) => {
            let remedy = "Without the signing key nothing that was approved counts: fix that first.";
            Some(broken(NAME, format!("{error:#}"), remedy))
        }
        Ok((0, waiting, _)) if waiting.is_empty() => None,
        Ok((approved, waiting, faults)) if waiting.is_empty() && faults.is_empty() => {
            Some(held(NAME, format!("{}, confined, with approved definitions", counted(approved, "server"))))
        }
        Ok((_, waiting, faults)) => {
            let unapproved = (!waiting.is_empty())
                .then(|| format!("nothing is approved of {}, so none of its tools is offered", waiting.join(", ")));
            let found: Vec<String> = unapproved.into_iter().chain(faults).collect();
            let remedy = match waiting.first() {
                Some(name) => format!("Look at them with `toolgate mcp approve {name}`."),
                None => "Install what is missing, or remove the server with `toolgate mcp remove NAME`.".to_owned(),
            };
            Some(partly(NAME, found.join("; "), remedy))
        }
    }
}

/// Checks that package managers have a place for their caches, and says how much is there.
fn package_caches(invocation: &Invocation, compiled: &CompiledConfig) -> DoctorCheck {
    const NAME: &str = "package caches";
    let (location, settings) = (&invocation.location, &compiled.settings);
    if settings.package_caches == PackageCacheMode::Off {
        return held(NAME, "none that last, as `caches.packages = \"off\"`");
    }
    let directory = location.config.caches();
    if let Err(error) = create_private_directory(&directory) {
        let remedy =
            format!("Make {} writable. Commands work without caches of their own meanwhile.", directory.display());
        return partly(NAME, format!("{} can't be used: {error}", directory.display()), remedy);
    }
    let stored = location.cache_key().ok().and_then(|key| location.cache_store(settings).stored(&key));
    let (bytes, quota) = (stored.map_or(0, |stored| stored.bytes()), settings.cache_quota_bytes);
    let found = format!("{} of at most {} in this workspace", in_words(bytes), in_words(quota));
    match bytes > quota {
        true => partly(NAME, found, "Run `toolgate caches clear`, or wait: the largest are removed within a day."),
        false => held(NAME, found),
    }
}

fn search_index(invocation: &Invocation, compiled: &CompiledConfig) -> DoctorCheck {
    const NAME: &str = "search index";
    let index = invocation.location.search_index(&compiled.settings);
    match index.and_then(|index| Ok(index.status()?)) {
        Ok(Some(status)) if !status.is_damaged => held(NAME, in_a_sentence(Some(&status))),
        Ok(status) => {
            partly(NAME, in_a_sentence(status.as_ref()), "Nothing has to be done: searches work all the same.")
        }
        Err(error) => partly(
            NAME,
            with_causes(error),
            "Run `toolgate index drop`. Searches work meanwhile, and index everything each time the program starts.",
        ),
    }
}

fn signature(invocation: &Invocation) -> DoctorCheck {
    match invocation.location.signing_key() {
        Some(_) => held("signature", "journals are signed with this user's key (HMAC)"),
        None => partly(
            "signature",
            "there is no signing key, so a rewritten journal can't be detected",
            format!("Make {} writable.", invocation.location.config.state.display()),
        ),
    }
}

fn policy(invocation: &Invocation, compiled: &CompiledConfig) -> Result<Vec<DoctorCheck>> {
    let mut checks = vec![match compiled.policy.preset() {
        Preset::Full => partly("preset", format!("full. {FULL_WARNING}"), "Choose `preset = \"workspace\"`."),
        preset => held("preset", preset.to_string()),
    }];
    checks.push(workspace_file(invocation, compiled)?);
    let failed = compiled.policy.examples().iter().filter(|example| !holds(example)).count();
    checks.push(match failed {
        0 => held("examples", format!("all {} hold", compiled.policy.examples().len())),
        failed => broken("examples", format!("{failed} fail"), "Run `toolgate policy test`."),
    });
    let secrets = invocation.location.secrets(&compiled.settings, &std::env::vars_os().collect()).len();
    checks.push(held(
        "redaction",
        format!("the built-in rules, and {} from the environment", counted(secrets, "secret")),
    ));
    Ok(checks)
}

/// Checks how well commands are confined, by confining one.
fn commands(invocation: &Invocation, compiled: CompiledConfig) -> Result<Vec<DoctorCheck>> {
    let profile = sandbox_profile(&invocation.location, &compiled.settings.roots, &std::env::vars_os().collect());
    let restricted = restricted_paths(&invocation.location.roots(&compiled.settings)?, &compiled.policy)?;
    let mut spec = LaunchSpec::shell("").restricted(restricted);
    let weakest = compiled.settings.weakest_sandbox;
    let egress = CallEgress::new(Arc::new(compiled.policy), Vec::new());
    let enforcement = block_on(async {
        let sandbox = Sandbox::new(SandboxOptions { warm: 0, ..SandboxOptions::default() }).await?;
        // With the host list that commands have, where it is available.
        if sandbox.tier() == Tier::Namespaces {
            spec.network = NetworkAccess::Listed(Arc::new(egress));
        }
        sandbox.prepare(&profile, &spec).await
    })?;
    let enforcement = match enforcement {
        Ok(enforcement) => enforcement,
        Err(error) => return Ok(vec![broken("commands", error.to_string(), CONFINEMENT_REMEDY)]),
    };
    let mut checks = vec![confinement_check(&enforcement, weakest, &spec.hidden)];
    for report in enforcement.guarantees {
        let name = format!("  {}", guarantee(report.guarantee));
        checks.push(match report.holding {
            GuaranteeLevel::Held => held(name, report.reason),
            GuaranteeLevel::Partly => partly(name, report.reason, CONFINEMENT_REMEDY),
            GuaranteeLevel::NotHeld => broken(name, report.reason, CONFINEMENT_REMEDY),
        });
    }
    checks.push(host_list_check(enforcement.tier, &profile)?);
    checks.push(required_commands::required_commands(invocation, &profile)?);
    checks.push(language_servers::installed(invocation)?);
    Ok(checks)
}

/// Whether commands run at all: the confinement that is available, and the minimum that is configured.
fn confinement_check(enforcement: &Enforcement, weakest: Tier, hidden: &[WorkspacePath]) -> DoctorCheck {
    const NAME: &str = "commands";
    let by = format!("confined by {}", enforcement.tier.name());
    if let Err(weak) = requirements::check(enforcement, weakest) {
        let would_do =
            [enforcement.tier, Tier::Landlock].into_iter().find(|tier| requirements::check(enforcement, *tier).is_ok());
        let less = |tier: Tier| {
            let name = tier.name();
            format!(
                " Or accept weaker confinement: `weakest_sandbox = \"{name}\"` under `[commands]` in your own configuration."
            )
        };
        let less = would_do.map(less).unwrap_or_default();
        return broken(NAME, format!("no command runs. {}", weak.message), format!("{CONFINEMENT_REMEDY}{less}"));
    }
    match requirements::can_hide(enforcement.tier, hidden) {
        Err(found) => {
            let remedy = "Move that directory out of the workspace, or let commands see it with `sensitive.except`.";
            broken(NAME, found.message, remedy)
        }
        _ if requirements::gaps(enforcement).is_some() => {
            partly(NAME, format!("{by}, which `commands.weakest_sandbox` accepts"), CONFINEMENT_REMEDY)
        }
        _ => held(NAME, by),
    }
}

/// Checks whether egress can be limited to single hosts, by reaching one that is allowed and one that isn't.
fn host_list_check(tier: Tier, profile: &Profile) -> Result<DoctorCheck> {
    const NAME: &str = "  list of hosts";
    if tier != Tier::Namespaces {
        let found = format!("{} can't filter by host; commands reach no host at all", tier.name());
        return Ok(partly(NAME, found, CONFINEMENT_REMEDY));
    }
    Ok(match block_on(test_host_list(profile))? {
        Ok(()) => held(NAME, "a host on it was reached, and one that isn't was refused by name"),
        Err(why) => broken(NAME, why, "Check that /etc/nsswitch.conf looks hosts up by `dns`."),
    })
}

/// The remedy where a kernel or a container withholds user namespaces.
const CONFINEMENT_REMEDY: &str = "Allow user namespaces (sysctl user.max_user_namespaces, kernel.apparmor_restrict_unprivileged_userns=0), or install bubblewrap.";

fn workspace_file(invocation: &Invocation, compiled: &CompiledConfig) -> Result<DoctorCheck> {
    let location = &invocation.location;
    Ok(match read_optional(&location.directory.join(WORKSPACE_FILE))? {
        None => held("workspace file", "none; the preset and the user's rules decide"),
        Some(text) if trust::is_trusted(&location.config.trusted(), &location.directory, &text) => {
            held("workspace file", "trusted as it is")
        }
        Some(_) if compiled.warnings.is_empty() => held("workspace file", "not trusted; it only tightens"),
        Some(_) => partly(
            "workspace file",
            format!("not trusted; ignored of it: {}", counted(compiled.warnings.len(), "line")),
            "Read it, then run `toolgate trust`.",
        ),
    })
}

fn print(checks: &[DoctorCheck], as_json: bool) -> Result<()> {
    if as_json {
        write_list(checks)?;
        return Ok(());
    }
    let widest = checks.iter().map(|check| check.name.chars().count()).max().unwrap_or_default();
    // The mark, the name, and a space behind each.
    let indent = widest + 4;
    for DoctorCheck { name, state, found, .. } in checks {
        let (mark, style) = holding_mark(*state);
        let space = " ".repeat(indent - 2 - name.chars().count());
        outln!("{} {}{space}{}", paint(style, mark), paint(BOLD, name), wrapped(&plain(found), indent));
    }
    show_remedies(checks);
    Ok(())
}

/// Prints each remedy once, with the checks that it fixes.
fn show_remedies(checks: &[DoctorCheck]) {
    let mut remedies: Vec<(&str, Vec<&str>)> = Vec::new();
    for check in checks {
        let Some(remedy) = check.remedy.as_deref() else { continue };
        // One remedy may extend another.
        match remedies.iter_mut().find(|(known, _)| known.starts_with(remedy)) {
            Some((_, names)) => names.push(check.name.trim()),
            None => remedies.push((remedy, vec![check.name.trim()])),
        }
    }
    if !remedies.is_empty() {
        outln!("\n{}", paint(BOLD, "How to fix this"));
    }
    for (remedy, names) in remedies {
        outln!("  {}", wrapped(&format!("{}: {remedy}", names.join(", ")), 4));
    }
}
