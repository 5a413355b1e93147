//! What policy can't tell from names: what a file contains, and who made it. The gate finds that out when policy asks, so
//! policy stays pure. A fact only ever takes one opinion back: that a file may be a private key, or that what is deleted may
//! be somebody else's.

use toolgate_contract::{Access, Effect, LocatedEffect, Permission, WorkspacePath};

use crate::call_effects::CallEffects;
use crate::commands::{OUTSIDE, Touch};
use crate::opinion::{Opinion, OpinionSource};
use crate::policy::Policy;
use crate::sensitive_paths::{SENSITIVE_PATHS, find_sensitive};

/// Facts about the workspace as it is now. Where something can't be found out, the answer is no.
pub trait WorkspaceFacts {
    /// Whether the file at this path holds public certificates and nothing else.
    fn holds_only_certificates(&self, place: &WorkspacePath) -> bool;

    /// Whether there is nothing at this path but what the session of the call made, as it left it.
    fn is_own(&self, place: &WorkspacePath) -> bool;
}

/// Nothing is known but names.
pub(crate) struct NamesAlone;

impl WorkspaceFacts for NamesAlone {
    fn holds_only_certificates(&self, _: &WorkspacePath) -> bool {
        false
    }

    fn is_own(&self, _: &WorkspacePath) -> bool {
        false
    }
}

impl Policy {
    /// Takes back what the facts refute.
    pub(crate) fn apply_facts(&self, call: &CallEffects<'_>, facts: &dyn WorkspaceFacts, opinions: &mut Vec<Opinion>) {
        let is_refuted = |opinion: &Opinion| match opinion.source {
            OpinionSource::SensitivePath(hit) if SENSITIVE_PATHS.entry(hit).certificates => {
                opinion.effect.is_some_and(|effect| self.is_certificate(&call.effects[effect], facts))
            }
            _ => false,
        };
        opinions.retain(|opinion| !is_refuted(opinion));
        let is_delete = |opinion: &&mut Opinion| opinion.source == OpinionSource::Baseline(Permission::FsDelete);
        let is_own = |effect: usize| is_own_delete(effect, call, facts);
        let mut own = Vec::new();
        for opinion in opinions.iter_mut().filter(is_delete) {
            own.extend(opinion.effect.filter(|effect| is_own(*effect)));
        }
        opinions.retain(|opinion| {
            opinion.source != OpinionSource::Baseline(Permission::FsDelete)
                || opinion.effect.is_none_or(|effect| !own.contains(&effect))
        });
        // Whoever takes away what it made itself changes the workspace, and no more.
        own.into_iter().for_each(|effect| self.on_permission(Permission::FsWrite, Some(effect), opinions));
    }

    /// Whether a path, as written and as resolved, is sensitive for no other reason than that it may be a private key, and
    /// holds public certificates.
    fn is_certificate(&self, located: &LocatedEffect, facts: &dyn WorkspaceFacts) -> bool {
        let Some((access, _)) = located.effect.path() else { return false };
        let is_harmless = |place: &WorkspacePath| match find_sensitive(access, place, &self.excepts) {
            None => true,
            Some(hit) => SENSITIVE_PATHS.entry(hit).certificates && facts.holds_only_certificates(place),
        };
        located.written.iter().chain(&located.real).all(is_harmless)
    }
}

/// Whether an effect deletes only what the session made. What a command moves there first may be somebody else's.
fn is_own_delete(effect: usize, call: &CallEffects<'_>, facts: &dyn WorkspaceFacts) -> bool {
    let located = &call.effects[effect];
    let (Effect::Delete { .. }, Some(place), Some(real)) = (&located.effect, &located.written, &located.real) else {
        return false;
    };
    let is_plain = place == real && place.root != OUTSIDE && !place.path.is_empty();
    is_plain && !is_pattern(effect, call) && !is_moved_to(place, call) && facts.is_own(place)
}

fn is_pattern(effect: usize, call: &CallEffects<'_>) -> bool {
    let mut parts = call.commands.iter().flat_map(|command| &command.parts);
    let touch = parts.find_map(|part| {
        let at = effect.checked_sub(part.touches.start).filter(|_| part.touches.contains(&effect))?;
        part.part.touches.get(at)
    });
    matches!(touch, Some(Touch::Path { pattern: true, .. }))
}

