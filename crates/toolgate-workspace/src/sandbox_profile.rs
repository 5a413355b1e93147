//! What commands in a workspace are confined to.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use toolgate_config::{CommandLimits, PackageCacheMode, RootConfig, Settings};
use toolgate_contract::RootAccess;
use toolgate_sandbox::process::{Profile, ResourceLimits, SandboxOptions};
use toolgate_sandbox::{PackageCaches, SandboxedProcesses};

use crate::location::WorkspaceLocation;

/// Variables of ours that a command may see. None of them is a secret, and none decides what runs.
const PASSED_ON: &[&str] = &[
    "ANDROID_HOME",
    "ANDROID_SDK_ROOT",
    "CARGO_HOME",
    "CONDA_PREFIX",
    "DOTNET_ROOT",
    "GOPATH",
    "GOROOT",
    "HOME",
    "JAVA_HOME",
    "LANG",
    "LOGNAME",
    "NVM_DIR",
    "PATH",
    "PYENV_ROOT",
    "RBENV_ROOT",
    "RUNNER_TOOL_CACHE",
    "RUSTUP_HOME",
    "TZ",
    "USER",
    "VIRTUAL_ENV",
];

/// Variables of ours that name certificates of authorities. A command may see those that lead to the system's own directories,
/// which it sees as well; any other would keep it from connecting at all.
const CERTIFICATES: &[&str] = &[
    "CARGO_HTTP_CAINFO",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "NODE_EXTRA_CA_CERTS",
    "PIP_CERT",
    "REQUESTS_CA_BUNDLE",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
];

/// What makes programs neither ask, page nor colour, nor look for newer versions of themselves.
const SET: &[(&str, &str)] = &[
    ("DEBIAN_FRONTEND", "noninteractive"),
    ("EDITOR", "true"),
    // A directory that merely looks like a repository brings no configuration of its own. Git collects garbage before a command
    // ends: what goes on in the background is killed then, and would leave half of it behind.
    ("GIT_CONFIG_COUNT", "3"),
    ("GIT_CONFIG_KEY_0", "safe.bareRepository"),
    ("GIT_CONFIG_VALUE_0", "explicit"),
    ("GIT_CONFIG_KEY_1", "gc.autoDetach"),
    ("GIT_CONFIG_VALUE_1", "false"),
    ("GIT_CONFIG_KEY_2", "maintenance.autoDetach"),
    ("GIT_CONFIG_VALUE_2", "false"),
    ("GIT_EDITOR", "true"),
    ("GIT_PAGER", "cat"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("NO_COLOR", "1"),
    ("NO_UPDATE_NOTIFIER", "1"),
    ("PAGER", "cat"),
    ("PIP_DISABLE_PIP_VERSION_CHECK", "1"),
    ("SHELL", "/bin/bash"),
    ("TERM", "dumb"),
    ("npm_config_update_notifier", "false"),
];

/// How commands run: in a sandbox, where they change nothing but what tools may change.
pub fn sandboxed_processes(
    location: &WorkspaceLocation,
    settings: &Settings,
    environment: &BTreeMap<OsString, OsString>,
    options: SandboxOptions,
) -> SandboxedProcesses {
    let mut profile = profile_without_toolchains(location, &settings.roots, environment);
    profile.limits = resource_limits(settings.command_limits);
    let processes = SandboxedProcesses::new(profile, options)
        .with_toolchains(environment.clone())
        .at_least(settings.weakest_sandbox);
    match package_caches(location, settings, environment) {
        Some(caches) => processes.with_caches(caches),
        None => processes,
    }
}

/// The private caches of package managers, unless there are to be none. A workspace that nothing can be recorded in has none.
fn package_caches(
    location: &WorkspaceLocation,
    settings: &Settings,
    environment: &BTreeMap<OsString, OsString>,
) -> Option<PackageCaches> {
    let is_on = settings.package_caches == PackageCacheMode::Private;
    let key = is_on.then(|| location.cache_key().ok())??;
    let (store, home) = (location.cache_store(settings), location.home.as_deref());
    Some(PackageCaches::new(store, key, &location.directory, home, environment))
}

/// What a command in this workspace is confined to.
pub fn sandbox_profile(
    location: &WorkspaceLocation,
    roots: &[RootConfig],
    environment: &BTreeMap<OsString, OsString>,
) -> Profile {
    profile_without_toolchains(location, roots, environment).with_toolchains(environment)
}

fn profile_without_toolchains(
    location: &WorkspaceLocation,
    roots: &[RootConfig],
    environment: &BTreeMap<OsString, OsString>,
) -> Profile {
    let mut profile = Profile::for_workspace(&location.directory, location.home.as_deref());
    for root in roots {
        let paths = if root.access == RootAccess::Write { &mut profile.writable } else { &mut profile.shown };
        paths.push(PathBuf::from(&root.path));
    }
    profile.roots = root_directories(location, roots);
    profile.environment = command_environment(environment);
    // A command that reached an attach socket could type into another one. The directory has to exist to be hidden.
    let attach_sockets = location.config.attach_sockets();
    if create_private_directory(&attach_sockets).is_ok() {
        profile.masked.push(attach_sockets);
    }
    profile
}

fn resource_limits(limits: CommandLimits) -> ResourceLimits {
    ResourceLimits {
        processes: Some(limits.processes),
        open_files: Some(limits.open_files),
        processor_seconds: Some(limits.processor_seconds),
        temporary_bytes: Some(limits.temporary_bytes),
        ..ResourceLimits::default()
    }
}

/// The directories that workspace paths are in; the workspace comes first.
pub fn root_directories(location: &WorkspaceLocation, roots: &[RootConfig]) -> Vec<PathBuf> {
    [location.directory.clone()].into_iter().chain(roots.iter().map(|root| PathBuf::from(&root.path))).collect()
}

/// Creates a directory that only its owner can enter.
#[allow(clippy::disallowed_methods, reason = "makes a directory of the user's own, not in a workspace")]
pub fn create_private_directory(directory: &Path) -> io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    std::fs::set_permissions(directory, PermissionsExt::from_mode(0o700))
}

fn command_environment(environment: &BTreeMap<OsString, OsString>) -> BTreeMap<OsString, OsString> {
    let is_of_system =
        |value: &OsString| ["/etc", "/usr"].iter().any(|directory| Path::new(value).starts_with(directory));
    let is_passed_on = |name: &str, value: &OsString| {
        PASSED_ON.contains(&name) || name.starts_with("LC_") || (CERTIFICATES.contains(&name) && is_of_system(value))
    };
    let own = environment.iter().filter(|(name, value)| name.to_str().is_some_and(|name| is_passed_on(name, value)));
    let own = own.map(|(name, value)| (name.clone(), value.clone()));
    own.chain(SET.iter().map(|(name, value)| (name.into(), value.into()))).collect()
}
