//! What is judged, and how.

use super::*;
use crate::testing::{compiled, connect, judge, judge_tool, layer, located, policy, run, tool, untrusted};
use Decision::{Allow, Ask, Deny};
use toolgate_contract::{ErrorCode, Risk};

#[test]
fn presets_decide_what_no_rule_speaks_of() {
    let effects = [
        Effect::read("a"),
        Effect::write("a"),
        Effect::delete("a"),
        run("make"),
        run("make | tee log"),
        connect("example.com"),
        Effect::Speak,
    ];
    for (preset, expected) in [
        ("full", [Allow; 7]),
        ("workspace", [Allow, Allow, Ask, Allow, Allow, Ask, Allow]),
        ("autonomous", [Allow, Allow, Deny, Allow, Allow, Deny, Allow]),
        ("read-only", [Allow, Deny, Deny, Deny, Deny, Deny, Allow]),
    ] {
        let policy = policy(&format!("preset = '{preset}'"));
        let decisions = effects.clone().map(|effect| judge(&policy, &[effect]).decision);
        assert_eq!(decisions, expected, "{preset}");
    }
}

#[test]
fn a_process_may_be_followed_wherever_it_may_be_started_and_fed_as_if_it_were_a_command() {
    let process = tool("process", Risk::Medium, &[Permission::ProcExec]);
    let attend = Effect::Attend { process: "proc_1".into() };
    let feed = |text: &str| Effect::Feed { process: "proc_1".into(), text: text.into() };
    let effects = [attend.clone(), feed("yes\n"), feed("ls\n"), feed("git push\r"), feed("\u{3}"), feed("cat .env\n")];
    for (text, expected) in [
        ("", [Allow, Allow, Allow, Ask, Allow, Deny]),
        ("preset = 'full'", [Allow, Allow, Allow, Allow, Allow, Deny]),
        ("preset = 'autonomous'", [Allow, Allow, Allow, Deny, Allow, Deny]),
        ("preset = 'read-only'", [Allow, Deny, Deny, Deny, Deny, Deny]),
        ("[commands]\nunknown = 'ask'", [Allow, Ask, Ask, Ask, Ask, Deny]),
        ("[commands]\ndeny = ['yes']", [Allow, Deny, Allow, Ask, Allow, Deny]),
        ("rules = [{ decision = 'ask', permission = 'proc.exec' }]", [Allow, Ask, Ask, Ask, Ask, Deny]),
        ("rules = [{ decision = 'deny', permission = 'proc.exec' }]", [Deny; 6]),
        ("rules = [{ decision = 'deny', tool = 'process' }]", [Deny; 6]),
    ] {
        let policy = policy(text);
        for (effect, expected) in effects.iter().zip(expected) {
            let verdict = judge_tool(&policy, &process, std::slice::from_ref(effect), &[]);
            assert_eq!(verdict.decision, expected, "{text}: {effect}");
            let confines = text != "preset = 'full'" && *effect != attend;
            assert_eq!(verdict.confined, confines, "{text}: {effect}");
        }
    }
}

#[test]
fn permissions_without_effects_are_judged_by_the_declaration() {
    let git = tool("commit", Risk::High, &[Permission::GitWrite]);
    let opaque = tool("mcp__mail", Risk::High, &[Permission::NetConnect]);
    let patch = tool("patch", Risk::High, &[Permission::FsWrite, Permission::FsDelete]);
    let writes = [Effect::write("a")];
    for (text, git_decision, opaque_decision, patch_decision) in [
        ("preset = 'full'", Allow, Allow, Allow),
        ("preset = 'workspace'", Ask, Ask, Allow),
        ("preset = 'autonomous'", Deny, Deny, Allow),
        ("rules = [{ decision = 'allow', permission = 'git.write' }]", Allow, Ask, Allow),
        ("rules = [{ decision = 'ask', permission = 'fs.delete' }]", Ask, Ask, Allow),
        ("rules = [{ decision = 'deny', permission = 'fs.delete' }]", Ask, Ask, Deny),
    ] {
        let policy = policy(text);
        assert_eq!(judge_tool(&policy, &git, &[run("git commit")], &[]).decision, git_decision, "{text}");
        assert_eq!(judge_tool(&policy, &opaque, &[], &[]).decision, opaque_decision, "{text}");
        assert_eq!(judge_tool(&policy, &patch, &writes, &[]).decision, patch_decision, "{text}");
    }
}

