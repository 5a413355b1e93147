//! Rules about a risk. A rule that tightens matches that risk and every higher one, a rule that loosens matches that
//! risk and every lower one, so that `allow risk = "low"` never allows a dangerous tool.

use std::fmt;

use toolgate_config::ConfigFault;
use toolgate_contract::{Decision, Risk};

use super::read_word;

/// Matches every call of the tools with such a risk.
#[derive(Debug)]
pub(crate) struct RiskRule {
    risk: Risk,
    loosens: bool,
}

impl RiskRule {
    pub(crate) fn new(risk: Risk, decision: Decision) -> Self {
        Self { risk, loosens: decision == Decision::Allow }
    }

    pub(crate) fn matches(&self, risk: Risk) -> bool {
        if self.loosens { risk <= self.risk } else { risk >= self.risk }
    }

    pub(crate) fn matches_example(&self, example: &str) -> Result<bool, ConfigFault> {
        Ok(self.matches(read_word(example, "risk", "`low`, `medium`, `high`")?))
    }
}

impl fmt::Display for RiskRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let risk = match self.risk {
            Risk::Low => "low",
            Risk::Medium => "medium",
            Risk::High => "high",
        };
        write!(f, "risk {risk} or {}", if self.loosens { "lower" } else { "higher" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tightening_reaches_up_and_loosening_down() {
        for (decision, expected) in [
            (Decision::Deny, [false, true, true]),
            (Decision::Ask, [false, true, true]),
            (Decision::Allow, [true, true, false]),
        ] {
            let rule = RiskRule::new(Risk::Medium, decision);
            assert_eq!([Risk::Low, Risk::Medium, Risk::High].map(|risk| rule.matches(risk)), expected, "{decision}");
        }
    }
}
