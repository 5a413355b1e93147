//! The native call of what a client is about to do, by the client's own table and its dialect.

use std::path::Path;

use serde_json::{Value, json};
use toolgate_dialects::{DialectMemory, NativeCall};

use crate::client::{HookClient, ToolUse};
use crate::client_tool::CLIENT_TOOL;
use crate::event::ClientCall;

/// The MCP server of this very program: its calls take the gate's path by themselves.
const OWN_SERVER: &str = "toolgate";

/// The native call of a client's call. There is one for every call: what isn't known is one of [`CLIENT_TOOL`].
pub(crate) fn native_call(client: &HookClient, call: &ClientCall, memory: &DialectMemory, home: &Path) -> NativeCall {
    if is_own_file(client, call, home) {
        return of_client(client, call, None, true);
    }
    if let Some(does) = client.listed(&call.tool) {
        return listed(client, call, does, memory).unwrap_or_else(|| of_client(client, call, None, false));
    }
    if let Some((server, tool)) = (client.server_tool)(&call.tool) {
        let is_ours = server == OWN_SERVER;
        return of_client(client, &ClientCall { tool, ..call.clone() }, Some(server), is_ours);
    }
    in_dialect(client, call, memory).unwrap_or_else(|| of_client(client, call, None, false))
}

/// A use of a tool that isn't one of ours.
fn of_client(client: &HookClient, call: &ClientCall, server: Option<String>, harmless: bool) -> NativeCall {
    let args = json!({ "client": client.name, "tool": call.tool, "server": server, "harmless": harmless });
    NativeCall::new(CLIENT_TOOL, args)
}

/// What the client's own table says. None if an argument isn't there that it needs.
fn listed(client: &HookClient, call: &ClientCall, does: ToolUse, memory: &DialectMemory) -> Option<NativeCall> {
    let text = |name: &str| match name {
        "" => call.input.as_str(),
        name => call.input.get(name).and_then(Value::as_str),
    };
    let path = |name: &str| text(name).map(|path| memory.native(path));
    // An address isn't a file, and what the client would do with one isn't known.
    let file = |name: &str| text(name).filter(|path| !path.contains("://")).map(|path| memory.native(path));
    // Several directories, or none: the one that has all of them.
    let directory = |name: &str| path(name).unwrap_or_else(|| ".".to_owned());
    Some(match does {
        ToolUse::Harmless => of_client(client, call, None, true),
        ToolUse::Reads(name) => NativeCall::new("read", json!({ "path": file(name)? })),
        ToolUse::Lists(name) => NativeCall::new("list", json!({ "path": directory(name) })),
        ToolUse::Searches(name) => NativeCall::new("grep", json!({ "pattern": ".", "path": directory(name) })),
        ToolUse::Writes(name) => NativeCall::new("write", json!({ "path": path(name)?, "content": "" })),
        ToolUse::Patches(name) => {
            let patch = text(name).or_else(|| text("input")).or_else(|| text("patch"))?;
            let patch = from_directory(patch, &memory.directory);
            NativeCall::new("patch", json!({ "patch": patch, "semantics": "codex" }))
        }
        ToolUse::Runs(name) => {
            let args = json!({ "command": text(name)?, "workdir": memory.native_or_here(None) });
            NativeCall::new("shell", args)
        }
        ToolUse::Fetches(name) => NativeCall::new("fetch", json!({ "url": text(name)? })),
        ToolUse::Messages(name) if attaches_files(call.input.get(name)) => return None,
        ToolUse::Messages(_) => of_client(client, call, None, true),
    })
}

/// Whether items of a message name files or programs of the machine, beside words and addresses.
fn attaches_files(items: Option<&Value>) -> bool {
    items
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .any(|item| item.get("path").is_some_and(|path| !path.is_null()))
}

/// What the dialect makes of it. None if the dialect has no such tool, or not with these arguments.
fn in_dialect(client: &HookClient, call: &ClientCall, memory: &DialectMemory) -> Option<NativeCall> {
    let dialect = client.dialect?;
    let renamed = (client.as_dialect)(&call.tool, &call.input);
    let (name, input) = renamed.as_ref().map_or((call.tool.as_str(), &call.input), |(name, input)| (*name, input));
    let meant = dialect.tool(name)?.native;
    let native = dialect.enter(name, input, memory).ok()?.native;
    let text = |name: &str| native.args.get(name).and_then(Value::as_str).unwrap_or_default();
    match (meant, native.tool) {
        // It looks before it writes; what matters is the writing.
        ("write" | "edit", "read") => Some(NativeCall::new("write", json!({ "path": text("path"), "content": "" }))),
        // Whether the text is in the file, the client says.
        (_, "edit") => Some(NativeCall::new("write", json!({ "path": text("path"), "content": "" }))),
        (_, "patch") => {
            let patch = from_directory(text("patch"), &memory.directory);
            Some(NativeCall { args: json!({ "patch": patch, "semantics": "codex" }), ..native })
        }
        (_, "shell" | "write" | "read" | "list" | "find" | "grep" | "fetch" | "image" | "notebook") => Some(native),
        _ => None,
    }
}

/// A patch whose paths are meant from a directory of the workspace.
fn from_directory(patch: &str, directory: &str) -> String {
    const HEADS: [&str; 4] = ["*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "];
    if directory.is_empty() {
        return patch.to_owned();
    }
    let line = |line: &str| match HEADS.iter().find_map(|head| Some((head, line.strip_prefix(head)?))) {
        Some((head, path)) if !path.starts_with('/') => format!("{head}{directory}/{path}\n"),
        _ => format!("{line}\n"),
    };
    patch.lines().map(line).collect()
}

