//! Gathers opinions on a call: one function for each kind of subject. [`crate::combine`] makes the verdict from them.

use std::collections::HashSet;

use toolgate_contract::{
    Access, Decision, Declaration, Effect, Layer, LocatedEffect, Permission, RootAccess, RuleName, Verdict,
    WorkspacePath,
};

use crate::autoloaded::{autoloaded, autoloaded_beneath};
use crate::call_effects::CallEffects;
use crate::ceiling::{Ceiling, on_commands_outside_ceiling};
use crate::commands::OUTSIDE;
use crate::facts::{NamesAlone, WorkspaceFacts};
use crate::host::Host;
use crate::instruction_files::instruction_kind;
use crate::opinion::{Opinion, OpinionSource, Topic};
use crate::policy::Policy;
use crate::preset::{self, MANY_FILES};
use crate::rules::RuleKind;
use crate::sensitive_paths::{SensitiveMatch, find_sensitive, find_sensitive_restored};

/// A call to be judged.
#[derive(Debug, Clone, Copy)]
pub struct PolicyRequest<'a> {
    /// The tool.
    pub tool: &'a Declaration,
    /// What the call will touch, with resolved paths.
    pub effects: &'a [LocatedEffect],
    /// The sets of tools that the caller is limited to.
    pub ceilings: &'a [Ceiling],
    /// The paths that the caller is limited to, if any.
    pub bounds: Option<&'a PathBounds>,
}

/// The paths that a call is limited to, such as a client's roots. Bounds can only narrow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathBounds {
    /// Who sets them, such as `the client's roots`.
    pub source: String,
    /// The paths; each covers everything beneath it.
    pub places: Vec<WorkspacePath>,
}

impl PathBounds {
    /// Whether an effect stays within the bounds. A command can reach the entire workspace, so it never does.
    fn contains(&self, located: &LocatedEffect) -> bool {
        match (&located.effect, &located.written, &located.real) {
            (Effect::Run { .. }, _, _) => false,
            (_, Some(written), Some(real)) => {
                let is_covered = |place: &WorkspacePath| self.places.iter().any(|bound| bound.covers(place));
                is_covered(written) && is_covered(real)
            }
            (effect, ..) => effect.path().is_none(),
        }
    }
}

impl Policy {
    /// Decides whether the call may run, and gives the reason.
    pub fn judge(&self, request: &PolicyRequest<'_>) -> Verdict {
        self.judge_wider(request, &[])
    }

    /// Judges a call that gets more than its tool states: hosts that its command may reach, paths outside the workspace
    /// that it may change, or no sandbox at all. Each addition is judged like an effect of the call.
    pub fn judge_wider(&self, request: &PolicyRequest<'_>, more: &[Effect]) -> Verdict {
        self.judge_with(request, more, &NamesAlone)
    }

    /// Judges a call, with what is known about the workspace beside names.
    pub fn judge_with(&self, request: &PolicyRequest<'_>, more: &[Effect], facts: &dyn WorkspaceFacts) -> Verdict {
        let (tool, effects) = (request.tool, request.effects);
        let with_more = [effects, &more.iter().cloned().map(LocatedEffect::nowhere).collect::<Vec<_>>()].concat();
        let call = CallEffects::new(if more.is_empty() { effects } else { &with_more }, &self.paths);
        let mut opinions = Vec::with_capacity(call.effects.len() + 2);
        self.on_tool(tool, request.ceilings, &mut opinions);
        self.on_declared_permissions(tool, effects, effects.is_empty(), &mut opinions);
        for (index, located) in effects.iter().enumerate() {
            self.on_effect(index, located, &mut opinions);
            if request.bounds.is_some_and(|bounds| !bounds.contains(located)) {
                let (decision, layer, effect) = (Decision::Deny, Layer::Builtin, Some(index));
                opinions.push(Opinion {
                    decision,
                    layer,
                    effect,
                    topic: Topic::Call,
                    source: OpinionSource::OutOfBounds,
                });
            }
        }
        for (index, effect) in more.iter().enumerate() {
            self.on_more(effects.len() + index, effect, &mut opinions);
        }
        for command in &call.commands {
            self.on_command(command, &mut opinions);
        }
        on_commands_outside_ceiling(tool, request.ceilings, &call, &mut opinions);
        self.on_many_files(&call.effects, &mut opinions);
        self.apply_facts(&call, facts, &mut opinions);
        self.combine(&opinions, request, &call)
    }

