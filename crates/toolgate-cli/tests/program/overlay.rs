//! What commands change: put in place when they end, as one change, judged, recorded, and undone exactly.

use std::collections::BTreeMap;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::Path;

use serde_json::{Value, json};
use toolgate_testkit::wait_until;

use crate::world::{PROGRAM, World};

fn shell(world: &World, command: &str) -> Value {
    let reply = world.run(&["--json", "call", "--approve", "shell", &json!({ "command": command }).to_string()]).json();
    assert_eq!(reply["ok"], json!(true), "{command}: {reply}");
    reply
}

/// Everything in the workspace but the record: path, mode, and content or target.
fn everything(world: &World) -> BTreeMap<String, String> {
    fn collect(directory: &Path, root: &Path, found: &mut BTreeMap<String, String>) {
        for entry in std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()) {
            let name = entry.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            if name == ".toolgate" {
                continue;
            }
            let facts = std::fs::symlink_metadata(&entry).unwrap();
            let content = match facts.file_type() {
                kind if kind.is_symlink() => format!("-> {}", std::fs::read_link(&entry).unwrap().display()),
                kind if kind.is_file() => String::from_utf8_lossy(&std::fs::read(&entry).unwrap()).into_owned(),
                kind if kind.is_fifo() => "pipe".into(),
                _ => "folder".into(),
            };
            if facts.is_dir() {
                collect(&entry, root, found);
            }
            found.insert(name, format!("{:o} {content}", facts.mode()));
        }
    }
    let mut found = BTreeMap::new();
    collect(&world.workspace(), &world.workspace(), &mut found);
    found
}

fn undo(world: &World, reply: &Value) {
    let said = world.run(&["undo", reply["tool_call_id"].as_str().unwrap()]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.out.starts_with("Undone:\n") && !said.out.contains("Not undone"), "{said:?}");
}

/// The same for a command that changes the workspace in place.
fn shell_straight(world: &World, command: &str) -> Value {
    let args = json!({ "command": command, "stdin": true }).to_string();
    let reply = world.run(&["--json", "call", "--approve", "shell", &args]).json();
    assert_eq!(reply["ok"], json!(true), "{command}: {reply}");
    reply
}

#[test]
fn a_commands_changes_are_those_of_a_plain_run_and_undo_brings_everything_back() {
    compare_with_a_plain_run(shell);
}

#[test]
fn so_are_those_of_a_command_that_works_straight_on_the_workspace() {
    compare_with_a_plain_run(shell_straight);
}

/// How much commands left in a directory of the state, but for the snapshot that the next one begins from.
fn left(world: &World, directory: &str) -> usize {
    let entries = std::fs::read_dir(world.workspace().join(".toolgate").join(directory)).into_iter().flatten();
    entries.filter(|entry| entry.as_ref().unwrap().file_name() != ".last").count()
}

/// What the same command leaves where nothing is kept apart, and what undo leaves of it, are compared exactly.
fn compare_with_a_plain_run(shell: fn(&World, &str) -> Value) {
    for command in [
        "sed -i s/one/1/ a.txt",
        "rm a.txt && rm -r dir",
        "mv a.txt b.txt && mv dir elsewhere",
        "chmod 700 a.txt dir && chmod 600 run.sh",
        "ln -s a.txt link && ln -sfn /nowhere old-link && rm dir/link",
        "mkdir -p new/deep/empty && mkfifo new/pipe && echo x > new/deep/f && chmod 555 new/deep",
        "rm -r dir && echo now-a-file > dir",
        "rm a.txt && mkdir a.txt && echo deep > a.txt/f",
        "mv dir tmp && mkdir dir && echo other > dir/x && rm -r tmp",
        "rm -r dir && mkdir -p dir/deep && echo new > dir/deep/new",
        "printf 'same content' > kept.txt; touch a.txt; echo more >> a.txt; echo less > a.txt",
        "for i in $(seq 1 300); do echo $i > f$i; done; ln f1 hard; rm f2",
        "npm pack --version > version; mkdir -p node_modules/.bin && ln -s ../tool/cli.js node_modules/.bin/tool",
        "exit 7",
    ] {
        let [staged, plain] = [(); 2].map(|()| {
            let world = World::new().file("a.txt", "one\ntwo\n").file("dir/x", "x").file("dir/deep/y", "y");
            let world = world.file("run.sh", "#!/bin/sh\n").file("kept.txt", "same content");
            let script = "chmod 755 run.sh; ln -s x dir/link; ln -s y old-link; mkdir empty; mkfifo pipe";
            assert_eq!(world.shell(script).code, 0);
            world
        });
        let before = everything(&staged);
        let reply = shell(&staged, command);
        plain.shell(command);
        assert_eq!(everything(&staged), everything(&plain), "{command}: {reply}");
        if before != everything(&staged) {
            assert!(!reply["artifacts"]["files_changed"].as_array().unwrap().is_empty(), "{command}: {reply}");
            undo(&staged, &reply);
        }
        assert_eq!(everything(&staged), before, "undo of {command}");
        assert_eq!((left(&staged, "layers"), left(&staged, "snapshots")), (0, 0), "something is left: {command}");
    }
}

