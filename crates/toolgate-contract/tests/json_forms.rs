//! The JSON forms that others rely on, pinned. A change here is a change of the contract.

use insta::assert_json_snapshot;
use jiff::Timestamp;
use serde_json::{Value, json};
use toolgate_contract::*;
use uuid::Uuid;

struct Frozen;

impl Clock for Frozen {
    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH
    }

    fn id(&self) -> Uuid {
        Uuid::from_u128(7)
    }
}

fn effects() -> Vec<Effect> {
    vec![
        Effect::read("a"),
        Effect::write("b"),
        Effect::delete("c"),
        Effect::Run { command: "make".into(), workdir: "sub".into() },
        Effect::Connect { host: "example.com".into(), port: 443 },
        Effect::Speak,
        Effect::Recall { artifact: "art_1".into() },
        Effect::Attend { process: "proc_1".into() },
        Effect::Feed { process: "proc_1".into(), text: "yes\n".into() },
        Effect::Delegate { agent: "explore".into() },
    ]
}

fn finding(decision: Decision) -> Finding {
    Finding {
        decision,
        effect: Some(Effect::read(".env")),
        name: RuleName { rule: "deny path .env".into(), layer: Layer::Builtin },
        reason: "Secrets live there.".into(),
        code: (decision == Decision::Deny).then_some(ErrorCode::SensitivePath),
    }
}

fn verdict() -> Verdict {
    Verdict {
        confined: true,
        only_reads: false,
        named: NamedChanges::default(),
        decision: Decision::Deny,
        decided_by: finding(Decision::Deny),
        asks: vec![],
        lost: vec![finding(Decision::Ask)],
    }
}

fn artifact() -> ArtifactRef {
    ArtifactRef {
        id: "art_1".into(),
        sha256: "00".into(),
        bytes: 12,
        lines: Some(3),
        mime: "text/plain".into(),
        field: Some("/content".into()),
    }
}

fn ending() -> CallEnding {
    CallEnding {
        duration_ms: 5,
        payload: Some(json!({ "content": "x" })),
        exit_code: Some(0),
        files_changed: vec!["a".into()],
        more_files_changed: 2,
        folded: vec![FoldedDirectory { path: "target/".into(), created: 3, changed: 2, deleted: 1 }],
        commands_run: vec!["make".into()],
        processes: vec![CommandProcess { process: "proc_1".into(), pids: Pids { pid: Some(7), sandbox_pid: Some(6) } }],
        refs: vec![artifact()],
        truncated: Some(Truncated {
            lines: 1,
            bytes: 2,
            next_cursor: Some("c".into()),
            artifact: Some("art_1".into()),
        }),
        redacted: true,
        denials: vec![denial()],
        enforced: Enforced([(Guarantee::Paths, GuaranteeLevel::Held)].into()),
    }
}

fn denial() -> Denial {
    Denial::of_host("example.com", 443, "No rule allows it.", None)
}

#[test]
fn a_call() {
    let least = Call::from_value(json!({ "name": "read" }), &Frozen).unwrap();
    assert_json_snapshot!("call_least", least);
    let most = json!({
        "tool_call_id": "c1",
        "name": "read",
        "version": "^1.2",
        "args": { "path": "a" },
        "requested_permissions": ["fs.read", "git.write"],
        "justification": "to look",
        "trace_id": "t1",
        "timestamp": "2026-01-02T03:04:05Z",
    });
    assert_json_snapshot!("call_most", Call::from_value(most, &Frozen).unwrap());
}

#[test]
fn a_call_with_a_number_as_its_time_and_a_tool_as_its_name() {
    for (time, expected) in [
        (json!(1_767_323_045), "2026-01-02T03:04:05Z"),
        (json!(1_767_323_045.25), "2026-01-02T03:04:05.25Z"),
        (json!(1_767_323_045_250_u64), "2026-01-02T03:04:05.25Z"),
        (json!(null), "1970-01-01T00:00:00Z"),
    ] {
        let call = Call::from_value(json!({ "tool": "read", "timestamp": time }), &Frozen).unwrap();
        assert_eq!((call.name.as_str(), call.timestamp.to_string().as_str()), ("read", expected), "{time}");
    }
    for time in [json!("yesterday"), json!(1e300), json!([1])] {
        let error = Call::from_value(json!({ "tool": "read", "timestamp": time }), &Frozen).unwrap_err();
        assert!(error.message.contains("timestamp") && error.message.contains("RFC 3339"), "{error}");
    }
    assert!(Call::from_value(json!({ "tool": "read", "name": "read" }), &Frozen).is_err(), "one name, one thing");
}