    /// Opinions of ceilings, lists of tools, and rules about tools and risks.
    pub(crate) fn on_tool(&self, tool: &Declaration, ceilings: &[Ceiling], opinions: &mut Vec<Opinion>) {
        let whole = |decision, layer, source| Opinion { decision, layer, effect: None, topic: Topic::Call, source };
        for (index, ceiling) in ceilings.iter().enumerate() {
            if !ceiling.names(&tool.name) {
                opinions.push(whole(Decision::Deny, Layer::Builtin, OpinionSource::Ceiling(index)));
            }
        }
        for (index, set) in self.tool_sets.iter().enumerate() {
            if !set.contains(&tool.name) {
                opinions.push(whole(Decision::Deny, set.layer, OpinionSource::ToolSet(index)));
            }
        }
        for (index, rule) in self.rules.iter().enumerate() {
            let speaks = match &rule.kind {
                RuleKind::Tool(names) => names.matches(&tool.name),
                RuleKind::Risk(risk) => risk.matches(tool.risk),
                _ => false,
            };
            if speaks {
                opinions.push(whole(rule.decision, rule.name.layer, OpinionSource::Rule(index)));
            }
        }
    }

    /// Opinions on permissions that the tool declares and that no effect of this call uses. A denial always counts; any
    /// other opinion only if the permission never has an effect, or if the call is `opaque`: it states no effects.
    pub(crate) fn on_declared_permissions(
        &self,
        tool: &Declaration,
        effects: &[LocatedEffect],
        opaque: bool,
        opinions: &mut Vec<Opinion>,
    ) {
        for &permission in &tool.required_permissions {
            if effects.iter().any(|located| located.effect.permission() == permission) {
                continue;
            }
            let counts = opaque || permission == Permission::GitWrite;
            let first = opinions.len();
            self.on_permission(permission, None, opinions);
            if !counts {
                opinions.extract_if(first.., |opinion| opinion.decision != Decision::Deny).for_each(drop);
            }
        }
    }

    pub(crate) fn on_permission(&self, permission: Permission, effect: Option<usize>, opinions: &mut Vec<Opinion>) {
        let topic = Topic::Permission(permission);
        let mut push = |decision, layer, source| opinions.push(Opinion { decision, layer, effect, topic, source });
        push(preset::baseline(self.preset, permission), Layer::Builtin, OpinionSource::Baseline(permission));
        for (index, rule) in self.rules.iter().enumerate() {
            if matches!(&rule.kind, RuleKind::Permission(wanted) if wanted.matches(permission)) {
                push(rule.decision, rule.name.layer, OpinionSource::Rule(index));
            }
        }
    }

    fn on_effect(&self, index: usize, located: &LocatedEffect, opinions: &mut Vec<Opinion>) {
        match located.effect {
            Effect::Run { .. } | Effect::Feed { .. } => return,
            Effect::Attend { .. } => return self.on_attending(index, opinions),
            _ => {}
        }
        self.on_permission(located.effect.permission(), Some(index), opinions);
        match &located.effect {
            Effect::Read { .. } => self.on_path(index, Access::Read, located, opinions),
            Effect::Write { .. } => self.on_path(index, Access::Write, located, opinions),
            Effect::Delete { .. } => self.on_path(index, Access::Delete, located, opinions),
            Effect::Entry { access, .. } | Effect::Restore { access, .. } => {
                self.on_path(index, *access, located, opinions);
            }
            Effect::Connect { host, .. } => self.on_host(index, host, opinions),
            // Simple commands, and the input of a process, are judged separately.
            Effect::Run { .. } | Effect::Attend { .. } | Effect::Feed { .. } => {}
            Effect::Unsandboxed { .. }
            | Effect::Speak
            | Effect::Recall { .. }
            | Effect::Note { .. }
            | Effect::Skill { .. }
            | Effect::Delegate { .. }
            | Effect::UseServer { .. } => {}
        }
    }

    /// Following and ending a process is covered by the permission to start it. Only a rule that denies running
    /// commands applies.
    fn on_attending(&self, index: usize, opinions: &mut Vec<Opinion>) {
        let first = opinions.len();
        self.on_exec_rules(index, opinions);
        opinions.extract_if(first.., |opinion| opinion.decision != Decision::Deny).for_each(drop);
        opinions.push(about(index, Decision::Allow, Layer::Builtin, OpinionSource::Own));
    }

