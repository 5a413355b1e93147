//! `[tools.NAME]`, `[mcp.servers.NAME]` and `[lsp.servers.NAME]`: what has a name of its own in a file. Of two layers that define the same name the
//! stronger one decides, as a whole; an untrusted workspace defines nothing.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::config::{Config, ConfiguredToolConfig, EffectsConfig, LspServerConfig, McpServerConfig};
use crate::error::{ConfigError, ConfigFault};
use crate::layer::ConfigLayer;
use crate::setting::LayerRule;
use crate::table::{LSP_SERVERS, MCP_SERVERS, TOOLS_NAME};

/// Characters of a name. The names of a server's tools begin with its own, and no client takes more than 64.
const LONGEST_NAME: usize = 32;

/// The user's own tools.
pub(super) fn merge_tools(
    layers: &[ConfigLayer],
    warnings: &mut Vec<String>,
) -> Result<BTreeMap<String, ConfiguredToolConfig>, ConfigError> {
    let check = |name: &str, tool: &ConfiguredToolConfig| check_tool(name, tool);
    merge_named(layers, TOOLS_NAME.rule, "the tool", |config| &config.tools.configured, check, warnings)
}

/// The MCP servers.
pub(super) fn merge_mcp_servers(
    layers: &[ConfigLayer],
    warnings: &mut Vec<String>,
) -> Result<BTreeMap<String, McpServerConfig>, ConfigError> {
    let check = |name: &str, server: &McpServerConfig| check_server(name, server);
    merge_named(layers, MCP_SERVERS.rule, "the MCP server", |config| &config.mcp.servers, check, warnings)
}

/// The language servers.
pub(super) fn merge_lsp_servers(
    layers: &[ConfigLayer],
    warnings: &mut Vec<String>,
) -> Result<BTreeMap<String, LspServerConfig>, ConfigError> {
    let check = |name: &str, server: &LspServerConfig| check_language_server(name, server);
    merge_named(layers, LSP_SERVERS.rule, "the language server", |config| &config.lsp.servers, check, warnings)
}

fn check_language_server(name: &str, server: &LspServerConfig) -> Result<(), ConfigFault> {
    let wrong = |why: &str, hint: &str| Err(ConfigFault::new(format!("The language server `{name}` {why}."), hint));
    if server.command.iter().all(String::is_empty) {
        return wrong("has no `command`", "Name the program that is started, and its arguments.");
    }
    if server.idle_seconds == Some(0) {
        return wrong("has a limit of 0 seconds", "Use 1 or more, or leave it out.");
    }
    Ok(())
}

fn merge_named<T: Clone + PartialEq>(
    layers: &[ConfigLayer],
    rule: LayerRule,
    what: &str,
    stated: impl Fn(&Config) -> &BTreeMap<String, T>,
    check: impl Fn(&str, &T) -> Result<(), ConfigFault>,
    warnings: &mut Vec<String>,
) -> Result<BTreeMap<String, T>, ConfigError> {
    let mut merged = BTreeMap::<String, T>::new();
    for input in layers {
        for (name, entry) in stated(&input.config) {
            check_name(what, name)
                .and_then(|()| check(name, entry))
                .map_err(|fault| fault.at(&input.source, input.layer, None))?;
            if !rule.lets_loosen(input) {
                warnings.push(input.ignored(&format!("{what} `{name}`"), false));
            } else if let Some(known) = merged.get(name) {
                if known != entry {
                    let source = &input.source;
                    warnings
                        .push(format!("{source}: {what} `{name}` is ignored: a layer with more authority defines it."));
                }
            } else {
                merged.insert(name.clone(), entry.clone());
            }
        }
    }
    Ok(merged)
}

fn check_name(what: &str, name: &str) -> Result<(), ConfigFault> {
    let is_usable = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let parts_are_single = !name.contains("__") && !name.starts_with('_') && !name.ends_with('_');
    match (1..=LONGEST_NAME).contains(&name.len()) && name.bytes().all(is_usable) && parts_are_single {
        true => Ok(()),
        false => Err(ConfigFault::new(
            format!("The name of {what} `{name}` can't be used."),
            format!("Use 1 to {LONGEST_NAME} letters, digits, `-` and single `_`."),
        )),
    }
}

