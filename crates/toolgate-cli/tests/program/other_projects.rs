//! What is neither the system's, nor a toolchain, nor in a root isn't there for commands.

use serde_json::json;

use crate::world::World;

#[test]
fn a_neighbouring_project_cannot_be_read_unless_it_is_a_root() {
    let world = World::new();
    let neighbour = tempfile::tempdir_in("/opt").or_else(|_| tempfile::tempdir_in("/var/tmp")).unwrap();
    let file = neighbour.path().join("notes.txt");
    std::fs::write(&file, "correct-horse").unwrap();
    let command = format!("cat {}", file.display());
    let reply = world.call("shell", json!({ "command": command }));
    assert_eq!(reply["payload"]["exit_code"], json!(1), "{reply}");
    let said = reply.to_string();
    assert!(!said.contains("correct-horse") && said.contains("outside of what commands see"), "{reply}");
    let said = world.run(&["sandbox", "--", "cat", file.to_str().unwrap()]);
    assert!(said.code != 0 && said.out.is_empty(), "{said:?}");
    world.put(&world.user_config(), format!("[[roots]]\npath = '{}'\n", neighbour.path().display()));
    let reply = world.call("shell", json!({ "command": command }));
    assert_eq!(reply["payload"]["stdout"], json!("correct-horse"), "{reply}");
}

#[test]
fn a_toolchain_on_the_path_works_and_a_workspace_may_lie_anywhere() {
    let world = World::new();
    let base = tempfile::tempdir_in("/opt").or_else(|_| tempfile::tempdir_in("/var/tmp")).unwrap();
    let put = |path: &str, content: &str| world.put(&base.path().join(path), content);
    put("kit/bin/tool", "#!/bin/sh\ncat \"$(dirname \"$0\")/../lib/words\"\n");
    put("kit/lib/words", "from the library\n");
    put("secret/notes.txt", "correct-horse");
    put("team/project/a.txt", "mine\n");
    let tool = base.path().join("kit/bin/tool");
    std::fs::set_permissions(&tool, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", base.path().join("kit/bin").display());
    let project = base.path().join("team/project");
    let line = format!("tool; cat a.txt; echo new > b.txt; ls -A {0} {0}/team", base.path().display());
    let output = world
        .command(crate::world::PROGRAM)
        .env("PATH", path)
        .args(["-w", project.to_str().unwrap(), "--json", "call", "shell"])
        .arg(json!({ "command": line }).to_string())
        .output()
        .unwrap();
    let reply = crate::world::Said::from(output).json();
    let shown = format!("from the library\nmine\n{0}:\nkit\nteam\n\n{0}/team:\nproject\n", base.path().display());
    assert_eq!(reply["payload"]["stdout"], json!(shown), "{reply}");
    assert_eq!(std::fs::read_to_string(project.join("b.txt")).unwrap(), "new\n");
}
