//! Runs a model against the runtime, one turn at a time (C-39).
//!
//! An [`Agent`] shows a [`model::Model`] its task and the tools, carries out the calls that it asks for, each through
//! [`toolgate_runtime::Gate::perform`], and shows it the replies, until there is a final answer or a limit of its
//! [`AgentLimits`] is reached. Only this crate knows about models.

mod agent;
mod agent_loop;
mod circuit_breaker;
mod conversation;
mod definition;
mod limits;
mod loop_detector;
mod message_queue;
pub mod model;
mod observation;
mod outcome;
mod prompt;
mod subagents;
mod text_sink;
mod tools;

pub use agent::Agent;
pub use definition::AgentDefinition;
pub use limits::{AgentLimits, RetryPolicy};
pub use outcome::AgentOutcome;
pub use text_sink::{AgentIdentity, DiscardText, TextSink};
pub use tools::{AgentsTool, TaskTool, tools};
