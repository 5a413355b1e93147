//! Ways for a confined command to have something run later, by the person's own git or editor. Each is first seen to work where
//! nothing confines it, and then not to: in an overlay, in place, and rehearsed and committed.

use serde_json::{Value, json};

use crate::world::World;

/// One attempt. `$mark` is a file beside the workspace; once it is there, the attempt has worked.
struct Attempt<'a> {
    /// What the person has.
    before: &'a str,
    /// What commands do, one after the other.
    plants: &'a [&'a str],
    /// What the person does afterwards.
    then: &'a str,
}

const PERSON: &str = "git config --global user.name a; git config --global user.email a@example.com; \
                      git config --global init.defaultBranch main; git config --global protocol.file.allow always; ";
const COMMITTED: &str = "git init -q . && git add hello.txt && git commit -qm first";

impl Attempt<'_> {
    fn world(&self) -> World {
        let world = World::new();
        let said = world.shell(&format!("{PERSON}{}", self.before));
        assert_eq!(said.code, 0, "{said:?}");
        world
    }

    fn script(world: &World, plant: &str) {
        let mark = Self::mark(world);
        world.put(&world.workspace().join("plant.sh"), format!("set -e; mark='{}'\n{plant}\n", mark.display()));
    }

    fn mark(world: &World) -> std::path::PathBuf {
        world.workspace().with_file_name("mark")
    }

    /// Whether it has worked once the person goes on.
    fn works(&self, world: &World) -> bool {
        world.shell(&format!("mark='{}'; {}", Self::mark(world).display(), self.then));
        Self::mark(world).exists()
    }

    fn fails_everywhere(&self) {
        let world = self.world();
        for plant in self.plants {
            Self::script(&world, plant);
            let said = world.shell("sh ./plant.sh");
            assert_eq!(said.code, 0, "{plant}: {said:?}");
        }
        assert!(self.works(&world), "the attempt has to be one: {:?}", self.plants);
        self.fails(|_, _| {}, json!({ "command": "sh ./plant.sh" }));
        self.fails(|_, _| {}, json!({ "command": "sh ./plant.sh", "tty": true }));
        self.fails(commit, json!({ "command": "sh ./plant.sh", "rehearse": true }));
    }

    fn fails(&self, settle: fn(&World, &Value), args: Value) {
        let world = self.world();
        let mut last = Value::Null;
        for plant in self.plants {
            Self::script(&world, plant);
            last = world.run(&["--json", "call", "--approve", "shell", &args.to_string()]).json();
            assert_eq!(last["payload"]["exit_code"], json!(0), "{plant}: {last}");
            settle(&world, &last);
        }
        assert!(!self.works(&world), "{args} {last}");
        assert!(last["payload"]["changes"]["kept_aside"][0]["reason"].is_string(), "{args}: {last}");
    }
}

/// Puts in place what was rehearsed.
fn commit(world: &World, reply: &Value) {
    let args = json!({ "rehearsal": reply["payload"]["changes"]["rehearsal"] }).to_string();
    let run = world.last_run();
    let run = run.file_name().unwrap().to_str().unwrap();
    let said = world.run(&["--json", "call", "--approve", "--run", run, "commit", &args]).json();
    assert_eq!(said["ok"], json!(true), "{said}");
}

#[test]
fn a_directory_that_git_is_told_to_take_for_the_common_one() {
    let plant = r#"mkdir -p bar/hooks; cp -r .git/objects .git/refs bar/
        { cat .git/config; printf '[core]\n\tfsmonitor = "touch %s; false"\n' "$mark"; } > bar/config
        echo ../bar > .git/commondir"#;
    Attempt { before: COMMITTED, plants: &[plant], then: "git status" }.fails_everywhere();
    let hook = r#"mkdir -p bar/hooks; cp -r .git/objects .git/refs .git/config bar/
        printf '#!/bin/sh\ntouch %s\n' "$mark" > bar/hooks/pre-commit; chmod +x bar/hooks/pre-commit
        echo ../bar > .git/commondir"#;
    Attempt { before: COMMITTED, plants: &[hook], then: "git commit -q --allow-empty -m x" }.fails_everywhere();
}

#[test]
fn a_link_to_a_directory_that_says_that_another_is_the_common_one() {
    let plant = r#"mkdir -p sub foo bar/objects bar/refs; echo 'gitdir: ../foo' > sub/.git
        echo 'ref: refs/heads/main' > foo/HEAD; echo ../bar > foo/commondir; touch bar/refs/x bar/objects/x
        printf '[core]\n\trepositoryformatversion = 0\n\tfsmonitor = "touch %s; false"\n' "$mark" > bar/config"#;
    Attempt { before: "true", plants: &[plant], then: "git -C sub status" }.fails_everywhere();
    let in_worktrees = r#"mkdir -p sub foo/objects foo/refs foo/worktrees/w; echo 'gitdir: ../foo/worktrees/w' > sub/.git
        echo 'ref: refs/heads/main' > foo/worktrees/w/HEAD; echo ../.. > foo/worktrees/w/commondir
        printf '[core]\n\trepositoryformatversion = 0\n\tfsmonitor = "touch %s; false"\n' "$mark" > foo/config"#;
    Attempt { before: "true", plants: &[in_worktrees], then: "git -C sub status" }.fails_everywhere();
}

