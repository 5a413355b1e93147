//! What commands leave for git, editors and other agents to obey is kept aside, and git works all the same.

use serde_json::{Value, json};

use crate::world::World;

const GIT: &str = "git -c user.name=a -c user.email=a@example.com -c init.defaultBranch=main";

fn shell(world: &World, command: &str) -> Value {
    shell_with(world, json!({ "command": command }))
}

fn shell_with(world: &World, args: Value) -> Value {
    let reply = world.run(&["--json", "call", "--approve", "shell", &args.to_string()]).json();
    assert_eq!(reply["payload"]["exit_code"], json!(0), "{args}: {reply}");
    reply
}

fn kept_aside(reply: &Value) -> String {
    let aside = reply["payload"]["changes"]["kept_aside"].as_array().cloned().unwrap_or_default();
    aside.iter().map(|one| one["path"].as_str().unwrap()).collect::<Vec<_>>().join(" ")
}

#[test]
fn git_makes_commits_repositories_worktrees_and_clones() {
    let world = World::new().file("a.txt", "one\n").file(".gitignore", "out/\n");
    for command in [
        format!("{GIT} init -q ."),
        format!("git add -A && {GIT} commit -qm first"),
        format!("echo two >> a.txt && git mv a.txt b.txt && {GIT} commit -qam second && git status --short"),
        "git checkout -q -b other && git checkout -q - && git branch -d other".into(),
        format!(
            "echo x >> b.txt && {GIT} stash -q && git diff --exit-code && {GIT} stash pop -q && git checkout -q b.txt"
        ),
        "git worktree add -q tree && git -C tree status --short && ls tree/b.txt".into(),
        format!("{GIT} init -q nested && cd nested && echo n > n && git add n && {GIT} commit -qm nested"),
        "git clone -q . out/clone && git -C out/clone log --oneline".into(),
        "git clone -q --bare . out/bare.git && git -C out/bare.git --git-dir=. log --oneline".into(),
        format!(
            "mkdir -p moved/deep && echo m > moved/deep/m && git add moved && {GIT} commit -qm m && git mv moved renamed"
        ),
    ] {
        let reply = shell(&world, &command);
        assert_eq!(kept_aside(&reply), "", "{command}: {reply}");
    }
    let said = world.shell(
        "git log --oneline | wc -l && git fsck && git -C tree log --oneline && git -C nested log -1 --format=%s",
    );
    assert!(said.code == 0 && said.out.contains("nested"), "{said:?}");
    assert_eq!(world.shell("git -C out/clone log -1 --format=%s; cat .git/config").code, 0);
}

#[test]
fn git_goes_on_with_what_it_began_in_an_earlier_call() {
    let world = World::new().file("a.txt", "one\n");
    for command in [
        format!("{GIT} init -q . && git add a.txt && {GIT} commit -qm first && git checkout -q -b topic"),
        format!(
            "echo two > a.txt && {GIT} commit -qam two && git checkout -q main && echo three > a.txt && {GIT} commit -qam three"
        ),
        format!("git checkout -q topic && ! {GIT} rebase -q main && git status"),
        format!("echo four > a.txt && git add a.txt && GIT_EDITOR=true {GIT} rebase --continue && git log --oneline"),
        format!(
            "! {GIT} cherry-pick main~1 && {GIT} cherry-pick --abort; ! {GIT} revert --no-edit HEAD~1 && {GIT} revert --abort"
        ),
        "git clone -q --bare . bare.git && git --git-dir=bare.git worktree add -q beside main".into(),
        format!("cd beside && echo b > b && git add b && {GIT} commit -qm beside"),
        "git --git-dir=bare.git fetch -q origin topic && git --git-dir=bare.git log --oneline".into(),
        "git clone -q --shared . shared && git -C shared log --oneline".into(),
        "git clone -q --separate-git-dir=kept.git . apart && git -C apart log --oneline".into(),
        "git worktree add -q tree main && git worktree move tree tree2 && git worktree remove tree2".into(),
        format!(
            "{GIT} init -q whole && cd whole && git -c protocol.file.allow=always submodule --quiet add \"file://$PWD/../bare.git\" part && {GIT} commit -qm whole"
        ),
        "git -c protocol.file.allow=always clone -q --no-hardlinks --recurse-submodules whole copy && ls copy/part/a.txt".into(),
    ] {
        let reply = shell(&world, &command);
        assert_eq!(kept_aside(&reply), "", "{command}: {reply}");
    }
    let said =
        world.shell("git log -1 --format=%s && git -C beside log -1 --format=%s && git -C copy/part status --short");
    assert_eq!((said.code, said.out.as_str()), (0, "two\nbeside\n"), "{said:?}");
}

