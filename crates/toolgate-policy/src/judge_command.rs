//! Judges a command: every simple command in it, and everything that each of them touches.

use toolgate_config::UnknownCommandAction;
use toolgate_contract::{
    Access, Decision, Effect, Layer, LocatedEffect, NamedChanges, Permission, RemoteUrl, WorkspacePath,
};

use crate::call_effects::{CallEffects, CommandEffects, SimpleCommandEffects};
use crate::commands::{Need, OUTSIDE, SimpleCommand, Touch, remote_url};
use crate::judge::about;
use crate::opinion::{Opinion, OpinionSource, Topic};
use crate::policy::Policy;
use crate::preset;
use crate::rules::RuleKind;
use crate::sensitive_paths::{SensitiveMatch, find_sensitive, find_sensitive_pattern};
use toolgate_config::Preset;

/// The system's own directories. Reading there reveals no secrets, except in the listed sensitive paths.
const SYSTEM: &[&str] = &[
    "usr",
    "bin",
    "sbin",
    "lib",
    "lib32",
    "lib64",
    "etc",
    "proc",
    "sys",
    "dev/null",
    "dev/zero",
    "dev/fd",
    "dev/stdin",
    "dev/urandom",
    "dev/random",
    "dev/tty",
    "run/current-system",
    "nix",
];

/// Directories that a sandbox has for itself.
const SCRATCH: &[&str] = &["tmp", "dev/shm"];

impl Policy {
    pub(crate) fn on_command(&self, command: &CommandEffects, opinions: &mut Vec<Opinion>) {
        if command.fault.is_some() {
            let first = opinions.len();
            self.on_permission(Permission::ProcExec, Some(command.effect), opinions);
            self.on_unknown(command.effect, first, opinions);
        } else if command.parts.is_empty() {
            self.on_exec_rules(command.effect, opinions);
        }
        let mut new_keys = Vec::new();
        for part in &command.parts {
            self.on_part(part, opinions);
            new_keys.extend(&part.part.new_keys);
            for (number, touch) in part.touches.clone().zip(&part.part.touches) {
                match touch {
                    // The connection stays inside the sandbox, so nobody is asked.
                    Touch::Host { name, .. } if command.is_own_loopback(name) => {}
                    // What is deleted there the command made itself.
                    Touch::Path { access: Access::Delete, path, pattern } if self.is_own_scratch(command, path) => {
                        let made = Touch::Path { access: Access::Write, path: path.clone(), pattern: *pattern };
                        self.on_touch(number, &made, &part.part, &new_keys, opinions);
                    }
                    _ => self.on_touch(number, touch, &part.part, &new_keys, opinions),
                }
            }
        }
    }

    /// Whether a path is beneath one of the temporary directories that the command's own sandbox starts with empty.
    fn is_own_scratch(&self, command: &CommandEffects, path: &str) -> bool {
        let place = self.paths.place(path);
        let beneath = |directory: &&str| place.path.strip_prefix(*directory).is_some_and(|rest| rest.starts_with('/'));
        command.has_own_sandbox && place.root == OUTSIDE && SCRATCH.iter().any(beneath)
    }

    fn on_part(&self, command: &SimpleCommandEffects, opinions: &mut Vec<Opinion>) {
        let (index, part) = (command.effect, &command.part);
        for (number, danger) in part.dangers.iter().enumerate() {
            let excepted = || self.danger_excepts.iter().any(|rule| rule.matches(part, &self.paths));
            if danger.fixed || !excepted() {
                opinions.push(about(index, Decision::Deny, Layer::Builtin, OpinionSource::Danger(number)));
            }
        }
        let first = opinions.len();
        self.on_exec_rules(index, opinions);
        let decision = match part.is_known() {
            true => Decision::Allow,
            false => preset::baseline(self.preset, Permission::ProcExec),
        };
        let topic = Topic::Permission(Permission::ProcExec);
        let source = if part.is_known() { OpinionSource::Known } else { OpinionSource::Baseline(Permission::ProcExec) };
        opinions.push(Opinion { decision, layer: Layer::Builtin, effect: Some(index), topic, source });
        if !part.unclear.is_empty() {
            self.on_unknown(index, first, opinions);
        }
        part.needs.iter().for_each(|need| self.on_need(index, *need, opinions));
        if self.remote_url(part).is_some() {
            let decision = preset::outside_boundary(self.preset);
            opinions.push(about(index, decision, Layer::Builtin, OpinionSource::RemoteUrl));
        }
        self.on_command_rules(index, part, opinions);
    }