/// Whether some part of the call moves something to this path, into it, or above it.
fn is_moved_to(place: &WorkspacePath, call: &CallEffects<'_>) -> bool {
    let moves = call.commands.iter().flat_map(|command| &command.parts).filter(|part| part.part.only_moves);
    let mut targets = moves
        .flat_map(|part| &call.effects[part.touches.clone()])
        .filter(|located| matches!(located.effect.path(), Some((Access::Write, _))));
    targets.any(|located| located.real.as_ref().is_none_or(|target| target.covers(place) || place.covers(target)))
}

#[cfg(test)]
mod tests {
    use toolgate_contract::Decision::{self, Allow, Ask, Deny};
    use toolgate_contract::{Effect, Risk};

    use super::*;
    use crate::PolicyRequest;
    use crate::testing::{located, policy, run, tool};

    /// `own` is the session's, and so is what isn't there, `gone`; `public.pem` holds certificates.
    struct Facts;

    impl WorkspaceFacts for Facts {
        fn holds_only_certificates(&self, place: &WorkspacePath) -> bool {
            place.path.ends_with("public.pem")
        }

        fn is_own(&self, place: &WorkspacePath) -> bool {
            place.path.split('/').next().is_some_and(|name| ["own", "gone"].contains(&name))
        }
    }

    fn decision(text: &str, effect: Effect) -> Decision {
        let probe = tool("probe", Risk::Low, &[]);
        let paths = crate::PathContext::new(["/home/me/project"], "/home/me");
        let request = PolicyRequest { tool: &probe, effects: &[located(effect)], ceilings: &[], bounds: None };
        policy(text).with_paths(paths).judge_with(&request, &[], &Facts).decision
    }

    #[test]
    fn what_the_session_made_is_deleted_without_a_question() {
        for (command, expected) in [
            ("rm own", Allow),
            ("rm -rf own/sub", Allow),
            ("rm -f ./own /home/me/project/own", Allow),
            ("cd own && rm a", Allow),
            ("echo x > gone && python3 gone; rm gone", Allow),
            ("rm own other", Ask),
            ("rm other", Ask),
            ("rm *", Deny),
            ("rm own/*", Ask),
            ("rm -rf .", Deny),
            ("mv other own && rm own", Ask),
            ("mv other gone; rm gone", Ask),
            ("mv other gone/deep; rm -rf gone", Ask),
            ("mv other -t gone && rm gone/other", Ask),
            ("rm /home/me/own", Ask),
            ("rm own/.env", Deny),
            ("find own -delete", Allow),
            ("git clean -fd own", Ask),
        ] {
            assert_eq!(decision("", run(command)), expected, "{command}");
        }
        assert_eq!(decision("", Effect::delete("own/a")), Allow);
        assert_eq!(decision("", Effect::delete("other")), Ask);
        assert_eq!(decision("preset = 'autonomous'", run("rm own")), Allow);
        assert_eq!(decision("preset = 'read-only'", run("rm own")), Deny);
        assert_eq!(decision("rules = [{ decision = 'ask', permission = 'fs.delete' }]", run("rm own")), Ask);
        assert_eq!(decision("rules = [{ decision = 'deny', path = 'own' }]", run("rm own")), Deny);
    }

    #[test]
    fn a_file_with_public_certificates_is_no_private_key() {
        for (command, expected) in [
            ("cat certs/public.pem", Allow),
            ("openssl x509 -in public.pem -noout -text", Allow),
            ("cat private.pem", Deny),
            ("cat public.pem private.pem", Deny),
            ("cat .ssh/public.pem", Deny),
            ("cat *.pem", Deny),
            ("cat /etc/ssl/certs/public.pem", Allow),
            ("cat /etc/ssl/certs/ISRG_Root_X1.pem", Allow),
            ("cat /usr/lib/python3/dist-packages/certifi/cacert.pem", Allow),
            ("cat /etc/ssl/private/public.pem", Deny),
            ("cat /srv/server.pem", Deny),
        ] {
            assert_eq!(decision("", run(command)), expected, "{command}");
        }
        assert_eq!(decision("", Effect::read("public.pem")), Allow);
        assert_eq!(decision("", Effect::write("private.pem")), Deny);
        let led = LocatedEffect {
            real: Some(WorkspacePath::in_workspace(".ssh/x.pem")),
            ..located(Effect::read("public.pem"))
        };
        let request =
            PolicyRequest { tool: &tool("read", Risk::Low, &[]), effects: &[led], ceilings: &[], bounds: None };
        assert_eq!(policy("").judge_with(&request, &[], &Facts).decision, Deny, "where it leads counts too");
    }
}
