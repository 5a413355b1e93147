//! Named steps that run one after the other until one fails: each says how far the run is and how long it took, and a
//! table says at the end how all of them went.

use std::fmt;
use std::time::{Duration, Instant};

use anyhow::{Error, Result};

use crate::command_line::CommandLine;
use crate::skip::{self, SkippedTest};

/// One thing to do, with a name to call it by alone. What it gives back is what it had to leave out.
pub(crate) struct TestStep {
    pub(crate) name: &'static str,
    purpose: &'static str,
    act: Box<dyn Fn() -> Result<Vec<SkippedTest>>>,
}

impl TestStep {
    pub(crate) fn new(
        name: &'static str,
        purpose: &'static str,
        act: impl Fn() -> Result<Vec<SkippedTest>> + 'static,
    ) -> Self {
        Self { name, purpose, act: Box::new(act) }
    }

    /// A step that is just one command.
    pub(crate) fn command(name: &'static str, purpose: &'static str, line: CommandLine) -> Self {
        Self::new(name, purpose, move || line.run().map(|()| Vec::new()))
    }
}

/// How all steps went; shown as a table.
pub(crate) struct StepSummary {
    rows: Vec<SummaryRow>,
    pub(crate) skips: Vec<SkippedTest>,
    /// The step that failed, and why.
    pub(crate) failure: Option<(&'static str, Error)>,
}

struct SummaryRow {
    name: &'static str,
    ending: &'static str,
    took: Option<Duration>,
    skips: usize,
}

/// Runs the steps in order, each under its heading. After a failure the rest are only listed.
pub(crate) fn run_in_order(steps: &[TestStep]) -> StepSummary {
    let mut summary = StepSummary { rows: Vec::new(), skips: Vec::new(), failure: None };
    let begun = Instant::now();
    for (number, step) in steps.iter().enumerate() {
        if summary.failure.is_some() {
            summary.rows.push(SummaryRow { name: step.name, ending: "not run", took: None, skips: 0 });
            continue;
        }
        let (position, so_far) = (format!("{}/{}", number + 1, steps.len()), readable(begun.elapsed()));
        println!("\n== {position} {}: {} (after {so_far}) ==", step.name, step.purpose);
        let row = summary.run(step);
        println!("== {position} {}: {} in {} ==", row.name, row.ending, row.took.map(readable).unwrap_or_default());
        summary.rows.push(row);
    }
    summary
}

impl StepSummary {
    fn run(&mut self, step: &TestStep) -> SummaryRow {
        let begun = Instant::now();
        let result = (step.act)();
        let took = Some(begun.elapsed());
        let (ending, skips) = match result {
            Ok(skips) => ("passed", skips),
            Err(error) => {
                self.failure = Some((step.name, error));
                ("FAILED", Vec::new())
            }
        };
        let row = SummaryRow { name: step.name, ending, took, skips: skips.len() };
        self.skips.extend(skips);
        row
    }
}

impl fmt::Display for StepSummary {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&skip::listed(&self.skips))?;
        writeln!(formatter, "== summary ==")?;
        for SummaryRow { name, ending, took, skips } in &self.rows {
            let took = took.map(readable).unwrap_or_default();
            let skips = if *skips > 0 { format!("{skips} skipped") } else { String::new() };
            let line = format!("{name:<8}  {ending:<7}  {took:>10}  {skips}");
            writeln!(formatter, "{}", line.trim_end())?;
        }
        let total = self.rows.iter().filter_map(|row| row.took).sum();
        writeln!(formatter, "{:<8}  {:<7}  {:>10}", "all", "", readable(total))
    }
}

fn readable(duration: Duration) -> String {
    match duration.as_secs() {
        seconds if seconds < 60 => format!("{:.1} s", duration.as_secs_f64()),
        seconds => format!("{} min {:02} s", seconds / 60, seconds % 60),
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
            TestStep::new("first", "passes", || Ok(Vec::new())),
            TestStep::new("second", "leaves something out", || {
                Ok(vec![SkippedTest::new("no-tool", "second", "nothing to do it with")])
            }),
            TestStep::new("third", "fails", || bail!("broken")),
            TestStep::new("fourth", "is never reached", || unreachable!("a step ran after a failure")),
        ]));
        let expected = "\
== skipped: 1 ==
no-tool: nothing to do it with
  second
== summary ==
first     passed        0.0 s
second    passed        0.0 s  1 skipped
third     FAILED        0.0 s
fourth    not run
all                     0.0 s
";
        assert_eq!(summary.to_string(), expected);
        let (name, error) = summary.failure.unwrap();
        assert_eq!((name, error.to_string().as_str()), ("third", "broken"));
    }

    #[test]
    fn durations_read_as_a_person_says_them() {
        let cases = [(340, "0.3 s"), (59_000, "59.0 s"), (60_000, "1 min 00 s"), (754_000, "12 min 34 s")];
        for (milliseconds, expected) in cases {
            assert_eq!(readable(Duration::from_millis(milliseconds)), expected);
        }
    }
}