/// Whether a call reads or writes a file of the client's own, such as the stored output of a command.
fn is_own_file(client: &HookClient, call: &ClientCall, home: &Path) -> bool {
    let argument = match client.listed(&call.tool) {
        Some(ToolUse::Reads(name) | ToolUse::Writes(name)) => name,
        _ => match call.tool.as_str() {
            "Edit" | "Write" => "file_path",
            _ => return false,
        },
    };
    let Some(path) = call.input.get(argument).and_then(Value::as_str) else { return false };
    let is_plain = !path.split('/').any(|name| name == "..");
    let is_temporary = client.name == "claude" && path.starts_with("/tmp/claude-");
    let is_own = || client.own_directories.iter().any(|own| Path::new(path).starts_with(home.join(own)));
    is_plain && (is_temporary || is_own())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::client_named;

    fn native(client: &str, tool: &str, input: Value) -> (String, Value) {
        let client = client_named(client).unwrap();
        let call = ClientCall { id: None, tool: tool.into(), input, can_ask: true };
        let native = native_call(client, &call, &DialectMemory::new("/srv/work"), Path::new("/home/ada"));
        (native.tool.to_owned(), native.args)
    }

    #[test]
    fn every_clients_tools_become_native_calls() {
        for (client, tool, input, native_tool, argument, value) in [
            ("claude", "Bash", json!({ "command": "ls" }), "shell", "command", "ls"),
            ("claude", "Read", json!({ "file_path": "/srv/work/a" }), "read", "path", "a"),
            (
                "claude",
                "Edit",
                json!({ "file_path": "/srv/work/a", "old_string": "a", "new_string": "b" }),
                "write",
                "path",
                "a",
            ),
            (
                "claude",
                "Edit",
                json!({ "file_path": "/srv/work/a", "old_string": "", "new_string": "b" }),
                "write",
                "path",
                "a",
            ),
            ("codex", "Bash", json!({ "command": "ls" }), "shell", "command", "ls"),
            (
                "codex",
                "Bash",
                json!({ "command": "apply_patch <<'EOF'\n*** Begin Patch\n*** End Patch\nEOF" }),
                "patch",
                "semantics",
                "codex",
            ),
            ("gemini", "run_shell_command", json!({ "command": "ls" }), "shell", "command", "ls"),
            ("gemini", "read_file", json!({ "file_path": "a" }), "read", "path", "a"),
            ("opencode", "bash", json!({ "command": "ls" }), "shell", "command", "ls"),
            ("opencode", "write", json!({ "filePath": "/srv/work/a", "content": "" }), "write", "path", "a"),
            ("copilot", "bash", json!({ "command": "ls", "description": "d" }), "shell", "command", "ls"),
            ("copilot", "create", json!({ "path": "/srv/work/a", "file_text": "" }), "write", "path", "a"),
            ("cursor", "Shell", json!({ "command": "ls" }), "shell", "command", "ls"),
            ("goose", "developer__shell", json!({ "command": "ls" }), "shell", "command", "ls"),
            ("goose", "shell", json!({ "command": "ls" }), "shell", "command", "ls"),
            ("goose", "edit", json!({ "path": "a", "before": "a", "after": "b" }), "write", "path", "a"),
        ] {
            let (made, args) = native(client, tool, input);
            assert_eq!((made.as_str(), args[argument].as_str()), (native_tool, Some(value)), "{client} {tool} {args}");
        }
    }

    #[test]
    fn what_is_not_known_counts_as_anything() {
        for (client, tool, input, harmless, server) in [
            ("claude", "EnterWorktree", json!({}), false, None),
            ("claude", "Bash", json!({ "command": "ls", "new_argument": 1 }), false, None),
            ("claude", "Bash", json!({}), false, None),
            ("claude", "TodoWrite", json!({ "todos": [] }), true, None),
            ("claude", "mcp__docs__search", json!({}), false, Some("docs")),
            ("claude", "mcp__toolgate__shell", json!({}), true, Some("toolgate")),
            ("claude", "Read", json!({ "file_path": "/home/ada/.claude/projects/x/out.txt" }), true, None),
            ("codex", "spawn_agent", json!({ "message": "do it" }), true, None),
            (
                "codex",
                "spawn_agent",
                json!({ "items": [{ "type": "local_image", "path": "/home/ada/a.png" }] }),
                false,
                None,
            ),
            ("goose", "delegate", json!({ "instructions": "do it" }), false, None),
            ("goose", "read_image", json!({ "source": "https://example.com/?a" }), false, None),
            ("cursor", "MCP:search", json!({}), false, Some("MCP")),
        ] {
            let (made, args) = native(client, tool, input);
            assert_eq!((made.as_str(), args["harmless"].as_bool()), (CLIENT_TOOL, Some(harmless)), "{client} {tool}");
            assert_eq!(args["server"].as_str(), server, "{client} {tool}");
        }
        let outside =
            native("claude", "Read", json!({ "file_path": "/home/ada/.claude/projects/../.credentials.json" }));
        assert_eq!(outside.0, "read", "a path that leads out of the client's own directories is judged like any other");
    }

    #[test]
    fn the_paths_of_a_patch_are_meant_from_the_clients_directory() {
        let patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n-a\n+*** Add File: no\n*** End Patch";
        let moved = from_directory(patch, "src");
        assert!(moved.contains("*** Update File: src/a.txt\n") && moved.contains("+*** Add File: no\n"), "{moved}");
        assert_eq!(from_directory(patch, ""), patch);
    }
}
