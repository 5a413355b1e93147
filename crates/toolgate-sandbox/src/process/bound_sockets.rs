//! The Unix sockets of a network namespace that are bound to a file, by `NETLINK_SOCK_DIAG` (`linux/unix_diag.h`). The netlink
//! socket was opened in the namespace, so it lists what was bound in there, whoever reads it.

use std::os::fd::OwnedFd;

use parking_lot::Mutex;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};

/// `linux/sock_diag.h`: asks for the sockets of a family.
const SOCK_DIAG_BY_FAMILY: u16 = 20;
/// `linux/unix_diag.h`: show which file a socket is bound to, and the attribute that has it.
const UDIAG_SHOW_VFS: u32 = 0x2;
const UNIX_DIAG_VFS: u16 = 1;
/// Sockets in every state.
const ALL_STATES: u32 = u32::MAX;
/// Bytes of `struct nlmsghdr`, of `struct unix_diag_msg` behind it, and of the head of an attribute.
const HEADER: usize = size_of::<libc::nlmsghdr>();
const DIAG_MESSAGE: usize = 16;
const ATTRIBUTE_HEADER: usize = 4;
/// Messages and attributes begin at multiples of this.
const ALIGNMENT: usize = 4;
/// How many bits of a kernel's device number are the minor one.
const MINOR_BITS: u32 = 20;
/// Bytes that are received at once; the kernel fills at most this much.
const BUFFER_BYTES: usize = 64 * 1024;

/// The bound sockets of a network namespace.
#[derive(Debug)]
pub(super) struct BoundSockets(Mutex<OwnedFd>);

impl BoundSockets {
    /// Asks through a `NETLINK_SOCK_DIAG` socket of the namespace.
    pub(super) fn new(netlink: OwnedFd) -> Self {
        Self(Mutex::new(netlink))
    }

    /// Whether a socket of the namespace is bound to the file with this inode number on this device.
    pub(super) fn contains(&self, (major, minor): (u32, u32), inode: u64) -> Result<bool, Errno> {
        let netlink = self.0.lock();
        rustix::net::send(&*netlink, &request(), SendFlags::empty())?;
        // The kernel reports 32 bits of the inode number.
        let wanted = (inode as u32, major << MINOR_BITS | minor);
        let (mut found, mut bytes) = (false, vec![0; BUFFER_BYTES]);
        loop {
            let (length, _) = rustix::net::recv(&*netlink, &mut bytes[..], RecvFlags::empty())?;
            let mut rest = &bytes[..length];
            while let Some((kind, message, after)) = next_message(rest) {
                match kind {
                    libc::NLMSG_DONE => return Ok(found),
                    libc::NLMSG_ERROR => return Err(Errno::OPNOTSUPP),
                    _ => found |= file_of(message) == Some(wanted),
                }
                rest = after;
            }
        }
    }
}

/// `struct nlmsghdr` and `struct unix_diag_req`: family, protocol, padding, states, inode, what to show, cookie.
fn request() -> Vec<u8> {
    let mut body = vec![libc::AF_UNIX as u8, 0, 0, 0];
    body.extend([ALL_STATES, 0, UDIAG_SHOW_VFS, 0, 0].iter().flat_map(|word| word.to_ne_bytes()));
    let flags = (libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16;
    let mut message = ((HEADER + body.len()) as u32).to_ne_bytes().to_vec();
    message.extend([SOCK_DIAG_BY_FAMILY, flags].iter().flat_map(|half| half.to_ne_bytes()));
    message.extend([0u32, 0].iter().flat_map(|word| word.to_ne_bytes()));
    message.extend(body);
    message
}

/// The type and the body of the first message, and what follows it.
fn next_message(bytes: &[u8]) -> Option<(i32, &[u8], &[u8])> {
    let length = u32::from_ne_bytes(*bytes.first_chunk()?) as usize;
    let kind = u16::from_ne_bytes(*bytes.get(4..)?.first_chunk()?);
    let body = bytes.get(HEADER..length)?;
    Some((kind.into(), body, bytes.get(length.next_multiple_of(ALIGNMENT)..).unwrap_or_default()))
}

/// Inode and device number in the attributes of a socket; none if it isn't bound to a file.
fn file_of(message: &[u8]) -> Option<(u32, u32)> {
    let mut attributes = message.get(DIAG_MESSAGE..)?;
    loop {
        let length = u16::from_ne_bytes(*attributes.first_chunk()?) as usize;
        let kind = u16::from_ne_bytes(*attributes.get(2..)?.first_chunk()?);
        let value = attributes.get(ATTRIBUTE_HEADER..length)?;
        if kind == UNIX_DIAG_VFS {
            let number = |at: usize| Some(u32::from_ne_bytes(*value.get(at..)?.first_chunk()?));
            return Some((number(0)?, number(4)?));
        }
        attributes = attributes.get(length.next_multiple_of(ALIGNMENT)..)?;
    }
}
