//! Names that aren't UTF-8 are paths like others: commands make, change, move and remove them, replies show them escaped,
//! and undo, quarantine and rehearsals have their exact bytes. In the overlay and in place, as root and as an ordinary user.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::world::{Said, World};

/// Runs the program as one user.
type Program<'a> = dyn Fn(&[&str]) -> Said + 'a;

fn path(world: &World, name: &[u8]) -> PathBuf {
    world.workspace().join(OsStr::from_bytes(name))
}

/// A workspace with names that aren't UTF-8, and one that only looks so.
fn world() -> World {
    let world = World::new();
    for (name, content) in [
        (&b"kept\xff"[..], "one\n"),
        (b"dir\xfe/in\xff", "in\n"),
        (b"gone\xff/deep\x80/x\xff", "x\n"),
        (b"gone\xff/plain", "p\n"),
        (br"lit\xff", "literal\n"),
        (b"lit\xff", "byte\n"),
    ] {
        world.put(&path(&world, name), content);
    }
    world
}

/// Everything in the workspace but the record: the bytes of each path, its mode, and its content or target.
fn everything(world: &World) -> BTreeMap<Vec<u8>, (u32, Vec<u8>)> {
    fn collect(directory: &Path, root: &Path, found: &mut BTreeMap<Vec<u8>, (u32, Vec<u8>)>) {
        for entry in std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()) {
            let name = entry.strip_prefix(root).unwrap().as_os_str().as_bytes().to_vec();
            if name == b".toolgate" {
                continue;
            }
            let facts = std::fs::symlink_metadata(&entry).unwrap();
            let content = match facts.file_type() {
                kind if kind.is_symlink() => std::fs::read_link(&entry).unwrap().into_os_string().into_vec(),
                kind if kind.is_file() => std::fs::read(&entry).unwrap(),
                _ => Vec::new(),
            };
            if facts.is_dir() {
                collect(&entry, root, found);
            }
            found.insert(name, (facts.permissions().mode(), content));
        }
    }
    let mut found = BTreeMap::new();
    collect(&world.workspace(), &world.workspace(), &mut found);
    found
}

