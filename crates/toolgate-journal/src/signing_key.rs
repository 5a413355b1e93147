//! The key that signs records (HMAC-SHA256). Anyone who can write the files can rewrite a hash chain. A signature can
//! only be made with the key, which is stored outside the workspace.

use std::fmt;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use hmac::{Hmac, KeyInit, Mac};
use rustix::fs::OFlags;
use rustix::rand::{GetRandomFlags, getrandom};
use sha2::Sha256;
use uuid::Uuid;

use crate::hex::Hash;

/// A key of 32 random bytes. It can sign and verify, and its bytes are never shown.
#[derive(Clone)]
pub struct SigningKey(Hmac<Sha256>);

impl SigningKey {
    /// The signature of these parts, concatenated.
    pub(crate) fn sign(&self, parts: &[&[u8]]) -> Hash {
        self.over(parts).finalize().into_bytes().into()
    }

    /// Whether this is the signature of these parts.
    pub(crate) fn verifies(&self, parts: &[&[u8]], signature: &Hash) -> bool {
        self.over(parts).verify_slice(signature).is_ok()
    }

    /// A content with its signature for one purpose, which names everything that the content is bound to.
    pub fn seal(&self, purpose: &str, content: &[u8]) -> Vec<u8> {
        [&self.sign(&sealed_parts(purpose, content))[..], content].concat()
    }

    /// The content that was signed for this purpose with this key; none if it wasn't.
    pub fn unseal<'a>(&self, purpose: &str, sealed: &'a [u8]) -> Option<&'a [u8]> {
        let (signature, content) = sealed.split_first_chunk()?;
        self.verifies(&sealed_parts(purpose, content), signature).then_some(content)
    }

    fn over(&self, parts: &[&[u8]]) -> Hmac<Sha256> {
        let mut mac = self.0.clone();
        parts.iter().for_each(|part| mac.update(part));
        mac
    }
}

/// No purpose contains a NUL byte, so no other purpose and content have the same bytes.
fn sealed_parts<'a>(purpose: &'a str, content: &'a [u8]) -> [&'a [u8]; 4] {
    [b"sealed ", purpose.as_bytes(), &[0], content]
}

/// Signs the lines of one run, so that a line which the head doesn't cover yet can still be told from a forged one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LineSigner<'a> {
    /// The run's id: a line of another run isn't valid here.
    pub(crate) run: &'a str,
    pub(crate) key: &'a SigningKey,
}

impl LineSigner<'_> {
    /// The signature of line `seq`, whose text before the signature has this hash.
    pub(crate) fn of(&self, seq: u64, hash: &Hash) -> Hash {
        self.key.sign(&[b"line ", self.run.as_bytes(), &seq.to_be_bytes(), hash])
    }

    /// Whether this is the signature of that line.
    pub(crate) fn verifies(&self, seq: u64, hash: &Hash, signature: &Hash) -> bool {
        self.key.verifies(&[b"line ", self.run.as_bytes(), &seq.to_be_bytes(), hash], signature)
    }
}

impl From<[u8; 32]> for SigningKey {
    fn from(bytes: [u8; 32]) -> Self {
        Self(Hmac::new_from_slice(&bytes).expect("a key of any length will do"))
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningKey(***)")
    }
}

/// Reads the key at `path`, or creates one there that only its owner can read. Concurrent processes all get the same
/// key.
pub fn load_or_create_signing_key(path: &Path) -> io::Result<SigningKey> {
    match read_key(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            create_secret(path, &random_bytes()?)?;
            read_key(path)
        }
        other => other,
    }
}

fn read_key(path: &Path) -> io::Result<SigningKey> {
    let bytes = read_secret(path, 32)?.and_then(|bytes| <[u8; 32]>::try_from(bytes).ok());
    let why = || format!("`{}` is not a key of 32 bytes; remove it to get a new one", path.display());
    bytes.map(SigningKey::from).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, why()))
}

/// Reads a secret of exactly this many bytes; none for any other file. A file that others can read is refused.
pub(crate) fn read_secret(path: &Path, length: usize) -> io::Result<Option<Vec<u8>>> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
    let mut file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let metadata = file.metadata()?;
    if metadata.mode() & 0o077 != 0 {
        let why = "holds a key that others can read; run `chmod 600` on it, or remove it to get a new one";
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("`{}` {why}", path.display())));
    }
    let mut bytes = vec![0; length];
    let is_right = metadata.is_file() && metadata.len() == length as u64 && file.read_exact(&mut bytes).is_ok();
    Ok(is_right.then_some(bytes))
}

/// Writes a new secret under a temporary name and links it, which only the first process can do; later processes find
/// the existing one.
pub(crate) fn create_secret(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty()).unwrap_or(Path::new("."));
    DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    let draft = directory.join(format!(".key-{}", Uuid::now_v7().simple()));
    let written = File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&draft)
        .and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()))
        .and_then(|()| std::fs::hard_link(&draft, path));
    let _ = std::fs::remove_file(&draft);
    match written {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}

/// Cryptographically random bytes.
pub(crate) fn random_bytes() -> io::Result<[u8; 32]> {
    let mut bytes = [0_u8; 32];
    let mut filled = 0;
    while filled < bytes.len() {
        filled += rustix::io::retry_on_intr(|| getrandom(&mut bytes[filled..], GetRandomFlags::empty()))?;
    }
    Ok(bytes)
}