#[test]
fn a_call_that_is_not_one() {
    for (value, expected) in [
        (json!({ "args": {} }), "missing field `name`"),
        (json!({ "name": "read", "arguments": {} }), "unknown field `arguments`"),
        (json!({ "name": "read", "version": "one" }), "version"),
        (json!({ "name": "read", "requested_permissions": ["root"] }), "requested_permissions[0]"),
        (json!({ "name": 1 }), "name: invalid type"),
        (json!([]), "not well formed"),
    ] {
        let error = Call::from_value(value.clone(), &Frozen).unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidArgs, "{value}");
        assert!(error.message.contains(expected), "{value}: {}", error.message);
        assert!(error.hint.is_some());
    }
}

#[test]
fn a_reply() {
    let reply = Reply {
        tool_call_id: "c1".into(),
        ok: true,
        payload: Some(json!({ "content": "x" })),
        error: None,
        artifacts: ReplyArtifacts {
            files_changed: vec!["a".into()],
            more_files_changed: 0,
            folded: ending().folded,
            commands_run: vec!["make".into()],
            refs: vec![artifact()],
        },
        enforced: Enforced(
            [(Guarantee::Paths, GuaranteeLevel::Held), (Guarantee::Network, GuaranteeLevel::Partly)].into(),
        ),
        truncated: ending().truncated,
        redacted: true,
        duration_ms: 5,
    };
    assert_json_snapshot!("reply_ok", reply);
    let failed = Reply {
        ok: false,
        payload: None,
        error: Some(ToolError::not_found("a").with_details(json!({ "path": "a" }))),
        artifacts: ReplyArtifacts::default(),
        enforced: Enforced::default(),
        truncated: None,
        redacted: false,
        ..reply
    };
    assert_json_snapshot!("reply_failed", failed);
}

