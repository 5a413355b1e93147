//! A policy: the compiled rules of all layers, and the questions it answers apart from judging a call.

use toolgate_config::{ConfigFault, UnknownCommandAction};
use toolgate_contract::{
    Access, Decision, Declaration, Denial, ErrorCode, HiddenPaths, Layer, Permission, RootAccess, RuleName,
    WorkspacePath,
};

use crate::ceiling::Ceiling;
use crate::combine::is_refused;
use crate::commands::PathContext;
use crate::opinion::Topic;
use crate::path_glob::{CaseFolding, PathGlob, PathSet};
use crate::preset;
use crate::rules::command::{CommandIndex, CommandRule};
use crate::rules::path::PathRule;
use crate::rules::tool::ToolRule;
use crate::rules::{Rule, RuleKind};
use crate::sensitive_paths::{SENSITIVE_PATHS, SensitiveMatch, SensitivePath, find_sensitive};
use toolgate_config::Preset;

/// Decides whether calls may run. Made by [`crate::compile()`] and immutable.
#[derive(Debug)]
pub struct Policy {
    pub(crate) preset: Preset,
    /// Nobody can be asked, so an ask becomes a deny.
    pub(crate) unattended: bool,
    /// What happens to commands that can't be analyzed, and the layer that says so.
    pub(crate) unknown: (UnknownCommandAction, Layer),
    /// What tools may do in the roots other than the workspace, from root 1 on.
    pub(crate) roots: Vec<RootAccess>,
    /// Every rule of every layer, strongest layer first.
    pub(crate) rules: Vec<Rule>,
    pub(crate) tool_sets: Vec<ToolAllowlist>,
    /// The path rules that tighten, matched against folded paths.
    pub(crate) strict_paths: PathSet,
    /// The path rules that allow, matched against paths as they are.
    pub(crate) allowed_paths: PathSet,
    /// The rules on commands, by program.
    pub(crate) command_rules: CommandIndex,
    /// Commands that configuration exempts from the built-in dangers.
    pub(crate) danger_excepts: Vec<CommandRule>,
    /// The directories that the paths in commands refer to.
    pub(crate) paths: PathContext,
    /// Paths that configuration exempts from the built-in sensitive paths.
    pub(crate) excepts: PathSet,
    /// The paths that rules deny, for each kind of access.
    denied: [PathSet; 3],
}

/// What a policy is built from: the merged layers, parsed but not yet indexed.
pub(crate) struct PolicyInput {
    pub(crate) preset: Preset,
    pub(crate) unattended: bool,
    pub(crate) unknown: (UnknownCommandAction, Layer),
    pub(crate) roots: Vec<RootAccess>,
    pub(crate) rules: Vec<Rule>,
    pub(crate) tool_sets: Vec<ToolAllowlist>,
    pub(crate) excepts: Vec<PathGlob>,
    pub(crate) danger_excepts: Vec<CommandRule>,
}

/// One layer's list of allowed tools.
#[derive(Debug)]
pub(crate) struct ToolAllowlist {
    pub(crate) layer: Layer,
    pub(crate) file: String,
    pub(crate) tools: Vec<ToolRule>,
}

impl ToolAllowlist {
    pub(crate) fn contains(&self, name: &str) -> bool {
        self.tools.iter().any(|tool| tool.matches(name))
    }

    pub(crate) fn name(&self) -> RuleName {
        RuleName { rule: "tools.allow".into(), layer: self.layer }
    }
}

/// One rule of the policy, for a person who wants to know what applies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleDescription {
    /// The rule in words, and its layer.
    pub name: RuleName,
    /// What the rule decides.
    pub decision: Decision,
    /// Where the rule is written; `built in` for what comes with Toolgate.
    pub source: String,
    /// The reason.
    pub reason: String,
}

/// The result of checking one example of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExampleResult {
    /// The rule that the example belongs to.
    pub name: RuleName,
    /// Where the rule is written.
    pub source: String,
    /// The example.
    pub example: String,
    /// Whether the rule should match it.
    pub expected: bool,
    /// Whether it does.
    pub matched: bool,
}

