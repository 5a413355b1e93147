//! Language servers for one call: where they run, and what they may see. The workspace is read-only to them and as it is,
//! without what policy hides; there is no network. All sessions of a gate have the same policy, so they share them.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use toolgate_contract::{
    Access, ApplyMode, BoxFuture, CancellationToken, ChangedSource, CodeAnswer, CodeDiagnostic, CodeIntelligence,
    CodeQuestion, Connect, Enforced, ErrorCode, Files, FinishedProgram, LaunchSpec, NetworkAccess, Output, ServerHost,
    ServerLifetime, ToolError, WorkspacePath, counted,
};

use super::call_processes::CallProcesses;
use super::server_launch::{covered, unless_cancelled};
use crate::servers::RunningLanguageServers;

/// Bytes that a linter may print.
const MOST_OUTPUT: usize = 16 * 1024 * 1024;

/// Asks language servers for one call of ours.
pub(super) struct LanguageCalls {
    /// None where there are no language servers.
    pub(super) code: Option<Arc<dyn CodeIntelligence>>,
    pub(super) running: Arc<RunningLanguageServers>,
    pub(super) processes: Arc<CallProcesses>,
    /// Bytes of memory that each may use.
    pub(super) memory_bytes: u64,
    /// Which guarantees held for the servers that were asked.
    pub(super) enforced: Mutex<Enforced>,
}

impl LanguageCalls {
    /// Answers a question.
    pub(super) async fn ask(
        &self,
        question: CodeQuestion,
        cancel: &CancellationToken,
    ) -> Result<CodeAnswer, ToolError> {
        let code = self.code.as_ref().ok_or_else(|| {
            ToolError::new(ErrorCode::ToolNotAllowed, "Language servers are switched off here.")
                .with_hint("Use `grep`.")
        })?;
        unless_cancelled(cancel, code.answer(question, self)).await
    }

    /// The errors that a change caused, from servers that run already.
    pub(super) async fn new_errors(&self, changed: Vec<ChangedSource>, within: Duration) -> Vec<CodeDiagnostic> {
        match &self.code {
            Some(code) if !self.running.is_unused() && !changed.is_empty() => {
                code.new_errors(changed, within, self).await
            }
            _ => Vec::new(),
        }
    }

    /// A launch spec with what holds for every language server, whatever it says itself.
    fn confined(&self, spec: LaunchSpec) -> LaunchSpec {
        LaunchSpec {
            network: NetworkAccess::Off,
            apply_mode: ApplyMode::None,
            only_reads: true,
            unsandboxed: false,
            memory_bytes: Some(spec.memory_bytes.unwrap_or(self.memory_bytes)),
            ..spec
        }
    }

    async fn start(
        &self,
        key: &str,
        idle: Duration,
        spec: LaunchSpec,
        connect: Connect<'_>,
    ) -> Result<Arc<dyn ServerLifetime>, ToolError> {
        let restricted = self.processes.restricted_paths().await?;
        // One that was launched before something was hidden would see it, so it is started again.
        let now = covered(&restricted, self.processes.files.as_ref());
        if self.running.peek(key).is_some_and(|running| running.covered != now) {
            self.running.stop(key).await;
        }
        self.running.count_crash(key).await;
        let launch = self.processes.launch_server(self.confined(spec), connect);
        let running = self.running.running(key, idle, launch).await?;
        self.enforced.lock().0.extend(running.enforced.0.clone());
        Ok(Arc::clone(&running.connection))
    }

    async fn run_to_end(&self, spec: LaunchSpec, longest: Duration) -> Result<FinishedProgram, ToolError> {
        let restricted = self.processes.restricted_paths().await?;
        let (_, child) = self.processes.launch_confined(self.confined(spec), restricted).await?;
        self.enforced.lock().0.extend(child.enforced().0);
        let mut done = FinishedProgram::default();
        let work = async {
            while let Some(output) = child.output().await {
                let (stream, piece) = match output {
                    Output::Out(piece) => (&mut done.stdout, piece),
                    Output::Err(piece) => (&mut done.stderr, piece),
                };
                if stream.len() < MOST_OUTPUT {
                    stream.extend_from_slice(&piece);
                }
            }
            child.wait().await
        };
        let ended = tokio::time::timeout(longest, work).await;
        child.kill();
        done.exit_code = ended.map_err(|_| {
            ToolError::new(
                ErrorCode::Timeout,
                format!("It was stopped after {}.", counted(longest.as_secs(), "second")),
            )
        })??;
        child.release();
        Ok(done)
    }
}

impl ServerHost for LanguageCalls {
    fn files(&self) -> Arc<dyn Files> {
        Arc::clone(&self.processes.files)
    }

    fn hides(&self, place: &WorkspacePath) -> bool {
        self.processes.hidden_paths.hides(Access::Read, place)
    }

    fn server<'a>(
        &'a self,
        key: &'a str,
        idle: Duration,
        spec: LaunchSpec,
        connect: Connect<'a>,
    ) -> BoxFuture<'a, Result<Arc<dyn ServerLifetime>, ToolError>> {
        Box::pin(self.start(key, idle, spec, connect))
    }

    fn warm<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Option<Arc<dyn ServerLifetime>>> {
        Box::pin(async move {
            let running = self.running.peek(key)?;
            let restricted = self.processes.restricted_paths().await.ok()?;
            let is_current = running.covered == covered(&restricted, self.processes.files.as_ref());
            is_current.then(|| Arc::clone(&running.connection))
        })
    }

    fn stop<'a>(&'a self, key: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(self.running.stop(key))
    }

    fn run_program<'a>(
        &'a self,
        spec: LaunchSpec,
        longest: Duration,
    ) -> BoxFuture<'a, Result<FinishedProgram, ToolError>> {
        Box::pin(self.run_to_end(spec, longest))
    }
}