#[test]
fn what_would_be_obeyed_is_kept_aside_and_a_person_lets_it_in() {
    what_would_be_obeyed("", json!({ "command": "sh ./plant.sh" }));
}

#[test]
fn what_would_be_obeyed_is_put_back_where_a_command_works_straight_on_the_workspace() {
    what_would_be_obeyed("[commands]\noverlay = 'off'\n", json!({ "command": "sh ./plant.sh" }));
    what_would_be_obeyed("", json!({ "command": "sh ./plant.sh", "tty": true }));
}

fn what_would_be_obeyed(config: &str, args: Value) {
    let planted = "git init -q new && printf '#!/bin/sh\\n' > new/.git/hooks/post-checkout && chmod +x new/.git/hooks/post-checkout; \
                   git init -q odd && git -C odd config core.fsmonitor ./evil; \
                   git init -q --bare bare && git --git-dir=bare config core.sshCommand evil && echo x > bare/hooks/update; \
                   mkdir -p link .vscode .claude .cursor/rules && echo 'gitdir: /etc' > link/.git; \
                   echo 'export X=1' > .envrc; echo '{}' > .vscode/tasks.json; echo '{}' > .mcp.json; \
                   echo '{}' > .claude/settings.json; echo x > .cursor/rules/a.mdc; echo fine > fine.txt";
    // What is read out of a command is refused before it runs; a script is read by nobody.
    let world = World::new().file("plant.sh", planted);
    world.put(&world.user_config(), config);
    let reply = shell_with(&world, args);
    assert_eq!(
        kept_aside(&reply),
        ".claude/settings.json .cursor/rules/a.mdc .envrc .mcp.json .vscode/tasks.json bare/config bare/hooks/update \
         link/.git new/.git/hooks/post-checkout odd/.git/config",
        "{reply}"
    );
    assert_eq!(world.read("fine.txt"), "fine\n");
    for path in [".envrc", "new/.git/hooks/post-checkout", "bare/hooks/update"] {
        assert!(!world.workspace().join(path).exists(), "{path}");
    }
    for path in ["odd/.git/config", "bare/config"] {
        let text = std::fs::read_to_string(world.workspace().join(path)).unwrap_or_default();
        assert!(!text.contains("evil"), "{path}: {text}");
    }
    assert!(world.workspace().join("new/.git/HEAD").exists());
    let call = reply["tool_call_id"].as_str().unwrap();
    let listed = world.run(&["quarantine", "list"]);
    assert!(listed.out.contains(call) && listed.out.contains("direnv runs it"), "{listed:?}");
    assert_eq!(world.run(&["quarantine", "show", call, ".envrc"]).out, "export X=1\n");
    let said = world.run(&["quarantine", "release", call, ".envrc"]);
    assert_eq!((said.code, world.read(".envrc").as_str()), (0, "export X=1\n"), "{said:?}");
    assert!(said.out.starts_with("Applied:\n  .envrc +1 -0\n") && said.err.contains("toolgate undo"), "{said:?}");
    assert!(!world.run(&["quarantine", "list"]).out.contains(".envrc"));
    let recorded = world.run(&["--json", "changes", "last"]).json();
    assert_eq!(world.run(&["undo", recorded["call"].as_str().unwrap()]).code, 0, "{recorded}");
    assert!(!world.workspace().join(".envrc").exists());
    let hook = "new/.git/hooks/post-checkout";
    let said = world.run(&["quarantine", "release", call, hook]);
    assert_eq!((said.code, world.read(hook).as_str()), (0, "#!/bin/sh\n"), "a person may, guard or not: {said:?}");
    let offered = world.call("release", json!({ "call": call, "path": ".mcp.json" }));
    assert_eq!(offered["error"]["code"], json!("unknown_tool"), "an agent may not: {offered}");
    world.put(&world.workspace().join(".mcp.json"), "mine");
    assert_ne!(world.run(&["quarantine", "release", call, ".mcp.json"]).code, 0, "what is there stays");
    assert_eq!(world.read(".mcp.json"), "mine");
}

