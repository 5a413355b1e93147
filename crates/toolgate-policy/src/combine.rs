//! Combines opinions into a verdict: standing approvals answer asks, the strictest of the remaining opinions wins, and
//! the opinions worth reporting are put into words.

use toolgate_config::UnknownCommandAction;
use toolgate_contract::{Decision, Effect, ErrorCode, Finding, Layer, Permission, RuleName, Verdict, counted};

use crate::call_effects::CallEffects;
use crate::commands::SimpleCommand;
use crate::host_sets;
use crate::judge::PolicyRequest;
use crate::opinion::{Opinion, OpinionSource, Topic};
use crate::policy::{Policy, sensitive_match_name};
use crate::preset;
use crate::sensitive_paths::SENSITIVE_PATHS;

const NOTHING: Opinion = Opinion {
    decision: Decision::Allow,
    layer: Layer::Builtin,
    effect: None,
    topic: Topic::Call,
    source: OpinionSource::Nothing,
};

/// Whether these opinions alone result in a denial.
pub(crate) fn is_refused(opinions: &[Opinion], unattended: bool) -> bool {
    let call = CallEffects::default();
    match opinions.iter().filter(|opinion| !is_answered(opinion, opinions, &call)).map(|opinion| opinion.decision).max()
    {
        Some(Decision::Deny) => true,
        Some(Decision::Ask) => unattended,
        _ => false,
    }
}

pub(crate) fn is_answered(opinion: &Opinion, approvals: &[Opinion], call: &CallEffects<'_>) -> bool {
    opinion.decision == Decision::Ask && approvals.iter().any(|approval| approval.answers(opinion, call))
}

/// How powerful a permission is: running a command matters more to a reader than reading files.
fn power(permission: Permission) -> u8 {
    match permission {
        Permission::Agent => 1,
        Permission::FsRead => 2,
        Permission::FsWrite => 3,
        Permission::FsDelete => 4,
        Permission::ProcExec => 5,
        Permission::GitWrite => 6,
        Permission::NetConnect => 7,
        Permission::McpCall => 8,
        Permission::Unsandboxed => 9,
    }
}

/// Offers the set of hosts where a person is asked about one of them.
const REGISTRIES_HINT: &str =
    " This one is a package registry: `network.allow = [\"@registries\"]` in your configuration allows them all.";

fn is_registry(effect: Option<&Effect>) -> bool {
    matches!(effect, Some(Effect::Connect { host, .. }) if host_sets::is_registry(host))
}

impl Policy {
    /// Makes the verdict. Among equally strict opinions it reports, in this order of preference: an approval that was
    /// needed, a rule rather than the baseline, the layer with most authority, the most powerful permission that the
    /// baseline allows, the first.
    pub(crate) fn combine(&self, opinions: &[Opinion], request: &PolicyRequest<'_>, call: &CallEffects<'_>) -> Verdict {
        let approvals: Vec<Opinion> = opinions.iter().filter(|opinion| opinion.is_approval()).copied().collect();
        let (answered, open): (Vec<&Opinion>, Vec<&Opinion>) =
            opinions.iter().partition(|opinion| is_answered(opinion, &approvals, call));
        let was_needed = |opinion: &Opinion| answered.iter().any(|ask| opinion.answers(ask, call));
        let weight = |opinion: &Opinion| {
            let tells = (!opinion.is_baseline(), opinion.source != OpinionSource::Known);
            let allows = match opinion.source {
                OpinionSource::Baseline(permission) if opinion.decision == Decision::Allow => power(permission),
                _ => 0,
            };
            (opinion.decision, was_needed(opinion), tells, opinion.layer, allows)
        };
        // `max_by_key` returns the last of equal elements, so this iterates backwards.
        let winner = open.iter().rev().copied().max_by_key(|opinion| weight(opinion)).unwrap_or(&NOTHING);
        let is_ask = |opinion: &Opinion| winner.decision == Decision::Ask && opinion.decision == Decision::Ask;
        let mut lost: Vec<&Opinion> = Vec::new();
        let others = open.iter().filter(|opinion| !is_ask(opinion)).chain(&answered);
        for opinion in others.filter(|opinion| !(opinion.is_baseline() && opinion.decision == Decision::Allow)) {
            let same = |other: &Opinion| other.source == opinion.source;
            if !same(winner) && !lost.iter().any(|other| same(other)) {
                lost.push(opinion);
            }
        }
        let words = |opinion: &&Opinion| self.finding(opinion, request, call);
        let verdict = Verdict {
            decision: winner.decision,
            decided_by: words(&winner),
            confined: self.confines(call),
            only_reads: self.only_reads(call),
            named: self.named_changes(call),
            asks: open.iter().filter(|opinion| is_ask(opinion)).map(words).collect(),
            lost: lost.iter().map(words).collect(),
        };
        if self.unattended { refuse_asks(verdict) } else { verdict }
    }