    /// Rules about the permission to run. The baseline is judged for each simple command, because it depends on what is
    /// known about the command.
    pub(crate) fn on_exec_rules(&self, index: usize, opinions: &mut Vec<Opinion>) {
        let first = opinions.len();
        self.on_permission(Permission::ProcExec, Some(index), opinions);
        opinions.extract_if(first.., |opinion| opinion.is_baseline()).for_each(drop);
    }

    fn on_need(&self, index: usize, need: Need, opinions: &mut Vec<Opinion>) {
        match need {
            Need::Permission(permission) => self.on_permission(permission, Some(index), opinions),
            Need::Privilege => {
                let decision = preset::outside_boundary(self.preset);
                let topic = Topic::Permission(Permission::ProcExec);
                let source = OpinionSource::Privilege;
                opinions.push(Opinion { decision, layer: Layer::Builtin, effect: Some(index), topic, source });
            }
        }
    }

    fn on_command_rules(&self, index: usize, part: &SimpleCommand, opinions: &mut Vec<Opinion>) {
        for &at in self.command_rules.about(part) {
            let rule = &self.rules[at];
            if matches!(&rule.kind, RuleKind::Command(command) if command.matches(part, &self.paths)) {
                opinions.push(about(index, rule.decision, rule.name.layer, OpinionSource::Rule(at)));
            }
        }
    }

    /// Nothing answers an ask about a command that can't be analyzed. So this drops approvals of its permission, which
    /// start at `first`, and turns asks into asks about this very effect: only rules on commands could answer those,
    /// and none matches.
    fn on_unknown(&self, index: usize, first: usize, opinions: &mut Vec<Opinion>) {
        let approves = |opinion: &mut Opinion| opinion.decision == Decision::Allow && !opinion.is_baseline();
        opinions.extract_if(first.., approves).for_each(drop);
        opinions[first..].iter_mut().for_each(|opinion| opinion.topic = Topic::Effect);
        let (unknown, layer) = self.unknown;
        let decision = match unknown {
            UnknownCommandAction::Confine => Decision::Allow,
            UnknownCommandAction::Ask => Decision::Ask,
            UnknownCommandAction::Deny => Decision::Deny,
        };
        opinions.push(about(index, decision, layer, OpinionSource::Unknown));
    }

    /// Judges what a simple command touches. `new_keys` are those that it and the ones before it make: what comes after
    /// `openssl genrsa -out a.key` in the same line may use `a.key`.
    fn on_touch(
        &self,
        number: usize,
        touch: &Touch,
        part: &SimpleCommand,
        new_keys: &[&String],
        opinions: &mut Vec<Opinion>,
    ) {
        match touch {
            Touch::Host { name, .. } => {
                self.on_permission(Permission::NetConnect, Some(number), opinions);
                self.on_host(number, name, opinions);
            }
            Touch::Path { access, path, pattern } => {
                // Nothing is lost by a move inside the workspace.
                let changes = if part.only_moves && *access == Access::Delete { Access::Write } else { *access };
                self.on_permission(permission(changes), Some(number), opinions);
                let place = self.paths.place(path);
                if new_keys.contains(&path)
                    && place.root == 0
                    && find_sensitive(*access, &place, &self.excepts).is_some()
                {
                    return self.on_new_key(number, *access, &place, opinions);
                }
                if let Some(hit) = pattern.then(|| find_sensitive_pattern(*access, &place, &self.excepts)).flatten() {
                    opinions.push(about(number, Decision::Deny, Layer::Builtin, OpinionSource::SensitivePath(hit)));
                }
                match place.root {
                    OUTSIDE => self.on_outside(number, *access, &place, opinions),
                    _ => self.on_place(number, *access, &place, None, opinions),
                }
            }
        }
    }

