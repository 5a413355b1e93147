//! Shared by these tests: a table of commands with expected results, and a judge.

use serde::Deserialize;
use toolgate_config::{Config, ConfigLayer};
use toolgate_contract::{
    ArgumentFormat, Decision, Declaration, Effect, Layer, LocatedEffect, Permission, ResultForm, Risk, Verdict,
    schemars::Schema,
};
use toolgate_policy::{PathContext, Policy, PolicyRequest, WorkspaceFacts, compile};

pub(crate) const HOME: &str = "/home/me";

/// One file of `commands/`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Table {
    pub(crate) defaults: Defaults,
    pub(crate) commands: Vec<Expected>,
}

/// The values of fields that an entry leaves out.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Defaults {
    pub(crate) workspace: String,
    pub(crate) read_only: String,
}

/// One command.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Expected {
    pub(crate) run: String,
    pub(crate) workspace: Option<String>,
    pub(crate) read_only: Option<String>,
    pub(crate) effects: Option<Vec<String>>,
    pub(crate) parts: Option<Vec<String>>,
}

const TABLES: &[(&str, &str)] = &[
    ("harmless", include_str!("commands/harmless.toml")),
    ("confined", include_str!("commands/confined.toml")),
    ("dangerous", include_str!("commands/dangerous.toml")),
    ("middle", include_str!("commands/middle.toml")),
];

pub(crate) fn tables() -> Vec<(&'static str, Table)> {
    let read = |text| toml::from_str(text).unwrap_or_else(|fault| panic!("{fault}"));
    TABLES.iter().map(|(name, text)| (*name, read(text))).collect()
}

/// Every command of every table.
pub(crate) fn commands() -> Vec<String> {
    tables().into_iter().flat_map(|(_, table)| table.commands).map(|row| row.run).collect()
}

pub(crate) fn policy(text: &str) -> Policy {
    let config = Config::parse(text, "user.toml").unwrap();
    let layer = ConfigLayer { layer: Layer::User, trusted: true, config, source: "user.toml".into() };
    compile(vec![layer]).unwrap().policy.with_paths(PathContext::new(["/home/me/project"], HOME))
}

fn shell() -> Declaration {
    Declaration {
        name: "shell".into(),
        version: semver::Version::new(1, 0, 0),
        description: String::new(),
        args_schema: Schema::default(),
        return_schema: Schema::default(),
        required_permissions: vec![Permission::ProcExec],
        side_effects: vec![],
        risk: Risk::Medium,
        parallel: true,
        form: ArgumentFormat::Function { strict: false },
        result_form: ResultForm::Fields,
    }
}

pub(crate) fn judge(policy: &Policy, command: &str) -> Verdict {
    let effects = [LocatedEffect::nowhere(Effect::Run { command: command.into(), workdir: ".".into() })];
    policy.judge(&PolicyRequest { tool: &shell(), effects: &effects, ceilings: &[], bounds: None })
}

/// Judges a command with what the gate knows about the workspace.
pub(crate) fn judge_with(policy: &Policy, command: &str, facts: &dyn WorkspaceFacts) -> Verdict {
    let effects = [LocatedEffect::nowhere(Effect::Run { command: command.into(), workdir: ".".into() })];
    let request = PolicyRequest { tool: &shell(), effects: &effects, ceilings: &[], bounds: None };
    policy.judge_with(&request, &[], facts)
}

/// The verdict as the program prints it.
pub(crate) fn word(verdict: &Verdict) -> String {
    match (verdict.decision, verdict.confined) {
        (Decision::Allow, true) => "allow-confined".into(),
        (decision, _) => decision.to_string(),
    }
}