fn check_tool(name: &str, tool: &ConfiguredToolConfig) -> Result<(), ConfigFault> {
    let wrong = |why: &str, hint: &str| Err(ConfigFault::new(format!("The tool `{name}` {why}."), hint));
    if tool.command.is_empty() == tool.shell.is_none() {
        return wrong(
            "needs exactly one of `command` and `shell`",
            "`command` is a list of words, `shell` a line for bash.",
        );
    }
    if tool.timeout_seconds == Some(0) {
        return wrong("has a `timeout_seconds` of 0", "Use 1 or more, or leave it out.");
    }
    if tool.schema.as_ref().is_some_and(|schema| schema.get("type").and_then(Value::as_str) != Some("object")) {
        return wrong("has a `schema` whose `type` isn't `object`", "The arguments of a call are an object.");
    }
    check_effects(&tool.effects)
        .or_else(|fault| wrong(&fault, "Write a path, `$.NAME` for an argument, or `HOST:PORT`."))
}

fn check_server(name: &str, server: &McpServerConfig) -> Result<(), ConfigFault> {
    let wrong = |why: &str, hint: &str| Err(ConfigFault::new(format!("The MCP server `{name}` {why}."), hint));
    match (&server.url, server.command.iter().all(String::is_empty)) {
        (None, true) => {
            return wrong(
                "has neither `command` nor `url`",
                "Name the program that is started, or the server's address.",
            );
        }
        (Some(_), _) if !server.command.is_empty() => {
            return wrong("has both `command` and `url`", "It is either a program here or a server elsewhere.");
        }
        (Some(url), _) if !is_usable_address(url) => {
            return wrong("has a `url` that can't be used", "Write https://HOST/PATH; http only for this machine.");
        }
        (Some(_), _) if has_settings_of_programs(server) => {
            let hint = "`env`, `secrets`, `workspace`, `directory`, `roots` and `memory_bytes` are for programs; use `bearer` for a token.";
            return wrong("is elsewhere and has settings of a program", hint);
        }
        (None, false) if server.bearer.is_some() => {
            return wrong("is a program and has a `bearer`", "Give it the token as a variable, with `secrets`.");
        }
        _ => {}
    }
    if server.timeout_seconds == Some(0) || server.idle_seconds == Some(0) {
        return wrong("has a limit of 0 seconds", "Use 1 or more, or leave it out.");
    }
    if server.memory_bytes == Some(0) {
        return wrong("has a limit of 0 bytes of memory", "Use more, or leave it out.");
    }
    if let Some(root) = server.roots.iter().find(|root| !root.starts_with('/')) {
        return wrong(&format!("has the root `{root}`, which isn't absolute"), "Write the whole path, from `/` on.");
    }
    for effects in server.effects.values() {
        if let Err(fault) = check_effects(effects) {
            return wrong(&fault, "Write a path, `$.NAME` for an argument, or `HOST:PORT`.");
        }
    }
    Ok(())
}

/// Whether requests to an address are encrypted, or stay on this machine, and whether it holds no password.
fn is_usable_address(address: &str) -> bool {
    let rest = match address.split_once("://") {
        Some(("https", rest)) => rest,
        Some(("http", rest)) if is_of_this_machine(rest) => rest,
        _ => return false,
    };
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    !host.is_empty()
        && !host.contains('@')
        && !address.contains('#')
        && address.bytes().all(|byte| byte.is_ascii_graphic())
}

fn is_of_this_machine(rest: &str) -> bool {
    let host = rest.split(['/', '?']).next().unwrap_or_default();
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    matches!(name, "localhost" | "127.0.0.1" | "[::1]")
}

fn has_settings_of_programs(server: &McpServerConfig) -> bool {
    let McpServerConfig { env, secrets, workspace, directory, roots, memory_bytes, .. } = server;
    memory_bytes.is_some()
        || !env.is_empty()
        || !secrets.is_empty()
        || !roots.is_empty()
        || (*workspace, *directory) != (Default::default(), Default::default())
}

