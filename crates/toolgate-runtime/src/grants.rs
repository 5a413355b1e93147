//! Approvals that were given before. A grant names a tool, the exact effects that were approved, and where and until when
//! that applies. A later call is covered when each of its effects is, so a part of an earlier change is covered and a
//! larger one isn't.

use toolgate_contract::{ApprovalScope, Clock, Effect, Layer, LocatedEffect, Verdict};
use toolgate_journal::Grant;
use toolgate_policy::{REGISTRIES, grant_pattern, is_instruction_kind, is_registry};

use crate::session::Session;

/// A grant's id: short, since people type it. Its digits are the random end of an id.
pub(crate) fn grant_id(clock: &dyn Clock) -> String {
    let digits = clock.id().simple().to_string();
    format!("grant_{}", &digits[digits.len() - 10..])
}

/// The effects that need approval, normalized for comparison: paths as the workspace spells them, commands as the
/// narrowest useful pattern. A command that reaches a package registry is approved for all of them, since an installation
/// needs several, and which ones is known only while it runs.
pub(crate) fn asked_effects(verdict: &Verdict, effects: &[LocatedEffect]) -> Vec<Effect> {
    if verdict.asks.iter().any(|ask| ask.effect.is_none()) {
        return effects.iter().map(normalized).collect();
    }
    let is_command = effects.iter().any(|located| matches!(located.effect, Effect::Run { .. }));
    let mut asked: Vec<Effect> = Vec::new();
    for effect in verdict.asks.iter().filter_map(|ask| ask.effect.as_ref()) {
        let stated = effects.iter().find(|located| located.effect == *effect).map(normalized);
        let effect = match as_pattern(stated.as_ref().unwrap_or(effect)) {
            Effect::Connect { host, port } if is_command && is_registry(&host) => {
                Effect::Connect { host: REGISTRIES.into(), port }
            }
            other => other,
        };
        if !asked.contains(&effect) {
            asked.push(effect);
        }
    }
    asked
}

/// A command as a pattern, independent of its working directory and further arguments.
fn as_pattern(effect: &Effect) -> Effect {
    match effect {
        Effect::Run { command, .. } => {
            let command = grant_pattern(command).map_or_else(|| command.clone(), |pattern| pattern.to_string());
            Effect::Run { command, workdir: String::new() }
        }
        other => other.clone(),
    }
}

/// The effect with its path as the workspace spells it, so that `./a` and `a` are equal.
fn normalized(located: &LocatedEffect) -> Effect {
    let path = match &located.real {
        Some(place) if place.root == 0 => place.path.clone(),
        Some(place) => format!("root {}: {}", place.root, place.path),
        None => return located.effect.clone(),
    };
    match &located.effect {
        Effect::Read { .. } => Effect::Read { path },
        Effect::Write { .. } => Effect::Write { path },
        Effect::Delete { .. } => Effect::Delete { path },
        Effect::Entry { access, .. } => Effect::Entry { path, access: *access },
        Effect::Restore { access, .. } => Effect::Restore { path, access: *access },
        other => other.clone(),
    }
}

/// Whether the grant is for a kind of instruction files: whichever tool was asked about first, a person is asked about a
/// kind once.
fn covers_for_every_tool(grant: &Grant, effect: &Effect) -> bool {
    matches!(effect, Effect::Write { path } if is_instruction_kind(path)) && grant.effects.contains(effect)
}

/// What grants are looked for.
pub(crate) struct GrantQuery<'a> {
    /// The tool that is called.
    pub(crate) tool: &'a str,
    /// What needs approval.
    pub(crate) asked: &'a [Effect],
    /// Whether a rule of the administrator asks; an "always" of the user doesn't answer it.
    pub(crate) is_managed: bool,
    /// The run of the call.
    pub(crate) run: &'a str,
    /// The session of the call.
    pub(crate) session: &'a str,
    /// Whether that session goes on in other programs.
    pub(crate) session_continues: bool,
}

