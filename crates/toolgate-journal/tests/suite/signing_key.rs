//! The file of the signing key.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use tempfile::TempDir;
use toolgate_journal::{SigningKey, load_or_create_signing_key};

#[test]
fn a_key_is_made_once_and_belongs_to_its_owner() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("new/directory/seal.key");
    load_or_create_signing_key(&path).unwrap();
    let bytes = fs::read(&path).unwrap();
    assert_eq!(bytes.len(), 32);
    assert_ne!(bytes, [0; 32]);
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
    load_or_create_signing_key(&path).unwrap();
    assert_eq!(fs::read(&path).unwrap(), bytes);
    load_or_create_signing_key(&path.with_file_name("another")).unwrap();
    assert_ne!(fs::read(path.with_file_name("another")).unwrap(), bytes);
}

#[test]
fn a_key_never_shows_itself() {
    let directory = TempDir::new().unwrap();
    let key = load_or_create_signing_key(&directory.path().join("seal.key")).unwrap();
    assert_eq!(format!("{key:?}"), "SigningKey(***)");
}

#[test]
fn what_is_no_safe_key_is_refused_with_advice() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("seal.key");
    fs::write(&path, [1; 31]).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    assert!(load_or_create_signing_key(&path).unwrap_err().to_string().contains("remove it to get a new one"));
    fs::write(&path, [1; 32]).unwrap();
    load_or_create_signing_key(&path).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    assert!(load_or_create_signing_key(&path).unwrap_err().to_string().contains("chmod 600"));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    symlink(&path, directory.path().join("link")).unwrap();
    load_or_create_signing_key(&directory.path().join("link")).expect_err("a link is not followed");
}

#[test]
fn what_is_sealed_opens_with_the_same_key_for_the_same_purpose_alone() {
    let (key, other) = (SigningKey::from([7; 32]), SigningKey::from([8; 32]));
    let sealed = key.seal("a rehearsal of run_1", b"content");
    assert_eq!(key.unseal("a rehearsal of run_1", &sealed), Some(&b"content"[..]));
    assert_eq!(key.unseal("a rehearsal of run_2", &sealed), None);
    assert_eq!(other.unseal("a rehearsal of run_1", &sealed), None);
    let mut changed = sealed.clone();
    *changed.last_mut().unwrap() ^= 1;
    assert_eq!(key.unseal("a rehearsal of run_1", &changed), None);
    assert_eq!(key.unseal("a rehearsal of run_1", &sealed[..8]), None);
}