/// What is wrong with stated effects, as the end of a sentence.
fn check_effects(effects: &EffectsConfig) -> Result<(), String> {
    let stated = [&effects.read, &effects.write, &effects.delete, &effects.connect];
    match stated.into_iter().flatten().find(|text| text.is_empty() || *text == "$." || *text == "$") {
        None => Ok(()),
        Some(text) => Err(format!("states the effect `{text}`, which names nothing")),
    }
}

#[cfg(test)]
mod tests {
    use toolgate_contract::Layer;

    use crate::Config;
    use crate::testing::{layer, settings, try_settings, untrusted};

    const MANUAL: &str = "[tools.manual]\ndescription = 'Builds it.'\ncommand = ['make', '{what}']";

    #[test]
    fn the_stronger_definition_counts_and_an_untrusted_workspace_defines_nothing() {
        let user = layer(Layer::User, MANUAL);
        let workspace =
            layer(Layer::Workspace, &format!("{}\n[mcp.servers.t]\ncommand = ['t']", MANUAL.replace("make", "evil")));
        let (merged, warnings) = settings(vec![user, workspace]);
        assert_eq!((merged.configured_tools["manual"].command[0].as_str(), merged.mcp_servers.len()), ("make", 1));
        assert_eq!(warnings, ["workspace.toml: the tool `manual` is ignored: a layer with more authority defines it."]);
        let (merged, warnings) = settings(vec![untrusted(&format!("{MANUAL}\n[mcp.servers.t]\ncommand = ['t']"))]);
        assert!(merged.configured_tools.is_empty() && merged.mcp_servers.is_empty());
        assert_eq!(warnings.len(), 2, "{warnings:?}");
    }

    #[test]
    fn what_cannot_be_a_tool_or_a_server_is_refused() {
        for (text, expected) in [
            ("[tools.a__b]\ndescription = ''\nshell = 'x'", "name of the tool `a__b` can't be used"),
            ("[tools.x]\ndescription = ''", "exactly one of `command` and `shell`"),
            ("[tools.x]\ndescription = ''\nshell = 'x'\ncommand = ['x']", "exactly one of `command` and `shell`"),
            ("[tools.x]\ndescription = ''\nshell = 'x'\nschema = { type = 'array' }", "`type` isn't `object`"),
            ("[tools.x]\ndescription = ''\nshell = 'x'\neffects.write = ['$.']", "names nothing"),
            ("[mcp.servers.x]\ncommand = []", "has neither `command` nor `url`"),
            ("[mcp.servers.x]\ncommand = ['x']\nurl = 'https://x.example'", "has both `command` and `url`"),
            ("[mcp.servers.x]\nurl = 'http://x.example/mcp'", "has a `url` that can't be used"),
            ("[mcp.servers.x]\nurl = 'https://user:pw@x.example/mcp'", "has a `url` that can't be used"),
            ("[mcp.servers.x]\nurl = 'http://localhost.x.example/'", "has a `url` that can't be used"),
            ("[mcp.servers.x]\nurl = 'https://x.example'\nenv.A = 'b'", "has settings of a program"),
            ("[mcp.servers.x]\ncommand = ['x']\nbearer = 'env:A'", "is a program and has a `bearer`"),
            ("[mcp.servers.x]\ncommand = ['x']\nidle_seconds = 0", "limit of 0 seconds"),
            ("[mcp.servers.x]\ncommand = ['x']\nmemory_bytes = 0", "limit of 0 bytes"),
        ] {
            let said = try_settings(vec![layer(Layer::User, text)]).unwrap_err().to_string();
            assert!(said.contains(expected), "{text}: {said}");
        }
    }

    #[test]
    fn a_misspelt_setting_is_no_tool_and_a_secret_is_never_repeated() {
        let said = |text: &str| Config::parse(text, "toolgate.toml").unwrap_err().to_string();
        insta::assert_snapshot!(said("[tools]\nalow = ['read']"), @"toolgate.toml:2:8: Unknown field `alow`. Did you mean `allow`?");
        insta::assert_snapshot!(said("[tools.x]\ncomand = ['x']"), @"toolgate.toml:2:1: Unknown field `comand`. Did you mean `command`?");
        let told = said("[mcp.servers.x]\ncommand = ['x']\nsecrets = { KEY = 'hunter2' }");
        assert!(told.contains("`env:NAME` or `file:/PATH`") && !told.contains("hunter2"), "{told}");
    }
}