#[test]
fn a_git_commit_is_undone_to_the_last_reference() {
    let world = World::new().file("a.txt", "one\n");
    let git = "git -c user.name=a -c user.email=a@example.com";
    assert_eq!(world.shell(&format!("git init -q . && git add a.txt && {git} commit -qm one")).code, 0);
    let before = everything(&world);
    let reply =
        shell(&world, &format!("echo two >> a.txt && {git} commit -qam two && git tag v2 && git mv a.txt b.txt"));
    assert_eq!(world.shell("git log --format=%s").out, "two\none\n");
    undo(&world, &reply);
    let mut now = everything(&world);
    let is_new_object = |path: &String| path.starts_with(".git/objects/") && !before.contains_key(path);
    let kept = now.extract_if(.., |path, state| is_new_object(path) && state != "40755 folder").count();
    assert_eq!(kept, 3, "a blob, a tree and a commit: objects are never removed");
    now.retain(|path, _| !is_new_object(path));
    assert_eq!(now, before);
    assert_eq!(world.shell("git fsck --no-dangling && git status --short -uno && git log --format=%s").out, "one\n");
}

#[test]
fn repositories_that_a_command_made_are_undone_with_what_git_guards() {
    let world = World::new().file("a.txt", "one\n");
    let git = "git -c user.name=a -c user.email=a@example.com";
    for command in [
        "git init -q .".to_owned(),
        format!("git init -q . && git add a.txt && {git} commit -qm one && git clone -q . copy"),
    ] {
        let before = everything(&world);
        let reply = shell(&world, &command);
        assert!(world.workspace().join(".git/config").exists(), "{reply}");
        undo(&world, &reply);
        assert_eq!(everything(&world), before, "{command}");
        let undone = world.run(&["--json", "changes", "last"]).json();
        let said = world.run(&["undo", undone["call"].as_str().unwrap()]);
        assert!(world.workspace().join(".git/config").exists(), "an undo is undone: {said:?}");
        undo(&world, &reply);
    }
}

#[test]
fn a_record_that_nobody_sealed_opens_no_guarded_place() {
    let world = World::new();
    let reply = shell(&world, "git init -q .");
    // Whoever brings the state of another machine along doesn't have the key of this one.
    std::fs::remove_dir_all(world.home()).unwrap();
    std::fs::create_dir_all(world.home()).unwrap();
    let said = world.run(&["undo", reply["tool_call_id"].as_str().unwrap()]);
    assert_eq!(said.code, 3, "{said:?}");
    assert!(world.workspace().join(".git/config").exists());
}

#[test]
fn hard_links_and_times_stay() {
    let world = World::new().file("a.txt", "one\n");
    let reply =
        shell(&world, "echo x > f; ln f g; touch -d 2001-02-03T04:05:06Z f a.txt; mkdir d; touch -d 2002-01-01Z d");
    let facts = |name: &str| std::fs::metadata(world.workspace().join(name)).unwrap();
    assert_eq!((facts("f").ino(), facts("f").nlink()), (facts("g").ino(), 2), "{reply}");
    assert_eq!((facts("f").mtime(), facts("a.txt").mtime()), (981_173_106, 981_173_106));
    assert_eq!(facts("d").mtime(), 1_009_843_200);
}

