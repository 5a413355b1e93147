//! `toolgate config`: what counts and where it comes from, everything that is wrong at once, and limits by flag and variable.

use serde_json::{Value, json};

use crate::world::{PROGRAM, Said, World};

fn shown(world: &World, variables: &[(&str, &str)], args: &[&str]) -> Vec<Value> {
    let mut command = world.command(PROGRAM);
    command.args(args).args(["--json", "config", "show"]).envs(variables.iter().copied());
    Said::from(command.output().unwrap()).list().as_array().unwrap().clone()
}

#[test]
fn each_setting_is_shown_with_its_value_and_its_source() {
    let world = World::new().file("toolgate.toml", "tools.deny = ['fetch']\nundo.quota_bytes = 5\n");
    world.put(&world.user_config(), "limits.lines = 10\ntools.deny = ['image']\n");
    let user = world.user_config().display().to_string();
    let variables =
        [("TOOLGATE_LIMITS_BYTES", "1234"), ("TOOLGATE_PRESET", "read-only"), ("TOOLGATE_LIMITS_LINES", "99")];
    let all = shown(&world, &variables, &["--limits", "timeout_seconds=5"]);
    let workspace = "toolgate.toml";
    let sources = |found: &Value| -> Vec<String> {
        found.as_array().unwrap().iter().map(|one| one["source"].as_str().unwrap().to_owned()).collect()
    };
    for (name, value, from, not_counted) in [
        ("limits.lines", json!(10), vec![user.as_str()], vec!["TOOLGATE_LIMITS_LINES"]),
        ("limits.bytes", json!(1234), vec!["TOOLGATE_LIMITS_BYTES"], vec![]),
        ("limits.timeout_seconds", json!(5), vec!["--limits"], vec![]),
        ("preset", json!("read-only"), vec!["TOOLGATE_PRESET"], vec![]),
        ("tools.deny", json!(["image", "fetch"]), vec![user.as_str(), workspace], vec![]),
        ("undo.quota_bytes", json!(1 << 30), vec![], vec![workspace]),
        ("commands.unknown", json!("confine"), vec![], vec![]),
        ("model.default", json!(null), vec![], vec![]),
    ] {
        let found = all.iter().find(|setting| setting["name"] == name).unwrap();
        assert_eq!(found["value"], value, "{found}");
        assert_eq!(sources(&found["from"]), from, "{found}");
        assert_eq!(sources(&found["not_counted"]), not_counted, "{found}");
        assert_eq!(found["is_default"], json!(from.is_empty()), "{found}");
    }
    let text = world.run(&["config", "show", "limits"]).out;
    assert!(text.contains(&user), "{text}");
    assert!(text.lines().skip(1).all(|line| line.starts_with("limits.")), "{text}");
    let only = world.run(&["config", "show", "--set"]).out;
    assert!(only.contains("tools.deny") && !only.contains("model.default"), "{only}");
    let unknown = world.run(&["config", "show", "limit"]);
    assert!(unknown.code == 2 && unknown.err.contains("There is no setting `limit`"), "{unknown:?}");
}

#[test]
fn a_database_with_a_password_is_not_shown() {
    let world = World::new();
    world.put(&world.user_config(), "store.url = 'postgres://me:secret-word@db.example/x'\n");
    for args in [&["config", "show"][..], &["--json", "config", "show"]] {
        let said = world.run(args);
        assert!(said.out.contains("***") && !said.out.contains("secret-word"), "{said:?}");
    }
}

#[test]
fn everything_that_is_wrong_is_said_at_once_and_with_its_place() {
    let world = World::new().file("toolgate.toml", "[limits]\nlines = 'many'\nbyts = 5\n");
    assert_eq!(world.run(&["call", "list"]).code, 2, "nothing runs");
    world.put(&world.user_config(), "preste = 'full'\n[commands]\nallow = 'ls'\n");
    let said = world.run(&["config", "check"]);
    let user = world.user_config().display().to_string();
    assert_eq!(said.code, 2, "{said:?}");
    for expected in [
        format!("{user}:1:1: Unknown field `preste`. Did you mean `preset`?"),
        format!("{user}:3:9: Invalid type: string \"ls\", expected a sequence."),
        "toolgate.toml:2:9: Invalid type: string \"many\"".to_owned(),
        "toolgate.toml:3:1: Unknown field `byts`. Did you mean `bytes`?".to_owned(),
        "4 faults".to_owned(),
    ] {
        assert!(said.out.contains(&expected), "{expected}: {}", said.out);
    }
    let found = world.run(&["--json", "config", "check"]).json();
    assert_eq!(found["faults"].as_array().unwrap().len(), 4, "{found}");
    assert_eq!((&found["faults"][0]["line"], &found["faults"][0]["column"]), (&json!(1), &json!(1)), "{found}");
}

#[test]
fn rules_that_mean_nothing_or_contradict_each_other_are_named() {
    let rules = "[[rules]]\ndecision = 'deny'\n\
                 [[rules]]\ndecision = 'allow'\npath = 'docs/**'\n\
                 [[rules]]\ndecision = 'deny'\npath = 'docs/**'\n\
                 [[rules]]\ndecision = 'deny'\npath = 'a['\n";
    let world = World::new();
    world.put(&world.user_config(), rules);
    let said = world.run(&["config", "check"]);
    for expected in
        [":1 (user): The rule doesn't say what it is about", ":6 (user): The rule says deny", ":9 (user)", "3 faults"]
    {
        assert!(said.out.contains(expected), "{expected}: {said:?}");
    }
    assert_eq!(said.code, 2);
    let good = World::new().file("toolgate.toml", "preset = 'full'\n");
    let said = good.run(&["config", "check"]);
    assert!(said.code == 0 && said.out.contains("warning:") && said.out.contains("nothing is wrong"), "{said:?}");
}

#[test]
fn limits_of_the_environment_and_of_flags_count() {
    let world = World::new().file("long.txt", "1\n2\n3\n4\n5\n6\n");
    let read = |variable: Option<&str>, args: &[&str]| {
        let mut command = world.command(PROGRAM);
        if let Some(lines) = variable {
            command.env("TOOLGATE_LIMITS_LINES", lines);
        }
        let call = ["--json", "call", "shell", r#"{"command":"cat long.txt"}"#];
        Said::from(command.args(args).args(call).output().unwrap())
    };
    let lines =
        |said: &Said| said.json()["payload"]["stdout"].as_str().unwrap().lines().filter(|line| line.len() == 1).count();
    assert_eq!(lines(&read(None, &[])), 6);
    assert!(lines(&read(Some("3"), &[])) <= 3);
    assert!(lines(&read(Some("3"), &["--limits", "lines=2"])) <= 2, "a flag counts more than a variable");
    assert!(lines(&read(None, &["--limits", "shell.lines=2"])) <= 2, "for one tool");
    for (variable, args, expected) in [
        (Some("many"), &[][..], "`TOOLGATE_LIMITS_LINES`: `many` is not a whole number"),
        (None, &["--limits", "lines"], "is not NAME=NUMBER"),
        (None, &["--limits", "line=5"], "Unknown field `line`. Did you mean `lines`?"),
        (None, &["--limits", "lines=0"], "The limit `lines` is 0"),
    ] {
        let said = read(variable, args);
        assert!(said.code == 2 && said.err.contains(expected), "{expected}: {said:?}");
    }
}
