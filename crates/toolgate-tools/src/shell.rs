//! `shell`: runs a command, confined (C-51). What the command may touch was read out of it and judged before; the
//! kernel holds it to that.

use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolgate_contract::{
    Denial, Effect, ErrorCode, Hands, Output as Piece, Permission, Process, Right, Risk, SideEffect, Spec, Tool,
    ToolError,
};

/// Runs a command.
pub struct Shell;

/// How long a command may take unless it says otherwise, and at most.
const USUAL_SECONDS: u64 = 120;
const MOST_SECONDS: u64 = 600;

/// The code that `timeout` gives, and so do we.
const TIMED_OUT: i32 = 124;

/// How much of each stream is kept: the beginning, and then the end.
const KEPT: usize = 8 * 1024 * 1024;

/// What to run.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// A command line for bash.
    command: String,
    /// The folder to run in, relative to the workspace.
    #[serde(default = "here")]
    workdir: String,
    /// Seconds until it is stopped, 120 unless told, 600 at most.
    #[serde(default = "usual_seconds")]
    #[schemars(range(min = 1, max = 600))]
    timeout_seconds: u64,
}

fn here() -> String {
    ".".into()
}

fn usual_seconds() -> u64 {
    USUAL_SECONDS
}

/// How it ended.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// 0 is success, 124 means that the time was up.
    exit_code: i32,
    /// What it wrote to its standard output.
    stdout: String,
    /// What it wrote to its standard error.
    stderr: String,
    /// How long it took, in milliseconds.
    duration_ms: u64,
    /// Whether it was stopped because its time was up.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    timed_out: bool,
    /// What confinement kept from it, if it failed: perhaps that is why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    denied: Vec<Denied>,
}

/// Something that the command wanted and didn't get.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Denied {
    /// `network_denied` or `sandbox_denied`.
    code: &'static str,
    /// What would have been needed.
    missing: String,
    /// Why it was refused.
    reason: String,
    /// What to ask for in `requested_permissions`, if it is needed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    request: Vec<String>,
}

impl From<&Denial> for Denied {
    fn from(denial: &Denial) -> Self {
        let request = denial.missing.iter().filter_map(Right::of).map(|right| right.to_string()).collect();
        let (missing, reason) = (denial.missing_in_words(), denial.reason.clone());
        Self { code: denial.code.as_str(), missing, reason, request }
    }
}

impl Tool for Shell {
    type Args = Args;
    type Output = Output;

    const SPEC: Spec = Spec {
        name: "shell",
        version: "1.0.0",
        description: "Run a command with bash in the workspace. It is confined: it can read the machine, change the \
                      workspace, and reach only hosts that are allowed. There is nothing on its standard input, so it must not wait \
                      for an answer.",
        risk: Risk::Medium,
        permissions: &[Permission::FsRead, Permission::ProcExec],
        side_effects: &[SideEffect::StartsProcesses, SideEffect::WritesFiles],
        parallel: false,
    };

    fn effects(&self, args: &Args) -> Vec<Effect> {
        let run = Effect::Run { command: args.command.clone(), workdir: args.workdir.clone() };
        vec![Effect::read(&args.workdir), run]
    }

    async fn run(&self, args: Args, hands: &Hands) -> Result<Output, ToolError> {
        if !(1..=MOST_SECONDS).contains(&args.timeout_seconds) {
            let message = format!("`timeout_seconds` is {}; it can be 1 to {MOST_SECONDS}.", args.timeout_seconds);
            return Err(ToolError::new(ErrorCode::InvalidArgs, message));
        }
        let start = Instant::now();
        let mut process = hands.start(&args.command, &args.workdir).await?;
        let (mut out, mut err) = (Kept::default(), Kept::default());
        let limit = Duration::from_secs(args.timeout_seconds);
        let ended = tokio::time::timeout(limit, listen(process.as_mut(), &mut out, &mut err)).await;
        let timed_out = ended.is_err();
        let exit_code = ended.unwrap_or(Ok(TIMED_OUT))?;
        let (stdout, stderr) = (out.into_text(), err.into_text());
        let denials = process.denials(&stderr);
        let denied = denials.iter().filter(|_| exit_code != 0).map(Denied::from).collect();
        hands.denied(denials);
        // Everything that the command started ends here, whether it wanted to or not.
        drop(process);
        hands.ended(i64::from(exit_code));
        let duration_ms = u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
        Ok(Output { exit_code, stdout, stderr, duration_ms, timed_out, denied })
    }
}

async fn listen(process: &mut dyn Process, out: &mut Kept, err: &mut Kept) -> Result<i32, ToolError> {
    while let Some(piece) = process.output().await {
        match piece {
            Piece::Out(bytes) => out.push(&bytes),
            Piece::Err(bytes) => err.push(&bytes),
        }
    }
    process.wait().await
}

/// Output of which only so much is held: the first part, and the last.
#[derive(Default)]
struct Kept {
    first: Vec<u8>,
    last: Vec<u8>,
    dropped: u64,
}

impl Kept {
    fn push(&mut self, bytes: &[u8]) {
        let room = (KEPT / 2).saturating_sub(self.first.len()).min(bytes.len());
        let (first, rest) = bytes.split_at(room);
        self.first.extend_from_slice(first);
        self.last.extend_from_slice(rest);
        // Cutting seldom and much keeps an endless stream cheap.
        if self.last.len() > KEPT {
            let cut = self.last.len() - KEPT / 2;
            self.last.drain(..cut);
            self.dropped += cut as u64;
        }
    }

    fn into_text(self) -> String {
        let first = String::from_utf8_lossy(&self.first);
        let last = String::from_utf8_lossy(&self.last);
        match self.dropped {
            0 => String::from_utf8_lossy(&[self.first.as_slice(), &self.last].concat()).into_owned(),
            dropped => format!("{first}\n[{dropped} bytes of output were too much to keep]\n{last}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_beyond_all_bounds_keeps_its_beginning_and_its_end() {
        let mut kept = Kept::default();
        kept.push(b"first");
        for _ in 0..200 {
            kept.push(&vec![b'x'; 1 << 20]);
        }
        kept.push(b"last");
        assert!(kept.first.len() + kept.last.len() <= 2 * KEPT);
        let text = kept.into_text();
        assert!(text.starts_with("first") && text.ends_with("last") && text.contains("too much to keep"));
    }

    #[test]
    fn a_character_across_two_pieces_stays_whole() {
        let mut kept = Kept::default();
        "é".as_bytes().iter().for_each(|byte| kept.push(&[*byte]));
        assert_eq!(kept.into_text(), "é");
    }
}
