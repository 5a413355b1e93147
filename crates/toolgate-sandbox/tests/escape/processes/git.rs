//! Git works inside, and what git would run later stays as it is.

use std::fs;

use super::scene::{Scene, attack};

const MAKE: &str = "git init -q . && git add -A . 2>/dev/null; git commit -qm first --allow-empty";

fn repository(scene: &Scene) {
    fs::write(scene.workspace().join("file"), "one\n").unwrap();
    let made = scene.outside(MAKE);
    assert!(made.worked(), "{made:?}");
    fs::create_dir_all(scene.workspace().join(".git/hooks")).unwrap();
}

attack! {
    fn adding_and_committing_work(scene) {
        repository(scene);
        let line = "echo two >> file && git add file && git commit -qm second && git checkout -q -b other && git status --short \
                    --untracked-files=no && git log --oneline | wc -l && git stash list && git worktree add -q /tmp/tree 2>/dev/null; \
                    git log -1 --format=%s";
        let inside = scene.inside(line);
        assert!(inside.output.ends_with("second\n"), "{inside:?}");
        let seen = scene.outside("git log --format=%s -1 other; git fsck");
        assert!(seen.worked() && seen.output.starts_with("second"), "{seen:?}");
    }
}

attack! {
    fn hooks_and_configuration_cannot_be_planted(scene) {
        repository(scene);
        let lines = [
            "echo '#!/bin/sh' > .git/hooks/pre-commit",
            "git config core.fsmonitor /tmp/evil",
            "echo '[core]' >> .git/config",
            "mv .git/hooks .git/aside && mkdir .git/hooks",
            "rm -f .git/config && cp /dev/null .git/config",
            "mv .git aside && cp -r aside .git && echo x > .git/hooks/post-checkout",
            "rm -rf .git/hooks && mkdir .git/hooks",
        ];
        for line in lines {
            let again = scene.workspace().join(".git");
            let inside = scene.inside(line);
            assert_eq!(inside.worked(), !scene.has_namespaces(), "{line}: {inside:?}");
            assert!(again.join("hooks").exists() || !scene.has_namespaces());
        }
        if scene.has_namespaces() {
            let hooks: Vec<_> = fs::read_dir(scene.workspace().join(".git/hooks")).unwrap().flatten().collect();
            assert!(hooks.iter().all(|hook| hook.path().to_string_lossy().ends_with(".sample")), "{hooks:?}");
            assert!(!fs::read_to_string(scene.workspace().join(".git/config")).unwrap().contains("evil"));
        }
        for line in lines {
            drop(fs::remove_dir_all(scene.workspace().join(".git")));
            drop(fs::remove_dir_all(scene.workspace().join("aside")));
            repository(scene);
            let outside = scene.outside(line);
            assert!(outside.worked(), "it works without a sandbox: {line}: {outside:?}");
        }
    }
}

attack! {
    fn hooks_of_nested_repositories_are_kept_and_new_ones_are_noticed(scene) {
        use toolgate_sandbox::process::autoloaded_by_git;
        let nested = scene.workspace().join("nested");
        fs::create_dir(&nested).unwrap();
        assert!(scene.outside("cd nested && git init -q . && mkdir -p .git/hooks").worked());
        let before = autoloaded_by_git(&scene.workspace());
        let mut profile = scene.profile();
        profile.protected = before.places.clone();
        let inside = scene.inside_with(&profile, "echo x > nested/.git/hooks/post-checkout");
        assert_eq!(inside.worked(), !scene.has_namespaces(), "{inside:?}");
        let inside = scene.inside_with(&profile, "git init -q planted && mkdir -p planted/.git/hooks && echo x > planted/.git/hooks/update");
        assert!(inside.worked(), "{inside:?}");
        let after = autoloaded_by_git(&scene.workspace());
        let planted: Vec<_> = after.since(&before).collect();
        assert!(planted.contains(&&scene.workspace().join("planted/.git/hooks")), "{planted:?}");
    }
}
