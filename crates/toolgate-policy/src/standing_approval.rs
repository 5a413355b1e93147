//! Whether a person may approve something for longer than one session: only what is known exactly, and what the user's
//! own word can answer.

use toolgate_contract::{Effect, Finding, Layer};

use crate::commands::grant_pattern;
use crate::host::Host;
use crate::instruction_files::is_instruction_kind;

/// Whether "always" can be offered for all of these asks. Not if a rule of the administrator asks, if the command isn't
/// plain, or if the path is outside of the workspace.
pub fn may_be_standing(asks: &[Finding]) -> bool {
    asks.iter().all(|ask| ask.name.layer <= Layer::User && ask.effect.as_ref().is_none_or(is_exact))
}

fn is_exact(effect: &Effect) -> bool {
    match effect {
        // An approval for all files of a kind ends with its session.
        Effect::Write { path } if is_instruction_kind(path) => false,
        Effect::Read { path }
        | Effect::Write { path }
        | Effect::Delete { path }
        | Effect::Entry { path, .. }
        | Effect::Restore { path, .. } => is_below_workspace(path),
        Effect::Connect { host, .. } => Host::read(host).is_ok(),
        Effect::Run { command, .. } => grant_pattern(command).is_some(),
        // Running without the sandbox is approved for each call; input for one process says nothing about the next one.
        Effect::Unsandboxed { .. } | Effect::Feed { .. } => false,
        Effect::Speak
        | Effect::Recall { .. }
        | Effect::Attend { .. }
        | Effect::Note { .. }
        | Effect::Skill { .. }
        | Effect::Delegate { .. }
        | Effect::UseServer { .. } => true,
    }
}

/// Whether a path is relative, doesn't leave the workspace, and isn't the workspace itself.
fn is_below_workspace(path: &str) -> bool {
    let mut depth = 0_usize;
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if depth == 0 => return false,
            ".." => depth -= 1,
            _ => depth += 1,
        }
    }
    !path.starts_with('/') && depth > 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{compiled, connect, judge_tool, layer, policy, run, tool};
    use toolgate_config::ConfigLayer;
    use toolgate_contract::{Decision, Risk};

    const ASKS: &str = "rules = [{ decision = 'ask', path = 'odd' }, { decision = 'ask', permission = 'proc.exec' }]";

    #[test]
    fn what_is_known_exactly_may_be_approved_always() {
        let probe = tool("probe", Risk::High, &[]);
        for effect in [
            Effect::delete("a.txt"),
            Effect::delete("x/./b/../c[1].txt"),
            Effect::write("odd/{a,b}"),
            connect("Example.com."),
            run("git commit -m 'all * done'"),
        ] {
            let verdict = judge_tool(&policy(ASKS), &probe, std::slice::from_ref(&effect), &[]);
            assert_eq!(verdict.decision, Decision::Ask, "{effect}");
            assert!(may_be_standing(&verdict.asks), "{effect}");
        }
    }

    #[test]
    fn what_the_user_alone_cannot_answer_is_not_offered() {
        let probe = tool("probe", Risk::Low, &[]);
        let managed = |text: &str| -> ConfigLayer { layer(Layer::Managed, text) };
        for (text, effect) in [
            ("rules = [{ decision = 'ask', path = 'a' }]", Effect::read("a")),
            ("commands.unknown = 'ask'", run("a $b")),
            ("", Effect::delete("/abs")),
            ("", Effect::delete(".")),
        ] {
            let policy = compiled(vec![managed(text)]).policy;
            let verdict = judge_tool(&policy, &probe, &[effect.clone(), connect("example.com")], &[]);
            assert_eq!(verdict.decision, Decision::Ask, "{effect}");
            assert!(!may_be_standing(&verdict.asks), "{effect}");
        }
    }

    #[test]
    fn an_unknown_command_is_never_approved_always() {
        let probe = tool("probe", Risk::Low, &[]);
        let verdict = judge_tool(&policy("commands.unknown = 'ask'"), &probe, &[run("a $b")], &[]);
        assert_eq!(verdict.decision, Decision::Ask);
        assert!(!may_be_standing(&verdict.asks));
    }
}
