//! The rules that the approval "always" writes: the narrowest rules that answer exactly these asks, as data and as text
//! to append to the user's configuration.

use serde::Serialize;
use toolgate_config::RuleConfig;
use toolgate_contract::{Access, Decision, Declaration, Effect, Finding, Layer};

use crate::commands::grant_pattern;
use crate::host::Host;
use crate::instruction_files::is_instruction_kind;
use crate::path_glob::escape;

/// The rules in the user's layer that would answer all of these asks. Empty if one of them can't be answered there (a
/// managed rule asks, the command isn't plain, the path isn't relative): then "always" can't be offered.
pub fn standing_rules(tool: &Declaration, asks: &[Finding]) -> Vec<RuleConfig> {
    let rules: Option<Vec<_>> = asks.iter().map(|ask| standing_rule(tool, ask)).collect();
    let mut distinct: Vec<RuleConfig> = Vec::new();
    for rule in rules.unwrap_or_default() {
        if !distinct.contains(&rule) {
            distinct.push(rule);
        }
    }
    distinct
}

fn standing_rule(tool: &Declaration, ask: &Finding) -> Option<RuleConfig> {
    if ask.name.layer > Layer::User {
        return None;
    }
    let reason = Some("You allowed this always.".to_owned());
    let allow = RuleConfig { reason, ..RuleConfig::new(Decision::Allow) };
    match &ask.effect {
        // No pattern stands for all files of the kind.
        Some(Effect::Write { path }) if is_instruction_kind(path) => None,
        Some(Effect::Read { path }) => about_path(allow, path, Access::Read),
        Some(Effect::Write { path }) => about_path(allow, path, Access::Write),
        Some(Effect::Delete { path }) => about_path(allow, path, Access::Delete),
        Some(Effect::Restore { path, access }) => about_path(allow, path, *access),
        Some(Effect::Connect { host, .. }) => {
            let host = Host::read(host).ok()?.to_string();
            Some(RuleConfig { host: Some(host), ..allow })
        }
        Some(Effect::Run { command, .. }) => {
            let pattern = grant_pattern(command)?;
            let words = pattern.words.iter().map(|word| escape(word)).collect();
            Some(RuleConfig { command: Some(words), exact: pattern.exact, ..allow })
        }
        // Running without the sandbox is approved for each call.
        Some(Effect::Unsandboxed { .. }) => None,
        // Input for one process says nothing about the next process.
        Some(Effect::Feed { .. }) => None,
        Some(
            Effect::Speak
            | Effect::Recall { .. }
            | Effect::Attend { .. }
            | Effect::Note { .. }
            | Effect::Skill { .. }
            | Effect::Delegate { .. },
        )
        | None => Some(RuleConfig { tool: Some(escape(&tool.name)), ..allow }),
    }
}

fn about_path(allow: RuleConfig, path: &str, access: Access) -> Option<RuleConfig> {
    let pattern = format!("./{}", escape(&relative(path)?));
    Some(RuleConfig { path: Some(pattern), access: Some(vec![access]), ..allow })
}

/// The path without `.` and `..`; none if it is absolute, leaves the workspace, or is the workspace itself.
fn relative(path: &str) -> Option<String> {
    if path.starts_with('/') {
        return None;
    }
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            _ => parts.push(part),
        }
    }
    (!parts.is_empty()).then(|| parts.join("/"))
}

/// Rules as text that can be appended to a configuration file.
pub fn to_toml(rules: &[RuleConfig]) -> String {
    #[derive(Serialize)]
    struct RulesToml<'a> {
        rules: &'a [RuleConfig],
    }
    if rules.is_empty() {
        return String::new();
    }
    toml::to_string(&RulesToml { rules }).expect("a rule contains only strings, lists of strings and booleans")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{compiled, connect, judge_tool, layer, policy, run, tool};
    use toolgate_config::{Config, ConfigLayer};
    use toolgate_contract::{Permission, Risk};

    const ASKS: &str = "rules = [{ decision = 'ask', path = 'odd' }, { decision = 'ask', permission = 'proc.exec' }]";

    #[test]
    fn the_written_rules_answer_exactly_what_was_asked() {
        let git = tool("git*commit", Risk::High, &[Permission::GitWrite]);
        let effects = [
            Effect::delete("a.txt"),
            Effect::delete("x/./b/../c[1].txt"),
            Effect::write("odd/{a,b}"),
            connect("Example.com."),
            run("git commit -m 'all * done'"),
        ];
        let verdict = judge_tool(&policy(ASKS), &git, &effects, &[]);
        assert_eq!(verdict.decision, Decision::Ask);
        let rules = standing_rules(&git, &verdict.asks);
        let text = format!("{}\n", to_toml(&rules));
        insta::assert_snapshot!(text, @r#"
        [[rules]]
        decision = "allow"
        tool = 'git\*commit'
        reason = "You allowed this always."

        [[rules]]
        decision = "allow"
        path = "./a.txt"
        access = ["delete"]
        reason = "You allowed this always."

        [[rules]]
        decision = "allow"
        path = './x/c\[1\].txt'
        access = ["delete"]
        reason = "You allowed this always."

        [[rules]]
        decision = "allow"
        path = './odd/\{a,b\}'
        access = ["write"]
        reason = "You allowed this always."

        [[rules]]
        decision = "allow"
        host = "example.com"
        reason = "You allowed this always."

        [[rules]]
        decision = "allow"
        command = ["git", "commit"]
        reason = "You allowed this always."
        "#);

        let mut user = layer(Layer::User, ASKS);
        user.config.rules.extend(Config::parse(&text, "user.toml").unwrap().rules);
        let answered = compiled(vec![user]).policy;
        assert_eq!(judge_tool(&answered, &git, &tidied(&effects), &[]).decision, Decision::Allow);
        for other in [
            Effect::delete("sub/a.txt"),
            Effect::delete("x/c1.txt"),
            connect("www.example.com"),
            run("git tag x"),
            Effect::write("odd/a"),
        ] {
            let verdict = judge_tool(&answered, &tool("other", Risk::High, &[]), std::slice::from_ref(&other), &[]);
            assert_eq!(verdict.decision, Decision::Ask, "{other}");
        }
    }

    /// Workspace paths are normalized, and the test helper takes them from the effect.
    fn tidied(effects: &[Effect]) -> Vec<Effect> {
        let tidy = |effect: &Effect| match effect {
            Effect::Delete { path } => Effect::delete(relative(path).unwrap()),
            other => other.clone(),
        };
        effects.iter().map(tidy).collect()
    }

    #[test]
    fn what_cannot_be_answered_from_the_users_layer_is_not_offered() {
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
            assert_eq!(standing_rules(&probe, &verdict.asks), [], "{effect}");
        }
        assert_eq!(to_toml(&[]), "");
    }

    #[test]
    fn an_unknown_command_never_gets_a_standing_rule() {
        let probe = tool("probe", Risk::Low, &[]);
        let verdict = judge_tool(&policy("commands.unknown = 'ask'"), &probe, &[run("a $b")], &[]);
        assert_eq!(verdict.decision, Decision::Ask);
        assert_eq!(standing_rules(&probe, &verdict.asks), []);
    }
}
