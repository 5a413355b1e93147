//! A rehearsed command sees its changes; the workspace doesn't get them; the list of them is complete.

use std::fs;

use toolgate_contract::{ApplyMode, Difference, StagedChanges};
use toolgate_sandbox::Roots;
use toolgate_sandbox::process::{Profile, Tier};

use super::scene::{Scene, attack, finish, sh};

fn prepare(scene: &Scene) {
    let workspace = scene.workspace();
    for directory in ["directory/deep", "emptied", "replaced", "becomes-file"] {
        fs::create_dir_all(workspace.join(directory)).unwrap();
    }
    for file in [
        "changed",
        "same",
        "mode",
        "gone",
        "directory/deep/gone",
        "emptied/one",
        "replaced/old",
        "becomes-file/x",
        "becomes-directory",
    ] {
        fs::write(workspace.join(file), "before").unwrap();
    }
}

const LINE: &str = "echo after > changed; printf before > same; chmod 700 mode; rm gone; rm directory/deep/gone; rm -r emptied; \
                    rm -r replaced; mkdir replaced; echo new > replaced/new; rm -r becomes-file; echo x > becomes-file; \
                    rm becomes-directory; mkdir becomes-directory; echo x > becomes-directory/y; mkdir -p made/deep; echo x > made/deep/z; \
                    ln -s changed link; echo x > passing; rm passing; cat changed";

fn shown(Difference { change, .. }: &Difference) -> String {
    let sign = match (&change.before, &change.after) {
        (None, _) => '+',
        (Some(_), Some(_)) => '~',
        (Some(_), None) => '-',
    };
    format!("{sign}{}", change.path)
}

attack! {
    fn changes_are_kept_apart_and_listed(scene) {
        if scene.tier != Tier::Namespaces {
            return;
        }
        prepare(scene);
        let before = scene.outside("find . -type f | sort | xargs cat; find . | sort");
        let directory = scene.path("layers");
        let profile = Profile { staging: Some(directory.clone()), ..scene.profile() };
        let rehearsed = async {
            let child = scene.sandbox.launch(&profile, &sh(LINE).apply_mode(ApplyMode::AtEnd)).await.unwrap();
            (finish(&child).await, child.take_staged().unwrap())
        };
        let (outcome, layers) = scene.runtime.block_on(rehearsed);
        assert_eq!((outcome.output.as_str(), outcome.errors.as_str()), ("after\n", ""), "it sees its own changes");
        let after = scene.outside("find . -type f | sort | xargs cat; find . | sort");
        assert_eq!(before.output, after.output, "the workspace is as it was");
        let files = Roots::open(&scene.workspace()).unwrap();
        let listed: Vec<String> = layers.differences(&files).unwrap().all.iter().map(shown).collect();
        assert_eq!(listed.join(" "), "~becomes-directory +becomes-directory/y ~becomes-file -becomes-file/x ~changed \
                    -directory/deep/gone -emptied -emptied/one -gone +link +made +made/deep +made/deep/z ~mode +replaced/new -replaced/old ~same");
        drop(layers);
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 0, "nothing is left");
    }
}
