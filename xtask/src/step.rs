//! Named steps that run one after the other until one fails, and the table that says at the end how each went.

use std::fmt;
use std::time::{Duration, Instant};

use anyhow::{Error, Result};

use crate::command_line::CommandLine;

/// One thing to do, with a name to call it by alone.
pub(crate) struct TestStep {
    pub(crate) name: &'static str,
    purpose: &'static str,
    act: Box<dyn Fn() -> Result<StepOutcome>>,
}

/// How a step ended that did not fail.
pub(crate) enum StepOutcome {
    Passed,
    /// Passed, with something that the reader should know.
    PassedWith(String),
    /// Not done, with the reason and the way to have it done.
    Skipped(String),
}

impl TestStep {
    pub(crate) fn new(
        name: &'static str,
        purpose: &'static str,
        act: impl Fn() -> Result<StepOutcome> + 'static,
    ) -> Self {
        Self { name, purpose, act: Box::new(act) }
    }

    /// A step that is just one command.
    pub(crate) fn command(name: &'static str, purpose: &'static str, line: CommandLine) -> Self {
        Self::new(name, purpose, move || line.run().map(|()| StepOutcome::Passed))
    }
}

/// How all steps went; shown as a table.
pub(crate) struct StepSummary {
    rows: Vec<SummaryRow>,
    /// The step that failed, and why.
    pub(crate) failure: Option<(&'static str, Error)>,
}

struct SummaryRow {
    name: &'static str,
    ending: &'static str,
    took: Option<Duration>,
    note: String,
}

/// Runs the steps in order, each under its heading. After a failure the rest are only listed.
pub(crate) fn run_in_order(steps: &[TestStep]) -> StepSummary {
    let mut summary = StepSummary { rows: Vec::new(), failure: None };
    for step in steps {
        if summary.failure.is_some() {
            summary.rows.push(SummaryRow { name: step.name, ending: "not run", took: None, note: String::new() });
            continue;
        }
        println!("\n== {}: {} ==", step.name, step.purpose);
        let start = Instant::now();
        let result = (step.act)();
        let took = Some(start.elapsed());
        let (ending, note) = match result {
            Ok(StepOutcome::Passed) => ("passed", String::new()),
            Ok(StepOutcome::PassedWith(note)) => ("passed", note),
            Ok(StepOutcome::Skipped(reason)) => ("skipped", reason),
            Err(error) => {
                summary.failure = Some((step.name, error));
                ("FAILED", String::new())
            }
        };
        if !note.is_empty() {
            println!("{ending}: {note}");
        }
        summary.rows.push(SummaryRow { name: step.name, ending, took, note });
    }
    summary
}

impl fmt::Display for StepSummary {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "== summary ==")?;
        for SummaryRow { name, ending, took, note } in &self.rows {
            let took = took.map(readable).unwrap_or_default();
            let line = format!("{name:<8}  {ending:<7}  {took:>8}  {note}");
            writeln!(formatter, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

fn readable(duration: Duration) -> String {
    match duration.as_secs() {
        seconds if seconds < 60 => format!("{:.1} s", duration.as_secs_f64()),
        seconds => format!("{} m {:02} s", seconds / 60, seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use anyhow::bail;

    use super::*;

    fn without_times(mut summary: StepSummary) -> StepSummary {
        summary.rows.iter_mut().filter(|row| row.took.is_some()).for_each(|row| row.took = Some(Duration::ZERO));
        summary
    }

    #[test]
    fn the_first_failure_stops_the_rest() {
        let summary = without_times(run_in_order(&[
            TestStep::new("first", "passes", || Ok(StepOutcome::Passed)),
            TestStep::new("second", "has a note", || Ok(StepOutcome::PassedWith("by another way".into()))),
            TestStep::new("third", "is skipped", || Ok(StepOutcome::Skipped("nothing to do it with".into()))),
            TestStep::new("fourth", "fails", || bail!("broken")),
            TestStep::new("fifth", "is never reached", || unreachable!("a step ran after a failure")),
        ]));
        let expected = "\
== summary ==
first     passed      0.0 s
second    passed      0.0 s  by another way
third     skipped     0.0 s  nothing to do it with
fourth    FAILED      0.0 s
fifth     not run
";
        assert_eq!(summary.to_string(), expected);
        let (name, error) = summary.failure.unwrap();
        assert_eq!((name, error.to_string().as_str()), ("fourth", "broken"));
    }

    #[test]
    fn durations_read_as_a_person_says_them() {
        let cases = [(340, "0.3 s"), (59_000, "59.0 s"), (60_000, "1 m 00 s"), (754_000, "12 m 34 s")];
        for (milliseconds, expected) in cases {
            assert_eq!(readable(Duration::from_millis(milliseconds)), expected);
        }
    }
}
