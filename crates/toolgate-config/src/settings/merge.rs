//! Merges the layers into settings, strongest first: each row of the table says how.

use std::collections::BTreeSet;
use std::time::Duration;

use super::named_tables::{merge_lsp_servers, merge_mcp_servers, merge_tools};
use super::roots::merge_roots;
use super::{CallLimits, CommandLimits, LspSettings, ModelSettings, ProcessLimits, Settings};
use crate::config::{StoreConfig, ToolLimitsConfig};
use crate::error::{ConfigError, ConfigFault};
use crate::layer::ConfigLayer;
use crate::setting::Setting;
use crate::table::*;

/// Merges the layers, given strongest first. `is_sensitive` says whether a path, absolute without its first `/`, may not
/// be a root because it is sensitive.
pub fn merge(
    layers: &[ConfigLayer],
    is_sensitive: &dyn Fn(&str) -> bool,
    warnings: &mut Vec<String>,
) -> Result<Settings, ConfigError> {
    check_positive(layers)?;
    let stated = layers.iter().flat_map(|input| input.config.limits.tools.keys().map(String::as_str));
    let tools: BTreeSet<&str> = stated.collect();
    let states_timeout =
        |tool: Option<&str>| layers.iter().any(|input| input.config.limits.of(tool).timeout_seconds.is_some());
    let timed = tools.iter().filter(|name| states_timeout(Some(name))).map(|name| (*name).to_owned()).collect();
    Ok(Settings {
        roots: merge_roots(layers, is_sensitive, warnings)?,
        limits: merge_limits(layers, None, warnings),
        tool_limits: tools
            .into_iter()
            .map(|name| (name.to_owned(), merge_limits(layers, Some(name), warnings)))
            .collect(),
        stated_timeouts: (states_timeout(None), timed),
        processes: ProcessLimits {
            most: PROCESSES_MOST.merge(layers, warnings),
            timeout_seconds: PROCESSES_TIMEOUT_SECONDS.merge(layers, warnings),
            output_bytes: PROCESSES_OUTPUT_BYTES.merge(layers, warnings),
            settle_seconds: PROCESSES_SETTLE_SECONDS.merge(layers, warnings),
        },
        fetch_bytes: FETCH_BODY_BYTES.merge(layers, warnings),
        search_index_seconds: SEARCH_INDEX_SECONDS.merge(layers, warnings),
        search_max_bytes: SEARCH_MAX_BYTES.merge(layers, warnings),
        search_weights: SEARCH_WEIGHTS.merge(layers, warnings),
        durability: AUDIT_DURABILITY.merge(layers, warnings),
        undo_quota_bytes: UNDO_QUOTA_BYTES.merge(layers, warnings),
        package_caches: CACHES_PACKAGES.merge(layers, warnings),
        cache_quota_bytes: CACHES_QUOTA_BYTES.merge(layers, warnings),
        secret_names: REDACT_NAMES.merge(layers, warnings).into_iter().collect(),
        unknown_commands: COMMANDS_UNKNOWN.merge(layers, warnings),
        overlay: COMMANDS_OVERLAY.merge(layers, warnings),
        quarantine: COMMANDS_QUARANTINE.merge(layers, warnings),
        weakest_sandbox: COMMANDS_WEAKEST_SANDBOX.merge(layers, warnings),
        command_limits: CommandLimits {
            temporary_bytes: COMMANDS_TEMPORARY_BYTES.merge(layers, warnings),
            processes: COMMANDS_PROCESSES.merge(layers, warnings),
            open_files: COMMANDS_OPEN_FILES.merge(layers, warnings),
            processor_seconds: COMMANDS_PROCESSOR_SECONDS.merge(layers, warnings),
        },
        denied_skills: SKILLS_DENY.merge(layers, warnings).into_iter().collect(),
        allowed_tools: SKILLS_ALLOWED_TOOLS.merge(layers, warnings),
        approval_wait_seconds: APPROVALS_WAIT_SECONDS.merge(layers, warnings),
        grant_session_hours: APPROVALS_SESSION_HOURS.merge(layers, warnings),
        grant_always_days: APPROVALS_ALWAYS_DAYS.merge(layers, warnings),
        store: StoreConfig { url: STORE_URL.merge(layers, warnings), queue: STORE_QUEUE.merge(layers, warnings) },
        client_dialects: DIALECTS_CLIENTS.merge(layers, warnings),
        model: merge_model(layers, warnings),
        configured_tools: merge_tools(layers, warnings)?,
        mcp_servers: merge_mcp_servers(layers, warnings)?,
        mcp_listed_tools: MCP_LISTED_TOOLS.merge(layers, warnings),
        lsp: LspSettings {
            after_changes: LSP_AFTER_CHANGES.merge(layers, warnings),
            memory_bytes: LSP_MEMORY_BYTES.merge(layers, warnings),
            wait_seconds: LSP_WAIT_SECONDS.merge(layers, warnings),
            servers: merge_lsp_servers(layers, warnings)?,
        },
    })
}

