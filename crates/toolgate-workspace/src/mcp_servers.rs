//! Other MCP servers of a workspace: from configuration and what a person approved to servers and tools. One that can't be used
//! costs itself, and a warning.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use toolgate_config::{McpServerConfig, SecretSource, ServerDirectory, Settings};
use toolgate_contract::{Declaration, EffectBindings, Permission, ToolError, ToolServer, erase, sha256};
use toolgate_gateway::{ConfiguredServer, FindTools, ServerDefinitions, ServerOptions, ServerTool, UseTool};
use toolgate_journal::PinStore;
use toolgate_runtime::{Registry, ToolServers};
use toolgate_sandbox::process::Profile;

use crate::configured_tools::effect_bindings;
use crate::error::WorkspaceError;
use crate::location::WorkspaceLocation;
use crate::options::{WarningSink, WorkspaceOptions};
use crate::sandbox_profile::create_private_directory;

/// Seconds that a call of a server's tool may take, and after which an idle server is stopped.
const USUAL_TIMEOUT_SECONDS: u64 = 120;
const USUAL_IDLE_SECONDS: u64 = 600;

/// The servers that configuration names, with the approved tools of each added to the registry.
pub(crate) fn add_mcp_servers(
    location: &WorkspaceLocation,
    settings: &Settings,
    options: &WorkspaceOptions,
    registry: &mut Registry,
) -> Result<ToolServers, WorkspaceError> {
    if settings.mcp_servers.is_empty() {
        return Ok(ToolServers::new());
    }
    let pins = location.mcp_pins()?;
    let mut servers = ToolServers::new();
    for (name, config) in &settings.mcp_servers {
        match server_options(location, name, config, &options.environment) {
            Ok(server) => {
                drop(servers.insert(name.clone(), Arc::new(ConfiguredServer::new(server)) as Arc<dyn ToolServer>))
            }
            Err(why) => {
                (options.warn)(&format!("The MCP server `{name}` is left out. {why}"));
                continue;
            }
        }
        if let Some(approved) = pins.load::<ServerDefinitions>(&pin_name(name, config))? {
            add_tools(name, config, &approved, registry, &options.warn);
        }
    }
    let tools: Vec<Declaration> = registry.declarations().filter(|tool| is_of_server(tool)).cloned().collect();
    if !tools.is_empty() {
        registry.add(erase(FindTools::new(tools)))?;
        registry.add(erase(UseTool))?;
    }
    Ok(servers)
}

fn is_of_server(tool: &Declaration) -> bool {
    tool.required_permissions.contains(&Permission::McpCall)
}

/// Adds the approved tools of a server.
fn add_tools(
    name: &str,
    config: &McpServerConfig,
    approved: &ServerDefinitions,
    registry: &mut Registry,
    warn: &WarningSink,
) {
    let timeout = Duration::from_secs(config.timeout_seconds.unwrap_or(USUAL_TIMEOUT_SECONDS));
    for definition in approved.definitions() {
        let bindings = config.effects.get(definition.name()).map_or_else(EffectBindings::default, effect_bindings);
        let added = ServerTool::new(name, &identity(config), &definition, config.workspace)
            .map_err(|error| error.message)
            .and_then(|tool| {
                registry.add(Arc::new(tool.touching(bindings).within(timeout))).map_err(|error| error.to_string())
            });
        if let Err(why) = added {
            warn(&format!("The tool `{}` of the MCP server `{name}` is left out. {why}", definition.name()));
        }
    }
}

/// Under which name a server's approved definitions are kept. Another command line is another server.
pub fn pin_name(name: &str, config: &McpServerConfig) -> String {
    let identity = json!([config.command, config.env, config.secrets]);
    format!("mcp {name} {}", sha256(identity.to_string()))
}

/// Who a server is and what it may do. An approval of one of its tools is for this one.
fn identity(config: &McpServerConfig) -> String {
    let McpServerConfig { command, env, secrets, workspace, roots, hosts, directory, .. } = config;
    json!([command, env, secrets, workspace, roots, hosts, directory]).to_string()
}

fn server_options(
    location: &WorkspaceLocation,
    name: &str,
    config: &McpServerConfig,
    environment: &BTreeMap<OsString, OsString>,
) -> Result<ServerOptions, String> {
    let home = location.mcp_home(name).map_err(|error| ToolError::from(error).message)?;
    create_private_directory(&home)
        .map_err(|error| format!("Its directory `{}` can't be made: {error}.", home.display()))?;
    let home = canonical(&home)?;
    let mut variables: BTreeMap<OsString, OsString> =
        config.env.iter().map(|(name, value)| (name.into(), value.into())).collect();
    for (variable, source) in &config.secrets {
        variables.insert(variable.into(), secret(source, environment)?);
    }
    let program = config.command.first().map(Path::new).filter(|program| program.is_absolute());
    let installed = program.and_then(|program| Profile::installation_of(program, location.home.as_deref()));
    Ok(ServerOptions {
        name: name.to_owned(),
        command: config.command.clone(),
        environment: variables,
        home,
        roots: config.roots.iter().map(PathBuf::from).chain(installed).collect(),
        starts_in_workspace: config.directory == ServerDirectory::Workspace,
        directory: location.directory.clone(),
        workspace: config.workspace,
        hosts: config.hosts.clone(),
        idle_seconds: config.idle_seconds.unwrap_or(USUAL_IDLE_SECONDS),
    })
}

#[allow(clippy::disallowed_methods, reason = "a directory of the user's own, not in a workspace")]
fn canonical(path: &Path) -> Result<PathBuf, String> {
    std::fs::canonicalize(path).map_err(|error| format!("Its directory `{}` can't be found: {error}.", path.display()))
}

/// The value of a secret, from where configuration says that it is.
#[allow(clippy::disallowed_methods, reason = "a file that the user's own configuration names")]
fn secret(source: &SecretSource, environment: &BTreeMap<OsString, OsString>) -> Result<OsString, String> {
    match source {
        SecretSource::Variable(name) => {
            let value = environment.get(&OsString::from(name)).cloned();
            value.ok_or_else(|| format!("It needs the variable `{name}`, which isn't set."))
        }
        SecretSource::File(path) => {
            let text = std::fs::read_to_string(path).map_err(|error| format!("`{path}` can't be read: {error}."))?;
            Ok(text.strip_suffix('\n').unwrap_or(&text).into())
        }
    }
}

/// The secrets of all servers, for the redactor.
pub(crate) fn server_secrets(settings: &Settings, environment: &BTreeMap<OsString, OsString>) -> Vec<(String, String)> {
    let sources = settings.mcp_servers.values().flat_map(|config| &config.secrets);
    let known = sources
        .filter_map(|(name, source)| Some((name.clone(), secret(source, environment).ok()?.into_string().ok()?)));
    known.filter(|(_, value)| !value.is_empty()).collect()
}

impl WorkspaceLocation {
    /// What a person approved of other MCP servers.
    pub fn mcp_pins(&self) -> Result<PinStore, WorkspaceError> {
        let key = self.signing_key().ok_or_else(|| {
            ToolError::internal("What was approved of MCP servers can't be read, as there is no signing key.")
        })?;
        Ok(PinStore::open(&self.config.mcp_pins(), key)?)
    }

    /// The directory that is a server's home, one for each workspace.
    fn mcp_home(&self, server: &str) -> Result<PathBuf, WorkspaceError> {
        Ok(self.config.mcp_homes().join(self.cache_key()?).join(server))
    }
}