/// The source of rules that come with Toolgate.
pub const BUILT_IN: &str = "built in";

impl Policy {
    pub(crate) fn new(parts: PolicyInput) -> Result<Self, ConfigFault> {
        let PolicyInput { preset, unattended, unknown, roots, rules, tool_sets, excepts, danger_excepts } = parts;
        let path_set = |letters, wanted: &dyn Fn(&Rule, &PathRule) -> bool| {
            let found = rules.iter().enumerate().filter_map(|(index, rule)| match &rule.kind {
                RuleKind::Path(path) if wanted(rule, path) => Some((index, path.glob())),
                _ => None,
            });
            PathSet::new(letters, found)
        };
        let denies = |access| {
            path_set(CaseFolding::Folded, &|rule, path| rule.decision == Decision::Deny && path.is_about(access))
        };
        Ok(Self {
            preset,
            unattended,
            unknown,
            roots,
            strict_paths: path_set(CaseFolding::Folded, &|rule, _| rule.decision != Decision::Allow)?,
            allowed_paths: path_set(CaseFolding::Exact, &|rule, _| rule.decision == Decision::Allow)?,
            denied: [denies(Access::Read)?, denies(Access::Write)?, denies(Access::Delete)?],
            excepts: PathSet::new(CaseFolding::Exact, excepts.iter().map(|glob| (0, glob)))?,
            command_rules: CommandIndex::new(&rules),
            danger_excepts,
            paths: PathContext::default(),
            rules,
            tool_sets,
        })
    }

    /// Sets the directories that the paths in commands refer to.
    #[must_use]
    pub fn with_paths(mut self, paths: PathContext) -> Self {
        self.paths = paths;
        self
    }

    /// The preset in effect.
    pub fn preset(&self) -> Preset {
        self.preset
    }

    /// Whether an ask becomes a deny because nobody can be asked.
    pub fn is_unattended(&self) -> bool {
        self.unattended
    }

    /// Whether tools must not see this path with this access, because it is sensitive or a rule denies it. Called for
    /// every entry of a directory walk.
    pub fn hides(&self, access: Access, place: &WorkspacePath) -> bool {
        find_sensitive(access, place, &self.excepts).is_some() || self.denied[access as usize].is_match(&place.path)
    }

    /// Whether tools must not see this path with this access for one reason alone: its name is that of a private key. If it
    /// holds public certificates and nothing else, tools may see it.
    pub fn hides_as_possible_key(&self, access: Access, place: &WorkspacePath) -> bool {
        let hit = find_sensitive(access, place, &self.excepts);
        hit.is_some_and(|hit| SENSITIVE_PATHS.entry(hit).certificates)
            && !self.denied[access as usize].is_match(&place.path)
    }

    /// Whether tools must not see this path for one reason alone: files of such a name hold secrets. What no exception lifts,
    /// or a rule denies, is hidden for another reason.
    pub fn hides_as_secret(&self, place: &WorkspacePath) -> bool {
        let holds_secrets = |entry: &SensitivePath| entry.code == ErrorCode::SensitivePath && !entry.fixed;
        let hit = find_sensitive(Access::Read, place, &self.excepts);
        hit.is_some_and(|hit| holds_secrets(SENSITIVE_PATHS.entry(hit)))
            && !self.denied.iter().any(|denied| denied.is_match(&place.path))
    }

    /// The denial to report for a command that opened this hidden path, written as `shown`: the rule and the reason.
    pub fn denial_of(&self, place: &WorkspacePath, shown: &str) -> Denial {
        let entry = find_sensitive(Access::Read, place, &self.excepts).map(|hit| (hit, SENSITIVE_PATHS.entry(hit)));
        let rule = || self.denied[Access::Read as usize].matches(&place.path).first().map(|index| &self.rules[*index]);
        match (entry, rule()) {
            (Some((hit, entry)), _) => {
                Denial::of_decoy(shown, entry.code, &entry.reason, Some(sensitive_match_name(hit)))
            }
            (None, Some(rule)) => {
                Denial::of_decoy(shown, ErrorCode::PolicyDenied, &rule.reason, Some(rule.name.clone()))
            }
            // Another name resolves to this file, and that name is the hidden one.
            (None, None) => Denial::of_decoy(shown, ErrorCode::SensitivePath, "Policy hides it from tools.", None),
        }
    }

