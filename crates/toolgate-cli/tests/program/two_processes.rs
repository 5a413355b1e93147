//! Two processes in one workspace: a server whose background command works in place, and calls of the program beside it. Each
//! change is recorded as the one's who made it, and undo of one leaves the other's.

use serde_json::json;
use toolgate_testkit::wait_until;

use crate::mcp::client;
use crate::world::World;

#[test]
fn what_another_process_changes_is_not_the_background_commands_work() {
    let world = World::new().file("turns.txt", "first\n").file("theirs.txt", "old\n");
    let script = "echo command 1 > turns.txt; echo own > own.txt; touch ready; until [ -e go ]; do sleep 0.02; done; \
                  echo command 2 > turns.txt; touch done; until [ -e end ]; do sleep 0.02; done";
    world.put(&world.workspace().join("beside.sh"), script);
    let mut server = client::start(&world, &["--preset", "full"], false, json!({}));
    server.initialize();
    let started = server.call("shell", json!({ "command": "sh beside.sh", "background": true }));
    let process = started["structuredContent"]["process"].clone();
    let appears = |name: &str| wait_until(name, || world.workspace().join(name).exists());
    appears("ready");
    let args = |path: &str, content: &str| json!({ "path": path, "content": content }).to_string();
    let write = |path: &str, content: &str| {
        let said = world.run(&["--json", "call", "--approve", "write", &args(path, content)]);
        assert_eq!(said.code, 0, "{said:?}");
        said.json()["tool_call_id"].as_str().unwrap().to_owned()
    };
    let theirs = write("turns.txt", "theirs\n");
    write("theirs.txt", "new\n");
    write("made/deep.txt", "deep\n");
    let shell = json!({ "command": "mkdir -p by && echo shell > by/shell.txt" }).to_string();
    assert_eq!(world.run(&["--json", "call", "--approve", "shell", &shell]).code, 0);
    world.put(&world.workspace().join("go"), "");
    appears("done");
    world.put(&world.workspace().join("end"), "");
    let ended = loop {
        let wait = json!({ "action": "wait", "process": process, "timeout_ms": 300_000 });
        let answer = server.call("process", wait)["structuredContent"].clone();
        if answer["running"] == json!(false) {
            break answer;
        }
    };
    let paths = ended["changes"]["paths"].to_string();
    for foreign in ["theirs.txt", "made", "by"] {
        assert!(!paths.contains(foreign), "`{foreign}` isn't the command's: {ended}");
    }
    assert!(paths.contains("turns.txt") && paths.contains("own.txt"), "{ended}");
    let call = started["_meta"].to_string();
    let call = call.split('"').find(|word| word.starts_with("call_")).expect("the call's id").to_owned();
    assert_eq!(server.end(), 0);
    let said = world.run(&["undo", &call]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(world.read("turns.txt"), "theirs\n", "only what the command wrote after them is undone");
    assert_eq!(world.read("theirs.txt"), "new\n");
    assert_eq!(world.read("made/deep.txt"), "deep\n");
    assert_eq!(world.read("by/shell.txt"), "shell\n");
    assert!(!world.workspace().join("own.txt").exists());
    let said = world.run(&["undo", &theirs]);
    assert_eq!((said.code, world.read("turns.txt").as_str()), (0, "command 1\n"), "their turn, too: {said:?}");
}

/// What others left has a time, too: one that they gave it, or that of their call.
#[test]
fn what_another_process_left_comes_back_with_its_time() {
    let touch = "echo theirs > theirs.txt; touch -d 2001-02-03T04:05:06Z theirs.txt";
    assert_time_comes_back("shell", json!({ "command": touch }));
    assert_time_comes_back("write", json!({ "path": "theirs.txt", "content": "theirs\n" }));
}

#[track_caller]
fn assert_time_comes_back(tool: &str, args: serde_json::Value) {
    let script = "touch ready; until [ -e go ]; do sleep 0.02; done; echo command > theirs.txt; touch done; \
                  until [ -e end ]; do sleep 0.02; done";
    let world = World::new().file("beside.sh", script);
    let mut server = client::start(&world, &["--preset", "full"], false, json!({}));
    server.initialize();
    let started = server.call("shell", json!({ "command": "sh beside.sh", "background": true }));
    let process = started["structuredContent"]["process"].clone();
    let appears = |name: &str| wait_until(name, || world.workspace().join(name).exists());
    appears("ready");
    assert_eq!(world.run(&["--json", "call", "--approve", tool, &args.to_string()]).code, 0);
    let time = || std::fs::metadata(world.workspace().join("theirs.txt")).unwrap().modified().unwrap();
    let theirs = time();
    world.put(&world.workspace().join("go"), "");
    appears("done");
    world.put(&world.workspace().join("end"), "");
    let wait = json!({ "action": "wait", "process": process, "timeout_ms": 300_000 });
    wait_until("the command ends", || server.call("process", wait.clone())["structuredContent"]["running"] == false);
    assert_eq!(server.end(), 0);
    let call = started["_meta"]["toolgate/call"].as_str().unwrap();
    let said = world.run(&["undo", call]);
    assert_eq!((world.read("theirs.txt").as_str(), time()), ("theirs\n", theirs), "{tool}: {said:?}");
}
