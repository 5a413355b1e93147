//! Makes a sequence that violates an invariant shorter, by leaving operations and parts of scripts out as long as a
//! violation of the same class remains.

use std::time::{Duration, Instant};

use crate::mutation::Mutation;
use crate::operation::{Act, Operation};

/// The shortest sequence found that still `fails`.
///
/// It takes no longer than `longest`; what was found until then is the answer.
pub(crate) fn shrink(
    operations: &[Operation],
    longest: Duration,
    mut fails: impl FnMut(&[Operation]) -> bool,
) -> Vec<Operation> {
    let end = Instant::now() + longest;
    let mut left = operations.to_vec();
    let mut size = left.len().div_ceil(2);
    while size > 0 && Instant::now() < end {
        let mut from = 0;
        let mut has_shrunk = false;
        while from < left.len() && Instant::now() < end {
            let mut fewer = left.clone();
            fewer.drain(from..(from + size).min(left.len()));
            if !fewer.is_empty() && fails(&fewer) {
                left = fewer;
                has_shrunk = true;
            } else {
                from += size;
            }
        }
        if !has_shrunk || size > left.len() {
            size = if size == 1 { 0 } else { size.div_ceil(2) };
        }
    }
    shrink_scripts(&mut left, &mut fails, end);
    left
}

fn shrink_scripts(left: &mut Vec<Operation>, fails: &mut impl FnMut(&[Operation]) -> bool, end: Instant) {
    for index in 0..left.len() {
        let mut part = 0;
        while script_of(&mut left[index].act).is_some_and(|script| script.len() > 1 && part < script.len()) {
            if Instant::now() > end {
                return;
            }
            let mut fewer = left.clone();
            if let Some(script) = script_of(&mut fewer[index].act) {
                script.remove(part);
            }
            if fails(&fewer) { *left = fewer } else { part += 1 }
        }
    }
}

fn script_of(act: &mut Act) -> Option<&mut Vec<Mutation>> {
    match act {
        Act::Script(script) | Act::Shell(_, script) | Act::Begin(_, script) | Act::Feed(_, script) => Some(script),
        Act::Rehearse(script) => Some(script),
        Act::KillDuring(act, _) | Act::CancelDuring(act, _) => script_of(act),
        _ => None,
    }
}

#[test]
fn only_what_is_needed_remains() {
    let operations = crate::vocabulary::sequence(3, 60, &Default::default());
    let needs = |left: &[Operation]| [7, 33].iter().all(|id| left.iter().any(|one| one.id == *id));
    let ids: Vec<u32> = shrink(&operations, Duration::from_secs(60), needs).iter().map(|one| one.id).collect();
    assert_eq!(ids, [7, 33]);
}
