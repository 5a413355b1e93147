//! Reading what is hidden, writing what isn't granted, and changing files without opening them.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use toolgate_contract::{ChildProcess, Guarantee, GuaranteeLevel, LaunchSpec};
use toolgate_sandbox::process::Readable;

use super::scene::{SECRET, attack, finish, sh};

attack! {
    fn secrets_of_the_home_cannot_be_read(scene) {
        let line = "cat ~/.ssh/id";
        assert_eq!(scene.outside(line).output, SECRET, "it works without a sandbox");
        let inside = scene.inside(line);
        assert!(!inside.worked() && !inside.output.contains(SECRET), "{inside:?}");
        let shown = scene.inside("cat ~/.gitconfig");
        assert!(shown.worked() && shown.output.contains("[user]"), "what the profile shows can be read: {shown:?}");
    }
}

attack! {
    fn secrets_in_the_workspace_cannot_be_read_moved_or_linked(scene) {
        let lines = ["cat .env", "ln .env copy; cat copy", "mv .env other; cat other; mv other .env"];
        for line in lines {
            assert!(scene.outside(line).output.contains(SECRET), "it works without a sandbox: {line}");
        }
        fs::remove_file(scene.workspace().join("copy")).unwrap();
        for line in lines {
            let inside = scene.inside(line);
            // Landlock alone can't hide something inside what is granted; then the report says so.
            let leaked = inside.output.contains(SECRET);
            assert_eq!(leaked, !scene.has_namespaces(), "{line}: {inside:?}");
        }
        let enforcement = scene.start("true").enforcement().clone();
        let expected = if scene.has_namespaces() { GuaranteeLevel::Held } else { GuaranteeLevel::Partly };
        assert_eq!(enforcement.holding(Guarantee::Filesystem), Some(expected), "{enforcement:?}");
    }
}

