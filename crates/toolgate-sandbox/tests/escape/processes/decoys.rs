//! Opening what is hidden in the workspace: a decoy is all that can be seen of it, and it is known that it was opened.

use std::fs;
use std::path::PathBuf;

use toolgate_contract::{ApplyMode, Guarantee, GuaranteeLevel};
use toolgate_sandbox::process::{Profile, Sandbox, SandboxOptions, Tier};

use crate::testkit::skip;

use super::scene::{Outcome, SECRET, Scene, attack, finish, is_alone, sh};

/// Runs a line, and tells which secrets it opened; on a layer of its own, if so.
fn opened(scene: &Scene, line: &str, staged: bool) -> (Outcome, Vec<String>) {
    let layers = tempfile::tempdir_in(scene.path("outside")).unwrap();
    let profile = Profile { staging: Some(layers.path().to_owned()), ..scene.profile() };
    let apply_mode = if staged { ApplyMode::AtEnd } else { ApplyMode::InPlace };
    scene.runtime.block_on(async {
        let child = scene.sandbox.launch(&profile, &sh(line).apply_mode(apply_mode)).await.unwrap();
        let outcome = finish(&child).await;
        let name = |path: PathBuf| path.strip_prefix(scene.workspace()).unwrap().display().to_string();
        (outcome, child.opened_decoys().into_iter().map(name).collect())
    })
}

attack! {
    fn a_secret_that_is_opened_is_a_decoy_and_known_to_have_been_opened(scene) {
        let link = scene.workspace().join("link");
        std::os::unix::fs::symlink(".env", &link).unwrap();
        let ways = ["cat .env", "cat link", "cat /proc/self/root$PWD/.env", "exec 3<.env; cat <&3", "(setsid cat .env &) | cat", "grep -r . ."];
        for line in ways {
            assert!(scene.outside(line).output.contains(SECRET), "it works without a sandbox: {line}");
            for staged in [false, true].into_iter().filter(|staged| !staged || scene.tier == Tier::Namespaces) {
                let (outcome, opened) = opened(scene, line, staged);
                // Landlock alone can't hide something inside what is granted; then the report says so.
                assert_eq!(outcome.output.contains(SECRET), !scene.has_namespaces(), "{line}: {outcome:?}");
                let known: &[&str] = if scene.tier == Tier::Namespaces { &[".env"] } else { &[] };
                assert_eq!(opened, known, "{line}: {outcome:?}");
                assert_eq!(outcome.output.contains("decoy"), scene.tier == Tier::Namespaces, "{line}: {outcome:?}");
            }
        }
        let held = [(Tier::Namespaces, GuaranteeLevel::Held), (Tier::Bubblewrap, GuaranteeLevel::Partly), (Tier::Landlock, GuaranteeLevel::NotHeld)];
        let (_, holding) = held.into_iter().find(|(tier, _)| *tier == scene.tier).unwrap();
        assert_eq!(scene.start("true").enforcement().holding(Guarantee::Secrets), Some(holding));
    }
}

attack! {
    fn looking_at_a_secret_without_opening_it_accuses_nobody(scene) {
        for line in ["ls -la", "test -e .env && stat .env", "find . -name '.e*'", "echo x > other; cat other"] {
            let (outcome, opened) = opened(scene, line, false);
            assert!(outcome.worked() && opened.is_empty(), "{line}: {outcome:?} {opened:?}");
        }
    }
}

attack! {
    fn a_decoy_cannot_be_written_moved_or_reached_by_another_way(scene) {
        let lines = ["echo x >> .env", "rm -f .env", "mv .env x", "chmod 600 .env", "touch -d 2001-01-01 .env", ": > .env"];
        for line in lines {
            fs::write(scene.workspace().join(".env"), SECRET).unwrap();
            assert!(scene.outside(line).worked(), "it works without a sandbox: {line}");
        }
        if !scene.has_namespaces() {
            return;
        }
        fs::write(scene.workspace().join(".env"), SECRET).unwrap();
        for line in lines.into_iter().chain(["umount .env", "cat /dev/.decoys/1", "ls /dev/.decoys", "chmod 700 /dev/.decoys"]) {
            let inside = scene.inside(line);
            assert!(!inside.worked(), "{line}: {inside:?}");
        }
        assert_eq!(fs::read_to_string(scene.workspace().join(".env")).unwrap(), SECRET);
    }
}

attack! {
    fn a_program_that_loads_a_secret_goes_on_without_it(scene) {
        fs::write(scene.workspace().join(".env"), "NAME=secret\n").unwrap();
        let line = "set -eu; . ./.env; echo \"went on with ${NAME:-nothing}\"";
        assert_eq!(scene.outside(line).output, "went on with secret\n");
        let inside = scene.inside(line);
        let expected = match scene.tier {
            Tier::Namespaces => "went on with nothing\n",
            // It can't be opened.
            Tier::Bubblewrap => "",
            Tier::Landlock | Tier::Open => "went on with secret\n",
        };
        assert_eq!(inside.output, expected, "{inside:?}");
    }
}

attack! {
    fn every_secret_is_told_of_by_its_own_name_and_only_by_who_opened_it(scene) {
        if scene.tier != Tier::Namespaces {
            return;
        }
        let mut profile = scene.profile();
        let names: Vec<String> = (0..300).map(|number| format!("keys/{number:03}.pem")).collect();
        fs::create_dir(scene.workspace().join("keys")).unwrap();
        for name in &names {
            fs::write(scene.workspace().join(name), SECRET).unwrap();
            profile.secret.push(scene.workspace().join(name));
        }
        let open = |line: &str| scene.runtime.block_on(async {
            let child = scene.sandbox.launch(&profile, &sh(line)).await.unwrap();
            let outcome = finish(&child).await;
            assert!(outcome.worked() && !outcome.output.contains(SECRET), "{outcome:?}");
            child.opened_decoys()
        });
        let all: Vec<_> = names.iter().map(|name| scene.workspace().join(name)).collect();
        assert_eq!(open("cat keys/*; cat keys/*"), all);
        assert_eq!(open("cat keys/007.pem keys/117.pem"), [all[7].clone(), all[117].clone()]);
        assert!(open("true").is_empty(), "what others opened before, in sandboxes built alike, is no matter");
    }
}

/// The watches that this process holds.
fn watches() -> Vec<PathBuf> {
    let descriptors = fs::read_dir("/proc/self/fd").unwrap().flatten().map(|entry| entry.path());
    descriptors.filter(|path| fs::read_link(path).is_ok_and(|to| to.ends_with("anon_inode:inotify"))).collect()
}

attack! {
    fn no_watch_is_left_behind(scene) {
        if !is_alone() {
            skip("not-alone", "watches can only be counted in a process that runs one test, as cargo-nextest makes them");
            return;
        }
        let options = SandboxOptions { warm: 0, ..scene.options.clone() };
        scene.runtime.block_on(async {
            let sandbox = Sandbox::new(options).await.unwrap();
            let child = sandbox.launch(&scene.profile(), &sh("cat .env")).await.unwrap();
            let watched = usize::from(scene.tier == Tier::Namespaces);
            assert_eq!(watches().len(), watched);
            finish(&child).await;
            assert_eq!(watches(), [] as [PathBuf; 0]);
            assert_eq!(child.opened_decoys().len(), watched, "what was heard until then is still known");
        });
    }
}
