//! What a person can answer to an approval request, and exactly what each answer would grant: to which tool, what, where,
//! and until when.

use jiff::{SignedDuration, Timestamp};
use toolgate_config::GrantDays;
use toolgate_contract::{ApprovalScope, Effect};

use super::call_record::CallRecord;
use crate::approval::ApprovalOption;

/// What each answer would grant, narrowest first. A run that ends with its one call isn't offered, and "always" only
/// where it can be a standing approval of the user's.
pub(super) fn approval_options(
    record: &CallRecord<'_>,
    may_be_standing: bool,
    asked: &[Effect],
) -> Vec<ApprovalOption> {
    let (session, settings) = (record.session, &record.gate.parts.settings);
    let now = record.gate.parts.clock.now();
    let what = record.clean(&format!("`{}` may {}", record.call.name, what_is_granted(asked)));
    let mut options = vec![ApprovalOption { scope: ApprovalScope::Call, grants: "this one call".into(), until: None }];
    let hours = settings.grant_session_hours;
    if let (1.., Some(until)) = (hours, later(now, hours.saturating_mul(60 * 60))) {
        let mut push = |scope, end: String| {
            options.push(ApprovalOption { scope, grants: format!("{what}, {end}"), until: Some(until) });
        };
        let most = format!("after {} at the latest", counted(hours, "hour"));
        match session.waits {
            true => {
                let end = format!("in the session `{}` of this workspace, until {}", session.id, shown(until));
                push(ApprovalScope::Session, format!("{end} ({})", counted(hours, "hour")));
            }
            false => {
                push(ApprovalScope::Run, format!("until this run ends, {most}"));
                push(ApprovalScope::Session, format!("until this session ends, {most}"));
            }
        }
    }
    let workspace = session.recorder.workspace().path;
    let until = match settings.grant_always_days {
        GrantDays::Unlimited => Some((None, "without an end, until you revoke it".to_owned())),
        GrantDays::Days(0) => None,
        GrantDays::Days(days) => later(now, days.saturating_mul(24 * 60 * 60))
            .map(|until| (Some(until), format!("until {} ({})", shown(until), counted(days, "day")))),
    };
    if let (true, false, Some((until, end))) = (may_be_standing, workspace.is_empty(), until) {
        let grants = format!("{what}, in every session of this workspace ({workspace}), {end}");
        options.push(ApprovalOption { scope: ApprovalScope::Always, grants, until });
    }
    options
}

fn later(now: Timestamp, seconds: u64) -> Option<Timestamp> {
    now.checked_add(SignedDuration::from_secs(i64::try_from(seconds).ok()?)).ok()
}

/// A time to the minute, in UTC.
fn shown(time: Timestamp) -> String {
    time.strftime("%Y-%m-%d %H:%M UTC").to_string()
}

fn counted(number: u64, unit: &str) -> String {
    format!("{number} {unit}{}", if number == 1 { "" } else { "s" })
}

/// Everything that would be granted; hosts are listed together, since each is connected to in the same way.
pub(crate) fn what_is_granted(asked: &[Effect]) -> String {
    let is_host = |effect: &&Effect| matches!(effect, Effect::Connect { .. });
    let mut what: Vec<String> = asked.iter().filter(|effect| !is_host(effect)).map(in_words).collect();
    let hosts: Vec<String> = asked.iter().filter_map(host_and_port).collect();
    match hosts.split_last() {
        Some((last, [])) => what.push(format!("connect to {last}")),
        Some((last, first)) => what.push(format!("connect to {} and {last}", first.join(", "))),
        None => {}
    }
    if what.is_empty() { "be called".into() } else { what.join(", ") }
}

fn host_and_port(effect: &Effect) -> Option<String> {
    match effect {
        Effect::Connect { host, port } => Some(format!("{host}:{port}")),
        _ => None,
    }
}

/// What would be granted; of a pattern, what else it covers.
fn in_words(effect: &Effect) -> String {
    match effect {
        Effect::Run { command, .. } => match command.strip_suffix(" *") {
            Some(start) => format!("run `{command}` (whatever begins with `{start}`)"),
            None => format!("run `{command}` (exactly this)"),
        },
        other => other.to_string(),
    }
}
