//! The agent's own questions in the terminal: a number for a choice, or words.

use std::io::BufRead;

use toolgate_contract::{Answered, BoxFuture, Inquiry};
use toolgate_runtime::Respondent;

use super::{BLUE, BOLD, DIM, paint, plain};

/// Asks whoever sits at the terminal.
pub(crate) struct TerminalRespondent {
    /// Their name, for the record.
    pub(crate) by: String,
}

impl Respondent for TerminalRespondent {
    fn answer<'a>(&'a self, _call: &'a str, inquiry: &'a Inquiry) -> BoxFuture<'a, Option<Answered>> {
        Box::pin(async move {
            let (inquiry, by) = (inquiry.clone(), self.by.clone());
            // Waiting for a line blocks, so it happens beside the runtime; a cancelled call doesn't wait for it.
            tokio::task::spawn_blocking(move || converse(&inquiry, &by)).await.unwrap_or(None)
        })
    }
}

fn converse(inquiry: &Inquiry, by: &str) -> Option<Answered> {
    anstream::eprintln!("{} {}", paint(BLUE.bold(), "?"), paint(BOLD, plain(&inquiry.question)));
    for (number, choice) in (1..).zip(&inquiry.choices) {
        let more = choice.description.as_ref().map(|words| paint(DIM, format!(" – {}", plain(words))));
        anstream::eprintln!("  [{number}] {}{}", plain(&choice.label), more.unwrap_or_default());
    }
    let mut lines = std::io::stdin().lock().lines();
    loop {
        anstream::eprint!("{} ", paint(BOLD, "Your answer:"));
        let line = lines.next()?.ok()?;
        match read_answer(line.trim(), inquiry) {
            Some((answer, choice)) => return Some(Answered { answer, choice, by: by.to_owned() }),
            None => anstream::eprintln!("{}", please(inquiry)),
        }
    }
}

fn please(inquiry: &Inquiry) -> &'static str {
    match (inquiry.choices.is_empty(), inquiry.free_text) {
        (true, _) => "Please type an answer, then Enter.",
        (false, true) => "Please type one of the numbers, or an answer of your own, then Enter.",
        (false, false) => "Please type one of the numbers, then Enter.",
    }
}

/// A line as an answer: a choice by its number or its label, or words where they will do.
pub(crate) fn read_answer(line: &str, inquiry: &Inquiry) -> Option<(String, Option<usize>)> {
    let by_number = line.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
    let chosen = by_number
        .filter(|index| *index < inquiry.choices.len())
        .or_else(|| inquiry.choices.iter().position(|choice| choice.label.eq_ignore_ascii_case(line)));
    match chosen {
        Some(index) => Some((inquiry.choices[index].label.clone(), Some(index))),
        None if inquiry.free_text && !line.is_empty() => Some((line.to_owned(), None)),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolgate_contract::Choice;

    #[test]
    fn only_what_was_offered_counts() {
        let choice = |label: &str| Choice { label: label.into(), description: None };
        let inquiry = |free_text| Inquiry {
            question: "Which?".into(),
            choices: vec![choice("Left"), choice("Right")],
            free_text,
        };
        for (line, free_text, expected) in [
            ("2", false, Some(("Right", Some(1)))),
            ("left", false, Some(("Left", Some(0)))),
            ("0", false, None),
            ("3", false, None),
            ("3", true, Some(("3", None))),
            ("neither", true, Some(("neither", None))),
            ("", true, None),
        ] {
            let answer = read_answer(line, &inquiry(free_text));
            let answer = answer.as_ref().map(|(text, choice)| (text.as_str(), *choice));
            assert_eq!(answer, expected, "{line}");
        }
    }
}
