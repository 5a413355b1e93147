//! Commands whose call is cancelled: what they did until then is settled and on record, and nothing comes after.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value;

use super::{CallFacts, Driver, server_index};
use crate::attention::wait_until;
use crate::hold;
use crate::operation::{Act, Actor};
use crate::tree;
use crate::violation::Violation;

impl Driver {
    pub(super) fn cancel_during(&mut self, id: u32, by: Actor, act: &Act, after_us: u64) -> Result<(), Violation> {
        let (Some(index), Some((tool, args))) = (server_index(by), self.tool_call(act)) else {
            self.tally.idle += 1;
            return Ok(());
        };
        // Its start reads the record, too.
        self.server(index);
        let (started, _) = self.calls_on_record();
        let request = self.server(index).begin(tool, args);
        wait_until("the call is on record", || self.calls_on_record().0.len() > started.len());
        std::thread::sleep(Duration::from_micros(after_us));
        self.server(index).cancel(request);
        let (now, _) = self.calls_on_record();
        let call = now.difference(&started).next().cloned().unwrap_or_default();
        wait_until("the cancelled call has ended", || self.calls_on_record().1.contains(&call));
        let (before, after) = self.look();
        let changed = tree::diff(&before, &after);
        let is_on_record = changed.is_empty() || self.recorded().iter().any(|(recorded, _)| *recorded == call);
        hold!(is_on_record, NothingIsLost, "A cancelled call changed {changed:?}, and nothing is on record");
        self.history.add(Some(&call), &changed, false);
        let run = self.run_of(by);
        self.calls.insert(id, CallFacts { call, run, ..CallFacts::default() });
        self.count("cancel");
        Ok(())
    }

    /// The calls that have started, and those that have ended, in all runs.
    fn calls_on_record(&self) -> (BTreeSet<String>, BTreeSet<String>) {
        let (mut started, mut ended) = (BTreeSet::new(), BTreeSet::new());
        for run in std::fs::read_dir(self.world.state("runs")).into_iter().flatten().flatten() {
            let text = std::fs::read_to_string(run.path().join("events.jsonl")).unwrap_or_default();
            for event in text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
                let Some(call) = event["tool_call_id"].as_str().map(str::to_owned) else { continue };
                match event["kind"].as_str() {
                    Some("tool_call.started") => started.insert(call),
                    Some("tool_call.completed" | "tool_call.failed") => ended.insert(call),
                    _ => false,
                };
            }
        }
        (started, ended)
    }
}
