//! Puts the agent's own questions to the person at the client: answers to choose from, free text, or both.

use serde_json::{Value, json};
use toolgate_contract::{BoxFuture, Choice, Question, QuestionAnswer, QuestionOutcome};
use toolgate_runtime::QuestionAnswerer;

use crate::elicitation::{self, Elicitor, escape_control, form_field};

/// The choice to answer freely. Some clients don't submit a form while a text field in it is empty, so the text is asked for
/// in a second form, and only then.
const OWN_WORDS: &str = "(in my own words)";

impl QuestionAnswerer for Elicitor {
    fn answer<'a>(&'a self, call: &'a str, question: &'a Question) -> BoxFuture<'a, QuestionOutcome> {
        Box::pin(async move {
            let shown = self.show(call, "answer", |is_stateless| form(question, is_stateless)).await;
            match shown {
                None => QuestionOutcome::Nobody,
                Some((answer, _)) if wants_own_words(&answer, question) => {
                    let words = self.show(call, "words", |_| words_form(question)).await;
                    words.map_or(QuestionOutcome::Nobody, |(answer, by)| read(&answer, question, by))
                }
                Some((answer, by)) => read(&answer, question, by),
            }
        })
    }

    fn sample<'a>(&'a self, call: &'a str, request: &'a Value) -> BoxFuture<'a, Option<Value>> {
        Box::pin(self.sampled(call, request.clone()))
    }
}

fn form(question: &Question, is_stateless: bool) -> Value {
    if question.choices.is_empty() {
        return words_form(question);
    }
    let title = |choice: &Choice| match &choice.description {
        Some(words) => format!("{}: {}", escape_control(&choice.label), escape_control(words)),
        None => escape_control(&choice.label),
    };
    let mut choices: Vec<(&str, String)> =
        question.choices.iter().map(|choice| (choice.label.as_str(), title(choice))).collect();
    if question.free_text {
        choices.push((OWN_WORDS, "Something else, in my own words".to_owned()));
    }
    let fields = json!({ "choice": elicitation::choice("Your answer", &choices, is_stateless) });
    elicitation::form(&escape_control(&question.question), fields, &["choice"])
}

fn words_form(question: &Question) -> Value {
    let fields = json!({ "words": { "type": "string", "title": "Your answer" } });
    elicitation::form(&escape_control(&question.question), fields, &["words"])
}

fn wants_own_words(answer: &Value, question: &Question) -> bool {
    let is_accepted = answer.get("action").and_then(Value::as_str) == Some("accept");
    is_accepted && question.free_text && form_field(answer, "choice") == OWN_WORDS
}

/// Reads the answer. Free text counts where the question allows it; of choices, only those that were offered.
fn read(answer: &Value, question: &Question, by: String) -> QuestionOutcome {
    if answer.get("action").and_then(Value::as_str) != Some("accept") {
        return QuestionOutcome::Dismissed { by };
    }
    let (words, chosen) = (form_field(answer, "words"), form_field(answer, "choice"));
    if !words.is_empty() && (question.free_text || question.choices.is_empty()) {
        return QuestionOutcome::Answered(QuestionAnswer { answer: words.to_owned(), choice: None, by });
    }
    match question.choices.iter().position(|choice| choice.label.trim() == chosen) {
        Some(index) => {
            let answer = question.choices[index].label.clone();
            QuestionOutcome::Answered(QuestionAnswer { answer, choice: Some(index), by })
        }
        None => QuestionOutcome::Dismissed { by },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(labels: &[&str], free_text: bool) -> Question {
        let choice = |label: &&str| Choice { label: (*label).to_owned(), description: Some("why\u{1b}".into()) };
        Question { question: "Which?\u{1b}[2J".into(), choices: labels.iter().map(choice).collect(), free_text }
    }

    #[test]
    fn a_form_has_the_fields_that_the_question_needs_and_nothing_that_a_screen_obeys() {
        for (labels, free_text, fields, required) in [
            (&[][..], true, vec!["words"], 1),
            (&["left", "right"], false, vec!["choice"], 1),
            (&["left", "right"], true, vec!["choice"], 1),
        ] {
            for is_stateless in [true, false] {
                let form = form(&question(labels, free_text), is_stateless);
                let schema = &form["requestedSchema"];
                assert!(schema["properties"].as_object().unwrap().keys().eq(&fields), "{schema}");
                assert_eq!(schema["required"].as_array().unwrap().len(), required, "{schema}");
                assert!(!form.to_string().contains("\\u001b"), "{form}");
            }
        }
    }

    #[test]
    fn only_what_was_offered_is_an_answer() {
        let says = |fields: Value, free_text| {
            let answer = json!({ "action": "accept", "content": fields });
            let answered = read(&answer, &question(&["left", "right"], free_text), "ada".into());
            match answered {
                QuestionOutcome::Answered(answered) => Some((answered.answer, answered.choice)),
                _ => None,
            }
        };
        let chose = |label: &str, choice| Some((label.to_owned(), choice));
        assert_eq!(says(json!({ "choice": "right" }), false), chose("right", Some(1)));
        assert_eq!(says(json!({ "choice": "up" }), true), None);
        assert_eq!(says(json!({ "words": "up" }), true), chose("up", None));
        assert_eq!(says(json!({ "choice": "left", "words": "up" }), true), chose("up", None));
        assert_eq!(says(json!({ "choice": "left", "words": "up" }), false), chose("left", Some(0)));
        assert_eq!(says(json!({}), true), None);
        for action in ["decline", "cancel", ""] {
            let answer = json!({ "action": action, "content": { "choice": "left" } });
            let dismissed = QuestionOutcome::Dismissed { by: "ada".into() };
            assert_eq!(read(&answer, &question(&["left"], true), "ada".into()), dismissed, "{action}");
        }
    }
}
