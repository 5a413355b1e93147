//! The public conformance suite: every server scenario that a protocol version requires, judged by the suite's exit code.
//! It runs against the example `conformance-server` of `toolgate-mcp`, which has to say where it listens first, because
//! the suite prints passed checks even where nothing listens.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};

use super::{built, install, shown};
use crate::command_line::CommandLine;

/// Protocol versions whose required scenarios have to pass.
const REVISIONS: &[&str] = &["2025-11-25", "2026-07-28"];

pub(super) fn run(directory: &Path, results: &Path) -> Result<()> {
    CommandLine::new("cargo build --locked --package toolgate-mcp --example conformance-server").run()?;
    let (server, url) = ConformanceServer::start(&built("examples/conformance-server"))?;
    let suite = directory.join("node_modules/@modelcontextprotocol/conformance/dist/index.js");
    for revision in REVISIONS {
        CommandLine::new("")
            .words([shown(&directory.join(install::NODE)), shown(&suite)])
            .words(["server", "--url", &url, "--requirements", revision, "--output-dir", &shown(results)])
            .run()?;
    }
    drop(server);
    Ok(())
}

/// A server that is killed when this is dropped.
struct ConformanceServer(Child);

impl ConformanceServer {
    /// Starts the server and reads where it listens.
    fn start(program: &Path) -> Result<(Self, String)> {
        let child = Command::new(program).stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
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
