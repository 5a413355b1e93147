//! The kinds of rules in configuration. Each kind has its own file with three functions: parse the rule, match it,
//! describe it. A new kind is a new file, an arm in [`RuleKind`] and a field in [`RuleConfig`].

pub(crate) mod command;
pub(crate) mod host;
pub(crate) mod path;
pub(crate) mod permission;
pub(crate) mod risk;
pub(crate) mod tool;

use globset::{GlobBuilder, GlobMatcher};
use toolgate_config::{ConfigFault, RuleConfig};
use toolgate_contract::{Decision, ErrorCode, Layer, RuleName};

/// What a rule is about.
#[derive(Debug)]
pub(crate) enum RuleKind {
    Tool(tool::ToolRule),
    Risk(risk::RiskRule),
    Permission(permission::PermissionRule),
    Path(path::PathRule),
    Host(host::HostRule),
    Command(command::CommandRule),
}

/// One rule, ready to match.
#[derive(Debug)]
pub(crate) struct Rule {
    pub(crate) name: RuleName,
    pub(crate) decision: Decision,
    pub(crate) kind: RuleKind,
    pub(crate) reason: String,
    /// The error code of a denial by this rule.
    pub(crate) code: ErrorCode,
    /// The file that the rule is in.
    pub(crate) file: String,
    /// Examples, each with whether the rule should match it.
    pub(crate) examples: Vec<(String, bool)>,
}

impl Rule {
    /// Parses a rule and checks it against its own examples.
    pub(crate) fn new(config: &RuleConfig, layer: Layer, file: &str) -> Result<Self, ConfigFault> {
        let kind = RuleKind::new(config)?;
        let decision = config.decision;
        let name = RuleName { rule: format!("{decision} {}", kind.describe()), layer };
        let reason = config.reason.clone().unwrap_or_else(|| {
            let verb = match decision {
                Decision::Allow => "allows",
                Decision::Ask => "asks about",
                Decision::Deny => "forbids",
            };
            format!("The {layer} configuration {verb} {}.", kind.describe())
        });
        let code = match kind {
            RuleKind::Host(_) => ErrorCode::NetworkDenied,
            _ => ErrorCode::PolicyDenied,
        };
        let expected = config.matches.iter().map(|example| (example.clone(), true));
        let examples = expected.chain(config.no_match.iter().map(|example| (example.clone(), false))).collect();
        let rule = Self { name, decision, kind, reason, code, file: file.to_owned(), examples };
        rule.check_examples()?;
        Ok(rule)
    }

    fn check_examples(&self) -> Result<(), ConfigFault> {
        for (example, expected) in &self.examples {
            if self.kind.matches_example(example)? != *expected {
                let (should, does) = if *expected { ("should", "doesn't") } else { ("should not", "does") };
                return Err(ConfigFault::new(
                    format!("The rule `{}` {should} match its example `{example}`, but it {does}.", self.name.rule),
                    "Correct the rule or the example.",
                ));
            }
        }
        Ok(())
    }
}

impl RuleKind {
    fn new(config: &RuleConfig) -> Result<Self, ConfigFault> {
        let kinds = config.kinds();
        match kinds[..] {
            [_] => {}
            [] => {
                return Err(ConfigFault::new(
                    "The rule doesn't say what it is about.",
                    "Add one of `tool`, `risk`, `permission`, `path`, `host` or `command`.",
                ));
            }
            _ => {
                return Err(ConfigFault::new(
                    format!("The rule is about several things at once: `{}`.", kinds.join("`, `")),
                    "Write one rule for each.",
                ));
            }
        }
        refuse_stray("access", config.access.is_some(), "path", kinds[0])?;
        refuse_stray("exact", config.exact, "command", kinds[0])?;
        refuse_stray("flags", config.flags.is_some(), "command", kinds[0])?;
        refuse_stray("workdir", config.workdir.is_some(), "command", kinds[0])?;
        refuse_stray("writes", config.writes.is_some(), "command", kinds[0])?;
        if let Some(pattern) = &config.tool {
            return tool::ToolRule::new(pattern).map(Self::Tool);
        }
        if let Some(risk) = config.risk {
            return Ok(Self::Risk(risk::RiskRule::new(risk, config.decision)));
        }
        if let Some(pattern) = &config.path {
            return path::PathRule::new(pattern, config.access.as_deref(), config.decision).map(Self::Path);
        }
        if let Some(pattern) = &config.host {
            return host::HostRule::new(pattern).map(Self::Host);
        }
        if let Some(words) = &config.command {
            return command::CommandRule::new(words, config).map(Self::Command);
        }
        let permission = config.permission.expect("exactly one kind is set, and it is none of the others");
        Ok(Self::Permission(permission::PermissionRule::new(permission)))
    }

    /// The rule in words, without its decision.
    pub(crate) fn describe(&self) -> String {
        match self {
            Self::Tool(rule) => rule.to_string(),
            Self::Risk(rule) => rule.to_string(),
            Self::Permission(rule) => rule.to_string(),
            Self::Path(rule) => rule.to_string(),
            Self::Host(rule) => rule.to_string(),
            Self::Command(rule) => rule.to_string(),
        }
    }

    /// Whether the rule matches an example, which is a string of the rule's own kind.
    pub(crate) fn matches_example(&self, example: &str) -> Result<bool, ConfigFault> {
        match self {
            Self::Tool(rule) => Ok(rule.matches(example)),
            Self::Risk(rule) => rule.matches_example(example),
            Self::Permission(rule) => rule.matches_example(example),
            Self::Path(rule) => Ok(rule.matches_example(example)),
            Self::Host(rule) => rule.matches_example(example),
            Self::Command(rule) => Ok(rule.matches_example(example)),
        }
    }
}

fn refuse_stray(field: &str, present: bool, wanted: &str, kind: &str) -> Result<(), ConfigFault> {
    if present && kind != wanted {
        return Err(ConfigFault::new(
            format!("`{field}` means nothing in a rule about a {kind}."),
            format!("Leave it out; it belongs to rules with `{wanted}`."),
        ));
    }
    Ok(())
}

/// A pattern over single words, such as names of tools.
fn word_glob(pattern: &str, what: &str) -> Result<GlobMatcher, ConfigFault> {
    let glob = GlobBuilder::new(pattern).backslash_escape(true).build().map_err(|fault| {
        ConfigFault::new(
            format!("The {what} `{pattern}` can't be read: {}.", fault.kind()),
            "Use `*`, `?`, `[a-z]` and `{a,b}`; put `\\` before a character that is meant as it stands.",
        )
    })?;
    Ok(glob.compile_matcher())
}

/// Parses a word of a fixed vocabulary, such as a risk, as written in configuration.
fn read_word<T: serde::de::DeserializeOwned>(word: &str, what: &str, known: &str) -> Result<T, ConfigFault> {
    let reader = serde::de::value::StrDeserializer::<serde::de::value::Error>::new(word);
    T::deserialize(reader)
        .map_err(|_| ConfigFault::new(format!("`{word}` is not a {what}."), format!("Use one of {known}.")))
}