fn merge_model(layers: &[ConfigLayer], warnings: &mut Vec<String>) -> ModelSettings {
    let input = MODEL_INPUT_PRICE.merge(layers, warnings);
    let output = MODEL_OUTPUT_PRICE.merge(layers, warnings);
    ModelSettings {
        default: MODEL_DEFAULT.merge(layers, warnings),
        base_url: MODEL_BASE_URL.merge(layers, warnings),
        effort: MODEL_EFFORT.merge(layers, warnings),
        idle_timeout: Duration::from_secs(MODEL_TIMEOUT_SECONDS.merge(layers, warnings)),
        dialect: MODEL_DIALECT.merge(layers, warnings),
        prices: input.zip(output),
        currency: MODEL_CURRENCY.merge(layers, warnings).unwrap_or_else(|| "$".into()),
    }
}

/// One limit of calls: its row, how a layer states it for a tool, and where the merged value goes.
type LimitField = (&'static Setting<u64>, fn(&ToolLimitsConfig) -> Option<u64>, fn(&mut CallLimits) -> &mut u64);

static LIMITS: [LimitField; 4] = [
    (&LIMITS_LINES, |stated| stated.lines, |limits| &mut limits.lines),
    (&LIMITS_BYTES, |stated| stated.bytes, |limits| &mut limits.bytes),
    (&LIMITS_LINE_CHARS, |stated| stated.line_chars, |limits| &mut limits.line_chars),
    (&LIMITS_TIMEOUT_SECONDS, |stated| stated.timeout_seconds, |limits| &mut limits.timeout_seconds),
];

/// The limits of one tool, or of every tool that has none of its own.
fn merge_limits(layers: &[ConfigLayer], tool: Option<&str>, warnings: &mut Vec<String>) -> CallLimits {
    let mut limits = CallLimits::default();
    for (setting, stated, merged) in &LIMITS {
        *merged(&mut limits) = setting.merge_as(layers, |config| stated(&config.limits.of(tool)), warnings);
    }
    limits
}

/// A limit of 0 would forbid what it limits; whoever wants that has a rule for it.
fn check_positive(layers: &[ConfigLayer]) -> Result<(), ConfigError> {
    for input in layers {
        let general = POSITIVE.iter().map(|setting| (setting.name, (setting.stated)(&input.config)));
        let of_tools = input
            .config
            .limits
            .tools
            .values()
            .flat_map(|stated| LIMITS.iter().map(move |(setting, value, _)| (setting.name, value(stated))));
        if let Some((name, _)) = general.chain(of_tools).find(|(_, value)| *value == Some(0)) {
            let field = name.rsplit('.').next().unwrap_or(name);
            let fault = ConfigFault::new(format!("The limit `{field}` is 0."), "Use 1 or more, or leave it out.");
            return Err(fault.at(&input.source, input.layer, None));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, GrantDays, OverlayMode, UnknownCommandAction};
    use crate::testing::{layer, settings, try_settings, untrusted};
    use toolgate_contract::{AllowedTools, Durability, Layer, Tier};

    #[test]
    fn defaults() {
        let merged = settings(vec![]).0;
        assert_eq!(merged.limits, CallLimits { lines: 2000, bytes: 51_200, line_chars: 2000, timeout_seconds: 120 });
        assert_eq!((merged.durability, merged.unknown_commands), (Durability::Os, UnknownCommandAction::Confine));
    }

    #[test]
    fn the_model_is_the_users_own_choice_and_never_a_workspaces() {
        let text =
            "[model]\ndefault = 'chat:x'\nbase_url = 'https://evil.example'\ninput_price = 1.5\noutput_price = 10";
        let (merged, warnings) = settings(vec![layer(Layer::Workspace, text)]);
        assert_eq!((merged.model.default, merged.model.base_url), (None, None));
        assert!(warnings.iter().any(|warning| warning.contains("`model.base_url`")), "{warnings:?}");
        let model = settings(vec![layer(Layer::User, text)]).0.model;
        assert_eq!((model.default.as_deref(), model.idle_timeout), (Some("chat:x"), Duration::from_secs(90)));
        let tokens = |input, output| toolgate_contract::TokenUsage { input, output };
        assert_eq!(model.cost(tokens(1_000_000, 100_000)).as_deref(), Some("$2.50"));
        assert_eq!(model.cost(tokens(1_000, 100)).as_deref(), Some("$0.0025"));
        assert_eq!(settings(vec![]).0.model.cost(tokens(1, 1)), None, "no price is known");
        let cost = |used: &[(&str, u64)]| {
            let used = used.iter().map(|(model, input)| ((*model).to_owned(), tokens(*input, 0)));
            model.cost_of(&used.collect::<std::collections::BTreeMap<_, _>>())
        };
        assert_eq!(cost(&[("x", 1_000_000), ("json+x", 1_000_000), ("other", 0)]).as_deref(), Some("$3.00"));
        assert_eq!(cost(&[("x", 1_000_000), ("other", 1)]), None, "the other's price isn't known");
        assert_eq!(cost(&[]), None, "nothing was used");
    }

    #[test]
    fn a_weaker_layer_only_lowers_what_a_stronger_one_set() {
        let managed = || layer(Layer::Managed, "[limits]\nlines = 500\nbytes = 900");
        let user = || layer(Layer::User, "[limits]\nlines = 800\nbytes = 100\ntimeout_seconds = 900");
        let (merged, warnings) = settings(vec![user(), managed()]);
        assert_eq!(merged.limits, CallLimits { lines: 500, bytes: 100, line_chars: 2000, timeout_seconds: 900 });
        assert_eq!(
            warnings,
            ["user.toml: a higher limit (`lines = 800`) is ignored, because a layer with more authority is stricter."]
        );
    }

    #[test]
    fn an_untrusted_workspace_lowers_but_never_raises() {
        let flags = || layer(Layer::Flags, "[limits]\nlines = 5000");
        let (merged, warnings) = settings(vec![flags(), untrusted("[limits]\nlines = 9000\nbytes = 10")]);
        assert_eq!((merged.limits.lines, merged.limits.bytes), (5000, 10));
        assert!(warnings[0].contains("run `toolgate trust`"), "{warnings:?}");
        let (merged, _) = settings(vec![flags(), untrusted("[limits]\nlines = 50")]);
        assert_eq!(merged.limits.lines, 50);
    }

    #[test]
    fn a_tools_own_limit_goes_beyond_its_own_layers_but_not_a_stronger_ones() {
        let user = layer(Layer::User, "[limits]\nlines = 100\n[limits.tools.grep]\nlines = 300");
        let flags = layer(Layer::Flags, "[limits.tools.read]\nlines = 200\n[limits.tools.grep]\nbytes = 7");
        let (merged, warnings) = settings(vec![user, flags]);
        assert_eq!(merged.limits_of("list", None).lines, 100);
        assert_eq!(merged.limits_of("grep", None), CallLimits { lines: 300, bytes: 7, ..CallLimits::default() });
        assert_eq!(merged.limits_of("read", None).lines, 100);
        assert_eq!(warnings.len(), 1, "{warnings:?}");
    }

    #[test]
    fn a_tool_says_how_long_it_takes_unless_a_layer_does() {
        let own = Some(Duration::from_secs(620));
        for (text, expected) in [
            ("", 620),
            ("[limits.tools.shell]\nlines = 5", 620),
            ("[limits.tools.other]\ntimeout_seconds = 5", 620),
            ("[limits.tools.shell]\ntimeout_seconds = 30", 30),
            ("[limits]\ntimeout_seconds = 900", 900),
        ] {
            let merged = settings(vec![layer(Layer::User, text)]).0;
            assert_eq!(merged.limits_of("shell", own).timeout_seconds, expected, "{text}");
            assert!(text.contains("[limits]") || merged.limits_of("read", None).timeout_seconds == 120, "{text}");
        }
    }

    #[test]
    fn limits_of_processes_only_get_lower() {
        let user = || layer(Layer::User, "[processes]\nmost = 4\ntimeout_seconds = 9000");
        let flags = || layer(Layer::Flags, "[processes]\nmost = 6\noutput_bytes = 500");
        let (merged, warnings) = settings(vec![flags(), user(), untrusted("[processes]\ntimeout_seconds = 60")]);
        assert_eq!(
            merged.processes,
            ProcessLimits { most: 4, timeout_seconds: 60, output_bytes: 500, ..ProcessLimits::default() }
        );
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert_eq!(settings(vec![untrusted("[processes]\nmost = 99")]).0.processes, ProcessLimits::default());
        let said = try_settings(vec![layer(Layer::User, "[processes]\nmost = 0")]).unwrap_err().to_string();
        assert!(said.contains("`most` is 0"), "{said}");
    }

    #[test]
    fn what_is_strict_unless_said_is_loosened_by_the_strongest_and_never_by_an_untrusted_workspace() {
        let overlay = |value: &str| format!("[commands]\noverlay = '{value}'");
        assert_eq!(settings(vec![]).0.overlay, OverlayMode::On);
        assert_eq!(settings(vec![layer(Layer::User, &overlay("off"))]).0.overlay, OverlayMode::Off);
        let (merged, warnings) = settings(vec![untrusted(&overlay("off"))]);
        assert_eq!((merged.overlay, warnings.len()), (OverlayMode::On, 1), "{warnings:?}");
        let (merged, warnings) =
            settings(vec![layer(Layer::Managed, &overlay("on")), layer(Layer::User, &overlay("off"))]);
        assert_eq!((merged.overlay, warnings.len()), (OverlayMode::On, 1), "{warnings:?}");
    }

    #[test]
    fn a_sandbox_can_be_demanded_by_anybody_and_given_up_only_by_who_may_loosen() {
        let weakest = |value: &str| format!("[commands]\nweakest_sandbox = '{value}'");
        let merged = |layers| settings(layers).0.weakest_sandbox;
        assert_eq!(merged(vec![]), Tier::Bubblewrap);
        assert_eq!(merged(vec![layer(Layer::User, &weakest("landlock"))]), Tier::Landlock);
        assert_eq!(merged(vec![untrusted(&weakest("landlock"))]), Tier::Bubblewrap);
        assert_eq!(merged(vec![layer(Layer::Workspace, &weakest("landlock"))]), Tier::Bubblewrap);
        assert_eq!(merged(vec![untrusted(&weakest("namespaces"))]), Tier::Namespaces);
        let both = vec![layer(Layer::User, &weakest("landlock")), untrusted(&weakest("bubblewrap"))];
        assert_eq!(merged(both), Tier::Bubblewrap);
    }

    #[test]
    fn what_tightens_adds_up_over_all_layers() {
        let user = layer(Layer::User, "[audit]\ndurability = 'sync'\n[redact]\nnames = ['A']");
        let other = untrusted("[audit]\ndurability = 'os'\n[redact]\nnames = ['B']\n[commands]\nunknown = 'ask'");
        let (merged, _) = settings(vec![user, other]);
        assert_eq!(merged.durability, Durability::Sync);
        assert_eq!(merged.unknown_commands, UnknownCommandAction::Ask);
        assert!(merged.secret_names.contains("A") && merged.secret_names.contains("B"));
    }

    #[test]
    fn a_skills_tools_are_a_ceiling_until_somebody_who_may_says_otherwise() {
        let means = |word: &str| format!("[skills]\nallowed_tools = '{word}'\ndeny = ['{word}']");
        assert_eq!(settings(vec![]).0.allowed_tools, AllowedTools::Ceiling);
        let approval = || layer(Layer::User, &means("approval"));
        assert_eq!(settings(vec![approval()]).0.allowed_tools, AllowedTools::Approval);
        let (merged, warnings) = settings(vec![approval(), untrusted(&means("ceiling"))]);
        assert_eq!((merged.allowed_tools, merged.denied_skills.len()), (AllowedTools::Ceiling, 2), "{warnings:?}");
        let (merged, warnings) = settings(vec![untrusted(&means("approval"))]);
        assert_eq!((merged.allowed_tools, warnings.len()), (AllowedTools::Ceiling, 1), "{warnings:?}");
    }

    #[test]
    fn the_strongest_layer_sets_the_quota_for_undo_and_an_untrusted_workspace_has_no_say() {
        let quota = |bytes: u64| format!("[undo]\nquota_bytes = {bytes}");
        assert_eq!(settings(vec![]).0.undo_quota_bytes, 1 << 30);
        let (merged, warnings) = settings(vec![layer(Layer::User, &quota(500)), layer(Layer::Flags, &quota(900))]);
        assert_eq!((merged.undo_quota_bytes, warnings.len()), (500, 1), "{warnings:?}");
        for bytes in [1, 1 << 40] {
            let (merged, warnings) = settings(vec![untrusted(&quota(bytes))]);
            assert_eq!((merged.undo_quota_bytes, warnings.len()), (1 << 30, 1), "{warnings:?}");
        }
    }

    #[test]
    fn how_much_is_fetched_can_be_raised_by_whoever_may_and_lowered_by_everybody() {
        let body = |bytes: u64| format!("[fetch]\nbody_bytes = {bytes}");
        assert_eq!(settings(vec![]).0.fetch_bytes, 10 << 20);
        let (merged, warnings) = settings(vec![layer(Layer::User, &body(1 << 30)), untrusted(&body(900))]);
        assert_eq!((merged.fetch_bytes, warnings.len()), (900, 0), "{warnings:?}");
        let (merged, warnings) = settings(vec![untrusted(&body(1 << 30))]);
        assert_eq!((merged.fetch_bytes, warnings.len()), (10 << 20, 1), "{warnings:?}");
        assert!(try_settings(vec![layer(Layer::User, &body(0))]).is_err());
    }

    #[test]
    fn approvals_are_waited_for_as_long_as_the_strongest_layer_says() {
        let wait = |seconds: u64| format!("[approvals]\nwait_seconds = {seconds}");
        assert_eq!(settings(vec![]).0.approval_wait_seconds, 0);
        let (merged, warnings) = settings(vec![layer(Layer::User, &wait(60)), layer(Layer::Flags, &wait(5))]);
        assert_eq!((merged.approval_wait_seconds, warnings.len()), (60, 1), "{warnings:?}");
        let (merged, warnings) = settings(vec![untrusted(&wait(9))]);
        assert_eq!((merged.approval_wait_seconds, warnings.len()), (0, 1), "{warnings:?}");
    }

    #[test]
    fn only_the_user_or_the_administrator_makes_approvals_last_longer() {
        let config = |hours: u64, days: &str| format!("[approvals]\nsession_hours = {hours}\nalways_days = {days}");
        let lasting = |layers| {
            let (merged, warnings) = settings(layers);
            (merged.grant_session_hours, merged.grant_always_days, warnings.len())
        };
        assert_eq!(lasting(vec![]), (12, GrantDays::Days(30), 0));
        let mut trusted = untrusted(&config(48, "\"unlimited\""));
        assert_eq!(lasting(vec![trusted.clone()]), (12, GrantDays::Days(30), 2));
        trusted.trusted = true;
        assert_eq!(lasting(vec![trusted]), (12, GrantDays::Days(30), 2));
        assert_eq!(lasting(vec![untrusted(&config(1, "0"))]), (1, GrantDays::Days(0), 0));
        let user = || layer(Layer::User, &config(48, "\"unlimited\""));
        assert_eq!(lasting(vec![user()]), (48, GrantDays::Unlimited, 0));
        let managed = layer(Layer::Managed, &config(8, "7"));
        assert_eq!(lasting(vec![managed, user()]), (8, GrantDays::Days(7), 2));
        assert!(Config::parse("approvals.always_days = \"for ever\"", "user").is_err());
    }

    #[test]
    fn the_strongest_layer_names_the_store_and_nobody_sees_its_password() {
        let store = |host: &str| format!("[store]\nurl = 'postgres://ada:hunter2@{host}/db'\nqueue = '{host}'");
        assert_eq!(settings(vec![]).0.store, StoreConfig::default());
        let layers = vec![layer(Layer::Managed, &store("ours")), layer(Layer::Flags, &store("theirs"))];
        let (merged, warnings) = settings(layers);
        assert_eq!((merged.store.queue.as_deref(), warnings.len()), (Some("ours"), 2), "{warnings:?}");
        assert!(merged.store.url.as_ref().unwrap().reveal().contains("@ours/"));
        assert!(!format!("{merged:?} {warnings:?}").contains("hunter2"));
        let (merged, warnings) = settings(vec![untrusted(&store("theirs"))]);
        assert_eq!((merged.store, warnings.len()), (StoreConfig::default(), 2), "{warnings:?}");
        assert!(!format!("{warnings:?}").contains("hunter2"));
    }
}
