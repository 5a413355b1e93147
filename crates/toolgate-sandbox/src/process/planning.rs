//! From a profile to a plan: looks at the machine once, on the host's side, and leaves nothing to be interpreted inside.

mod hidden;
mod protecting;
mod sockets;

use std::ffi::CString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::command::{Command, Streams};
use super::enforcement::Tier;
use super::error::SandboxError;
use super::plan::{Cover, Order, Overlay, Place, Plan, Wiring, is_inside};
use super::profile::{Network, Profile, Readable, UnixSockets};
use crate::network::doors;

/// Folders that every sandbox has for itself.
const PRIVATE_FOLDERS: &[&str] = &["/run", "/tmp"];
/// Where names are looked up when the network is shared; it lies in a private folder.
const RESOLVER: &str = "/run/systemd/resolve";
/// The list of nameservers, which may be a link into that.
const NAMESERVERS: &str = "/etc/resolv.conf";
/// Where programs are looked for when the environment has no `PATH`.
const USUAL_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// What the profile means on this machine right now.
pub(super) fn plan(profile: &Profile, tier: Tier, overlays: Vec<Overlay>) -> Result<Plan, SandboxError> {
    let writable = required(profile.writable.iter().chain(&profile.own))?;
    let shown = shown(profile);
    let (folders, secret): (Vec<Place>, Vec<Place>) =
        profile.secret.iter().filter_map(|path| find(path)).partition(|place| place.folder);
    let hidden = profile.masked.iter().filter_map(|path| find(path)).chain(folders);
    let (mut covered, mut masked) = hidden_places(profile, hidden, &writable, &shown);
    let lies_in_a_root = |cover: &mut Cover| !cover.writable && writable.iter().any(|root| is_within(cover, root));
    let hollow: Vec<Cover> = covered.extract_if(.., lies_in_a_root).collect();
    let (mut pinned, protected) = protecting::places(&profile.protected, &writable)?;
    // What is hidden by its whole path must not be moved to where nobody hides it.
    let hidden = secret
        .iter()
        .map(path_of)
        .chain(hollow.iter().map(|cover| PathBuf::from(std::ffi::OsStr::from_bytes(cover.path.to_bytes()))));
    pinned.extend(hidden.flat_map(|path| protecting::above(&path, &writable)));
    if profile.unix_sockets == UnixSockets::Private && tier == Tier::Namespaces {
        masked.extend(sockets::of_host(&covered, &writable));
    }
    let (only, links) = readable(profile)?;
    let plan = Plan {
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
        network: wiring(&profile.network),
        unix_sockets: profile.unix_sockets,
        limits: profile.limits,
    };
    Ok(if tier == Tier::Landlock { hidden::without_mounts(plan) } else { plan })
}

/// No walls at all.
pub(super) fn plan_open(profile: &Profile) -> Plan {
    Plan {
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
        network: Wiring::Shared,
        unix_sockets: profile.unix_sockets,
        limits: profile.limits,
    }
}

/// How the network is built.
fn wiring(network: &Network) -> Wiring {
    match network {
        Network::Off => Wiring::Off,
        Network::Shared => Wiring::Shared,
        Network::Listed(listed) => {
            Wiring::Listed { doors: doors(listed.0.as_ref()), nameservers: find(Path::new(NAMESERVERS)) }
        }
    }
}

/// What of the covered folders can be seen all the same.
fn shown(profile: &Profile) -> Vec<Place> {
    let home = profile.home.iter().flat_map(|home| home.shown.iter().map(|name| home.path.join(name)));
    let resolver = (profile.network == Network::Shared).then(|| RESOLVER.into());
    home.chain(resolver).chain(profile.shown.iter().cloned()).filter_map(|path| find(&path)).collect()
}

