//! The agent's own questions: what waits for an answer, and answering it. Who may see and answer them is the same as for approvals.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolgate_contract::schemars;
use toolgate_journal::{QueueEntry, QueuedAnswer};
use toolgate_runtime::{QueueItem, QueuedQuestion};

use super::approvals::{answerer, submit_answer, visible};
use super::{JsonBody, PathId, read_json, run_blocking};
use crate::http_session::Caller;
use crate::problem::Problem;
use crate::server_state::ServerState;

/// A question that waits for an answer.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct QuestionView {
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
    question: QueuedQuestion,
}

/// All questions that wait for an answer.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct QuestionList {
    questions: Vec<QuestionView>,
}

/// An answer.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct QuestionAnswerBody {
    /// The label of a choice or its number from 1, or free text where that is allowed.
    answer: String,
}

pub(super) async fn list(State(state): State<Arc<ServerState>>, caller: Caller) -> Result<Json<QuestionList>, Problem> {
    run_blocking(move || {
        Ok(Json(QuestionList { questions: visible(&state, &caller)?.into_iter().filter_map(open).collect() }))
    })
    .await
}

pub(super) async fn answer(
    State(state): State<Arc<ServerState>>,
    caller: Caller,
    PathId(id): PathId,
    JsonBody(body): JsonBody,
) -> Result<StatusCode, Problem> {
    let QuestionAnswerBody { answer } = read_json(&body)?;
    run_blocking(move || {
        let ask = state.waiting(&caller, &id)?;
        let question = open(ask).ok_or_else(|| Problem::not_found("such question waiting"))?.question;
        let by = answerer(&state, &caller)?;
        let answered = question.question.answer(&answer, &by);
        let answered = answered.ok_or_else(|| Problem::invalid("`answer` is none of the choices."))?;
        let answer = QueuedAnswer::Said { words: answered.answer, choice: answered.choice, by };
        submit_answer(&state, &id, &answer)
    })
    .await
}

/// An entry of the queue, if it is a question.
fn open(ask: QueueEntry) -> Option<QuestionView> {
    let QueueEntry { id, run, session, asked, expires, request } = ask;
    match serde_json::from_value(request).ok()? {
        QueueItem::Question(question) => Some(QuestionView { id, run, session, asked, expires, question }),
        QueueItem::Approval(_) => None,
    }
}
