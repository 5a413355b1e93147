//! A conversation on a real terminal: type, watch, interrupt, steer, approve, answer, complete, undo, go on.

pub(crate) mod person;

use toolgate_testkit::{processes_with, unique_sleep, wait_until};

use self::person::Person;
use crate::world::{PROGRAM, World};

const SIZE: (u16, u16) = (40, 100);
const ENTER: &str = "\r";
const ESCAPE: &str = "\u{1b}";
const CONTROL_C: &str = "\u{3}";
const CONTROL_D: &str = "\u{4}";
const ALT_ENTER: &str = "\u{1b}\r";
const UP: &str = "\u{1b}[A";

fn world(script: &str) -> World {
    let world = World::new().file("script.toml", script);
    let script = world.workspace().join("script.toml");
    world.put(&world.user_config(), format!("[model]\ndefault = 'scripted:{}'\n", script.display()));
    world
}

/// A person who is asked what should be done.
fn person(world: &World) -> Person {
    let mut person = Person::sits_at(world, SIZE, &[]);
    person.waits_for("what should be done?");
    person
}

fn record(world: &World) -> String {
    std::fs::read_to_string(world.last_run().join("events.jsonl")).unwrap()
}

#[test]
fn a_conversation_goes_from_message_to_message() {
    let world = world(
        r#"
[[turns]]
text = "Let me look."
calls = [{ tool = "read", args = { path = "hello.txt" } }]

[[turns]]
expect = ["world"]
text = "It says **hello**:\n- to the `world`\n\n| where | what |\n|---|---|\n| here | `it` |"

[[turns]]
expect = ["And then?"]
text = "Nothing more."
"#,
    );
    let mut person = person(&world);
    person.types("What does it say?").types(ENTER);
    person.waits_for("› What does it say?").waits_for("✓ read hello.txt").waits_for("It says hello:");
    person.waits_for("• to the world").waits_for("where │ what").waits_for("here  │ it").waits_for("ready · 0 tokens");
    person.types("And then?").types(ENTER).waits_for("Nothing more.");
    person.types("/cost").types(ENTER).waits_for("tokens");
    person.types("/help").types(ENTER).waits_for("/undo            undo the last change");
    person.waits_for("› /cost");
    person.types("/nonsense").types(ENTER).waits_for("There is no command `/nonsense`.");
    person.types(CONTROL_D).waits_for("to go on: toolgate chat --resume run_");
    assert_eq!(person.leaves(), 0);
    assert_eq!(world.run(&["audit", "verify"]).code, 0);
}

#[test]
fn a_running_tool_is_shown_with_its_last_line_and_an_interrupt_stops_it() {
    let marker = unique_sleep();
    let world = world(&format!(
        r#"
[[turns]]
text = "I run it"
calls = [{{ tool = "shell", args = {{ command = "echo step one; sleep {marker}" }} }}]

[[turns]]
expect = ["interrupted", "Do less."]
text = "Then I do less."
"#
    ));
    for key in [ESCAPE, CONTROL_C] {
        let mut person = person(&world);
        person.types("Go.").types(ENTER);
        person.waits_for("I run it").waits_for("shell echo step one; sleep").waits_for("step one\n").waits_for("1 s");
        wait_until("the command runs", || !processes_with(&format!("sleep\0{marker}")).is_empty());
        person.types(key).waits_for("(interrupted)").waits_for("ready ·");
        wait_until("the command is gone", || processes_with(&format!("sleep\0{marker}")).is_empty());
        person.types("Do less.").types(ENTER).waits_for("Then I do less.");
        person.types(CONTROL_D);
        assert_eq!(person.leaves(), 0);
    }
}

