//! Approvals that were given before. A grant names a tool and the exact effects that were approved. A later call is
//! covered when each of its effects is, so a part of an earlier change is covered and a larger one isn't.

use jiff::Timestamp;
use toolgate_contract::{ApprovalScope, Effect, LocatedEffect, Verdict};
use toolgate_journal::Grant;
use toolgate_policy::{grant_pattern, is_instruction_kind};

/// The effects that need approval, normalized for comparison: paths as the workspace spells them, commands as the
/// narrowest useful pattern.
pub(crate) fn asked_effects(verdict: &Verdict, effects: &[LocatedEffect]) -> Vec<Effect> {
    if verdict.asks.iter().any(|ask| ask.effect.is_none()) {
        return effects.iter().map(normalized).collect();
    }
    let mut asked: Vec<Effect> = Vec::new();
    for effect in verdict.asks.iter().filter_map(|ask| ask.effect.as_ref()) {
        let stated = effects.iter().find(|located| located.effect == *effect).map(normalized);
        let effect = as_pattern(stated.as_ref().unwrap_or(effect));
        if !asked.contains(&effect) {
            asked.push(effect);
        }
    }
    asked
}

/// A command as a pattern, independent of its working directory and further arguments.
fn as_pattern(effect: &Effect) -> Effect {
    match effect {
        Effect::Run { command, .. } => {
            let command = grant_pattern(command).map_or_else(|| command.clone(), |pattern| pattern.to_string());
            Effect::Run { command, workdir: String::new() }
        }
        other => other.clone(),
    }
}

/// The effect with its path as the workspace spells it, so that `./a` and `a` are equal.
fn normalized(located: &LocatedEffect) -> Effect {
    let path = match &located.real {
        Some(place) if place.root == 0 => place.path.clone(),
        Some(place) => format!("root {}: {}", place.root, place.path),
        None => return located.effect.clone(),
    };
    match &located.effect {
        Effect::Read { .. } => Effect::Read { path },
        Effect::Write { .. } => Effect::Write { path },
        Effect::Delete { .. } => Effect::Delete { path },
        Effect::Restore { access, .. } => Effect::Restore { path, access: *access },
        other => other.clone(),
    }
}

/// Whether the grant is for a kind of instruction files: whichever tool was asked about first, a person is asked about a
/// kind once.
fn covers_for_every_tool(grant: &Grant, effect: &Effect) -> bool {
    matches!(effect, Effect::Write { path } if is_instruction_kind(path)) && grant.effects.contains(effect)
}

/// The widest scope under which every effect in `asked` was granted before, if all were.
pub(crate) fn covering(grants: &[Grant], tool: &str, asked: &[Effect], now: Timestamp) -> Option<ApprovalScope> {
    let live: Vec<&Grant> = grants
        .iter()
        .filter(|grant| grant.scope > ApprovalScope::Call)
        .filter(|grant| grant.expires.is_none_or(|expires| now < expires))
        .filter(|grant| grant.tool == tool || asked.iter().any(|effect| covers_for_every_tool(grant, effect)))
        .collect();
    let scope = live.iter().map(|grant| grant.scope).max()?;
    let is_covered = |effect: &Effect| {
        live.iter()
            .any(|grant| grant.tool == tool && grant.effects.contains(effect) || covers_for_every_tool(grant, effect))
    };
    asked.iter().all(is_covered).then_some(scope)
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolgate_contract::{Decision, Finding, Layer, RuleName};

    fn asking(commands: &[&str]) -> Verdict {
        let ask = |command: &&str| Finding {
            decision: Decision::Ask,
            effect: Some(Effect::Run { command: (*command).into(), workdir: "sub".into() }),
            name: RuleName { rule: "preset".into(), layer: Layer::Builtin },
            reason: String::new(),
            code: None,
        };
        let asks: Vec<Finding> = commands.iter().map(ask).collect();
        Verdict {
            decision: Decision::Ask,
            decided_by: asks[0].clone(),
            asks,
            confined: true,
            only_reads: false,
            lost: vec![],
        }
    }

    #[test]
    fn a_command_is_asked_for_by_its_pattern_wherever_it_runs() {
        let asked = asked_effects(&asking(&["git commit -m a", "git commit --amend", "sudo ls"]), &[]);
        let run = |command: &str| Effect::Run { command: command.into(), workdir: String::new() };
        assert_eq!(asked, [run("git commit *"), run("sudo ls")]);
    }

    fn grant(tool: &str, paths: &[&str], scope: ApprovalScope, expires: Option<Timestamp>) -> Grant {
        Grant {
            tool: tool.into(),
            effects: paths.iter().map(|path| Effect::write(*path)).collect(),
            scope,
            by: "ada".into(),
            at: Timestamp::UNIX_EPOCH,
            expires,
            run: "run".into(),
            session: "session".into(),
            tool_call_id: "call".into(),
        }
    }

    #[test]
    fn what_a_grant_covers() {
        let early = Timestamp::from_second(100).unwrap();
        let late = Timestamp::from_second(200).unwrap();
        let grants = [
            grant("patch", &["a", "b"], ApprovalScope::Run, None),
            grant("patch", &["c"], ApprovalScope::Session, Some(late)),
            grant("patch", &["d"], ApprovalScope::Call, None),
        ];
        let table: &[(&str, &[&str], Timestamp, bool)] = &[
            ("patch", &["a", "b"], early, true),
            ("patch", &["b"], early, true),
            ("patch", &["a", "c"], early, true),
            ("patch", &["a", "c"], late, false),
            ("patch", &["a", "x"], early, false),
            ("patch", &["d"], early, false),
            ("write", &["a"], early, false),
        ];
        for (tool, paths, now, expected) in table {
            let asked: Vec<Effect> = paths.iter().map(|path| Effect::write(*path)).collect();
            assert_eq!(covering(&grants, tool, &asked, *now).is_some(), *expected, "{tool} {paths:?}");
        }
        assert_eq!(covering(&[], "display", &[], early), None, "no grant covers nothing");
    }

    #[test]
    fn a_grant_for_a_kind_of_instructions_covers_every_tool() {
        let (now, kind) =
            (Timestamp::UNIX_EPOCH, toolgate_policy::instruction_kind("AGENTS.md").unwrap().name.as_str());
        let grants = [grant("write", &[kind, "a"], ApprovalScope::Session, None)];
        for (tool, paths, expected) in [
            ("write", &[kind, "a"][..], Some(ApprovalScope::Session)),
            ("edit", &[kind], Some(ApprovalScope::Session)),
            ("edit", &[kind, "a"], None),
            ("edit", &["a"], None),
        ] {
            let asked: Vec<Effect> = paths.iter().map(|path| Effect::write(*path)).collect();
            assert_eq!(covering(&grants, tool, &asked, now), expected, "{tool} {paths:?}");
        }
    }
}
