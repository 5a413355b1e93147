//! Commands that are to change nothing: whatever they try, the workspace stays as it is, and it is known what they tried.

use std::fs;

use toolgate_contract::{ApplyMode, ChildProcess, LaunchSpec};

use super::scene::{Scene, attack, finish, sh};

fn reading(line: &str) -> LaunchSpec {
    sh(line).apply_mode(ApplyMode::None)
}

/// Runs a line that may only read. Gives its output, and what it tried to change.
fn read_only(scene: &Scene, line: &str) -> (String, Vec<String>) {
    scene.runtime.block_on(async {
        let child = scene.sandbox.launch(&scene.profile(), &reading(line)).await.unwrap();
        let outcome = finish(&child).await;
        (outcome.output, child.refused_changes(&outcome.errors))
    })
}

attack! {
    fn what_only_reads_changes_nothing(scene) {
        let workspace = scene.workspace();
        fs::create_dir_all(workspace.join("sub")).unwrap();
        fs::write(workspace.join("a.txt"), "one\n").unwrap();
        fs::write(workspace.join("sub/b.txt"), "two\n").unwrap();
        let lines = [
            ("echo x >> a.txt", "a.txt"),
            ("echo x > new", "new"),
            ("rm sub/b.txt", "sub/b.txt"),
            ("mv a.txt c.txt", "a.txt"),
            ("mkdir deep", "deep"),
            ("ln -s a.txt link", "link"),
        ];
        for (line, path) in lines {
            let (_, tried) = read_only(scene, line);
            assert!(tried.iter().any(|tried| tried == path), "{line}: {tried:?}");
        }
        let silent = "chmod 600 a.txt; touch -d 2020-01-01 a.txt; python3 -c 'import os; os.truncate(\"a.txt\", 0)'";
        read_only(scene, silent);
        let mut left: Vec<_> = fs::read_dir(&workspace).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, [".env", "a.txt", "sub"]);
        assert_eq!(fs::read_to_string(workspace.join("a.txt")).unwrap(), "one\n");
        assert_eq!(fs::read_to_string(workspace.join("sub/b.txt")).unwrap(), "two\n");
        assert!(scene.inside("echo x >> a.txt && rm sub/b.txt").worked(), "others can change it");
    }
}

attack! {
    fn what_only_reads_can_read_and_has_a_place_for_temporary_files(scene) {
        fs::write(scene.workspace().join("a.txt"), "one\n").unwrap();
        let (output, tried) = read_only(scene, "cat a.txt; ls; cat missing; cat < a.txt > /dev/null; echo $GIT_OPTIONAL_LOCKS");
        assert_eq!((output.as_str(), tried), ("one\na.txt\n0\n", Vec::new()));
        if scene.has_namespaces() {
            let (output, tried) = read_only(scene, "sort a.txt > /tmp/x && cat /tmp/x; sort <<END\nhere\nEND\n");
            assert_eq!((output.as_str(), tried), ("one\nhere\n", Vec::new()));
        }
    }
}
