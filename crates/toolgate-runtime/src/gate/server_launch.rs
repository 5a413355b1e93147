//! How a server is launched: confined like every command, without what policy hides at that moment.

use std::sync::Arc;

use toolgate_changes::CommittedView;
use toolgate_contract::{
    CancellationToken, ChildProcess, Files, LaunchSpec, RestrictedPaths, ServerLifetime, ToolError, WorkspacePath,
};

use super::call_processes::CallProcesses;
use super::command_settlement::as_seen;
use crate::servers::{CoveredPaths, RunningServer};

impl CallProcesses {
    /// Launches a server, and begins to speak to it.
    pub(super) async fn launch_server<C: ServerLifetime + ?Sized, F>(
        &self,
        spec: LaunchSpec,
        connect: impl FnOnce(Arc<dyn ChildProcess>) -> F,
    ) -> Result<RunningServer<C>, ToolError>
    where
        F: Future<Output = Result<Arc<C>, ToolError>>,
    {
        let is_confined = self.launcher()?.protects().await?;
        let restricted = self.restricted_paths().await?;
        let covered = covered(&restricted, self.files.as_ref());
        let (spec, child) = self.launch_confined(spec, restricted).await?;
        let enforced = child.enforced();
        let connection = connect(Arc::clone(&child)).await?;
        Ok(RunningServer::new(connection, Some(spec), is_confined, covered, enforced).of_child(child))
    }

    /// Launches a program without what policy hides.
    pub(super) async fn launch_confined(
        &self,
        spec: LaunchSpec,
        restricted: RestrictedPaths,
    ) -> Result<(LaunchSpec, Arc<dyn ChildProcess>), ToolError> {
        let launcher = self.launcher()?;
        let view = match launcher.protects().await? {
            true => CommittedView::Mounted,
            false => CommittedView::AsItIs,
        };
        let spec = as_seen(&self.settler, spec.restricted(restricted), view).await?;
        let child = launcher.launch(spec.clone()).await?;
        Ok((spec, child))
    }
}

/// The paths that policy takes from every command, with device and inode of what is there.
pub(super) fn covered(restricted: &RestrictedPaths, files: &dyn Files) -> CoveredPaths {
    let identity =
        |place: &WorkspacePath| files.node(place, false).ok().flatten().map(|node| (node.device, node.number));
    let places = restricted.hidden.iter().chain(&restricted.protected);
    places.map(|place| (place.clone(), identity(place))).collect()
}

/// What the work comes to, unless the call is cancelled before.
pub(super) async fn unless_cancelled<T>(
    cancel: &CancellationToken,
    work: impl Future<Output = Result<T, ToolError>>,
) -> Result<T, ToolError> {
    tokio::select! {
        biased;
        () = cancel.cancelled() => Err(ToolError::cancelled()),
        done = work => done,
    }
}
