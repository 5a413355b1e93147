//! Extended attributes of files, as changes record them: those that a command can set.

use std::fmt::Write;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::XattrFlags;
use rustix::io::Errno;
use toolgate_contract::FileAttributes;

/// The access control list of a file.
const ACCESS_LIST: &str = "system.posix_acl_access";
/// What overlayfs notes about a file of a layer.
const OF_OVERLAYFS: &str = "user.overlay.";
/// Attributes that are changed meanwhile are read again so often.
const ATTEMPTS: usize = 3;

/// The attributes of an open file; none where the file system has none.
pub(crate) fn read(file: impl AsFd) -> FileAttributes {
    let file = file.as_fd();
    let names = names(file).unwrap_or_default();
    let own = names.iter().filter(|name| is_recorded(name));
    own.filter_map(|name| Some((name.clone(), hex(&value(file, name).ok()?)))).collect()
}

/// Copies the attributes that commands can set from one open file or directory to another.
pub(crate) fn copy(from: impl AsFd, to: impl AsFd) -> Result<(), Errno> {
    let names = match names(from.as_fd()) {
        Err(Errno::OPNOTSUPP) => return Ok(()),
        names => names?,
    };
    for name in names.iter().filter(|name| is_recorded(name)) {
        rustix::fs::fsetxattr(&to, name.as_str(), &value(from.as_fd(), name)?, XattrFlags::empty())?;
    }
    Ok(())
}

/// Gives a file exactly these attributes.
pub(crate) fn write(path: &str, wanted: &FileAttributes, there: &FileAttributes) -> Result<(), Errno> {
    for name in there.keys().filter(|name| !wanted.contains_key(*name)) {
        rustix::fs::removexattr(path, name.as_str())?;
    }
    for (name, value) in wanted.iter().filter(|(name, value)| there.get(*name) != Some(*value)) {
        rustix::fs::setxattr(path, name.as_str(), &bytes(value).ok_or(Errno::INVAL)?, XattrFlags::empty())?;
    }
    Ok(())
}

fn is_recorded(name: &str) -> bool {
    name == ACCESS_LIST || name.starts_with("user.") && !name.starts_with(OF_OVERLAYFS)
}

fn names(file: BorrowedFd<'_>) -> Result<Vec<String>, Errno> {
    let list = sized(|| rustix::fs::flistxattr_query(file), |buffer| rustix::fs::flistxattr(file, buffer))?;
    Ok(list.split(|byte| *byte == 0).filter_map(|name| String::from_utf8(name.to_vec()).ok()).collect())
}

fn value(file: BorrowedFd<'_>, name: &str) -> Result<Vec<u8>, Errno> {
    sized(|| rustix::fs::fgetxattr_query(file, name), |buffer| rustix::fs::fgetxattr(file, name, buffer))
}

/// What a call writes into a buffer of the size that it asks for.
fn sized(
    size: impl Fn() -> Result<usize, Errno>,
    fill: impl Fn(&mut [u8]) -> Result<usize, Errno>,
) -> Result<Vec<u8>, Errno> {
    for _ in 0..ATTEMPTS {
        let mut buffer = vec![0; size()?];
        if buffer.is_empty() {
            return Ok(buffer);
        }
        match fill(&mut buffer) {
            Err(Errno::RANGE) => {}
            length => {
                buffer.truncate(length?);
                return Ok(buffer);
            }
        }
    }
    Err(Errno::RANGE)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn bytes(hex: &str) -> Option<Vec<u8>> {
    let digits = hex.as_bytes().chunks(2);
    digits.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_read_changed_and_removed() {
        let file = tempfile::Builder::new().tempfile_in(".").unwrap();
        let path = file.path().to_str().unwrap();
        let set = |name: &str, value: &[u8]| rustix::fs::setxattr(path, name, value, XattrFlags::empty());
        if set("user.one", b"1").is_err() {
            return;
        }
        set("user.two", &[0, 255]).unwrap();
        set("user.overlay.origin", b"x").unwrap();
        let before = read(file.as_file());
        let expected = [("user.one", "31"), ("user.two", "00ff")];
        assert_eq!(before, expected.map(|(name, value)| (name.to_owned(), value.to_owned())).into());
        let wanted: FileAttributes =
            [("user.two".to_owned(), "32".to_owned()), ("user.three".to_owned(), String::new())].into();
        write(path, &wanted, &before).unwrap();
        assert_eq!(read(file.as_file()), wanted);
        write(path, &before, &wanted).unwrap();
        assert_eq!(read(file.as_file()), before);
    }
}
