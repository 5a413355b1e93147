//! `toolgate caches`: shows and clears the private caches of package managers.

use std::io::ErrorKind;

use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use serde_json::json;
use toolgate_contract::counted;
use toolgate_sandbox::{CacheStore, StoredCache};

use super::Invocation;
use crate::exit::Exit;
use crate::output::{errln, outln};
use crate::terminal::{BOLD, DIM, TextTable, paint, plain};

/// Show and clear the caches that package managers have inside the sandbox.
///
/// Each workspace has caches of its own in your state directory: cargo, npm, pip and others download into them and install
/// from them, above your own caches, which they only read. Nothing outside of the sandbox uses them, so they can be cleared
/// at any time: what is needed is downloaded again.
///
/// Examples:
///   toolgate caches list
///   toolgate caches clear
///   toolgate caches clear --all
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct CachesArgs {
    #[command(subcommand)]
    verb: CachesVerb,
}

#[derive(Debug, Subcommand)]
enum CachesVerb {
    /// List the caches of all workspaces, with their size on disk.
    List,
    /// Remove the caches of this workspace.
    Clear {
        /// Remove those of all workspaces.
        #[arg(long)]
        all: bool,
    },
}

impl CachesArgs {
    pub(crate) fn run(self, invocation: &Invocation) -> Result<Exit> {
        let location = &invocation.location;
        let store = location.cache_store(&location.load()?.settings);
        let directory = location.config.caches();
        let caches = store.list().with_context(|| format!("{} can't be read", directory.display()))?;
        match self.verb {
            CachesVerb::List => list(&caches, invocation.json),
            CachesVerb::Clear { all: true } => clear(&store, &caches, invocation.json),
            CachesVerb::Clear { all: false } => {
                let key = location.cache_key()?;
                let own: Vec<StoredCache> = caches.into_iter().filter(|cache| cache.key == key).collect();
                clear(&store, &own, invocation.json)
            }
        }
    }
}

fn list(caches: &[StoredCache], as_json: bool) -> Result<Exit> {
    if as_json {
        let entry = |cache: &StoredCache| {
            let managers: serde_json::Map<_, _> =
                cache.managers.iter().map(|(name, bytes)| (short(name).to_owned(), json!(bytes))).collect();
            json!({
                "workspace": cache.workspace.display().to_string(), "bytes": cache.bytes(), "caches": managers,
                "in_use": cache.is_in_use, "workspace_exists": !cache.is_orphaned(),
            })
        };
        caches.iter().for_each(|cache| outln!("{}", entry(cache)));
        return Ok(Exit::Ok);
    }
    if caches.is_empty() {
        errln!("There are no caches.");
        return Ok(Exit::Ok);
    }
    let mut table = TextTable::new(&["WORKSPACE", "SIZE", "CACHES"]);
    for cache in caches {
        let largest = cache.managers.iter().filter(|(_, bytes)| *bytes > 0).take(5);
        let largest: Vec<String> =
            largest.map(|(name, bytes)| format!("{} {}", plain(short(name)), in_words(*bytes))).collect();
        let gone = if cache.is_orphaned() { " (gone)" } else { "" };
        let workspace = format!("{}{gone}", plain(&cache.workspace.display().to_string()));
        table.row([(workspace, BOLD), (in_words(cache.bytes()), BOLD), (largest.join(", "), DIM)]);
    }
    table.print();
    Ok(Exit::Ok)
}

/// The name of a cache without the directory that several are in.
fn short(name: &str) -> &str {
    name.strip_prefix("cache/").unwrap_or(name)
}

fn clear(store: &CacheStore, caches: &[StoredCache], as_json: bool) -> Result<Exit> {
    let (mut cleared, mut exit) = (0, Exit::Ok);
    for cache in caches {
        let workspace = plain(&cache.workspace.display().to_string());
        match store.clear(&cache.key) {
            Ok(()) => cleared += cache.bytes(),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                errln!(
                    "The caches of {} are in use by a running Toolgate. Stop it, then clear them.",
                    paint(BOLD, workspace)
                );
                exit = Exit::Failed;
            }
            Err(error) => return Err(error).with_context(|| format!("the caches of {workspace} can't be removed")),
        }
    }
    match as_json {
        true => outln!("{}", json!({ "cleared_bytes": cleared })),
        false => outln!("Cleared {}.", in_words(cleared)),
    }
    Ok(exit)
}

/// A number of bytes with a unit.
pub(super) fn in_words(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    match bytes {
        0..1024 => counted(bytes, "byte"),
        _ => format!("{value:.1} {}", UNITS[unit]),
    }
}
