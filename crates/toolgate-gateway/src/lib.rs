//! Other MCP servers: their tools inward, each a tool like the built-in ones. What a server says is data from a stranger: its
//! definitions are pinned by a person, its text is cleaned, and its results are marked with where they come from.
//!
//! A [`ConfiguredServer`] is what configuration says; a [`ServerDefinitions`] is what a person approved of it, and becomes one
//! [`ServerTool`] each; the connection speaks the protocol to a server that the gate started.

mod connection;
mod definition;
mod definitions;
mod describe_tool;
mod elicitation;
mod find_tools;
mod foreign_text;
mod lines;
mod links;
mod oauth;
mod output_schema;
mod remote_server;
mod resource_tools;
mod sampling;
mod server;
mod server_tool;
mod tool_name;
mod tool_result;
mod tool_search;

pub use connection::ProtocolChoice;
pub use definition::{Definition, DefinitionFault};
pub use definitions::{DefinedPart, DefinitionChange, ServerDefinitions};
pub use describe_tool::DescribeServerTool;
pub use find_tools::{FindTools, UseTool};
pub use foreign_text::{cleaned, visible};
pub use oauth::{
    AuthorizationServer, ClientRegistration, LoginAttempt, ServerToken, TokenStore, discover_issuer, discover_server,
    host_of, register,
};
pub use remote_server::{RemoteOptions, RemoteServer};
pub use resource_tools::{ListResources, ReadResource, ServerIdentities};
pub use server::{ApprovedIdentity, ConfiguredServer, InstalledFiles, ServerOptions};
pub use server_tool::ServerTool;
pub use tool_name::tool_name;
