//! What programs do beyond reading and writing: debuggers and sanitizers trace processes, and directories get times.
#![allow(clippy::disallowed_methods, reason = "tests make and look at files of their own")]

use std::process::Command;

use serde_json::json;
use toolgate_testkit::TestWorkspace;

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_keeps_the_time_that_a_command_gives_it() {
    let world = TestWorkspace::new(toolgate_tools::all(), "preset = 'full'").confined();
    world.file("there/a", "a\n").file("there/deep/b", "b\n");
    let time = |path: &str| {
        let found = Command::new("stat").args(["-c", "%y", path]).current_dir(world.path()).output().unwrap();
        String::from_utf8(found.stdout).unwrap()[..10].to_owned()
    };
    let before = time("there");
    let command =
        "mkdir -p made/in && echo x > made/in/x && touch -d 2001-02-03 made/in made there && cp -a there copy";
    let payload = world.run_script(command, json!({})).await;
    assert_eq!(payload["exit_code"], json!(0), "{payload}");
    for path in ["made", "made/in", "there", "copy"] {
        assert_eq!(time(path), "2001-02-03", "{path}");
    }
    assert_eq!(time("there/deep"), before);
    let undone = world.perform("undo", json!({ "call": last_change(&world) })).await;
    assert!(undone.ok, "{:?}", undone.error);
    assert_eq!((time("there"), world.path().join("made").exists()), (before, false));
}

fn last_change(world: &TestWorkspace) -> String {
    use toolgate_contract::EventPayload;
    let changing = |event: &toolgate_contract::Event| matches!(event.payload, EventPayload::FilesChanging { .. });
    world.events().into_iter().rfind(changing).unwrap().tool_call_id.unwrap()
}