#[test]
fn every_kind_of_rule_decides() {
    let probe = tool("probe", Risk::Medium, &[]);
    for (rule, effect, expected) in [
        ("tool = 'pr*'", Effect::read("a"), true),
        ("tool = 'other'", Effect::read("a"), false),
        ("risk = 'medium'", Effect::read("a"), true),
        ("risk = 'high'", Effect::read("a"), false),
        ("permission = 'fs.read'", Effect::read("a"), true),
        ("permission = 'fs.read'", Effect::write("a"), false),
        ("path = 'docs/**'", Effect::read("docs/a"), true),
        ("path = 'docs/**'\naccess = ['write']", Effect::read("docs/a"), false),
        ("path = 'docs/**'\naccess = ['write']", Effect::write("docs/a"), true),
        ("path = 'docs'", Effect::read("DOCS/a/"), true),
        ("host = '*.example.com'", connect("www.Example.com."), true),
        ("host = '*.example.com'", connect("example.com"), false),
        ("command = ['git', 'push']", run("git push origin"), true),
        ("command = ['git', 'push']", run("git pull"), false),
    ] {
        for decision in [Ask, Deny] {
            let policy = policy(&format!("preset = 'full'\n[[rules]]\ndecision = '{decision}'\n{rule}"));
            let verdict = judge_tool(&policy, &probe, std::slice::from_ref(&effect), &[]);
            assert_eq!(verdict.decision, if expected { decision } else { Allow }, "{decision} {rule} {effect}");
            assert_eq!(verdict.decided_by.name.layer == Layer::User, expected, "{decision} {rule} {effect}");
        }
    }
}

#[test]
fn an_allow_rule_answers_what_it_speaks_of() {
    let ask = |rule: &str| format!("{{ decision = 'ask', {rule} }}");
    let allow = |rule: &str| format!("{{ decision = 'allow', {rule} }}");
    let (path, other_path) = ("path = 'a/**'", "path = 'b'");
    let (by_tool, by_risk, by_permission) = ("tool = 'probe'", "risk = 'medium'", "permission = 'fs.delete'");
    for (asks, allows, expected) in [
        // The baseline's ask about deleting.
        ("", path, Allow),
        ("", other_path, Ask),
        ("", "path = 'a/**', access = ['read']", Ask),
        ("", by_tool, Allow),
        ("", by_risk, Allow),
        ("", by_permission, Allow),
        ("", "permission = 'fs.write'", Ask),
        // A general rule doesn't answer a specific one.
        (path, "path = 'a/x'", Allow),
        (path, by_tool, Ask),
        (path, by_risk, Ask),
        (path, by_permission, Ask),
        // A rule on one effect doesn't answer for the entire call.
        (by_tool, path, Ask),
        (by_tool, by_permission, Ask),
        (by_tool, by_tool, Allow),
    ] {
        let asks = if asks.is_empty() { String::new() } else { ask(asks) + "," };
        let policy = policy(&format!("rules = [{asks} {}]", allow(allows)));
        let probe = tool("probe", Risk::Low, &[]);
        let verdict = judge_tool(&policy, &probe, &[Effect::delete("a/x")], &[]);
        assert_eq!(verdict.decision, expected, "{asks} {allows}");
    }
}

