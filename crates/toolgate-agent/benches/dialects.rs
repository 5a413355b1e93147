//! What a dialect costs: a 4 KiB read under a client's name for it, against the native read of the same file in the same run, by
//! turns; and how many tokens the definitions take, beside those that the real client sends.
#![allow(missing_docs, reason = "a benchmark")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolgate_contract::{Call, CancellationToken, SystemClock};
use toolgate_dialects::{DefinitionFormat, Dialect, DialectMemory, DialectSet, definition, dialect};
use toolgate_runtime::Session;
use toolgate_testkit::{TestWorkspace, median};
use toolgate_workspace::DialectSession;

/// Rounds of both sides, one after the other, so that noise hits both.
const ROUNDS: usize = 200;
const PER_ROUND: u32 = 50;

/// The tools that read a file, and the recordings of the clients, where there are some.
const CLIENTS: &[(&str, &str, &str, DefinitionFormat, Option<&str>)] = &[
    (
        "claude",
        "Read",
        "file_path",
        DefinitionFormat::Anthropic,
        Some(include_str!("../../toolgate-cli/tests/recordings/claude.json")),
    ),
    ("codex-2026-01", "read_file", "file_path", DefinitionFormat::OpenAiResponses, None),
    (
        "gemini",
        "read_file",
        "file_path",
        DefinitionFormat::Gemini,
        Some(include_str!("../../toolgate-cli/tests/recordings/gemini.json")),
    ),
    (
        "opencode",
        "read",
        "filePath",
        DefinitionFormat::OpenAi,
        Some(include_str!("../../toolgate-cli/tests/recordings/opencode.json")),
    ),
];
const CODEX: &str = include_str!("../../toolgate-cli/tests/recordings/codex.json");

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let tools = toolgate_tools::all().into_iter().chain(toolgate_agent::tools());
    let world = TestWorkspace::new(tools, "");
    let line = "fn ordinary(source: &str) -> usize { source.lines().count() } // a line like many\n";
    world.file("file.rs", line.repeat(4096 / line.len() + 1).split_at(4096).0);
    for (name, tool, path, format, recording) in CLIENTS {
        let (native, mapped) = runtime.block_on(measure(&world, name, tool, path));
        let ratio = mapped.as_secs_f64() / native.as_secs_f64();
        println!("{name} {tool}, 4 KiB: {ratio:.3} x the native read   (aim: at most 1.05 x)");
        println!("  medians of {ROUNDS} rounds: mapped {mapped:?}, native {native:?}");
        report_definitions(&world, dialect(name).unwrap(), *format, *recording);
    }
    report_definitions(&world, dialect("codex").unwrap(), DefinitionFormat::OpenAiResponses, Some(CODEX));
}

async fn measure(world: &TestWorkspace, name: &str, tool: &str, path: &str) -> (Duration, Duration) {
    let session = world.session();
    let native = DialectSession::new(DialectSet::default(), world.path());
    let mapped = DialectSession::new(name.parse().unwrap(), world.path());
    let absolute = world.path().join("file.rs").display().to_string();
    let args = json!({ path: absolute });
    // The native call that the mapped one becomes, so that the difference is what the mapping costs.
    let memory = DialectMemory::new(world.path().display().to_string());
    let entered = dialect(name).unwrap().enter(tool, &args, &memory).unwrap().native;
    let native_call = || Call::new(entered.tool, entered.args.clone(), &SystemClock);
    let mapped_call = || Call::new(tool, args.clone(), &SystemClock);
    let (mut native_times, mut mapped_times) = (Vec::new(), Vec::new());
    for round in 0..=ROUNDS {
        let native_time = time(world, &session, &native, native_call).await;
        let mapped_time = time(world, &session, &mapped, mapped_call).await;
        // The first round only warms up.
        if round > 0 {
            native_times.push(native_time);
            mapped_times.push(mapped_time);
        }
    }
    (median(native_times), median(mapped_times))
}

async fn time(
    world: &TestWorkspace,
    session: &Session,
    dialects: &DialectSession,
    call: impl Fn() -> Call,
) -> Duration {
    let began = Instant::now();
    for _ in 0..PER_ROUND {
        let made = dialects.perform(call(), &world.gate, session, CancellationToken::new()).await;
        assert!(black_box(made).reply.ok);
    }
    began.elapsed() / PER_ROUND
}

/// Tokens of the definitions that both have, counted as four bytes each.
fn report_definitions(world: &TestWorkspace, dialect: &Dialect, format: DefinitionFormat, recording: Option<&str>) {
    let declared = dialect.declarations(world.gate.declarations());
    let bytes: usize = declared.iter().map(|tool| definition(tool, format).to_string().len()).sum();
    let theirs = recording.map(|recording| serde_json::from_str::<Value>(recording).unwrap());
    let beside = theirs.map_or_else(String::new, |theirs| {
        let count = theirs["tools"].as_array().map_or(0, Vec::len);
        format!(
            ", beside {} of {} {} ({count} tools)",
            theirs["definition_tokens"], theirs["client"], theirs["version"]
        )
    });
    println!("  {}: definitions of {} tools take {} tokens{beside}", dialect.name, declared.len(), bytes / 4);
}