    fn finding(&self, opinion: &Opinion, request: &PolicyRequest<'_>, call: &CallEffects<'_>) -> Finding {
        let (name, mut reason, code) = self.words(opinion, request, call);
        let effect = match opinion.source {
            // Whoever agrees to one file agrees to all of its kind.
            OpinionSource::Instructions(kind) => Some(Effect::write(&kind.name)),
            _ => opinion.effect.map(|index| call.effects[index].effect.clone()),
        };
        if opinion.decision == Decision::Ask && is_registry(effect.as_ref()) {
            reason.push_str(REGISTRIES_HINT);
        }
        Finding {
            decision: opinion.decision,
            effect,
            name,
            reason,
            code: (opinion.decision == Decision::Deny).then_some(code),
        }
    }

    /// The rule's name, the reason, and the error code of a denial.
    fn words(
        &self,
        opinion: &Opinion,
        request: &PolicyRequest<'_>,
        call: &CallEffects<'_>,
    ) -> (RuleName, String, ErrorCode) {
        let name = |rule: String| RuleName { rule, layer: opinion.layer };
        let tool = &request.tool.name;
        match opinion.source {
            OpinionSource::Rule(index) => {
                let rule = &self.rules[index];
                (rule.name.clone(), rule.reason.clone(), rule.code)
            }
            OpinionSource::Baseline(permission) => {
                (self.baseline_name(permission), preset::reason(self.preset, permission), ErrorCode::PolicyDenied)
            }
            OpinionSource::Nothing => {
                let reason = "The call touches nothing that policy restricts.".to_owned();
                (name(format!("preset {}", self.preset)), reason, ErrorCode::PolicyDenied)
            }
            OpinionSource::ManyFiles(count) => {
                let reason = format!("The call changes {} at once.", counted(count, "file"));
                (name(format!("preset {}: ask many files", self.preset)), reason, ErrorCode::PolicyDenied)
            }
            OpinionSource::SensitivePath(_)
            | OpinionSource::Autoloaded(_)
            | OpinionSource::Instructions(_)
            | OpinionSource::OutOfBounds
            | OpinionSource::ReadOnlyRoot
            | OpinionSource::Unlocated => self.describe_place(opinion, request),
            OpinionSource::Host(_) | OpinionSource::Reserved(_) => self.describe_host(opinion),
            OpinionSource::Known
            | OpinionSource::Danger(_)
            | OpinionSource::Privilege
            | OpinionSource::NewKey
            | OpinionSource::RemoteUrl
            | OpinionSource::Outside
            | OpinionSource::Unknown => self.describe_command(opinion, call),
            OpinionSource::Own => {
                let reason = "A session may follow and end the processes that it started.";
                (name("own processes".into()), reason.into(), ErrorCode::PolicyDenied)
            }
            OpinionSource::ToolSet(index) => {
                let set = &self.tool_sets[index];
                let reason = format!("`{tool}` isn't on the list of tools in {}.", set.file);
                (set.name(), reason, ErrorCode::ToolNotAllowed)
            }
            OpinionSource::Ceiling(index) => {
                let source = &request.ceilings[index].source;
                let reason = match opinion.effect {
                    None => format!("`{tool}` isn't among the tools of {source}."),
                    Some(_) => format!("This command isn't among those that {source} lists for `{tool}`."),
                };
                (name(format!("tools of {source}")), reason, ErrorCode::ToolNotAllowed)
            }
        }
    }
}

impl Policy {
    /// The words for opinions about paths.
    fn describe_place(&self, opinion: &Opinion, request: &PolicyRequest<'_>) -> (RuleName, String, ErrorCode) {
        let name = |rule: String| RuleName { rule, layer: opinion.layer };
        match opinion.source {
            OpinionSource::SensitivePath(hit) => {
                let entry = SENSITIVE_PATHS.entry(hit);
                (sensitive_match_name(hit), entry.reason.clone(), entry.code)
            }
            OpinionSource::Autoloaded(reason) => {
                let reason = format!("Programs load or run this file automatically: {reason}.");
                (name(format!("preset {}: autoloaded files", self.preset)), reason, ErrorCode::PolicyDenied)
            }
            OpinionSource::Instructions(kind) => {
                let reason = format!("Others act on this file: {}.", kind.reason);
                (name(format!("preset {}: instruction files", self.preset)), reason, ErrorCode::PolicyDenied)
            }
            OpinionSource::OutOfBounds => {
                let source = request.bounds.map_or("the session", |bounds| bounds.source.as_str());
                let reason = format!("This reaches outside {source}, which this session is limited to.");
                (name(format!("places of {source}")), reason, ErrorCode::PathOutsideWorkspace)
            }
            OpinionSource::ReadOnlyRoot => {
                let reason = "The path is in a read-only root.".to_owned();
                (name("deny changes in read-only roots".into()), reason, ErrorCode::PolicyDenied)
            }
            _ => {
                let reason = "The path was not resolved, so policy can't tell which file it means.".to_owned();
                (name("deny unlocated paths".into()), reason, ErrorCode::PathOutsideWorkspace)
            }
        }
    }

