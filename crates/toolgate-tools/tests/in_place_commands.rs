//! Commands that change the workspace in place, beside other calls: what they change is seen at once, goes on record, and
//! is undone without taking anybody else's work along.
#![allow(clippy::disallowed_methods, reason = "looks at what processes leave behind")]

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};
use toolgate_contract::{ErrorCode, EventPayload};
use toolgate_runtime::Session;
use toolgate_testkit::{TestWorkspace, Tier, wait_until_async};

fn world() -> TestWorkspace {
    let rules = "preset = 'full'";
    TestWorkspace::new(toolgate_tools::all(), rules).confined()
}

/// Makes a call that has to work; its id and its payload.
async fn call(world: &TestWorkspace, session: &Session, tool: &str, args: Value) -> (String, Value) {
    let reply = world.perform_in(session, tool, args.clone()).await;
    assert!(reply.ok, "{tool} {args}: {:?}", reply.error);
    (reply.tool_call_id, reply.payload.unwrap())
}

fn read(world: &TestWorkspace, path: &str) -> Option<String> {
    std::fs::read_to_string(world.path().join(path)).ok()
}

fn left_behind(world: &TestWorkspace) -> usize {
    let snapshots = std::fs::read_dir(world.path().join(".toolgate/snapshots")).into_iter().flatten();
    // The last one stays on purpose: the next one is made from it.
    snapshots.filter(|snapshot| snapshot.as_ref().is_ok_and(|snapshot| snapshot.file_name() != ".last")).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_background_command_changes_is_seen_at_once_and_undone_alone() {
    let world = world();
    world.file("a.txt", "one\n").file("gone.txt", "x").file("deep/kept.txt", "kept\n");
    let session = world.session();
    let command = "echo two > a.txt; echo new > b.txt; rm gone.txt; echo ready; \
                   until [ -e go ]; do sleep 0.02; done; echo end >> a.txt; echo more >> deep/kept.txt";
    let (id, started) = call(&world, &session, "shell", json!({ "command": command, "background": true })).await;
    let process = |action: &str, more: Value| {
        let mut args = json!({ "action": action, "process": started["process"], "timeout_ms": 300_000 });
        args.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        args
    };
    call(&world, &session, "process", process("wait", json!({ "offset": 0, "pattern": "ready" }))).await;
    let (_, seen) = call(&world, &session, "read", json!({ "path": "a.txt" })).await;
    assert_eq!(seen["content"], json!("two\n"), "others see it at once");
    let write = |path: &str, content: &str| json!({ "path": path, "content": content });
    let (theirs, _) = call(&world, &session, "write", write("a.txt", "theirs\n")).await;
    call(&world, &session, "shell", json!({ "command": "mkdir -p d && echo c > d/c.txt" })).await;
    call(&world, &session, "write", write("go", "")).await;
    let ended = loop {
        let (_, answer) = call(&world, &session, "process", process("wait", json!({}))).await;
        if answer["running"] == json!(false) {
            break answer;
        }
    };
    assert_eq!(ended["changes"]["paths"], json!(["~a.txt", "+b.txt", "~deep/kept.txt", "-gone.txt"]), "{ended}");
    assert_eq!(read(&world, "a.txt").unwrap(), "theirs\nend\n");
    let (_, undone) = call(&world, &session, "undo", json!({ "call": id })).await;
    assert_eq!(undone["refused"], json!([]), "{undone}");
    assert_eq!(read(&world, "a.txt").unwrap(), "theirs\n", "what somebody else wrote in between stays");
    assert_eq!((read(&world, "b.txt"), read(&world, "gone.txt").as_deref()), (None, Some("x")));
    assert_eq!(read(&world, "deep/kept.txt").unwrap(), "kept\n");
    assert_eq!(read(&world, "d/c.txt").unwrap(), "c\n", "the other command's file isn't this one's");
    call(&world, &session, "undo", json!({ "call": theirs })).await;
    assert_eq!(read(&world, "a.txt").unwrap(), "two\n", "the command's first change lies under theirs");
    assert_eq!(left_behind(&world), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_commands_in_place_each_has_its_own_changes() {
    let world = world();
    let session = world.session();
    let command = "echo x > x; echo ready; until [ -e go ]; do sleep 0.02; done; echo late > z";
    let (first, started) = call(&world, &session, "shell", json!({ "command": command, "background": true })).await;
    let wait = |more: Value| {
        let mut args = json!({ "action": "wait", "process": started["process"], "timeout_ms": 300_000 });
        args.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        args
    };
    call(&world, &session, "process", wait(json!({ "offset": 0, "pattern": "ready" }))).await;
    let (second, ended) = call(&world, &session, "shell", json!({ "command": "echo y > y", "stdin": true })).await;
    assert_eq!(ended["changes"]["paths"], json!(["+y"]), "{ended}");
    call(&world, &session, "write", json!({ "path": "go", "content": "" })).await;
    let ended = loop {
        let (_, answer) = call(&world, &session, "process", wait(json!({}))).await;
        if answer["running"] == json!(false) {
            break answer;
        }
    };
    assert_eq!(ended["changes"]["paths"], json!(["+x", "+z"]), "{ended}");
    call(&world, &session, "undo", json!({ "call": first })).await;
    assert_eq!((read(&world, "x"), read(&world, "y").as_deref(), read(&world, "z")), (None, Some("y\n"), None));
    call(&world, &session, "undo", json!({ "call": second })).await;
    assert_eq!((read(&world, "y"), left_behind(&world)), (None, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_it_did_until_it_is_stopped_or_its_session_ends_is_on_record() {
    for stops in [true, false] {
        let world = world();
        world.file("a.txt", "one\n");
        let session = world.session();
        let command = "echo two > a.txt; mkdir new; echo x > new/x; echo ready; sleep 1000";
        for more in [json!({ "background": true }), json!({ "tty": true, "yield_ms": 0 })] {
            let mut args = json!({ "command": command });
            args.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let (id, started) = call(&world, &session, "shell", args).await;
            let wait = json!({ "action": "wait", "process": started["process"], "offset": 0, "pattern": "ready", "timeout_ms": 300_000 });
            call(&world, &session, "process", wait).await;
            match stops {
                true => drop(
                    call(&world, &session, "process", json!({ "action": "stop", "process": started["process"] })).await,
                ),
                false => session.end().await,
            }
            let changing = |event: &toolgate_contract::Event| {
                let is_one = matches!(&event.payload, EventPayload::FilesChanging { .. });
                is_one && event.tool_call_id.as_deref() == Some(id.as_str())
            };
            assert_eq!(world.events().iter().filter(|event| changing(event)).count(), 1, "{more}");
            call(&world, &session, "undo", json!({ "call": id })).await;
            assert_eq!((read(&world, "a.txt").as_deref(), world.path().join("new").exists()), (Some("one\n"), false));
        }
        assert_eq!(left_behind(&world), 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn where_nothing_keeps_changes_apart_they_are_undone_all_the_same() {
    if !std::path::Path::new("/usr/bin/bwrap").exists() {
        toolgate_testkit::skip("no-bubblewrap", "bwrap isn't installed");
        return;
    }
    let world = TestWorkspace::new(toolgate_tools::all(), "preset = 'full'").confined_by(Tier::Bubblewrap);
    world.file("a.txt", "one\n").file("gone/deep.txt", "x").file("same.txt", "old");
    let session = world.session();
    let command = "echo two > a.txt; rm -r gone; printf new > same.txt; mkdir made; ln -s ../a.txt made/link";
    for more in [json!({}), json!({ "stdin": true }), json!({ "tty": true }), json!({ "background": true })] {
        let mut args = json!({ "command": command });
        args.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let (id, mut answer) = call(&world, &session, "shell", args).await;
        while answer["running"] == json!(true) {
            let wait = json!({ "action": "wait", "process": answer["process"], "timeout_ms": 300_000 });
            answer = call(&world, &session, "process", wait).await.1;
        }
        let notes = answer["changes"]["notes"].to_string();
        assert!(notes.contains("changed files in place"), "{more}: {answer}");
        assert_eq!((read(&world, "a.txt").as_deref(), read(&world, "gone/deep.txt")), (Some("two\n"), None));
        let (_, undone) = call(&world, &session, "undo", json!({ "call": id })).await;
        assert_eq!(undone["refused"], json!([]), "{more}: {undone}");
        let texts = ["a.txt", "gone/deep.txt", "same.txt"].map(|path| read(&world, path).unwrap());
        assert_eq!((texts, world.path().join("made").exists()), (["one\n", "x", "old"].map(Into::into), false));
    }
    session.end().await;
    assert_eq!(left_behind(&world), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn where_commands_cant_be_held_none_begins_and_no_snapshot_stays() {
    let world = TestWorkspace::new(toolgate_tools::all(), "preset = 'full'").confined_by(Tier::Landlock);
    world.file("a.txt", "one\n");
    let session = world.session();
    for more in [json!({}), json!({ "stdin": true }), json!({ "background": true })] {
        let mut args = json!({ "command": "echo two > a.txt" });
        args.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let reply = world.perform_in(&session, "shell", args).await;
        assert_eq!(reply.error.unwrap().code, ErrorCode::SandboxUnavailable, "{more}");
        assert_eq!((read(&world, "a.txt").as_deref(), left_behind(&world)), (Some("one\n"), 0), "{more}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn where_somebody_accepts_landlock_alone_the_reply_says_so_and_what_nobody_may_change_is_put_back() {
    let world = TestWorkspace::new(toolgate_tools::all(), "preset = 'full'").confined_accepting(Tier::Landlock);
    let hooks = "echo evil > .git/hooks/pre-commit; echo evil > .git/hooks/post-merge; rm .git/hooks/update; \
                 printf '[core]\\n fsmonitor = evil\\n' >> .git/config; echo two > a.txt; echo $TMPDIR; touch $TMPDIR/x";
    world.file("a.txt", "one\n").file(".git/config", "[core]\n").file("plant.sh", hooks);
    world.file(".git/hooks/pre-commit", "mine\n").file(".git/hooks/update", "mine too\n");
    let session = world.session();
    for more in [json!({}), json!({ "stdin": true }), json!({ "tty": true })] {
        let mut args = json!({ "command": "sh plant.sh" });
        args.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let reply = world.perform_in(&session, "shell", args).await;
        let payload = reply.payload.unwrap();
        assert_eq!(payload["exit_code"], json!(0), "{more}: {payload}");
        let enforced = serde_json::to_value(&reply.enforced).unwrap();
        let said = ["filesystem", "process_tree", "network", "syscalls", "undo"].map(|name| enforced[name].clone());
        assert_eq!(said, ["partly", "partly", "held", "held", "partly"].map(|word| json!(word)), "{more}");
        let aside = payload["changes"]["kept_aside"].as_array().unwrap();
        let aside: Vec<&str> = aside.iter().map(|one| one["path"].as_str().unwrap()).collect();
        let hooks = [".git/hooks/post-merge", ".git/hooks/pre-commit", ".git/hooks/update"];
        assert_eq!(aside, [&[".git/config"], &hooks[..]].concat(), "{more}: {payload}");
        let back = [".git/config", hooks[1], hooks[2], "a.txt"].map(|path| read(&world, path).unwrap());
        assert_eq!(back, ["[core]\n", "mine\n", "mine too\n", "two\n"], "{more}");
        assert!(!world.path().join(hooks[0]).exists(), "{more}");
        let scratch = payload["stdout"].as_str().or(payload["output"].as_str()).unwrap_or_default().trim().to_owned();
        assert!(scratch.contains(".toolgate/layers") && !std::path::Path::new(&scratch).exists(), "{more}: {payload}");
        call(&world, &session, "undo", json!({ "call": reply.tool_call_id })).await;
        assert_eq!(read(&world, "a.txt").unwrap(), "one\n", "{more}");
    }
    let rehearsed = world.perform_in(&session, "shell", json!({ "command": "true", "rehearse": true })).await;
    assert_eq!(rehearsed.error.unwrap().code, ErrorCode::SandboxUnavailable);
    assert_eq!(left_behind(&world), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn where_nothing_can_be_hidden_no_command_runs_beside_a_secret() {
    let world = TestWorkspace::new(toolgate_tools::all(), "preset = 'full'").confined_accepting(Tier::Landlock);
    world.file("plant.sh", "cat .env").file(".env", "TOKEN=correct-horse\n");
    let session = world.session();
    for more in [json!({}), json!({ "background": true })] {
        let mut args = json!({ "command": "sh plant.sh" });
        args.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let error = world.perform_in(&session, "shell", args).await.error.unwrap();
        assert_eq!(error.code, ErrorCode::SandboxUnavailable, "{more}: {error:?}");
        assert!(error.message.contains("`.env`"), "{more}: {error:?}");
    }
    std::fs::remove_file(world.path().join(".env")).unwrap();
    assert!(world.perform_in(&session, "shell", json!({ "command": "true" })).await.ok);
    assert_eq!(left_behind(&world), 0);
}

/// Runs a script beside others until `go` is there, and gives its end.
async fn beside(world: &TestWorkspace, session: &Session, script: &str, meanwhile: impl AsyncFnOnce()) -> Value {
    world.file("beside.sh", format!("{script}; touch ready; until [ -e go ]; do sleep 0.02; done"));
    let started = call(world, session, "shell", json!({ "command": "sh beside.sh", "background": true })).await.1;
    wait_until_async("the script is ready", || world.path().join("ready").exists()).await;
    meanwhile().await;
    world.file("go", "");
    let wait = json!({ "action": "wait", "process": started["process"], "timeout_ms": 300_000 });
    loop {
        let answer = call(world, session, "process", wait.clone()).await.1;
        if answer["running"] == json!(false) {
            return answer;
        }
    }
}

fn aside(answer: &Value) -> Vec<&str> {
    let aside = answer["changes"]["kept_aside"].as_array().map(Vec::as_slice).unwrap_or_default();
    aside.iter().map(|one| one["path"].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_somebody_else_made_of_a_planted_file_is_theirs_and_keeps_no_other_from_being_put_back() {
    let world = world();
    world.file(".mcp.json", "theirs").file(".vscode/settings.json", "mine");
    let session = world.session();
    let plant = "mkdir -p .vscode; echo evil > .vscode/tasks.json; echo evil > .vscode/settings.json; echo evil > .mcp.json; \
                 echo evil > .envrc";
    let answer = beside(&world, &session, plant, async || {
        std::fs::remove_file(world.path().join(".envrc")).unwrap();
        std::fs::write(world.path().join(".mcp.json"), "new").unwrap();
        call(&world, &session, "shell", json!({ "command": "echo fine > fine.txt" })).await;
    })
    .await;
    assert_eq!(aside(&answer), [".mcp.json", ".vscode/settings.json", ".vscode/tasks.json"], "{answer}");
    assert_eq!(read(&world, ".vscode/settings.json").as_deref(), Some("mine"));
    assert!(!world.path().join(".vscode/tasks.json").exists());
    assert_eq!(read(&world, "fine.txt").as_deref(), Some("fine\n"));
    session.end().await;
    assert_eq!(left_behind(&world), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_persons_new_secrets_stay_beside_a_command_in_place_and_what_a_rule_denies_does_not() {
    let rules = "preset = 'full'\nrules = [{ decision = 'deny', path = 'prod/**' }]";
    let world = TestWorkspace::new(toolgate_tools::all(), rules).confined();
    let session = world.session();
    // Policy can't read what the script will write.
    let script = "p=pro; mkdir -p ${p}d; echo evil > ${p}d/.env; echo evil > ${p}d/app; echo fine > fine.txt";
    let answer = beside(&world, &session, script, async || {
        std::fs::write(world.path().join(".env"), "TOKEN=mine\n").unwrap();
    })
    .await;
    assert_eq!(read(&world, ".env").as_deref(), Some("TOKEN=mine\n"), "{answer}");
    assert!(answer["changes"]["notes"].to_string().contains("`.env` is new and stays"), "{answer}");
    assert_eq!(aside(&answer), ["prod", "prod/.env", "prod/app"], "{answer}");
    assert!(!world.path().join("prod").exists(), "{answer}");
    assert_eq!(read(&world, "fine.txt").as_deref(), Some("fine\n"));
    session.end().await;
}

/// A command that began before the file was there learns of it when another one is looked at.
#[tokio::test(flavor = "multi_thread")]
async fn a_persons_secrets_that_change_twice_beside_commands_in_place_stay() {
    let world = world();
    world.file("first.sh", "touch one; cat").file("second.sh", "touch two; cat");
    let session = world.session();
    for (name, ready) in [("first", "one"), ("second", "two")] {
        let command = json!({ "command": format!("sh {name}.sh"), "background": true, "stdin": true });
        call(&world, &session, "shell", command).await;
        wait_until_async("the command runs", || world.path().join(ready).exists()).await;
    }
    world.file(".env", "TOKEN=old\n");
    // Begins with a look at both.
    world.run_script("true > third", json!({ "stdin": true, "yield_ms": 600_000 })).await;
    world.file(".env", "TOKEN=new\n");
    session.end().await;
    assert_eq!(read(&world, ".env").as_deref(), Some("TOKEN=new\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_planted_file_that_is_larger_than_everything_kept_for_undo_is_put_back_too() {
    let world = TestWorkspace::new(toolgate_tools::all(), "preset = 'full'\n[undo]\nquota_bytes = 100000").confined();
    world.file(".vscode/settings.json", "mine").file(".git/hooks/update", "kept");
    let session = world.session();
    let plant = "head -c 1000000 /dev/zero > .mcp.json; head -c 90000 /dev/zero > .envrc; echo evil > .vscode/settings.json; \
                 mkdir -p sub/.git/hooks; mkfifo .vscode/tasks.json; ln -s /etc sub/.git/hooks/update";
    let answer = beside(&world, &session, plant, async || {}).await;
    let planted = [".envrc", ".mcp.json", ".vscode/settings.json", ".vscode/tasks.json", "sub/.git/hooks/update"];
    assert_eq!(aside(&answer), planted, "{answer}");
    assert_eq!(read(&world, ".vscode/settings.json").as_deref(), Some("mine"), "{answer}");
    for path in planted.iter().filter(|path| !path.ends_with("settings.json")) {
        assert!(world.path().join(path).symlink_metadata().is_err(), "{path}: {answer}");
    }
    session.end().await;
}

/// A file that only got its mode back stays in the workspace, and so does another name of a planted file.
#[tokio::test(flavor = "multi_thread")]
async fn writing_to_a_file_changes_nothing_that_is_quarantined() {
    let in_place = json!({ "stdin": true, "yield_ms": 600_000 });
    for (command, args, path) in [
        ("chmod u+s old", &in_place, "old"),
        ("ln old .mcp.json", &in_place, ".mcp.json"),
        ("echo one > new; ln new .mcp.json", &in_place, ".mcp.json"),
        ("echo one > new; ln new .mcp.json", &json!({}), ".mcp.json"),
    ] {
        let world = world();
        world.file("old", "one\n");
        let payload = world.run_script(command, args.clone()).await;
        assert_eq!(payload["changes"]["kept_aside"][0]["path"], path, "{payload}");
        // Writes to the files that are there.
        world.file("old", "two\n").file("new", "two\n");
        let quarantine = world.path().join(".toolgate/quarantine");
        let call = std::fs::read_dir(quarantine).unwrap().next().unwrap().unwrap().path();
        assert_eq!(std::fs::read_to_string(call.join("0")).unwrap(), "one\n", "{command}: {payload}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_has_a_quarantined_file_open_changes_nothing_of_it() {
    let world = world();
    let session = world.session();
    let holds =
        "exec 3>> new; echo one >&3; touch ready; until [ -e go ]; do sleep 0.02; done; echo two >&3; touch done; cat";
    world.file("holds.sh", holds);
    let args = json!({ "command": "sh holds.sh", "background": true, "stdin": true });
    call(&world, &session, "shell", args).await;
    wait_until_async("the file is open", || world.path().join("ready").exists()).await;
    let payload = world.run_script("mv new .mcp.json", json!({ "stdin": true, "yield_ms": 600_000 })).await;
    assert_eq!(payload["changes"]["kept_aside"][0]["path"], ".mcp.json", "{payload}");
    let quarantine = world.path().join(".toolgate/quarantine");
    let kept = std::fs::read_dir(quarantine).unwrap().next().unwrap().unwrap().path().join("0");
    assert_eq!(std::fs::read_to_string(&kept).unwrap(), "one\n", "{payload}");
    world.file("go", "");
    wait_until_async("the file is written to", || world.path().join("done").exists()).await;
    assert_eq!(std::fs::read_to_string(&kept).unwrap(), "one\n", "what somebody has looked at stays");
    session.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_one_command_planted_is_never_what_another_is_put_back_to() {
    let world = world();
    world.file(".vscode/tasks.json", "mine");
    let session = world.session();
    let wait = "until [ -e NAME ]; do sleep 0.02; done";
    let first = format!(
        "echo evil > .vscode/tasks.json; touch ready; {}; printf mine > .vscode/tasks.json",
        wait.replace("NAME", "go")
    );
    world.file("first.sh", first).file("second.sh", format!("touch second; {}", wait.replace("NAME", "end")));
    let start = |name: &str| json!({ "command": format!("sh {name}.sh"), "background": true });
    let appears = async |name: &str| wait_until_async(name, || world.path().join(name).exists()).await;
    let end = async |process: Value| {
        let wait = json!({ "action": "wait", "process": process, "timeout_ms": 300_000 });
        while call(&world, &session, "process", wait.clone()).await.1["running"] == json!(true) {}
    };
    let one = call(&world, &session, "shell", start("first")).await.1["process"].clone();
    appears("ready").await;
    let other = call(&world, &session, "shell", start("second")).await.1["process"].clone();
    appears("second").await;
    world.file("go", "");
    end(one).await;
    world.file("end", "");
    end(other).await;
    assert_eq!(read(&world, ".vscode/tasks.json").as_deref(), Some("mine"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_others_made_of_a_file_beside_one_command_is_what_another_is_put_back_to() {
    // A person moves a file away that was there, and a call writes what a command had planted.
    for (before, by_call) in [("w", None), ("mine", Some("written"))] {
        let world = world();
        world.file(".mcp.json", before).file("first.sh", "[ -z \"$1\" ] || echo evil > .mcp.json; touch ready; cat");
        let session = world.session();
        let first = format!("sh first.sh {}", by_call.unwrap_or_default());
        call(&world, &session, "shell", json!({ "command": first, "background": true, "stdin": true })).await;
        wait_until_async("the first command runs", || world.path().join("ready").exists()).await;
        match by_call {
            None => std::fs::rename(world.path().join(".mcp.json"), world.path().join("away")).unwrap(),
            Some(content) => {
                call(&world, &session, "write", json!({ "path": ".mcp.json", "content": content })).await;
            }
        }
        let payload = world.run_script("echo more > .mcp.json", json!({ "stdin": true, "yield_ms": 600_000 })).await;
        assert_eq!(aside(&payload), [".mcp.json"], "{payload}");
        assert_eq!(read(&world, ".mcp.json").as_deref(), by_call, "{payload}");
        session.end().await;
        assert_eq!(read(&world, ".mcp.json").as_deref(), by_call);
    }
}

/// Nobody could tell what was in it, so an undo of the move would lose that.
#[tokio::test(flavor = "multi_thread")]
async fn a_directory_with_a_hidden_one_in_it_is_not_moved_away_in_place() {
    // What policy hides, and a path that is too long to look for anything to hide.
    for hidden in [".aws".to_owned(), vec!["n".repeat(200); 18].join("/")] {
        let world = world();
        let file = format!("dir/{hidden}/credentials");
        world.file(&file, "key\n").file("dir/plain", "one\n");
        let payload = world.run_script("mv dir moved", json!({ "stdin": true, "yield_ms": 600_000 })).await;
        assert_ne!(payload["exit_code"], json!(0), "{payload}");
        assert!(payload["denied"].to_string().contains("`dir` is hidden, or has something hidden in it"), "{payload}");
        assert_eq!(payload["changes"], Value::Null, "{payload}");
        assert_eq!(
            (read(&world, &file).as_deref(), read(&world, "dir/plain").as_deref()),
            (Some("key\n"), Some("one\n"))
        );
        assert!(!world.path().join("moved").exists(), "{payload}");
    }
}

/// The mode is the file's, under each of its names: the undo of a change to one of them doesn't change the other.
#[tokio::test(flavor = "multi_thread")]
async fn the_mode_of_a_file_that_got_another_name_since_is_not_undone() {
    let world = world();
    let session = world.session();
    world.file("f", "1\n").file("g", "2\n");
    let mode = |path: &str| std::fs::metadata(world.path().join(path)).unwrap().permissions().mode() & 0o777;
    let args = json!({ "command": "chmod 640 f g", "stdin": true, "yield_ms": 600_000 });
    let (id, _) = call(&world, &session, "shell", args).await;
    assert_eq!((mode("f"), mode("g")), (0o640, 0o640));
    std::fs::hard_link(world.path().join("f"), world.path().join("other")).unwrap();
    let (_, undone) = call(&world, &session, "undo", json!({ "call": id })).await;
    assert_eq!((&undone["undone"], &undone["refused"][0]["path"]), (&json!(["g"]), &json!("f")), "{undone}");
    assert!(undone["refused"][0]["reason"].as_str().unwrap().contains("other names"), "{undone}");
    assert_eq!((mode("other"), mode("g")), (0o640, 0o644));
}
