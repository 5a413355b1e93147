//! Compares the analysis with bash itself: in generated scripts in which nothing is unknown, the simple commands that
//! the analysis finds are those that bash runs. The commands are functions that only record how they were called.
#![allow(clippy::disallowed_methods, reason = "runs bash, to be compared with it")]

use std::process::{Command, Stdio};

use proptest::prelude::*;
use proptest::sample::select;

use toolgate_policy::ExplainedCommand;

use crate::world::policy;

const NAMES: &[&str] = &["red", "green", "blue", "grey"];

/// The stand-ins: each call is recorded on one line, its words separated by unit separators.
const PRELUDE: &str = r#"
exec 9>&1 >/dev/null 2>&1 </dev/null
note() { local IFS=$'\x1f'; printf '%s\n' "$*" >&9; }
red() { note red "$@"; }; green() { note green "$@"; }; blue() { note blue "$@"; }; grey() { note grey "$@"; }
"#;

/// A script, and whether bash certainly runs all of it.
#[derive(Debug, Clone)]
struct Script {
    text: String,
    all: bool,
}

fn word() -> impl Strategy<Value = String> {
    let plain = "[a-z]{1,4}";
    let fixed = select(&[
        "''",
        "\"\"",
        "'a b'",
        "\"c d\"",
        "a\\ b",
        "$'x\\ty'",
        "$'\\x41'",
        "{a,b}",
        "x{1,2}y",
        "{1..3}",
        "'$x'",
        "\"it's\"",
        "'\"'",
        "a'b'\"c\"",
        "--flag=v",
        "-n",
        "\\;",
        "'a;b'",
        "\\$x",
        "{}",
        "a{b}c",
        "'*'",
        "\\*",
        "a#b",
        "=",
        "a=b",
        "'('",
        "\"\\\"q\\\"\"",
        "\"a\\$b\"",
        "é",
        "$known",
        "\"$known\"",
        "x${known}y",
        "\"${known}\"",
        "\"${known:-z}\"",
        "\"${known:+z}\"",
        "$split",
    ]);
    prop_oneof![plain, fixed.prop_map(str::to_owned)]
}

fn simple() -> impl Strategy<Value = Script> {
    let redirection =
        select(&["", "", "", " 2>&1", " >/dev/null", " </dev/null", " 2>/dev/null", " <<< text", " &>/dev/null"]);
    let name = prop_oneof![4 => select(NAMES).prop_map(str::to_owned), 1 => select(&["'red'", "gr\"een\"", "b\\lue"]).prop_map(str::to_owned)];
    (name, prop::collection::vec(word(), 0..4), redirection).prop_map(|(name, words, redirection)| {
        let words: String = words.iter().map(|word| format!(" {word}")).collect();
        Script { text: format!("{name}{words}{redirection}"), all: true }
    })
}

fn script() -> impl Strategy<Value = Script> {
    simple().prop_recursive(4, 24, 3, |inner| {
        let two = (inner.clone(), inner.clone());
        let join = |form: fn(&str, &str) -> String, sure: bool| {
            move |(a, b): (Script, Script)| Script { text: form(&a.text, &b.text), all: a.all && b.all && sure }
        };
        let one =
            |form: fn(&str) -> String, sure: bool| move |a: Script| Script { text: form(&a.text), all: a.all && sure };
        prop_oneof![
            two.clone().prop_map(join(|a, b| format!("{a}; {b}"), true)),
            two.clone().prop_map(join(|a, b| format!("{a}\n{b}"), true)),
            two.clone().prop_map(join(|a, b| format!("{{ {a}; }} && {{ {b}; }}"), true)),
            two.clone().prop_map(join(|a, b| format!("{{ {a}; }} | {{ {b}; }}"), true)),
            two.clone().prop_map(join(|a, b| format!("{{ {a}; }} || {{ {b}; }}"), false)),
            two.clone().prop_map(join(|a, b| format!("if {a}; then {b}; fi"), true)),
            two.clone().prop_map(join(|a, b| format!("if true; then {a}; else {b}; fi"), false)),
            two.clone().prop_map(join(|a, b| format!("case x in y) {a};; x) {b};; esac"), false)),
            two.prop_map(join(|a, b| format!("grey \"$( {a} )\" \"$( {b} )\""), true)),
            inner.clone().prop_map(one(|a| format!("( {a} )"), true)),
            inner.clone().prop_map(one(|a| format!("{{ {a}\n}}"), true)),
            inner.clone().prop_map(one(|a| format!("f() {{ {a}; }}; f"), true)),
            inner.clone().prop_map(one(|a| format!("for i in p q; do {a}; red $i; done"), true)),
            inner.clone().prop_map(one(|a| format!("while {a}; do {a}; break; done"), false)),
            inner.clone().prop_map(one(|a| format!("eval '{}'", a.replace('\'', r"'\''")), true)),
            inner.clone().prop_map(one(
                |a| format!("grey `{}`", a.replace('\\', r"\\").replace('`', r"\`").replace('$', r"\$")),
                true
            )),
            inner.clone().prop_map(one(|a| format!("grey <( {a} ) >/dev/null; wait"), true)),
            inner.clone().prop_map(one(|a| format!("{{ {a} # ; blue never\n}}"), true)),
            inner.prop_map(one(
                |a| format!("{{ red <<'END' && green <<END2\n$(blue never)\nEND\n$( {a} )\nEND2\n}}"),
                true
            )),
        ]
    })
}

/// What bash ran; none if it couldn't parse the script.
fn run_by_bash(text: &str) -> Option<Vec<String>> {
    let script = format!("{PRELUDE}known=value; split='l r'\n{text}\n");
    let output = Command::new("bash")
        .args(["--norc", "--noprofile", "-c", &script])
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    let mut lines: Vec<String> = String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect();
    lines.sort();
    lines.dedup();
    Some(lines)
}

/// What the analysis found, in the same form: the calls that are completely known, and how many aren't.
fn read_by_us(text: &str) -> (Vec<String>, usize, Option<String>) {
    let explained = policy("").explain(&format!("known=value; split='l r'\n{text}"), ".");
    let is_stand_in = |part: &&ExplainedCommand| part.words.first().is_some_and(|name| NAMES.contains(&name.as_str()));
    let (known, unknown): (Vec<_>, Vec<_>) =
        explained.parts.iter().filter(is_stand_in).partition(|part| part.unclear.is_empty());
    // A process substitution is a file whose name bash makes up.
    let (made_up, known): (Vec<_>, Vec<_>) =
        known.into_iter().partition(|part| part.words.iter().any(|word| word.starts_with("/dev/fd")));
    let mut calls: Vec<String> = known.iter().map(|part| part.words.join("\u{1f}")).collect();
    calls.sort();
    calls.dedup();
    (calls, unknown.len() + made_up.len(), explained.fault)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_bash_runs_is_what_we_read(script in script()) {
        let ran = run_by_bash(&script.text).unwrap();
        let (read, unknown, fault) = read_by_us(&script.text);
        // Nested here-documents are left unparsed, which is safe.
        prop_assume!(!fault.as_deref().is_some_and(|fault| fault.contains("here-document")));
        prop_assert_eq!(fault, None, "{}", script.text);
        if script.all && unknown == 0 {
            prop_assert_eq!(&read, &ran, "{}", script.text);
        }
        let unread: Vec<&String> = ran.iter().filter(|call| !read.contains(call)).collect();
        prop_assert!(unread.len() <= unknown * 4, "bash ran {:?}, which wasn't read out of:\n{}\n{:?}", unread, script.text, read);
    }
}
