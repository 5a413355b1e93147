//! Who may use the console in a browser: one-time links, and the sessions that they are exchanged for. Both are files of a
//! private directory in the user's state directory, named by the hash of a random token. So `toolgate console` can make a
//! link for a server that runs elsewhere without sending any secret to it, a link works once however many servers look,
//! and a session outlives a restart of its server.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use rustix::fs::{FlockOperation, OFlags};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::signing_key::create_secret;
use crate::{hex, new_token};

/// How long a one-time link can be used.
const LINK_TIME: Duration = Duration::from_secs(10 * 60);

/// How long a browser stays signed in.
const SESSION_TIME: Duration = Duration::from_secs(12 * 60 * 60);

/// Longer than any file that is written here.
const MAX_BYTES: u64 = 64 * 1024;

/// One-time links and browser sessions, and the servers that they can be used with.
#[derive(Debug, Clone)]
pub struct ConsoleAccess {
    directory: PathBuf,
}

/// What is stored of a link or a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConsoleTicket {
    /// The workspace that it is for.
    pub workspace: String,
    /// When it stops working.
    pub expires: Timestamp,
}

/// A running server, as `toolgate console` finds it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerAddress {
    /// The workspace that it serves.
    pub workspace: String,
    /// Where it listens, such as `http://127.0.0.1:8731`.
    pub url: String,
}

/// The entry of a running server. Dropping it removes the entry; one whose process was killed isn't locked any more.
#[derive(Debug)]
pub struct AnnouncedServer {
    path: PathBuf,
    _locked: File,
}

impl ConsoleAccess {
    /// The links and sessions in this directory, which is made when the first one is.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into() }
    }

    /// Makes a one-time link for a workspace: the token that its fragment holds.
    pub fn create_link(&self, workspace: &str, now: Timestamp) -> io::Result<String> {
        self.remove_expired(now);
        self.create("links", workspace, now, LINK_TIME).map(|(token, _)| token)
    }

    /// Exchanges a link for a session: its token and its end. None for a link that was used, has expired, belongs to another
    /// workspace or never existed.
    pub fn redeem(&self, link: &str, workspace: &str, now: Timestamp) -> io::Result<Option<(String, Timestamp)>> {
        let path = self.path("links", link);
        let Some(ticket) = read_ticket(&path) else { return Ok(None) };
        // Of several who try at once, one removes the file.
        if fs::remove_file(&path).is_err() || ticket.workspace != workspace || ticket.expires <= now {
            return Ok(None);
        }
        self.create("sessions", workspace, now, SESSION_TIME).map(Some)
    }

    /// The session of this token in a workspace, unless it has ended.
    pub fn session(&self, token: &str, workspace: &str, now: Timestamp) -> Option<ConsoleTicket> {
        read_ticket(&self.path("sessions", token)).filter(|it| it.workspace == workspace && it.expires > now)
    }

    /// Ends a session.
    pub fn end_session(&self, token: &str) {
        let _ = fs::remove_file(self.path("sessions", token));
    }

    /// Ends every session of a workspace; returns how many there were.
    pub fn end_all_sessions(&self, workspace: &str) -> usize {
        let is_its = |path: &PathBuf| read_ticket(path).is_some_and(|ticket| ticket.workspace == workspace);
        self.files("sessions").into_iter().filter(is_its).filter(|path| fs::remove_file(path).is_ok()).count()
    }

    /// Enters a server for as long as the returned value lives.
    pub fn announce(&self, server: &ServerAddress) -> io::Result<AnnouncedServer> {
        let (directory, name) = (self.directory.join("servers"), uuid::Uuid::now_v7().simple().to_string());
        DirBuilder::new().recursive(true).mode(0o700).create(&directory)?;
        let (draft, path) = (directory.join(format!(".{name}")), directory.join(&name));
        let mut locked = File::options().write(true).create_new(true).mode(0o600).open(&draft)?;
        locked.write_all(&serde_json::to_vec(server).map_err(io::Error::other)?)?;
        // Locked before it has its name: nobody ever sees it unlocked while this process lives.
        rustix::fs::flock(&locked, FlockOperation::NonBlockingLockExclusive)?;
        fs::rename(&draft, &path)?;
        Ok(AnnouncedServer { path, _locked: locked })
    }

    /// The running servers of a workspace, newest first. Entries of servers that were killed are removed.
    pub fn servers(&self, workspace: &str) -> Vec<ServerAddress> {
        let mut found = Vec::new();
        for path in self.files("servers") {
            let Ok(file) = open(&path) else { continue };
            if rustix::fs::flock(&file, FlockOperation::NonBlockingLockShared).is_ok() {
                let _ = fs::remove_file(&path);
                continue;
            }
            found.extend(read_json::<ServerAddress>(file).filter(|server| server.workspace == workspace));
        }
        found.reverse();
        found
    }

    fn create(&self, kind: &str, workspace: &str, now: Timestamp, time: Duration) -> io::Result<(String, Timestamp)> {
        let (token, expires) = (new_token()?, now.checked_add(time).map_err(io::Error::other)?);
        let ticket = ConsoleTicket { workspace: workspace.to_owned(), expires };
        create_secret(&self.path(kind, &token), &serde_json::to_vec(&ticket).map_err(io::Error::other)?)?;
        Ok((token, expires))
    }

    fn path(&self, kind: &str, token: &str) -> PathBuf {
        self.directory.join(kind).join(hex::string(&Sha256::digest(token).into()))
    }

    fn remove_expired(&self, now: Timestamp) {
        let paths = ["links", "sessions"].into_iter().flat_map(|kind| self.files(kind));
        for path in paths.filter(|path| read_ticket(path).is_some_and(|ticket| ticket.expires <= now)) {
            let _ = fs::remove_file(path);
        }
    }

    fn files(&self, kind: &str) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.directory.join(kind)).into_iter().flatten().flatten();
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        paths.retain(|path| path.file_name().is_some_and(|name| !name.as_encoded_bytes().starts_with(b".")));
        paths.sort();
        paths
    }
}