#[test]
fn special_bits_and_attributes_come_back() {
    let script =
        "cp /bin/true tool && chmod 2755 tool && python3 -c \"import os; os.setxattr('tool', 'user.k', b'v')\"";
    for shell in [shell, shell_straight] {
        let world = World::new();
        assert_eq!(world.shell(script).code, 0);
        let reply = shell(&world, "echo x >> tool");
        undo(&world, &reply);
        assert_eq!(std::fs::metadata(world.workspace().join("tool")).unwrap().mode() & 0o7777, 0o2755);
        let said = world.shell("python3 -c \"import os; print(os.getxattr('tool', 'user.k'))\"");
        assert_eq!(said.out, "b'v'\n", "{said:?}");
    }
}

#[test]
fn a_change_can_be_seen_and_undone_twice() {
    let world = World::new().file("a.txt", "one\n");
    let reply = shell(&world, "sed -i s/one/1/ a.txt; echo new > b.txt");
    assert_eq!(reply["payload"]["changes"]["paths"], json!(["~a.txt", "+b.txt"]), "{reply}");
    assert_eq!(reply["payload"]["changes"]["created"], json!(1));
    let said = world.run(&["changes"]);
    for words in ["a.txt", "-one", "+1", "b.txt", "+new", reply["tool_call_id"].as_str().unwrap()] {
        assert!(said.out.contains(words), "{words}: {said:?}");
    }
    undo(&world, &reply);
    assert_eq!(world.read("a.txt"), "one\n");
    let undone = world.run(&["--json", "changes", "last"]);
    let call = undone.json()["call"].as_str().unwrap().to_owned();
    assert_eq!(world.run(&["undo", &call]).code, 0);
    assert_eq!((world.read("a.txt").as_str(), world.read("b.txt").as_str()), ("1\n", "new\n"));
}

#[test]
fn a_place_that_policy_denies_is_kept_aside_and_nothing_else_is_lost() {
    let rules = "[[rules]]\ndecision = 'deny'\npath = 'generated/**'\naccess = ['write', 'delete']\n";
    let world = World::new().file("toolgate.toml", rules);
    let program = "import os; os.mkdir('gen' + 'erated'); open('gen' + 'erated/2.sql', 'w').write('new'); \
                   open('.en' + 'v', 'w').write('T=1'); open('fine.txt', 'w').write('fine')";
    let reply = shell(&world, &format!("python3 -c \"{program}\""));
    assert_eq!(world.read("fine.txt"), "fine");
    let aside = reply["payload"]["changes"]["kept_aside"].to_string();
    assert!(aside.contains("generated/2.sql") && aside.contains(".env") && aside.contains("policy"), "{reply}");
    assert!(!world.workspace().join(".env").exists() && !world.workspace().join("generated/2.sql").exists());
    let call = reply["tool_call_id"].as_str().unwrap();
    let kept = world.workspace().join(".toolgate/quarantine").join(call);
    let texts: Vec<String> = ["0", "1"].map(|name| std::fs::read_to_string(kept.join(name)).unwrap()).into();
    assert_eq!(texts, ["T=1", "new"]);
    assert_eq!(std::fs::metadata(&kept).unwrap().permissions().mode() & 0o777, 0o700);
}

/// Whether a command that still runs has made this file.
fn is_in_layer(world: &World, name: &str) -> bool {
    let layers = std::fs::read_dir(world.workspace().join(".toolgate/layers")).into_iter().flatten().flatten();
    layers.into_iter().any(|layer| layer.path().join("changes-0").join(name).exists())
}

