//! The one path that every call takes, whoever asked.
//!
//! [`Gate::perform`] is the table of contents: find, validate, effects, judge, approve, record, lock, run, redact,
//! trim, record. A front end brings a [`Session`] with its [`Approver`] and [`EventSink`]; nothing else leads to a
//! tool, because a runnable call is a [`Cleared`] and only the gate makes one.

mod approval;
mod commit;
mod gate;
mod grants;
mod inquiry;
mod keeper;
mod locks;
mod nearest;
mod principal;
mod processes;
mod record;
pub mod redact;
mod registry;
mod release;
mod replay;
mod session;
mod skills;
mod steps;
pub mod trim;
mod undo;
mod validate;
mod version;
mod versions;

pub use toolgate_policy::{Bounds, Ceiling};

pub use approval::{Answer, ApprovalRequest, Approver, Desk, NobodyToAsk, Offer, OnDesk, Question, Rulebook};
pub use gate::{Cleared, Gate, Judgement, PolicyBorder};
pub use inquiry::{NobodyAnswers, Respondent};
pub use principal::Principal;
pub use processes::{Entry as ProcessEntry, Follow, Roster, Rosters};
pub use record::RunRecorder;
pub use registry::{Registry, RegistryError};
pub use release::Release;
pub use replay::{Replay, quoted};
pub use session::{EventSink, NobodyWatches, Recorder, Session};
pub use skills::SkillShelf;
pub use steps::Steps;
pub use undo::Undo;