#[test]
fn the_user_can_have_it_reported_or_left_alone() {
    for (setting, notes) in [("report", true), ("off", false)] {
        let world = World::new();
        world.put(&world.user_config(), format!("[commands]\nquarantine = '{setting}'\n"));
        let reply = shell(&world, "mkdir .vscode && echo x > .vscode/tasks.json");
        assert_eq!(world.read(".vscode/tasks.json"), "x\n", "{reply}");
        assert_eq!(reply["payload"]["changes"]["notes"].to_string().contains("editors run"), notes, "{reply}");
        world.put(&world.workspace().join("plant.sh"), "git init -q new && echo x > new/.git/hooks/update");
        let hook = shell(&world, "sh ./plant.sh");
        assert!(kept_aside(&hook).contains("hooks/update"), "policy still guards hooks: {hook}");
    }
}

#[test]
fn git_can_name_remotes_and_branches_and_nothing_that_runs() {
    let world = World::new().file("a.txt", "one\n");
    shell(&world, &format!("{GIT} init -q . && git add -A && {GIT} commit -qm first"));
    let reply =
        shell(&world, "git remote add origin https://example.com/x.git && git branch copy && git branch -u main copy");
    assert_eq!(kept_aside(&reply), "", "{reply}");
    assert!(world.shell("git remote -v && git rev-parse --abbrev-ref copy@{upstream}").out.contains("main"));
    world.put(&world.workspace().join("plant.sh"), "git config core.fsmonitor ./evil; git config core.pager ./evil");
    let before = world.read(".git/config");
    let reply = shell(&world, "sh plant.sh");
    assert_eq!((kept_aside(&reply).as_str(), world.read(".git/config")), (".git/config", before), "{reply}");
}

#[test]
fn what_cannot_be_renamed_from_one_root_to_another_is_explained() {
    let world = World::new().file("dir/a.txt", "one\n");
    let reply = world.call("shell", json!({ "command": "python3 -c \"import os; os.rename('dir', '/tmp/dir')\"" }));
    assert!(reply["payload"]["denied"].to_string().contains("file systems of their own"), "{reply}");
    assert_eq!(world.read("dir/a.txt"), "one\n");
}

#[test]
fn what_a_command_closes_behind_it_is_found_all_the_same() {
    let plant = "mkdir -p .vscode deep/er; echo evil > .vscode/tasks.json; echo evil > deep/er/.envrc; echo x > z; \
                 echo evil > .envrc; chmod 000 z; chmod 311 .vscode deep/er; chmod 000 deep";
    let world = World::new().file("plant.sh", plant);
    let ordinary = world.as_ordinary_user();
    let line = json!({ "command": "sh plant.sh", "tty": true }).to_string();
    let said = ordinary(&["--json", "call", "--approve", "shell", &line]);
    let reply = said.json();
    assert_eq!(kept_aside(&reply), ".envrc .vscode/tasks.json deep/er/.envrc", "{said:?}");
    assert!(!world.workspace().join(".envrc").exists(), "{said:?}");
}

#[test]
fn a_closed_directory_hides_what_is_in_it() {
    let world =
        World::new().file("config/.env", "TOKEN=correct-horse").file("look.sh", "cat config/.env s/.env; mv config s");
    world.shell("chmod 311 config");
    let ordinary = world.as_ordinary_user();
    for more in [json!({}), json!({ "tty": true })] {
        let mut args = json!({ "command": "sh look.sh" });
        args.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        for _ in 0..2 {
            let said = ordinary(&["--json", "call", "--approve", "shell", &args.to_string()]);
            assert!(!said.out.contains("horse"), "{said:?}");
        }
    }
}

