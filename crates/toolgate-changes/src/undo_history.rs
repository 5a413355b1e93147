//! Which changes are undone and which aren't, found from the recorded events alone. So `undo last` steps back one change
//! each time, whatever was undone, redone or failed to be undone before.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use jiff::Timestamp;
use serde::Deserialize;
use toolgate_contract::{Change, Event, EventPayload, FileState};

/// The changes of calls, in the order of their events.
#[derive(Debug, Default)]
pub struct UndoHistory {
    steps: Vec<(Timestamp, HistoryStep)>,
}

/// An event that matters here.
#[derive(Debug)]
enum HistoryStep {
    /// A call changed files.
    Changed { call: String, origin: ChangeOrigin, fingerprints: ChangeFingerprints },
    /// A call of the tool `undo` began.
    UndoStarted { call: String, target: UndoTarget },
    /// A call succeeded.
    Completed { call: String },
}

/// Where a change comes from.
#[derive(Debug, Clone)]
struct ChangeOrigin {
    run: String,
    turn: Option<u64>,
    agent: Option<String>,
}

/// Tells whether one change is the reverse of another: a change that failed, or was killed half way, is on record with its
/// reverse. The changes themselves would take too much memory.
#[derive(Debug, Clone, Copy)]
struct ChangeFingerprints {
    made: u64,
    reverse: u64,
}

impl ChangeFingerprints {
    fn of(changes: &[Change]) -> Self {
        let (mut made, mut reverse) = (DefaultHasher::new(), DefaultHasher::new());
        for Change { place, before, after, .. } in changes {
            let side = |state: &Option<FileState>| state.as_ref().map(|state| (state.sha256.clone(), state.mode));
            (place.root, &place.path, side(before), side(after)).hash(&mut made);
            (place.root, &place.path, side(after), side(before)).hash(&mut reverse);
        }
        Self { made: made.finish(), reverse: reverse.finish() }
    }
}

/// The arguments of the tool `undo`.
#[derive(Debug, Clone, Default, Deserialize)]
struct UndoTarget {
    call: Option<String>,
    run: Option<String>,
    turn: Option<u64>,
    agent: Option<String>,
}

impl UndoTarget {
    fn covers(&self, call: &str, origin: &ChangeOrigin) -> bool {
        self.call.as_ref().is_none_or(|wanted| wanted == call)
            && self.run.as_ref().is_none_or(|wanted| *wanted == origin.run)
            && self.turn.is_none_or(|wanted| Some(wanted) == origin.turn)
            && self.agent.as_ref().is_none_or(|wanted| Some(wanted) == origin.agent.as_ref())
    }
}

/// What became of a call's changes.
#[derive(Debug, Default)]
struct CallChanges {
    origins: Vec<ChangeOrigin>,
    /// The fingerprints of its changes that weren't reverted.
    made: Vec<u64>,
    /// The position of its last change.
    last: usize,
    /// Whether its changes count: they were made, and aren't undone.
    is_in_effect: bool,
    /// What it undoes, if it is an undo.
    undoes: Option<UndoTarget>,
    /// The calls that it undid.
    undone: Vec<String>,
}

impl UndoHistory {
    /// Adds an event of any run, in any order; most don't matter here.
    pub fn add(&mut self, event: &Event) {
        let Some(call) = event.tool_call_id.clone() else { return };
        let step = match &event.payload {
            EventPayload::FilesChanging { changes, .. }
                if changes.iter().any(|change| change.before != change.after) =>
            {
                let (run, turn, agent) = (event.run.clone(), event.turn, event.trace_id.clone());
                let (origin, fingerprints) = (ChangeOrigin { run, turn, agent }, ChangeFingerprints::of(changes));
                HistoryStep::Changed { call, origin, fingerprints }
            }
            EventPayload::CallStarted { tool, args, .. } if tool == "undo" => {
                HistoryStep::UndoStarted { call, target: serde_json::from_value(args.clone()).unwrap_or_default() }
            }
            EventPayload::CallCompleted(_) => HistoryStep::Completed { call },
            _ => return,
        };
        self.steps.push((event.time, step));
    }

