//! Hands on processes: those that a call starts, and those that its session has.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::Hands;
use crate::{
    Access, ApplyMode, Denial, DeniedAccess, Effect, LaunchSpec, NetworkAccess, ProcessGuard, ProcessHandle,
    SettledChanges, SkillScript, StartDirectory, Stream, Streams, ToolError, WorkspacePath, told_denials,
};

/// Hidden files that one reply tells of by name.
const MOST_TOLD: usize = 8;

impl Hands {
    /// Starts a declared command in a directory that was declared for reading. It ends with the call, or after `longest`,
    /// unless it is detached.
    pub async fn start(
        &self,
        command: &str,
        workdir: &str,
        streams: Streams,
        apply_mode: ApplyMode,
        longest: Duration,
    ) -> Result<ProcessGuard, ToolError> {
        self.need_run(command)?;
        let directory = StartDirectory::Workspace(self.declared(Access::Read, workdir)?);
        let spec = LaunchSpec { directory, streams, apply_mode, ..LaunchSpec::shell(command) };
        self.begin(spec, longest).await
    }

    /// Starts a script of a declared skill, which was declared as the command that it amounts to. It starts in a directory of
    /// its own, and ends with the call, or after `longest`.
    pub async fn start_script(&self, script: SkillScript, longest: Duration) -> Result<ProcessGuard, ToolError> {
        let is_it = |effect: &Effect| matches!(effect, Effect::Skill { name: Some(name) } if *name == script.skill);
        self.need(is_it, "use that skill")?;
        let command = script.line();
        self.need_run(&command)?;
        let spec = self.blocking(move |hands| hands.means.skills.launch_spec(&script)).await?;
        self.begin(LaunchSpec { command, apply_mode: ApplyMode::AtEnd, ..spec }, longest).await
    }

    fn need_run(&self, command: &str) -> Result<(), ToolError> {
        self.need(|effect| matches!(effect, Effect::Run { command: declared, .. } if declared == command), "run that")
    }

    /// Starts a declared command with all that was decided about it.
    async fn begin(&self, spec: LaunchSpec, longest: Duration) -> Result<ProcessGuard, ToolError> {
        let spec = LaunchSpec {
            writable: self.writable(),
            unsandboxed: self.is_unsandboxed(&spec.command),
            network: self.means.egress.clone().map_or(NetworkAccess::Off, NetworkAccess::Listed),
            ..spec
        };
        let process = ProcessGuard::new(self.means.processes.start(spec, longest).await?);
        self.note(|tally| {
            let facts = process.process().facts();
            tally.commands_run.push(facts.command.clone());
            tally.enforced.0.extend(facts.enforced.0.clone());
        });
        Ok(process)
    }

    /// Places beyond the workspace that were granted with the call. No tool can state those; they have no place beneath a root.
    fn writable(&self) -> Vec<PathBuf> {
        let beyond = self.granted.iter().filter(|located| located.real.is_none());
        beyond.filter_map(|located| Some(PathBuf::from(located.effect.path()?.1))).collect()
    }

    fn is_unsandboxed(&self, command: &str) -> bool {
        let is_it = |effect: &Effect| matches!(effect, Effect::Unsandboxed { command: granted } if granted == command);
        self.granted.iter().any(|located| is_it(&located.effect))
    }

    /// Whether the caller wants to wait for the end, however long that takes: nobody would come back for what goes on.
    pub fn waits(&self) -> bool {
        self.means.waits
    }

    /// How long a process may go on without its call.
    pub fn longest(&self) -> Duration {
        self.means.processes.longest()
    }

    /// The session's processes, where attending to all of them was declared.
    pub fn processes(&self) -> Result<Vec<Arc<dyn ProcessHandle>>, ToolError> {
        self.need(
            |effect| matches!(effect, Effect::Attend { process } if process == Effect::ALL),
            "see all processes",
        )?;
        Ok(self.means.processes.all())
    }

    /// A process of the session that the call declared to attend to.
    pub fn process(&self, id: &str) -> Result<Arc<dyn ProcessHandle>, ToolError> {
        self.need(|effect| matches!(effect, Effect::Attend { process } if process == id), "attend to that process")?;
        self.means.processes.find(id)
    }

    /// Writes the declared text, which may be nothing, and then keys, into a process.
    pub async fn feed(&self, process: &dyn ProcessHandle, text: &str, keys: &[u8]) -> Result<(), ToolError> {
        let id = &process.facts().id;
        let declared =
            |effect: &Effect| matches!(effect, Effect::Feed { process, text: said } if process == id && said == text);
        self.need(declared, "write that into the process")?;
        for bytes in [text.as_bytes(), keys].into_iter().filter(|bytes| !bytes.is_empty()) {
            process.write(bytes).await?;
        }
        Ok(())
    }

    /// The output of an ended process, for this field of the payload. What is too long for a reply is stored already.
    pub fn output(&self, process: &dyn ProcessHandle, stream: Stream, field: &str) -> Result<String, ToolError> {
        let whole = process.whole(stream)?;
        self.note(|tally| {
            tally.redacted |= process.is_redacted();
            tally.stored.extend(whole.missing.map(|missing| (field.to_owned(), missing)));
        });
        Ok(whole.text)
    }

    /// What confinement kept from a process so far, which is noted as the call's. The errors that it wrote tell what it tried to
    /// do with files.
    pub fn denials(&self, process: &dyn ProcessHandle, errors: &str) -> Vec<Denial> {
        let (refused, opened) = (process.denials(errors), process.opened());
        let of_hidden = |place: &WorkspacePath| self.means.hidden_paths.denial(place, &self.shown(place));
        let has_failed = self.tally.lock().exit_code.is_some_and(|code| code != 0);
        let denials = told_denials(refused, &opened, MOST_TOLD, has_failed, of_hidden);
        self.note(|tally| tally.denials.extend(denials.iter().cloned()));
        denials
    }

    /// Tells of these in the reply: the gate adds them to the payload as `denied`.
    pub fn tell_denied<'d>(&self, denials: impl Iterator<Item = &'d Denial>) {
        self.note(|tally| tally.denied.extend(denials.map(DeniedAccess::from)));
    }

    /// What became of an ended process' changes to the workspace.
    pub fn settled(&self, process: &dyn ProcessHandle) -> Option<SettledChanges> {
        let settled = process.progress().borrow().end.as_ref()?.changes.clone()?;
        if settled.rehearsal.is_none() {
            let path = |line: &String| line.get(1..).unwrap_or_default().to_owned();
            self.note(|tally| tally.files_changed.extend(settled.paths.iter().map(path)));
        }
        Some(settled)
    }

    /// Says that a secret was replaced in what the payload holds.
    pub fn redacted(&self, process: &dyn ProcessHandle) {
        self.note(|tally| tally.redacted |= process.is_redacted());
    }
}
