//! Makes a plan from a profile and a launch spec. All paths are looked up here, on the host, so that nothing is left to be
//! interpreted in the sandbox.

mod git_environment;
mod landlock_paths;
mod path_lookup;
mod protected_paths;
mod unix_sockets;

use std::ffi::{CString, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use toolgate_contract::{LaunchSpec, NetworkAccess, Streams, Substitute};

use self::path_lookup::PathLookup;
use super::command_paths::{CommandPaths, start_directory};
use super::enforcement::Tier;
use super::error::SandboxError;
use super::plan::{
    ExecRequest, NetworkPlan, OverlayMount, PinnedPath, SandboxPlan, SubstituteMount, TmpfsMount, is_inside,
};
use super::profile::{Profile, Readable, UnixSockets};
use crate::network::listener_addresses;

/// Directories that are a tmpfs of its own in every sandbox.
const PRIVATE_DIRECTORIES: &[&str] = &["/run", "/tmp"];
/// The sockets and files of systemd-resolved, needed when the network is shared; they are in a private directory.
const RESOLVER: &str = "/run/systemd/resolve";
/// The list of nameservers, which may be a symlink into [`RESOLVER`].
const NAMESERVERS: &str = "/etc/resolv.conf";
/// The permission bits of a file with another content.
const PLAIN_FILE: u32 = 0o644;
/// The `PATH` of a command whose environment has none.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The plan of a sandbox for this profile and the paths of one command, as the machine is right now.
pub(super) fn plan(
    profile: &Profile,
    paths: &CommandPaths,
    network: &NetworkAccess,
    tier: Tier,
    overlays: Vec<OverlayMount>,
) -> Result<SandboxPlan, SandboxError> {
    let lookup = PathLookup::default();
    let writable = required(&lookup, paths.writable.iter().chain(&paths.own))?;
    // Everything that is mounted on top of what is hidden, and in which something may be hidden again.
    let roots = [required(&lookup, paths.read_only.iter())?, writable.clone()].concat();
    let shown = shown(&lookup, profile, paths, network);
    let (directories, secret): (Vec<PinnedPath>, Vec<PinnedPath>) =
        paths.secret.iter().filter_map(|path| lookup.find(path)).partition(|place| place.directory);
    let hidden = paths.masked.iter().filter_map(|path| lookup.find(path)).chain(directories);
    let (mut tmpfs_mounts, mut masked) = hidden_paths(&lookup, profile, hidden, &writable, &shown);
    let is_in_a_root = |tmpfs: &mut TmpfsMount| !tmpfs.writable && roots.iter().any(|root| is_within(tmpfs, root));
    let late_tmpfs_mounts: Vec<TmpfsMount> = tmpfs_mounts.extract_if(.., is_in_a_root).collect();
    let (mut pinned, protected) = protected_paths::pinned_and_read_only(&lookup, &paths.protected, &writable)?;
    let replaced = paths.replaced.iter().filter_map(|(path, content)| {
        let place = lookup.find(path).filter(|place| !place.directory)?;
        Some(SubstituteMount { place, content: content.to_vec(), mode: PLAIN_FILE, modified: None })
    });
    let committed =
        paths.substitutes.iter().filter_map(|(path, substitute)| substitute_mount(&lookup, path, substitute));
    let substitutes: Vec<SubstituteMount> = committed.chain(replaced).collect();
    // Their parents are pinned: a hidden path that is renamed would no longer be hidden. In place, a directory that a mask is over
    // would go along with its parent, and nobody would know what was in it. On an overlay, no directory with a mount in it is moved.
    let hidden_directories = masked.iter().filter(|_| overlays.is_empty());
    let hidden = secret
        .iter()
        .chain(hidden_directories)
        .chain(substitutes.iter().map(|substitute| &substitute.place))
        .map(path_of)
        .chain(late_tmpfs_mounts.iter().map(|tmpfs| PathBuf::from(std::ffi::OsStr::from_bytes(tmpfs.path.to_bytes()))));
    pinned.extend(hidden.flat_map(|path| protected_paths::above(&lookup, &path, &writable)));
    let granted = || roots.iter().chain(&shown);
    let (only, links) = readable(&lookup, profile);
    let has_sockets = profile.unix_sockets == UnixSockets::Private && tier == Tier::Namespaces;
    if has_sockets {
        masked.extend(unix_sockets::of_host(&lookup, &tmpfs_mounts, granted(), only.as_deref()));
    }
    let plan = SandboxPlan {
        tier,
        only,
        links,
        tmpfs_mounts: in_order(tmpfs_mounts),
        shown: in_order(shown),
        writable: in_order(writable),
        late_tmpfs_mounts: in_order(late_tmpfs_mounts),
        pinned: in_order(pinned),
        protected: in_order(protected),
        masked: in_order(masked),
        secret: in_order(secret),
        substitutes: in_order(substitutes),
        // An overlay has inodes of its own, so no socket of the host can be reached through it.
        watches_connects: has_sockets && overlays.is_empty(),
        overlays,
        network: network_plan(&lookup, network),
        unix_sockets: profile.unix_sockets,
        limits: profile.limits,
    };
    Ok(if tier == Tier::Landlock { landlock_paths::without_mounts(&lookup, plan) } else { plan })
}

/// A plan without any confinement.
pub(super) fn plan_unconfined(profile: &Profile) -> SandboxPlan {
    SandboxPlan {
        tier: Tier::Open,
        only: None,
        links: Vec::new(),
        tmpfs_mounts: Vec::new(),
        shown: Vec::new(),
        writable: Vec::new(),
        late_tmpfs_mounts: Vec::new(),
        pinned: Vec::new(),
        protected: Vec::new(),
        masked: Vec::new(),
        secret: Vec::new(),
        substitutes: Vec::new(),
        overlays: Vec::new(),
        network: NetworkPlan::Shared,
        watches_connects: false,
        unix_sockets: profile.unix_sockets,
        limits: profile.limits,
    }
}

fn substitute_mount(lookup: &PathLookup, path: &Path, substitute: &Substitute) -> Option<SubstituteMount> {
    let place = lookup.find(path).filter(|place| !place.directory)?;
    let Substitute { mode, modified, ref content, .. } = *substitute;
    Some(SubstituteMount { place, content: content.to_vec(), mode, modified })
}

/// How the network namespace is set up for this access.
fn network_plan(lookup: &PathLookup, network: &NetworkAccess) -> NetworkPlan {
    match network {
        NetworkAccess::Off => NetworkPlan::Off,
        NetworkAccess::Shared => NetworkPlan::Shared,
        NetworkAccess::Listed(listed) => NetworkPlan::Listed {
            listeners: listener_addresses(listed.as_ref()),
            nameservers: lookup.find(Path::new(NAMESERVERS)),
        },
    }
}

/// The paths in hidden directories that can be read nevertheless.
fn shown(lookup: &PathLookup, profile: &Profile, paths: &CommandPaths, network: &NetworkAccess) -> Vec<PinnedPath> {
    let home = profile.home.iter().flat_map(|home| home.shown.iter().map(|name| home.path.join(name)));
    let resolver = matches!(network, NetworkAccess::Shared).then(|| RESOLVER.into());
    home.chain(resolver).chain(paths.shown.iter().cloned()).filter_map(|path| lookup.find(&path)).collect()
}

/// The directories to mount a tmpfs over, and the paths to mask. A hidden directory that holds something granted gets a tmpfs,
/// so that what was granted can be mounted on top of it.
fn hidden_paths(
    lookup: &PathLookup,
    profile: &Profile,
    hidden: impl Iterator<Item = PinnedPath>,
    writable: &[PinnedPath],
    shown: &[PinnedPath],
) -> (Vec<TmpfsMount>, Vec<PinnedPath>) {
    let private = PRIVATE_DIRECTORIES.iter().filter_map(|path| lookup.find(Path::new(path)));
    let mut mounts: Vec<TmpfsMount> = private.map(|place| tmpfs_over(place, true, true)).collect();
    if let Some(home) = profile.home.as_ref().and_then(|home| lookup.find(&home.path)) {
        mounts.retain(|tmpfs| tmpfs.path != home.path);
        mounts.push(tmpfs_over(home, true, false));
    }
    let mut masked = Vec::new();
    for place in hidden {
        let holds = |path: &CString| is_inside(path, &place.path) && *path != place.path;
        let granted = writable.iter().chain(shown).map(|place| &place.path);
        if mounts.iter().any(|tmpfs| tmpfs.path == place.path) {
            continue;
        }
        if granted.chain(mounts.iter().map(|tmpfs| &tmpfs.path)).any(holds) {
            mounts.push(tmpfs_over(place, false, false));
        } else {
            masked.push(place);
        }
    }
    (mounts, masked)
}

/// The only paths that can be read (none if everything can be), and symlinks that lead there.
type ReadablePaths = (Option<Vec<PinnedPath>>, Vec<(CString, CString)>);

/// What can be read, without what is in another such path, or private anyway.
fn readable(lookup: &PathLookup, profile: &Profile) -> ReadablePaths {
    let Readable::Only(paths) = &profile.readable else { return (None, Vec::new()) };
    let found: Vec<(&PathBuf, PinnedPath)> = paths.iter().filter_map(|path| Some((path, lookup.find(path)?))).collect();
    let mut only: Vec<PinnedPath> = Vec::new();
    for place in in_order(found.iter().map(|(_, place)| place.clone()).collect()) {
        let is_private = PRIVATE_DIRECTORIES.iter().any(|private| path_of(&place).starts_with(private));
        if !is_private && !only.iter().any(|outer| is_inside(&place.path, &outer.path)) {
            only.push(place);
        }
    }
    let c_string = |path: &Path| CString::new(path.as_os_str().as_bytes()).ok();
    // Whatever isn't found by its own name is a symlink, or behind one.
    let moved = found.iter().filter(|(path, place)| path_of(place) != **path).map(|(path, _)| *path);
    let linked = |path: &PathBuf| Some((c_string(path)?, rustix::fs::readlink(path, Vec::new()).ok()?));
    (Some(only), moved.filter_map(linked).collect())
}

/// The command as the sandbox executes it. The sandbox's own variables are set last, so that nothing overrides them.
pub(super) fn exec_request(
    profile: &Profile,
    spec: &LaunchSpec,
    paths: &CommandPaths,
    own: Vec<(&str, OsString)>,
) -> Result<ExecRequest, SandboxError> {
    let mut variables = profile.environment.clone();
    if let Streams::Terminal(_) = spec.streams {
        // A command without a terminal has no TERM, so that programs don't print colours.
        variables.insert("TERM".into(), "xterm-256color".into());
    }
    variables.extend(spec.environment.clone());
    if !paths.substitutes.is_empty() {
        git_environment::compare_times_and_sizes_only(&mut variables);
    }
    variables.extend(own.into_iter().map(|(name, value)| (name.into(), value)));
    let path = variables.get(std::ffi::OsStr::new("PATH")).map_or(DEFAULT_PATH.into(), Clone::clone);
    let programs = match spec.program.as_bytes().contains(&b'/') {
        true => vec![PathBuf::from(&spec.program)],
        false => std::env::split_paths(&path).map(|directory| directory.join(&spec.program)).collect(),
    };
    let environment = variables.into_iter().map(|(name, value)| {
        let mut pair = name.into_vec();
        pair.push(b'=');
        pair.extend(value.into_vec());
        c_string(pair)
    });
    let arguments = std::iter::once(&spec.program).chain(&spec.arguments);
    Ok(ExecRequest {
        programs: programs
            .into_iter()
            .map(|path| c_string(path.into_os_string().into_vec()))
            .collect::<Result<_, _>>()?,
        arguments: arguments.map(|argument| c_string(argument.clone().into_vec())).collect::<Result<_, _>>()?,
        environment: environment.collect::<Result<_, _>>()?,
        working_directory: c_string(start_directory(profile, spec).into_os_string().into_vec())?,
        terminal: match spec.streams {
            Streams::Terminal(size) => Some(size),
            Streams::Output | Streams::Input => None,
        },
        is_job: spec.is_job,
    })
}

fn c_string(bytes: impl Into<Vec<u8>>) -> Result<CString, SandboxError> {
    CString::new(bytes).map_err(|error| {
        let text = String::from_utf8_lossy(error.into_vec().as_slice()).into_owned();
        SandboxError::NulByte { text }
    })
}

/// The paths that have to exist.
fn required<'a>(
    lookup: &PathLookup,
    paths: impl Iterator<Item = &'a PathBuf>,
) -> Result<Vec<PinnedPath>, SandboxError> {
    let found = |path: &PathBuf| lookup.pin(path).map_err(|error| SandboxError::Root { path: path.clone(), error });
    paths.map(found).collect()
}

/// Whether a tmpfs is inside of a root, and isn't the root itself.
fn is_within(tmpfs: &TmpfsMount, root: &PinnedPath) -> bool {
    tmpfs.path != root.path && is_inside(&tmpfs.path, &root.path)
}

fn tmpfs_over(place: PinnedPath, writable: bool, shared: bool) -> TmpfsMount {
    TmpfsMount { path: place.path, writable, shared }
}

/// Sorted and without duplicates. A directory sorts before what is in it, so the outermost come first.
fn in_order<T: Ord>(mut places: Vec<T>) -> Vec<T> {
    places.sort();
    places.dedup();
    places
}

pub(super) fn path_of(place: &PinnedPath) -> PathBuf {
    PathBuf::from(std::ffi::OsStr::from_bytes(place.path.to_bytes()))
}
