//! The messages between host, zygote and sandboxes: one message is one packet of a `SOCK_SEQPACKET` socket, with file
//! descriptors (`SCM_RIGHTS`). What can be large, such as a plan or a command, is in a memfd, so that no limit on the size of
//! packets applies.
//!
//! Each sandbox has a socket pair of its own. The host keeps one end; the other goes to the zygote, which sends `Created` on
//! it and leaves it to the sandbox. So no message has to name its sandbox.

use std::fs::File;
use std::io::{IoSlice, IoSliceMut, Seek, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::MemfdFlags;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, SocketFlags, SocketType,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::enforcement::SetupFindings;
use super::setup_step::SetupFault;

/// What a sandbox reports to its host.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum SandboxMessage {
    /// The first process exists; its pidfd comes along.
    Created,
    /// It is confined, and waits for a command; its network listeners and what else the host serves or
    /// watches come along, if it has any.
    Ready(SetupFindings),
    /// A setup step failed. Nothing was run.
    Refused(SetupFault),
    /// The command runs; its pidfd comes along, and its terminal if it has one.
    Started,
    /// The command was stopped, as by Ctrl-Z.
    Stopped,
    /// The command ended, with this status in the form of `wait`.
    Ended(i32),
}

/// Descriptors in one message, at most.
const MOST_DESCRIPTORS: usize = 32;
/// Bytes in one message, at most. A fault's subject is the only part that varies.
const MOST_BYTES: usize = 16 << 10;

/// A message as it came.
#[derive(Debug, Default)]
pub(super) struct ReceivedMessage {
    pub(super) bytes: Vec<u8>,
    pub(super) descriptors: Vec<OwnedFd>,
}

impl ReceivedMessage {
    /// The value that was sent as a [`MessageValue`], and the descriptors that came with it.
    pub(super) fn value<T: DeserializeOwned>(self) -> Result<(T, Vec<OwnedFd>), Errno> {
        let mut descriptors = self.descriptors.into_iter();
        let value = match self.bytes == PLACEHOLDER {
            true => from_memfd(descriptors.next().ok_or(Errno::BADMSG)?)?,
            false => decode(&self.bytes)?,
        };
        Ok((value, descriptors.collect()))
    }
}

/// A value on its way: in the message itself if it is small, and else in a memfd that comes first among the descriptors.
pub(super) enum MessageValue {
    Small(Vec<u8>),
    Large(OwnedFd),
}

impl MessageValue {
    pub(super) fn new<T: Serialize>(value: &T) -> Result<Self, Errno> {
        let bytes = postcard::to_allocvec(value).map_err(|_| Errno::INVAL)?;
        // One that looks like the placeholder isn't sent as such.
        match bytes.len() > PLACEHOLDER.len() && bytes.len() <= MOST_BYTES {
            true => Ok(Self::Small(bytes)),
            false => Ok(Self::Large(bytes_to_memfd(&bytes)?)),
        }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Self::Small(bytes) => bytes,
            Self::Large(_) => PLACEHOLDER,
        }
    }

    pub(super) fn memfd(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Small(_) => None,
            Self::Large(memfd) => Some(memfd.as_fd()),
        }
    }
}

/// A new pair of connected ends.
pub(super) fn pair() -> Result<(OwnedFd, OwnedFd), Errno> {
    rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
}

/// Sends one message. The other end being gone is an error like any other, never a signal.
pub(super) fn send(socket: BorrowedFd<'_>, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> Result<(), Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut beside = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !beside.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(Errno::TOOBIG);
    }
    let parts = [IoSlice::new(bytes)];
    loop {
        match rustix::net::sendmsg(socket, &parts, &mut beside, SendFlags::NOSIGNAL) {
            Err(Errno::INTR) => {}
            other => return other.map(drop),
        }
    }
}

/// Receives one message; `None` when the other end is closed. If it closed with our last message unread, what it sent before
/// is ignored.
pub(super) fn receive(socket: BorrowedFd<'_>) -> Result<Option<ReceivedMessage>, Errno> {
    match receive_now(socket) {
        Err(Errno::CONNRESET) => Ok(None),
        other => other,
    }
}

/// Receives one message; `None` when the other end is closed and all that it sent before has been received. If it closed with
/// our last message unread, the kernel reports `ECONNRESET` once, ahead of its messages.
pub(super) fn receive_until_closed(socket: BorrowedFd<'_>) -> Result<Option<ReceivedMessage>, Errno> {
    match receive_now(socket) {
        Err(Errno::CONNRESET) => receive_now(socket),
        other => other,
    }
}

