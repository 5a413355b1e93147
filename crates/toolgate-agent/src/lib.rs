//! Runs a model against the runtime, one turn at a time.
//!
//! An [`Agent`] shows a [`model::Model`] its task and the tools, performs the calls that the model asks for, each
//! through [`toolgate_runtime::Gate::perform`], and shows it the replies, until there is a final answer or a limit of
//! its [`AgentLimits`] is reached. Only this crate depends on models.

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
mod past_conversation;
mod prompt;
mod subagents;
mod text_sink;
mod tools;

pub use agent::Agent;
pub use definition::AgentDefinition;
pub use limits::{AgentLimits, RetryPolicy};
pub use message_queue::MessageQueue;
pub use outcome::AgentOutcome;
pub use past_conversation::{PastConversation, ResumeError};
pub use text_sink::{AgentIdentity, DiscardText, TextSink};
pub use tools::{AgentsTool, TaskTool, tools};
