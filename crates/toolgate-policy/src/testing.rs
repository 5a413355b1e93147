//! What this crate's tests share: a tool, a layer, a question and its answer in one line each.

use toolgate_contract::{
    Declaration, Effect, Form, Layer, Located, Permission, Place, Risk, Verdict, schemars::Schema,
};

use crate::{Ceiling, Compiled, Config, LayerInput, Policy, Question, Settings, compile};

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
        form: Form::Function { strict: false },
    }
}

/// A layer with this text; its source is called after it.
pub(crate) fn layer(layer: Layer, text: &str) -> LayerInput {
    let source = format!("{layer}.toml");
    LayerInput { layer, trusted: true, config: Config::parse(text, &source).unwrap(), source }
}

/// The workspace's layer before anyone trusts it.
pub(crate) fn untrusted(text: &str) -> LayerInput {
    LayerInput { trusted: false, ..layer(Layer::Workspace, text) }
}

pub(crate) fn compiled(layers: Vec<LayerInput>) -> Compiled {
    compile(layers).unwrap_or_else(|fault| panic!("{fault}"))
}

/// The user's configuration alone.
pub(crate) fn policy(text: &str) -> Policy {
    compiled(vec![layer(Layer::User, text)]).policy
}

pub(crate) fn settings(layers: Vec<LayerInput>) -> (Settings, Vec<String>) {
    let compiled = compiled(layers);
    (compiled.settings, compiled.warnings)
}

/// An effect whose path, if any, is where it says.
pub(crate) fn located(effect: Effect) -> Located {
    let place = effect.path().map(|(_, path)| Place::in_workspace(path));
    Located { effect, written: place.clone(), real: place }
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
    policy.judge(&Question { tool, effects: &effects, ceilings, bounds: None })
}