/// In a new workspace each: as root and as an ordinary user, in the overlay and in place.
fn in_every_way(test: impl Fn(&World, &Program<'_>, Value)) {
    for is_in_place in [false, true] {
        let more = if is_in_place { json!({ "stdin": true }) } else { json!({}) };
        let ours = world();
        test(&ours, &|args| ours.run(args), more.clone());
        let theirs = world();
        let ordinary = theirs.as_ordinary_user();
        test(&theirs, &ordinary, more);
    }
}

fn shell(program: &Program<'_>, command: &str, more: &Value) -> Value {
    let mut args = json!({ "command": command });
    args.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let said = program(&["--json", "call", "--approve", "shell", &args.to_string()]);
    let reply = said.json();
    assert_eq!((&reply["ok"], &reply["payload"]["exit_code"]), (&json!(true), &json!(0)), "{args}: {said:?}");
    reply
}

/// What a reply says was done, sorted.
fn paths(reply: &Value) -> Vec<&str> {
    let mut paths: Vec<&str> =
        reply["payload"]["changes"]["paths"].as_array().unwrap().iter().map(|path| path.as_str().unwrap()).collect();
    paths.sort_by_key(|path| &path[1..]);
    paths
}

fn undo(program: &Program<'_>, reply: &Value) {
    let said = program(&["undo", reply["tool_call_id"].as_str().unwrap()]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(!said.out.contains("Not undone"), "{said:?}");
}

#[test]
fn what_a_command_does_with_them_is_said_and_undone_exactly() {
    in_every_way(|world, program, more| {
        let before = everything(world);
        let command = r"echo two > $'kept\xff'; mv $'dir\xfe' $'moved\xfd'; rm $'lit\xff'; chmod 600 'lit\xff';
                        mkdir -p $'new\xfe/deep\xff'; echo n > $'new\xfe/deep\xff/file\x80'; ln -s $'kept\xff' $'link\xff'";
        let reply = shell(program, command, &more);
        let expected = [
            r"-dir\xfe",
            r"-dir\xfe/in\xff",
            r"~kept\xff",
            r"+link\xff",
            r"~lit\x5cxff",
            r"-lit\xff",
            r"+moved\xfd",
            r"+moved\xfd/in\xff",
            r"+new\xfe",
            r"+new\xfe/deep\xff",
            r"+new\xfe/deep\xff/file\x80",
        ];
        assert_eq!(paths(&reply), expected, "{reply}");
        assert!(reply["payload"]["changes"]["kept_aside"].is_null(), "{reply}");
        assert_eq!(std::fs::read(path(world, b"kept\xff")).unwrap(), b"two\n");
        assert_eq!(std::fs::read(path(world, b"moved\xfd/in\xff")).unwrap(), b"in\n");
        assert_eq!(std::fs::read(path(world, b"new\xfe/deep\xff/file\x80")).unwrap(), b"n\n");
        assert_eq!(std::fs::read(path(world, b"link\xff")).unwrap(), b"two\n");
        assert!(!path(world, b"lit\xff").exists() && path(world, br"lit\xff").exists());
        undo(program, &reply);
        assert_eq!(everything(world), before);
    });
}

#[test]
fn a_directory_that_is_removed_is_named_with_all_that_was_in_it() {
    in_every_way(|world, program, more| {
        let before = everything(world);
        let reply = shell(program, r"rm -rf $'gone\xff'", &more);
        let expected = [r"-gone\xff", r"-gone\xff/deep\x80", r"-gone\xff/deep\x80/x\xff", r"-gone\xff/plain"];
        assert_eq!(paths(&reply), expected, "{reply}");
        assert!(!path(world, b"gone\xff").exists());
        undo(program, &reply);
        assert_eq!(everything(world), before);
        let again = shell(program, r"rm -rf $'gone\xff'; mkdir $'gone\xff'; echo y > $'gone\xff/y\xfe'", &more);
        assert!(paths(&again).contains(&r"-gone\xff/deep\x80/x\xff"), "{again}");
        assert!(paths(&again).contains(&r"+gone\xff/y\xfe"), "{again}");
        undo(program, &again);
        assert_eq!(everything(world), before);
    });
}

#[test]
fn what_is_quarantined_is_there_and_is_released_to_the_same_name() {
    in_every_way(|world, program, more| {
        let before = everything(world);
        let reply = shell(program, r"mkdir $'p\xff'; echo 'echo hi' > $'p\xff/.envrc'; echo ok > $'ok\xff'", &more);
        let aside = &reply["payload"]["changes"]["kept_aside"];
        assert_eq!(aside[0]["path"], json!(r"p\xff/.envrc"), "{reply}");
        assert!(!path(world, b"p\xff/.envrc").exists(), "{reply}");
        assert_eq!(std::fs::read(path(world, b"ok\xff")).unwrap(), b"ok\n");
        let call = reply["tool_call_id"].as_str().unwrap();
        let shown = program(&["quarantine", "show", call, r"p\xff/.envrc"]);
        assert_eq!((shown.code, shown.out.as_str()), (0, "echo hi\n"), "{shown:?}");
        let released = program(&["quarantine", "release", call, r"p\xff/.envrc"]);
        assert_eq!(released.code, 0, "{released:?}");
        assert_eq!(std::fs::read(path(world, b"p\xff/.envrc")).unwrap(), b"echo hi\n");
        assert_eq!(program(&["undo", "last"]).code, 0);
        undo(program, &reply);
        assert_eq!(everything(world), before);
    });
}

#[test]
fn a_rehearsal_shows_them_and_its_commit_makes_them() {
    for is_ordinary in [false, true] {
        let world = world();
        let ordinary = is_ordinary.then(|| world.as_ordinary_user());
        let program = |args: &[&str]| ordinary.as_ref().map_or_else(|| world.run(args), |ordinary| ordinary(args));
        let program: &Program<'_> = &program;
        let before = everything(&world);
        let command = r"echo two > $'kept\xff'; mkdir $'n\xfe'; echo n > $'n\xfe/n\xff'; rm -r $'gone\xff'";
        let reply = shell(program, command, &json!({ "rehearse": true }));
        assert_eq!(everything(&world), before);
        let changes = &reply["payload"]["changes"];
        let diff = changes["diff"].as_str().unwrap();
        assert!(diff.contains(r"a/kept\377") && diff.contains(r"b/n\376/n\377"), "{diff}");
        let args = json!({ "rehearsal": changes["rehearsal"] }).to_string();
        let run = world.last_run().file_name().unwrap().to_str().unwrap().to_owned();
        let committed = program(&["--json", "call", "--approve", "--run", &run, "commit", &args]).json();
        assert_eq!(committed["ok"], json!(true), "{committed}");
        assert_eq!(std::fs::read(path(&world, b"n\xfe/n\xff")).unwrap(), b"n\n");
        assert_eq!(std::fs::read(path(&world, b"kept\xff")).unwrap(), b"two\n");
        assert!(!path(&world, b"gone\xff").exists());
        undo(program, &committed);
        assert_eq!(everything(&world), before);
    }
}

#[test]
fn what_policy_hides_is_hidden_beneath_them_and_under_them() {
    in_every_way(|world, program, more| {
        for name in [&b"d\xff/.env"[..], b"key\xfe.pem", br"d\xff/.env"] {
            world.put(&path(world, name), "TOKEN=correct-horse");
        }
        // Read by a script: policy reads what a command itself names.
        world.put(&world.workspace().join("look.sh"), "cat d*/.env key*.pem; ls");
        world.shell("chmod -R a+rX .");
        let reply = shell(program, "sh look.sh", &more);
        assert!(!reply.to_string().contains("horse"), "{reply}");
        let read = program(&["--json", "call", "read", r#"{"path":"key\\xfe.pem"}"#]).json();
        assert_eq!(read["error"]["code"], json!("sensitive_path"), "{read}");
    });
}
