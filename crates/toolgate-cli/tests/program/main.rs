//! The program as people and programs meet it, end to end.
#![allow(clippy::disallowed_methods, reason = "tests make and look at files of their own")]

mod agent;
mod agent_resume;
mod agent_tools;
mod attach;
mod audit;
mod autoloaded_files;
mod build_output;
mod calls;
mod changes_killed;
mod commands;
mod http;
mod inbox;
mod inbox_killed;
mod init;
mod mcp;
mod names;
mod network;
mod no_namespaces;
mod ordinary_user;
mod ordinary_work;
mod overlay;
mod policy;
mod quarantine;
mod record;
mod rehearsal;
mod replay;
mod sandbox;
mod shared_inbox;
mod shared_store;
mod stopped_calls;
mod telegram_server;
mod terminal;
mod two_processes;
mod undo_steps;
mod world;
