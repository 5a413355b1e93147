//! Properties that hold for every configuration, tested on random ones: an additional deny never loosens, and an
//! untrusted workspace never loosens anything.

use proptest::prelude::*;
use proptest::sample::select;
use toolgate_config::{
    CommandsConfig, Config, ConfigLayer, LimitsConfig, NetworkConfig, Preset, RuleConfig, SensitiveConfig, ToolsConfig,
    UnknownCommandAction,
};
use toolgate_contract::{Decision, Effect, Layer, LocatedEffect, Permission, Risk, Tier, WorkspacePath};

use crate::PolicyRequest;
use crate::testing::{compiled, connect, run, tool};

const PATHS: &[&str] = &["a", "a/b", "docs/x", "DOCS/x", "certs/ca.pem", ".ssh/id", "toolgate.toml"];
const PATTERNS: &[&str] = &["a", "a/**", "docs", "**", "*.pem", "./a"];
const HOSTS: &[&str] = &["example.com", "www.example.com", "127.0.0.1", "localhost", "10.0.0.1", "127.1"];
const HOST_PATTERNS: &[&str] = &["example.com", "*.example.com", "127.0.0.1", "10.0.0.0/8", "0.0.0.0/0", "*"];
const COMMANDS: &[&str] = &["git push", "git status", "make", "a | b"];
const PERMISSIONS: &[Permission] = &[
    Permission::FsRead,
    Permission::FsWrite,
    Permission::FsDelete,
    Permission::ProcExec,
    Permission::NetConnect,
    Permission::GitWrite,
];
const RISKS: &[Risk] = &[Risk::Low, Risk::Medium, Risk::High];

fn rule(decisions: &'static [Decision]) -> impl Strategy<Value = RuleConfig> {
    let kind = prop_oneof![
        select(&["probe", "p*", "*", "other"]).prop_map(|name| RuleConfig { tool: Some(name.into()), ..blank() }),
        select(RISKS).prop_map(|risk| RuleConfig { risk: Some(risk), ..blank() }),
        select(PERMISSIONS).prop_map(|permission| RuleConfig { permission: Some(permission), ..blank() }),
        select(PATTERNS).prop_map(|path| RuleConfig { path: Some(path.into()), ..blank() }),
        select(HOST_PATTERNS).prop_map(|host| RuleConfig { host: Some(host.into()), ..blank() }),
        select(&["git", "make", "*"]).prop_map(|word| RuleConfig { command: Some(vec![word.into()]), ..blank() }),
    ];
    (select(decisions), kind).prop_map(|(decision, rule)| RuleConfig { decision, ..rule })
}

fn blank() -> RuleConfig {
    RuleConfig::new(Decision::Deny)
}

fn words(known: &'static [&'static str]) -> impl Strategy<Value = Vec<String>> {
    proptest::collection::vec(select(known).prop_map(str::to_owned), 0..2)
}

fn config() -> impl Strategy<Value = Config> {
    let rules = proptest::collection::vec(rule(&[Decision::Allow, Decision::Ask, Decision::Deny]), 0..4);
    let preset = proptest::option::weighted(0.3, select(&Preset::ALL));
    let allow = proptest::option::weighted(0.2, words(&["probe", "other", "*"]));
    let unknown = proptest::option::weighted(
        0.3,
        select(&[UnknownCommandAction::Confine, UnknownCommandAction::Ask, UnknownCommandAction::Deny]),
    );
    let sandboxes = &Tier::CONFINING;
    let weakest_sandbox = proptest::option::weighted(0.3, select(sandboxes));
    let commands = (words(&["git", "make"]), unknown, weakest_sandbox).prop_map(|(allow, unknown, weakest_sandbox)| {
        CommandsConfig { allow, unknown, weakest_sandbox, ..CommandsConfig::default() }
    });
    let lines = proptest::option::of(1..5000_u64);
    (rules, preset, allow, words(HOST_PATTERNS), commands, words(PATTERNS), lines).prop_map(
        |(rules, preset, tools, hosts, commands, except, lines)| Config {
            preset,
            rules,
            tools: ToolsConfig { allow: tools, ..ToolsConfig::default() },
            network: NetworkConfig { allow: hosts },
            commands,
            sensitive: SensitiveConfig { except },
            limits: LimitsConfig { lines, ..LimitsConfig::default() },
            ..Config::default()
        },
    )
}

