//! Runs a model against the runtime, one turn at a time (C-39).
//!
//! An [`Agent`] shows a [`model::Model`] its task and the tools, carries out the calls that it asks for, each through
//! [`toolgate_runtime::Gate::perform`], and shows it the replies, until there is a final answer or a limit of its
//! [`Controls`] is reached. Only this crate knows about models.

mod agent;
mod breaker;
mod controls;
mod conversation;
mod definition;
mod inbox;
mod listener;
pub mod model;
mod observation;
mod outcome;
mod progress;
mod prompt;
mod staff;
mod tools;
mod worker;

pub use agent::Agent;
pub use controls::{Controls, Retries};
pub use definition::Definition;
pub use listener::{Listener, NobodyListens, Speaker};
pub use outcome::Outcome;
pub use tools::{AgentsTool, Task, tools};
