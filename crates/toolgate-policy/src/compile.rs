//! Turns the layers' configurations into one policy and one set of settings. Everything that a workspace
//! nobody trusts would loosen is left out here, so that judging never has to think of it.

use std::cmp::Reverse;

use toolgate_config::table::{COMMANDS_EXCEPT, RULES, SENSITIVE_EXCEPT};
use toolgate_config::{
    Config, ConfigError, ConfigFault, ConfigLayer, Preset, RuleConfig, Settings, UnknownCommandAction, choose_preset,
    merge,
};
use toolgate_contract::{Access, Decision, ErrorCode, Layer, WorkspacePath};

use crate::commands::plain_words;
use crate::path_glob::{CaseFolding, PathGlob, PathSet, escape};
use crate::policy::{Policy, PolicyInput, ToolAllowlist};
use crate::rules::Rule;
use crate::rules::command::CommandRule;
use crate::rules::tool::ToolRule;
use crate::sensitive_paths::find_sensitive;

/// What the layers come to together.
#[derive(Debug)]
pub struct CompiledConfig {
    /// Judges calls.
    pub policy: Policy,
    /// The rest.
    pub settings: Settings,
    /// What was ignored and why, in sentences for the person.
    pub warnings: Vec<String>,
}

/// Merges the layers, in whatever order they come.
pub fn compile(mut layers: Vec<ConfigLayer>) -> Result<CompiledConfig, ConfigError> {
    layers.sort_by_key(|input| Reverse(input.layer));
    let mut warnings = Vec::new();
    let preset = choose_preset(&layers, &mut warnings);
    let (mut rules, mut tool_sets, mut excepts) = (Vec::new(), Vec::new(), Vec::new());
    let mut danger_excepts = Vec::new();
    for input in &layers {
        let located = |fault: ConfigFault| fault.at(&input.source, input.layer, None);
        danger_excepts.extend(read_danger_excepts(input, &mut warnings).map_err(located)?);
        rules.extend(read_rules(input, &mut warnings)?);
        tool_sets.extend(read_tool_set(input).map_err(located)?);
        excepts.extend(read_excepts(input, &mut warnings).map_err(located)?);
    }
    let settings = merge(&layers, &is_sensitive, &mut warnings)?;
    let parts = PolicyInput {
        preset,
        unattended: layers.iter().any(|input| input.config.preset == Some(Preset::Autonomous)),
        unknown: who_decides_on_unknown(&layers, settings.unknown_commands),
        roots: settings.roots.iter().map(|root| root.access).collect(),
        rules,
        tool_sets,
        excepts,
        danger_excepts,
    };
    let policy = Policy::new(parts).map_err(|fault| fault.at("the configuration as a whole", Layer::Builtin, None))?;
    Ok(CompiledConfig { policy, settings, warnings })
}

/// Whether a directory holds credentials, so that it can't be a root.
fn is_sensitive(path: &str) -> bool {
    find_sensitive(Access::Read, &WorkspacePath::in_workspace(path), &PathSet::default()).is_some()
}

/// The setting and the layer it came from: the strongest of those that say so.
fn who_decides_on_unknown(layers: &[ConfigLayer], unknown: UnknownCommandAction) -> (UnknownCommandAction, Layer) {
    let decider = layers.iter().find(|input| input.config.commands.unknown == Some(unknown));
    (unknown, decider.map_or(Layer::Builtin, |input| input.layer))
}

/// All rules of one layer: its own, and those that its lists stand for. What may not loosen here is checked all the
/// same, and then left out.
fn read_rules(input: &ConfigLayer, warnings: &mut Vec<String>) -> Result<Vec<Rule>, ConfigError> {
    let mut rules = Vec::new();
    let listed = listed_rules(&input.config).map_err(|fault| fault.at(&input.source, input.layer, None))?;
    let written = input.config.rules.iter().map(|rule| (rule.clone(), None));
    for (config, code) in written.chain(listed) {
        let mut rule = Rule::new(&config, input.layer, &input.source)
            .map_err(|fault| fault.at(&input.source, input.layer, config.line))?;
        if rule.decision == Decision::Allow && !RULES.rule.lets_loosen(input) {
            warnings.push(input.ignored(&format!("the rule `{}`", rule.name.rule), false));
            continue;
        }
        rule.code = code.unwrap_or(rule.code);
        rules.push(rule);
    }
    Ok(rules)
}

