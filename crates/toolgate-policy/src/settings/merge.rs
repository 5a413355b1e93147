//! Layers are merged strongest first; a weaker one can only narrow what a stronger one set, and a workspace that isn't
//! trusted can only narrow at all.

use std::collections::BTreeSet;

use toolgate_contract::{Access, AllowedTools, Layer, WorkspacePath};

use super::{CallLimits, ProcessLimits, Settings, USUAL_FETCH, USUAL_UNDO_QUOTA};
use crate::compile::ConfigLayer;
use crate::config::{
    Config, OverlayMode, ProcessesConfig, QuarantineMode, RootAccess, RootConfig, StoreConfig, StoreUrl,
    ToolLimitsConfig, WeakestSandbox,
};
use crate::error::{ConfigError, ConfigFault};
use crate::path_glob::PathSet;
use crate::sensitive_paths::find_sensitive;

/// Merges the layers, given strongest first.
pub(crate) fn merge(layers: &[ConfigLayer], warnings: &mut Vec<String>) -> Result<Settings, ConfigError> {
    check_limits(layers)?;
    let stated = layers.iter().flat_map(|input| input.config.limits.tools.keys().map(String::as_str));
    let tools: BTreeSet<&str> = stated.collect();
    let states_timeout =
        |tool: Option<&str>| layers.iter().any(|input| input.config.limits.of(tool).timeout_seconds.is_some());
    let timed = tools.iter().filter(|name| states_timeout(Some(name))).map(|name| (*name).to_owned()).collect();
    Ok(Settings {
        roots: merge_roots(layers, warnings)?,
        limits: merge_limits(layers, None, warnings),
        tool_limits: tools
            .into_iter()
            .map(|name| (name.to_owned(), merge_limits(layers, Some(name), warnings)))
            .collect(),
        stated_timeouts: (states_timeout(None), timed),
        processes: merge_processes(layers, warnings),
        fetch_bytes: narrowed(layers, "body_bytes", USUAL_FETCH, |config| config.fetch.body_bytes, warnings),
        durability: layers.iter().filter_map(|input| input.config.audit.durability).max().unwrap_or_default(),
        undo_quota_bytes: merge_undo_quota(layers, warnings)?,
        secret_names: layers.iter().flat_map(|input| input.config.redact.names.iter().cloned()).collect(),
        unknown_commands: layers.iter().filter_map(|input| input.config.commands.unknown).max().unwrap_or_default(),
        overlay: merge_strict(layers, &OVERLAY, warnings),
        quarantine: merge_strict(layers, &QUARANTINE, warnings),
        weakest_sandbox: merge_strict(layers, &WEAKEST_SANDBOX, warnings),
        denied_skills: layers.iter().flat_map(|input| input.config.skills.deny.iter().cloned()).collect(),
        allowed_tools: merge_allowed_tools(layers, warnings),
        approval_wait_seconds: merge_chosen(layers, &APPROVAL_WAIT, warnings).unwrap_or(0),
        store: StoreConfig {
            url: merge_chosen(layers, &STORE_URL, warnings),
            queue: merge_chosen(layers, &STORE_QUEUE, warnings),
        },
    })
}

/// A setting whose default is strict enough: its name, how a layer states it, and which layers may loosen it.
struct StrictSetting<T> {
    name: &'static str,
    stated: fn(&Config) -> Option<T>,
    may_loosen: fn(&ConfigLayer) -> bool,
}

const OVERLAY: StrictSetting<OverlayMode> = StrictSetting {
    name: "commands.overlay",
    stated: |config| config.commands.overlay,
    may_loosen: ConfigLayer::may_loosen,
};
const QUARANTINE: StrictSetting<QuarantineMode> = StrictSetting {
    name: "commands.quarantine",
    stated: |config| config.commands.quarantine,
    may_loosen: ConfigLayer::may_loosen,
};
/// What confines commands depends on the machine, so no workspace can know that less will do, trusted or not.
const WEAKEST_SANDBOX: StrictSetting<WeakestSandbox> = StrictSetting {
    name: "commands.weakest_sandbox",
    stated: |config| config.commands.weakest_sandbox,
    may_loosen: |input| input.layer != Layer::Workspace,
};

