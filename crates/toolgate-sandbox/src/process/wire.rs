//! How host, zygote and sandboxes talk: one datagram is one message, with descriptors beside it. What can be large (a
//! plan, an order) travels in a file of memory, so that no limit on datagrams applies.
//!
//! Each sandbox has a socket pair of its own. The host keeps one end; the other goes to the zygote, which says `Born` on
//! it and leaves it to the sandbox. So nobody has to tell messages apart.

use std::fs::File;
use std::io::{IoSlice, IoSliceMut, Read, Seek, Write};
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

/// What a sandbox tells its host.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum SandboxMessage {
    /// The first process exists; its descriptor comes along.
    Born,
    /// It is confined, and waits for an order; its network's doors and the watch over its decoys come along, if it has
    /// any.
    Ready(SetupFindings),
    /// It couldn't go on. Nothing was run.
    Refused(SetupFault),
    /// The command runs; its descriptor comes along, and its terminal if it has one.
    Started,
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

/// Receives one message; `None` when the other end is gone. Whatever it wanted, it doesn't any more.
pub(super) fn receive(socket: BorrowedFd<'_>) -> Result<Option<ReceivedMessage>, Errno> {
    match receive_now(socket) {
        Err(Errno::CONNRESET) => Ok(None),
        other => other,
    }
}

/// The same, but what the other end said before it went is still heard. One that went with our last message unread is
/// told of once, before what it said itself.
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

/// Sends a word, with descriptors beside it.
pub(super) fn say(socket: BorrowedFd<'_>, word: &SandboxMessage, descriptors: &[BorrowedFd<'_>]) -> Result<(), Errno> {
    let bytes = postcard::to_allocvec(word).map_err(|_| Errno::INVAL)?;
    send(socket, &bytes, descriptors)
}

/// What a message says.
pub(super) fn understand<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Errno> {
    postcard::from_bytes(bytes).map_err(|_| Errno::BADMSG)
}

/// Writes a value into a file of memory.
pub(super) fn pack<T: Serialize>(value: &T) -> Result<OwnedFd, Errno> {
    let bytes = postcard::to_allocvec(value).map_err(|_| Errno::INVAL)?;
    pack_bytes(&bytes)
}

/// Writes bytes into a file of memory.
pub(super) fn pack_bytes(bytes: &[u8]) -> Result<OwnedFd, Errno> {
    let descriptor = rustix::fs::memfd_create(c"toolgate", MemfdFlags::CLOEXEC)?;
    let mut file = File::from(descriptor);
    file.write_all(bytes).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    Ok(file.into())
}

/// Reads a value back from a file of memory.
pub(super) fn unpack<T: DeserializeOwned>(descriptor: OwnedFd) -> Result<T, Errno> {
    let mut file = File::from(descriptor);
    let mut bytes = Vec::new();
    let whole = file.rewind().and_then(|()| file.read_to_end(&mut bytes));
    whole.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    understand(&bytes)
}

/// What is sent when the descriptors beside it say it all.
pub(super) const NUDGE: &[u8] = b"!";

/// Borrows each of some descriptors.
pub(super) fn borrow(descriptors: &[OwnedFd]) -> Vec<BorrowedFd<'_>> {
    descriptors.iter().map(AsFd::as_fd).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_descriptors_arrive_together() {
        let (here, there) = pair().unwrap();
        let note = pack(&"hello").unwrap();
        say(here.as_fd(), &SandboxMessage::Ended(9), &[note.as_fd()]).unwrap();
        let mut received = receive(there.as_fd()).unwrap().unwrap();
        assert!(matches!(understand(&received.bytes).unwrap(), SandboxMessage::Ended(9)));
        assert_eq!(unpack::<String>(received.descriptors.pop().unwrap()).unwrap(), "hello");
        drop(here);
        assert!(receive(there.as_fd()).unwrap().is_none(), "the end of the other side is no message");
    }

    #[test]
    fn what_makes_no_sense_is_an_error() {
        assert_eq!(understand::<SandboxMessage>(&[250]).unwrap_err(), Errno::BADMSG);
    }
}