/// A configuration that has git run something even in a repository that has no files beside it.
const OBEYED: &str = r#"config() { printf '[core]\n\trepositoryformatversion = 0\n\tworktree = ..\n\tfsmonitor = "touch %s; false"\n' "$mark"; }"#;

#[test]
fn a_repository_of_any_name_that_comes_to_be_one_call_after_another() {
    for plants in [
        &["git init -q --bare foo; rm -rf foo/hooks", "config > foo/config"][..],
        &["git init -q --bare foo.git", "config > foo.git/config"],
        &["mkdir foo; config > foo/config", "git init -q --bare new; mv new/HEAD new/refs new/objects foo/"],
        &["git init -q --bare foo; rm foo/HEAD; config > foo/config", "echo 'ref: refs/heads/main' > foo/HEAD"],
        &["git init -q --bare foo; rm -r foo/refs; config > foo/config", "mkdir -p foo/refs/heads"],
    ] {
        let plants: Vec<String> = plants.iter().map(|plant| format!("{OBEYED}\n{plant}")).collect();
        let plants: Vec<&str> = plants.iter().map(String::as_str).collect();
        let then = "git -C foo status; git -C foo.git status";
        Attempt { before: "true", plants: &plants, then }.fails_everywhere();
    }
}

#[test]
fn hooks_that_are_a_repository_themselves_are_hooks_all_the_same() {
    let plant = r#"git init -q new; git init -q --bare x; cp -r x/HEAD x/refs x/objects new/.git/hooks/
        printf '#!/bin/sh\ntouch %s\n' "$mark" > new/.git/hooks/pre-commit; chmod +x new/.git/hooks/pre-commit"#;
    let then = "git -C new commit -q --allow-empty -m x";
    Attempt { before: "true", plants: &[plant], then }.fails_everywhere();
}

#[test]
fn the_workspace_itself_as_a_repository() {
    let plant = r#"mkdir refs objects; echo 'ref: refs/heads/main' > HEAD; touch refs/x objects/x
        printf '[core]\n\trepositoryformatversion = 0\n\tworktree = .\n\tfsmonitor = "touch %s; false"\n' "$mark" > config"#;
    Attempt { before: "true", plants: &[plant], then: "git status" }.fails_everywhere();
}

#[test]
fn a_program_that_quotes_hide_in_the_configuration() {
    let plant = r#"git init -q lib; cd lib; git -c user.name=a -c user.email=a@b.c commit -q --allow-empty -m one; cd ..
        git init -q new; cd new; git -c protocol.file.allow=always submodule --quiet add ../lib sm
        git -C sm -c user.name=a -c user.email=a@b.c commit -q --allow-empty -m two
        printf '[submodule "sm"]\n\tupdate = "!touch %s; false"\n' "$mark" >> .git/config"#;
    Attempt { before: "true", plants: &[plant], then: "git -C new submodule update" }.fails_everywhere();
}

#[test]
fn a_rebase_that_would_run_something_when_it_goes_on() {
    let before = "git init -q . && echo 1 > a && git add a && git commit -qm base && git checkout -qb topic && \
                  echo 2 > a && git commit -qam two && git checkout -q main && echo 3 > a && git commit -qam three && \
                  git checkout -q topic";
    let plant = r#"git -c user.name=a -c user.email=a@b.c rebase -q main || true
        echo "exec touch $mark" >> .git/rebase-merge/git-rebase-todo"#;
    let then = "echo 4 > a; git add a; GIT_EDITOR=true git rebase --continue";
    Attempt { before, plants: &[plant], then }.fails_everywhere();
}

#[test]
fn a_link_where_a_directory_would_hold_what_others_obey() {
    for (before, directory, file) in [
        ("true", ".vscode", "tasks.json"),
        ("mkdir .vscode && echo x > .vscode/other", ".vscode", "tasks.json"),
        ("true", ".Claude", "settings.json"),
    ] {
        let plant = format!("mkdir vs; echo '{{}}' > vs/{file}; rm -rf {directory}; ln -s vs {directory}");
        let then = format!("test -e {directory}/{file} && touch $mark");
        Attempt { before, plants: &[&plant], then: &then }.fails_everywhere();
    }
}

#[test]
fn a_program_with_its_owners_rights() {
    for mode in ["4755", "2755"] {
        let plant = format!("cp /bin/sh b; chmod {mode} b");
        let then = "cmp b /bin/sh && test -u b -o -g b && touch $mark";
        for before in ["true", "touch b; chmod 6755 b"] {
            Attempt { before, plants: &[&plant], then }.fails_everywhere();
        }
    }
}