attack! {
    fn what_is_granted_inside_of_what_is_hidden_opens_nothing_else_of_it(scene) {
        for (file, content) in [("secret", SECRET), ("own/kept", "kept"), ("tools/run", "echo ran"), ("tools-too/x", SECRET)] {
            let path = scene.workspace().join(".toolgate").join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        let mut profile = scene.profile();
        let own = vec![scene.workspace().join(".toolgate/own")];
        profile.shown.push(scene.workspace().join(".toolgate/tools"));
        let line = "cat .toolgate/secret .toolgate/tools-too/x; echo x > .toolgate/new; echo x > .toolgate/tools/new";
        assert!(scene.outside(line).output.contains(SECRET), "it works without a sandbox");
        for name in ["new", "tools/new"] {
            fs::remove_file(scene.workspace().join(".toolgate").join(name)).unwrap();
        }
        let inside = |line: &str| scene.run(&profile, &LaunchSpec { own: own.clone(), ..sh(line) }).unwrap();
        let granted = inside("cat .toolgate/own/kept && sh .toolgate/tools/run && echo more > .toolgate/own/kept");
        assert_eq!(granted.output, "keptran\n", "{granted:?}");
        assert_eq!(fs::read_to_string(scene.workspace().join(".toolgate/own/kept")).unwrap(), "more\n");
        let inside = inside(line);
        // Landlock alone can't hide something inside what is granted; the report says so.
        assert_eq!(inside.output.contains(SECRET), !scene.has_namespaces(), "{inside:?}");
        if scene.has_namespaces() {
            let made = ["new", "tools/new"].map(|name| scene.workspace().join(".toolgate").join(name).exists());
            assert_eq!(made, [false, false], "{inside:?}");
        }
    }
}

attack! {
    fn nothing_outside_can_be_written_or_removed(scene) {
        let outside = scene.path("outside");
        for line in ["echo x >> {}/secret", "echo x > {}/new", "mkdir {}/directory", "mv {}/secret {}/moved", "rm -f {}/moved"] {
            let line = line.replace("{}", outside.to_str().unwrap());
            assert!(scene.outside(&line).worked(), "it works without a sandbox: {line}");
        }
        fs::write(outside.join("secret"), SECRET).unwrap();
        let mut shown = scene.profile();
        shown.shown.push(outside.clone());
        for line in ["echo x >> {}/secret", "echo x > {}/another", "mkdir {}/second", "mv {}/secret {}/m", "rm {}/secret", "ln {}/secret link", ": > {}/secret"] {
            let line = line.replace("{}", outside.to_str().unwrap());
            for profile in [&scene.profile(), &shown] {
                let inside = scene.inside_with(profile, &line);
                assert!(!inside.worked(), "{line}: {inside:?}");
            }
        }
        assert_eq!(fs::read_to_string(outside.join("secret")).unwrap(), SECRET);
        assert!(!outside.join("another").exists() && !outside.join("second").exists());
    }
}

attack! {
    fn files_outside_cannot_be_changed_without_opening_them(scene) {
        let (attacker, secret) = (scene.attacker(), scene.path("outside/secret"));
        let secret = secret.to_str().unwrap();
        let lines = [format!("chmod 777 {secret}"), format!("{attacker} utime {secret}"), format!("{attacker} attribute {secret}")];
        for line in &lines {
            assert!(scene.outside(line).worked(), "it works without a sandbox: {line}");
        }
        fs::set_permissions(secret, fs::Permissions::from_mode(0o640)).unwrap();
        // Where it can be seen: what is hidden can't be changed anyway.
        let mut profile = scene.profile();
        profile.shown.push(scene.path("outside"));
        for line in &lines {
            let inside = scene.inside_with(&profile, line);
            assert_eq!(inside.worked(), !scene.has_namespaces(), "{line}: {inside:?}");
        }
        if scene.has_namespaces() {
            assert_eq!(fs::metadata(secret).unwrap().permissions().mode() & 0o777, 0o640);
        }
    }
}

attack! {
    fn changes_to_the_home_stay_inside(scene) {
        let line = "echo evil >> ~/.bashrc";
        assert!(scene.outside(line).worked());
        fs::remove_file(scene.path("home/.bashrc")).unwrap();
        let inside = scene.inside(line);
        assert_eq!(inside.worked(), scene.has_namespaces(), "it has a home of its own, if there are mounts: {inside:?}");
        assert!(!scene.path("home/.bashrc").exists());
    }
}

attack! {
    fn other_projects_cannot_be_seen(scene) {
        let (outside, base) = (scene.path("outside"), scene.path(""));
        let line = |directory: &std::path::Path| format!("cat {0}/secret; ls {0}", directory.display());
        assert!(scene.outside(&line(&outside)).output.contains(SECRET), "it works without a sandbox");
        let inside = scene.inside(&line(&outside));
        assert!(!inside.worked() && inside.output.is_empty(), "{inside:?}");
        // The way to the workspace is there, and nothing beside it.
        if scene.has_namespaces() {
            let siblings = scene.inside(&format!("ls -A {}; ls -A /srv /mnt /media /boot /opt 2>/dev/null", base.display()));
            assert_eq!(siblings.output, "home\nworkspace\n", "{siblings:?}");
        }
        let mut profile = scene.profile();
        profile.shown.push(outside.clone());
        let shown = scene.inside_with(&profile, &line(&outside));
        assert!(shown.worked() && shown.output.contains(SECRET), "a configured root can be read: {shown:?}");
    }
}

attack! {
    fn a_command_that_looked_outside_is_told_how_to_see_more(scene) {
        let (outside, workspace) = (scene.path("outside"), scene.workspace());
        let reasons = |line: &str| {
            scene.runtime.block_on(async {
                let child = scene.sandbox.launch(&scene.profile(), &sh(line)).await.unwrap();
                let errors = finish(&child).await.errors;
                child.denials(&errors).into_iter().map(|denial| denial.reason).collect::<Vec<String>>()
            })
        };
        for place in [format!("{}/secret", outside.display()), format!("{}/missing", outside.display()), "../outside/secret".into()] {
            let told = reasons(&format!("cat {place}"));
            let root = format!("path = \"{}\"", outside.display());
            assert!(matches!(&told[..], [reason] if reason.contains(&place) && reason.contains(&root)), "{place}: {told:?}");
        }
        for place in ["missing", "/usr/missing", "/etc/missing", &format!("{}/missing", workspace.display())] {
            assert_eq!(reasons(&format!("cat {place}")), Vec::<String>::new(), "{place}");
        }
    }
}

attack! {
    fn a_linked_worktree_has_its_repository_and_a_forged_one_has_not(scene) {
        let git = "git -c user.name=a -c user.email=a@example.com -c init.defaultBranch=main";
        let main = scene.path("outside/main");
        let made = scene.outside(&format!(
            "rm -rf {1}/.env && {0} init -q {2} && cd {2} && {0} commit -q --allow-empty -m first && rmdir {1} && {0} worktree add -q {1} 2>&1",
            git, scene.workspace().display(), main.display()
        ));
        assert!(made.worked(), "{made:?}");
        let inside = scene.inside("git log --format=%s");
        assert!(inside.worked() && inside.output == "first\n", "{inside:?}");
        fs::write(main.join("private"), SECRET).unwrap();
        let beside = scene.inside(&format!("cat {}/private", main.display()));
        assert!(!beside.worked() && beside.output.is_empty(), "only the repository is shown: {beside:?}");
        // A `.git` file that came with a repository names another one, which knows nothing of it.
        let victim = scene.path("outside/victim");
        assert!(scene.outside(&format!("{git} init -q {0} && mkdir -p {0}/.git/worktrees/x", victim.display())).worked());
        fs::write(victim.join(".git/secret"), SECRET).unwrap();
        for target in [".git/worktrees/x", ".git"] {
            let forged = format!("gitdir: {}/{target}\n", victim.display());
            fs::write(scene.workspace().join(".git"), forged).unwrap();
            let inside = scene.inside(&format!("cat {}/.git/secret", victim.display()));
            assert!(!inside.worked() && inside.output.is_empty(), "{target}: {inside:?}");
        }
    }
}

attack! {
    fn only_what_is_listed_can_be_seen(scene) {
        let mut profile = scene.profile();
        let system = ["/usr", "/bin", "/lib", "/lib64"].iter().map(Into::into).collect();
        profile.readable = Readable::Only(system);
        let secret = scene.path("outside/secret");
        let line = format!("cat {}", secret.display());
        assert_eq!(scene.outside(&line).output, SECRET);
        let inside = scene.inside_with(&profile, &line);
        assert!(!inside.worked() && inside.output.is_empty(), "{inside:?}");
        let works = scene.inside_with(&profile, "echo hello > new && cat new && ls /usr >/dev/null");
        assert_eq!(works.output, "hello\n", "{works:?}");
        let passwd = scene.inside_with(&profile, "cat /etc/passwd");
        assert!(!passwd.worked() && passwd.output.is_empty(), "{passwd:?}");
    }
}

attack! {
    fn settings_of_the_machine_cannot_be_written(scene) {
        for path in ["/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/proc/1/oom_score_adj", "/sys/kernel/uevent_helper", "/dev/kmsg"] {
            let inside = scene.inside(&format!("echo 0 >> {path}"));
            assert!(!inside.worked(), "{path}: {inside:?}");
        }
        let device = scene.inside("ls /dev/vda /dev/sda /dev/mem /dev/kvm 2>/dev/null | head -1; exec 3</dev/vda");
        assert!(!device.worked(), "{device:?}");
    }
}
