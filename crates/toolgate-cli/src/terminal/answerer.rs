//! Asks the agent's questions in the terminal: the person types a number for a choice, or text.

use toolgate_contract::{BoxFuture, CancellationToken, Question, QuestionAnswer, QuestionOutcome};
use toolgate_runtime::QuestionAnswerer;

use super::prompt::{TerminalPrompt, read_line};
use super::{BLUE, BOLD, DIM, paint, plain};
use crate::output::{err, errln};

/// Asks the person at the terminal.
pub(crate) struct TerminalAnswerer {
    /// Their name, for the record.
    pub(crate) by: String,
}

impl QuestionAnswerer for TerminalAnswerer {
    fn answer<'a>(&'a self, _call: &'a str, question: &'a Question) -> BoxFuture<'a, QuestionOutcome> {
        Box::pin(async move {
            let (question, by) = (question.clone(), self.by.clone());
            let prompt = TerminalPrompt::open();
            let withdrawn = prompt.withdrawn.clone();
            let dismissed = QuestionOutcome::Dismissed { by: by.clone() };
            // Reading a line blocks, so it runs on a separate thread; a cancelled call doesn't wait for it.
            let asked = tokio::task::spawn_blocking(move || ask_person(&question, &by, &withdrawn));
            let answer = asked.await.unwrap_or(None);
            prompt.close();
            answer.map_or(dismissed, QuestionOutcome::Answered)
        })
    }
}

/// Asks now, and blocks until there is an answer.
pub(crate) fn prompt_for_answer(question: &Question, by: &str) -> Option<QuestionAnswer> {
    ask_person(question, by, &CancellationToken::new())
}

fn ask_person(question: &Question, by: &str, withdrawn: &CancellationToken) -> Option<QuestionAnswer> {
    show_question(question);
    loop {
        err!("{} ", paint(BOLD, "Your answer:"));
        match question.answer(&read_line(withdrawn)?, by) {
            Some(answer) => return Some(answer),
            None => errln!("{}", please(question)),
        }
    }
}

/// The question and the answers to choose from.
pub(crate) fn show_question(question: &Question) {
    question_lines(question).iter().for_each(|line| errln!("{line}"));
}

/// The lines of a question.
pub(crate) fn question_lines(question: &Question) -> Vec<String> {
    let mut lines = vec![format!("{} {}", paint(BLUE.bold(), "?"), paint(BOLD, plain(&question.question)))];
    for (number, choice) in (1..).zip(&question.choices) {
        let more = choice.description.as_ref().map(|words| paint(DIM, format!(" – {}", plain(words))));
        lines.push(format!("  [{number}] {}{}", plain(&choice.label), more.unwrap_or_default()));
    }
    lines
}

fn please(question: &Question) -> &'static str {
    match (question.choices.is_empty(), question.free_text) {
        (true, _) => "Please type an answer, then Enter.",
        (false, true) => "Please type one of the numbers, or an answer of your own, then Enter.",
        (false, false) => "Please type one of the numbers, then Enter.",
    }
}