    /// The calls whose changes aren't undone, the last one first. An undo isn't among them: it is undone by name.
    pub fn in_effect(mut self) -> Vec<String> {
        // The sort is stable: the events of one run stay in order.
        self.steps.sort_by_key(|(time, _)| *time);
        let mut calls: HashMap<String, CallChanges> = HashMap::new();
        for (position, (_, step)) in self.steps.into_iter().enumerate() {
            match step {
                HistoryStep::Changed { call, origin, fingerprints } => {
                    calls.entry(call).or_default().add(position, origin, fingerprints);
                }
                HistoryStep::UndoStarted { call, target } => calls.entry(call).or_default().undoes = Some(target),
                HistoryStep::Completed { call } => complete(&mut calls, &call),
            }
        }
        let mut left: Vec<(usize, String)> = calls
            .into_iter()
            .filter(|(_, changes)| changes.undoes.is_none() && changes.is_in_effect)
            .map(|(call, changes)| (changes.last, call))
            .collect();
        left.sort_unstable();
        left.into_iter().rev().map(|(_, call)| call).collect()
    }
}

impl CallChanges {
    /// Adds a change, or takes an earlier one away that this one reverts.
    fn add(&mut self, position: usize, origin: ChangeOrigin, ChangeFingerprints { made, reverse }: ChangeFingerprints) {
        if let Some(reverted) = self.made.iter().rposition(|earlier| *earlier == reverse) {
            self.made.remove(reverted);
            self.is_in_effect &= !self.made.is_empty();
            return;
        }
        self.made.push(made);
        self.origins.push(origin);
        self.last = position;
        // An undo counts once it has succeeded.
        self.is_in_effect |= self.undoes.is_none();
    }
}

/// A call succeeded: if it was an undo, what it covers is undone now.
fn complete(calls: &mut HashMap<String, CallChanges>, undo: &str) {
    let Some(target) = calls.get(undo).and_then(|changes| changes.undoes.clone()) else { return };
    let is_covered = |(call, changes): &(&String, &CallChanges)| {
        call.as_str() != undo && changes.origins.iter().any(|origin| target.covers(call, origin))
    };
    let mut covered: Vec<(usize, String)> =
        calls.iter().filter(is_covered).map(|(call, changes)| (changes.last, call.clone())).collect();
    // The last first: an undo among them gives back what it had undone, which may be covered too.
    covered.sort_unstable();
    let mut undone = Vec::new();
    for (_, call) in covered.into_iter().rev() {
        if calls.get(&call).is_some_and(|changes| changes.is_in_effect) {
            flip(calls, &call);
            undone.push(call);
        }
    }
    if let Some(changes) = calls.get_mut(undo) {
        (changes.is_in_effect, changes.undone) = (true, undone);
    }
}