#[test]
fn what_somebody_else_changed_meanwhile_stays_theirs() {
    let world = World::new().file("a.txt", "one\n").file("b.txt", "one\n").file("gone.txt", "x");
    let command = "echo mine > a.txt; echo mine > b.txt; rm gone.txt; echo new > c.txt; touch started; \
                   until ls | grep -q ^seen; do sleep 0.05; done";
    let args = json!({ "command": command, "timeout_seconds": 300 }).to_string();
    let mut command = world.command(PROGRAM);
    command.args(["--json", "call", "--approve", "shell", &args]).stdout(std::process::Stdio::piped());
    let child = command.spawn().unwrap();
    wait_until("the command has started", || is_in_layer(&world, "started"));
    world.put(&world.workspace().join("a.txt"), "theirs\n");
    world.put(&world.workspace().join("gone.txt"), "theirs\n");
    // The command sees new files of others below its layer.
    world.put(&world.workspace().join("seen"), "");
    let output = child.wait_with_output().unwrap();
    let reply: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((world.read("a.txt").as_str(), world.read("gone.txt").as_str()), ("theirs\n", "theirs\n"), "{reply}");
    assert_eq!((world.read("b.txt").as_str(), world.read("c.txt").as_str()), ("mine\n", "new\n"), "{reply}");
    let aside = reply["payload"]["changes"]["kept_aside"].to_string();
    assert!(aside.contains("a.txt") && aside.contains("gone.txt") && aside.contains("another program"), "{reply}");
}

#[test]
fn a_repository_that_somebody_else_makes_where_a_command_writes_a_file_stays_whole() {
    let world = World::new().file("repo/f", "one\n");
    let command = "echo mine > repo/inner; touch started; until ls | grep -q ^seen; do sleep 0.05; done";
    let args = json!({ "command": command, "timeout_seconds": 300 }).to_string();
    let mut program = world.command(PROGRAM);
    program.args(["--json", "call", "--approve", "shell", &args]).stdout(std::process::Stdio::piped());
    let child = program.spawn().unwrap();
    wait_until("the command has started", || is_in_layer(&world, "started"));
    assert_eq!(world.shell("git init -q repo/inner").code, 0);
    let made = everything(&world);
    world.put(&world.workspace().join("seen"), "");
    let reply: Value = serde_json::from_slice(&child.wait_with_output().unwrap().stdout).unwrap();
    let mut now = everything(&world);
    now.retain(|name, _| !["seen", "started"].contains(&name.as_str()));
    assert_eq!(now, made, "{reply}");
    let aside = reply["payload"]["changes"]["kept_aside"].to_string();
    assert!(aside.contains("\"repo/inner\"") && aside.contains("repo/inner/.git/refs"), "{reply}");
}

#[test]
fn a_planted_link_is_applied_as_a_link_and_no_tool_follows_it_out() {
    let world = World::new();
    world.put(&world.home().join("secret"), "correct-horse");
    let reply = shell(&world, "ln -s ../home/secret inside; ln -s ../home out");
    assert_eq!(std::fs::read_link(world.workspace().join("inside")).unwrap(), Path::new("../home/secret"), "{reply}");
    for (tool, args) in [
        ("read", json!({ "path": "inside" })),
        ("read", json!({ "path": "out/secret" })),
        ("write", json!({ "path": "out/planted", "content": "x" })),
    ] {
        let reply = world.call(tool, args);
        assert_eq!(reply["error"]["code"], json!("path_outside_workspace"), "{reply}");
    }
    assert!(!world.home().join("planted").exists());
}

