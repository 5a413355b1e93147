//! Starts commands for one call, as processes of its session.

use std::sync::Arc;
use std::time::Duration;

use toolgate_changes::ChangeSettler;
use toolgate_config::ProcessLimits;
use toolgate_contract::{
    Artifacts, BoxFuture, ChildProcess, Clock, Enforced, ErrorCode, Files, Guarantee, HiddenPaths, LaunchSpec,
    ProcessFacts, ProcessHandle, ProcessLauncher, ProcessTable, RestrictedPaths, StartDirectory, Streams, ToolError,
};
use toolgate_redact::Redactor;

use super::command_settlement::CommandSettlement;
use super::event_writer::EventWriter;
use crate::hidden_path_scanner::HiddenPathScanner;
use crate::locks::PathLocks;
use crate::processes::{
    NewProcess, OutputThrottle, ProcessRegistries, ProcessRegistry, ProcessSupervisor, SessionProcess, SupervisedChild,
};

/// Starts commands for one call.
pub(super) struct CallProcesses {
    /// None where commands can't be run.
    pub(super) launcher: Option<Arc<dyn ProcessLauncher>>,
    pub(super) settler: Arc<ChangeSettler>,
    pub(super) locks: Arc<PathLocks>,
    pub(super) registry: Arc<ProcessRegistry>,
    pub(super) registries: Arc<ProcessRegistries>,
    pub(super) limits: ProcessLimits,
    /// How much of a long stream is shown, at the beginning and at the end.
    pub(super) shown: usize,
    pub(super) files: Arc<dyn Files>,
    pub(super) hidden_paths: Arc<dyn HiddenPaths>,
    pub(super) scanner: Arc<HiddenPathScanner>,
    pub(super) redactor: Arc<Redactor>,
    pub(super) artifacts: Arc<dyn Artifacts>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) event_writer: EventWriter,
    pub(super) session: String,
}

impl CallProcesses {
    async fn launch(&self, spec: LaunchSpec, longest: Duration) -> Result<Arc<dyn ProcessHandle>, ToolError> {
        let spec = spec.restricted(self.restricted_paths().await?);
        let launcher = self.launcher()?;
        let slot = self.registry.slot(self.limits.most)?;
        let (child, settlement) = CommandSettlement::launch(&self.settler, launcher, spec.clone()).await?;
        let mut enforced = child.enforced();
        enforced.0.insert(Guarantee::Undo, settlement.undo());
        let process = Arc::new(self.session_process(&spec, Arc::clone(&child), enforced));
        self.registry.add(Arc::clone(&process));
        self.registries.know(&self.registry);
        let shown = OutputThrottle::new(self.event_writer.clone(), process.facts().id.clone());
        let supervisor = ProcessSupervisor {
            child: SupervisedChild(child),
            process: Arc::clone(&process),
            settlement,
            locks: Arc::clone(&self.locks),
            shown,
            longest,
            settle_longest: Duration::from_secs(self.limits.settle_seconds),
            most_bytes: self.limits.output_bytes,
            slot,
        };
        tokio::spawn(supervisor.supervise());
        Ok(process)
    }

    /// What runs commands.
    pub(super) fn launcher(&self) -> Result<&dyn ProcessLauncher, ToolError> {
        let unavailable = || ToolError::new(ErrorCode::SandboxUnavailable, "Commands can't be run here.");
        self.launcher.as_deref().ok_or_else(unavailable)
    }

    /// What policy takes from every command, as the workspace is now.
    pub(super) async fn restricted_paths(&self) -> Result<RestrictedPaths, ToolError> {
        // A change of threads would take longer than looking whether a few directories are as they were.
        if self.scanner.is_quick() {
            return self.scanner.restricted_paths(self.files.as_ref(), self.hidden_paths.as_ref());
        }
        let (scanner, files, hidden) =
            (Arc::clone(&self.scanner), Arc::clone(&self.files), Arc::clone(&self.hidden_paths));
        let scan = tokio::task::spawn_blocking(move || scanner.restricted_paths(files.as_ref(), hidden.as_ref()));
        scan.await.map_err(|_| ToolError::internal("The workspace couldn't be searched for hidden files."))?
    }

    fn session_process(&self, spec: &LaunchSpec, child: Arc<dyn ChildProcess>, enforced: Enforced) -> SessionProcess {
        let terminal = match spec.streams {
            Streams::Terminal(size) => Some(size),
            Streams::Output | Streams::Input => None,
        };
        let facts = ProcessFacts {
            id: format!("proc_{}", self.clock.id().simple()),
            command: self.redactor.text(&spec.command).into_owned(),
            workdir: match &spec.directory {
                StartDirectory::Workspace(place) => self.files.shown(place),
                StartDirectory::Machine(path) => path.display().to_string(),
            },
            started: self.clock.now(),
            terminal: terminal.is_some(),
            pids: child.pids(),
            enforced,
        };
        let new = NewProcess {
            facts,
            session: self.session.clone(),
            terminal,
            child,
            redactor: Arc::clone(&self.redactor),
            artifacts: Arc::clone(&self.artifacts),
            shown: self.shown,
            event_writer: self.event_writer.clone(),
        };
        SessionProcess::new(new, &self.registry)
    }
}

impl ProcessTable for CallProcesses {
    fn start(&self, spec: LaunchSpec, longest: Duration) -> BoxFuture<'_, Result<Arc<dyn ProcessHandle>, ToolError>> {
        Box::pin(self.launch(spec, longest))
    }

    fn find(&self, process: &str) -> Result<Arc<dyn ProcessHandle>, ToolError> {
        Ok(self.registry.find(process)?)
    }

    fn all(&self) -> Vec<Arc<dyn ProcessHandle>> {
        self.registry.all().into_iter().map(|process| process as Arc<dyn ProcessHandle>).collect()
    }

    fn longest(&self) -> Duration {
        Duration::from_secs(self.limits.timeout_seconds)
    }
}
