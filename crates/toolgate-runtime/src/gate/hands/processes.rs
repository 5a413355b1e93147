//! Hands on processes: what a call starts is what it declared, with what was granted to it.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use toolgate_contract::{
    Access, ApplyMode, BoxFuture, CommandProcess, Denial, DeniedAccess, Effect, FileHands, LaunchSpec, NetworkAccess,
    ProcessGuard, ProcessHandle, ProcessHands, SettledChanges, SkillScript, StartDirectory, Stream, Streams, ToolError,
    WorkspacePath, reported_denials, unescape_path,
};

use super::call_hands::CallHands;

/// Hidden files that one reply tells of by name.
pub(super) const MOST_TOLD: usize = 8;

impl ProcessHands for CallHands {
    fn start<'a>(
        &'a self,
        command: &'a str,
        workdir: &'a str,
        streams: Streams,
        apply_mode: ApplyMode,
        longest: Duration,
    ) -> BoxFuture<'a, Result<ProcessGuard, ToolError>> {
        Box::pin(async move {
            self.need_run(command)?;
            let directory = StartDirectory::Workspace(self.declared(Access::Read, workdir)?);
            let spec = LaunchSpec { directory, streams, apply_mode, ..LaunchSpec::shell(command) };
            self.begin(spec, longest).await
        })
    }

    fn start_script(&self, script: SkillScript, longest: Duration) -> BoxFuture<'_, Result<ProcessGuard, ToolError>> {
        Box::pin(async move {
            let is_it = |effect: &Effect| matches!(effect, Effect::Skill { name: Some(name) } if *name == script.skill);
            self.need(is_it, "use that skill")?;
            let command = script.line();
            self.need_run(&command)?;
            let spec = self.blocking(move |hands| hands.services.skills.launch_spec(&script)).await?;
            self.begin(LaunchSpec { command, apply_mode: ApplyMode::AtEnd, ..spec }, longest).await
        })
    }

    fn waits(&self) -> bool {
        self.services.waits
    }

    fn longest(&self) -> Duration {
        self.services.processes.longest()
    }

    fn processes(&self) -> Result<Vec<Arc<dyn ProcessHandle>>, ToolError> {
        self.need(
            |effect| matches!(effect, Effect::Attend { process } if process == Effect::ALL),
            "see all processes",
        )?;
        Ok(self.services.processes.all())
    }

    fn process(&self, id: &str) -> Result<Arc<dyn ProcessHandle>, ToolError> {
        self.need(|effect| matches!(effect, Effect::Attend { process } if process == id), "attend to that process")?;
        self.services.processes.find(id)
    }

    fn feed<'a>(
        &'a self,
        process: &'a dyn ProcessHandle,
        text: &'a str,
        keys: &'a [u8],
    ) -> BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(async move {
            let id = &process.facts().id;
            let declared = |effect: &Effect| matches!(effect, Effect::Feed { process, text: said } if process == id && said == text);
            self.need(declared, "write that into the process")?;
            for bytes in [text.as_bytes(), keys].into_iter().filter(|bytes| !bytes.is_empty()) {
                process.write(bytes).await?;
            }
            Ok(())
        })
    }

    fn ended(&self, exit_code: i64) {
        self.note(|tally| tally.exit_code = Some(exit_code));
    }

    fn output(&self, process: &dyn ProcessHandle, stream: Stream, field: &str) -> Result<String, ToolError> {
        let whole = process.whole(stream)?;
        self.note(|tally| {
            tally.redacted |= process.is_redacted();
            tally.stored.extend(whole.missing.map(|missing| (field.to_owned(), missing)));
        });
        Ok(whole.text)
    }

    fn denials(&self, process: &dyn ProcessHandle, errors: &str) -> Vec<Denial> {
        let (refused, opened) = (process.denials(errors), process.opened());
        let of_hidden = |place: &WorkspacePath| self.services.hidden_paths.denial(place, &self.shown(place));
        let has_failed = self.tally.lock().exit_code.is_some_and(|code| code != 0);
        let denials = reported_denials(refused, &opened, MOST_TOLD, has_failed, of_hidden);
        self.note(|tally| tally.denials.extend(denials.iter().cloned()));
        denials
    }

    fn report_denied(&self, denied: Vec<DeniedAccess>) {
        self.note(|tally| tally.denied.extend(denied));
    }

    fn settled(&self, process: &dyn ProcessHandle) -> Option<SettledChanges> {
        let settled = process.progress().borrow().end.as_ref()?.changes.clone()?;
        if self.unfinished.count(process) && settled.rehearsal.is_none() {
            self.count_changes(&settled);
        }
        Some(settled)
    }

    fn redacted(&self, process: &dyn ProcessHandle) {
        self.note(|tally| tally.redacted |= process.is_redacted());
    }
}

impl CallHands {
    fn need_run(&self, command: &str) -> Result<(), ToolError> {
        self.need(|effect| matches!(effect, Effect::Run { command: declared, .. } if declared == command), "run that")
    }

    /// Starts a declared command with all that was decided about it.
    async fn begin(&self, spec: LaunchSpec, longest: Duration) -> Result<ProcessGuard, ToolError> {
        let spec = LaunchSpec {
            writable: self.writable(),
            unsandboxed: self.is_unsandboxed(&spec.command),
            only_reads: self.services.only_reads,
            network: self.services.egress.clone().map_or(NetworkAccess::Off, NetworkAccess::Listed),
            ..spec
        };
        let hands = self.clone();
        // In a task of its own: a command that was launched is known and counted, also when its call is cancelled meanwhile.
        let launch = self.unfinished.tasks.spawn(async move {
            let process = hands.services.processes.start(spec, longest).await?;
            hands.unfinished.add(&process);
            hands.note(|tally| {
                let facts = process.facts();
                tally.commands_run.push(facts.command.clone());
                tally.processes.push(CommandProcess { process: facts.id.clone(), pids: facts.pids });
                tally.enforced.0.extend(facts.enforced.0.clone());
            });
            Ok(process)
        });
        let launched = launch.await.unwrap_or_else(|_| Err(ToolError::internal("The command couldn't be launched.")));
        launched.map(ProcessGuard::new)
    }

    /// Places beyond the workspace that were granted with the call. No tool can state those; they have no place beneath a root.
    fn writable(&self) -> Vec<PathBuf> {
        let beyond = self.granted.iter().filter(|located| located.real.is_none());
        let path = |path: &str| PathBuf::from(OsStr::from_bytes(&unescape_path(path)));
        beyond.filter_map(|located| Some(path(located.effect.path()?.1))).collect()
    }

    fn is_unsandboxed(&self, command: &str) -> bool {
        let is_it = |effect: &Effect| matches!(effect, Effect::Unsandboxed { command: granted } if granted == command);
        self.granted.iter().any(|located| is_it(&located.effect))
    }
}
