//! Judges, rewrites and records what clients' own tools do, in each client's own hook form.
//!
//! A client's hook brings an event ([`ClientEvent`]); each client's file reads it and writes the answer ([`HookAnswer`]) in the
//! client's own form. In between there is one way for all of them ([`HookedWorkspace`]): the client's dialect makes a native call of
//! what the client is about to do, and the gate takes it along its one path. A command is rewritten, so that it runs here
//! ([`run_command`]); everything else is judged here and executed by the client.

mod answer;
mod client;
mod client_tool;
mod clients;
mod command;
mod event;
mod hooked_workspace;
mod native_call;
mod own_rules;
mod prompt;
mod sessions;
mod standing_prompt;

pub use answer::{HookAnswer, HookOutput};
pub use client::{HookClient, ToolUse, client_named, hook_clients};
pub use client_tool::client_tool;
pub use command::{CommandEnd, CommandOutput, HookedCommand, run_command};
pub use event::{ClientCall, ClientEvent, EventMoment};
pub use hooked_workspace::{CommandPlace, HookedWorkspace};
pub use own_rules::{OwnRuleFiles, OwnRules};