    /// The words for opinions about hosts.
    pub(crate) fn describe_host(&self, opinion: &Opinion) -> (RuleName, String, ErrorCode) {
        let (rule, reason) = match opinion.source {
            OpinionSource::Host(fault) => ("deny unclear hosts", fault.reason().to_owned()),
            OpinionSource::Reserved(kind) => {
                ("deny reserved hosts", format!("The host belongs to {kind}; only a rule that names it can allow it."))
            }
            _ => ("", String::new()),
        };
        (RuleName { rule: rule.into(), layer: opinion.layer }, reason, ErrorCode::NetworkDenied)
    }

    /// The words for opinions about commands.
    fn describe_command(&self, opinion: &Opinion, call: &CallEffects<'_>) -> (RuleName, String, ErrorCode) {
        let described = |rule: String, reason: &str| {
            (RuleName { rule, layer: opinion.layer }, reason.to_owned(), ErrorCode::PolicyDenied)
        };
        match opinion.source {
            OpinionSource::Danger(number) => {
                let danger = opinion.effect.and_then(|effect| call.part_at(effect)?.dangers.get(number));
                danger.map_or_else(
                    || described(String::new(), ""),
                    |danger| described(danger.rule.clone(), &danger.reason),
                )
            }
            OpinionSource::Privilege => described(
                format!("preset {}: elevated privileges", self.preset),
                "It runs with more privileges than you have.",
            ),
            OpinionSource::NewKey => described(
                format!("preset {}: new private keys", self.preset),
                "It makes a private key in the workspace, or overwrites one.",
            ),
            OpinionSource::RemoteUrl => described(
                format!("preset {}: addresses of remotes", self.preset),
                "It changes where git pushes to and fetches from.",
            ),
            OpinionSource::Outside => described(
                format!("preset {}: changes outside", self.preset),
                "It changes something outside the workspace.",
            ),
            OpinionSource::Unknown => self.describe_unknown(opinion, call),
            _ => described(
                "known commands".into(),
                "Everything that the command does is known, and each of its effects is judged.",
            ),
        }
    }

    fn describe_unknown(&self, opinion: &Opinion, call: &CallEffects<'_>) -> (RuleName, String, ErrorCode) {
        let part: Option<&SimpleCommand> = opinion.effect.and_then(|effect| call.part_at(effect));
        let fault = || call.commands.iter().find(|command| Some(command.effect) == opinion.effect)?.fault.as_deref();
        let why = part.and_then(|part| part.unclear.first().map(String::as_str)).or_else(fault);
        let why = why.map(|why| format!(": {why}")).unwrap_or_default();
        let (setting, reason) = match self.unknown.0 {
            UnknownCommandAction::Confine => (
                "confine",
                format!("What the command does can't be told beforehand{why}. It runs only if it is confined."),
            ),
            UnknownCommandAction::Ask => ("ask", format!("What the command does can't be told beforehand{why}.")),
            UnknownCommandAction::Deny => {
                ("deny", format!("What the command does can't be told beforehand{why}. Write it plainly."))
            }
        };
        let name = RuleName { rule: format!("commands.unknown = {setting}"), layer: opinion.layer };
        (name, reason, ErrorCode::PolicyDenied)
    }
}

