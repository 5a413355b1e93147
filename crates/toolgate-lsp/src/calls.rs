//! Who calls a function, and what it calls, step by step.

use std::collections::HashSet;

use serde_json::{Value, json};
use tokio::time::Instant;
use toolgate_contract::{CallDirection, CodeCall, ServerHost};

use crate::connection::Connection;
use crate::documents::{Fault, at_position};
use crate::locations::ReadFiles;
use crate::protocol::{Position, Range};

/// Calls that are followed; further ones are left out.
pub(crate) const MOST_CALLS: usize = 500;

impl Connection {
    /// The calls around a function. The second value counts those in files that policy hides.
    pub(crate) async fn calls(
        &self,
        host: &dyn ServerHost,
        uri: &str,
        position: Position,
        (direction, depth): (CallDirection, u32),
        until: Instant,
    ) -> Result<(Vec<CodeCall>, usize), Fault> {
        if !self.offers("callHierarchyProvider", "textDocument/prepareCallHierarchy") {
            return Err(self.lacks("follow calls").into());
        }
        let answer = self.peer.request("textDocument/prepareCallHierarchy", at_position(uri, position), until).await?;
        let mut level: Vec<Value> = answer.as_array().cloned().unwrap_or_default();
        let (mut calls, mut hidden, mut seen) = (Vec::new(), 0, HashSet::new());
        let mut read = ReadFiles::default();
        for step in 1..=depth {
            let mut next = Vec::new();
            for item in level {
                if !seen.insert(identity(&item)) || calls.len() >= MOST_CALLS {
                    continue;
                }
                for call in self.calls_of(&item, direction, until).await? {
                    let other = &call[side(direction)];
                    hidden += self.add_call(host, &mut read, &mut calls, step, direction, &item, &call);
                    next.push(other.clone());
                }
            }
            level = next;
        }
        calls.dedup();
        Ok((calls, hidden))
    }

    async fn calls_of(&self, item: &Value, direction: CallDirection, until: Instant) -> Result<Vec<Value>, Fault> {
        let method = match direction {
            CallDirection::Incoming => "callHierarchy/incomingCalls",
            CallDirection::Outgoing => "callHierarchy/outgoingCalls",
        };
        let answer = self.peer.request(method, json!({ "item": item }), until).await?;
        Ok(answer.as_array().cloned().unwrap_or_default())
    }

    #[allow(clippy::too_many_arguments, reason = "everything that one line of the answer is made of")]
    fn add_call(
        &self,
        host: &dyn ServerHost,
        read: &mut ReadFiles,
        calls: &mut Vec<CodeCall>,
        depth: u32,
        direction: CallDirection,
        item: &Value,
        call: &Value,
    ) -> usize {
        let other = &call[side(direction)];
        let (caller, callee) = match direction {
            CallDirection::Incoming => (other, item),
            CallDirection::Outgoing => (item, other),
        };
        // Where the call is written is always in the caller.
        let uri = caller["uri"].as_str().unwrap_or_default();
        let place = self.place_of(uri);
        if place.as_ref().is_some_and(|place| host.hides(place)) {
            return 1;
        }
        let source = read.read(self, host, uri);
        for range in call["fromRanges"].as_array().into_iter().flatten().filter_map(Range::of) {
            let place = self.place_in_words(host, uri, place.as_ref(), source.as_deref(), range.start, None);
            calls.push(CodeCall { depth, caller: name(caller), callee: name(callee), place });
        }
        0
    }
}

fn side(direction: CallDirection) -> &'static str {
    match direction {
        CallDirection::Incoming => "from",
        CallDirection::Outgoing => "to",
    }
}

fn name(item: &Value) -> String {
    item["name"].as_str().unwrap_or_default().to_owned()
}

fn identity(item: &Value) -> String {
    format!("{} {} {}", item["uri"], item["selectionRange"], item["name"])
}
