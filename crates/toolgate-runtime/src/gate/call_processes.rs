//! Starts commands for one call, as processes of its session.

use std::sync::Arc;
use std::time::Duration;

use toolgate_config::ProcessLimits;
use toolgate_contract::{
    Artifacts, BoxFuture, Clock, ErrorCode, Files, LaunchSpec, Process, ProcessFacts, ProcessHandle, ProcessLauncher,
    ProcessTable, Streams, ToolError,
};
use toolgate_redact::Redactor;

use super::event_writer::EventWriter;
use crate::processes::{
    NewProcess, OutputThrottle, ProcessRegistries, ProcessRegistry, ProcessSlot, ProcessSupervisor, SessionProcess,
    tend,
};

/// Starts commands for one call.
pub(super) struct CallProcesses {
    /// None where there is nothing to run commands in.
    pub(super) processes: Option<Arc<dyn ProcessLauncher>>,
    pub(super) registry: Arc<ProcessRegistry>,
    pub(super) registries: Arc<ProcessRegistries>,
    pub(super) limits: ProcessLimits,
    /// How much of a long stream is shown, at the beginning and at the end.
    pub(super) shown: usize,
    pub(super) files: Arc<dyn Files>,
    pub(super) redactor: Arc<Redactor>,
    pub(super) artifacts: Arc<dyn Artifacts>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) event_writer: EventWriter,
    pub(super) session: String,
}

impl CallProcesses {
    async fn run(&self, order: LaunchSpec, longest: Duration) -> Result<Arc<dyn ProcessHandle>, ToolError> {
        let processes = self.processes.as_ref().ok_or_else(|| {
            ToolError::new(ErrorCode::SandboxUnavailable, "There is nothing here to run commands in.")
        })?;
        let slot = self.registry.slot(self.limits.most)?;
        let process = processes.start(order.clone()).await?;
        let entry = Arc::new(self.entry(&order, process.as_ref()));
        self.registry.add(Arc::clone(&entry));
        self.registries.know(&self.registry);
        tokio::spawn(tend(self.tending(process, Arc::clone(&entry), longest, slot)));
        Ok(entry)
    }

    fn entry(&self, order: &LaunchSpec, process: &dyn Process) -> SessionProcess {
        let terminal = match order.streams {
            Streams::Terminal(size) => Some(size),
            Streams::Output | Streams::Input => None,
        };
        let facts = ProcessFacts {
            id: format!("proc_{}", self.clock.id().simple()),
            command: self.redactor.text(&order.command).into_owned(),
            workdir: match &order.program {
                None => self.files.shown(&order.workdir),
                Some(program) => program.workdir.display().to_string(),
            },
            started: self.clock.now(),
            terminal: terminal.is_some(),
            enforced: process.enforced(),
        };
        let new = NewProcess {
            facts,
            session: self.session.clone(),
            terminal,
            controls: process.controls(),
            redactor: Arc::clone(&self.redactor),
            artifacts: Arc::clone(&self.artifacts),
            shown: self.shown,
            event_writer: self.event_writer.clone(),
        };
        SessionProcess::new(new, &self.registry)
    }

    fn tending(
        &self,
        process: Box<dyn Process>,
        entry: Arc<SessionProcess>,
        longest: Duration,
        slot: ProcessSlot,
    ) -> ProcessSupervisor {
        let shown = OutputThrottle::new(self.event_writer.clone(), entry.facts().id.clone());
        ProcessSupervisor { process, shown, entry, longest, most_bytes: self.limits.output_bytes, slot }
    }
}

impl ProcessTable for CallProcesses {
    fn start(&self, order: LaunchSpec, longest: Duration) -> BoxFuture<'_, Result<Arc<dyn ProcessHandle>, ToolError>> {
        Box::pin(self.run(order, longest))
    }

    fn find(&self, process: &str) -> Result<Arc<dyn ProcessHandle>, ToolError> {
        Ok(self.registry.find(process)?)
    }

    fn all(&self) -> Vec<Arc<dyn ProcessHandle>> {
        self.registry.all().into_iter().map(|entry| entry as Arc<dyn ProcessHandle>).collect()
    }

    fn longest(&self) -> Duration {
        Duration::from_secs(self.limits.timeout_seconds)
    }
}