    /// Whether to show a tool to a model: false if every call of the tool would be denied.
    pub fn offers(&self, tool: &Declaration, ceilings: &[Ceiling]) -> bool {
        let mut opinions = Vec::new();
        self.on_tool(tool, ceilings, &mut opinions);
        self.on_declared_permissions(tool, &[], false, &mut opinions);
        // Even a preset that denies running allows commands that only read, so its baseline on running isn't final.
        let on_running = Topic::Permission(Permission::ProcExec);
        opinions.retain(|opinion| !(opinion.is_baseline() && opinion.topic == on_running));
        !is_refused(&opinions, self.unattended)
    }

    /// Every rule in effect: the built-in rules, the preset's baseline, and the rules of every layer.
    pub fn rules(&self) -> impl Iterator<Item = RuleDescription> + '_ {
        let sensitive = SENSITIVE_PATHS.all().iter().map(|entry| RuleDescription {
            name: sensitive_path_name(entry),
            decision: Decision::Deny,
            source: BUILT_IN.into(),
            reason: entry.reason.clone(),
        });
        let baseline = preset::permissions().map(|permission| RuleDescription {
            name: self.baseline_name(permission),
            decision: preset::baseline(self.preset, permission),
            source: BUILT_IN.into(),
            reason: preset::reason(self.preset, permission),
        });
        let sets = self.tool_sets.iter().map(|set| RuleDescription {
            name: set.name(),
            decision: Decision::Deny,
            source: set.file.clone(),
            reason: "Tools that aren't on this list are refused.".into(),
        });
        let written = self.rules.iter().map(|rule| RuleDescription {
            name: rule.name.clone(),
            decision: rule.decision,
            source: rule.file.clone(),
            reason: rule.reason.clone(),
        });
        sensitive.chain(baseline).chain(sets).chain(written)
    }

    /// Checks every example of every rule.
    pub fn examples(&self) -> Vec<ExampleResult> {
        let sensitive = SENSITIVE_PATHS.all().iter().enumerate().flat_map(|(index, entry)| {
            let expected = entry.matches.iter().map(|example| (example, true));
            expected.chain(entry.no_match.iter().map(|example| (example, false))).map(move |(example, expected)| {
                ExampleResult {
                    name: sensitive_path_name(entry),
                    source: BUILT_IN.into(),
                    example: example.clone(),
                    expected,
                    matched: SENSITIVE_PATHS.covers(index, example),
                }
            })
        });
        let written = self.rules.iter().flat_map(|rule| {
            rule.examples.iter().map(|(example, expected)| ExampleResult {
                name: rule.name.clone(),
                source: rule.file.clone(),
                example: example.clone(),
                expected: *expected,
                matched: rule.kind.matches_example(example).unwrap_or(!expected),
            })
        });
        sensitive.chain(crate::commands::examples()).chain(written).collect()
    }
}

/// The name of the one pattern that matched.
pub(crate) fn sensitive_match_name(hit: SensitiveMatch) -> RuleName {
    let rule = format!("deny path {}{}", SENSITIVE_PATHS.pattern(hit), SENSITIVE_PATHS.entry(hit).access);
    RuleName { rule, layer: Layer::Builtin }
}

fn sensitive_path_name(entry: &SensitivePath) -> RuleName {
    RuleName { rule: format!("deny path {}{}", entry.paths.join(" "), entry.access), layer: Layer::Builtin }
}

impl HiddenPaths for Policy {
    fn hides(&self, access: Access, place: &WorkspacePath) -> bool {
        self.hides(access, place)
    }

    fn hides_as_secret(&self, place: &WorkspacePath) -> bool {
        self.hides_as_secret(place)
    }

