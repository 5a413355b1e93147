//! What holds for every dialect, whatever a model sends: limits of time never get shorter, no error is lost on the way back, unknown
//! arguments are treated as that client treats them, and nothing is offered that isn't offered natively.

use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};
use toolgate_contract::{ErrorCode, Reply, ToolError, Truncated};
use toolgate_dialects::{
    ArgumentError, DIALECTS, Dialect, DialectMemory, DialectTool, EnterFault, EnteredCall, Parameter, ParameterKind,
    ResultFormat, ShownResult, dialect,
};

/// A value for a parameter.
fn value(kind: ParameterKind) -> BoxedStrategy<Value> {
    match kind {
        ParameterKind::Text => text().prop_map(Value::from).boxed(),
        ParameterKind::Integer(least, most) => (least.max(-5)..=most.min(5_000)).prop_map(Value::from).boxed(),
        ParameterKind::Boolean => any::<bool>().prop_map(Value::from).boxed(),
        ParameterKind::Choice(words) => select(words).prop_map(Value::from).boxed(),
        ParameterKind::Texts => prop::collection::vec(text(), 0..3).prop_map(Value::from).boxed(),
        ParameterKind::Objects(fields) => prop::collection::vec(arguments(fields), 1..3).prop_map(Value::from).boxed(),
        ParameterKind::Object(fields) => arguments(fields).boxed(),
        ParameterKind::Any => Just(json!({})).boxed(),
    }
}

fn text() -> impl Strategy<Value = String> {
    const WORDS: &[&str] =
        &["a.txt", "/etc/passwd", "../x", "ls", "src/**/*.rs", "*** Begin Patch", "https://example.com/", "", "1"];
    select(WORDS).prop_map(str::to_owned)
}

/// Arguments that fit: the required ones, and some of the others.
fn arguments(parameters: &'static [Parameter]) -> BoxedStrategy<Value> {
    let fields: Vec<BoxedStrategy<Option<(String, Value)>>> = parameters
        .iter()
        .map(|parameter| {
            let given = value(parameter.kind).prop_map(|value| Some((parameter.name.to_owned(), value)));
            if parameter.required { given.boxed() } else { prop_oneof![Just(None), given].boxed() }
        })
        .collect();
    fields.prop_map(|fields| Value::Object(fields.into_iter().flatten().collect::<Map<_, _>>())).boxed()
}

/// A tool of a dialect, and arguments that fit it.
fn call() -> impl Strategy<Value = (&'static Dialect, &'static DialectTool, Value)> {
    let tools: Vec<(&'static Dialect, &'static DialectTool)> =
        DIALECTS.iter().flat_map(|dialect| dialect.tools.iter().map(|tool| (*dialect, tool))).collect();
    select(tools).prop_flat_map(|(dialect, tool)| (Just(dialect), Just(tool), arguments(tool.parameters)))
}

fn memory() -> DialectMemory {
    let mut memory = DialectMemory::new("/srv/work");
    memory.number("proc_1");
    memory
}

/// A native reply without any field.
fn succeeded() -> Reply {
    Reply {
        ok: true,
        error: None,
        payload: Some(json!({})),
        ..Reply::refused("call_1".into(), ToolError::invalid_args(""))
    }
}

/// What the model gets once every native call has ended in this reply; none if a native call can't be made.
fn shown_at_last(dialect: &Dialect, mut entered: EnteredCall, reply: &Reply) -> Option<ShownResult> {
    while let Some(next) = dialect.next(&entered, reply, &memory()).ok()? {
        entered = next;
    }
    Some(dialect.leave(&entered, reply, &mut memory()))
}

