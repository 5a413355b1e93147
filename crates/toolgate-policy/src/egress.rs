//! Judges single connections while a call runs. A command may connect to hosts that its text doesn't show, and a host
//! name resolves to an address only at that time.

use std::net::IpAddr;

use toolgate_contract::{Decision, Effect, LocatedEffect, Permission, RuleName};

use crate::call_effects::CallEffects;
use crate::combine::is_answered;
use crate::host::Host;
use crate::opinion::{Opinion, OpinionSource};
use crate::policy::Policy;
use crate::preset;
use crate::rules::RuleKind;

/// A decision on one connection, the rule behind it, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionVerdict {
    /// The decision.
    pub decision: Decision,
    /// The rule that decided.
    pub name: RuleName,
    /// The reason, in a sentence.
    pub reason: String,
}

impl Policy {
    /// Decides whether a connection to this host is allowed. Rules on tools and commands don't apply here: they judge
    /// what the call shows before it runs.
    pub fn judge_connection(&self, host: &str) -> ConnectionVerdict {
        let mut opinions = Vec::new();
        self.on_permission(Permission::NetConnect, Some(0), &mut opinions);
        self.on_host(0, host, &mut opinions);
        let call = CallEffects::default();
        let open = opinions.iter().filter(|opinion| !is_answered(opinion, &opinions, &call));
        let weight = |opinion: &&Opinion| (opinion.decision, !opinion.is_baseline(), opinion.layer);
        let winner = open.max_by_key(weight);
        winner.map_or_else(|| self.connection_verdict(&opinions[0]), |winner| self.connection_verdict(winner))
    }

    /// Why the address that a host resolved to must not be connected to, if it must not. A rule that allows a name
    /// doesn't open private addresses behind the name, unless the name itself is in such a network and the rule names
    /// it on purpose.
    pub fn forbids_address(&self, host: &str, address: IpAddr) -> Option<ConnectionVerdict> {
        let mut opinions = Vec::new();
        self.on_host(0, &address.to_string(), &mut opinions);
        let forbids = |opinion: &&Opinion| match opinion.source {
            OpinionSource::Reserved(kind) => !self.names_reserved(host, kind),
            _ => opinion.decision == Decision::Deny,
        };
        opinions.iter().find(forbids).map(|opinion| self.connection_verdict(opinion))
    }

    /// Whether a rule names this host, which is in a reserved block of that kind.
    fn names_reserved(&self, host: &str, kind: &str) -> bool {
        let Ok(host) = Host::read(host) else { return false };
        let Some(block) = host.block().filter(|block| block.kind == kind) else { return false };
        let names = |pattern: &crate::rules::host::HostRule| pattern.names(&host, block);
        self.rules.iter().any(|rule| {
            rule.decision == Decision::Allow && matches!(&rule.kind, RuleKind::Host(pattern) if names(pattern))
        })
    }

    /// The hosts that a call names, in its effects or in its commands: in normalized form, each with its port. A
    /// sandboxed command's own loopback isn't included.
    pub fn hosts_named(&self, effects: &[LocatedEffect]) -> Vec<(String, u16)> {
        let call = CallEffects::new(effects, &self.paths);
        let host = |(index, located): (usize, &LocatedEffect)| match &located.effect {
            Effect::Connect { host, port } if !call.stays_inside(index) => Some((plain_host(host)?, *port)),
            _ => None,
        };
        call.effects.iter().enumerate().filter_map(host).collect()
    }

    fn connection_verdict(&self, opinion: &Opinion) -> ConnectionVerdict {
        let (name, reason) = match opinion.source {
            OpinionSource::Rule(index) => (self.rules[index].name.clone(), self.rules[index].reason.clone()),
            OpinionSource::Baseline(permission) => {
                (self.baseline_name(permission), preset::reason(self.preset, permission))
            }
            _ => {
                let (name, reason, _) = self.describe_host(opinion);
                (name, reason)
            }
        };
        ConnectionVerdict { decision: opinion.decision, name, reason }
    }
}

