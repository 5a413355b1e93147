//! Private caches of package managers: a command works with them and they last, but the user's own caches stay as they are,
//! whatever a command does, and so does everything that a planted link leads to.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use toolgate_contract::ApplyMode;
use toolgate_sandbox::process::{HomeDirectory, Profile};
use toolgate_sandbox::{CacheStore, PackageCaches};

use super::scene::{Scene, attack, sh};

const CRATE: &str = "home/.cargo/registry/cache/index/a-1.0.0.crate";
const INDEX: &str = "home/.cargo/registry/index/index/.cache/a";

/// A user with a crate and credentials.
fn fill_users_cache(scene: &Scene) {
    for (name, content) in [(CRATE, "crate"), (INDEX, "index"), ("home/.cargo/credentials.toml", super::scene::SECRET)]
    {
        fs::create_dir_all(scene.path(name).parent().unwrap()).unwrap();
        fs::write(scene.path(name), content).unwrap();
    }
}

fn caches(scene: &Scene) -> PackageCaches {
    let store = CacheStore::new(scene.path("state/caches"), u64::MAX);
    let home = scene.path("home");
    PackageCaches::new(store, "key".into(), &scene.workspace(), Some(&home), &BTreeMap::new())
}

/// The profile of a command that uses the caches.
fn profile(scene: &Scene, caches: &PackageCaches) -> Profile {
    let mut profile = scene.profile();
    profile.home = Some(HomeDirectory { path: scene.path("home"), shown: Vec::new() });
    caches.prepare("cargo build").unwrap().added_to(profile)
}

fn private(scene: &Scene, name: &str) -> PathBuf {
    scene.path("state/caches/key/files").join(name)
}

attack! {
    fn the_users_cache_is_read_and_never_changed(scene) {
        fill_users_cache(scene);
        let caches = caches(scene);
        let run = |line: &str| scene.inside_with(&profile(scene, &caches), line);
        let read = run("cat $CARGO_HOME/registry/cache/index/a-1.0.0.crate $CARGO_HOME/registry/index/index/.cache/a");
        assert_eq!(read.output, "crateindex", "{read:?}");
        for attempt in [
            "echo x >> $CARGO_HOME/registry/cache/index/a-1.0.0.crate",
            "echo x > $(readlink $CARGO_HOME/registry/cache/index/a-1.0.0.crate)",
            "rm $(readlink $CARGO_HOME/registry/cache/index/a-1.0.0.crate)",
            "cat $HOME/.cargo/credentials.toml",
        ] {
            let tried = run(attempt);
            assert!(!tried.worked() && !tried.output.contains(super::scene::SECRET), "{attempt}: {tried:?}");
        }
        if scene.has_namespaces() {
            // Landlock alone doesn't stop it.
            assert!(!run("chmod 777 $CARGO_HOME/registry/cache/index/a-1.0.0.crate").worked());
        }
        assert!(run("echo mine > $CARGO_HOME/registry/index/index/.cache/a").worked(), "the index is a copy");
        assert!(run("cd $CARGO_HOME/registry/cache/index && rm a-1.0.0.crate && echo mine > a-1.0.0.crate").worked());
        assert_eq!(run("cat $CARGO_HOME/registry/cache/index/a-1.0.0.crate").output, "mine\n", "it lasts");
        assert_eq!(fs::read_to_string(scene.path(CRATE)).unwrap(), "crate");
        assert_eq!(fs::read_to_string(scene.path(INDEX)).unwrap(), "index");
    }
}

attack! {
    fn what_only_reads_cannot_change_the_caches(scene) {
        let caches = caches(scene);
        let reading = sh("cat $CARGO_HOME/file; echo y > $CARGO_HOME/file").apply_mode(ApplyMode::None);
        assert!(scene.inside_with(&profile(scene, &caches), "mkdir -p $CARGO_HOME && echo x > $CARGO_HOME/file").worked());
        let tried = scene.run(&profile(scene, &caches), &reading).unwrap();
        assert_eq!((tried.output.as_str(), tried.worked()), ("x\n", false), "{tried:?}");
        assert_eq!(fs::read_to_string(private(scene, "cargo/file")).unwrap(), "x\n");
    }
}

attack! {
    fn a_planted_link_leads_the_host_nowhere(scene) {
        fill_users_cache(scene);
        let caches = caches(scene);
        let outside = scene.path("outside/made");
        fs::create_dir_all(&outside).unwrap();
        let plant = format!("cd $CARGO_HOME/registry && rm -rf cache index && ln -s {0} cache && ln -s {0} index", outside.display());
        assert!(scene.inside_with(&profile(scene, &caches), &plant).worked());
        // Something new to mirror.
        fs::write(scene.path(CRATE).with_file_name("b-1.0.0.crate"), "crate").unwrap();
        fs::write(scene.path(INDEX).with_file_name("b"), "index").unwrap();
        caches.prepare("cargo build").unwrap();
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
    }
}
