//! What was found wrong in earlier answers, so that a later question can ask for what is new since one of them.

use std::collections::VecDeque;
use std::sync::Arc;

use toolgate_contract::{CodeAnswer, CodeDiagnostic, CodeFindings, DiagnosticsMark, ToolError};

use crate::diagnostics::not_in;

/// Answers that are remembered.
const MOST_MARKS: usize = 64;

/// The last answers, each with its mark.
#[derive(Default)]
pub(crate) struct DiagnosticsMarks {
    last: u64,
    answers: VecDeque<(String, Arc<[CodeDiagnostic]>)>,
}

impl DiagnosticsMarks {
    /// What was found wrong in the answer with this mark.
    pub(crate) fn found_at(&self, mark: &str) -> Result<Arc<[CodeDiagnostic]>, ToolError> {
        let known = self.answers.iter().find(|(name, _)| name == mark).map(|(_, found)| Arc::clone(found));
        known.ok_or_else(|| {
            let message = format!("No answer with the mark `{mark}` is remembered; the last {MOST_MARKS} are.");
            ToolError::invalid_args(message).with_hint("Leave `since` out, and use the `mark` of that answer.")
        })
    }

    /// Remembers an answer, and leaves in it what isn't in the earlier one.
    pub(crate) fn compare(&mut self, mut answer: CodeAnswer, before: Option<&[CodeDiagnostic]>) -> CodeAnswer {
        let CodeFindings::Diagnostics(found) = &mut answer.findings else { return answer };
        self.last += 1;
        let name = format!("d{}", self.last);
        self.answers.push_back((name.clone(), found.clone().into()));
        if self.answers.len() > MOST_MARKS {
            self.answers.pop_front();
        }
        let fixed = before.map(|before| not_in(found, before).iter().map(|one| one.severity).collect());
        if let Some(before) = before {
            *found = not_in(before, found);
        }
        answer.mark = Some(DiagnosticsMark { name, fixed });
        answer
    }
}

#[cfg(test)]
mod tests {
    use toolgate_contract::CodeSeverity;

    use super::*;

    fn answer(messages: &[&str]) -> CodeAnswer {
        let diagnostic = |message: &&str| CodeDiagnostic {
            path: "a.py".into(),
            line: 1,
            column: 1,
            severity: CodeSeverity::Warning,
            message: (*message).into(),
            source: None,
            code: None,
            text: None,
        };
        let findings = CodeFindings::Diagnostics(messages.iter().map(diagnostic).collect());
        CodeAnswer { servers: Vec::new(), findings, notes: Vec::new(), mark: None }
    }

    #[test]
    fn a_mark_tells_what_came_and_counts_what_went() {
        let mut marks = DiagnosticsMarks::default();
        let first = marks.compare(answer(&["old", "same"]), None).mark.unwrap();
        assert_eq!((first.name.as_str(), first.fixed), ("d1", None));
        let before = marks.found_at(&first.name).unwrap();
        let second = marks.compare(answer(&["same", "new"]), Some(&before));
        assert_eq!(second.findings, answer(&["new"]).findings);
        assert_eq!(second.mark.unwrap().fixed, Some(vec![CodeSeverity::Warning]));
        let third = marks.compare(answer(&["same", "new"]), Some(&marks.found_at("d2").unwrap()));
        assert_eq!(third.findings, answer(&[]).findings, "the whole earlier answer counts, not what it told");
    }

    #[test]
    fn old_marks_are_forgotten_and_said_to_be() {
        let mut marks = DiagnosticsMarks::default();
        (0..=MOST_MARKS).for_each(|_| drop(marks.compare(answer(&[]), None)));
        assert!(marks.found_at("d1").is_err() && marks.found_at("d2").is_ok());
    }
}
