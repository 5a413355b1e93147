//! A person who ends the run while an agent works.

use std::sync::Arc;

use serde_json::json;
use toolgate_agent::Agent;
use toolgate_agent::model::{ModelScript, ScriptedModel};
use toolgate_contract::{CancellationToken, FinishReason};
use toolgate_runtime::ApprovalAnswer;
use toolgate_testkit::{ScriptedApprover, TestWorkspace};

use crate::world::{controls, failed_calls};

#[tokio::test]
async fn a_person_who_aborts_ends_the_agents_work() {
    let config = "[[rules]]\ndecision = 'ask'\ntool = 'write'";
    let world = TestWorkspace::new(toolgate_tools::all(), config);
    let write = |path: &str| json!({ "tool": "write", "args": { "path": path, "content": "x" } });
    let calls = [json!({ "calls": [write("a"), write("b")] }), json!({ "calls": [write("c")] })];
    let script: ModelScript = serde_json::from_value(json!({ "turns": calls })).unwrap();
    let aborts = ApprovalAnswer::Aborted { by: "ada".into(), reason: None };
    let session = world.session().approved_by(Arc::new(ScriptedApprover::with([aborts])));
    let agent = Agent::new(Arc::new(ScriptedModel::new(script)), Arc::clone(&world.gate), session, controls());
    let outcome = agent.work("Write.", CancellationToken::new()).await;
    assert_eq!((outcome.finish, outcome.summary.as_str()), (FinishReason::Cancelled, "ada aborted the run."));
    assert_eq!(failed_calls(&world), ["cancelled", "cancelled"], "the model isn't asked for more");
    assert!(!world.path().join("b").exists());
}