#[test]
fn a_deny_is_never_answered() {
    for denied in ["tool = '*'", "risk = 'low'", "permission = 'fs.read'", "path = '**'"] {
        let allowed = ["tool = '*'", "risk = 'high'", "permission = 'fs.read'", "path = '**'"];
        let allow: String = allowed.map(|rule| format!("[[rules]]\ndecision = 'allow'\n{rule}\n")).concat();
        let managed = layer(Layer::Managed, &allow);
        let flags = layer(Layer::Flags, &format!("[[rules]]\ndecision = 'deny'\n{denied}"));
        let policy = compiled(vec![managed, flags]).policy;
        assert_eq!(judge(&policy, &[Effect::read("a")]).decision, Deny, "{denied}");
    }
}

#[test]
fn sensitive_places_are_denied_in_every_preset_and_form() {
    let everything = "rules = [{ decision = 'allow', path = '**' }, { decision = 'allow', tool = '*' }]";
    for preset in ["full", "workspace", "autonomous", "read-only"] {
        let policy = policy(&format!("preset = '{preset}'\n{everything}"));
        for path in [".ssh/id_ed25519", "x/.AWS/credentials", ".env", ".toolgate/runs/", "sub/.toolgate", "A.PEM"] {
            for effect in [Effect::read(path), Effect::write(path), Effect::delete(path)] {
                let verdict = judge(&policy, std::slice::from_ref(&effect));
                assert_eq!(verdict.decision, Deny, "{preset} {effect}");
                assert_eq!(verdict.decided_by.code, Some(ErrorCode::SensitivePath), "{preset} {effect}");
            }
        }
    }
    let policy = policy("preset = 'full'");
    for (effect, expected) in [
        (Effect::write("toolgate.toml"), Some(ErrorCode::PolicyDenied)),
        (Effect::read("toolgate.toml"), None),
        (Effect::write(".git/hooks/pre-commit"), Some(ErrorCode::PolicyDenied)),
        (Effect::delete("lib/.git/config"), Some(ErrorCode::PolicyDenied)),
        (Effect::read(".git/config"), None),
        (Effect::read(".env.example"), None),
        (Effect::read(""), None),
    ] {
        assert_eq!(judge(&policy, std::slice::from_ref(&effect)).decided_by.code, expected, "{effect}");
    }
}

#[test]
fn what_toolgate_keeps_is_restored_despite_sensitive_paths_but_not_despite_rules() {
    let restore = |path: &str, access| Effect::Restore { path: path.into(), access };
    let rules = "rules = [{ decision = 'deny', path = 'shut/**' }]";
    for (text, path, access, expected) in [
        ("", ".git/config", Access::Write, Allow),
        ("", ".git/config", Access::Delete, Ask),
        ("", ".env", Access::Write, Allow),
        ("", ".toolgate/runs/1/events.jsonl", Access::Delete, Deny),
        ("", "sub/.toolgate/.git/config", Access::Write, Deny),
        ("", "toolgate.toml", Access::Write, Deny),
        (rules, "shut/a", Access::Write, Deny),
        ("preset = 'read-only'", ".git/config", Access::Write, Deny),
    ] {
        let verdict = judge(&policy(text), &[restore(path, access)]);
        assert_eq!(verdict.decision, expected, "{text} {path} {access:?}");
    }
}

#[test]
fn both_the_written_and_the_real_place_count() {
    let probe = tool("probe", Risk::Low, &[]);
    let decide = |text: &str, written: &str, real: &str| {
        let place = |path| Some(WorkspacePath::in_workspace(path));
        let effects = [LocatedEffect { effect: Effect::delete(written), written: place(written), real: place(real) }];
        policy(text).judge(&PolicyRequest { tool: &probe, effects: &effects, ceilings: &[], bounds: None }).decision
    };
    let deny = "preset = 'full'\nrules = [{ decision = 'deny', path = 'secret' }]";
    let allow = "rules = [{ decision = 'allow', path = 'tmp' }]";
    for (text, written, real, expected) in [
        ("preset = 'full'", "notes.txt", ".ssh/id_rsa", Deny),
        ("preset = 'full'", ".ssh/id_rsa", "notes.txt", Deny),
        (deny, "link", "secret/a", Deny),
        (deny, "secret/link", "a", Deny),
        (allow, "tmp/a", "tmp/b", Allow),
        (allow, "tmp/link", "src/a", Ask),
        (allow, "link", "tmp/a", Ask),
    ] {
        assert_eq!(decide(text, written, real), expected, "{written} -> {real}");
    }
}

