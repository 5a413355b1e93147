//! Language servers: what they know of code, as answers to questions. This crate speaks the Language Server Protocol as a
//! client; the gate starts the servers and confines them.
//!
//! A [`Catalog`] says which servers and linters there are; [`LanguageServers`] finds the one for a file and answers. The
//! messages are read as JSON with a few small types of our own: a client of many servers has to take what they really send,
//! of which generated types refuse some, and a dozen messages are no reason to compile six hundred types.

mod answers;
mod calls;
mod catalog;
mod caused_errors;
mod connection;
mod diagnostics;
mod diagnostics_marks;
mod documents;
mod framing;
mod languages;
mod linters;
mod locations;
mod open_users;
mod peer;
mod protocol;
mod rename;
mod source_text;
mod symbol_question;
mod symbols;
mod target;
mod watched_files;
mod workspace_symbols;

pub use catalog::{Catalog, InstalledServer, LinterEntry, ServerEntry};
pub use languages::{LanguageServers, ServerMachine};
