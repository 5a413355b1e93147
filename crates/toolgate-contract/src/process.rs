//! Running commands, as a cleared tool sees it. How they are confined is for whoever implements this to know.

use crate::{BoxFuture, Enforced, Place, ToolError};

/// A command to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// A line for the shell.
    pub command: String,
    /// Where it starts.
    pub workdir: Place,
    /// What policy hides: the command must not see these.
    pub hidden: Vec<Place>,
    /// What policy lets nobody change: the command sees these as they are.
    pub protected: Vec<Place>,
}

/// Starts commands, confined as configuration says.
pub trait Processes: Send + Sync {
    /// Starts one, with nothing to read.
    fn start(&self, order: Order) -> BoxFuture<'_, Result<Box<dyn Process>, ToolError>>;
}

/// A command that runs. Dropping it kills everything that it has started.
pub trait Process: Send {
    /// The next piece of output; none when nobody holds either stream any more.
    fn output(&mut self) -> BoxFuture<'_, Option<Output>>;
    /// Waits until it and all that it started are gone. Gives its code as a shell would.
    fn wait(&mut self) -> BoxFuture<'_, Result<i32, ToolError>>;
    /// Which guarantees hold.
    fn enforced(&self) -> Enforced;
}

/// A piece of what a command writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// On its standard output.
    Out(Vec<u8>),
    /// On its standard error.
    Err(Vec<u8>),
}