impl Drop for AnnouncedServer {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Opens a file that only its owner can read, following no link.
fn open(path: &Path) -> io::Result<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let metadata = file.metadata()?;
    match metadata.is_file() && metadata.mode() & 0o077 == 0 {
        true => Ok(file),
        false => Err(io::Error::new(io::ErrorKind::InvalidData, "others can read it")),
    }
}

fn read_ticket(path: &Path) -> Option<ConsoleTicket> {
    read_json(open(path).ok()?)
}

fn read_json<T: serde::de::DeserializeOwned>(file: File) -> Option<T> {
    let mut bytes = Vec::new();
    file.take(MAX_BYTES).read_to_end(&mut bytes).ok()?;
    serde_json::from_slice(&bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access() -> (tempfile::TempDir, ConsoleAccess) {
        let directory = tempfile::tempdir().unwrap();
        let access = ConsoleAccess::new(directory.path().join("console"));
        (directory, access)
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn a_link_works_once_in_its_workspace_and_in_its_time() {
        let (_directory, access) = access();
        let link = access.create_link("/work", at(0)).unwrap();
        assert_eq!(access.redeem("tgt_forged", "/work", at(1)).unwrap(), None);
        let (session, expires) = access.redeem(&link, "/work", at(1)).unwrap().unwrap();
        assert_eq!(access.redeem(&link, "/work", at(1)).unwrap(), None, "it was used");
        assert_eq!(access.session(&session, "/work", at(2)).unwrap().expires, expires);
        assert_eq!(access.session(&session, "/other", at(2)), None);
        assert_eq!(access.session(&session, "/work", expires), None, "it has expired");
        let elsewhere = access.create_link("/work", at(0)).unwrap();
        assert_eq!(access.redeem(&elsewhere, "/other", at(1)).unwrap(), None);
        let late = access.create_link("/work", at(0)).unwrap();
        assert_eq!(access.redeem(&late, "/work", at(601)).unwrap(), None);
    }

    #[test]
    fn a_session_ends_when_it_is_told_to() {
        let (_directory, access) = access();
        let session = || {
            let link = access.create_link("/work", at(0)).unwrap();
            access.redeem(&link, "/work", at(1)).unwrap().unwrap().0
        };
        let (one, other) = (session(), session());
        access.end_session(&one);
        assert_eq!(access.session(&one, "/work", at(2)), None);
        assert!(access.session(&other, "/work", at(2)).is_some());
        assert_eq!(access.end_all_sessions("/work"), 1);
        assert_eq!(access.session(&other, "/work", at(2)), None);
    }

    #[test]
    fn a_server_is_found_while_it_runs() {
        let (_directory, access) = access();
        let server = ServerAddress { workspace: "/work".into(), url: "http://127.0.0.1:8731".into() };
        let announced = access.announce(&server).unwrap();
        assert_eq!(access.servers("/work"), [server]);
        assert_eq!(access.servers("/other"), []);
        drop(announced);
        assert_eq!(access.servers("/work"), []);
    }
}
