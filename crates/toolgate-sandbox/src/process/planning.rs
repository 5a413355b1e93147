//! From a profile and a launch spec to a plan: looks at the machine once, on the host's side, and leaves nothing to be interpreted inside.

mod landlock_paths;
mod protected_paths;
mod unix_sockets;

use std::ffi::CString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use toolgate_contract::{LaunchSpec, NetworkAccess, Streams};

use super::command_paths::{CommandPaths, start_directory};
use super::enforcement::Tier;
use super::error::SandboxError;
use super::plan::{ExecRequest, NetworkPlan, OverlayMount, PinnedPath, SandboxPlan, TmpfsMount, is_inside};
use super::profile::{Profile, Readable, UnixSockets};
use crate::network::listener_addresses;

/// Directories that every sandbox has for itself.
const PRIVATE_DIRECTORIES: &[&str] = &["/run", "/tmp"];
/// Where names are looked up when the network is shared; it lies in a private directory.
const RESOLVER: &str = "/run/systemd/resolve";
/// The list of nameservers, which may be a link into that.
const NAMESERVERS: &str = "/etc/resolv.conf";
/// Where programs are looked for when the environment has no `PATH`.
const USUAL_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// What the profile, and what one command may do beside it, mean on this machine right now.
pub(super) fn plan(
    profile: &Profile,
    paths: &CommandPaths,
    network: &NetworkAccess,
    tier: Tier,
    overlays: Vec<OverlayMount>,
) -> Result<SandboxPlan, SandboxError> {
    let writable = required(paths.writable.iter().chain(&paths.own))?;
    let shown = shown(profile, paths, network);
    let (directories, secret): (Vec<PinnedPath>, Vec<PinnedPath>) =
        paths.secret.iter().filter_map(|path| find(path)).partition(|place| place.directory);
    let hidden = paths.masked.iter().filter_map(|path| find(path)).chain(directories);
    let (mut covered, mut masked) = hidden_places(profile, hidden, &writable, &shown);
    let lies_in_a_root = |cover: &mut TmpfsMount| !cover.writable && writable.iter().any(|root| is_within(cover, root));
    let hollow: Vec<TmpfsMount> = covered.extract_if(.., lies_in_a_root).collect();
    let (mut pinned, protected) = protected_paths::places(&paths.protected, &writable)?;
    // What is hidden by its whole path must not be moved to where nobody hides it.
    let hidden = secret
        .iter()
        .map(path_of)
        .chain(hollow.iter().map(|cover| PathBuf::from(std::ffi::OsStr::from_bytes(cover.path.to_bytes()))));
    pinned.extend(hidden.flat_map(|path| protected_paths::above(&path, &writable)));
    if profile.unix_sockets == UnixSockets::Private && tier == Tier::Namespaces {
        masked.extend(unix_sockets::of_host(&covered, &writable));
    }
    let (only, links) = readable(profile)?;
    let plan = SandboxPlan {
        tier,
        only,
        links,
        covered: in_order(covered),
        shown: in_order(shown),
        writable: in_order(writable),
        hollow: in_order(hollow),
        pinned: in_order(pinned),
        protected: in_order(protected),
        masked: in_order(masked),
        secret: in_order(secret),
        overlays,
        network: wiring(network),
        unix_sockets: profile.unix_sockets,
        limits: profile.limits,
    };
    Ok(if tier == Tier::Landlock { landlock_paths::without_mounts(plan) } else { plan })
}

/// No walls at all.
pub(super) fn plan_unconfined(profile: &Profile) -> SandboxPlan {
    SandboxPlan {
        tier: Tier::Open,
        only: None,
        links: Vec::new(),
        covered: Vec::new(),
        shown: Vec::new(),
        writable: Vec::new(),
        hollow: Vec::new(),
        pinned: Vec::new(),
        protected: Vec::new(),
        masked: Vec::new(),
        secret: Vec::new(),
        overlays: Vec::new(),
        network: NetworkPlan::Shared,
        unix_sockets: profile.unix_sockets,
        limits: profile.limits,
    }
}

/// How the network is built.
fn wiring(network: &NetworkAccess) -> NetworkPlan {
    match network {
        NetworkAccess::Off => NetworkPlan::Off,
        NetworkAccess::Shared => NetworkPlan::Shared,
        NetworkAccess::Listed(listed) => NetworkPlan::Listed {
            listeners: listener_addresses(listed.as_ref()),
            nameservers: find(Path::new(NAMESERVERS)),
        },
    }
}

/// What of the covered directories can be seen all the same.
fn shown(profile: &Profile, paths: &CommandPaths, network: &NetworkAccess) -> Vec<PinnedPath> {
    let home = profile.home.iter().flat_map(|home| home.shown.iter().map(|name| home.path.join(name)));
    let resolver = matches!(network, NetworkAccess::Shared).then(|| RESOLVER.into());
    home.chain(resolver).chain(paths.shown.iter().cloned()).filter_map(|path| find(&path)).collect()
}