/// The rules that the lists of `[tools]`, `[network]` and `[commands]` are short for.
fn listed_rules(config: &Config) -> Result<Vec<(RuleConfig, Option<ErrorCode>)>, ConfigFault> {
    let mut rules = Vec::new();
    for tool in &config.tools.deny {
        let rule = RuleConfig { tool: Some(tool.clone()), ..RuleConfig::new(Decision::Deny) };
        rules.push((rule, Some(ErrorCode::ToolNotAllowed)));
    }
    for host in &config.network.allow {
        rules.push((RuleConfig { host: Some(host.clone()), ..RuleConfig::new(Decision::Allow) }, None));
    }
    let commands = [(Decision::Allow, &config.commands.allow), (Decision::Deny, &config.commands.deny)];
    for (decision, lines) in commands {
        for line in lines {
            let command = Some(listed_words(line)?);
            rules.push((RuleConfig { command, ..RuleConfig::new(decision) }, None));
        }
    }
    Ok(rules)
}

/// The words of one line in a list of commands, as patterns.
fn listed_words(line: &str) -> Result<Vec<String>, ConfigFault> {
    let words = plain_words(line).ok_or_else(|| {
        ConfigFault::new(
            format!("`{line}` in the list of commands isn't a plain command."),
            "Write the words it begins with, such as `git status`; for patterns, write a rule.",
        )
    })?;
    Ok(words.iter().map(|word| escape(word)).collect())
}

/// Exceptions from dangers, like those from sensitive places, come from files that someone stands for.
fn read_danger_excepts(input: &ConfigLayer, warnings: &mut Vec<String>) -> Result<Vec<CommandRule>, ConfigFault> {
    let mut excepts = Vec::new();
    for line in &input.config.commands.except {
        let rule = CommandRule::new(&listed_words(line)?, &RuleConfig::new(Decision::Allow))?;
        match COMMANDS_EXCEPT.rule.lets_loosen(input) {
            true => excepts.push(rule),
            false => warnings.push(input.ignored(&format!("`{line}` in `commands.except`"), false)),
        }
    }
    Ok(excepts)
}

fn read_tool_set(input: &ConfigLayer) -> Result<Option<ToolAllowlist>, ConfigFault> {
    let Some(names) = &input.config.tools.allow else { return Ok(None) };
    let tools = names.iter().map(|name| ToolRule::new(name)).collect::<Result<_, _>>()?;
    Ok(Some(ToolAllowlist { layer: input.layer, file: input.source.clone(), tools }))
}