impl<'a> GrantQuery<'a> {
    /// The query for a call in this session.
    pub(crate) fn new(tool: &'a str, asked: &'a [Effect], verdict: &Verdict, session: &'a Session) -> Self {
        Self {
            tool,
            asked,
            is_managed: verdict.asks.iter().any(|ask| ask.name.layer > Layer::User),
            run: &session.run,
            session: &session.id,
            session_continues: session.waits,
        }
    }

    /// The widest scope under which everything was granted before, if all was. The grants are those of the workspace that
    /// haven't expired.
    pub(crate) fn covered_by(&self, grants: &[Grant]) -> Option<ApprovalScope> {
        let covers = |grant: &Grant, effect: &Effect| {
            grant.tool == self.tool && grant.effects.contains(effect) || covers_for_every_tool(grant, effect)
        };
        let is_about = |grant: &Grant| grant.tool == self.tool || self.asked.iter().any(|effect| covers(grant, effect));
        let reaching: Vec<&Grant> = grants.iter().filter(|grant| self.is_in(grant) && is_about(grant)).collect();
        let scope = reaching.iter().map(|grant| grant.scope).max()?;
        self.asked.iter().all(|effect| reaching.iter().any(|grant| covers(grant, effect))).then_some(scope)
    }

    /// Whether the grant reaches this session.
    fn is_in(&self, grant: &Grant) -> bool {
        match grant.scope {
            ApprovalScope::Call => false,
            ApprovalScope::Run => !self.session_continues && grant.run == self.run,
            ApprovalScope::Session if grant.session_continues => {
                self.session_continues && grant.session == self.session
            }
            // Such a session ends with its run. Whoever continues the run later isn't in that session.
            ApprovalScope::Session => !self.session_continues && grant.run == self.run,
            ApprovalScope::Always => !self.is_managed,
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use toolgate_contract::{Decision, Finding, NamedChanges, RuleName};
    use toolgate_journal::WorkspaceIdentity;

    use super::*;

    fn asking(commands: &[&str]) -> Verdict {
        asking_for(commands.iter().map(|command| Effect::Run { command: (*command).into(), workdir: "sub".into() }))
    }

    fn asking_for(effects: impl IntoIterator<Item = Effect>) -> Verdict {
        let ask = |effect| Finding {
            decision: Decision::Ask,
            effect: Some(effect),
            name: RuleName { rule: "preset".into(), layer: Layer::Builtin },
            reason: String::new(),
            code: None,
        };
        let asks: Vec<Finding> = effects.into_iter().map(ask).collect();
        Verdict {
            decision: Decision::Ask,
            decided_by: asks[0].clone(),
            asks,
            confined: true,
            only_reads: false,
            named: NamedChanges::default(),
            lost: vec![],
        }
    }

    #[test]
    fn a_command_is_asked_for_by_its_pattern_wherever_it_runs() {
        let asked = asked_effects(&asking(&["git commit -m a", "git commit --amend", "sudo ls"]), &[]);
        let run = |command: &str| Effect::Run { command: command.into(), workdir: String::new() };
        assert_eq!(asked, [run("git commit *"), run("sudo ls")]);
    }

    #[test]
    fn a_command_is_granted_all_registries_and_other_tools_the_host_alone() {
        let connect = |host: &str| Effect::Connect { host: host.into(), port: 443 };
        let verdict = asking_for([connect("pypi.org"), connect("static.crates.io"), connect("pypi.org.evil.example")]);
        let run = Effect::Run { command: "pip install x".into(), workdir: ".".into() };
        let of_command = asked_effects(&verdict, &[LocatedEffect::nowhere(run)]);
        assert_eq!(of_command, [connect(REGISTRIES), connect("pypi.org.evil.example")]);
        assert_eq!(asked_effects(&verdict, &[]).len(), 3);
    }

    fn grant(tool: &str, paths: &[&str], scope: ApprovalScope) -> Grant {
        Grant {
            id: "grant".into(),
            tool: tool.into(),
            effects: paths.iter().map(|path| Effect::write(*path)).collect(),
            scope,
            workspace: WorkspaceIdentity::default(),
            by: "ada".into(),
            at: Timestamp::UNIX_EPOCH,
            expires: None,
            run: "run".into(),
            session: "session".into(),
            session_continues: false,
            tool_call_id: "call".into(),
            revoked: None,
        }
    }

    fn query<'a>(tool: &'a str, asked: &'a [Effect]) -> GrantQuery<'a> {
        GrantQuery { tool, asked, is_managed: false, run: "run", session: "session", session_continues: false }
    }

    #[test]
    fn what_a_grant_covers() {
        let grants = [
            grant("patch", &["a", "b"], ApprovalScope::Run),
            grant("patch", &["c"], ApprovalScope::Session),
            grant("patch", &["d"], ApprovalScope::Call),
        ];
        let table: &[(&str, &[&str], bool)] = &[
            ("patch", &["a", "b"], true),
            ("patch", &["b"], true),
            ("patch", &["a", "c"], true),
            ("patch", &["a", "x"], false),
            ("patch", &["d"], false),
            ("write", &["a"], false),
        ];
        for (tool, paths, expected) in table {
            let asked: Vec<Effect> = paths.iter().map(|path| Effect::write(*path)).collect();
            assert_eq!(query(tool, &asked).covered_by(&grants).is_some(), *expected, "{tool} {paths:?}");
        }
        assert_eq!(query("display", &[]).covered_by(&[]), None, "no grant covers nothing");
    }

    #[test]
    fn how_far_each_scope_reaches() {
        let asked = [Effect::write("a")];
        let given = |scope| grant("patch", &["a"], scope);
        let named = Grant { session_continues: true, ..given(ApprovalScope::Session) };
        let here = || query("patch", &asked);
        let next_run = || GrantQuery { run: "next", ..here() };
        let continued = || GrantQuery { session_continues: true, ..here() };
        let table: &[(&str, GrantQuery<'_>, Grant, bool)] = &[
            ("its run", here(), given(ApprovalScope::Run), true),
            ("the next run", next_run(), given(ApprovalScope::Run), false),
            ("its run, continued after its end", continued(), given(ApprovalScope::Run), false),
            ("its session", here(), given(ApprovalScope::Session), true),
            ("a later session of the same name", next_run(), given(ApprovalScope::Session), false),
            ("its session's run, continued after its end", continued(), given(ApprovalScope::Session), false),
            ("a named session", GrantQuery { run: "next", ..continued() }, named.clone(), true),
            ("another named session", GrantQuery { session: "other", ..continued() }, named.clone(), false),
            ("a session that only has that name", here(), named, false),
            ("any session", GrantQuery { session: "other", ..next_run() }, given(ApprovalScope::Always), true),
            (
                "a rule of the administrator",
                GrantQuery { is_managed: true, ..here() },
                given(ApprovalScope::Always),
                false,
            ),
        ];
        for (what, query, grant, expected) in table {
            assert_eq!(query.covered_by(std::slice::from_ref(grant)).is_some(), *expected, "{what}");
        }
    }

    #[test]
    fn a_grant_for_a_kind_of_instructions_covers_every_tool() {
        let kind = toolgate_policy::instruction_kind("AGENTS.md").unwrap().name.as_str();
        let grants = [grant("write", &[kind, "a"], ApprovalScope::Session)];
        for (tool, paths, expected) in [
            ("write", &[kind, "a"][..], Some(ApprovalScope::Session)),
            ("edit", &[kind], Some(ApprovalScope::Session)),
            ("edit", &[kind, "a"], None),
            ("edit", &["a"], None),
        ] {
            let asked: Vec<Effect> = paths.iter().map(|path| Effect::write(*path)).collect();
            assert_eq!(query(tool, &asked).covered_by(&grants), expected, "{tool} {paths:?}");
        }
    }
}