/// The folders to cover and the places to mask. A masked folder that holds something granted is covered instead, so that
/// what was granted can be put back on top.
fn hidden_places(
    profile: &Profile,
    hidden: impl Iterator<Item = Place>,
    writable: &[Place],
    shown: &[Place],
) -> (Vec<Cover>, Vec<Place>) {
    let private = PRIVATE_FOLDERS.iter().filter_map(|path| find(Path::new(path)));
    let mut covered: Vec<Cover> = private.map(|place| cover(place, true, true)).collect();
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
type Only = (Option<Vec<Place>>, Vec<(CString, CString)>);

fn readable(profile: &Profile) -> Result<Only, SandboxError> {
    let Readable::Only(paths) = &profile.readable else { return Ok((None, Vec::new())) };
    let places = required(paths.iter())?;
    let linked = |path: &PathBuf| {
        let target = rustix::fs::readlink(path, Vec::new()).ok()?;
        Some((CString::new(path.as_os_str().as_bytes()).ok()?, target))
    };
    Ok((Some(in_order(places)), paths.iter().filter_map(linked).collect()))
}

/// A command in the terms of the inside.
pub(super) fn order(profile: &Profile, command: &Command) -> Result<Order, SandboxError> {
    let mut variables = profile.environment.clone();
    variables.extend(command.environment.clone());
    let path = variables.get(std::ffi::OsStr::new("PATH")).map_or(USUAL_PATH.into(), Clone::clone);
    let programs = match command.program.as_bytes().contains(&b'/') {
        true => vec![PathBuf::from(&command.program)],
        false => std::env::split_paths(&path).map(|folder| folder.join(&command.program)).collect(),
    };
    let environment = variables.into_iter().map(|(name, value)| {
        let mut pair = name.into_vec();
        pair.push(b'=');
        pair.extend(value.into_vec());
        c_string(pair)
    });
    let arguments = std::iter::once(&command.program).chain(&command.arguments);
    let start = command.working_directory.as_ref().unwrap_or(&profile.working_directory);
    Ok(Order {
        programs: programs
            .into_iter()
            .map(|path| c_string(path.into_os_string().into_vec()))
            .collect::<Result<_, _>>()?,
        arguments: arguments.map(|argument| c_string(argument.clone().into_vec())).collect::<Result<_, _>>()?,
        environment: environment.collect::<Result<_, _>>()?,
        working_directory: c_string(start.as_os_str().as_bytes())?,
        terminal: match command.streams {
            Streams::Terminal(size) => Some(size),
            Streams::Output | Streams::Interactive => None,
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
fn required<'a>(paths: impl Iterator<Item = &'a PathBuf>) -> Result<Vec<Place>, SandboxError> {
    let found = |path: &PathBuf| look(path).map_err(|error| SandboxError::Root { path: path.clone(), error });
    paths.map(found).collect()
}

/// A place, if it is there.
fn find(path: &Path) -> Option<Place> {
    look(path).ok()
}

/// What is at a path, links followed: where it really is and which file that is.
fn look(path: &Path) -> Result<Place, Errno> {
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
    let folder = FileType::from_raw_mode(found.st_mode).is_dir();
    Ok(Place { path, device: found.st_dev, inode: found.st_ino, folder })
}

/// Whether a path is absolute and holds nothing that means another one: no `.` or `..`, and no slash too many.
fn is_plain(path: &Path) -> bool {
    let bytes = path.as_os_str().as_bytes();
    let named = |part: &[u8]| !part.is_empty() && part != b"." && part != b"..";
    bytes.strip_prefix(b"/").is_some_and(|rest| rest.split(|byte| *byte == b'/').all(named))
}

/// Whether a cover lies inside a root, and isn't the root itself.
fn is_within(cover: &Cover, root: &Place) -> bool {
    cover.path != root.path && is_inside(&cover.path, &root.path)
}

fn cover(place: Place, writable: bool, shared: bool) -> Cover {
    Cover { path: place.path, writable, shared }
}

/// Outermost first, each once: a path sorts before what lies inside it.
fn in_order<T: Ord>(mut places: Vec<T>) -> Vec<T> {
    places.sort();
    places.dedup();
    places
}

pub(super) fn path_of(place: &Place) -> PathBuf {
    PathBuf::from(std::ffi::OsStr::from_bytes(place.path.to_bytes()))
}
