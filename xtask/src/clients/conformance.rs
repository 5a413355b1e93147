//! The public conformance suite: every server scenario that a revision requires, judged by the suite's exit code. The
//! server is shown to be there first, since the suite prints passed checks even where nothing listens.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};

use super::{install, shown};
use crate::command_line::CommandLine;

/// Revisions whose required scenarios have to pass.
const REVISIONS: &[&str] = &["2025-11-25", "2026-07-28"];

pub(super) fn run(directory: &Path, program: &Path, workspace: &Path) -> Result<()> {
    let (server, url) = ConformanceServer::start(program, workspace)?;
    let suite = directory.join("node_modules/@modelcontextprotocol/conformance/dist/index.js");
    let results = workspace.join("../results");
    for revision in REVISIONS {
        CommandLine::new("")
            .words([shown(&directory.join(install::NODE)), shown(&suite)])
            .words(["server", "--url", &url, "--requirements", revision, "--output-dir", &shown(&results)])
            .run()?;
    }
    drop(server);
    Ok(())
}

/// A server that goes when this does.
struct ConformanceServer(Child);

impl ConformanceServer {
    /// Starts one and reads where it listens.
    fn start(program: &Path, workspace: &Path) -> Result<(Self, String)> {
        let mut command = Command::new(program);
        command.args(["serve", "--conformance"]).current_dir(workspace).env("HOME", workspace.join("../home"));
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
        let mut server = Self(child.with_context(|| format!("{} can't be started", program.display()))?);
        let mut url = String::new();
        let output = server.0.stdout.take().context("the server has an output")?;
        BufReader::new(output).read_line(&mut url)?;
        match url.trim() {
            "" => bail!("the server didn't say where it listens"),
            url => Ok((server, url.to_owned())),
        }
    }
}

impl Drop for ConformanceServer {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
