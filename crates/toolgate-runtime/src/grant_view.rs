//! A grant as front ends show it: what, how far, since when, until when and by whom.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use toolgate_contract::{ApprovalScope, Effect, schemars};
use toolgate_journal::{Grant, Revocation};

use crate::gate::what_is_granted;

/// A grant that applies.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct GrantView {
    /// Its id.
    pub id: String,
    /// The tool it was given for.
    pub tool: String,
    /// What was approved.
    pub effects: Vec<Effect>,
    /// The same in words.
    pub what: String,
    /// How far it reaches.
    pub scope: ApprovalScope,
    /// The same in words.
    pub reach: String,
    /// The workspace's canonical path.
    pub workspace: String,
    /// The session in which it was given.
    pub session: String,
    /// The run in which it was given.
    pub run: String,
    /// When it was given.
    #[schemars(with = "String")]
    pub since: Timestamp,
    /// When it ends at the latest; none if it has no end.
    #[schemars(with = "Option<String>")]
    pub until: Option<Timestamp>,
    /// Who gave it.
    pub by: String,
    /// Who revoked it and when; none while it applies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revoked: Option<Revocation>,
}

impl From<Grant> for GrantView {
    fn from(grant: Grant) -> Self {
        Self {
            what: what_is_granted(&grant.tool, &grant.effects),
            reach: reach(&grant),
            id: grant.id,
            tool: grant.tool,
            effects: grant.effects,
            scope: grant.scope,
            workspace: grant.workspace.path,
            session: grant.session,
            run: grant.run,
            since: grant.at,
            until: grant.expires,
            by: grant.by,
            revoked: grant.revoked,
        }
    }
}

fn reach(grant: &Grant) -> String {
    let workspace = &grant.workspace.path;
    match grant.scope {
        ApprovalScope::Call => format!("one call in {workspace}"),
        ApprovalScope::Run => format!("the run {} in {workspace}", grant.run),
        ApprovalScope::Session => format!("the session `{}` in {workspace}", grant.session),
        ApprovalScope::Always => format!("every session in {workspace}"),
    }
}
