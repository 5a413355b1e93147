//! `toolgate audit`: a run that is gone is found, and what a person did on purpose can be accepted.

use serde_json::json;

use crate::world::World;

fn three_runs() -> (World, Vec<String>) {
    let world = World::new();
    let runs = (0..3).map(|_| {
        world.call("read", json!({"path": "hello.txt"}));
        world.last_run().file_name().unwrap().to_str().unwrap().to_owned()
    });
    let runs = runs.collect();
    (world, runs)
}

#[test]
fn a_run_that_is_gone_is_found_until_it_is_accepted() {
    let (world, runs) = three_runs();
    assert_eq!(world.run(&["audit", "verify"]).code, 0);
    std::fs::remove_dir_all(world.workspace().join(".toolgate/runs").join(&runs[1])).unwrap();
    let said = world.run(&["audit", "verify"]);
    assert_eq!(said.code, 1, "{said:?}");
    let line = said.out.lines().find(|line| line.contains(&runs[1])).unwrap();
    assert!(
        line.contains("The run is gone") && line.contains("was last seen 20") && line.contains("4 events"),
        "{line}"
    );
    assert!(said.err.contains("toolgate audit accept"), "{said:?}");
    let lines = world.run(&["--json", "audit", "verify"]).out;
    let gone = lines.lines().find(|line| line.contains(r#""gone":true"#)).expect("a line for programs");
    assert!(gone.contains(&runs[1]) && gone.contains("last_seen"), "{gone}");
    assert_eq!(world.run(&["audit", "verify", &runs[1]]).code, 1, "it can be asked for by name");
    assert_eq!(world.run(&["audit", "verify", &runs[0]]).code, 0, "the others are fine");

    let accepted = world.run(&["audit", "accept"]);
    assert!(accepted.code == 0 && accepted.out.contains(&runs[1]), "{accepted:?}");
    let said = world.run(&["audit", "verify"]);
    assert!(said.code == 0 && said.out.contains("1 of them removed by you"), "{said:?}");
    let nothing = world.run(&["audit", "accept"]);
    assert!(nothing.out.contains("nothing to accept"), "{nothing:?}");
}

#[test]
fn last_and_the_beginning_of_an_id_name_a_run() {
    let (world, runs) = three_runs();
    let last = world.run(&["audit", "verify", "last"]);
    assert_eq!((last.code, last.out.lines().count()), (0, 1), "{last:?}");
    assert!(last.out.contains(&runs[2]), "{last:?}");
    let all_but_one = &runs[0][..runs[0].len() - 1];
    assert!(world.run(&["audit", "verify", all_but_one]).out.contains(&runs[0]));
    assert_eq!(world.run(&["audit", "verify", "run_"]).code, 2, "it matches three");
    assert_eq!(world.run(&["audit", "verify", "run_none"]).code, 2);
    std::fs::remove_dir_all(world.last_run()).unwrap();
    let last = world.run(&["audit", "verify", "last"]);
    assert!(last.code == 1 && last.out.contains(&runs[2]), "the last run can be one that is gone: {last:?}");
}

#[test]
fn the_list_is_missed_too_and_a_record_that_came_with_a_repository_is_not_ours() {
    let (world, _) = three_runs();
    std::fs::remove_dir_all(world.workspace().join(".toolgate")).unwrap();
    let said = world.run(&["audit", "verify"]);
    assert!(said.code == 1 && said.out.contains("The list of runs is gone. It had 7 entries"), "{said:?}");
    world.call("list", json!({}));
    assert_eq!(world.run(&["audit", "verify"]).code, 1, "a later run doesn't hide it");

    let (other, _) = three_runs();
    let mine = World::new();
    let copied = mine.command("cp").arg("-a").arg(other.workspace().join(".toolgate")).arg(mine.workspace()).status();
    assert!(copied.unwrap().success());
    let said = mine.run(&["audit", "verify"]);
    assert!(said.out.contains("Found 1 other list of runs without a signature by your key"), "{said:?}");
    assert!(said.out.contains("There is no list of runs of yours yet"), "{said:?}");
}
