//! The frames on an attach socket: one byte for the kind, four for the length, then the content.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Maximum length of a frame's content.
const MAX_LENGTH: u32 = 1 << 20;

/// One frame.
#[derive(Debug)]
pub(super) enum Frame {
    /// The client's request, as JSON.
    Request(Vec<u8>),
    /// What the person types.
    Input(Vec<u8>),
    /// The size of the person's terminal, as JSON.
    Size(Vec<u8>),
    /// The running processes, as JSON.
    Processes(Vec<u8>),
    /// What the process writes.
    Output(Vec<u8>),
    /// The process has ended, with this code as text.
    Ended(Vec<u8>),
    /// Why the request is refused.
    Refused(Vec<u8>),
}

/// Makes a frame of one kind from its content.
type FrameConstructor = fn(Vec<u8>) -> Frame;

const KINDS: [(u8, FrameConstructor); 7] = [
    (b'?', Frame::Request),
    (b'i', Frame::Input),
    (b's', Frame::Size),
    (b'p', Frame::Processes),
    (b'o', Frame::Output),
    (b'e', Frame::Ended),
    (b'!', Frame::Refused),
];

impl Frame {
    fn parts(&self) -> (u8, &[u8]) {
        match self {
            Self::Request(content) => (b'?', content),
            Self::Input(content) => (b'i', content),
            Self::Size(content) => (b's', content),
            Self::Processes(content) => (b'p', content),
            Self::Output(content) => (b'o', content),
            Self::Ended(content) => (b'e', content),
            Self::Refused(content) => (b'!', content),
        }
    }
}

pub(super) async fn write(to: &mut (impl AsyncWrite + Unpin), frame: &Frame) -> io::Result<()> {
    let (kind, content) = frame.parts();
    let length = u32::try_from(content.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let mut bytes = Vec::with_capacity(content.len() + 5);
    bytes.push(kind);
    bytes.extend_from_slice(&length.to_be_bytes());
    bytes.extend_from_slice(content);
    to.write_all(&bytes).await
}

/// The next frame; `None` when the other side has closed the connection.
pub(super) async fn read(from: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<Frame>> {
    let kind = match from.read_u8().await {
        Ok(kind) => kind,
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    };
    let length = from.read_u32().await?;
    let make = KINDS.iter().find(|(known, _)| *known == kind).map(|(_, make)| make);
    let Some(make) = make.filter(|_| length <= MAX_LENGTH) else { return Err(io::ErrorKind::InvalidData.into()) };
    let mut content = vec![0; length as usize];
    from.read_exact(&mut content).await?;
    Ok(Some(make(content)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn frames_come_as_they_went_and_nonsense_is_refused() {
        let mut sent = Vec::new();
        for (_, make) in KINDS {
            write(&mut sent, &make(b"content".to_vec())).await.unwrap();
        }
        let mut from = &sent[..];
        for (kind, _) in KINDS {
            let frame = read(&mut from).await.unwrap().unwrap();
            assert_eq!(frame.parts(), (kind, &b"content"[..]));
        }
        assert!(read(&mut from).await.unwrap().is_none());
        for nonsense in [&b"GET / HTTP/1.1\r\n"[..], b"o\xff\xff\xff\xff", b"o\0\0\0\x09short"] {
            assert!(read(&mut &*nonsense).await.is_err(), "{nonsense:?}");
        }
    }
}
