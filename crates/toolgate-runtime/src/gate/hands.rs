//! The hands of one call: what its tool touches the world with, wired to this session and held to what was granted.

mod call_hands;
mod effect_index;
mod entrusted;
mod files;
mod languages;
mod processes;
mod servers;
mod tally;
mod unfinished;

use std::sync::Arc;

use parking_lot::Mutex;
use toolgate_changes::{ChangeApplier, ChangeSettler};
use toolgate_contract::{Effect, EgressPolicy, LocatedEffect, SkillOrigin};

pub(super) use self::call_hands::CallHands;
use self::call_hands::ToolServices;
pub(super) use self::tally::{FurtherEffects, Tally};
use super::agent_notes::RedactedNotes;
use super::approval_options::hours_later;
use super::call_processes::CallProcesses;
use super::call_record::CallRecord;
use super::egress::CallEgress;
use super::event_writer::EventWriter;
use super::language_calls::LanguageCalls;
use super::person_channel::PersonChannel;
use super::server_calls::ServerCalls;
use crate::skills::SkillLoader;

/// How much of each end of a long stream is at hand, however little of it may be shown.
const LEAST_SHOWN: usize = 64 * 1024;

impl CallRecord<'_> {
    /// Hands that reach what was granted and nothing else.
    pub(super) fn hands(&self, granted: Arc<[LocatedEffect]>) -> CallHands {
        let (parts, session) = (&self.gate.parts, self.session);
        let (recorder, origin) = (Arc::clone(&session.recorder), Arc::clone(&self.origin));
        let changes = Arc::new(parts.changes.for_call(recorder, origin, session.id.clone()));
        let processes = Arc::new(self.processes(&changes));
        let services = ToolServices {
            files: Arc::clone(&parts.files),
            artifacts: Arc::clone(&session.artifacts),
            person: Arc::new(self.person_channel()),
            notes: Arc::new(self.notes()),
            skills: Arc::new(self.skill_loader()),
            hidden_paths: self.gate.hidden_paths(),
            scanner: Arc::clone(&self.gate.scanner),
            servers: Arc::new(ServerCalls {
                known: Arc::clone(&parts.servers),
                running: Arc::clone(&session.servers),
                processes: Arc::clone(&processes),
                policy: Arc::clone(&parts.policy),
                web: parts.web.clone(),
                listener: self.gate.lists.clone(),
                unstarted: Default::default(),
                called: Default::default(),
            }),
            languages: Arc::new(LanguageCalls {
                code: parts.code.clone(),
                running: Arc::clone(&self.gate.languages),
                processes: Arc::clone(&processes),
                memory_bytes: parts.settings.lsp.memory_bytes,
                enforced: Mutex::default(),
            }),
            processes,
            changes,
            web: parts.web.clone(),
            search: parts.search.clone(),
            egress: self.egress(),
            agents: session.agents.clone(),
            waits: session.waits,
            only_reads: self.verdict.as_ref().is_some_and(|verdict| verdict.only_reads),
            tool_call_id: self.call.tool_call_id.clone(),
            cancel: self.stop.clone(),
        };
        CallHands::new(granted, services)
    }

    fn person_channel(&self) -> PersonChannel {
        let (parts, session) = (&self.gate.parts, self.session);
        PersonChannel {
            recorder: Arc::clone(&session.recorder),
            sink: Arc::clone(&session.sink),
            answerer: session.question_answerer(),
            redactor: Arc::clone(&parts.redactor),
            clock: Arc::clone(&parts.clock),
            origin: Arc::clone(&self.origin),
        }
    }

    fn processes(&self, changes: &Arc<ChangeApplier>) -> CallProcesses {
        let (parts, session) = (&self.gate.parts, self.session);
        let (limits, _) = self.limits();
        let approved = self.verdict.as_ref().map(|verdict| verdict.named.clone()).unwrap_or_default();
        CallProcesses {
            launcher: parts.processes.clone(),
            settler: Arc::new(ChangeSettler { changer: Arc::clone(changes), approved }),
            locks: Arc::clone(&self.gate.locks),
            registry: Arc::clone(&session.processes),
            registries: Arc::clone(&self.gate.registries),
            limits: parts.settings.processes,
            shown: limits.bytes.max(LEAST_SHOWN),
            files: Arc::clone(&parts.files),
            hidden_paths: self.gate.hidden_paths(),
            scanner: Arc::clone(&self.gate.scanner),
            redactor: Arc::clone(&parts.redactor),
            artifacts: Arc::clone(&session.artifacts),
            clock: Arc::clone(&parts.clock),
            event_writer: EventWriter {
                recorder: Arc::clone(&session.recorder),
                sink: Arc::clone(&session.sink),
                followers: session.followers.clone(),
                clock: Arc::clone(&parts.clock),
                origin: Arc::clone(&self.origin),
            },
            session: session.id.clone(),
        }
    }

    /// Where this call may go; nowhere, if it neither runs nor connects.
    fn egress(&self) -> Option<Arc<dyn EgressPolicy>> {
        let goes_out = |located: &LocatedEffect| matches!(located.effect, Effect::Run { .. } | Effect::Connect { .. });
        let policy = &self.gate.parts.policy;
        let named = self.effects.iter().any(goes_out).then(|| policy.hosts_named(&self.granted()))?;
        Some(Arc::new(CallEgress::new(Arc::clone(policy), named)))
    }

    fn notes(&self) -> RedactedNotes {
        let parts = &self.gate.parts;
        RedactedNotes {
            store: parts.notes.clone(),
            redactor: Arc::clone(&parts.redactor),
            session: self.session.id.clone(),
        }
    }

    /// The origin of the skill that the call uses; none if it uses none, or there is no such skill.
    pub(super) fn skill_origin(&self) -> Option<SkillOrigin> {
        let named = self.effects.iter().find_map(|located| match &located.effect {
            Effect::Skill { name } => name.as_deref(),
            _ => None,
        });
        self.skill_loader().origin(named?)
    }

    fn skill_loader(&self) -> SkillLoader {
        let (parts, session, now) = (&self.gate.parts, self.session, self.gate.parts.clock.now());
        // A session that goes on in other programs has no end of its own, so it ends as its grants do.
        let until = session.waits.then(|| hours_later(now, parts.settings.grant_session_hours)).flatten();
        SkillLoader {
            skill_directories: Arc::clone(&parts.skill_directories),
            hidden_paths: self.gate.hidden_paths(),
            settings: Arc::clone(&parts.settings),
            active: Arc::clone(&session.skills),
            changes: Arc::clone(&parts.changes),
            run: session.run.clone(),
            now,
            until,
        }
    }
}