    fn denial(&self, place: &WorkspacePath, shown: &str) -> Denial {
        self.denial_of(place, shown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{policy, tool};
    use toolgate_contract::{Permission, Risk};

    #[test]
    fn what_is_denied_is_hidden_for_that_access() {
        let policy = policy(
            "sensitive.except = ['certs/**']
            rules = [{ decision = 'deny', path = 'Secret/**' }, { decision = 'deny', path = '*.lock', access = ['write'] },
                     { decision = 'ask', path = 'docs' }, { decision = 'deny', tool = '*' }]",
        );
        let hides = |access, path: &str| policy.hides(access, &WorkspacePath::in_workspace(path));
        for (path, read, write) in [
            ("src/main.rs", false, false),
            ("", false, false),
            ("secret/a", true, true),
            ("a/Cargo.lock", false, true),
            ("docs/a", false, false),
            ("x/.ssh", true, true),
            ("x/.ssh/deep/er", true, true),
            (".git/config", false, true),
            ("certs/ca.pem", false, false),
            ("other/ca.pem", true, true),
            (".toolgate/", true, true),
        ] {
            assert_eq!(hides(Access::Read, path), read, "read {path}");
            assert_eq!(hides(Access::Write, path), write, "write {path}");
        }
    }

    #[test]
    fn what_only_its_name_says_is_told_from_what_a_rule_denies() {
        let policy = policy("rules = [{ decision = 'deny', path = 'prod/**', access = ['write'] }]");
        for (path, is_secret) in [
            (".env", true),
            ("deep/server.key", true),
            ("prod/.env", false),
            (".toolgate/runs", false),
            (".git/config", false),
            ("src/main.rs", false),
        ] {
            assert_eq!(policy.hides_as_secret(&WorkspacePath::in_workspace(path)), is_secret, "{path}");
        }
    }

    #[test]
    fn a_tool_that_would_always_be_refused_is_not_offered() {
        let write = tool("write", Risk::High, &[Permission::FsRead, Permission::FsWrite]);
        let commit = tool("commit", Risk::High, &[Permission::GitWrite]);
        let ceiling = Ceiling { source: "skill x".into(), tools: vec!["read".into()] };
        for (text, offers_write, offers_commit) in [
            ("", true, true),
            ("preset = 'read-only'", false, false),
            ("preset = 'autonomous'", true, false),
            ("preset = 'autonomous'\nrules = [{ decision = 'allow', tool = 'commit' }]", true, true),
            ("rules = [{ decision = 'deny', tool = 'wr*' }]", false, true),
            ("rules = [{ decision = 'deny', risk = 'high' }]", false, false),
            ("rules = [{ decision = 'ask', risk = 'high' }]", true, true),
            ("rules = [{ decision = 'deny', permission = 'fs.write' }]", false, true),
            ("rules = [{ decision = 'deny', path = '**' }]", true, true),
            ("tools.allow = ['write']", true, false),
        ] {
            let policy = policy(text);
            assert_eq!(policy.offers(&write, &[]), offers_write, "write: {text}");
            assert_eq!(policy.offers(&commit, &[]), offers_commit, "commit: {text}");
            assert!(!policy.offers(&write, std::slice::from_ref(&ceiling)));
        }
    }

    #[test]
    fn every_rule_and_every_example_can_be_shown() {
        let policy = policy(
            "tools.allow = ['read']
            rules = [{ decision = 'deny', path = 'a', reason = 'Mine.', match = ['a/b'], no_match = ['b'] }]",
        );
        let rules: Vec<_> = policy.rules().collect();
        for (rule, source) in [
            ("deny path a", "user.toml"),
            ("tools.allow", "user.toml"),
            ("preset workspace: ask fs.delete", "built in"),
        ] {
            assert!(rules.iter().any(|known| known.name.rule == rule && known.source == source), "{rule}");
        }
        assert!(rules.iter().any(|known| known.name.rule.starts_with("deny path .ssh")));
        let examples = policy.examples();
        assert!(examples.iter().all(|example| example.matched == example.expected));
        assert_eq!(examples.iter().filter(|example| example.source == "user.toml").count(), 2);
    }
}