/// When nobody can be asked, an ask becomes a denial; the verdict still lists the asks.
fn refuse_asks(verdict: Verdict) -> Verdict {
    if verdict.decision != Decision::Ask {
        return verdict;
    }
    let decided_by = Finding {
        decision: Decision::Deny,
        effect: verdict.decided_by.effect,
        name: RuleName { rule: "preset autonomous: deny what would be asked".into(), layer: Layer::Builtin },
        reason: format!("{} Nobody can be asked in autonomous mode.", verdict.decided_by.reason),
        code: Some(ErrorCode::PolicyDenied),
    };
    let lost = verdict.asks.into_iter().chain(verdict.lost).collect();
    Verdict {
        decision: Decision::Deny,
        decided_by,
        asks: Vec::new(),
        confined: verdict.confined,
        only_reads: verdict.only_reads,
        named: verdict.named,
        lost,
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{connect, judge, policy};
    use toolgate_contract::{Decision, Effect, Layer, Verdict};

    /// The verdict in short: the deciding rule, the asks, the rules that lost.
    fn summary(verdict: &Verdict) -> (String, Vec<String>, Vec<String>) {
        let names = |findings: &[toolgate_contract::Finding]| {
            findings.iter().map(|finding| finding.name.rule.clone()).collect::<Vec<_>>()
        };
        (verdict.decided_by.name.rule.clone(), names(&verdict.asks), names(&verdict.lost))
    }

    #[test]
    fn a_plain_allowed_call_names_the_baseline_and_nothing_else() {
        let verdict = judge(&policy(""), &[Effect::read("a"), Effect::read("b"), Effect::write("c")]);
        assert_eq!(summary(&verdict), ("preset workspace: allow fs.write".into(), vec![], vec![]));
        assert_eq!(verdict.decided_by.reason, "The preset `workspace` allows changing files.");
        assert_eq!(summary(&judge(&policy(""), &[])).0, "preset workspace");
    }

    #[test]
    fn the_approval_that_was_needed_decides_and_the_ask_it_answered_lost() {
        let text =
            "rules = [{ decision = 'allow', tool = '*' }, { decision = 'allow', path = 'tmp', access = ['read'] }]";
        let verdict = judge(&policy(text), &[Effect::read("tmp/a"), Effect::delete("b")]);
        assert_eq!(verdict.decision, Decision::Allow);
        assert_eq!(verdict.decided_by.name.layer, Layer::User);
        assert_eq!(
            summary(&verdict),
            (
                "allow tool *".into(),
                vec![],
                vec!["allow path tmp (read)".into(), "preset workspace: ask fs.delete".into()]
            )
        );
    }

    #[test]
    fn all_open_asks_are_told_and_repeated_ones_lose_once() {
        let effects = [Effect::delete("a"), Effect::delete("b"), connect("example.com")];
        let (decider, asks, lost) = summary(&judge(&policy(""), &effects));
        assert_eq!(decider, "preset workspace: ask fs.delete");
        assert_eq!((asks.len(), lost.len()), (3, 0));
        let denied = "rules = [{ decision = 'deny', host = '*' }]";
        let (decider, asks, lost) = summary(&judge(&policy(denied), &effects));
        assert_eq!(decider, "deny host *");
        assert_eq!(asks, Vec::<String>::new());
        assert_eq!(lost, ["preset workspace: ask fs.delete", "preset workspace: ask net.connect"]);
    }

    #[test]
    fn with_nobody_to_ask_the_refusal_keeps_the_question() {
        let verdict = judge(&policy("preset = 'autonomous'"), &[Effect::delete("a")]);
        assert_eq!(verdict.decision, Decision::Deny);
        assert!(verdict.decided_by.reason.contains("Nobody can be asked in autonomous mode."));
        assert_eq!(verdict.decided_by.effect, Some(Effect::delete("a")));
        assert_eq!(verdict.lost[0].decision, Decision::Ask);
        assert!(verdict.asks.is_empty());
    }

    #[test]
    fn findings_say_why_in_words() {
        let said = |text: &str, effect: Effect| {
            let finding = judge(&policy(text), &[effect]).decided_by;
            format!("{} | {}", finding.name.rule, finding.reason)
        };
        insta::assert_snapshot!(said("", Effect::read("x/.ssh/id")), @"deny path .ssh | SSH keys and settings are kept here.");
        insta::assert_snapshot!(said("", Effect::write(".git/config")), @"deny path **/.git/config (write, delete) | Git runs programs from its hooks and its configuration, so tools don't change them.");
        insta::assert_snapshot!(said("", connect("10.0.0.1")), @"deny reserved hosts | The host belongs to a private network; only a rule that names it can allow it.");
        insta::assert_snapshot!(said("", connect("127.1")), @"deny unclear hosts | The host is an address in an unusual spelling; write it as four decimal numbers, such as `192.0.2.1`.");
        insta::assert_snapshot!(said("tools.allow = []", Effect::Speak), @"tools.allow | `probe` isn't on the list of tools in user.toml.");
        insta::assert_snapshot!(said("preset = 'read-only'", crate::testing::run("make")), @"preset read-only: deny proc.exec | The preset `read-only` runs only commands known to be read-only, and this one isn't known.");
        insta::assert_snapshot!(said("rules = [{ decision = 'deny', path = 'a' }]", Effect::read("a")), @"deny path a | The user configuration forbids path a.");
        insta::assert_snapshot!(said("rules = [{ decision = 'deny', path = 'a', reason = 'Mine.' }]", Effect::read("a")), @"deny path a | Mine.");
    }
}