#[test]
fn what_is_typed_while_it_works_steers_it() {
    let world = world(
        r#"
[[turns]]
text = "Working."
calls = [{ tool = "shell", args = { command = "while [ ! -e go ]; do sleep 0.05; done", tty = true } }]

[[turns]]
expect = ["Be quick."]
text = "Quickly, then."
"#,
    );
    let mut person = person(&world);
    person.types("Go.").types(ENTER).waits_for("shell while");
    person.types("Be quick.").types(ALT_ENTER).types("And quiet.").types(ENTER);
    person.waits_for("(before its next turn) Be quick.");
    world.put(&world.workspace().join("go"), "");
    person.waits_for("› Be quick.\n  And quiet.\n").waits_for("Quickly, then.").types(CONTROL_D);
    assert_eq!(person.leaves(), 0);
    assert!(record(&world).contains(r#""kind":"model.told","text":"Be quick.\nAnd quiet.","by":"person""#));
}

#[test]
fn approvals_and_questions_are_answered_in_place() {
    let world = world(
        r#"
[[turns]]
calls = [{ tool = "delete", args = { path = "hello.txt" } }]

[[turns]]
expect = ["approval_denied", "we need it"]
calls = [{ tool = "ask", args = { question = "Which way?", choices = [{ label = "left" }, { label = "right" }] } }]

[[turns]]
expect = ["right"]
calls = [{ tool = "delete", args = { path = "hello.txt" } }]

[[turns]]
text = "Gone."
"#,
    );
    let mut person = person(&world);
    person.types("Tidy up.").types(ENTER).waits_for("May this run? delete").waits_for("y yes");
    person.types("x").types("n").waits_for("why not?").types("we need it").types(ENTER);
    person.waits_for("Which way?").waits_for("[2] right").waits_for("your answer:").types("2").types(ENTER);
    person.waits_for("y yes").types("y").waits_for("Gone.").types(CONTROL_D);
    assert_eq!(person.leaves(), 0);
    assert!(!world.workspace().join("hello.txt").exists());
}

/// Somebody who is typing when a request comes answers nothing by it, and their text comes back after the answer.
#[test]
fn what_is_half_typed_neither_answers_a_request_nor_is_lost() {
    let world = world(
        r#"
[[turns]]
text = "Working."
calls = [{ tool = "shell", args = { command = "while [ ! -e go ]; do sleep 0.05; done", tty = true } }]

[[turns]]
calls = [{ tool = "ask", args = { question = "Which way?" } }]

[[turns]]
expect = ["to the left"]
calls = [{ tool = "delete", args = { path = "hello.txt" } }]

[[turns]]
expect = ["approval_denied"]
text = "Kept."

[[turns]]
expect = ["yes, be quick"]
text = "Quickly."
"#,
    );
    let mut person = person(&world);
    person.types("Go.").types(ENTER).waits_for("shell while").types("yes, be");
    world.put(&world.workspace().join("go"), "");
    person.waits_for("your answer:").waits_until_gone("yes, be").types("to the left").types(ENTER);
    person.waits_for("y yes").types("n").waits_for("why not?").types(ENTER);
    person.waits_until("the text is back", |screen| screen.contains("› yes, be")).waits_for("Kept.");
    person.types(" quick").types(ENTER).waits_for("Quickly.").types(CONTROL_D);
    assert_eq!(person.leaves(), 0);
    assert!(world.workspace().join("hello.txt").exists());
}

/// A message that the model couldn't read, since its work ended with an error, goes with the next one.
#[test]
fn a_message_outlives_the_failure_of_the_model() {
    let world = world(
        r#"
[[turns]]
text = "Working."
calls = [{ tool = "shell", args = { command = "while [ ! -e go ]; do sleep 0.05; done", tty = true } }]

[[turns]]
expect = ["Go on.", "Mind the gap."]
text = "Minding it."
"#,
    );
    let mut person = Person::sits_at(&world, SIZE, &["chat", "--max-turns", "1"]);
    person.waits_for("what should be done?").types("Go.").types(ENTER).waits_for("shell while");
    person.types("Mind the gap.").types(ENTER).waits_for("(before its next turn) Mind the gap.");
    world.put(&world.workspace().join("go"), "");
    person.waits_for("turn_limit").waits_for("sent with your next message: 1 message");
    person.types("Go on.").types(ENTER).waits_for("Minding it.").types(CONTROL_D);
    assert_eq!(person.leaves(), 0);
}

#[test]
fn changes_are_shown_and_undone_and_the_model_is_told() {
    let world = world(
        r#"
[[turns]]
calls = [{ tool = "write", args = { path = "hello.txt", content = "bye\n" } }]

[[turns]]
text = "Written."

[[turns]]
expect = ["The person undid your last change"]
text = "As you wish."
"#,
    );
    let mut person = person(&world);
    person.types("Change it.").types(ENTER).waits_for("Written.");
    person.types("/changes").types(ENTER).waits_for("+bye");
    person.types("/undo").types(ENTER).waits_for("Undone:");
    wait_until("the file is back", || world.read("hello.txt") == "hello\nworld\n");
    person.types("What now?").types(ENTER).waits_for("As you wish.").types(CONTROL_D);
    assert_eq!(person.leaves(), 0);
}

#[test]
fn input_has_several_lines_a_history_and_completion() {
    let world = world(
        r#"
[[turns]]
expect = ["first line\nsecond @src/main.rs "]
text = "Both lines."

[[turns]]
expect = ["first line\nsecond @src/main.rs !"]
text = "Once more."
"#,
    )
    .file("src/main.rs", "")
    .file("src/mail.rs", "");
    let mut person = person(&world);
    person.types("first line").types(ALT_ENTER).types("second @sr\t").waits_for("second @src/");
    person.types("ma\t").waits_for("mail.rs  main.rs").types("n\t").waits_for("second @src/main.rs");
    person.types(ENTER).waits_for("Both lines.").waits_for("ready ·");
    person
        .types(UP)
        .waits_for("second @src/main.rs")
        .types("!")
        .types(ENTER)
        .waits_for("Once more.")
        .waits_for("ready ·");
    person.types(CONTROL_C).waits_for("Ctrl-C again").types(CONTROL_C);
    assert_eq!(person.leaves(), 0);
}

#[test]
fn model_and_preset_change_within_the_conversation() {
    let write = r#"calls = [{ tool = "write", args = { path = "new.txt", content = "x" } }]"#;
    let world = world(&format!(
        "[[turns]]\n{write}\n[[turns]]\nexpect = [\"error[\"]\ntext = \"Refused.\"\n[[turns]]\ntext = \"Same.\"\n"
    ))
    .file("other.toml", "[[turns]]\n[[turns]]\n[[turns]]\ntext = \"I am the other one.\"\n");
    let mut person = person(&world);
    person.types("/preset read-only").types(ENTER).waits_for("The preset is read-only now.");
    person.types("Write.").types(ENTER).waits_for("Refused.");
    assert!(!world.workspace().join("new.txt").exists());
    person.types("/model scripted:other.toml").types(ENTER).waits_for("The model is scripted:other.toml now.");
    person.types("Who are you?").types(ENTER).waits_for("I am the other one.");
    person.types("/plan").types(ENTER).waits_for("There is no plan").types("/quit").types(ENTER);
    assert_eq!(person.leaves(), 0);
}

#[test]
fn plans_are_drawn_and_a_conversation_goes_on_in_the_next_process() {
    let world = world(
        r#"
[[turns]]
calls = [{ tool = "plan", args = { steps = [{ step = "look", status = "completed" }, { step = "fix", status = "in_progress" }] } }]

[[turns]]
tokens = { input = 1000, output = 234 }
text = "That is the plan."

[[turns]]
expect = ["Go on."]
text = "Going on."
"#,
    );
    let mut first = person(&world);
    first.types("Plan it.").types(ENTER).waits_for("☑ look").waits_for("▸ fix").waits_for("That is the plan.");
    first.types(CONTROL_D);
    assert_eq!(first.leaves(), 0);
    let mut second = Person::sits_at(&world, (24, 80), &["chat", "--continue"]);
    second.waits_for("› Plan it.").waits_for("☑ look").waits_for("That is the plan.");
    second.waits_for("going on with run_").waits_for("1,234 tokens").types("/plan").types(ENTER).waits_for("▸ fix");
    second.types("Go on.").types(ENTER).waits_for("Going on.").types(CONTROL_D);
    assert_eq!(second.leaves(), 0);
}

/// `run` shows what runs, too, also after text that doesn't end its line, with `--live` and without it.
#[test]
fn run_shows_what_runs_on_a_terminal() {
    for flags in [&[][..], &["--live"]] {
        let world = world(
            r#"
[[turns]]
text = "No newline here"
calls = [{ tool = "shell", args = { command = "echo halfway; while [ ! -e go ]; do sleep 0.05; done", tty = true } }]

[[turns]]
text = "Done."
"#,
        );
        let mut person = Person::sits_at(&world, (24, 80), &[&["run", "Go."], flags].concat());
        person.waits_for("No newline here").waits_for("shell echo halfway").waits_for("1 s");
        assert!(flags.is_empty() || person.screen().contains("turn 1/100"), "{}", person.screen());
        world.put(&world.workspace().join("go"), "");
        person.waits_for("✓ answered 2 turns").waits_until_gone("turn 1/100");
        assert_eq!(person.leaves(), 0);
    }
}

/// `run --live` has the screen of `toolgate watch`: requests and questions are answered there, output comes as it is
/// written, and the report follows on the terminal itself.
#[test]
fn a_live_run_is_watched_and_answered_on_the_whole_terminal() {
    let world = world(
        r#"
[[turns]]
text = "I look first."
calls = [{ tool = "todo_write", args = { todos = [{ content = "look", status = "in_progress" }] } },
    { tool = "display", args = { content = "nearly there" } },
    { tool = "shell", args = { command = "echo first; while [ ! -e go ]; do sleep 0.05; done; echo second" } }]

[[turns]]
calls = [{ tool = "delete", args = { path = "hello.txt" } }]

[[turns]]
expect = ["keep it"]
calls = [{ tool = "ask", args = { question = "Which way?", choices = [{ label = "left" }, { label = "right" }] } }]

[[turns]]
expect = ["right"]
text = "All done."
"#,
    );
    let mut person = Person::sits_at(&world, (30, 100), &["run", "--live", "Go."]);
    person.waits_for("● shell echo first").waits_for("▸ look").waits_for("nearly there").waits_for("turn 1/100");
    person.waits_for("  first\n").waits_for("I look first.");
    person.resizes((20, 60)).waits_until("it fits", |screen| {
        let lines: Vec<&str> = screen.lines().collect();
        lines.len() == 20 && lines[19].starts_with("Ctrl-C stops the task") && screen.contains("● shell echo first")
    });
    world.put(&world.workspace().join("go"), "");
    person.waits_for("Waits for you").waits_for("delete hello.txt").waits_for("[x] abort");
    person.types("n").waits_for("why not?").types("keep it").types(ENTER);
    person.waits_for("Which way?").types("2").types(ENTER);
    person.waits_for("✓ answered 4 turns").waits_until_gone("Happened");
    let after = person.sees();
    for line in ["✓ shell echo first", "✗ delete hello.txt", "All done."] {
        assert!(after.contains(line), "the report has no `{line}`:\n{after}");
    }
    assert_eq!(person.leaves(), 0);
    assert!(world.workspace().join("hello.txt").exists());
}

#[test]
fn control_c_stops_a_live_run_and_gives_the_terminal_back() {
    let marker = unique_sleep();
    let world =
        world(&format!("[[turns]]\ncalls = [{{ tool = \"shell\", args = {{ command = \"sleep {marker}\" }} }}]\n"));
    let mut person = Person::sits_at(&world, (24, 80), &["run", "--live", "Go."]);
    person.waits_for("● shell sleep");
    wait_until("the command runs", || !processes_with(&format!("sleep\0{marker}")).is_empty());
    person.types(CONTROL_C).waits_for("cancelled").waits_until_gone("Ctrl-C stops the task");
    assert_eq!(person.leaves(), 130);
    wait_until("the command is gone", || processes_with(&format!("sleep\0{marker}")).is_empty());
}

/// What a command of another program writes is seen while it runs.
#[test]
fn output_of_another_program_is_watched_as_it_comes() {
    let world = World::new();
    let command = "echo from-afar; while [ ! -e go ]; do echo again; sleep 0.1; done";
    let mut watching = Person::sits_at(&world, (24, 80), &["watch"]);
    watching.waits_for("q quit");
    let args = serde_json::json!({ "command": command }).to_string();
    let mut call = world.command(PROGRAM).args(["call", "shell", &args]).spawn().unwrap();
    watching.waits_for("● shell echo from-afar").waits_for("  again\n");
    world.put(&world.workspace().join("go"), "");
    assert!(call.wait().unwrap().success());
    watching.waits_until_gone("● shell").types("q");
    assert_eq!(watching.leaves(), 0);
}

#[test]
fn what_is_at_work_already_is_watched_until_its_program_dies() {
    let marker = unique_sleep();
    let world = World::new();
    let args = serde_json::json!({ "command": format!("sleep {marker}") }).to_string();
    let mut call = world.command(PROGRAM).args(["call", "shell", &args]).spawn().unwrap();
    wait_until("the command runs", || !processes_with(&format!("sleep\0{marker}")).is_empty());
    let mut watching = Person::sits_at(&world, (24, 80), &["watch"]);
    watching.waits_for(&format!("● shell sleep {marker}"));
    call.kill().unwrap();
    call.wait().unwrap();
    watching.waits_until_gone("● shell").waits_for("0 at work").types("q");
    assert_eq!(watching.leaves(), 0);
}

#[test]
fn without_a_terminal_each_line_is_a_message() {
    let world = world("[[turns]]\ntext = \"One.\"\n[[turns]]\nexpect = [\"second\"]\ntext = \"Two.\"\n");
    let said = world.shell("printf 'first\\n\\nsecond\\n' | \"$toolgate\" chat");
    assert_eq!((said.code, said.out.as_str()), (0, "One.\nTwo.\n"), "{said:?}");
    let said = world.run(&[]);
    assert!(said.code == 2 && said.err.contains("Usage: toolgate"), "{PROGRAM} alone, without a terminal: {said:?}");
}
