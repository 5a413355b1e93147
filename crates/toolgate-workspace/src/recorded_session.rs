//! The session of a client, with the run that it is recorded in.

use std::sync::Arc;

use toolgate_contract::RunFacts;
use toolgate_journal::{Run, RunRecorder};
use toolgate_runtime::Session;

use crate::error::WorkspaceError;
use crate::workspace::Workspace;

/// Which run and session a client's calls belong to.
pub struct RunChoice {
    /// An earlier run to go on with; a new one otherwise.
    pub run: Option<String>,
    /// The session.
    pub session: String,
    /// Who brings the calls.
    pub front_end: &'static str,
}

/// A session, and the run that it is recorded in.
pub struct RecordedSession {
    /// The session.
    pub session: Session,
    /// The run.
    pub run: Arc<Run>,
}

impl Workspace {
    /// Begins a run, or goes on with one.
    pub fn begin(&self, choice: &RunChoice) -> Result<RecordedSession, WorkspaceError> {
        match &choice.run {
            Some(run) => self.session_in(Arc::new(self.state.open_run(run, &self.run_options)?), &choice.session),
            None => self.begin_as(&format!("run_{}", self.clock.id().simple()), choice),
        }
    }

    /// Begins a run under this id.
    pub fn begin_as(&self, run: &str, choice: &RunChoice) -> Result<RecordedSession, WorkspaceError> {
        let (session, front_end) = (choice.session.clone(), choice.front_end.into());
        let facts = RunFacts { session, front_end, ..self.facts.clone() };
        self.session_in(Arc::new(self.state.begin_run(run, facts, &self.run_options)?), &choice.session)
    }

    /// A session that is recorded in this run.
    pub fn session_in(&self, run: Arc<Run>, session: &str) -> Result<RecordedSession, WorkspaceError> {
        let recorder = self.recorder_of(&run, session)?;
        let artifacts = Arc::clone(&run.artifacts);
        let mut session = Session::new(session, &run.id, Arc::new(recorder), artifacts);
        session.queue.clone_from(&self.approvals);
        session.followers = Some(Arc::clone(&self.followers) as _);
        Ok(RecordedSession { session, run })
    }

    /// Limits a session as the skills do that were loaded earlier in it: in the session, if it goes on in other programs,
    /// otherwise in its run.
    pub fn limited_by_skills(&self, session: Session, run: &Run) -> Result<Session, WorkspaceError> {
        let stored = match session.waits {
            true => self.state.skill_limits(&session.id, &self.run_options)?,
            false => run.skill_limits(&self.run_options),
        };
        Ok(session.limited_by(stored, self.clock.now())?)
    }

    /// The recorder of a session in a run.
    pub fn recorder_of(&self, run: &Arc<Run>, session: &str) -> Result<RunRecorder, WorkspaceError> {
        self.state.check_session(session)?;
        if self.run_options.key.is_none() {
            (self.warn)("There is no signing key, so approvals are forgotten when this program ends.");
        }
        if let Some(grants) = &self.grants {
            grants.grants(self.clock.now())?.warnings.iter().for_each(|warning| (self.warn)(warning));
        }
        Ok(RunRecorder::new(Arc::clone(run), self.grants.clone()))
    }
}
