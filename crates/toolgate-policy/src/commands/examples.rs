//! The examples that stand in the tables themselves, tried.

use super::simple_command::{Need, SimpleCommand, Touch};
use super::{PathContext, dangers, forms, read};

/// One example of a table.
pub(crate) struct TableExample {
    /// What it is an example of.
    pub(crate) rule: String,
    /// The command, and for a form what should be told of it.
    pub(crate) example: String,
    /// Whether it should match.
    pub(crate) expected: bool,
    /// Whether it does.
    pub(crate) matched: bool,
}

/// Every example of every table.
pub(crate) fn examples() -> impl Iterator<Item = TableExample> {
    let ground = PathContext::new(["/home/me/project"], "/home/me");
    let same = ground.clone();
    let forms = forms::examples().map(move |(command, expected)| {
        let matched = is_told(command, expected, &ground);
        TableExample { rule: format!("known: {expected}"), example: command.to_owned(), expected: true, matched }
    });
    let dangers = dangers::examples().map(move |(rule, command, expected)| {
        let matched = read(command, ".", &same).parts.iter().any(|part| !part.dangers.is_empty());
        TableExample { rule, example: command.to_owned(), expected, matched }
    });
    forms.chain(dangers)
}

/// Whether a command comes to what a table says: `read a, write b, needs git.write, runs, part: rm a`.
fn is_told(command: &str, expected: &str, ground: &PathContext) -> bool {
    let mut expected: Vec<String> =
        expected.split(", ").filter(|word| *word != "nothing").map(|word| tidied(word, ground)).collect();
    let mut told = told(command, ground);
    // Of what is unclear no more need be said.
    if expected == ["unclear"] {
        told.retain(|word| word == "unclear");
    }
    expected.sort();
    told.sort();
    told == expected
}

/// A reading in the words of the tables.
fn told(command: &str, ground: &PathContext) -> Vec<String> {
    let reading = read(command, ".", ground);
    let mut parts = reading.parts.iter();
    let mut told: Vec<String> = parts.next().map(|part| told_of(part, ground)).unwrap_or_default();
    told.extend(parts.map(|part| format!("part: {}", part.text())));
    told.extend(reading.fault.is_some().then(|| "unclear".to_owned()));
    told
}

fn told_of(part: &SimpleCommand, ground: &PathContext) -> Vec<String> {
    let touches = part.touches.iter().map(|touch| match touch {
        Touch::Host { name, port } => format!("connect {name}:{port}"),
        Touch::Path { access, path, .. } => format!("{} {}", format!("{access:?}").to_lowercase(), ground.shown(path)),
    });
    let needs = part.needs.iter().map(|need| match need {
        Need::Permission(permission) => format!("needs {permission}"),
        Need::Privilege => "needs privilege".to_owned(),
    });
    let flags = [("unclear", !part.unclear.is_empty()), ("runs", part.runs), ("danger", !part.dangers.is_empty())];
    let flags = flags.into_iter().filter(|(_, holds)| *holds).map(|(word, _)| word.to_owned());
    touches.chain(needs).chain(flags).collect()
}

/// A path in an example is written as it would be typed.
fn tidied(expected: &str, ground: &PathContext) -> String {
    match expected.split_once(' ') {
        Some((access @ ("read" | "write" | "delete"), path)) => {
            format!("{access} {}", ground.shown(&PathContext::resolve(ground.workspace(), path)))
        }
        _ => expected.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_example_of_the_tables_holds() {
        let all: Vec<TableExample> = examples().collect();
        let wrong = all.iter().filter(|tried| tried.expected != tried.matched);
        let ground = PathContext::new(["/home/me/project"], "/home/me");
        let wrong: Vec<String> = wrong
            .map(|tried| format!("{} ({}) told {:?}", tried.example, tried.rule, told(&tried.example, &ground)))
            .collect();
        assert!(wrong.is_empty(), "{} of {} are wrong:\n{}", wrong.len(), all.len(), wrong.join("\n"));
        assert!(all.len() >= 1000, "{}", all.len());
    }

    #[test]
    fn several_hundred_forms_are_known() {
        assert!(forms::count() >= 400, "{}", forms::count());
    }
}
