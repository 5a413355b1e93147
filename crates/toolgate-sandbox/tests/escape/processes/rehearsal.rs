//! A rehearsed command sees its changes; the workspace doesn't get them; the list of them is complete.

use std::fs;

use toolgate_sandbox::process::{ChangeKind, Command, Tier};

use super::scene::{Scene, attack, finish};

fn prepare(scene: &Scene) {
    let workspace = scene.workspace();
    for folder in ["folder/deep", "emptied", "replaced", "becomes-file"] {
        fs::create_dir_all(workspace.join(folder)).unwrap();
    }
    for file in [
        "changed",
        "same",
        "mode",
        "gone",
        "folder/deep/gone",
        "emptied/one",
        "replaced/old",
        "becomes-file/x",
        "becomes-folder",
    ] {
        fs::write(workspace.join(file), "before").unwrap();
    }
}

const LINE: &str = "echo after > changed; printf before > same; chmod 700 mode; rm gone; rm folder/deep/gone; rm -r emptied; \
                    rm -r replaced; mkdir replaced; echo new > replaced/new; rm -r becomes-file; echo x > becomes-file; \
                    rm becomes-folder; mkdir becomes-folder; echo x > becomes-folder/y; mkdir -p made/deep; echo x > made/deep/z; \
                    ln -s changed link; echo x > passing; rm passing; cat changed";

attack! {
    fn changes_are_kept_apart_and_listed(scene) {
        if scene.tier != Tier::Namespaces {
            return;
        }
        prepare(scene);
        let before = scene.outside("find . -type f | sort | xargs cat; find . | sort");
        let folder = scene.path("rehearsal");
        fs::create_dir(&folder).unwrap();
        let rehearsed = async {
            let (mut running, rehearsal) = scene.sandbox.rehearse(&scene.profile(), &Command::shell(LINE), &folder).await.unwrap();
            (finish(&mut running).await, rehearsal)
        };
        let (outcome, rehearsal) = scene.runtime.block_on(rehearsed);
        assert_eq!((outcome.output.as_str(), outcome.errors.as_str()), ("after\n", ""), "it sees its own changes");
        let after = scene.outside("find . -type f | sort | xargs cat; find . | sort");
        assert_eq!(before.output, after.output, "the workspace is as it was");
        let changes = rehearsal.changes().unwrap();
        let words = |kind| match kind { ChangeKind::Created => '+', ChangeKind::Changed => '~', ChangeKind::Deleted => '-' };
        let workspace = scene.workspace();
        let listed: Vec<String> = changes.iter().map(|change| {
            format!("{}{}", words(change.kind), change.path.strip_prefix(&workspace).unwrap().display())
        }).collect();
        assert_eq!(listed.join(" "), "+becomes-file -becomes-file -becomes-file/x ~becomes-folder +becomes-folder/y ~changed -emptied \
                    -emptied/one -folder/deep/gone -gone +link +made +made/deep +made/deep/z ~mode +replaced/new -replaced/old");
        drop(rehearsal);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0, "nothing is left");
    }
}
