//! Commands for one call: what each of them changed is settled when it has ended, before anybody hears of its end. One whose
//! changes can't wait for that begins with a snapshot.

use std::sync::Arc;

use toolgate_contract::{
    ApplyMode, BoxFuture, Controls, Enforced, ErrorCode, Guarantee, GuaranteeLevel, LaunchSpec, Output, Process,
    ProcessLauncher, SettledChanges, ToolError,
};

use toolgate_changes::ChangeSettler;
use toolgate_changes::InPlaceCommand;

/// Starts commands and settles what they changed.
pub(super) struct SettlingLauncher {
    pub(super) processes: Arc<dyn ProcessLauncher>,
    pub(super) settler: Arc<ChangeSettler>,
}

impl SettlingLauncher {
    async fn begin(&self, mut order: LaunchSpec) -> Result<Box<dyn Process>, ToolError> {
        // What may go beyond the workspace, or has no walls, can't be kept apart.
        let goes_beyond = order.unsandboxed || !order.writable.is_empty();
        if order.apply_mode == ApplyMode::AtItsEnd && (goes_beyond || !self.settler.stages_changes()) {
            order.apply_mode = ApplyMode::AtOnce;
        }
        if order.apply_mode != ApplyMode::AtOnce {
            let apply_mode = order.apply_mode;
            match self.processes.start(order.clone()).await {
                // Nothing here keeps changes apart: then they are compared with what was there before.
                Err(error) if error.code == ErrorCode::SandboxUnavailable && apply_mode == ApplyMode::AtItsEnd => {}
                started => return Ok(self.settling(started?, apply_mode, None)),
            }
            order.apply_mode = ApplyMode::AtOnce;
        }
        let in_place = self.watch(&order).await?;
        match self.processes.start(order).await {
            Ok(process) => Ok(self.settling(process, ApplyMode::AtOnce, in_place)),
            Err(error) => {
                in_place.into_iter().for_each(|in_place| in_place.let_go());
                Err(error)
            }
        }
    }

    /// Takes a snapshot before the command begins; none where nothing is kept.
    async fn watch(&self, order: &LaunchSpec) -> Result<Option<Arc<InPlaceCommand>>, ToolError> {
        if !self.settler.is_recorded() {
            return Ok(None);
        }
        let has_walls = !order.unsandboxed && self.processes.protects().await?;
        let (settler, order) = (Arc::clone(&self.settler), order.clone());
        let work = move || settler.begin_in_place(&order, has_walls);
        let taken = tokio::task::spawn_blocking(work).await;
        taken.map_err(|_| ToolError::internal("The workspace couldn't be looked at before the command."))?.map(Some)
    }

    fn settling(
        &self,
        process: Box<dyn Process>,
        apply_mode: ApplyMode,
        in_place: Option<Arc<InPlaceCommand>>,
    ) -> Box<dyn Process> {
        let undo = match (apply_mode, &in_place) {
            (ApplyMode::AtItsEnd | ApplyMode::WhenCommitted, _) => GuaranteeLevel::Held,
            (ApplyMode::AtOnce, Some(_)) => GuaranteeLevel::Partly,
            (ApplyMode::AtOnce, None) => GuaranteeLevel::NotHeld,
        };
        let settler = Arc::clone(&self.settler);
        Box::new(SettlingProcess { process, settler, apply_mode, in_place, undo, ended: None, settled: None })
    }
}

impl ProcessLauncher for SettlingLauncher {
    fn start(&self, order: LaunchSpec) -> BoxFuture<'_, Result<Box<dyn Process>, ToolError>> {
        Box::pin(self.begin(order))
    }

    fn protects(&self) -> BoxFuture<'_, Result<bool, ToolError>> {
        self.processes.protects()
    }
}

/// A command whose changes are settled when it has ended.
struct SettlingProcess {
    process: Box<dyn Process>,
    settler: Arc<ChangeSettler>,
    apply_mode: ApplyMode,
    in_place: Option<Arc<InPlaceCommand>>,
    /// Whether its changes can be taken back.
    undo: GuaranteeLevel,
    ended: Option<i32>,
    settled: Option<SettledChanges>,
}

impl SettlingProcess {
    async fn end(&mut self) -> Result<i32, ToolError> {
        if let Some(code) = self.ended {
            return Ok(code);
        }
        let code = self.process.wait().await?;
        self.ended = Some(code);
        let (staged, settler, apply_mode) = (self.process.staged(), Arc::clone(&self.settler), self.apply_mode);
        let in_place = self.in_place.take();
        let work = tokio::task::spawn_blocking(move || settler.settle(staged, in_place, apply_mode));
        let settled =
            work.await.map_err(|_| ToolError::internal("What the command changed couldn't be settled."))??;
        self.settled = Some(settled).filter(|settled| !settled.is_empty());
        Ok(code)
    }
}

impl Process for SettlingProcess {
    fn output(&mut self) -> BoxFuture<'_, Option<Output>> {
        self.process.output()
    }

    fn wait(&mut self) -> BoxFuture<'_, Result<i32, ToolError>> {
        Box::pin(self.end())
    }

    fn kill(&self) {
        self.process.kill();
    }

    fn controls(&self) -> Arc<dyn Controls> {
        self.process.controls()
    }

    fn enforced(&self) -> Enforced {
        let mut enforced = self.process.enforced();
        enforced.0.insert(Guarantee::Undo, self.undo);
        enforced
    }

    fn settled(&mut self) -> Option<SettledChanges> {
        self.settled.take()
    }
}