/// Undoes a call's changes, or redoes them. If the call is an undo, the same happens the other way round to what it undid.
fn flip(calls: &mut HashMap<String, CallChanges>, call: &str) {
    let Some(changes) = calls.get_mut(call) else { return };
    changes.is_in_effect = !changes.is_in_effect;
    // Every undo comes after what it undid, so this ends.
    changes.undone.clone().iter().for_each(|undone| flip(calls, undone));
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolgate_contract::{CallEnding, Change, ErrorCode, FileState, ToolError, WorkspacePath};

    use super::*;

    /// What calls did, word by word: `a` changes a file, `a~` is killed and reverted, `u=a` undoes call a as call u, `u!a`
    /// tries that and fails, `u@r` undoes run r.
    fn in_effect(story: &str) -> Vec<String> {
        let mut history = UndoHistory::default();
        for (second, word) in story.split(' ').enumerate() {
            let at = |call: &str, run: &str, payload| Event {
                time: Timestamp::from_second(second as i64).unwrap(),
                run: run.into(),
                turn: None,
                trace_id: None,
                tool_call_id: Some(call.into()),
                payload,
            };
            let (call, sign, of) = match word.find(['=', '!', '@']) {
                Some(sign) => (&word[..sign], &word[sign..=sign], &word[sign + 1..]),
                None => (word, "", ""),
            };
            let (call, run) = call.split_once('/').map_or((call, "r"), |(run, call)| (call, run));
            if !sign.is_empty() {
                let args = if sign == "@" { json!({ "run": of }) } else { json!({ "call": of }) };
                history.add(&at(call, run, started("undo", args)));
            }
            let is_killed = call.ends_with('~');
            let call = call.trim_end_matches('~');
            history.add(&at(call, run, changed()));
            if is_killed {
                history.add(&at(call, run, reverted()));
                continue;
            }
            let ending = CallEnding::default();
            let ended = match sign {
                "!" => {
                    let error = ToolError::new(ErrorCode::IoError, "no");
                    EventPayload::CallFailed { class: error.code.class(), error, ending }
                }
                _ => EventPayload::CallCompleted(ending),
            };
            history.add(&at(call, run, ended));
        }
        history.in_effect()
    }

    fn started(tool: &str, args: serde_json::Value) -> EventPayload {
        EventPayload::CallStarted {
            tool: tool.into(),
            version: None,
            args,
            effects: Vec::new(),
            verdict: None,
            approval: None,
            risk: None,
            justification: None,
            hooked: None,
        }
    }

    fn changed() -> EventPayload {
        let after = Some(FileState::new("x", 1, 0o644));
        let place = WorkspacePath::in_workspace("f");
        let changes = vec![Change { path: "f".into(), place, before: None, after }];
        EventPayload::FilesChanging { changes, made: false }
    }

    fn reverted() -> EventPayload {
        let EventPayload::FilesChanging { mut changes, .. } = changed() else { unreachable!() };
        changes.iter_mut().for_each(|change| std::mem::swap(&mut change.before, &mut change.after));
        EventPayload::FilesChanging { changes, made: false }
    }

    #[test]
    fn what_is_left_to_undo() {
        let cases: &[(&str, &[&str])] = &[
            ("a b c", &["c", "b", "a"]),
            // Each undo steps back.
            ("a b c u=c", &["b", "a"]),
            ("a b c u=c v=b", &["a"]),
            ("a b u=b v=a", &[]),
            ("a b u=b c", &["c", "a"]),
            // A failed undo is passed over, and what it was for is still there.
            ("a b u!b", &["b", "a"]),
            ("a b u!b v=b", &["a"]),
            // Undoing an undo is a redo; it can be undone, and so on.
            ("a b u=b v=u", &["b", "a"]),
            ("a b u=b v=u w=b", &["a"]),
            ("a b u=b v=u w=v", &["a"]),
            ("a b u=b v=u w=v x=w", &["b", "a"]),
            // A run is undone as a whole, with the undos in it.
            ("q/a r/b r/c s/u@r", &["a"]),
            ("q/a r/b r/c s/u@r s/v=u", &["c", "b", "a"]),
            ("q/a r/b r/c r/u=c s/v@r", &["a"]),
            ("q/a r/b r/c r/u=c s/v@r s/w=v", &["b", "a"]),
            ("q/a r/u=a s/v@r", &["a"]),
            // What was killed half way is reverted already.
            ("a b~", &["a"]),
            ("a b b~ c", &["c", "b", "a"]),
            ("a~ b", &["b"]),
            // A call that goes on after it was undone is there again.
            ("a b u=b b", &["b", "a"]),
        ];
        for (story, left) in cases {
            assert_eq!(in_effect(story), *left, "{story}");
        }
    }

    #[test]
    fn turns_and_agents_are_told_apart_and_a_change_of_nothing_is_none() {
        let mut history = UndoHistory::default();
        let event = |call: &str, turn, agent: &str, second, payload| Event {
            time: Timestamp::from_second(second).unwrap(),
            run: "r".into(),
            turn: Some(turn),
            trace_id: Some(agent.into()),
            tool_call_id: Some(call.into()),
            payload,
        };
        history.add(&event("a", 1, "main", 1, changed()));
        history.add(&event("b", 2, "main", 2, changed()));
        history.add(&event("c", 2, "other", 3, changed()));
        let EventPayload::FilesChanging { mut changes, .. } = changed() else { unreachable!() };
        changes[0].before = changes[0].after.clone();
        history.add(&event("d", 3, "main", 4, EventPayload::FilesChanging { changes, made: false }));
        let args = json!({ "run": "r", "turn": 2, "agent": "main" });
        history.add(&event("u", 9, "person", 5, started("undo", args)));
        history.add(&event("u", 9, "person", 6, EventPayload::CallCompleted(CallEnding::default())));
        assert_eq!(history.in_effect(), ["c", "a"]);
    }
}
