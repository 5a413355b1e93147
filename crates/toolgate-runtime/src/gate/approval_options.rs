//! What a person can answer to an approval request, and exactly what each answer would grant: to which tool, what, where,
//! and until when.

use jiff::{SignedDuration, Timestamp};
use toolgate_config::GrantDays;
use toolgate_contract::{ApprovalScope, Effect, counted};
use toolgate_policy::{REGISTRIES, is_instruction_kind};

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
    let what = record.clean(&what_is_granted(&record.call.name, asked));
    let mut options = vec![ApprovalOption { scope: ApprovalScope::Call, grants: "this one call".into(), until: None }];
    let hours = settings.grant_session_hours;
    if let (1.., Some(until)) = (hours, hours_later(now, hours)) {
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

/// A time so many hours after now; none where the calendar ends before.
pub(super) fn hours_later(now: Timestamp, hours: u64) -> Option<Timestamp> {
    later(now, hours.saturating_mul(60 * 60))
}

fn later(now: Timestamp, seconds: u64) -> Option<Timestamp> {
    now.checked_add(SignedDuration::from_secs(i64::try_from(seconds).ok()?)).ok()
}

/// A time to the minute, in UTC.
fn shown(time: Timestamp) -> String {
    time.strftime("%Y-%m-%d %H:%M UTC").to_string()
}

/// What would be granted to whom. A kind of instruction files is granted to every tool, everything else to this one.
pub(crate) fn what_is_granted(tool: &str, asked: &[Effect]) -> String {
    let is_kind = |effect: &Effect| matches!(effect, Effect::Write { path } if is_instruction_kind(path));
    let (kinds, rest): (Vec<Effect>, Vec<Effect>) = asked.iter().cloned().partition(is_kind);
    let own = format!("`{tool}` may {}", in_words_all(&rest));
    let of_every_tool = format!("every tool may {}", in_words_all(&kinds));
    match (kinds.is_empty(), rest.is_empty()) {
        (true, _) => own,
        (false, true) => of_every_tool,
        (false, false) => format!("{own}, and {of_every_tool}"),
    }
}

/// Effects in words; hosts are listed together, since each is connected to in the same way.
fn in_words_all(asked: &[Effect]) -> String {
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
        Effect::Connect { host, port } if host == REGISTRIES => {
            Some(format!("{host}:{port} (the package registries of the usual languages and distributions)"))
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_granted_says_to_whom() {
        let kind = toolgate_policy::instruction_kind("AGENTS.md").unwrap().name.as_str();
        for (asked, expected) in [
            (vec![Effect::delete("a")], "`write` may delete a".to_owned()),
            (vec![Effect::write(kind)], format!("every tool may write {kind}")),
            (
                vec![Effect::write(kind), Effect::delete("a")],
                format!("`write` may delete a, and every tool may write {kind}"),
            ),
            (vec![], "`write` may be called".to_owned()),
        ] {
            assert_eq!(what_is_granted("write", &asked), expected);
        }
    }
}
