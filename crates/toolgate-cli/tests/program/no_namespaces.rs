//! Where the kernel makes no namespaces, commands run only if the user accepts what is left, and everybody is told.

use serde_json::json;

use crate::world::{PROGRAM, Said, World};

/// Runs a line of shell where nobody can make a namespace, as in many containers.
fn without_namespaces(world: &World, line: &str) -> Said {
    let inside = format!("echo 0 > /proc/sys/user/max_user_namespaces && {line}");
    world.shell(&format!("unshare --user --map-root-user sh -c '{inside}'"))
}

fn shell(world: &World, command: &str) -> Said {
    let args = json!({ "command": command }).to_string();
    without_namespaces(world, &format!(r#""$toolgate" --json call shell "{}""#, args.replace('"', r#"\""#)))
}

const ACCEPTED: &str = "[commands]\nweakest_sandbox = 'landlock'\n";

#[test]
fn commands_are_refused_unless_the_user_accepts_less() {
    let world = World::new().file("toolgate.toml", ACCEPTED);
    let said = shell(&world, "echo two > a.txt");
    assert_eq!(said.code, 3, "a workspace doesn't give up what the user counts on: {said:?}");
    let error = &said.json()["error"];
    assert_eq!(error["code"], json!("sandbox_unavailable"), "{error}");
    assert!(error["message"].as_str().unwrap().contains("by landlock"), "{error}");
    assert!(!world.workspace().join("a.txt").exists());
    let said = without_namespaces(&world, r#""$toolgate" sandbox -- touch a.txt"#);
    assert!(said.code == 3 && said.err.contains("weakest_sandbox"), "{said:?}");
    assert!(!world.workspace().join("a.txt").exists());
    let said = without_namespaces(&world, r#""$toolgate" doctor"#);
    assert!(
        said.code == 1
            && said.out.contains("no command runs. Commands can't be confined well enough here (by landlock)"),
        "{said:?}"
    );
    assert_eq!(said.out.matches("Allow user namespaces").count(), 1, "each remedy once: {said:?}");
}

#[test]
fn what_the_user_accepts_runs_and_says_what_does_not_hold() {
    let world = World::new();
    world.put(&world.user_config(), ACCEPTED);
    world.put(&world.home().join("private"), "secret");
    let world = world.file("plant.sh", "touch /var/tmp/planted-by-a-test");
    let said = shell(&world, "echo two > a.txt; cat ~/private; sh plant.sh; echo ran");
    let reply = said.json();
    assert_eq!((&reply["payload"]["stdout"], &reply["enforced"]["filesystem"]), (&json!("ran\n"), &json!("partly")));
    assert_eq!(world.read("a.txt"), "two\n");
    assert!(!std::path::Path::new("/var/tmp/planted-by-a-test").exists());
    assert_eq!(world.run(&["undo", reply["tool_call_id"].as_str().unwrap()]).code, 0);
    assert!(!world.workspace().join("a.txt").exists());
    let said = without_namespaces(&world, r#""$toolgate" sandbox -- echo ran"#);
    assert!(said.out == "ran\n" && said.err.contains("Confined by landlock alone"), "{said:?}");
    let said = without_namespaces(&world, r#""$toolgate" doctor"#);
    assert!(said.code == 0 && said.out.contains("which `commands.weakest_sandbox` accepts"), "{said:?}");
    world.put(&world.workspace().join(".env"), "TOKEN=correct-horse");
    for line in [r#""$toolgate" sandbox -- cat .env"#, r#""$toolgate" doctor"#] {
        let said = without_namespaces(&world, line);
        assert!(said.code != 0 && !said.out.contains("horse"), "{said:?}");
        assert!(format!("{}{}", said.out, said.err).contains("keep it from reading `.env`"), "{said:?}");
    }
}

#[test]
fn a_command_that_takes_the_record_away_has_failed_and_the_person_is_told_where_to_look() {
    for take in ["rm -r .toolgate", "mv .toolgate elsewhere", "mv .toolgate elsewhere; mkdir .toolgate"] {
        let world = World::new().file("plant.sh", format!("{take}; echo evil > .git/hooks/update; echo two > a.txt"));
        world.put(&world.workspace().join(".git/hooks/update"), "mine");
        world.put(&world.user_config(), ACCEPTED);
        let said = shell(&world, "sh plant.sh");
        let reply = said.json();
        assert!(said.code != 0 && reply["ok"] == json!(false), "{take}: {said:?}");
        let told = format!("{}{}", reply["error"]["message"], said.err);
        assert!(told.contains("was removed") || told.contains("Check git's hooks"), "{take}: {said:?}");
    }
}

/// Inside of one sandbox no other can be built of namespaces: mounts, new namespaces and `clone3` are refused there, as by
/// what confines containers.
#[test]
fn inside_of_another_sandbox_landlock_still_holds() {
    let world = World::new().file("inner/a.txt", "one\n").file("outside.txt", "theirs");
    world.put(&world.workspace().join("home/.config/toolgate/config.toml"), ACCEPTED);
    if std::fs::hard_link(PROGRAM, world.workspace().join("program")).is_err() {
        std::fs::copy(PROGRAM, world.workspace().join("program")).unwrap();
    }
    let args = json!({ "command": "echo two > a.txt; cat ../outside.txt; echo three > ../outside.txt; echo ran" });
    let inner = format!("env HOME=$PWD/home ./program --workspace inner --json call shell '{args}'");
    let said = world.run(&["sandbox", "--", "sh", "-c", &inner]);
    let reply = said.json();
    assert!(reply["payload"]["stdout"].as_str().is_some_and(|out| out.ends_with("ran\n")), "{said:?}");
    assert_eq!(reply["enforced"]["filesystem"], json!("partly"), "{said:?}");
    assert_eq!((world.read("inner/a.txt").as_str(), world.read("outside.txt").as_str()), ("two\n", "theirs"));
}

#[test]
fn more_than_what_is_there_can_be_demanded_too() {
    let world = World::new().file("toolgate.toml", "[commands]\nweakest_sandbox = 'namespaces'\n");
    assert_eq!(world.call("shell", json!({ "command": "echo ran" }))["payload"]["stdout"], json!("ran\n"));
    world.put(&world.user_config(), ACCEPTED);
    assert_eq!(
        shell(&world, "echo ran").json()["error"]["code"],
        json!("sandbox_unavailable"),
        "a workspace may demand"
    );
}
