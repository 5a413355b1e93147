//! A command that a person runs in place: what it leaves is recorded and quarantined as a call's is. A snapshot of the workspace
//! is taken before it, and compared with when it has ended.

use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;
use serde_json::json;
use toolgate_changes::{ChangeSettler, InPlaceCommand};
use toolgate_contract::{
    ApplyMode, CallEnding, Effect, EventOrigin, EventPayload, LaunchSpec, NamedChanges, SettledChanges, ToolError,
};
use toolgate_workspace::{RecordedSession, RunChoice, Workspace};

use crate::commands::Invocation;
use crate::workspace::{CLI, open_workspace};

/// The name under which the record has such a command.
const TOOL: &str = "sandbox";

/// A command that works in place, between its snapshot and its settlement.
pub(super) struct WatchedCommand {
    workspace: Workspace,
    recorded: RecordedSession,
    origin: Arc<EventOrigin>,
    settler: ChangeSettler,
    in_place: Arc<InPlaceCommand>,
    command: String,
    started: Instant,
}

impl WatchedCommand {
    /// Takes the snapshot, and records that the command begins. `is_confined` says whether protected paths can't be changed.
    pub(super) fn begin(invocation: &Invocation, spec: &LaunchSpec, is_confined: bool) -> Result<Self> {
        let workspace = open_workspace(&invocation.location)?;
        let recorded = workspace.begin(&RunChoice { run: None, session: CLI.into(), front_end: CLI })?;
        let id = workspace.clock.id().simple().to_string();
        let (trace_id, tool_call_id) = (format!("trace_{id}"), format!("call_{id}"));
        let origin = Arc::new(EventOrigin { run: recorded.run.id.clone(), turn: None, trace_id, tool_call_id });
        let words = std::iter::once(&spec.program).chain(&spec.arguments).map(|word| word.to_string_lossy());
        let command = workspace.gate.redactor().text(&words.collect::<Vec<_>>().join(" ")).into_owned();
        let recorder = Arc::clone(&recorded.session.recorder);
        let started = EventPayload::CallStarted {
            tool: TOOL.into(),
            version: None,
            args: json!({ "command": command }),
            effects: vec![Effect::Run { command: command.clone(), workdir: ".".into() }],
            verdict: None,
            approval: None,
            risk: None,
            justification: None,
            hooked: None,
        };
        recorder.record(&[origin.event(workspace.clock.now(), started)])?;
        let session = recorded.session.id.clone();
        let changer = workspace.gate.changes().for_call(recorder, Arc::clone(&origin), session);
        let settler = ChangeSettler { changer: Arc::new(changer), approved: NamedChanges::default() };
        let in_place = settler.begin_in_place(spec, is_confined)?;
        Ok(Self { workspace, recorded, origin, settler, in_place, command, started: Instant::now() })
    }

    /// The run that it is recorded in.
    pub(super) fn run(&self) -> &str {
        &self.recorded.run.id
    }

    /// Quarantines what the command left and must not stay, and records its end.
    pub(super) fn end(self, code: i32) -> Result<SettledChanges> {
        let settled = self.settler.settle(None, Some(Arc::clone(&self.in_place)), ApplyMode::InPlace);
        let path = |line: &String| line.get(1..).unwrap_or_default().to_owned();
        let ending = CallEnding {
            duration_ms: u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX),
            exit_code: Some(code.into()),
            files_changed: settled.iter().flat_map(|settled| settled.paths.iter().map(path)).collect(),
            folded: settled.iter().flat_map(|settled| settled.folded.clone()).collect(),
            commands_run: vec![self.command.clone()],
            ..CallEnding::default()
        };
        let payload = match &settled {
            Ok(_) => EventPayload::CallCompleted(ending),
            Err(error) => EventPayload::CallFailed { error: error.clone(), class: error.code.class(), ending },
        };
        let event = self.origin.event(self.workspace.clock.now(), payload);
        let recorded: Result<(), ToolError> = self.recorded.session.recorder.record(&[event]);
        self.recorded.run.end()?;
        self.workspace.finish();
        let settled = settled?;
        recorded?;
        Ok(settled)
    }

    /// Lets go of the snapshot of a command that wasn't launched.
    pub(super) fn abandon(self) {
        self.in_place.release_snapshot();
    }
}