#[test]
fn what_a_repository_brings_in_place_of_layers_leads_nowhere() {
    let world = World::new();
    let (victim, state) = (world.home().join("victim"), world.workspace().join(".toolgate"));
    let plant = |link: &str, target: &std::path::Path| {
        let _ = std::fs::remove_dir_all(&state);
        world.put(&victim.join("directory/kept.txt"), "kept");
        std::fs::create_dir_all(state.join(link).parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(target, state.join(link)).unwrap();
    };
    for link in ["layers", "layers/abc", "layers/abc/lock", "layers/abc/layers"] {
        plant(
            link,
            if link.ends_with("abc") || link == "layers" { &victim } else { std::path::Path::new("/var/tmp/none") },
        );
        let reply = world.call("shell", json!({ "command": "echo x > made.txt" }));
        let refused = reply["ok"] == json!(false);
        assert!(refused || world.read("made.txt") == "x\n", "{link}: {reply}");
        assert_ne!(world.run(&["commit", "abc"]).code, 0, "{link}");
        assert_eq!(std::fs::read_to_string(victim.join("directory/kept.txt")).unwrap(), "kept", "{link}");
        let left: Vec<_> = std::fs::read_dir(&victim).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["directory"], "{link}");
        assert!(!std::path::Path::new("/var/tmp/none").exists(), "{link}");
    }
}

#[test]
fn a_command_that_is_stopped_leaves_what_it_did_and_undo_covers_it() {
    let world = World::new().file("a.txt", "one\n");
    // Its time has to be enough to write on a busy machine.
    let args = json!({ "command": "echo two > a.txt; sleep 1000", "timeout_seconds": 10 });
    let reply = world.call("shell", args);
    assert_eq!(reply["payload"]["exit_code"], json!(124), "{reply}");
    assert_eq!(world.read("a.txt"), "two\n");
    undo(&world, &reply);
    assert_eq!(world.read("a.txt"), "one\n");
}

#[test]
fn layers_can_be_turned_off_by_the_user_and_not_by_the_workspace() {
    let world = World::new().file("a.txt", "one\n").file("toolgate.toml", "[commands]\noverlay = 'off'\n");
    assert!(shell(&world, "echo 2 > a.txt")["payload"]["changes"].is_object());
    world.put(&world.user_config(), "[commands]\noverlay = 'off'\n");
    let reply = shell(&world, "echo 3 > a.txt");
    assert_eq!(world.read("a.txt"), "3\n");
    let notes = reply["payload"]["changes"]["notes"].to_string();
    assert!(notes.contains("changed files in place"), "{reply}");
    undo(&world, &reply);
    assert_eq!(world.read("a.txt"), "2\n");
}

#[test]
fn what_a_command_did_straight_to_the_workspace_is_undone_though_the_program_was_killed() {
    let world = World::new().file("a.txt", "one\n").file("gone.txt", "x\n");
    world.put(&world.workspace().join("plant.sh"), "echo x > .envrc");
    let before = everything(&world);
    let line = "sh plant.sh; echo two > a.txt; rm gone.txt; mkdir new; touch new/ready; sleep 1000";
    let args = json!({ "command": line, "stdin": true });
    let mut command = world.command(PROGRAM);
    command.args(["--json", "call", "--approve", "shell", &args.to_string()]).stdout(std::process::Stdio::null());
    let mut child = command.spawn().unwrap();
    wait_until("the command is ready", || world.workspace().join("new/ready").exists());
    child.kill().unwrap();
    child.wait().unwrap();
    let run = world.last_run();
    let next = world.run(&["call", "list"]);
    assert_eq!(next.code, 0, "the next one puts it on record: {next:?}");
    assert!(next.err.contains("`.envrc` was reverted and quarantined: direnv"), "{next:?}");
    assert!(!world.workspace().join(".envrc").exists() && world.run(&["quarantine", "list"]).out.contains(".envrc"));
    let said = world.run(&["undo", "--run", run.file_name().unwrap().to_str().unwrap()]);
    assert!(said.code == 0 && !said.out.contains("Not undone"), "{said:?}");
    assert_eq!(everything(&world), before);
    assert_eq!(left(&world, "snapshots"), 0);
    assert_eq!(world.run(&["audit", "verify"]).code, 0);
}

