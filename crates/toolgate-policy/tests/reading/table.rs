//! A table of commands that people and agents type, with the expected result of each: `commands/*.toml`.

use toolgate_policy::Policy;

use crate::world::{Defaults, Expected, HOME, judge, policy, tables, word};

struct Presets {
    workspace: Policy,
    read_only: Policy,
}

#[test]
fn every_command_of_the_table_is_judged_as_expected() {
    let presets = Presets { workspace: policy("preset = 'workspace'"), read_only: policy("preset = 'read-only'") };
    let (mut count, mut wrong) = (0, Vec::new());
    for (name, table) in tables() {
        for row in &table.commands {
            count += 1;
            let faults = faults(row, &table.defaults, &presets);
            if !faults.is_empty() {
                wrong.push(format!("[{name}] {}\n    {}", row.run, faults.join("\n    ")));
            }
        }
    }
    assert!(count >= 1_400, "{count}");
    assert!(wrong.is_empty(), "{} of {count} are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn the_table_holds_enough_of_each_kind() {
    let count = |wanted: &str| {
        let rows = tables().into_iter().filter(|(name, _)| *name == wanted).flat_map(|(_, table)| table.commands);
        rows.map(|row| row.run).collect::<std::collections::BTreeSet<_>>().len()
    };
    assert!(
        count("harmless") >= 200 && count("confined") >= 100 && count("dangerous") >= 200 && count("middle") >= 100
    );
}

/// What is wrong with one row, one fault per line.
fn faults(row: &Expected, defaults: &Defaults, presets: &Presets) -> Vec<String> {
    let mut faults = decisions(&presets.workspace, row, row.workspace.as_ref().unwrap_or(&defaults.workspace));
    faults.extend(decisions(&presets.read_only, row, row.read_only.as_ref().unwrap_or(&defaults.read_only)));
    let explained = presets.workspace.explain(&row.run, ".");
    if let Some(expected) = &row.effects {
        let expected = expected.iter().map(|effect| effect.replace('~', HOME));
        let told = explained.effects().map(|effect| effect.to_string().replace("connect to", "connect"));
        let (expected, told) = (sorted(expected), sorted(told));
        if expected != told {
            faults.push(format!("effects: expected {expected:?}, told {told:?}"));
        }
    }
    if let Some(expected) = &row.parts {
        let expected: Vec<String> = expected.iter().map(|part| part.replace(" ~", &format!(" {HOME}"))).collect();
        let parts = explained.parts.iter().filter(|part| !part.is_wrapper && !part.words.is_empty());
        let told: Vec<String> = parts.map(|part| part.words.join(" ")).collect();
        if expected != told {
            faults.push(format!("parts: expected {expected:?}, told {told:?}"));
        }
    }
    faults
}

fn decisions(policy: &Policy, row: &Expected, expected: &str) -> Vec<String> {
    let verdict = judge(policy, &row.run);
    let told = word(&verdict);
    if expected.split(" or ").any(|expected| expected == told) {
        return Vec::new();
    }
    let by = &verdict.decided_by;
    vec![format!("{}: expected {expected}, told {told}: {} ({})", policy.preset(), by.reason, by.name.rule)]
}

fn sorted(words: impl Iterator<Item = String>) -> Vec<String> {
    let mut words: Vec<String> = words.collect();
    words.sort();
    words.dedup();
    words
}