/// The directories to cover and the places to mask. A masked directory that holds something granted is covered instead, so that
/// what was granted can be put back on top.
fn hidden_places(
    profile: &Profile,
    hidden: impl Iterator<Item = PinnedPath>,
    writable: &[PinnedPath],
    shown: &[PinnedPath],
) -> (Vec<TmpfsMount>, Vec<PinnedPath>) {
    let private = PRIVATE_DIRECTORIES.iter().filter_map(|path| find(Path::new(path)));
    let mut covered: Vec<TmpfsMount> = private.map(|place| cover(place, true, true)).collect();
    if let Some(home) = profile.home.as_ref().and_then(|home| find(&home.path)) {
        covered.retain(|cover| cover.path != home.path);
        covered.push(cover(home, true, false));
    }
    let mut masked = Vec::new();
    for place in hidden {
        let holds = |path: &CString| is_inside(path, &place.path) && *path != place.path;
        let granted = writable.iter().chain(shown).map(|place| &place.path);
        if covered.iter().any(|cover| cover.path == place.path) {
            continue;
        }
        if granted.chain(covered.iter().map(|cover| &cover.path)).any(holds) {
            covered.push(cover(place, false, false));
        } else {
            masked.push(place);
        }
    }
    (covered, masked)
}

/// What alone can be read, and the links that lead there; everything if the profile says so.
type ReadablePaths = (Option<Vec<PinnedPath>>, Vec<(CString, CString)>);

fn readable(profile: &Profile) -> Result<ReadablePaths, SandboxError> {
    let Readable::Only(paths) = &profile.readable else { return Ok((None, Vec::new())) };
    let places = required(paths.iter())?;
    let linked = |path: &PathBuf| {
        let target = rustix::fs::readlink(path, Vec::new()).ok()?;
        Some((CString::new(path.as_os_str().as_bytes()).ok()?, target))
    };
    Ok((Some(in_order(places)), paths.iter().filter_map(linked).collect()))
}

/// A command in the terms of the inside. What it is told of the machine comes last, so that nothing overrides it.
pub(super) fn exec_request(
    profile: &Profile,
    spec: &LaunchSpec,
    temporary: Option<PathBuf>,
) -> Result<ExecRequest, SandboxError> {
    let mut variables = profile.environment.clone();
    if let Streams::Terminal(_) = spec.streams {
        // Without one, programs are told that there is nobody to show colours to.
        variables.insert("TERM".into(), "xterm-256color".into());
    }
    variables.extend(spec.environment.clone());
    variables.extend(temporary.map(|directory| ("TMPDIR".into(), directory.into())));
    let path = variables.get(std::ffi::OsStr::new("PATH")).map_or(USUAL_PATH.into(), Clone::clone);
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
    })
}

fn c_string(bytes: impl Into<Vec<u8>>) -> Result<CString, SandboxError> {
    CString::new(bytes).map_err(|error| {
        let text = String::from_utf8_lossy(error.into_vec().as_slice()).into_owned();
        SandboxError::NulByte { text }
    })
}

/// The places that a profile can't do without.
fn required<'a>(paths: impl Iterator<Item = &'a PathBuf>) -> Result<Vec<PinnedPath>, SandboxError> {
    let found = |path: &PathBuf| look(path).map_err(|error| SandboxError::Root { path: path.clone(), error });
    paths.map(found).collect()
}

/// A place, if it is there.
fn find(path: &Path) -> Option<PinnedPath> {
    look(path).ok()
}

/// What is at a path, links followed: where it really is and which file that is.
fn look(path: &Path) -> Result<PinnedPath, Errno> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let (opened, path) = match rustix::fs::openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
        // With no link on the way it really is where it was looked for, as long as it was named plainly.
        Ok(opened) if is_plain(path) => (opened, CString::new(path.as_os_str().as_bytes()).map_err(|_| Errno::INVAL)?),
        Err(Errno::NOENT) => return Err(Errno::NOENT),
        // A link, or a kernel that can't say: where it really is, the kernel tells of what it has opened.
        _ => {
            let opened = rustix::fs::openat(CWD, path, flags, Mode::empty())?;
            let number = std::os::fd::AsRawFd::as_raw_fd(&opened);
            let path = rustix::fs::readlink(format!("/proc/self/fd/{number}"), Vec::new())?;
            (opened, path)
        }
    };
    let found = rustix::fs::fstat(&opened)?;
    let directory = FileType::from_raw_mode(found.st_mode).is_dir();
    Ok(PinnedPath { path, device: found.st_dev, inode: found.st_ino, directory })
}

/// Whether a path is absolute and holds nothing that means another one: no `.` or `..`, and no slash too many.
fn is_plain(path: &Path) -> bool {
    let bytes = path.as_os_str().as_bytes();
    let named = |part: &[u8]| !part.is_empty() && part != b"." && part != b"..";
    bytes.strip_prefix(b"/").is_some_and(|rest| rest.split(|byte| *byte == b'/').all(named))
}

/// Whether a cover lies inside a root, and isn't the root itself.
fn is_within(cover: &TmpfsMount, root: &PinnedPath) -> bool {
    cover.path != root.path && is_inside(&cover.path, &root.path)
}

fn cover(place: PinnedPath, writable: bool, shared: bool) -> TmpfsMount {
    TmpfsMount { path: place.path, writable, shared }
}

/// Outermost first, each once: a path sorts before what lies inside it.
fn in_order<T: Ord>(mut places: Vec<T>) -> Vec<T> {
    places.sort();
    places.dedup();
    places
}

pub(super) fn path_of(place: &PinnedPath) -> PathBuf {
    PathBuf::from(std::ffi::OsStr::from_bytes(place.path.to_bytes()))
}
