//! Commands for one call: what each of them changed is settled when it has ended, before anybody hears of its end.

use std::sync::Arc;

use toolgate_contract::{
    BoxFuture, Controls, Enforced, Landing, Order, Output, Process, Processes, Settled, ToolError,
};

use super::settler::Settler;

/// Starts commands and settles what they changed.
pub(super) struct Commands {
    pub(super) processes: Arc<dyn Processes>,
    pub(super) settler: Arc<Settler>,
}

impl Commands {
    async fn begin(&self, mut order: Order) -> Result<Box<dyn Process>, ToolError> {
        if order.landing == Landing::AtItsEnd && !self.settler.keeps_apart() {
            order.landing = Landing::AtOnce;
        }
        let landing = order.landing;
        let process = self.processes.start(order).await?;
        Ok(Box::new(Settling { process, settler: Arc::clone(&self.settler), landing, ended: None, settled: None }))
    }
}

impl Processes for Commands {
    fn start(&self, order: Order) -> BoxFuture<'_, Result<Box<dyn Process>, ToolError>> {
        Box::pin(self.begin(order))
    }
}

/// A command whose changes are settled when it has ended.
struct Settling {
    process: Box<dyn Process>,
    settler: Arc<Settler>,
    landing: Landing,
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
        let work = tokio::task::spawn_blocking(move || settler.settle(apart, landing));
        let settled = work.await.map_err(|_| ToolError::internal("What the command changed couldn't be settled."))?;
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
        self.process.enforced()
    }

    fn settled(&mut self) -> Option<Settled> {
        self.settled.take()
    }
}
