//! What hands count while a tool works.

use toolgate_contract::{
    ArtifactRef, ChangedSource, CodeDiagnostic, CommandProcess, Denial, DeniedAccess, Effect, Enforced,
    FoldedDirectory, OmittedText, Preview,
};

/// What the hands counted while the tool worked. The tool can't forget to report it, because it doesn't report it.
#[derive(Debug, Clone, Default)]
pub(in crate::gate) struct Tally {
    /// Paths that were created, changed or deleted.
    pub(in crate::gate) files_changed: Vec<String>,
    /// How many more there were than are listed.
    pub(in crate::gate) more_files_changed: usize,
    /// Directories of build output whose paths aren't listed.
    pub(in crate::gate) folded: Vec<FoldedDirectory>,
    /// Commands that ran.
    pub(in crate::gate) commands_run: Vec<String>,
    /// The processes of these commands.
    pub(in crate::gate) processes: Vec<CommandProcess>,
    /// Output that was stored.
    pub(in crate::gate) refs: Vec<ArtifactRef>,
    /// Requests the next page.
    pub(in crate::gate) next_cursor: Option<String>,
    /// The exit code of the command that ran.
    pub(in crate::gate) exit_code: Option<i64>,
    /// Texts of the payload that are already stored completely, by the JSON pointer of their field.
    pub(in crate::gate) stored: Vec<(String, OmittedText)>,
    /// Whether a secret was redacted before the payload was made.
    pub(in crate::gate) redacted: bool,
    /// Which guarantees held.
    pub(in crate::gate) enforced: Enforced,
    /// What the sandbox denied.
    pub(in crate::gate) denials: Vec<Denial>,
    /// Those of them that the reply tells of, with what to do next.
    pub(in crate::gate) denied: Vec<DeniedAccess>,
    /// Effects that only running could tell. The call is judged once more, with them.
    pub(in crate::gate) further: Option<FurtherEffects>,
    /// Files that were changed, for language servers.
    pub(in crate::gate) changed_sources: Vec<ChangedSource>,
    /// Errors that these changes caused.
    pub(in crate::gate) new_errors: Vec<CodeDiagnostic>,
}

/// What a call would touch beyond what its arguments say, and what that would change.
#[derive(Debug, Clone)]
pub(in crate::gate) struct FurtherEffects {
    pub(in crate::gate) effects: Vec<Effect>,
    pub(in crate::gate) preview: Preview,
}

impl Tally {
    /// This tally of a second attempt, with what the first one did: its changes stay, and its output is stored.
    #[must_use]
    pub(in crate::gate) fn following(mut self, first: Self) -> Self {
        let is_new = |path: &String| !self.files_changed.contains(path);
        let changed: Vec<String> = first.files_changed.into_iter().filter(is_new).collect();
        self.files_changed.splice(0..0, changed);
        self.more_files_changed += first.more_files_changed;
        self.folded.splice(0..0, first.folded);
        self.processes.splice(0..0, first.processes);
        self.refs.splice(0..0, first.refs);
        self
    }
}