#[test]
fn another_root_is_changed_only_if_configuration_says_so() {
    let probe = tool("probe", Risk::Low, &[]);
    let text = "rules = [{ decision = 'deny', path = 'docs/**' }]
        roots = [{ path = '/read' }, { path = '/write', access = 'write' }]";
    let policy = policy(text);
    let decide = |effect: Effect, written: usize, real: usize| {
        let path = effect.path().unwrap().1.to_owned();
        let place = |root| Some(WorkspacePath { root, path: path.clone() });
        let effects = [LocatedEffect { effect, written: place(written), real: place(real) }];
        policy.judge(&PolicyRequest { tool: &probe, effects: &effects, ceilings: &[], bounds: None }).decision
    };
    for (written, real, reads, writes) in [
        (0, 0, Allow, Allow),
        (1, 1, Allow, Deny),
        (2, 2, Allow, Allow),
        (3, 3, Allow, Deny),
        (0, 1, Allow, Deny),
        (2, 1, Allow, Deny),
    ] {
        assert_eq!(decide(Effect::read("a"), written, real), reads, "read {written} {real}");
        assert_eq!(decide(Effect::write("a"), written, real), writes, "write {written} {real}");
        assert_eq!(decide(Effect::read("docs/a"), written, real), Deny, "patterns count in every root");
    }
}

#[test]
fn a_path_that_nobody_located_is_refused() {
    let effects = [LocatedEffect::nowhere(Effect::read("a"))];
    let probe = tool("probe", Risk::Low, &[]);
    let verdict = policy("preset = 'full'").judge(&PolicyRequest {
        tool: &probe,
        effects: &effects,
        ceilings: &[],
        bounds: None,
    });
    assert_eq!(verdict.decided_by.code, Some(ErrorCode::PathOutsideWorkspace));
}

#[test]
fn reserved_hosts_need_a_rule_that_names_them() {
    for (allowed, host, expected) in [
        ("", "127.0.0.1", Deny),
        ("", "2130706433", Deny),
        ("", "bücher.example", Deny),
        ("", "example.com", Allow),
        ("'*', '0.0.0.0/0', '*.localhost'", "localhost", Deny),
        ("'*', '0.0.0.0/0'", "::ffff:10.0.0.1", Deny),
        ("'169.254.0.0/16'", "169.254.169.254", Deny),
        ("'localhost'", "LOCALHOST.", Allow),
        ("'10.0.0.0/8'", "10.0.0.1", Allow),
        ("'::1'", "[::1]", Allow),
        ("'localhost'", "127.0.0.1", Deny),
    ] {
        let policy = policy(&format!("preset = 'full'\n[network]\nallow = [{allowed}]"));
        let verdict = judge(&policy, &[connect(host)]);
        assert_eq!(verdict.decision, expected, "{allowed} {host}");
        let code = (expected == Deny).then_some(ErrorCode::NetworkDenied);
        assert_eq!(verdict.decided_by.code, code, "{allowed} {host}");
    }
}

