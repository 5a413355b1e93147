//! Which tools are offered: a long list costs a model's attention, so it can be narrowed by name or by set.

use std::collections::BTreeSet;

use anyhow::{Result, bail};
use toolgate_contract::Declaration;
use toolgate_policy::Ceiling;

/// Sets that have a name. `all` narrows nothing.
const SETS: &[(&str, &[&str])] = &[
    ("reading", &["artifact", "find", "grep", "image", "list", "read", "stat"]),
    (
        "files",
        &[
            "artifact", "delete", "edit", "find", "grep", "image", "list", "move", "patch", "read", "stat", "undo",
            "write",
        ],
    ),
];

/// Tools whose results lead to other tools: long output to `artifact`, a command that goes on to `process`.
const COMPANIONS: &[(&str, &[&str])] = &[
    ("shell", &["process", "artifact"]),
    ("script", &["process", "artifact"]),
    ("fetch", &["artifact"]),
    ("grep", &["artifact"]),
];

/// What the words of `--tools` come to: these tools, and those that their results lead to.
pub(super) fn ceilings<'a>(words: &[String], known: impl Iterator<Item = &'a Declaration>) -> Result<Vec<Ceiling>> {
    if words.is_empty() || words.iter().any(|word| word == "all") {
        return Ok(Vec::new());
    }
    let known: BTreeSet<&str> = known.map(|tool| tool.name.as_str()).collect();
    let mut tools = BTreeSet::new();
    for word in words {
        match SETS.iter().find(|(name, _)| name == word) {
            Some((_, set)) => tools.extend(set.iter().map(|name| (*name).to_owned())),
            None if known.contains(word.as_str()) => drop(tools.insert(word.clone())),
            None => {
                let sets: Vec<&str> = SETS.iter().map(|(name, _)| *name).chain(["all"]).collect();
                let known: Vec<&str> = known.into_iter().collect();
                bail!("there is no tool `{word}`; there are {}, and the sets {}", known.join(", "), sets.join(", "));
            }
        }
    }
    for (tool, companions) in COMPANIONS {
        if tools.contains(*tool) {
            tools.extend(companions.iter().map(|name| (*name).to_owned()));
        }
    }
    Ok(vec![Ceiling { source: "`--tools`".into(), tools: tools.into_iter().collect() }])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_brings_along_what_its_results_lead_to() {
        let registered = toolgate_tools::all();
        let known = || registered.iter().map(|tool| tool.declaration());
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let of = |asked: &[&str]| ceilings(&words(asked), known()).unwrap().remove(0).tools;
        assert_eq!(of(&["read", "edit", "shell"]), words(&["artifact", "edit", "process", "read", "shell"]));
        assert_eq!(of(&["read", "edit"]), words(&["edit", "read"]));
        assert!(ceilings(&words(&["raed"]), known()).is_err());
        assert!(ceilings(&words(&["all", "read"]), known()).unwrap().is_empty());
    }
}
