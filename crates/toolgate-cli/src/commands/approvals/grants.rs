//! `toolgate approvals grants` and `revoke`: what was approved for longer than one call, and taking that back.

use anstyle::Style;
use anyhow::{Result, bail};
use jiff::Timestamp;
use toolgate_contract::{ApprovalScope, Durability, counted};
use toolgate_journal::{Grant, GrantStore, Revocation};
use toolgate_runtime::GrantView;
use toolgate_workspace::WorkspaceLocation;

use crate::exit::Exit;
use crate::output::{outln, write_list};
use crate::terminal::{BOLD, DIM, TextTable, paint, plain, to_the_minute};
use crate::workspace::{person_name, warn};

/// The grants that a command is about.
pub(super) struct GrantChoice {
    /// Those of all workspaces, not of this one alone.
    pub(super) everywhere: bool,
    /// Those that were revoked instead of those that apply.
    pub(super) revoked: bool,
    pub(super) as_json: bool,
}

/// Lists the grants that apply.
pub(super) fn list(location: &WorkspaceLocation, choice: &GrantChoice) -> Result<Exit> {
    let grants: Vec<GrantView> = live(&store(location)?, choice)?.into_iter().map(GrantView::from).collect();
    if choice.as_json {
        write_list(&grants)?;
        return Ok(Exit::Ok);
    }
    if grants.is_empty() {
        let words =
            if choice.revoked { "Nothing was revoked." } else { "Nothing is approved for longer than one call." };
        outln!("{words}");
        return Ok(Exit::Ok);
    }
    let mut table = TextTable::new(&["GRANT", "SCOPE", "SINCE", "UNTIL", "BY"]);
    for grant in &grants {
        table.row([
            (grant.id.clone(), BOLD),
            (scope_name(grant.scope).to_owned(), Style::new()),
            (to_the_minute(grant.since), DIM),
            (grant.until.map_or_else(|| "unlimited".to_owned(), to_the_minute), Style::new()),
            (plain(&grant.by), Style::new()),
        ]);
        let reach = match &grant.revoked {
            None => format!("reaches {}", plain(&grant.reach)),
            Some(by) => {
                let revoked = format!("revoked {} by {}", to_the_minute(by.at), plain(&by.by));
                format!("reached {}; {revoked}", plain(&grant.reach))
            }
        };
        table.below([plain(&grant.what), reach]);
    }
    table.print();
    outln!("{}", paint(DIM, "Times are UTC. `toolgate approvals revoke GRANT` takes one back."));
    Ok(Exit::Ok)
}

/// Revokes grants, by id or by the beginning of one; all of them without ids.
pub(super) fn revoke(location: &WorkspaceLocation, ids: &[String], choice: &GrantChoice) -> Result<Exit> {
    let store = store(location)?;
    let live = live(&store, choice)?;
    let mut chosen: Vec<&Grant> = Vec::new();
    for id in ids {
        let found: Vec<&Grant> = live.iter().filter(|grant| grant.id.starts_with(id.as_str())).collect();
        match found[..] {
            [grant] => chosen.push(grant),
            [] => bail!("No grant matches `{id}`. `toolgate approvals grants` lists them."),
            _ => bail!("`{id}` matches {}. Give more of the id.", counted(found.len(), "grant")),
        }
    }
    if ids.is_empty() {
        chosen.extend(&live);
    }
    let is_chosen = |grant: &Grant| chosen.iter().any(|one| one.id == grant.id && one.workspace == grant.workspace);
    let revocation = Revocation { by: person_name(), at: Timestamp::now() };
    let revoked: Vec<GrantView> = store.revoke(&revocation, is_chosen)?.into_iter().map(GrantView::from).collect();
    if choice.as_json {
        write_list(&revoked)?;
    } else if revoked.is_empty() {
        outln!("There was nothing to revoke.");
    }
    for grant in revoked.iter().filter(|_| !choice.as_json) {
        outln!("Revoked {}: {}.", paint(BOLD, &grant.id), plain(&grant.what));
    }
    Ok(Exit::Ok)
}

fn store(location: &WorkspaceLocation) -> Result<GrantStore> {
    match location.grants(Durability::Sync)? {
        Some(store) => Ok(store),
        None => bail!("A copy of a workspace has no grants."),
    }
}

fn live(store: &GrantStore, choice: &GrantChoice) -> Result<Vec<Grant>> {
    let now = Timestamp::now();
    if choice.revoked {
        let mut revoked = store.revoked(now)?;
        revoked.retain(|grant| choice.everywhere || store.is_here(grant));
        return Ok(revoked);
    }
    let loaded = if choice.everywhere { store.everywhere(now)? } else { store.grants(now)? };
    loaded.warnings.iter().for_each(|warning| warn(warning));
    Ok(loaded.grants)
}

fn scope_name(scope: ApprovalScope) -> &'static str {
    match scope {
        ApprovalScope::Call => "call",
        ApprovalScope::Run => "run",
        ApprovalScope::Session => "session",
        ApprovalScope::Always => "always",
    }
}
