//! `plan`: stores the plan of the work, and shows it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolgate_contract::{Access, Effect, Hands, NoteKind, Permission, Risk, SideEffect, Spec, Tool, ToolError};

use crate::support::todo_list::WorkStatus;

/// Stores the plan.
pub struct PlanTool;

/// One step.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PlanStep {
    /// What it does.
    #[schemars(length(min = 1, max = 2000))]
    step: String,
    /// Its progress.
    status: WorkStatus,
}

/// The new plan.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// In order. If left out, the current plan is shown.
    #[serde(default)]
    #[schemars(length(min = 1, max = 100))]
    steps: Option<Vec<PlanStep>>,
    /// The reason.
    #[serde(default)]
    #[schemars(length(max = 4000))]
    explanation: Option<String>,
}

/// The current plan.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct Output {
    /// Every step, in order.
    steps: Vec<PlanStep>,
    /// The reason.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    explanation: Option<String>,
}

impl Tool for PlanTool {
    type Args = Args;
    type Output = Output;

    const SPEC: Spec = Spec {
        name: "plan",
        version: "1.0.0",
        description: "Keep a plan of the work for the person to follow. Send all steps whenever one changes.",
        risk: Risk::Low,
        permissions: &[Permission::Agent],
        side_effects: &[SideEffect::KeepsNotes],
        parallel: true,
    };

    fn effects(&self, args: &Args) -> Vec<Effect> {
        let access = if args.steps.is_some() { Access::Write } else { Access::Read };
        vec![Effect::Note { book: NoteKind::Plan, access }]
    }

    async fn run(&self, args: Args, hands: &dyn Hands) -> Result<Output, ToolError> {
        let Args { steps: Some(steps), explanation } = args else { return hands.notes(NoteKind::Plan) };
        let in_progress = steps.iter().filter(|step| step.status == WorkStatus::InProgress).count();
        if in_progress > 1 {
            return Err(ToolError::invalid_args(format!("{in_progress} steps are in progress; at most one can be."))
                .with_hint("Leave one of them in progress and send all steps again; nothing was saved."));
        }
        hands.rewrite(NoteKind::Plan, |plan: &mut Output| {
            *plan = Output { steps: steps.clone(), explanation: explanation.clone() };
            Ok(plan.clone())
        })
    }
}