fn receive_now(socket: BorrowedFd<'_>) -> Result<Option<ReceivedMessage>, Errno> {
    let mut bytes = vec![0; MOST_BYTES];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut beside = RecvAncillaryBuffer::new(&mut space);
    let length = loop {
        let mut parts = [IoSliceMut::new(&mut bytes)];
        match rustix::net::recvmsg(socket, &mut parts, &mut beside, RecvFlags::CMSG_CLOEXEC) {
            Err(Errno::INTR) => {}
            other => break other?.bytes,
        }
    };
    let mut descriptors = Vec::new();
    for message in beside.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = message {
            descriptors.extend(received);
        }
    }
    if length == 0 && descriptors.is_empty() {
        return Ok(None);
    }
    bytes.truncate(length);
    Ok(Some(ReceivedMessage { bytes, descriptors }))
}

/// Sends a message with descriptors.
pub(super) fn send_message(
    socket: BorrowedFd<'_>,
    message: &SandboxMessage,
    descriptors: &[BorrowedFd<'_>],
) -> Result<(), Errno> {
    let bytes = postcard::to_allocvec(message).map_err(|_| Errno::INVAL)?;
    send(socket, &bytes, descriptors)
}

/// Decodes a message, or what a memfd holds.
pub(super) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Errno> {
    postcard::from_bytes(bytes).map_err(|_| Errno::BADMSG)
}

/// Writes a value into a new memfd.
pub(super) fn to_memfd<T: Serialize>(value: &T) -> Result<OwnedFd, Errno> {
    let bytes = postcard::to_allocvec(value).map_err(|_| Errno::INVAL)?;
    bytes_to_memfd(&bytes)
}

/// Writes bytes into a new memfd, which is then read from its beginning.
pub(super) fn bytes_to_memfd(bytes: &[u8]) -> Result<OwnedFd, Errno> {
    let descriptor = rustix::fs::memfd_create(c"toolgate", MemfdFlags::CLOEXEC)?;
    let mut file = File::from(descriptor);
    file.write_all(bytes)
        .and_then(|()| file.rewind())
        .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    Ok(file.into())
}

/// Reads a value back from a memfd.
pub(super) fn from_memfd<T: DeserializeOwned>(descriptor: impl AsFd) -> Result<T, Errno> {
    let length = rustix::fs::fstat(&descriptor)?.st_size;
    let mut bytes = vec![0; usize::try_from(length).map_err(|_| Errno::FBIG)?];
    let mut filled = 0;
    while filled < bytes.len() {
        match rustix::io::pread(&descriptor, &mut bytes[filled..], filled as u64)? {
            0 => return Err(Errno::BADMSG),
            count => filled += count,
        }
    }
    decode(&bytes)
}

/// The content of a message that only carries descriptors, or only shows that its sender is there. An empty message would be
/// received as the end of the connection.
pub(super) const PLACEHOLDER: &[u8] = b"!";

/// The content of a request for a sandbox after which a spare one should be made.
pub(super) const AND_A_SPARE: &[u8] = b"+";

/// Borrows each of the descriptors.
pub(super) fn borrow(descriptors: &[OwnedFd]) -> Vec<BorrowedFd<'_>> {
    descriptors.iter().map(AsFd::as_fd).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_and_descriptors_arrive_together() {
        let (here, there) = pair().unwrap();
        let note = to_memfd(&"hello").unwrap();
        send_message(here.as_fd(), &SandboxMessage::Ended(9), &[note.as_fd()]).unwrap();
        let mut received = receive(there.as_fd()).unwrap().unwrap();
        assert!(matches!(decode(&received.bytes).unwrap(), SandboxMessage::Ended(9)));
        assert_eq!(from_memfd::<String>(received.descriptors.pop().unwrap()).unwrap(), "hello");
        drop(here);
        assert!(receive(there.as_fd()).unwrap().is_none(), "the end of the other side is no message");
    }

    #[test]
    fn values_of_every_size_arrive() {
        let (here, there) = pair().unwrap();
        for length in [0, 1, 100, MOST_BYTES - 3, MOST_BYTES - 2, MOST_BYTES, 3 * MOST_BYTES] {
            let text = "x".repeat(length);
            let value = MessageValue::new(&text).unwrap();
            let handed: Vec<BorrowedFd<'_>> = value.memfd().into_iter().chain([here.as_fd()]).collect();
            send(here.as_fd(), value.bytes(), &handed).unwrap();
            let received = receive(there.as_fd()).unwrap().unwrap();
            let (arrived, descriptors): (String, Vec<OwnedFd>) = received.value().unwrap();
            assert!(arrived == text && descriptors.len() == 1, "{length}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_an_error() {
        assert_eq!(decode::<SandboxMessage>(&[250]).unwrap_err(), Errno::BADMSG);
    }
}