/// Merges such a setting: the strongest layer that names it has its way, a weaker one only tightens, and
/// so does a workspace that isn't trusted.
fn merge_strict<T: Copy + Default + Ord>(
    layers: &[ConfigLayer],
    strict: &StrictSetting<T>,
    warnings: &mut Vec<String>,
) -> T {
    let mut merged: Option<T> = None;
    for input in layers {
        let Some(wanted) = (strict.stated)(&input.config) else { continue };
        let floor = merged.or((!(strict.may_loosen)(input)).then(T::default));
        if floor.is_some_and(|floor| wanted < floor) {
            warnings.push(input.ignored(&format!("a milder `{}`", strict.name), merged.is_some()));
            continue;
        }
        merged = Some(wanted);
    }
    merged.unwrap_or_default()
}

/// One limit: its name, how a layer states it, and where the merged value goes.
type LimitField = (&'static str, fn(&ToolLimitsConfig) -> Option<u64>, fn(&mut CallLimits) -> &mut u64);

const FIELDS: [LimitField; 4] = [
    ("lines", |stated| stated.lines, |limits| &mut limits.lines),
    ("bytes", |stated| stated.bytes, |limits| &mut limits.bytes),
    ("line_chars", |stated| stated.line_chars, |limits| &mut limits.line_chars),
    ("timeout_seconds", |stated| stated.timeout_seconds, |limits| &mut limits.timeout_seconds),
];

fn merge_limits(layers: &[ConfigLayer], tool: Option<&str>, warnings: &mut Vec<String>) -> CallLimits {
    let mut limits = CallLimits::default();
    for (field, stated, merged) in FIELDS {
        let merged = merged(&mut limits);
        *merged = narrowed(layers, field, *merged, |config| stated(&config.limits.of(tool)), warnings);
    }
    limits
}

/// A skill's list is a ceiling unless some layer that may loosen says otherwise and none contradicts it.
fn merge_allowed_tools(layers: &[ConfigLayer], warnings: &mut Vec<String>) -> AllowedTools {
    let mut strictest = None;
    for input in layers {
        match input.config.skills.allowed_tools {
            Some(AllowedTools::Approval) if !input.may_loosen() => {
                warnings.push(input.ignored("the approval of skills' tools (`allowed_tools`)", false));
            }
            wanted => strictest = strictest.max(wanted),
        }
    }
    strictest.unwrap_or_default()
}

fn merge_processes(layers: &[ConfigLayer], warnings: &mut Vec<String>) -> ProcessLimits {
    let usual = ProcessLimits::default();
    let mut merge = |field, usual, stated: fn(&Config) -> Option<u64>| narrowed(layers, field, usual, stated, warnings);
    ProcessLimits {
        most: merge("most", usual.most, |config| config.processes.most),
        timeout_seconds: merge("timeout_seconds", usual.timeout_seconds, |config| config.processes.timeout_seconds),
        output_bytes: merge("output_bytes", usual.output_bytes, |config| config.processes.output_bytes),
    }
}

/// What the layers come to: the strongest that states a limit sets it, and those after it can only lower it.
fn narrowed(
    layers: &[ConfigLayer],
    field: &str,
    usual: u64,
    stated: impl Fn(&Config) -> Option<u64>,
    warnings: &mut Vec<String>,
) -> u64 {
    let (mut limit, mut ceiling) = (usual, None);
    for input in layers {
        let Some(wanted) = stated(&input.config) else { continue };
        let ceiling_here = ceiling.or((!input.may_loosen()).then_some(limit));
        if ceiling_here.is_some_and(|ceiling| wanted > ceiling) {
            let what = format!("a higher limit (`{field} = {wanted}`)");
            warn_once(warnings, input.ignored(&what, ceiling.is_some()));
            continue;
        }
        ceiling = Some(wanted);
        limit = wanted;
    }
    limit
}

/// A general limit is met again for every tool that has limits of its own; once is enough to say so.
fn warn_once(warnings: &mut Vec<String>, warning: String) {
    if !warnings.contains(&warning) {
        warnings.push(warning);
    }
}

fn check_limits(layers: &[ConfigLayer]) -> Result<(), ConfigError> {
    for input in layers {
        let limits = &input.config.limits;
        for stated in std::iter::once(limits.of(None)).chain(limits.tools.values().copied()) {
            if let Some((field, ..)) = FIELDS.iter().find(|(_, value, _)| value(&stated) == Some(0)) {
                return Err(zero(field, input));
            }
        }
        let ProcessesConfig { most, timeout_seconds, output_bytes } = input.config.processes;
        let fields = [
            ("most", most),
            ("timeout_seconds", timeout_seconds),
            ("output_bytes", output_bytes),
            ("body_bytes", input.config.fetch.body_bytes),
        ];
        if let Some((field, _)) = fields.into_iter().find(|(_, value)| *value == Some(0)) {
            return Err(zero(field, input));
        }
    }
    Ok(())
}

fn zero(field: &str, input: &ConfigLayer) -> ConfigError {
    let fault = ConfigFault::new(format!("The limit `{field}` is 0."), "Use 1 or more, or leave it out.");
    fault.at(&input.source, input.layer, None)
}

/// A value that is neither looser nor tighter than another: its name, what it is, and how a layer states it.
type StrongestLayerSetting<T> = (&'static str, &'static str, fn(&ConfigLayer) -> Option<T>);

/// A larger quota takes disk space and a smaller one takes the way back.
const UNDO_QUOTA: StrongestLayerSetting<u64> =
    ("quota_bytes", "the quota for undo", |input| input.config.undo.quota_bytes);

/// A longer wait holds callers up and a shorter one takes the time to answer.
const APPROVAL_WAIT: StrongestLayerSetting<u64> =
    ("wait_seconds", "the wait for approvals", |input| input.config.approvals.wait_seconds);

/// Whoever names the database gets to see everything that is done.
const STORE_URL: StrongestLayerSetting<StoreUrl> =
    ("url", "the database of the store", |input| input.config.store.url.clone());

/// Whoever names the queue chooses whose tasks are done here.
const STORE_QUEUE: StrongestLayerSetting<String> =
    ("queue", "the queue of tasks", |input| input.config.store.queue.clone());

/// The strongest layer that names a value has its way; a workspace that isn't trusted has no say in it.
fn merge_chosen<T: PartialEq>(
    layers: &[ConfigLayer],
    (name, what, stated): &StrongestLayerSetting<T>,
    warnings: &mut Vec<String>,
) -> Option<T> {
    let mut chosen = None;
    for input in layers {
        let Some(wanted) = stated(input) else { continue };
        match &chosen {
            None if input.may_loosen() => chosen = Some(wanted),
            Some(chosen) if *chosen == wanted => {}
            _ if input.may_loosen() => {
                warnings.push(format!("{}: `{name}` is ignored: a layer with more authority set it.", input.source));
            }
            _ => warnings.push(input.ignored(&format!("{what} (`{name}`)"), false)),
        }
    }
    chosen
}

fn merge_undo_quota(layers: &[ConfigLayer], warnings: &mut Vec<String>) -> Result<u64, ConfigError> {
    if let Some(input) = layers.iter().find(|input| input.config.undo.quota_bytes == Some(0)) {
        let fault = ConfigFault::new("The quota `quota_bytes` is 0.", "Use 1 or more, or leave it out.");
        return Err(fault.at(&input.source, input.layer, None));
    }
    Ok(merge_chosen(layers, &UNDO_QUOTA, warnings).unwrap_or(USUAL_UNDO_QUOTA))
}

fn merge_roots(layers: &[ConfigLayer], warnings: &mut Vec<String>) -> Result<Vec<RootConfig>, ConfigError> {
    let mut roots: Vec<RootConfig> = Vec::new();
    for input in layers {
        let stronger = roots.clone();
        for wanted in &input.config.roots {
            let mut root = check_root(wanted).map_err(|fault| fault.at(&input.source, input.layer, None))?;
            if !input.may_loosen() {
                warnings.push(input.ignored(&format!("the root `{}`", root.path), false));
                continue;
            }
            let narrower = |known: &&RootConfig| known.access < root.access && is_beneath(&known.path, &root.path);
            if stronger.iter().any(|known| narrower(&known)) {
                warnings.push(input.ignored(&format!("writing in the root `{}`", root.path), true));
                root.access = RootAccess::Read;
            }
            match roots.iter_mut().find(|known| known.path == root.path) {
                Some(known) => known.access = known.access.min(root.access),
                None => roots.push(root),
            }
        }
    }
    Ok(roots)
}

fn check_root(root: &RootConfig) -> Result<RootConfig, ConfigFault> {
    let wrong = |why: &str, hint: &str| Err(ConfigFault::new(format!("The root `{}` {why}.", root.path), hint));
    if !root.path.starts_with('/') {
        return wrong("isn't absolute", "Write the whole path, from `/` on.");
    }
    if root.path.split('/').any(|part| matches!(part, "." | "..")) {
        return wrong("has `.` or `..` in it", "Write where it really is.");
    }
    let parts: Vec<_> = root.path.split('/').filter(|part| !part.is_empty()).collect();
    let path = parts.join("/");
    if find_sensitive(Access::Read, &WorkspacePath::in_workspace(path.clone()), &PathSet::default()).is_some() {
        return wrong("is a sensitive place", "Choose a directory that holds no credentials.");
    }
    Ok(RootConfig { path: format!("/{path}"), access: root.access })
}

fn is_beneath(directory: &str, path: &str) -> bool {
    path.strip_prefix(directory).is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || directory == "/")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::Durability;
    use super::*;
    use crate::config::UnknownCommandAction;
    use crate::testing::{layer, settings, untrusted};
    use toolgate_contract::Layer;

    #[test]
    fn defaults() {
        let merged = settings(vec![]).0;
        assert_eq!(merged.limits, CallLimits { lines: 2000, bytes: 51_200, line_chars: 2000, timeout_seconds: 120 });
        assert_eq!((merged.durability, merged.unknown_commands), (Durability::Os, UnknownCommandAction::Confine));
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
        assert_eq!(merged.processes, ProcessLimits { most: 4, timeout_seconds: 60, output_bytes: 500 });
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert_eq!(settings(vec![untrusted("[processes]\nmost = 99")]).0.processes, ProcessLimits::default());
        let said = crate::compile(vec![layer(Layer::User, "[processes]\nmost = 0")]).unwrap_err().to_string();
        assert!(said.contains("`most` is 0"), "{said}");
    }

    #[test]
    fn roots_add_up_but_a_weaker_layer_never_widens_one() {
        let user = layer(Layer::User, "roots = [{ path = '/data/' }, { path = '/work', access = 'write' }]");
        let flags = layer(Layer::Flags, "roots = [{ path = '/data/in', access = 'write' }, { path = '/work' }]");
        let (merged, warnings) = settings(vec![user, flags, untrusted("roots = [{ path = '/home' }]")]);
        let read = |path: &str| RootConfig { path: path.into(), access: RootAccess::Read };
        assert_eq!(merged.roots, [read("/data"), read("/work"), read("/data/in")]);
        assert_eq!(warnings.len(), 2, "{warnings:?}");
    }

    #[test]
    fn roots_that_cannot_be_are_refused() {
        for (path, expected) in
            [("data", "isn't absolute"), ("/a/../b", "`..` in it"), ("/home/me/.ssh", "sensitive place")]
        {
            let input = layer(Layer::User, &format!("roots = [{{ path = '{path}' }}]"));
            let said = crate::compile(vec![input]).unwrap_err().to_string();
            assert!(said.contains(expected), "{said}");
        }
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
        assert_eq!(merged(vec![]), WeakestSandbox::Bubblewrap);
        assert_eq!(merged(vec![layer(Layer::User, &weakest("landlock"))]), WeakestSandbox::Landlock);
        assert_eq!(merged(vec![untrusted(&weakest("landlock"))]), WeakestSandbox::Bubblewrap);
        assert_eq!(merged(vec![layer(Layer::Workspace, &weakest("landlock"))]), WeakestSandbox::Bubblewrap);
        assert_eq!(merged(vec![untrusted(&weakest("namespaces"))]), WeakestSandbox::Namespaces);
        let both = vec![layer(Layer::User, &weakest("landlock")), untrusted(&weakest("bubblewrap"))];
        assert_eq!(merged(both), WeakestSandbox::Bubblewrap);
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
        assert!(crate::compile(vec![layer(Layer::User, &body(0))]).is_err());
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
