//! Shared by this crate's tests: builds a tool, a layer, a request and its verdict in one line each.

use toolgate_config::{Config, ConfigLayer};
use toolgate_contract::{
    ArgumentFormat, Declaration, Effect, Layer, LocatedEffect, Permission, ResultForm, Risk, Verdict, WorkspacePath,
    schemars::Schema,
};

use crate::{Ceiling, CompiledConfig, Policy, PolicyRequest, compile};

pub(crate) fn tool(name: &str, risk: Risk, permissions: &[Permission]) -> Declaration {
    Declaration {
        name: name.into(),
        version: semver::Version::new(1, 0, 0),
        description: String::new(),
        args_schema: Schema::default(),
        return_schema: Schema::default(),
        required_permissions: permissions.to_vec(),
        side_effects: vec![],
        risk,
        parallel: true,
        form: ArgumentFormat::Function { strict: false },
        result_form: ResultForm::Fields,
    }
}

/// A layer with this text; its source is named after it.
pub(crate) fn layer(layer: Layer, text: &str) -> ConfigLayer {
    let source = format!("{layer}.toml");
    ConfigLayer { layer, trusted: true, config: Config::parse(text, &source).unwrap(), source }
}

/// The workspace's layer before it is trusted.
pub(crate) fn untrusted(text: &str) -> ConfigLayer {
    ConfigLayer { trusted: false, ..layer(Layer::Workspace, text) }
}

pub(crate) fn compiled(layers: Vec<ConfigLayer>) -> CompiledConfig {
    compile(layers).unwrap_or_else(|fault| panic!("{fault}"))
}

/// A policy from the user's configuration only.
pub(crate) fn policy(text: &str) -> Policy {
    compiled(vec![layer(Layer::User, text)]).policy
}

/// An effect whose path, if any, resolves to itself.
pub(crate) fn located(effect: Effect) -> LocatedEffect {
    let place = effect.path().map(|(_, path)| WorkspacePath::in_workspace(path));
    LocatedEffect { effect, written: place.clone(), real: place }
}

pub(crate) fn run(command: &str) -> Effect {
    Effect::Run { command: command.into(), workdir: ".".into() }
}

pub(crate) fn connect(host: &str) -> Effect {
    Effect::Connect { host: host.into(), port: 443 }
}

/// Judges a call of a plain tool with these effects.
pub(crate) fn judge(policy: &Policy, effects: &[Effect]) -> Verdict {
    judge_tool(policy, &tool("probe", Risk::Low, &[]), effects, &[])
}

pub(crate) fn judge_tool(policy: &Policy, tool: &Declaration, effects: &[Effect], ceilings: &[Ceiling]) -> Verdict {
    let effects: Vec<_> = effects.iter().cloned().map(located).collect();
    policy.judge(&PolicyRequest { tool, effects: &effects, ceilings, bounds: None })
}