#[test]
fn a_directory_that_holds_something_hidden_stays_where_it_is() {
    let world = World::new()
        .file(".streamlit/secrets.toml", "correct-horse")
        .file("look.sh", "mv .streamlit s; rev s/secrets.toml");
    for _ in 0..2 {
        let args = json!({ "command": "sh look.sh", "tty": true }).to_string();
        let said = world.run(&["--json", "call", "--approve", "shell", &args]);
        assert!(!said.out.contains("esroh"), "{said:?}");
    }
    assert_eq!(world.read(".streamlit/secrets.toml"), "correct-horse");
}

#[test]
fn a_file_tool_has_to_ask_before_it_writes_what_others_obey() {
    let world = World::new();
    let allow = "[[rules]]\ndecision = 'allow'\npath = './.mcp.json'\naccess = ['write']\n";
    let write = |path: &str| world.call("write", json!({ "path": path, "content": "{}" }));
    world.put(&world.workspace().join("toolgate.toml"), allow);
    for path in [".mcp.json", ".vscode/tasks.json", ".husky/pre-commit"] {
        let reply = write(path);
        assert_eq!(reply["error"]["code"], json!("approval_required"), "{reply}");
        assert!(!world.workspace().join(path).exists(), "{path}");
    }
    assert!(write(".vscode/tasks.json").to_string().contains("editors run the tasks"));
    let args = json!({ "path": ".vscode/tasks.json", "content": "{}" }).to_string();
    assert_eq!(world.run(&["call", "--approve", "write", &args]).code, 0);
    assert_eq!(world.read(".vscode/tasks.json"), "{}");
    world.put(&world.user_config(), allow);
    let reply = write(".mcp.json");
    assert_eq!(reply["ok"], json!(true), "{reply}");
    world.put(&world.user_config(), "preset = 'full'\n");
    assert_eq!(write(".husky/pre-commit")["ok"], json!(true));
}

#[test]
fn a_file_tool_makes_no_repository_that_git_would_obey_whatever_it_is_called() {
    let world = World::new();
    let write = |path: &str| {
        let reply = world.call("write", json!({ "path": path, "content": "[core]\n\tfsmonitor = x\n" }));
        reply["error"]["code"].as_str().unwrap_or("written").to_owned()
    };
    assert_eq!(world.shell("git init -q --bare bare.git && git init -q --bare other && rm other/HEAD").code, 0);
    for path in ["bare.git/config", "bare.git/hooks/pre-commit"] {
        assert_eq!(write(path), "policy_denied", "{path}");
    }
    for path in ["bare.git/description", "foo/config", "foo/hooks/update", "foo/refs/x", "foo/HEAD", "config", "refs/x"]
    {
        assert_eq!(write(path), "written", "{path}");
    }
    assert_eq!(write("foo/objects/x"), "policy_denied", "it would make a repository of it");
    assert_eq!(write("objects/x"), "written");
    assert_eq!(write("HEAD"), "policy_denied", "of the workspace as well");
    assert_eq!(write("other/HEAD"), "written", "what is in it is git's own");
    assert_eq!(write("other/config"), "policy_denied");
}

#[test]
fn a_person_is_told_what_was_kept_aside_and_where_to_look() {
    let world = World::new().file("plant.sh", "mkdir -p .vscode; echo x > .vscode/tasks.json; echo x > .envrc");
    assert_eq!(world.run(&["quarantine", "list"]).err, "Nothing is quarantined.\n");
    let said = world.run(&["call", "shell", r#"{"command":"sh plant.sh"}"#]);
    assert!(said.err.contains("Quarantined, not written to the workspace:\n  .envrc (direnv"), "{said:?}");
    assert!(said.err.contains("toolgate quarantine list"), "{said:?}");
    world.put(&world.user_config(), "[commands]\nquarantine = 'report'\n");
    let said = world.run(&["call", "shell", r#"{"command":"sh plant.sh"}"#]);
    assert!(said.err.contains("note: `.vscode/tasks.json` was written to the workspace"), "{said:?}");
}
