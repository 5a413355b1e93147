//! Other MCP servers of a workspace: from configuration and what a person approved to servers and tools. One that can't be used
//! costs itself, and a warning.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use serde_json::{Value, json};
use toolgate_config::{McpServerConfig, SecretSource, ServerDirectory, ServerProtocol, Settings};
use toolgate_contract::{Declaration, EffectBindings, Permission, ToolError, ToolServer, erase, sha256};
use toolgate_gateway::{
    ApprovedIdentity, ConfiguredServer, Definition, FindTools, InstalledFiles, ListResources, ProtocolChoice,
    ReadResource, RemoteOptions, RemoteServer, ServerDefinitions, ServerIdentities, ServerOptions, ServerTool,
    TokenStore, UseTool,
};
use toolgate_journal::PinStore;
use toolgate_runtime::{Gate, Registry, ToolServers};

use crate::configured_tools::effect_bindings;
use crate::error::WorkspaceError;
use crate::location::WorkspaceLocation;
use crate::options::{WarningSink, WorkspaceOptions};
use crate::sandbox_profile::create_private_directory;
use crate::{server_code, server_files};

/// Seconds that a call of a server's tool may take, and after which an idle server is stopped.
const USUAL_TIMEOUT_SECONDS: u64 = 120;
const USUAL_IDLE_SECONDS: u64 = 600;

/// Memory that a server may use.
const USUAL_MEMORY_BYTES: u64 = 4 << 30;

/// What a person approved of servers, as a running program last read it.
#[derive(Default)]
pub(crate) struct ApprovedTools {
    /// What was approved, by the server's name.
    definitions: BTreeMap<String, ServerDefinitions>,
    /// The names of the tools that came of it.
    names: Vec<String>,
    /// When the directory of approvals had last changed before it was read.
    read_at: Option<SystemTime>,
}

/// Finds out whether a person approved something else meanwhile.
pub(crate) struct ApprovalWatch {
    location: WorkspaceLocation,
    warn: WarningSink,
    approved: Mutex<ApprovedTools>,
    /// When the directory of approvals last changed, as far as it was read.
    read_at: Mutex<Option<SystemTime>>,
}

impl ApprovalWatch {
    pub(crate) fn new(location: &WorkspaceLocation, warn: &WarningSink, approved: ApprovedTools) -> Self {
        let (location, warn) = (location.clone(), Arc::clone(warn));
        let read_at = Mutex::new(approved.read_at);
        Self { location, warn, approved: Mutex::new(approved), read_at }
    }

    /// Reads again what is approved, and changes the tools of the gate accordingly. Returns whether they changed.
    pub(crate) fn refresh(&self, gate: &Gate) -> Result<bool, WorkspaceError> {
        let mut read_at = self.read_at.lock();
        let now = changed_at(&self.location);
        if gate.settings().mcp_servers.is_empty() || *read_at == now {
            return Ok(false);
        }
        let mut approved = self.approved.lock();
        let servers = &gate.settings().mcp_servers;
        let mut definitions = approved_definitions(&self.location, servers)?;
        definitions.retain(|name, _| gate.has_server(name));
        if definitions == approved.definitions {
            *read_at = now;
            return Ok(false);
        }
        let mut added = Ok(Vec::new());
        gate.change_tools(|registry| {
            registry.remove(&approved.names);
            added = add_approved(servers, &definitions, registry, &self.warn);
        });
        *approved = ApprovedTools { definitions, names: added?, read_at: now };
        // What can't be read is read at the next look.
        *read_at = now;
        Ok(true)
    }
}

/// When something was last approved, or an approval was removed.
#[allow(clippy::disallowed_methods, reason = "a directory of the user's own, not in a workspace")]
fn changed_at(location: &WorkspaceLocation) -> Option<SystemTime> {
    std::fs::metadata(location.config.mcp_pins()).and_then(|about| about.modified()).ok()
}

