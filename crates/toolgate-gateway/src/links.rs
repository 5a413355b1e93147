//! Links that a server gives. A model gets a handle, not the address: it is an artifact of the run that names server and address, so only
//! `mcp_read` can follow it, only to the server that gave it, and only in the run that it was given in.

use std::io::Read;

use serde_json::{Value, json};
use toolgate_contract::{ErrorCode, Hands, SERVER_LINK, ToolError};
use toolgate_dialects::strict_json;

/// Characters of an address.
const LONGEST: usize = 2000;

/// Keeps a link, and gives its handle.
pub(crate) fn keep(hands: &dyn Hands, server: &str, uri: &str) -> Result<Option<String>, ToolError> {
    if uri.is_empty() || uri.chars().count() > LONGEST {
        return Ok(None);
    }
    let link = json!({ "server": server, "uri": uri });
    Ok(Some(hands.keep(link.to_string().as_bytes(), SERVER_LINK)?.id))
}

/// The address behind a handle, if this server gave it.
pub(crate) fn follow(hands: &dyn Hands, server: &str, handle: &str) -> Result<String, ToolError> {
    let (about, mut file) = hands.recall(handle)?;
    let mut bytes = Vec::new();
    let read = file.read_to_end(&mut bytes).map_err(|error| ToolError::io("The link can't be read", &error));
    let link = match about.mime == SERVER_LINK {
        true => read.and_then(|_| strict_json::parse(&bytes))?,
        false => Value::Null,
    };
    match (link["server"].as_str(), link["uri"].as_str()) {
        (Some(giver), Some(uri)) if giver == server => Ok(uri.to_owned()),
        (Some(giver), _) => {
            let message = format!("The link `{handle}` is one of the MCP server `{giver}`, not of `{server}`.");
            Err(ToolError::new(ErrorCode::InvalidArgs, message).with_hint("Name the server that gave the link."))
        }
        _ => Err(ToolError::new(ErrorCode::InvalidArgs, format!("`{handle}` isn't a link of an MCP server."))
            .with_hint("Use a link from `mcp_resources`, or from a result of the server's tools.")),
    }
}
