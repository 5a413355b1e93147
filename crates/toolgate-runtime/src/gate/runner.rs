//! Starts commands for one call, as processes of its session.

use std::sync::Arc;
use std::time::Duration;

use toolgate_contract::{
    Artifacts, BoxFuture, Clock, ErrorCode, Files, Order, Process, ProcessFacts, ProcessTable, Processes,
    SessionProcess, Streams, ToolError,
};
use toolgate_policy::ProcessLimits;

use super::witness::Witness;
use crate::processes::{Entry, New, Roster, Rosters, Shown, Slot, Tending, tend};
use crate::redact::Redactor;

/// Starts commands for one call.
pub(super) struct Runner {
    /// None where there is nothing to run commands in.
    pub(super) processes: Option<Arc<dyn Processes>>,
    pub(super) roster: Arc<Roster>,
    pub(super) rosters: Arc<Rosters>,
    pub(super) limits: ProcessLimits,
    /// How much of a long stream is shown, at the beginning and at the end.
    pub(super) shown: usize,
    pub(super) files: Arc<dyn Files>,
    pub(super) redactor: Arc<Redactor>,
    pub(super) artifacts: Arc<dyn Artifacts>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) witness: Witness,
    pub(super) session: String,
}

impl Runner {
    async fn run(&self, order: Order, longest: Duration) -> Result<Arc<dyn SessionProcess>, ToolError> {
        let processes = self.processes.as_ref().ok_or_else(|| {
            ToolError::new(ErrorCode::SandboxUnavailable, "There is nothing here to run commands in.")
        })?;
        let slot = self.roster.slot(self.limits.most)?;
        let process = processes.start(order.clone()).await?;
        let entry = Arc::new(self.entry(&order, process.as_ref()));
        self.roster.add(Arc::clone(&entry));
        self.rosters.know(&self.roster);
        tokio::spawn(tend(self.tending(process, Arc::clone(&entry), longest, slot)));
        Ok(entry)
    }

    fn entry(&self, order: &Order, process: &dyn Process) -> Entry {
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
        let new = New {
            facts,
            session: self.session.clone(),
            terminal,
            controls: process.controls(),
            redactor: Arc::clone(&self.redactor),
            artifacts: Arc::clone(&self.artifacts),
            shown: self.shown,
            witness: self.witness.clone(),
        };
        Entry::new(new, &self.roster)
    }

    fn tending(&self, process: Box<dyn Process>, entry: Arc<Entry>, longest: Duration, slot: Slot) -> Tending {
        let shown = Shown::new(self.witness.clone(), entry.facts().id.clone());
        Tending { process, shown, entry, longest, most_bytes: self.limits.output_bytes, slot }
    }
}

impl ProcessTable for Runner {
    fn start(&self, order: Order, longest: Duration) -> BoxFuture<'_, Result<Arc<dyn SessionProcess>, ToolError>> {
        Box::pin(self.run(order, longest))
    }

    fn find(&self, process: &str) -> Result<Arc<dyn SessionProcess>, ToolError> {
        Ok(self.roster.find(process)?)
    }

    fn all(&self) -> Vec<Arc<dyn SessionProcess>> {
        self.roster.all().into_iter().map(|entry| entry as Arc<dyn SessionProcess>).collect()
    }

    fn longest(&self) -> Duration {
        Duration::from_secs(self.limits.timeout_seconds)
    }
}
