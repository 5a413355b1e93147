//! Checks the examples in the tables themselves.

use toolgate_contract::{Layer, RuleName};

use super::simple_command::{Need, SimpleCommand, Touch};
use super::{PathContext, analyze, dangers, forms};
use crate::policy::{BUILT_IN, ExampleResult};

/// Every example of every table.
pub(crate) fn examples() -> impl Iterator<Item = ExampleResult> {
    let paths = PathContext::new(["/home/me/project"], "/home/me");
    let danger_paths = paths.clone();
    let forms = forms::examples().map(move |(command, expected)| {
        let matched = matches_description(command, expected, &paths);
        built_in(format!("known: {expected}"), command, true, matched)
    });
    let dangers = dangers::examples().map(move |(rule, command, expected)| {
        let matched = analyze(command, ".", &danger_paths).parts.iter().any(|part| !part.dangers.is_empty());
        built_in(rule, command, expected, matched)
    });
    forms.chain(dangers)
}

fn built_in(rule: String, command: &str, expected: bool, matched: bool) -> ExampleResult {
    let name = RuleName { rule, layer: Layer::Builtin };
    ExampleResult { name, source: BUILT_IN.into(), example: command.to_owned(), expected, matched }
}

/// Whether the analysis of a command is what a table says: `read a, write b, needs git.write, runs, part: rm a`.
fn matches_description(command: &str, expected: &str, paths: &PathContext) -> bool {
    let mut expected: Vec<String> =
        expected.split(", ").filter(|word| *word != "nothing").map(|word| normalized(word, paths)).collect();
    let mut actual = describe(command, paths);
    // If something is unclear, the rest doesn't matter.
    if expected == ["unclear"] {
        actual.retain(|word| word == "unclear");
    }
    expected.sort();
    actual.sort();
    actual == expected
}

/// An analysis in the words of the tables.
fn describe(command: &str, paths: &PathContext) -> Vec<String> {
    let analysis = analyze(command, ".", paths);
    let mut parts = analysis.parts.iter();
    let mut actual: Vec<String> = parts.next().map(|part| describe_part(part, paths)).unwrap_or_default();
    actual.extend(parts.map(|part| format!("part: {}", part.text())));
    actual.extend(analysis.fault.is_some().then(|| "unclear".to_owned()));
    actual
}

fn describe_part(part: &SimpleCommand, paths: &PathContext) -> Vec<String> {
    let touches = part.touches.iter().map(|touch| match touch {
        Touch::Host { name, port } => format!("connect {name}:{port}"),
        Touch::Path { access, path, .. } => format!("{} {}", format!("{access:?}").to_lowercase(), paths.shown(path)),
    });
    let needs = part.needs.iter().map(|need| match need {
        Need::Permission(permission) => format!("needs {permission}"),
        Need::Privilege => "needs privilege".to_owned(),
    });
    let flags = [("unclear", !part.unclear.is_empty()), ("runs", part.runs_code), ("danger", !part.dangers.is_empty())];
    let flags = flags.into_iter().filter(|(_, holds)| *holds).map(|(word, _)| word.to_owned());
    touches.chain(needs).chain(flags).collect()
}

/// A path in an example, in the form in which it is shown.
fn normalized(expected: &str, paths: &PathContext) -> String {
    match expected.split_once(' ') {
        Some((access @ ("read" | "write" | "delete"), path)) => {
            format!("{access} {}", paths.shown(&PathContext::resolve(paths.workspace(), path)))
        }
        _ => expected.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_example_of_the_tables_holds() {
        let all: Vec<ExampleResult> = examples().collect();
        let wrong = all.iter().filter(|result| result.expected != result.matched);
        let paths = PathContext::new(["/home/me/project"], "/home/me");
        let wrong: Vec<String> = wrong
            .map(|result| {
                format!("{} ({}) told {:?}", result.example, result.name.rule, describe(&result.example, &paths))
            })
            .collect();
        assert!(wrong.is_empty(), "{} of {} are wrong:\n{}", wrong.len(), all.len(), wrong.join("\n"));
        assert!(all.len() >= 1000, "{}", all.len());
    }

    #[test]
    fn several_hundred_forms_are_known() {
        assert!(forms::count() >= 400, "{}", forms::count());
    }
}