#[test]
fn many_changes_at_once_ask() {
    let writes = |count: usize| (0..count).map(|n| Effect::write(format!("f{n}"))).collect::<Vec<_>>();
    let twice = [writes(MANY_FILES), writes(MANY_FILES)].concat();
    let reads: Vec<_> = (0..50).map(|n| Effect::read(format!("f{n}"))).collect();
    let decide = |text: &str, effects: &[Effect]| judge(&policy(text), effects).decision;
    assert_eq!(decide("", &writes(MANY_FILES)), Allow);
    assert_eq!(decide("", &writes(MANY_FILES + 1)), Ask);
    assert_eq!(decide("", &twice), Allow, "distinct paths count");
    assert_eq!(decide("", &reads), Allow, "reads don't count");
    assert_eq!(decide("preset = 'autonomous'", &writes(MANY_FILES + 1)), Deny);
    assert_eq!(decide("rules = [{ decision = 'allow', tool = 'probe' }]", &writes(MANY_FILES + 1)), Allow);
    assert_eq!(decide("rules = [{ decision = 'allow', path = '**' }]", &writes(MANY_FILES + 1)), Ask);
}

#[test]
fn writing_instructions_for_others_asks_once_for_each_kind() {
    let path_rule = "rules = [{ decision = 'allow', path = 'AGENTS.md', access = ['write'] }]";
    for (text, path, expected) in [
        ("", "AGENTS.md", Ask),
        ("", "CLAUDE.md", Ask),
        ("", "GEMINI.md", Ask),
        ("", "sub/claude.md", Ask),
        ("", ".github/copilot-instructions.md", Ask),
        ("", ".github/workflows/ci.yml", Ask),
        ("", ".github/dependabot.yml", Allow),
        ("", "README.md", Allow),
        ("preset = 'full'", "AGENTS.md", Allow),
        ("preset = 'autonomous'", "AGENTS.md", Deny),
        ("preset = 'read-only'", "AGENTS.md", Deny),
        (path_rule, "AGENTS.md", Allow),
        (path_rule, "CLAUDE.md", Ask),
        ("rules = [{ decision = 'allow', tool = '*' }]", "AGENTS.md", Ask),
    ] {
        let verdict = judge(&policy(text), &[Effect::write(path)]);
        assert_eq!(verdict.decision, expected, "{text} {path}: {verdict:?}");
    }
    assert_eq!(judge(&policy(""), &[Effect::read("AGENTS.md")]).decision, Allow);
    let asked = |path: &str| judge(&policy(""), &[Effect::write(path)]).asks[0].effect.clone().unwrap();
    assert_eq!(asked("AGENTS.md"), asked("sub/GEMINI.md"), "one approval covers the kind");
    assert_ne!(asked("AGENTS.md"), asked(".github/workflows/ci.yml"));
    let ruled = "rules = [{ decision = 'ask', path = 'AGENTS.md' }]";
    let asks = judge(&policy(ruled), &[Effect::write("AGENTS.md")]).asks;
    assert!(
        asks.iter().any(|ask| ask.effect == Some(Effect::write("AGENTS.md"))),
        "what a rule asks is not covered by it"
    );
    let verdict = judge(&policy(""), &[Effect::write("AGENTS.md")]);
    assert!(!crate::may_be_standing(&verdict.asks), "no approval for a kind outlives its session");
    assert_eq!(verdict.decided_by.reason, "Others act on this file: agents follow these instructions.");
}

