//! Policy: the rules in force by layer and origin, how a command or a call would be judged and why, and what a draft would
//! have decided in past runs. Nothing here runs a call or changes configuration.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use toolgate_contract::{Call, Effect, EventPayload, Layer, Verdict, schemars};
use toolgate_journal::{list_runs, read_events};
use toolgate_policy::Policy;

use super::{JsonBody, OwnerOnly, read_json, run_blocking};
use crate::event_summary::short;
use crate::problem::Problem;
use crate::server_state::ServerState;

/// How many of the newest runs a draft is tried on unless one is named.
const REPLAYED_RUNS: usize = 200;

/// How many calls that would be decided otherwise are listed.
const MAX_DIFFERENCES: usize = 500;

/// What is to be judged: a command, or a call of a tool.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PolicyCheckBody {
    /// A command line.
    #[serde(default)]
    command: Option<String>,
    /// The directory that the command runs in; the workspace if missing.
    #[serde(default)]
    workdir: Option<String>,
    /// A tool, instead of a command.
    #[serde(default)]
    tool: Option<String>,
    /// The tool's arguments.
    #[serde(default)]
    args: Option<Value>,
}

/// A policy to try on past runs.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PolicyReplayBody {
    /// The text of a configuration file that takes the place of the layer's own; the policy in force if missing.
    #[serde(default)]
    draft: Option<String>,
    /// Whose file the draft is: `user` (the default) or `workspace`.
    #[serde(default)]
    layer: Option<DraftLayer>,
    /// Only this run; the newest ones if missing.
    #[serde(default)]
    run: Option<String>,
}

/// The layers that a draft can stand for.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum DraftLayer {
    /// The user's configuration.
    User,
    /// The workspace's own file, as if it were trusted.
    Workspace,
}

pub(super) async fn show(State(state): State<Arc<ServerState>>, _owner: OwnerOnly) -> Result<Json<Value>, Problem> {
    run_blocking(move || {
        let policy = state.workspace.gate.policy();
        let rules: Vec<Value> = policy
            .rules()
            .map(|rule| {
                json!({
                    "rule": rule.name.rule, "layer": rule.name.layer, "decision": rule.decision,
                    "source": rule.source, "reason": rule.reason,
                })
            })
            .collect();
        let files = state.console.as_ref().and_then(|console| console.location.config_files().ok()).unwrap_or_default();
        let files: Vec<Value> = files
            .iter()
            .map(|(layer, source, text)| {
                json!({ "layer": layer, "source": source, "text": state.workspace.gate.redactor().text(text) })
            })
            .collect();
        let preset = policy.preset().to_string();
        Ok(Json(json!({ "preset": preset, "unattended": policy.is_unattended(), "rules": rules, "files": files })))
    })
    .await
}

pub(super) async fn check(
    State(state): State<Arc<ServerState>>,
    _owner: OwnerOnly,
    JsonBody(body): JsonBody,
) -> Result<Json<Value>, Problem> {
    let body: PolicyCheckBody = read_json(&body)?;
    run_blocking(move || {
        let gate = &state.workspace.gate;
        match (body.command, body.tool) {
            (Some(command), None) => {
                let workdir = body.workdir.unwrap_or_else(|| ".".to_owned());
                let effect = Effect::Run { command: command.clone(), workdir: workdir.clone() };
                let judged = gate.judge_again("shell", vec![effect]);
                let verdict = judged.ok_or_else(|| Problem::not_found("tool that runs commands"))??;
                let read = gate.policy().explain(&command, &workdir);
                let part = |part: &toolgate_policy::ExplainedCommand| {
                    json!({
                        "command": part.text, "level": part.level, "workdir": part.workdir, "wraps": part.is_wrapper,
                        "runs_code": part.runs_code, "effects": words(&part.effects), "needs": part.needs,
                        "unclear": part.unclear,
                    })
                };
                let parts: Vec<Value> = read.parts.iter().map(part).collect();
                Ok(Json(json!({ "verdict": verdict, "effects": [], "parts": parts, "fault": read.fault })))
            }
            (None, Some(tool)) => {
                let args = body.args.unwrap_or_else(|| json!({}));
                let judged = gate.judge(&Call::new(tool, args, state.workspace.clock.as_ref()), &[])?;
                let effects: Vec<Effect> = judged.effects.into_iter().map(|located| located.effect).collect();
                let verdict = judged.verdict;
                Ok(Json(json!({ "verdict": verdict, "effects": words(&effects), "parts": [], "fault": null })))
            }
            _ => Err(Problem::invalid("Give either `command` or `tool`.")),
        }
    })
    .await
}