#[test]
fn a_call_that_is_told_to_end_settles_what_its_command_did() {
    for signal in ["TERM", "HUP", "INT"] {
        let world =
            World::new().file("a.txt", "one\n").file("plant.sh", "echo x > .envrc; echo two > a.txt; touch ready");
        let args = json!({ "command": "sh plant.sh; sleep 1000", "stdin": true });
        let mut command = world.command(PROGRAM);
        command.args(["--json", "call", "--approve", "shell", &args.to_string()]).stdout(std::process::Stdio::piped());
        let mut child = command.spawn().unwrap();
        wait_until("the command is ready", || world.workspace().join("ready").exists());
        world.shell(&format!("kill -{signal} {}", child.id()));
        child.wait().unwrap();
        assert!(!world.workspace().join(".envrc").exists(), "{signal}");
        assert_eq!((world.read("a.txt").as_str(), left(&world, "snapshots")), ("two\n", 0), "{signal}");
        assert_eq!(world.run(&["undo", "--run", "last"]).code, 0, "{signal}");
        assert_eq!(world.read("a.txt"), "one\n", "{signal}");
    }
}

#[test]
fn of_a_command_that_works_straight_on_the_workspace_what_is_more_than_the_quota_is_said() {
    let world = World::new().file("a.txt", vec![b'a'; 40_000]).file("b.txt", vec![b'b'; 60_000]);
    let world = world.file("plant.sh", "echo x > .envrc");
    world.put(&world.user_config(), "[undo]\nquota_bytes = 70000\n");
    let reply = shell_straight(&world, r"rm a.txt b.txt; sh plant.sh; touch $'odd\xff'");
    let notes = reply["payload"]["changes"]["notes"].to_string();
    assert!(notes.contains("1 of these can't be undone"), "{reply}");
    assert_eq!(reply["payload"]["changes"]["kept_aside"][0]["path"], json!(".envrc"), "{reply}");
    assert!(reply["payload"]["changes"]["paths"].as_array().unwrap().contains(&json!(r"+odd\xff")), "{reply}");
    let said = world.run(&["undo", reply["tool_call_id"].as_str().unwrap()]);
    assert_eq!((said.code, world.read("a.txt").len()), (0, 40_000), "{said:?}");
    assert!(
        said.out.contains("Not undone:\n  b.txt (")
            && said.out.contains("quota")
            && !world.workspace().join("b.txt").exists()
    );
}

#[test]
fn what_is_more_than_the_quota_is_said() {
    let world = World::new().file("a.txt", vec![b'a'; 60_000]).file("b.txt", vec![b'b'; 60_000]);
    world.put(&world.user_config(), "[undo]\nquota_bytes = 70000\n");
    let reply = shell(&world, "rm a.txt b.txt");
    let notes = reply["payload"]["changes"]["notes"].to_string();
    assert!(notes.contains("1 of these can't be undone"), "{reply}");
}

#[test]
fn each_reply_says_whether_what_a_command_changes_can_be_taken_back() {
    let says = |config: &str, args: Value| {
        let world = World::new();
        world.put(&world.user_config(), config);
        world.call("shell", args)["enforced"]["undo"].clone()
    };
    assert_eq!(says("", json!({ "command": "touch a" })), json!("held"));
    assert_eq!(says("", json!({ "command": "touch a", "rehearse": true })), json!("held"));
    assert_eq!(says("", json!({ "command": "touch a", "stdin": true })), json!("partly"));
    assert_eq!(says("commands.overlay = 'off'", json!({ "command": "touch a" })), json!("partly"));
    // What only reads changes nothing.
    assert_eq!(says("", json!({ "command": "ls", "stdin": true })), json!("held"));
    assert_eq!(says("commands.overlay = 'off'", json!({ "command": "ls" })), json!("held"));
}

/// Git collects garbage in the background by default, where the end of the command would kill it.
#[test]
fn git_has_collected_garbage_when_a_command_ends() {
    let world = World::new();
    // More files than git leaves unpacked with this setting.
    let script = "git init -q . && for i in $(seq 600); do echo $i > f$i; done && git add -A && \
                  git -c gc.auto=1 -c user.name=a -c user.email=a@example.com commit -qm all";
    shell(&world, script);
    let objects = world.workspace().join(".git/objects");
    let packs = std::fs::read_dir(objects.join("pack")).unwrap().count();
    assert!(packs > 0 && !objects.join("17").exists(), "{packs} files in `pack`");
}
