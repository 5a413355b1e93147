//! Commands as coding agents run them: how many pass without a question, with nothing dangerous among them and nothing
//! harmless denied.

use serde::Deserialize;
use toolgate_contract::{Decision, WorkspacePath};
use toolgate_policy::WorkspaceFacts;

use crate::world::{judge, judge_with, policy, word};

/// The share of commands that pass without a question, in percent.
const WANTED: usize = 92;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Corpus {
    pass: Vec<String>,
    ask: Vec<String>,
    deny: Vec<String>,
}

/// One session of an agent.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AgentSession {
    #[serde(default)]
    made: Vec<String>,
    #[serde(default)]
    public: Vec<String>,
    pass: Vec<String>,
    ask: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AgentSessions {
    session: Vec<AgentSession>,
}

impl WorkspaceFacts for AgentSession {
    fn holds_only_certificates(&self, place: &WorkspacePath) -> bool {
        self.public.contains(&place.path)
    }

    fn is_own(&self, place: &WorkspacePath) -> bool {
        self.made.contains(&place.path)
    }
}

#[test]
fn whole_sessions_of_agents_pass_nearly_without_a_question() {
    let AgentSessions { session: sessions } = toml::from_str(include_str!("commands/agent_sessions.toml")).unwrap();
    let policy = policy("");
    let (mut passed, mut count, mut wrong) = (0, 0, Vec::new());
    for session in &sessions {
        let expected = session.pass.iter().map(|command| (command, Decision::Allow));
        for (command, expected) in expected.chain(session.ask.iter().map(|command| (command, Decision::Ask))) {
            let verdict = judge_with(&policy, command, session);
            count += 1;
            passed += usize::from(verdict.decision == Decision::Allow);
            if verdict.decision != expected {
                let by = &verdict.decided_by;
                wrong.push(format!("{command}\n    {}: {} ({})", word(&verdict), by.reason, by.name.rule));
            }
        }
    }
    println!("{passed} of {count} commands in {} sessions pass: {} %", sessions.len(), passed * 100 / count);
    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(count >= 100 && passed * 100 >= count * WANTED, "{passed} of {count}");
}

#[test]
fn what_agents_run_passes_without_a_question_unless_it_matters() {
    let corpus: Corpus = toml::from_str(include_str!("commands/agent_corpus.toml")).unwrap();
    let policy = policy("");
    let expected = [(Decision::Allow, &corpus.pass), (Decision::Ask, &corpus.ask), (Decision::Deny, &corpus.deny)];
    let (mut passed, mut count, mut wrong) = (0, 0, Vec::new());
    for (expected, commands) in expected {
        for command in commands {
            let verdict = judge(&policy, command);
            // What is denied for good reason is no command that an agent fixing a bug runs.
            count += usize::from(expected != Decision::Deny);
            passed += usize::from(verdict.decision == Decision::Allow);
            if verdict.decision != expected {
                let by = &verdict.decided_by;
                wrong.push(format!(
                    "{command}\n    expected {expected}, told {}: {} ({})",
                    word(&verdict),
                    by.reason,
                    by.name.rule
                ));
            }
        }
    }
    println!("{passed} of {count} commands pass without a question: {} %", passed * 100 / count);
    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(count >= 400 && passed * 100 >= count * WANTED, "{passed} of {count}");
}