pub(super) async fn replay(
    State(state): State<Arc<ServerState>>,
    _owner: OwnerOnly,
    JsonBody(body): JsonBody,
) -> Result<Json<Value>, Problem> {
    let PolicyReplayBody { draft, layer, run } = read_json(&body)?;
    run_blocking(move || {
        let compiled = match &draft {
            None => None,
            Some(text) => {
                let layer = match layer.unwrap_or(DraftLayer::User) {
                    DraftLayer::User => Layer::User,
                    DraftLayer::Workspace => Layer::Workspace,
                };
                let location = &state.console()?.location;
                let compiled = location.load_draft(layer, text);
                Some(compiled.map_err(|error| Problem::invalid(format!("The draft can't be used: {error}.")))?)
            }
        };
        let policy = compiled.as_ref().map_or(state.workspace.gate.policy(), |compiled| &compiled.policy);
        let mut runs = match run {
            Some(run) => vec![run],
            None => list_runs(state.workspace.state.path())?,
        };
        let newest = runs.split_off(runs.len().saturating_sub(REPLAYED_RUNS));
        let mut replayed = PolicyReplay::default();
        for run in newest.iter().rev() {
            replayed.add(&state, policy, run)?;
        }
        let warnings = compiled.as_ref().map(|compiled| compiled.warnings.clone()).unwrap_or_default();
        let PolicyReplay { judged, differing, unjudged, differences } = replayed;
        Ok(Json(json!({
            "runs": newest.len(), "judged": judged, "differing": differing, "unjudged": unjudged,
            "differences": differences, "warnings": warnings,
        })))
    })
    .await
}

/// What was found so far.
#[derive(Default)]
struct PolicyReplay {
    judged: usize,
    differing: usize,
    unjudged: usize,
    differences: Vec<Value>,
}

impl PolicyReplay {
    fn add(&mut self, state: &ServerState, policy: &Policy, run: &str) -> Result<(), Problem> {
        for event in read_events(&state.workspace.state.run_dir(run)?)?.filter_map(Result::ok) {
            let (call, time) = (event.event.tool_call_id, event.event.time);
            let EventPayload::CallStarted { tool, effects, verdict: Some(was), .. } = event.event.payload else {
                continue;
            };
            let Some(now) = state.workspace.gate.judge_again_by(policy, &tool, effects.clone()) else { continue };
            self.judged += 1;
            let Ok(now) = now else {
                self.unjudged += 1;
                continue;
            };
            if (now.decision, now.confined) == (was.decision, was.confined) {
                continue;
            }
            self.differing += 1;
            if self.differences.len() < MAX_DIFFERENCES {
                let what = effects.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
                let words = |verdict: &Verdict| json!({ "decision": verdict.decision, "confined": verdict.confined });
                self.differences.push(json!({
                    "run": run, "call": call, "time": time, "tool": tool, "what": short(&what), "was": words(&was),
                    "now": words(&now), "rule": now.decided_by.name.rule, "reason": now.decided_by.reason,
                }));
            }
        }
        Ok(())
    }
}

fn words(effects: &[Effect]) -> Vec<String> {
    effects.iter().map(ToString::to_string).collect()
}
