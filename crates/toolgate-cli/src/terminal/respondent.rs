//! The agent's own questions in the terminal: a number for a choice, or words.

use toolgate_contract::{Answered, BoxFuture, CancellationToken, Inquiry};
use toolgate_runtime::Respondent;

use super::question::{Question, read_line};
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
            let question = Question::open();
            let withdrawn = question.withdrawn.clone();
            // Waiting for a line blocks, so it happens beside the runtime; a cancelled call doesn't wait for it.
            let asked = tokio::task::spawn_blocking(move || converse(&inquiry, &by, &withdrawn));
            let answer = asked.await.unwrap_or(None);
            question.close();
            answer
        })
    }
}

/// Asks here and now.
pub(crate) fn inquire_here(inquiry: &Inquiry, by: &str) -> Option<Answered> {
    converse(inquiry, by, &CancellationToken::new())
}

fn converse(inquiry: &Inquiry, by: &str, withdrawn: &CancellationToken) -> Option<Answered> {
    show_inquiry(inquiry);
    loop {
        anstream::eprint!("{} ", paint(BOLD, "Your answer:"));
        match inquiry.answer(&read_line(withdrawn)?, by) {
            Some(answer) => return Some(answer),
            None => anstream::eprintln!("{}", please(inquiry)),
        }
    }
}

/// The question and the answers to choose from.
pub(crate) fn show_inquiry(inquiry: &Inquiry) {
    anstream::eprintln!("{} {}", paint(BLUE.bold(), "?"), paint(BOLD, plain(&inquiry.question)));
    for (number, choice) in (1..).zip(&inquiry.choices) {
        let more = choice.description.as_ref().map(|words| paint(DIM, format!(" – {}", plain(words))));
        anstream::eprintln!("  [{number}] {}{}", plain(&choice.label), more.unwrap_or_default());
    }
}

fn please(inquiry: &Inquiry) -> &'static str {
    match (inquiry.choices.is_empty(), inquiry.free_text) {
        (true, _) => "Please type an answer, then Enter.",
        (false, true) => "Please type one of the numbers, or an answer of your own, then Enter.",
        (false, false) => "Please type one of the numbers, then Enter.",
    }
}
