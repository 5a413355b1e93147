//! A command whose changes are counted when it has ended, so that no tool can forget to report them.

use std::sync::{Arc, Mutex, PoisonError};

use crate::{Apart, BoxFuture, Enforced, Output, Process, Settled, Tally, ToolError};

/// Paths that a reply names at the most; the numbers tell of the rest.
const MOST_PATHS: usize = 200;

pub(crate) struct Counted {
    pub(crate) process: Box<dyn Process>,
    pub(crate) tally: Arc<Mutex<Tally>>,
    pub(crate) settled: Option<Settled>,
}

impl Counted {
    async fn end(&mut self) -> Result<i32, ToolError> {
        let code = self.process.wait().await?;
        if let Some(settled) = self.process.settled() {
            let mut tally = self.tally.lock().unwrap_or_else(PoisonError::into_inner);
            if settled.rehearsal.is_none() {
                let path = |line: &String| line.get(1..).unwrap_or_default().to_owned();
                tally.files_changed.extend(settled.paths.iter().take(MOST_PATHS).map(path));
            }
            self.settled = Some(settled);
        }
        Ok(code)
    }
}

impl Process for Counted {
    fn output(&mut self) -> BoxFuture<'_, Option<Output>> {
        self.process.output()
    }

    fn wait(&mut self) -> BoxFuture<'_, Result<i32, ToolError>> {
        Box::pin(self.end())
    }

    fn enforced(&self) -> Enforced {
        self.process.enforced()
    }

    fn stop(&mut self) {
        self.process.stop();
    }

    fn apart(&mut self) -> Option<Box<dyn Apart>> {
        self.process.apart()
    }

    fn settled(&mut self) -> Option<Settled> {
        self.settled.take()
    }
}