    /// Judges something beyond what the tool states. Paths are judged by their names, like those of commands.
    fn on_more(&self, index: usize, effect: &Effect, opinions: &mut Vec<Opinion>) {
        self.on_permission(effect.permission(), Some(index), opinions);
        match effect {
            Effect::Connect { host, .. } => self.on_host(index, host, opinions),
            Effect::Write { path } => {
                let place = self.paths.place(path);
                match place.root {
                    OUTSIDE => {
                        // This is a path of the machine, not one that a sandbox has for itself.
                        let (decision, topic) =
                            (preset::outside_boundary(self.preset), Topic::Permission(Permission::FsWrite));
                        let (layer, effect, source) = (Layer::Builtin, Some(index), OpinionSource::Outside);
                        opinions.push(Opinion { decision, layer, effect, topic, source });
                        self.on_outside(index, Access::Write, &place, opinions);
                    }
                    _ => self.on_place(index, Access::Write, &place, None, opinions),
                }
            }
            Effect::Unsandboxed { .. } => {}
            _ => opinions.push(about(index, Decision::Deny, Layer::Builtin, OpinionSource::Unlocated)),
        }
    }

    /// A rule that tightens counts if the written or the resolved path matches, a rule that loosens only if both match.
    fn on_path(&self, index: usize, access: Access, located: &LocatedEffect, opinions: &mut Vec<Opinion>) {
        let Some((first, second)) = places(located) else {
            return opinions.push(about(index, Decision::Deny, Layer::Builtin, OpinionSource::Unlocated));
        };
        match located.effect {
            // Toolgate recorded this content itself, so rules against foreign changes to a sensitive path don't apply.
            Effect::Restore { .. } => {
                let guarded = |place: &WorkspacePath| find_sensitive_restored(access, place);
                self.on_sensitive_path(index, access, (first, second), guarded, opinions);
            }
            _ => {
                self.on_place(index, access, first, second, opinions);
                if access == Access::Write {
                    self.on_autoloaded(index, first, second, opinions);
                }
            }
        }
    }

    /// Asks about a write to a file that programs load or run automatically: with such a write a tool could have any
    /// program run. What commands write to such files is quarantined instead. Also asks about files with instructions
    /// that somebody else follows later, once for each kind.
    fn on_autoloaded(
        &self,
        index: usize,
        first: &WorkspacePath,
        second: Option<&WorkspacePath>,
        opinions: &mut Vec<Opinion>,
    ) {
        let reason = |place: &WorkspacePath| {
            autoloaded(&place.path).map(|found| found.reason).or_else(|| autoloaded_beneath(&place.path))
        };
        let decision = preset::outside_boundary(self.preset);
        let kind = |place: &WorkspacePath| instruction_kind(&place.path);
        let autoloaded = reason(first).or_else(|| second.and_then(reason)).map(OpinionSource::Autoloaded);
        let instructions = || kind(first).or_else(|| second.and_then(kind)).map(OpinionSource::Instructions);
        if let Some(source) = autoloaded.or_else(instructions)
            && decision != Decision::Allow
        {
            opinions.push(about(index, decision, Layer::Builtin, source));
        }
    }

    pub(crate) fn on_place(
        &self,
        index: usize,
        access: Access,
        first: &WorkspacePath,
        second: Option<&WorkspacePath>,
        opinions: &mut Vec<Opinion>,
    ) {
        let guarded = |place: &WorkspacePath| find_sensitive(access, place, &self.excepts);
        self.on_sensitive_path(index, access, (first, second), guarded, opinions);
    }

    fn on_sensitive_path(
        &self,
        index: usize,
        access: Access,
        (first, second): (&WorkspacePath, Option<&WorkspacePath>),
        guarded: impl Fn(&WorkspacePath) -> Option<SensitiveMatch>,
        opinions: &mut Vec<Opinion>,
    ) {
        let mut push = |decision, layer, source| opinions.push(about(index, decision, layer, source));
        if let Some(hit) = guarded(first).or_else(|| second.and_then(&guarded)) {
            push(Decision::Deny, Layer::Builtin, OpinionSource::SensitivePath(hit));
        }
        let is_for_reading = |place: &WorkspacePath| access != Access::Read && !self.may_change_root(place.root);
        if is_for_reading(first) || second.is_some_and(is_for_reading) {
            push(Decision::Deny, Layer::Builtin, OpinionSource::ReadOnlyRoot);
        }
        self.on_path_rules(index, access, first, second, opinions);
    }