/// What is approved of the servers that configuration names.
fn approved_definitions(
    location: &WorkspaceLocation,
    servers: &BTreeMap<String, McpServerConfig>,
) -> Result<BTreeMap<String, ServerDefinitions>, WorkspaceError> {
    let pins = location.mcp_pins()?;
    let mut approved = BTreeMap::new();
    for (name, config) in servers {
        if let Some(definitions) = pins.load::<ServerDefinitions>(&pin_name(name, config))? {
            approved.insert(name.clone(), definitions);
        }
    }
    Ok(approved)
}

/// Adds the approved tools of all servers, and returns the names of what was added.
fn add_approved(
    servers: &BTreeMap<String, McpServerConfig>,
    approved: &BTreeMap<String, ServerDefinitions>,
    registry: &mut Registry,
    warn: &WarningSink,
) -> Result<Vec<String>, WorkspaceError> {
    let before: HashSet<String> = registry.names().map(str::to_owned).collect();
    let owners = NameOwners::of(registry, approved.iter().map(|(name, definitions)| (name.as_str(), definitions)));
    let mut identities = BTreeMap::new();
    for (name, definitions) in approved {
        let Some(config) = servers.get(name) else { continue };
        add_tools(name, config, definitions, &owners, registry, warn);
        identities.insert(name.clone(), sha256(identity(config)));
    }
    add_finders(registry, Arc::new(identities))?;
    Ok(registry.names().filter(|name| !before.contains(*name)).map(str::to_owned).collect())
}

/// The servers that configuration names, with the approved tools of each added to the registry.
pub(crate) fn add_mcp_servers(
    location: &WorkspaceLocation,
    settings: &Settings,
    options: &WorkspaceOptions,
    registry: &mut Registry,
) -> Result<(ToolServers, ApprovedTools), WorkspaceError> {
    if settings.mcp_servers.is_empty() {
        return Ok(Default::default());
    }
    let read_at = changed_at(location);
    let mut definitions = approved_definitions(location, &settings.mcp_servers)?;
    let mut servers = ToolServers::new();
    for (name, config) in &settings.mcp_servers {
        match tool_server(location, name, config, &options.environment) {
            Ok(server) => drop(servers.insert(name.clone(), server)),
            // One that offers nothing anyway is left to `toolgate doctor`.
            Err(why) if definitions.contains_key(name) => {
                (options.warn)(&format!("The MCP server `{name}` is left out. {why}"));
            }
            Err(_) => {}
        }
    }
    definitions.retain(|name, _| servers.contains_key(name));
    let names = add_approved(&settings.mcp_servers, &definitions, registry, &options.warn)?;
    Ok((servers, ApprovedTools { definitions, names, read_at }))
}

/// Adds the tools that find and use those of servers, and read their resources.
fn add_finders(registry: &mut Registry, identities: ServerIdentities) -> Result<(), WorkspaceError> {
    let tools: Vec<Declaration> = registry.declarations().filter(|tool| is_of_server(tool)).cloned().collect();
    if !identities.is_empty() {
        registry.add(erase(ListResources(Arc::clone(&identities))))?;
        registry.add(erase(ReadResource(identities)))?;
    }
    if !tools.is_empty() {
        registry.add(erase(FindTools::new(tools)))?;
        registry.add(erase(UseTool))?;
    }
    Ok(())
}

/// Whose tools have which names. Text of a server that has another's name in it may want to steer how that tool is used.
struct NameOwners(HashMap<String, Vec<String>>);

impl NameOwners {
    fn of<'a>(registry: &Registry, servers: impl Iterator<Item = (&'a str, &'a ServerDefinitions)>) -> Self {
        let mut owners = HashMap::<String, Vec<String>>::new();
        let mut add = |name: &str, owner: &str| {
            // Names that are words of the language say nothing.
            if name.contains(['_', '-']) {
                owners.entry(name.to_owned()).or_default().push(owner.to_owned());
            }
        };
        registry.names().for_each(|name| add(name, ""));
        for (server, definitions) in servers {
            definitions.tools.iter().filter_map(|raw| raw["name"].as_str()).for_each(|name| add(name, server));
        }
        Self(owners)
    }

    /// Whether a definition of this server has the name of a tool that isn't the server's own.
    fn has_other(&self, server: &str, definition: &Definition) -> bool {
        let is_word = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == '-';
        let is_others = |word: &str| self.0.get(word).is_some_and(|owners| !owners.iter().any(|owner| owner == server));
        // Only such words can be names here, and few are.
        let mut words =
            |text: &str| text.split(|letter| !is_word(letter)).filter(|word| word.contains(['_', '-'])).any(is_others);
        has_text(definition.raw(), &mut words)
    }
}