/// A native reply that says everything beside a result that any tool says, and the words that a model has to read of it.
fn remarked(number: u32) -> (Reply, Vec<String>) {
    let word = |name: &str| format!("{name}{number}");
    let artifact = format!("art_{number}");
    let payload = json!({
        "note": word("note"),
        "notes": [word("first"), word("second")],
        "new_errors": [{ "path": word("path"), "line": 7, "severity": "error", "message": word("error \"quoted\" ") }],
        "denied": [{ "code": "network_denied", "reason": word("denied"), "next": word("next") }],
        "changes": {
            "notes": [word("changed")],
            "kept_aside": [{ "path": word("kept"), "reason": word("reason") }],
            "refused": [word("refused")],
        },
        "cut_bytes": number,
        "omitted": [{ "field": "/list", "entries": number + 1 }],
    });
    let names = ["note", "first", "second", "path", "denied", "next", "changed", "kept", "reason", "refused"];
    let mut expected: Vec<String> = names.iter().map(|name| word(name)).collect();
    expected.extend([number.to_string(), (number + 1).to_string(), format!(" {number}"), artifact.clone()]);
    let truncated = Truncated { artifact: Some(artifact), ..Truncated::default() };
    (Reply { payload: Some(payload), truncated: Some(truncated), ..succeeded() }, expected)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    /// Whatever a native call fails with, the model reads what to do next, or at least why.
    #[test]
    fn no_error_is_lost_on_the_way_back(
        (dialect, tool, args) in call(),
        code in select(ErrorCode::ALL),
        number in 100_000_u32..1_000_000,
    ) {
        let mut memory = memory();
        let Ok(entered) = dialect.enter(tool.name, &args, &memory) else { return Ok(()) };
        let error = ToolError::new(code, format!("why{number}")).with_hint(format!("next{number}"));
        let shown = dialect.leave(&entered, &Reply::refused("call_1".into(), error), &mut memory);
        prop_assert!(shown.text.contains(&format!("next{number}")), "{} {}: {}", dialect.name, tool.name, shown.text);
        prop_assert!(shown.is_error, "{} {}: {}", dialect.name, tool.name, shown.text);
    }

    /// What a reply says beside the result, the model reads too: no client's form has a place for all of it.
    #[test]
    fn no_remark_is_lost_on_the_way_back((dialect, tool, args) in call(), number in 100_000_u32..1_000_000) {
        let Ok(entered) = dialect.enter(tool.name, &args, &memory()) else { return Ok(()) };
        let (reply, expected) = remarked(number);
        let Some(shown) = shown_at_last(dialect, entered, &reply) else { return Ok(()) };
        for word in expected {
            prop_assert!(shown.text.contains(&word), "{} {}: {word} is missing in {}", dialect.name, tool.name, shown.text);
        }
        if dialect.format != ResultFormat::Text {
            prop_assert!(serde_json::from_str::<Map<String, Value>>(&shown.text).is_ok(), "{} {}", dialect.name, shown.text);
        }
    }

    /// Reading arguments never panics, and what doesn't fit is said before any native call is made.
    #[test]
    fn unknown_arguments_are_refused_by_name_or_dropped(
        (dialect, tool, args) in call(),
        name in "[a-z]{12}",
    ) {
        let mut given = args.clone();
        given[&name] = json!("surprise");
        match dialect.enter(tool.name, &given, &memory()) {
            Err(EnterFault::Arguments(faults)) => {
                let unexpected = ArgumentError::Unexpected { at: name.clone() };
                prop_assert!(dialect.is_closed && faults.contains(&unexpected), "{} {}: {faults:?}", dialect.name, tool.name);
                let shown = dialect.fail(
                    &toolgate_dialects::AskedCall { id: "call_1", tool: tool.name, args: &given },
                    &EnterFault::Arguments(faults),
                    &memory(),
                );
                prop_assert!(shown.text.contains(&name), "the model is told which: {}", shown.text);
            }
            Err(EnterFault::UnknownTool) => prop_assert!(false, "{} has {}", dialect.name, tool.name),
            // Another reason is said first only where arguments were accepted.
            Err(EnterFault::Refused(_)) => prop_assert!(!dialect.is_closed),
            Ok(entered) => {
                prop_assert!(!dialect.is_closed, "{} {}", dialect.name, tool.name);
                prop_assert!(!entered.native.args.to_string().contains("surprise"), "{}", entered.native.args);
                let Some(shown) = shown_at_last(dialect, entered, &succeeded()) else { return Ok(()) };
                let is_named = shown.text.contains(&format!("`{name}` was ignored"));
                prop_assert!(is_named, "{} {}: {}", dialect.name, tool.name, shown.text);
            }
        }
    }

    /// The native limit is at least what was asked for, and less than a second more.
    #[test]
    fn limits_of_time_never_get_shorter(milliseconds in 1_i64..600_000) {
        for (name, tool, argument, unit, args) in TIMED {
            let asked = if *unit == 1 { milliseconds } else { milliseconds.div_euclid(*unit).clamp(1, 120) };
            let mut args: Value = serde_json::from_str(args).unwrap();
            args[argument] = asked.into();
            let entered = dialect(name).unwrap().enter(tool, &args, &memory()).unwrap();
            let native = &entered.native.args;
            let limit = match (&native["timeout_seconds"], &native["timeout_ms"]) {
                (Value::Number(seconds), _) => seconds.as_i64().unwrap() * 1000,
                (_, milliseconds) => milliseconds.as_i64().unwrap(),
            };
            let wanted = asked * unit;
            prop_assert!(limit >= wanted && limit < wanted + 1000, "{name} {tool}: {wanted} ms became {limit} ms");
        }
    }
}

/// The tools with a limit of time: dialect, tool, argument, milliseconds of its unit, other arguments.
const TIMED: &[(&str, &str, &str, i64, &str)] = &[
    ("claude", "Bash", "timeout", 1, r#"{"command":"ls"}"#),
    ("claude-2.0", "Bash", "timeout", 1, r#"{"command":"ls"}"#),
    ("claude-2.0", "TaskOutput", "timeout", 1, r#"{"task_id":"proc_1"}"#),
    ("codex-2026-01", "shell", "timeout_ms", 1, r#"{"command":["ls"]}"#),
    ("codex-2026-01", "shell_command", "timeout_ms", 1, r#"{"command":"ls"}"#),
    ("opencode", "bash", "timeout", 1, r#"{"command":"ls"}"#),
    ("opencode", "webfetch", "timeout", 1000, r#"{"url":"https://example.com/"}"#),
    ("autonous", "bash", "timeout_seconds", 1000, r#"{"cmd":"ls"}"#),
];

/// How long to wait for other agents. The clients themselves keep this within bounds, and nothing is stopped when it is over.
const WAITS: [(&str, &str); 2] = [("codex", "wait_agent"), ("codex-2026-01", "wait")];

#[test]
fn every_limit_of_time_is_looked_at() {
    for dialect in DIALECTS {
        for tool in dialect.tools.iter().filter(|tool| !WAITS.contains(&(dialect.name, tool.name))) {
            for parameter in tool.parameters.iter().filter(|parameter| parameter.name.contains("timeout")) {
                let looked_at = TIMED.iter().any(|(name, timed, argument, ..)| {
                    (*name, *timed, *argument) == (dialect.name, tool.name, parameter.name)
                });
                assert!(looked_at, "{} {}: {}", dialect.name, tool.name, parameter.name);
            }
        }
    }
}

/// A tool is offered only where its native one is.
#[test]
fn nothing_is_offered_that_is_not_offered_natively() {
    for dialect in DIALECTS {
        assert_eq!(dialect.declarations(std::iter::empty()), [], "{}", dialect.name);
    }
}
