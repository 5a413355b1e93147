//! The hosts that operands name.

use toolgate_contract::Permission;

use super::roles::OperandRole;
use super::simple_command::{Argument, Need, SimpleCommand, Touch};

/// Adds the host that an operand names.
pub(super) fn add_host(part: &mut SimpleCommand, role: OperandRole, argument: &Argument) {
    // Brackets around an address look like a pattern.
    let Some(text) = (!argument.is_unclear()).then(|| argument.text.replace('\\', "")) else {
        part.doubt(format!("which host `{}` is isn't known", argument.text));
        return part.need(Need::Permission(Permission::NetConnect));
    };
    if text.starts_with("ext::") || text.starts_with("fd::") {
        part.doubt(format!("`{text}` runs a command"));
    }
    match host(role, &text) {
        Some((name, port)) => part.touch(Touch::Host { name, port }),
        None => part.need(Need::Permission(Permission::NetConnect)),
    }
}

/// The host and port of an address.
pub(super) fn host(role: OperandRole, text: &str) -> Option<(String, u16)> {
    let (scheme, rest) = match text.split_once("://") {
        Some((scheme, rest)) => (scheme, rest),
        None if role == OperandRole::Url => ("http", text),
        None => return host_of_copy(role, text),
    };
    let default = match scheme {
        "http" | "ws" => 80,
        "ssh" | "git+ssh" | "sftp" => 22,
        "ftp" => 21,
        "git" => 9418,
        "file" => return None,
        _ => 443,
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let authority = authority.rsplit('@').next().unwrap_or_default();
    let (name, port) = match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((name, rest)) => (name, rest.strip_prefix(':')),
        None => authority.rsplit_once(':').map_or((authority, None), |(name, port)| (name, Some(port))),
    };
    (!name.is_empty()).then(|| (name.to_owned(), port.and_then(|port| port.parse().ok()).unwrap_or(default)))
}

/// `user@host`, `host:path`; the bare name of a repository names no host.
fn host_of_copy(role: OperandRole, text: &str) -> Option<(String, u16)> {
    let (before, path) = text.split_once(':').map_or((text, None), |(before, path)| (before, Some(path)));
    let name = before.rsplit('@').next().unwrap_or_default();
    let is_host = role == OperandRole::Host || path.is_some() && !before.contains('/');
    let port = path.and_then(|path| path.parse().ok()).unwrap_or(22);
    (is_host && !name.is_empty() && !name.starts_with('-')).then(|| (name.to_owned(), port))
}