    pub(crate) fn on_path_rules(
        &self,
        index: usize,
        access: Access,
        first: &WorkspacePath,
        second: Option<&WorkspacePath>,
        opinions: &mut Vec<Opinion>,
    ) {
        let mut push = |decision, layer, source| opinions.push(about(index, decision, layer, source));
        let strict = |place: &WorkspacePath| self.strict_paths.matches(&place.path);
        let allowed = |place: &WorkspacePath| self.allowed_paths.matches(&place.path);
        let (mut tighten, mut loosen) = (strict(first), allowed(first));
        if let Some(second) = second {
            let also = strict(second).into_iter().filter(|rule| !tighten.contains(rule)).collect::<Vec<_>>();
            tighten.extend(also);
            let both = allowed(second);
            loosen.retain(|rule| both.contains(rule));
        }
        for rule in tighten.into_iter().chain(loosen) {
            let RuleKind::Path(path) = &self.rules[rule].kind else { continue };
            if path.is_about(access) {
                push(self.rules[rule].decision, self.rules[rule].name.layer, OpinionSource::Rule(rule));
            }
        }
    }

    /// The workspace is writable, another root only if configuration says so.
    fn may_change_root(&self, root: usize) -> bool {
        root.checked_sub(1).is_none_or(|extra| self.roots.get(extra) == Some(&RootAccess::Write))
    }

    pub(crate) fn on_host(&self, index: usize, host: &str, opinions: &mut Vec<Opinion>) {
        let mut push = |decision, layer, source| opinions.push(about(index, decision, layer, source));
        let host = match Host::read(host) {
            Ok(host) => host,
            Err(fault) => return push(Decision::Deny, Layer::Builtin, OpinionSource::Host(fault)),
        };
        let rules = || {
            self.rules.iter().enumerate().filter_map(|(at, rule)| match &rule.kind {
                RuleKind::Host(pattern) => Some((at, rule, pattern)),
                _ => None,
            })
        };
        if let Some(block) = host.block()
            && !rules().any(|(_, rule, pattern)| rule.decision == Decision::Allow && pattern.names(&host, block))
        {
            push(Decision::Deny, Layer::Builtin, OpinionSource::Reserved(block.kind));
        }
        for (at, rule, _) in rules().filter(|(_, _, pattern)| pattern.matches(&host)) {
            push(rule.decision, rule.name.layer, OpinionSource::Rule(at));
        }
    }

    fn on_many_files(&self, effects: &[LocatedEffect], opinions: &mut Vec<Opinion>) {
        if effects.len() <= MANY_FILES {
            return;
        }
        let changes =
            |located: &&LocatedEffect| located.effect.path().is_some_and(|(access, _)| access != Access::Read);
        let changed: HashSet<_> = effects.iter().filter(changes).map(|located| &located.real).collect();
        let decision = preset::for_changes(self.preset, changed.len());
        if decision != Decision::Allow {
            let source = OpinionSource::ManyFiles(changed.len());
            opinions.push(Opinion { decision, layer: Layer::Builtin, effect: None, topic: Topic::Call, source });
        }
    }

    pub(crate) fn baseline_name(&self, permission: Permission) -> RuleName {
        let decision = preset::baseline(self.preset, permission);
        RuleName { rule: format!("preset {}: {decision} {permission}", self.preset), layer: Layer::Builtin }
    }
}

pub(crate) fn about(effect: usize, decision: Decision, layer: Layer, source: OpinionSource) -> Opinion {
    Opinion { decision, layer, effect: Some(effect), topic: Topic::Effect, source }
}

/// The path of an effect: as written, and as resolved if links make that different.
fn places(located: &LocatedEffect) -> Option<(&WorkspacePath, Option<&WorkspacePath>)> {
    match (&located.written, &located.real) {
        (Some(written), Some(real)) => Some((written, (written != real).then_some(real))),
        (Some(place), None) | (None, Some(place)) => Some((place, None)),
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests;
