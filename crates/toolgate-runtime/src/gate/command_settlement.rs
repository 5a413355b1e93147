//! How a command's changes are settled: decided when it is launched, done when it has ended. A command that works in place
//! begins with a snapshot.

use std::sync::Arc;
use std::time::Duration;

use toolgate_changes::{ChangeSettler, CommittedView, InPlaceCommand};
use toolgate_contract::{
    ApplyMode, CancellationToken, ChildProcess, ErrorCode, GuaranteeLevel, LaunchSpec, ProcessLauncher, SettledChanges,
    StagedChanges, ToolError,
};

/// How the changes of one command are settled.
pub(crate) struct CommandSettlement {
    settler: Arc<ChangeSettler>,
    apply_mode: ApplyMode,
    /// The snapshot of the workspace before the command; none where changes are staged, or can't be recorded.
    in_place: Option<Arc<InPlaceCommand>>,
}

impl CommandSettlement {
    /// Launches a command whose changes are settled like this.
    pub(super) async fn launch(
        settler: &Arc<ChangeSettler>,
        launcher: &dyn ProcessLauncher,
        mut spec: LaunchSpec,
    ) -> Result<(Arc<dyn ChildProcess>, Self), ToolError> {
        spec.apply_mode = spec.decide_apply_mode(settler.stages_changes())?;
        if spec.apply_mode == ApplyMode::InPlace {
            return Self::launch_in_place(settler, launcher, spec).await;
        }
        let seen = as_seen(settler, spec.clone(), CommittedView::AsItIs).await?;
        match launcher.launch(seen).await {
            // Changes can't be staged here, so the workspace is compared with a snapshot.
            Err(error) if error.code == ErrorCode::SandboxUnavailable && spec.apply_mode == ApplyMode::AtEnd => {
                spec.apply_mode = spec.decide_apply_mode(false)?;
                Self::launch_in_place(settler, launcher, spec).await
            }
            launched => {
                let (settler, apply_mode) = (Arc::clone(settler), spec.apply_mode);
                Ok((launched?, Self { settler, apply_mode, in_place: None }))
            }
        }
    }

    async fn launch_in_place(
        settler: &Arc<ChangeSettler>,
        launcher: &dyn ProcessLauncher,
        spec: LaunchSpec,
    ) -> Result<(Arc<dyn ChildProcess>, Self), ToolError> {
        let is_confined = !spec.unsandboxed && launcher.protects().await?;
        let view = if is_confined { CommittedView::Mounted } else { CommittedView::AsItIs };
        let spec = as_seen(settler, spec, view).await?;
        let (apply_mode, in_place) = (spec.apply_mode, snapshot(settler, &spec, is_confined).await?);
        match launcher.launch(spec).await {
            Ok(child) => Ok((child, Self { settler: Arc::clone(settler), apply_mode, in_place })),
            Err(error) => {
                in_place.into_iter().for_each(|in_place| in_place.release_snapshot());
                Err(error)
            }
        }
    }

    /// Whether the changes can be undone.
    pub(super) fn undo(&self) -> GuaranteeLevel {
        match (self.apply_mode, &self.in_place) {
            (ApplyMode::AtEnd | ApplyMode::OnCommit | ApplyMode::None, _) => GuaranteeLevel::Held,
            (ApplyMode::InPlace, Some(_)) => GuaranteeLevel::Partly,
            (ApplyMode::InPlace, None) => GuaranteeLevel::NotHeld,
        }
    }

    /// Whether the command can change nothing.
    pub(crate) fn is_read_only(&self) -> bool {
        self.apply_mode == ApplyMode::None
    }

    /// Settles what the command changed, once it has ended; none if there is nothing to report. Staged changes whose comparing
    /// takes longer than this are kept as a rehearsal.
    pub(crate) async fn settle(
        &self,
        mut staged: Option<Box<dyn StagedChanges>>,
        longest: Duration,
    ) -> Result<Option<SettledChanges>, ToolError> {
        let stop = CancellationToken::new();
        if longest.is_zero() {
            stop.cancel();
        }
        if let Some(staged) = staged.as_mut() {
            staged.stop_comparing(stop.clone());
        }
        let (settler, in_place, apply_mode) = (Arc::clone(&self.settler), self.in_place.clone(), self.apply_mode);
        let mut work = tokio::task::spawn_blocking(move || settler.settle(staged, in_place, apply_mode));
        let done = tokio::select! {
            biased;
            done = &mut work => done,
            () = tokio::time::sleep(longest) => {
                stop.cancel();
                work.await
            }
        };
        let settled = done.map_err(|_| ToolError::internal("The command's changes couldn't be settled."))??;
        Ok(Some(settled).filter(|settled| !settled.is_empty()))
    }
}

/// The command with hidden files as it sees them, given what git has committed of them.
pub(super) async fn as_seen(
    settler: &Arc<ChangeSettler>,
    spec: LaunchSpec,
    view: CommittedView,
) -> Result<LaunchSpec, ToolError> {
    let settler = Arc::clone(settler);
    let work = move || {
        let seen = settler.as_seen_by_commands(spec.restrictions(), view);
        spec.restricted(seen)
    };
    let looked = tokio::task::spawn_blocking(work).await;
    looked.map_err(|_| ToolError::internal("What git has of hidden files couldn't be looked up."))
}

/// Takes a snapshot before the command begins; none where changes can't be recorded.
pub(super) async fn snapshot(
    settler: &Arc<ChangeSettler>,
    spec: &LaunchSpec,
    is_confined: bool,
) -> Result<Option<Arc<InPlaceCommand>>, ToolError> {
    if !settler.is_recorded() {
        return Ok(None);
    }
    let (settler, spec) = (Arc::clone(settler), spec.clone());
    let work = move || settler.begin_in_place(&spec, is_confined);
    let taken = tokio::task::spawn_blocking(work).await;
    taken.map_err(|_| ToolError::internal("The snapshot of the workspace couldn't be taken."))?.map(Some)
}
