//! What a layer says twice and differently, or says half. None of it is refused: the strictest counts, and half a statement
//! means nothing. But whoever wrote it meant something else.

use toolgate_contract::Decision;

use crate::config::{Config, RuleConfig};
use crate::error::ConfigError;
use crate::layer::ConfigLayer;

/// What a layer contradicts itself in.
pub fn contradictions(input: &ConfigLayer) -> Vec<ConfigError> {
    let fault = |line: Option<usize>, message: String, hint: &str| ConfigError {
        file: input.source.clone(),
        line,
        column: None,
        layer: Some(input.layer),
        message,
        hint: Some(hint.to_owned()),
    };
    let config = &input.config;
    let in_both = both(config).into_iter().map(|(allowing, denying, entry)| {
        fault(None, format!("`{entry}` is in `{allowing}` and in `{denying}`."), "The deny counts; remove one of them.")
    });
    let rules = different_rules(&config.rules).into_iter().map(|(first, second)| {
        let (one, other) = (first.decision, second.decision);
        let line = first.line.unwrap_or_default();
        let message = format!("The rule says {other} of exactly what the rule in line {line} says {one} of.");
        fault(second.line, message, "The strictest counts; remove one of them.")
    });
    let halves = halves(config).into_iter().map(|(given, missing)| {
        fault(None, format!("`{given}` means nothing without `{missing}`."), "Set both, or neither.")
    });
    in_both.chain(rules).chain(halves).collect()
}

/// Entries that a list allows and another one denies, with the names of both.
fn both(config: &Config) -> Vec<(&'static str, &'static str, &str)> {
    let hosts: Vec<&String> = config
        .rules
        .iter()
        .filter(|rule| rule.decision == Decision::Deny)
        .filter_map(|rule| rule.host.as_ref())
        .collect();
    let lists = [
        ("commands.allow", "commands.deny", &config.commands.allow, config.commands.deny.iter().collect()),
        ("network.allow", "rules", &config.network.allow, hosts),
        ("tools.allow", "tools.deny", config.tools.allow.as_ref().unwrap_or(&NONE), config.tools.deny.iter().collect()),
    ];
    let found =
        lists.into_iter().flat_map(|(allowing, denying, allowed, denied): (_, _, &Vec<String>, Vec<&String>)| {
            let common = allowed.iter().filter(move |entry| denied.contains(entry));
            common.map(move |entry| (allowing, denying, entry.as_str()))
        });
    found.collect()
}

static NONE: Vec<String> = Vec::new();

/// Rules about the same thing with different decisions; the first one of the file comes first.
fn different_rules(rules: &[RuleConfig]) -> Vec<(&RuleConfig, &RuleConfig)> {
    let subject = |rule: &RuleConfig| RuleConfig {
        decision: Decision::Deny,
        reason: None,
        matches: Vec::new(),
        no_match: Vec::new(),
        line: None,
        ..rule.clone()
    };
    let differ = |first: &RuleConfig, second: &RuleConfig| {
        first.decision != second.decision && subject(first) == subject(second)
    };
    let pair = |(index, second): (usize, _)| Some((rules[..index].iter().find(|first| differ(first, second))?, second));
    rules.iter().enumerate().filter_map(pair).collect()
}

/// Settings that need another one, which isn't there.
fn halves(config: &Config) -> Vec<(&'static str, &'static str)> {
    let (input, output) = (config.model.input_price.is_some(), config.model.output_price.is_some());
    let pairs = [
        (input && !output, "model.input_price", "model.output_price"),
        (output && !input, "model.output_price", "model.input_price"),
    ];
    pairs.into_iter().filter(|(is_half, ..)| *is_half).map(|(_, given, missing)| (given, missing)).collect()
}

#[cfg(test)]
mod tests {
    use toolgate_contract::Layer;

    use super::*;
    use crate::testing::layer;

    #[test]
    fn what_contradicts_itself_is_named_and_the_rest_is_not() {
        let text = "tools.allow = ['read', 'edit']\ntools.deny = ['edit']\nmodel.input_price = 3.0\n\
                    commands.allow = ['git status']\ncommands.deny = ['git status', 'git push']\nnetwork.allow = ['a.example']\n\
                    [[rules]]\ndecision = 'deny'\nhost = 'a.example'\n\
                    [[rules]]\ndecision = 'allow'\npath = 'docs/**'\n\
                    [[rules]]\ndecision = 'ask'\npath = 'docs/**'\naccess = ['write']\n\
                    [[rules]]\ndecision = 'deny'\npath = 'docs/**'\nreason = 'x'\n";
        let found: String =
            contradictions(&layer(Layer::User, text)).iter().map(|fault| format!("{fault}\n")).collect();
        insta::assert_snapshot!(found, @r#"
        user.toml (user): `git status` is in `commands.allow` and in `commands.deny`. The deny counts; remove one of them.
        user.toml (user): `a.example` is in `network.allow` and in `rules`. The deny counts; remove one of them.
        user.toml (user): `edit` is in `tools.allow` and in `tools.deny`. The deny counts; remove one of them.
        user.toml:17 (user): The rule says deny of exactly what the rule in line 10 says allow of. The strictest counts; remove one of them.
        user.toml (user): `model.input_price` means nothing without `model.output_price`. Set both, or neither.
        "#);
    }
}
