//! Commands for one call: what each of them changed is settled when it has ended, before anybody hears of its end. One whose
//! changes can't wait for that begins with a snapshot.

use std::sync::Arc;

use toolgate_contract::{
    BoxFuture, Controls, Enforced, ErrorCode, Guarantee, Holding, Landing, Order, Output, Process, Processes, Settled,
    ToolError,
};

use super::settler::Settler;
use super::straight::Straight;

/// Starts commands and settles what they changed.
pub(super) struct Commands {
    pub(super) processes: Arc<dyn Processes>,
    pub(super) settler: Arc<Settler>,
}

impl Commands {
    async fn begin(&self, mut order: Order) -> Result<Box<dyn Process>, ToolError> {
        // What may go beyond the workspace, or has no walls, can't be kept apart.
        let goes_beyond = order.unsandboxed || !order.writable.is_empty();
        if order.landing == Landing::AtItsEnd && (goes_beyond || !self.settler.keeps_apart()) {
            order.landing = Landing::AtOnce;
        }
        if order.landing != Landing::AtOnce {
            let landing = order.landing;
            match self.processes.start(order.clone()).await {
                // Nothing here keeps changes apart: then they are compared with what was there before.
                Err(error) if error.code == ErrorCode::SandboxUnavailable && landing == Landing::AtItsEnd => {}
                started => return Ok(self.settling(started?, landing, None)),
            }
            order.landing = Landing::AtOnce;
        }
        let straight = self.watch(&order).await?;
        match self.processes.start(order).await {
            Ok(process) => Ok(self.settling(process, Landing::AtOnce, straight)),
            Err(error) => {
                straight.into_iter().for_each(|straight| straight.let_go());
                Err(error)
            }
        }
    }

    /// Takes a snapshot before the command begins; none where nothing is kept.
    async fn watch(&self, order: &Order) -> Result<Option<Arc<Straight>>, ToolError> {
        if self.settler.changer.workshop.is_none() {
            return Ok(None);
        }
        let has_walls = !order.unsandboxed && self.processes.protects().await?;
        let (settler, order) = (Arc::clone(&self.settler), order.clone());
        let work = move || Straight::begin(Arc::clone(&settler.changer), settler.roots.clone(), &order, has_walls);
        let taken = tokio::task::spawn_blocking(work).await;
        taken.map_err(|_| ToolError::internal("The workspace couldn't be looked at before the command."))?.map(Some)
    }

    fn settling(
        &self,
        process: Box<dyn Process>,
        landing: Landing,
        straight: Option<Arc<Straight>>,
    ) -> Box<dyn Process> {
        let undo = match (landing, &straight) {
            (Landing::AtItsEnd | Landing::WhenCommitted, _) => Holding::Held,
            (Landing::AtOnce, Some(_)) => Holding::Partly,
            (Landing::AtOnce, None) => Holding::NotHeld,
        };
        let settler = Arc::clone(&self.settler);
        Box::new(Settling { process, settler, landing, straight, undo, ended: None, settled: None })
    }
}

impl Processes for Commands {
    fn start(&self, order: Order) -> BoxFuture<'_, Result<Box<dyn Process>, ToolError>> {
        Box::pin(self.begin(order))
    }

    fn protects(&self) -> BoxFuture<'_, Result<bool, ToolError>> {
        self.processes.protects()
    }
}

/// A command whose changes are settled when it has ended.
struct Settling {
    process: Box<dyn Process>,
    settler: Arc<Settler>,
    landing: Landing,
    straight: Option<Arc<Straight>>,
    /// Whether its changes can be taken back.
    undo: Holding,
    ended: Option<i32>,
    settled: Option<Settled>,
}

impl Settling {
    async fn end(&mut self) -> Result<i32, ToolError> {
        if let Some(code) = self.ended {
            return Ok(code);
        }
        let code = self.process.wait().await?;
        self.ended = Some(code);
        let (apart, settler, landing) = (self.process.apart(), Arc::clone(&self.settler), self.landing);
        let straight = self.straight.take();
        let work = tokio::task::spawn_blocking(move || settler.settle(apart, straight, landing));
        let settled =
            work.await.map_err(|_| ToolError::internal("What the command changed couldn't be settled."))??;
        self.settled = Some(settled).filter(|settled| !settled.is_empty());
        Ok(code)
    }
}

impl Process for Settling {
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

    fn settled(&mut self) -> Option<Settled> {
        self.settled.take()
    }
}