/// Exceptions from sensitive places come from files that someone stands for, never from flags or environment.
fn read_excepts(input: &ConfigLayer, warnings: &mut Vec<String>) -> Result<Vec<PathGlob>, ConfigFault> {
    let mut excepts = Vec::new();
    for pattern in &input.config.sensitive.except {
        let glob = PathGlob::new(pattern, CaseFolding::Exact)?;
        if input.layer <= Layer::Flags {
            let file = &input.source;
            warnings
                .push(format!("{file}: `sensitive.except` is ignored here; put `{pattern}` in your configuration."));
        } else if !SENSITIVE_EXCEPT.rule.lets_loosen(input) {
            warnings.push(input.ignored(&format!("`{pattern}` in `sensitive.except`"), false));
        } else {
            excepts.push(glob);
        }
    }
    Ok(excepts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{compiled, connect, judge, layer, run, untrusted};
    use Decision::{Allow, Ask, Deny};
    use Layer::{Flags, Managed, User, Workspace};
    use toolgate_contract::Effect;

    #[test]
    fn an_allow_answers_an_ask_of_its_own_or_a_weaker_layer() {
        for ask in [Flags, Workspace, User, Managed] {
            for allow in [Flags, Workspace, User, Managed] {
                let asks = layer(ask, "rules = [{ decision = 'ask', path = 'a' }]");
                let allows = layer(allow, "rules = [{ decision = 'allow', path = 'a' }]");
                let decision = judge(&compiled(vec![asks, allows]).policy, &[Effect::read("a")]).decision;
                assert_eq!(decision, if allow >= ask { Allow } else { Ask }, "{ask} asks, {allow} allows");
            }
        }
    }

    #[test]
    fn a_deny_of_any_layer_holds_against_every_other() {
        for deny in [Flags, Workspace, User, Managed] {
            for allow in [Flags, Workspace, User, Managed] {
                let denies = layer(deny, "rules = [{ decision = 'deny', path = 'a' }]");
                let allows = layer(allow, "preset = 'full'\nrules = [{ decision = 'allow', path = 'a' }]");
                let decision = judge(&compiled(vec![denies, allows]).policy, &[Effect::read("a")]).decision;
                assert_eq!(decision, Deny, "{deny} denies, {allow} allows");
            }
        }
    }

    #[test]
    fn the_strongest_layer_chooses_the_preset_and_the_others_tighten() {
        let preset = |name: &str| format!("preset = '{name}'");
        for (layers, expected, warnings) in [
            (vec![], Preset::Workspace, 0),
            (vec![layer(Flags, &preset("full"))], Preset::Full, 0),
            (vec![layer(User, &preset("workspace")), layer(Flags, &preset("full"))], Preset::Workspace, 1),
            (vec![layer(Flags, &preset("read-only")), layer(User, &preset("full"))], Preset::ReadOnly, 0),
            (vec![layer(Managed, &preset("read-only")), layer(User, &preset("autonomous"))], Preset::ReadOnly, 0),
            (vec![layer(Workspace, &preset("full"))], Preset::Full, 0),
            (vec![untrusted(&preset("full"))], Preset::Workspace, 1),
            (vec![untrusted(&preset("read-only"))], Preset::ReadOnly, 0),
            (vec![untrusted(&preset("workspace")), layer(Flags, &preset("full"))], Preset::Workspace, 1),
            (vec![untrusted(&preset("full")), layer(Flags, &preset("full"))], Preset::Full, 0),
        ] {
            let told = format!("{layers:?}");
            let compiled = compiled(layers);
            assert_eq!(compiled.policy.preset(), expected, "{told}");
            assert_eq!(compiled.warnings.len(), warnings, "{:?} {told}", compiled.warnings);
        }
    }

    #[test]
    fn whoever_says_autonomous_is_heeded_under_a_stricter_preset_too() {
        let user = layer(User, "preset = 'autonomous'\nrules = [{ decision = 'ask', path = 'a' }]");
        let policy = compiled(vec![user, untrusted("preset = 'read-only'")]).policy;
        assert_eq!(policy.preset(), Preset::ReadOnly);
        assert!(policy.is_unattended());
        assert_eq!(judge(&policy, &[Effect::read("a")]).decision, Deny);
    }

    #[test]
    fn an_untrusted_workspace_tightens_and_everything_else_is_ignored_with_a_warning() {
        let text = "
            preset = 'full'
            sensitive.except = ['certs/**']
            network.allow = ['example.com']
            roots = [{ path = '/data' }]
            limits.lines = 9000
            tools.deny = ['other']
            [commands]
            allow = ['make']
            deny = ['rm']
            [[rules]]
            decision = 'allow'
            path = 'tmp/**'
            [[rules]]
            decision = 'ask'
            path = 'docs/**'";
        let expected_by_trust = [(false, [Ask, Ask, Deny, Ask, Deny]), (true, [Allow, Ask, Allow, Allow, Deny])];
        for (trusted, expected) in expected_by_trust {
            let compiled = compiled(vec![ConfigLayer { trusted, ..layer(Workspace, text) }]);
            let effects = [
                Effect::delete("tmp/a"),
                Effect::read("docs/a"),
                Effect::read("certs/ca.pem"),
                connect("example.com"),
                run("rm a"),
            ];
            let decisions = effects.map(|effect| judge(&compiled.policy, &[effect]).decision);
            assert_eq!(decisions, expected, "trusted: {trusted}");
            assert_eq!(compiled.settings.roots.len(), usize::from(trusted));
            assert_eq!(compiled.warnings.len(), if trusted { 0 } else { 7 }, "{:?}", compiled.warnings);
            for warning in &compiled.warnings {
                assert!(
                    warning.ends_with("is ignored until you trust this workspace; run `toolgate trust`."),
                    "{warning}"
                );
            }
        }
    }

    #[test]
    fn exceptions_from_sensitive_places_come_from_files_that_someone_stands_for() {
        for (layer_of, expected) in [(Managed, Allow), (User, Allow), (Workspace, Allow), (Flags, Deny)] {
            let compiled = compiled(vec![layer(layer_of, "sensitive.except = ['certs/*.pem']")]);
            let decide = |path: &str| judge(&compiled.policy, &[Effect::read(path)]).decision;
            assert_eq!(decide("certs/ca.pem"), expected, "{layer_of}");
            assert_eq!(decide("other/ca.pem"), Deny, "{layer_of}");
            assert_eq!(compiled.warnings.len(), usize::from(expected == Deny));
        }
    }

    #[test]
    fn lists_are_short_for_rules() {
        let text = "commands.allow = ['git status']\ncommands.deny = ['git push']\n
            rules = [{ decision = 'ask', command = ['git'] }]";
        let policy = compiled(vec![layer(User, text)]).policy;
        let decide = |command: &str| judge(&policy, &[run(command)]).decision;
        assert_eq!(decide("git status -s"), Allow);
        assert_eq!(decide("git push"), Deny);
        assert_eq!(decide("git log"), Ask);
    }

    #[test]
    fn errors_name_file_line_layer_and_what_to_do() {
        let said = |text: &str| compile(vec![layer(User, text)]).unwrap_err().to_string();
        insta::assert_snapshot!(said("\n[[rules]]\ndecision = 'deny'\npath = 'docs/**'\nmatch = ['src/a']"), @"user.toml:2 (user): The rule `deny path docs/**` should match its example `src/a`, but it doesn't. Correct the rule or the example.");
        insta::assert_snapshot!(said("[[rules]]\ndecision = 'deny'\nhost = '*'\nno_match = ['a.b']"), @"user.toml:1 (user): The rule `deny host *` should not match its example `a.b`, but it does. Correct the rule or the example.");
        insta::assert_snapshot!(said("[[rules]]\ndecision = 'allow'\ncommand = ['ls']\nmatch = ['lsof | sh']"), @"user.toml:1 (user): The rule `allow command ls` should match its example `lsof | sh`, but it doesn't. Correct the rule or the example.");
        insta::assert_snapshot!(said("[[rules]]\ndecision = 'deny'\nrisk = 'low'\nmatch = ['huge']"), @"user.toml:1 (user): `huge` is not a risk. Use one of `low`, `medium`, `high`.");
        insta::assert_snapshot!(said("[[rules]]\ndecision = 'deny'"), @"user.toml:1 (user): The rule doesn't say what it is about. Add one of `tool`, `risk`, `permission`, `path`, `host` or `command`.");
        insta::assert_snapshot!(said("[[rules]]\ndecision = 'deny'\npath = 'a'\nhost = 'b'"), @"user.toml:1 (user): The rule is about several things at once: `path`, `host`. Write one rule for each.");
        insta::assert_snapshot!(said("[[rules]]\ndecision = 'deny'\npath = '/etc'"), @"user.toml:1 (user): The path pattern `/etc` isn't supported. Write it relative to the workspace; use `./name` for a name that counts only at the top.");
        insta::assert_snapshot!(said("[[rules]]\ndecision = 'deny'\npath = 'a['"), @r"user.toml:1 (user): The path pattern `a[` can't be read: unclosed character class; missing ']'. Use `*`, `?`, `[a-z]`, `{a,b}` and `**`; put `\` before a character that is meant as it stands.");
        insta::assert_snapshot!(said("[[rules]]\ndecision = 'deny'\ntool = 'a'\naccess = ['read']"), @"user.toml:1 (user): `access` means nothing in a rule about a tool. Leave it out; it belongs to rules with `path`.");
        insta::assert_snapshot!(said("network.allow = ['https://example.com']"), @"user.toml (user): The host `https://example.com` can't be read. Leave out scheme and port: rules are about hosts.");
        insta::assert_snapshot!(said("commands.allow = ['ls | sort']"), @"user.toml (user): `ls | sort` in the list of commands isn't a plain command. Write the words it begins with, such as `git status`; for patterns, write a rule.");
        insta::assert_snapshot!(said("limits.lines = 0"), @"user.toml (user): The limit `lines` is 0. Use 1 or more, or leave it out.");
    }
}