    /// A new private key is no secret of anybody's yet, but a person should know of it: where a key that is there would
    /// be denied, a person is asked.
    fn on_new_key(&self, number: usize, access: Access, place: &WorkspacePath, opinions: &mut Vec<Opinion>) {
        let decision = preset::outside_boundary(self.preset);
        opinions.push(about(number, decision, Layer::Builtin, OpinionSource::NewKey));
        self.on_path_rules(number, access, place, None, opinions);
    }

    /// Judges a path outside all roots. The sandbox decides whether it can be read; a change needs a decision.
    pub(crate) fn on_outside(&self, number: usize, access: Access, place: &WorkspacePath, opinions: &mut Vec<Opinion>) {
        let hit: Option<SensitiveMatch> = find_sensitive(access, place, &self.excepts);
        if let Some(hit) = hit {
            opinions.push(about(number, Decision::Deny, Layer::Builtin, OpinionSource::SensitivePath(hit)));
        }
        if access != Access::Read && !is_in_any(SCRATCH, &place.path) {
            let topic = Topic::Permission(permission(access));
            let decision = preset::outside_boundary(self.preset);
            opinions.push(Opinion {
                decision,
                layer: Layer::Builtin,
                effect: Some(number),
                topic,
                source: OpinionSource::Outside,
            });
        }
        self.on_path_rules(number, access, place, None, opinions);
    }

    /// Whether the call may only run in a sandbox: true for everything but plain reading, unless the preset is `full`.
    pub(crate) fn confines(&self, call: &CallEffects<'_>) -> bool {
        let is_plain = |command: &CommandEffects| {
            command.fault.is_none() && command.parts.iter().all(|part| self.only_reads_safely(&part.part))
        };
        self.preset != Preset::Full && !call.commands.iter().all(is_plain)
    }

    /// Whether the commands of a call change nothing, as far as they can be read. `read-only` lets no other pass; `full`
    /// relies on no reading of commands. What the call asks to change itself counts as well.
    pub(crate) fn only_reads(&self, call: &CallEffects<'_>) -> bool {
        let reads = |command: &CommandEffects| {
            command.fault.is_none() && command.parts.iter().all(|part| part.part.only_reads())
        };
        let changes = |located: &LocatedEffect| {
            matches!(located.effect.path(), Some((Access::Write | Access::Delete, _)))
                || matches!(located.effect, Effect::Unsandboxed { .. })
        };
        !call.commands.is_empty()
            && !call.stated().iter().any(changes)
            && match self.preset {
                Preset::ReadOnly => true,
                Preset::Workspace | Preset::Autonomous => call.commands.iter().all(reads),
                Preset::Full => false,
            }
    }

    /// What the commands of a call name that is asked for by name: private keys in the workspace, where a key that is there
    /// would be hidden, and addresses of remotes.
    pub(crate) fn named_changes(&self, call: &CallEffects<'_>) -> NamedChanges {
        let parts = || call.commands.iter().flat_map(|command| &command.parts).map(|part| &part.part);
        let keys = parts().flat_map(|part| &part.new_keys).map(|path| self.paths.place(path));
        let is_hidden =
            |place: &WorkspacePath| place.root == 0 && find_sensitive(Access::Write, place, &self.excepts).is_some();
        let remote_urls = parts().filter_map(|part| self.remote_url(part)).collect();
        NamedChanges { new_keys: keys.filter(is_hidden).collect(), remote_urls }
    }

    /// The address that a command gives to a remote of a repository in one of the roots.
    fn remote_url(&self, part: &SimpleCommand) -> Option<RemoteUrl> {
        let (setting, url) = remote_url(part)?;
        let directory = self.paths.place(part.directory.as_deref()?);
        (directory.root != OUTSIDE).then_some(RemoteUrl { directory, setting, url })
    }

    fn only_reads_safely(&self, part: &SimpleCommand) -> bool {
        let looks = |touch: &Touch| match touch {
            Touch::Path { access: Access::Read, path, pattern: false } => {
                let place = self.paths.place(path);
                place.root != OUTSIDE || is_in_any(SYSTEM, &place.path)
            }
            _ => false,
        };
        part.is_known() && !part.names && part.needs.is_empty() && part.touches.iter().all(looks)
    }
}

fn permission(access: Access) -> Permission {
    match access {
        Access::Read => Permission::FsRead,
        Access::Write => Permission::FsWrite,
        Access::Delete => Permission::FsDelete,
    }
}