#[test]
fn writing_autoloaded_files_asks_in_every_preset_but_full() {
    let path_rule = "rules = [{ decision = 'allow', path = './.mcp.json', access = ['write'] }]";
    let general = "rules = [{ decision = 'allow', tool = '*' }, { decision = 'allow', permission = 'fs.write' }]";
    for (text, path, expected) in [
        ("", ".mcp.json", Ask),
        ("", "sub/.VSCode/tasks.json", Ask),
        ("", ".husky/pre-commit", Ask),
        ("", ".git/commondir", Ask),
        ("", ".vscode", Ask),
        ("", ".vscode/extensions.json", Allow),
        ("preset = 'full'", ".mcp.json", Allow),
        ("preset = 'autonomous'", ".mcp.json", Deny),
        ("preset = 'read-only'", ".mcp.json", Deny),
        (path_rule, ".mcp.json", Allow),
        (path_rule, "sub/.mcp.json", Ask),
        (general, ".mcp.json", Ask),
    ] {
        let verdict = judge(&policy(text), &[Effect::write(path)]);
        assert_eq!(verdict.decision, expected, "{text} {path}: {verdict:?}");
    }
    assert_eq!(judge(&policy(""), &[Effect::read(".mcp.json")]).decision, Allow);
    let verdict = judge(&policy(""), &[Effect::write(".vscode/tasks.json")]);
    assert_eq!(verdict.decided_by.name.rule, "preset workspace: autoloaded files");
    assert!(verdict.decided_by.reason.contains("editors run the tasks"), "{verdict:?}");
    let brought = compiled(vec![untrusted(path_rule)]).policy;
    assert_eq!(judge(&brought, &[Effect::write(".mcp.json")]).decision, Ask, "a repository can't allow it");
    let led = LocatedEffect { real: Some(WorkspacePath::in_workspace(".mcp.json")), ..located(Effect::write("notes")) };
    let request = PolicyRequest { tool: &tool("write", Risk::Low, &[]), effects: &[led], ceilings: &[], bounds: None };
    assert_eq!(policy("").judge(&request).decision, Ask, "nor does a link hide it");
}

#[test]
fn a_call_that_is_held_to_places_stays_in_them() {
    let bounds = PathBounds { source: "the client's roots".into(), places: vec![WorkspacePath::in_workspace("src")] };
    let probe = tool("probe", Risk::Low, &[]);
    let led =
        |effect: Effect, real: &str| LocatedEffect { real: Some(WorkspacePath::in_workspace(real)), ..located(effect) };
    for (effect, expected) in [
        (located(Effect::read("src/a.rs")), Allow),
        (located(Effect::write("src")), Allow),
        (located(Effect::Speak), Allow),
        (located(Effect::read("")), Deny),
        (located(Effect::read("srcs/a.rs")), Deny),
        (led(Effect::read("src/link"), "other/a.rs"), Deny),
        (led(Effect::read("link"), "src/a.rs"), Deny),
        (located(run("ls src")), Deny),
    ] {
        let effects = [effect];
        let request = PolicyRequest { tool: &probe, effects: &effects, ceilings: &[], bounds: Some(&bounds) };
        assert_eq!(policy("preset = 'full'").judge(&request).decision, expected, "{effects:?}");
    }
    let effects = [located(Effect::read("other"))];
    let request = PolicyRequest { tool: &probe, effects: &effects, ceilings: &[], bounds: Some(&bounds) };
    let verdict = policy("rules = [{ decision = 'allow', path = '**' }]").judge(&request);
    assert_eq!(verdict.decided_by.code, Some(ErrorCode::PathOutsideWorkspace), "no rule lifts it");
}

#[test]
fn tools_outside_a_list_or_a_ceiling_are_not_allowed() {
    let read = tool("read", Risk::Low, &[]);
    let ceiling = |tools: &[&str]| Ceiling {
        source: "skill review".into(),
        tools: tools.iter().map(|name| (*name).to_owned()).collect(),
    };
    for (text, ceilings, expected) in [
        ("", vec![], Allow),
        ("tools.allow = ['re*']", vec![ceiling(&["read", "list"])], Allow),
        ("tools.allow = ['list']", vec![], Deny),
        ("tools.allow = []", vec![], Deny),
        ("tools.deny = ['r*']", vec![], Deny),
        ("", vec![ceiling(&["read"]), ceiling(&["list"])], Deny),
        ("", vec![ceiling(&[])], Deny),
    ] {
        let verdict = judge_tool(&policy(text), &read, &[Effect::read("a")], &ceilings);
        assert_eq!(verdict.decision, expected, "{text} {ceilings:?}");
        let code = (expected == Deny).then_some(ErrorCode::ToolNotAllowed);
        assert_eq!(verdict.decided_by.code, code, "{text} {ceilings:?}");
    }
}