/// A host in the normalized form in which hosts are compared; none if the text isn't a host.
pub fn plain_host(text: &str) -> Option<String> {
    Host::read(text).ok().map(|host| host.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{connect, located, policy, run};
    use Decision::{Allow, Ask, Deny};

    #[test]
    fn a_connection_is_judged_by_its_host_alone() {
        for (text, host, expected) in [
            ("", "ok.example", Ask),
            ("", "10.0.0.1", Deny),
            ("", "evil\0.ok.example", Deny),
            ("network.allow = ['ok.example']", "OK.example.", Allow),
            ("network.allow = ['ok.example']", "sub.ok.example", Ask),
            ("network.allow = ['ok.example']", "ok.example.evil", Ask),
            ("network.allow = ['*.ok.example']", "sub.ok.example", Allow),
            ("network.allow = ['10.0.0.0/8']", "10.1.1.1", Allow),
            ("rules = [{ decision = 'allow', permission = 'net.connect' }]", "any.example", Allow),
            ("rules = [{ decision = 'allow', permission = 'net.connect' }]", "localhost", Deny),
            (
                "rules = [{ decision = 'allow', tool = '*' }, { decision = 'allow', command = ['*'] }]",
                "any.example",
                Ask,
            ),
            ("preset = 'full'", "any.example", Allow),
            ("preset = 'full'\nrules = [{ decision = 'deny', host = '*.evil' }]", "any.evil", Deny),
            ("preset = 'read-only'", "any.example", Deny),
        ] {
            let crossing = policy(text).judge_connection(host);
            assert_eq!(crossing.decision, expected, "{text} {host:?}: {crossing:?}");
        }
    }

    #[test]
    fn the_address_behind_a_name_needs_a_rule_of_its_own_if_it_is_private() {
        for (allowed, host, address, expected) in [
            ("'ok.example'", "ok.example", "93.184.216.34", false),
            ("'ok.example'", "ok.example", "127.0.0.1", true),
            ("'ok.example'", "ok.example", "10.0.0.1", true),
            ("'ok.example'", "ok.example", "169.254.169.254", true),
            ("'ok.example'", "ok.example", "100.64.1.1", true),
            ("'ok.example'", "ok.example", "224.0.0.1", true),
            ("'ok.example'", "ok.example", "::ffff:169.254.169.254", true),
            ("'ok.example', '10.0.0.0/8'", "ok.example", "10.0.0.1", false),
            ("'ok.example', '10.0.0.0/8'", "ok.example", "169.254.169.254", true),
            ("'*', '0.0.0.0/0'", "ok.example", "10.0.0.1", true),
            ("'localhost'", "localhost", "127.0.0.1", false),
            ("'localhost'", "localhost", "::1", false),
            ("'localhost'", "localhost", "10.0.0.1", true),
            ("'db.internal'", "db.internal", "10.0.0.1", false),
            ("'db.internal'", "db.internal", "169.254.169.254", true),
        ] {
            let policy = policy(&format!("network.allow = [{allowed}]"));
            let forbidden = policy.forbids_address(host, address.parse().unwrap());
            assert_eq!(forbidden.is_some(), expected, "{allowed} {host} {address}: {forbidden:?}");
        }
        let denying = policy("preset = 'full'\nrules = [{ decision = 'deny', host = '203.0.113.0/24' }]");
        let forbidden = denying.forbids_address("ok.example", "203.0.113.9".parse().unwrap()).unwrap();
        assert_eq!(forbidden.name.rule, "deny host 203.0.113.0/24", "a denied range is denied behind every name");
    }

    #[test]
    fn hosts_are_read_out_of_commands_too() {
        let effects = [located(connect("A.example.")), located(run("curl https://b.example:8443/x && git push"))];
        assert_eq!(policy("").hosts_named(&effects), [("a.example".to_owned(), 443), ("b.example".to_owned(), 8443)]);
    }

    #[test]
    fn a_confined_command_s_own_loopback_is_no_host_that_it_names() {
        let effects = |more: &[Effect]| -> Vec<LocatedEffect> {
            let command = run("curl http://localhost:8000 http://0.0.0.0:8001; curl http://[::1]:8002");
            std::iter::once(command).chain(more.iter().cloned()).map(located).collect()
        };
        assert_eq!(policy("").hosts_named(&effects(&[])), []);
        let stated = policy("").hosts_named(&effects(&[connect("localhost")]));
        assert_eq!(stated, [("localhost".to_owned(), 443)], "what a tool states or a call asks for is this machine's");
        let unsandboxed = policy("").hosts_named(&effects(&[Effect::Unsandboxed { command: "curl".into() }]));
        assert!(unsandboxed.contains(&("localhost".to_owned(), 8000)), "{unsandboxed:?}");
    }

    #[test]
    fn what_a_call_gets_beyond_its_own_is_judged_like_the_rest() {
        let probe = crate::testing::tool("shell", toolgate_contract::Risk::Low, &[]);
        let unsandboxed = || Effect::Unsandboxed { command: "make".into() };
        let plenty = "rules = [{ decision = 'allow', tool = '*' }, { decision = 'allow', permission = 'proc.exec' }, \
                      { decision = 'allow', command = ['*'] }]";
        for (text, more, expected) in [
            ("", connect("any.example"), Ask),
            ("", connect("169.254.169.254"), Deny),
            ("network.allow = ['any.example']", connect("any.example"), Allow),
            ("", Effect::write("/opt/app"), Ask),
            ("", Effect::write("/tmp/x"), Ask),
            ("", Effect::write("/root/.ssh"), Deny),
            ("", Effect::read("/opt/app"), Deny),
            ("preset = 'full'", Effect::write("/opt/app"), Allow),
            ("", unsandboxed(), Ask),
            (plenty, unsandboxed(), Ask),
            ("rules = [{ decision = 'allow', permission = 'unsandboxed' }]", unsandboxed(), Allow),
            ("preset = 'full'", unsandboxed(), Allow),
            ("preset = 'autonomous'", unsandboxed(), Deny),
            ("preset = 'read-only'", unsandboxed(), Deny),
        ] {
            let effects = [located(run("make"))];
            let request = crate::PolicyRequest { tool: &probe, effects: &effects, ceilings: &[], bounds: None };
            let verdict = policy(text).judge_wider(&request, std::slice::from_ref(&more));
            assert_eq!(verdict.decision, expected, "{text} {more}: {verdict:?}");
            if expected == Ask {
                assert!(verdict.asks.iter().all(|ask| ask.effect.as_ref() == Some(&more)), "{verdict:?}");
            }
        }
        let verdict = policy("").judge_wider(
            &crate::PolicyRequest { tool: &probe, effects: &[located(run("make"))], ceilings: &[], bounds: None },
            &[unsandboxed()],
        );
        assert!(!crate::may_be_standing(&verdict.asks), "it is never granted always");
    }
}