#[test]
fn every_event_reads_back_as_it_was_written() {
    let facts = RunFacts {
        workspace: "/w".into(),
        session: "s".into(),
        preset: "workspace".into(),
        front_end: "cli".into(),
        version: "0.1.0".into(),
    };
    let message = Message {
        level: MessageLevel::Warning,
        title: Some("t".into()),
        content: "c".into(),
        thought: Some("why".into()),
        evidence: vec!["a:1".into()],
    };
    let happenings = vec![
        EventPayload::RunStarted(facts),
        EventPayload::CallStarted {
            tool: "read".into(),
            version: Some("2.0.0".into()),
            args: json!({ "path": "a" }),
            effects: effects(),
            verdict: Some(verdict()),
            approval: Some(ApprovalScope::Run),
            risk: Some(Risk::Low),
            justification: Some("to look".into()),
            hooked: None,
        },
        EventPayload::CallCompleted(ending()),
        EventPayload::CallFailed { error: ToolError::not_found("a"), class: ErrorClass::ToolExec, ending: ending() },
        EventPayload::ApprovalRequired { tool: "write".into(), reason: "why".into(), effects: effects() },
        EventPayload::ApprovalGranted { scope: ApprovalScope::Always, by: "ada".into() },
        EventPayload::ApprovalDenied { by: "ada".into(), reason: Some("no".into()) },
        EventPayload::RunAborted { by: "ada".into(), reason: Some("wrong place".into()) },
        EventPayload::RequestRefused(RefusedRequest {
            door: "http".into(),
            code: "unauthorized".into(),
            request: "GET /v1/tools".into(),
            from: Some("127.0.0.1".into()),
            unrecorded: 2,
        }),
        EventPayload::Display(message),
        EventPayload::ProcessOutput(ProcessOutput {
            process: "proc_1".into(),
            stream: Stream::Stderr,
            text: "oops\n".into(),
            skipped: 7,
        }),
        EventPayload::ProcessEnded {
            process: "proc_1".into(),
            exit_code: 124,
            timed_out: true,
            duration_ms: 9,
            refs: vec![],
        },
        EventPayload::ProcessAttached { process: "proc_1".into(), by: "ada".into() },
        EventPayload::ClientCallRequested { tool: "lookup".into(), args: json!({ "id": 7 }) },
        EventPayload::CommandMisread(MisreadCommand { command: "nm @list".into(), paths: vec!["out".into()] }),
        EventPayload::AgentStarted {
            agent: "explore".into(),
            model: "scripted".into(),
            objective: "look".into(),
            parent: Some("c0".into()),
            continues: Some("agent_0".into()),
            dialect: Some("claude".into()),
        },
        EventPayload::TurnStarted,
        EventPayload::ModelTold { text: "hurry".into(), by: MessageOrigin::Person },
        EventPayload::ModelSaid {
            text: "hm".into(),
            calls: vec![ModelCall {
                id: "1".into(),
                tool_call_id: "call_1".into(),
                tool: "read".into(),
                args: json!({ "path": "a" }),
                shape: None,
            }],
            raw: vec![json!({ "type": "reasoning" })],
        },
        EventPayload::ModelFailed { attempt: 1, reason: "busy".into(), retry_in_ms: Some(500) },
        EventPayload::ModelMisunderstood { reason: "It was empty.".into() },
        EventPayload::ContextMasked {
            results: 2,
            bytes: 9,
            parts: vec![MaskedPart { entry: 2, item: 0, artifact: Some("art_1".into()), bytes: 9 }],
        },
        EventPayload::ContextSummarized {
            entries: 4,
            text: "It was long.".into(),
            tokens: TokenUsage { input: 5, output: 7 },
        },
        EventPayload::TurnEnded { tokens: TokenUsage { input: 5, output: 7 }, duration_ms: 3 },
        EventPayload::AgentEnded {
            finish: FinishReason::Answered,
            summary: "done".into(),
            turns: 1,
            tokens: TokenUsage { input: 5, output: 7 },
            duration_ms: 4,
        },
        EventPayload::JournalRecovered { bytes: 3, sha256: "00".into(), kept_as: "events.torn-1".into() },
        EventPayload::RunEnded,
    ];
    let events: Vec<Event> = happenings
        .into_iter()
        .map(|payload| Event {
            time: Timestamp::UNIX_EPOCH,
            run: "r1".into(),
            turn: Some(2),
            trace_id: Some("t1".into()),
            tool_call_id: Some("c1".into()),
            payload,
        })
        .collect();
    assert_json_snapshot!("events", events);
    let text = serde_json::to_string(&events).unwrap();
    assert_eq!(serde_json::from_str::<Vec<Event>>(&text).unwrap(), events);
}

#[test]
fn a_declaration() {
    struct Look;

    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Args {
        /// Where.
        #[allow(dead_code)]
        path: String,
    }

    #[derive(serde::Serialize, schemars::JsonSchema)]
    struct Output {
        /// What was there.
        seen: Option<String>,
    }

    impl Tool for Look {
        type Args = Args;
        type Output = Output;
        const SPEC: Spec = Spec {
            name: "look",
            version: "1.2.3",
            description: "Looks.",
            risk: Risk::Low,
            permissions: &[Permission::FsRead],
            side_effects: &[SideEffect::SpeaksToPerson],
            parallel: true,
        };

        fn effects(&self, args: &Args) -> Vec<Effect> {
            vec![Effect::read(&args.path)]
        }

        async fn run(&self, _args: Args, _hands: &dyn Hands) -> Result<Output, ToolError> {
            Ok(Output { seen: None })
        }
    }

    let tool = erase(Look);
    assert_json_snapshot!("declaration", tool.declaration());
    let schema: Value = tool.declaration().args_schema.clone().into();
    assert_eq!(schema["additionalProperties"], json!(false), "closed even though its author forgot to say so");
}

#[test]
fn decisions_are_ordered_so_that_the_strictest_wins() {
    assert_eq!([Decision::Allow, Decision::Deny, Decision::Ask].into_iter().max(), Some(Decision::Deny));
    assert!(Layer::Builtin < Layer::Flags && Layer::Workspace < Layer::User && Layer::User < Layer::Managed);
    assert!(ApprovalScope::Call < ApprovalScope::Run && ApprovalScope::Session < ApprovalScope::Always);
}