/// Whether any text of a value, names of fields included, is such a one.
fn has_text(value: &Value, is_it: &mut impl FnMut(&str) -> bool) -> bool {
    match value {
        Value::String(text) => is_it(text),
        Value::Array(entries) => entries.iter().any(|entry| has_text(entry, is_it)),
        Value::Object(fields) => fields.iter().any(|(name, value)| is_it(name) || has_text(value, is_it)),
        _ => false,
    }
}

fn is_of_server(tool: &Declaration) -> bool {
    tool.required_permissions.contains(&Permission::McpCall)
}

/// Adds the approved tools of a server.
fn add_tools(
    name: &str,
    config: &McpServerConfig,
    approved: &ServerDefinitions,
    owners: &NameOwners,
    registry: &mut Registry,
    warn: &WarningSink,
) {
    let timeout = timeout(config);
    for definition in approved.definitions() {
        let bindings = config.effects.get(definition.name()).map_or_else(EffectBindings::default, effect_bindings);
        let added = ServerTool::new(name, &identity(config), &definition, config.workspace)
            .map_err(|error| error.message)
            .and_then(|tool| {
                let tool = tool.of_server(approved.about.as_ref()).touching(bindings).within(timeout);
                let tool = if owners.has_other(name, &definition) { tool.speaking_of_others() } else { tool };
                registry.add(Arc::new(tool)).map_err(|error| error.to_string())
            });
        if let Err(why) = added {
            warn(&format!("The tool `{}` of the MCP server `{name}` is left out. {why}", definition.name()));
        }
    }
}

/// Under which name a server's approved definitions are kept. Another command line is another server.
pub fn pin_name(name: &str, config: &McpServerConfig) -> String {
    let identity = json!([config.command, config.url, config.env, config.secrets]);
    format!("mcp {name} {}", sha256(identity.to_string()))
}

/// Who a server is and what it may do. An approval of one of its tools is for this one.
fn identity(config: &McpServerConfig) -> String {
    let McpServerConfig { command, url, bearer, env, secrets, workspace, roots, hosts, directory, sampling, .. } =
        config;
    json!([command, url, bearer, env, secrets, workspace, roots, hosts, directory, sampling]).to_string()
}

fn timeout(config: &McpServerConfig) -> Duration {
    Duration::from_secs(config.timeout_seconds.unwrap_or(USUAL_TIMEOUT_SECONDS))
}

fn protocol(config: &McpServerConfig) -> ProtocolChoice {
    match config.protocol {
        ServerProtocol::Auto => ProtocolChoice::Both,
        ServerProtocol::Handshake => ProtocolChoice::Handshake,
        ServerProtocol::Stateless => ProtocolChoice::Stateless,
    }
}

/// A server of the configuration.
fn tool_server(
    location: &WorkspaceLocation,
    name: &str,
    config: &McpServerConfig,
    environment: &BTreeMap<OsString, OsString>,
) -> Result<Arc<dyn ToolServer>, String> {
    match &config.url {
        Some(url) => Ok(Arc::new(RemoteServer::new(remote_options(location, name, config, url, environment)?))),
        None => Ok(Arc::new(ConfiguredServer::new(server_options(location, name, config, environment)?))),
    }
}

