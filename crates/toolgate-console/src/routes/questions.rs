//! The agent's own questions: what waits for an answer, and answering it. Who sees and who answers is as with approvals.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolgate_contract::schemars;
use toolgate_journal::{Ask, DeskAnswer};
use toolgate_runtime::{OnDesk, Question};

use super::approvals::{answerer, give, visible};
use super::{Body, Id, on_disk, read_json};
use crate::client::Caller;
use crate::problem::Problem;
use crate::shared::Shared;

/// A question that waits for an answer.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Open {
    /// The id to answer under.
    id: String,
    /// The run of the call that asks.
    run: String,
    /// The session of the call that asks.
    session: String,
    /// Since when it waits.
    #[schemars(with = "String")]
    asked: Timestamp,
    /// Until when it waits, if there is an end to it.
    #[schemars(with = "Option<String>")]
    expires: Option<Timestamp>,
    /// The question, and the answers to choose from.
    question: Question,
}

/// All that wait.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Questions {
    questions: Vec<Open>,
}

/// An answer.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Words {
    /// The label of a choice or its number from 1, or own words where they will do.
    answer: String,
}

pub(super) async fn list(State(shared): State<Arc<Shared>>, caller: Caller) -> Result<Json<Questions>, Problem> {
    on_disk(move || {
        Ok(Json(Questions { questions: visible(&shared, &caller)?.into_iter().filter_map(open).collect() }))
    })
    .await
}

pub(super) async fn answer(
    State(shared): State<Arc<Shared>>,
    caller: Caller,
    Id(id): Id,
    Body(body): Body,
) -> Result<StatusCode, Problem> {
    let Words { answer } = read_json(&body)?;
    on_disk(move || {
        let ask = shared.waiting(&caller, &id)?;
        let question = open(ask).ok_or_else(|| Problem::not_found("such question waiting"))?.question;
        let by = answerer(&shared, &caller)?;
        let answered = question.inquiry.answer(&answer, &by);
        let answered = answered.ok_or_else(|| Problem::invalid("`answer` isn't among the answers to choose from."))?;
        let answer = DeskAnswer::Said { words: answered.answer, choice: answered.choice, by };
        give(&shared, &id, &answer)
    })
    .await
}

/// An ask, if it is a question.
fn open(ask: Ask) -> Option<Open> {
    let Ask { id, run, session, asked, expires, request } = ask;
    match serde_json::from_value(request).ok()? {
        OnDesk::Question(question) => Some(Open { id, run, session, asked, expires, question }),
        OnDesk::Approval(_) => None,
    }
}