fn effect() -> impl Strategy<Value = LocatedEffect> {
    let path = (select(PATHS), select(PATHS), 0..3_u8, 0..2_usize).prop_map(|(written, real, access, root)| {
        let effect = match access {
            0 => Effect::read(written),
            1 => Effect::write(written),
            _ => Effect::delete(written),
        };
        let place = |path: &str| Some(WorkspacePath { root, path: path.into() });
        LocatedEffect { effect, written: place(written), real: place(real) }
    });
    prop_oneof![
        4 => path,
        1 => select(HOSTS).prop_map(|host| LocatedEffect::nowhere(connect(host))),
        1 => select(COMMANDS).prop_map(|command| LocatedEffect::nowhere(run(command))),
        1 => Just(LocatedEffect::nowhere(Effect::Speak)),
        1 => Just(LocatedEffect::nowhere(Effect::Attend { process: "proc_1".into() })),
        1 => Just(LocatedEffect::nowhere(Effect::Feed { process: "proc_1".into(), text: "git push".into() })),
    ]
}

/// A call of `probe`: its risk, its permissions and its effects.
type ProbeCall = (Risk, Vec<Permission>, Vec<LocatedEffect>);

fn call() -> impl Strategy<Value = ProbeCall> {
    let permissions = proptest::collection::vec(select(PERMISSIONS), 0..3);
    (select(RISKS), permissions, proptest::collection::vec(effect(), 0..4))
}

fn input(layer: Layer, trusted: bool, config: Config) -> ConfigLayer {
    ConfigLayer { layer, source: layer.to_string(), trusted, config }
}

fn decide(layers: Vec<ConfigLayer>, (risk, permissions, effects): &ProbeCall) -> Decision {
    let probe = tool("probe", *risk, permissions);
    compiled(layers).policy.judge(&PolicyRequest { tool: &probe, effects, ceilings: &[], bounds: None }).decision
}

fn layers() -> impl Strategy<Value = Vec<ConfigLayer>> {
    (config(), config(), config()).prop_map(|(managed, user, flags)| {
        vec![input(Layer::Managed, true, managed), input(Layer::User, true, user), input(Layer::Flags, true, flags)]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_further_deny_never_loosens(
        layers in layers(),
        at in 0..3_usize,
        deny in rule(&[Decision::Deny]),
        call in call(),
    ) {
        let mut stricter = layers.clone();
        stricter[at].config.rules.push(deny);
        prop_assert!(decide(stricter, &call) >= decide(layers, &call));
    }

    #[test]
    fn an_untrusted_workspace_never_loosens(layers in layers(), workspace in config(), call in call()) {
        let mut with = layers.clone();
        with.push(input(Layer::Workspace, false, workspace));
        prop_assert!(decide(with.clone(), &call) >= decide(layers.clone(), &call));
        let (with, without) = (compiled(with).settings, compiled(layers).settings);
        prop_assert!(with.limits.lines <= without.limits.lines);
        prop_assert!(with.unknown_commands >= without.unknown_commands);
        // Tiers go from the strongest to the weakest.
        prop_assert!(with.weakest_sandbox <= without.weakest_sandbox);
        prop_assert_eq!(with.roots, without.roots);
    }

    #[test]
    fn the_verdict_is_consistent_with_itself(layers in layers(), call in call()) {
        let (risk, permissions, effects) = &call;
        let probe = tool("probe", *risk, permissions);
        let policy = compiled(layers).policy;
        let verdict = policy.judge(&PolicyRequest { tool: &probe, effects, ceilings: &[], bounds: None });
        prop_assert_eq!(verdict.decision, verdict.decided_by.decision);
        prop_assert_eq!(verdict.decided_by.code.is_some(), verdict.decision == Decision::Deny);
        prop_assert_eq!(verdict.asks.contains(&verdict.decided_by), verdict.decision == Decision::Ask);
        prop_assert!(policy.offers(&probe, &[]) || verdict.decision == Decision::Deny);
    }

    #[test]
    fn what_a_walk_hides_is_denied_when_it_is_named(layers in layers(), located in effect()) {
        let policy = compiled(layers).policy;
        let probe = tool("probe", Risk::Low, &[]);
        if let (Some((access, _)), Some(real)) = (located.effect.path(), &located.real) && policy.hides(access, real) {
            let effects = std::slice::from_ref(&located);
            let verdict = policy.judge(&PolicyRequest { tool: &probe, effects, ceilings: &[], bounds: None });
            prop_assert_eq!(verdict.decision, Decision::Deny);
        }
    }

    #[test]
    fn reading_any_text_ends_without_a_panic(text in ".{0,40}") {
        let _ = Config::parse(&text, "any");
        let _ = crate::grant_pattern(&text);
        let policy = compiled(vec![]).policy;
        let probe = tool("probe", Risk::Low, &[]);
        let place = Some(WorkspacePath::in_workspace(text.clone()));
        let effects = [
            LocatedEffect::nowhere(connect(&text)),
            LocatedEffect::nowhere(run(&text)),
            LocatedEffect { effect: Effect::write(text.clone()), written: place.clone(), real: place },
        ];
        let verdict = policy.judge(&PolicyRequest { tool: &probe, effects: &effects, ceilings: &[], bounds: None });
        prop_assert!(verdict.decision >= Decision::Ask, "the network is never silently open");
    }
}
