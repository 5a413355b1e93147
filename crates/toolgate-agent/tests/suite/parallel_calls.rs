//! Calls of one turn: those that only read run concurrently, the others in order.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::sync::{Barrier, Mutex};
use toolgate_agent::AgentLimits;
use toolgate_agent::model::{ModelScript, ScriptedModel};
use toolgate_contract::schemars::{self, JsonSchema};
use toolgate_contract::{Effect, FinishReason, Hands, Risk, Spec, Tool, ToolError, erase};
use toolgate_testkit::{LONGEST_WAIT, TestWorkspace};

use crate::world::{controls, work};

#[derive(serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NoArgs {}

const fn spec(name: &'static str, parallel: bool) -> Spec {
    let (version, description) = ("1.0.0", "For tests.");
    Spec { name, version, description, risk: Risk::Low, permissions: &[], side_effects: &[], parallel }
}

/// Ends only when two calls of it run at the same time.
struct Meets(Arc<Barrier>);

impl Tool for Meets {
    type Args = NoArgs;
    type Output = ();
    const SPEC: Spec = spec("meets", true);

    fn effects(&self, _args: &NoArgs) -> Vec<Effect> {
        vec![]
    }

    async fn run(&self, _args: NoArgs, _hands: &dyn Hands) -> Result<(), ToolError> {
        self.0.wait().await;
        Ok(())
    }
}

/// Fails when another call of it runs.
struct Alone(Arc<Mutex<()>>);

impl Tool for Alone {
    type Args = NoArgs;
    type Output = ();
    const SPEC: Spec = spec("alone", false);

    fn effects(&self, _args: &NoArgs) -> Vec<Effect> {
        vec![]
    }

    async fn run(&self, _args: NoArgs, _hands: &dyn Hands) -> Result<(), ToolError> {
        let _held = self.0.try_lock().map_err(|_| ToolError::internal("not alone"))?;
        tokio::time::sleep(Duration::from_millis(20)).await;
        Ok(())
    }
}

async fn twice(tool: &str) -> (FinishReason, TestWorkspace) {
    let tools = [erase(Meets(Arc::new(Barrier::new(2)))), erase(Alone(Arc::default()))];
    let world = TestWorkspace::new(tools, "");
    let calls = json!([{ "tool": tool }, { "tool": tool }]);
    let script = json!({ "turns": [{ "calls": calls }, { "text": "Done." }] });
    let script: ModelScript = serde_json::from_value(script).unwrap();
    let limits = AgentLimits { time: LONGEST_WAIT, ..controls() };
    let outcome = work(&world, Arc::new(ScriptedModel::new(script)), limits).await;
    (outcome.finish, world)
}

#[tokio::test]
async fn calls_that_only_read_run_concurrently() {
    let (finish, _) = twice("meets").await;
    assert_eq!(
        finish,
        FinishReason::Answered,
        "one after the other they would wait for each other until the time is up"
    );
}

// The clock only moves on when everything waits: a second call that could run beside the first would.
#[tokio::test(start_paused = true)]
async fn other_calls_run_in_order() {
    let (finish, world) = twice("alone").await;
    assert_eq!(finish, FinishReason::Answered);
    let ends = world.trail().into_iter().filter(|kind| kind.starts_with("tool_call."));
    let in_order = ["tool_call.started", "tool_call.completed", "tool_call.started", "tool_call.completed"];
    assert_eq!(ends.collect::<Vec<_>>(), in_order);
}