fn remote_options(
    location: &WorkspaceLocation,
    name: &str,
    config: &McpServerConfig,
    url: &str,
    environment: &BTreeMap<OsString, OsString>,
) -> Result<RemoteOptions, String> {
    let words = |error: ToolError| error.message;
    let tokens = location.server_tokens(url).map_err(|error| words(error.into()))?;
    let bearer = config.bearer.as_ref().map(|source| secret(source, environment)).transpose()?;
    let bearer = bearer.map(|token| token.into_string().map_err(|_| "Its token isn't text.".to_owned())).transpose()?;
    // A person agreed to this host when they logged in.
    let renewal = tokens.load().map_err(words)?.and_then(|token| {
        let (host, port) = toolgate_gateway::host_of(&token.token_endpoint)?;
        Some(format!("{host}:{port}"))
    });
    Ok(RemoteOptions {
        name: name.to_owned(),
        url: url.to_owned(),
        bearer,
        tokens,
        hosts: config.hosts.iter().cloned().chain(renewal).collect(),
        protocol: protocol(config),
        timeout: timeout(config),
        idle_seconds: config.idle_seconds.unwrap_or(USUAL_IDLE_SECONDS),
        may_sample: config.sampling,
    })
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
    let search_path = environment.get(&OsString::from("PATH")).map(OsString::as_os_str);
    let starts_in = start_directory(location, config, &home);
    let code =
        server_code::readable(&config.command, starts_in, &location.directory, search_path, location.home.as_deref());
    let files = installed_files(location, config, &home, environment);
    Ok(ServerOptions {
        name: name.to_owned(),
        command: config.command.clone(),
        environment: variables,
        home,
        roots: config.roots.iter().map(PathBuf::from).chain(code).collect(),
        starts_in_workspace: config.directory == ServerDirectory::Workspace,
        directory: location.directory.clone(),
        workspace: config.workspace,
        hosts: config.hosts.clone(),
        protocol: protocol(config),
        timeout: timeout(config),
        idle_seconds: config.idle_seconds.unwrap_or(USUAL_IDLE_SECONDS),
        memory_bytes: config.memory_bytes.unwrap_or(USUAL_MEMORY_BYTES),
        installed: files,
        approved: approved_identity(location, name, config),
        may_sample: config.sampling,
    })
}

/// Where a server is started.
fn start_directory<'a>(location: &'a WorkspaceLocation, config: &McpServerConfig, home: &'a Path) -> &'a Path {
    match config.directory {
        ServerDirectory::Home => home,
        ServerDirectory::Workspace => &location.directory,
    }
}

/// Says what a server is started from, whenever it is started.
fn installed_files(
    location: &WorkspaceLocation,
    config: &McpServerConfig,
    home: &Path,
    environment: &BTreeMap<OsString, OsString>,
) -> InstalledFiles {
    let (directory, command) = (start_directory(location, config, home).to_owned(), config.command.clone());
    let search_path = environment.get(&OsString::from("PATH")).cloned();
    Arc::new(move || server_files::describe(&command, &directory, search_path.as_deref()))
}

/// Says what a person approved that a server is, as the pin has it at that time.
fn approved_identity(location: &WorkspaceLocation, name: &str, config: &McpServerConfig) -> ApprovedIdentity {
    let (location, pin) = (location.clone(), pin_name(name, config));
    Arc::new(move || {
        let pins = location.mcp_pins().map_err(ToolError::from)?;
        let definitions =
            pins.load::<ServerDefinitions>(&pin).map_err(WorkspaceError::from).map_err(ToolError::from)?;
        Ok(definitions.and_then(|definitions| definitions.about))
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
pub(crate) fn server_secrets(
    location: &WorkspaceLocation,
    settings: &Settings,
    environment: &BTreeMap<OsString, OsString>,
) -> Vec<(String, String)> {
    let servers = settings.mcp_servers.iter();
    let bearers = servers.clone().filter_map(|(name, config)| Some((name, config.bearer.as_ref()?)));
    let sources = servers.clone().flat_map(|(_, config)| &config.secrets).chain(bearers);
    let known = sources
        .filter_map(|(name, source)| Some((name.clone(), secret(source, environment).ok()?.into_string().ok()?)));
    let logins = servers.filter_map(|(name, config)| {
        let token = location.server_tokens(config.url.as_ref()?).ok()?.load().ok()??;
        Some([Some(token.access_token), token.refresh_token].into_iter().flatten().map(|secret| (name.clone(), secret)))
    });
    known.chain(logins.flatten()).filter(|(_, value)| !value.is_empty()).collect()
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
