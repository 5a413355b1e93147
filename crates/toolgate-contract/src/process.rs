//! Running commands, as a cleared tool sees it. How they are confined is for whoever implements this to know.

use std::sync::{Arc, Mutex, PoisonError};

use crate::{
    Access, Border, BoxFuture, Denial, Enforced, EntryKind, Files, Place, Step, ToolError, Veil, Visitor, WalkOptions,
    Walked,
};

/// A command to start.
#[derive(Debug, Clone)]
pub struct Order {
    /// A line for the shell.
    pub command: String,
    /// Where it starts.
    pub workdir: Place,
    /// What policy hides: the command must not see these.
    pub hidden: Vec<Place>,
    /// What policy lets nobody change: the command sees these as they are.
    pub protected: Vec<Place>,
    /// What it may change beside the workspace: absolute paths that exist.
    pub writable: Vec<String>,
    /// Whether it runs with no sandbox around it.
    pub unsandboxed: bool,
    /// What it may reach over the network; none means nothing.
    pub border: Option<Arc<dyn Border>>,
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
    /// What confinement kept from it so far. The errors that it wrote tell what it tried to do with files.
    fn denials(&self, _errors: &str) -> Vec<Denial> {
        Vec::new()
    }
}

/// A piece of what a command writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// On its standard output.
    Out(Vec<u8>),
    /// On its standard error.
    Err(Vec<u8>),
}

/// Of some folders policy guards the name and not all that is in them: `.git` stays where it is, and git works in it.
fn is_guarded_whole(veil: &dyn Veil, walked: &Walked<'_>) -> bool {
    let within = Place { root: walked.place.root, path: format!("{}/anything", walked.place.path) };
    walked.kind != EntryKind::Folder || veil.hides(Access::Write, &within)
}

/// What in the workspace policy hides from everybody, and what it lets nobody change: a command must not get at these
/// either.
pub fn out_of_bounds(files: &dyn Files, veil: &dyn Veil) -> Result<(Vec<Place>, Vec<Place>), ToolError> {
    let (hidden, protected) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
    let push = |list: &Mutex<Vec<Place>>, place: &Place| {
        list.lock().unwrap_or_else(PoisonError::into_inner).push(place.clone());
        Step::Past
    };
    let visitors = || -> Visitor<'_> {
        Box::new(|walked: &Walked<'_>| {
            if veil.hides(Access::Read, walked.place) {
                push(&hidden, walked.place)
            } else if veil.hides(Access::Write, walked.place) && is_guarded_whole(veil, walked) {
                push(&protected, walked.place)
            } else {
                Step::On
            }
        })
    };
    let everything = WalkOptions { hidden: true, ..WalkOptions::default() };
    files.walk(&Place::in_workspace(""), &everything, &visitors)?;
    let sorted = |list: Mutex<Vec<Place>>| {
        let mut list = list.into_inner().unwrap_or_else(PoisonError::into_inner);
        list.sort();
        list
    };
    Ok((sorted(hidden), sorted(protected)))
}
