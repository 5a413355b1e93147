//! `cargo xtask test --only http`: the HTTP server against its own description. Schemathesis makes requests out of
//! the description, right and wrong ones, and none of them may be answered with a server error.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::command_line::{CommandLine, target_directory};
use crate::skip::SkippedTest;

/// The version that is known to read OpenAPI 3.1 as we write it.
const VERSION: &str = "4.32.5";

/// No server error, and nothing that the description doesn't say.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,unsupported_method";

/// One thread: Python 3.11 fails now and then if two threads parse source text at the same time (`SystemError: AST constructor
/// recursion depth mismatch`), which Hypothesis does to describe its strategies.
const WORKERS: &str = "1";

/// Requests for each operation.
const EXAMPLES: &str = "60";

pub(crate) fn run() -> Result<Vec<SkippedTest>> {
    let program = install()?;
    CommandLine::new("cargo build --locked --package toolgate-cli").run()?;
    let server = SchemathesisServer::start(&target_directory().join("debug/toolgate"))?;
    CommandLine::new(&program.display().to_string())
        .words(["run", &format!("{}/openapi.json", server.address)])
        .words(["--header", &format!("Authorization: Bearer {}", server.token)])
        .words(["--checks", CHECKS, "--max-examples", EXAMPLES, "--generation-deterministic", "--workers", WORKERS])
        // A live stream has no end.
        .words(["--exclude-path", "/v1/live"])
        .words(["--phases", "examples,coverage,fuzzing", "--suppress-health-check", "all", "--no-color"])
        .run()?;
    Ok(Vec::new())
}

/// Puts schemathesis into an environment of its own beneath the build directory, and says where it is.
fn install() -> Result<PathBuf> {
    let directory = target_directory().join(format!("python/schemathesis-{VERSION}"));
    let program = directory.join("bin/schemathesis");
    if !program.is_file() {
        let text = directory.display().to_string();
        CommandLine::new("python3 -m venv").words([&text]).run()?;
        let pip = directory.join("bin/pip").display().to_string();
        CommandLine::new(&pip).words(["install", "--quiet", &format!("schemathesis=={VERSION}")]).run()?;
    }
    Ok(program)
}

/// A server in a workspace and a home of its own; both go away with it.
struct SchemathesisServer {
    child: Child,
    directory: PathBuf,
    address: String,
    token: String,
}

impl SchemathesisServer {
    fn start(program: &Path) -> Result<Self> {
        let directory = target_directory().join(format!("schemathesis-{}", std::process::id()));
        let workspace = directory.join("workspace");
        std::fs::create_dir_all(&workspace)?;
        let mut child = Command::new(program)
            .args(["--json", "serve", "--listen", "127.0.0.1:0"])
            .current_dir(&workspace)
            .env("HOME", &directory)
            .env_remove("XDG_STATE_HOME")
            .env_remove("XDG_CONFIG_HOME")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().context("a pipe")?).read_line(&mut line)?;
        let mut server = Self { child, directory, address: String::new(), token: String::new() };
        let Some(address) = line.split('"').find(|word| word.starts_with("http://")) else {
            bail!("the server didn't say where it listens: {line}");
        };
        address.clone_into(&mut server.address);
        let token = std::fs::read_to_string(server.directory.join(".local/state/toolgate/http.token"))?;
        token.trim().clone_into(&mut server.token);
        Ok(server)
    }
}

impl Drop for SchemathesisServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}