fn is_in_any(directories: &[&str], path: &str) -> bool {
    let beneath =
        |directory: &&str| path.strip_prefix(*directory).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    path.is_empty() || directories.iter().any(beneath)
}

#[cfg(test)]
mod tests {
    use crate::testing::{judge, policy, run};
    use toolgate_contract::Decision::{Allow, Ask, Deny};
    use toolgate_contract::Effect;

    #[test]
    fn an_unknown_command_is_decided_by_its_setting_alone() {
        let plenty =
            "[[rules]]\ndecision = 'allow'\ntool = '*'\n[[rules]]\ndecision = 'allow'\npermission = 'proc.exec'
            [[rules]]\ndecision = 'allow'\ncommand = ['*']\n[[rules]]\ndecision = 'ask'\npermission = 'proc.exec'\n";
        for (setting, plain, unknown) in [("confine", Allow, Ask), ("ask", Allow, Ask), ("deny", Allow, Deny)] {
            let policy = policy(&format!("{plenty}[commands]\nunknown = '{setting}'"));
            assert_eq!(judge(&policy, &[run("make all")]).decision, plain, "{setting}");
            assert_eq!(judge(&policy, &[run("make $what")]).decision, unknown, "{setting}");
        }
        let verdict = judge(&policy(""), &[run("make $what")]);
        assert_eq!((verdict.decision, verdict.decided_by.name.rule.as_str()), (Allow, "commands.unknown = confine"));
    }

    #[test]
    fn what_only_reads_is_told_from_what_may_change_something() {
        for (preset, command, only_reads) in [
            ("workspace", "cat a.txt | grep x | wc -l", true),
            ("workspace", "ls *.rs; git status", true),
            ("workspace", "cat /etc/hosts /srv/x", true),
            ("autonomous", "git log -3", true),
            ("workspace", "cat a > b", false),
            ("workspace", "rm -f a", false),
            ("workspace", "cat a; make", false),
            ("workspace", "cat $(", false),
            ("workspace", "curl http://localhost:8080", false),
            ("read-only", "cat a.txt", true),
            ("read-only", "ls *.rs", true),
            ("read-only", "curl http://localhost:8080", true),
            ("full", "cat a.txt", false),
        ] {
            let verdict = judge(&policy(&format!("preset = '{preset}'")), &[run(command)]);
            assert_eq!(verdict.only_reads, only_reads, "{preset}: {command}: {verdict:?}");
        }
        let policy = policy("");
        assert!(!judge(&policy, &[run("cat a"), Effect::write("b")]).only_reads, "it asks for more");
        assert!(!judge(&policy, &[Effect::read("b")]).only_reads, "it runs nothing");
    }

    #[test]
    fn a_confined_command_may_speak_to_itself() {
        for (host, confined) in [
            ("localhost:8765", Allow),
            ("LOCALHOST.:8765", Allow),
            ("app.localhost:3000", Allow),
            ("127.0.0.1:8765", Allow),
            ("127.8.8.8:8765", Allow),
            ("0.0.0.0:8765", Allow),
            ("[::1]:8765", Allow),
            ("[::ffff:127.0.0.1]:8765", Allow),
            ("localhost.evil.example", Ask),
            ("127.0.0.1.evil.example", Ask),
            ("user@localhost@evil.example", Ask),
            ("127.1", Deny),
            ("10.0.0.1", Deny),
            ("169.254.169.254", Deny),
            ("[::ffff:169.254.169.254]", Deny),
        ] {
            let command = run(&format!("curl -s 'http://{host}/x'"));
            let verdict = judge(&policy(""), std::slice::from_ref(&command));
            assert_eq!(verdict.decision, confined, "{host}: {verdict:?}");
            assert!(verdict.confined, "{host}: only in a sandbox");
            let fed = Effect::Feed { process: "proc_1".into(), text: format!("curl -s 'http://{host}/x'\n") };
            let unsandboxed = Effect::Unsandboxed { command: "curl".into() };
            let bare = if confined == Allow { Deny } else { confined };
            assert_eq!(judge(&policy(""), &[command, unsandboxed]).decision, bare, "{host}, without a sandbox");
            assert_eq!(judge(&policy(""), &[fed]).decision, bare, "{host}, written to an unknown process");
        }
    }
}
