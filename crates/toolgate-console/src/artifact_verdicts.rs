//! Which artifacts contain a secret. A client reads a large artifact in many parts (`Range`), and each part may only be sent
//! if no part contains a secret. So the whole artifact is searched with the first request, and the verdict is kept.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;

use parking_lot::Mutex;
use toolgate_contract::ArtifactRef;
use toolgate_redact::Redactor;

/// How much of an artifact is searched at once.
const PIECE: usize = 64 * 1024;
/// How many verdicts are kept. When there are more, all are dropped: a search is only slow, never wrong.
const MAX_VERDICTS: usize = 4_096;

/// The file that was searched: the hash that the artifact was stored with, and which file it is, in which state. A file that
/// was replaced or changed since is searched again.
type SearchedFile = (String, u64, u64, u64, (i64, i64));

/// The verdicts on artifacts that were asked for.
#[derive(Default)]
pub(crate) struct ArtifactVerdicts {
    contains_secret: Mutex<HashMap<SearchedFile, bool>>,
}

impl ArtifactVerdicts {
    /// Whether redaction would replace something in the artifact, whose file is open at its beginning and is so afterwards.
    pub(crate) fn contains_secret(
        &self,
        artifact: &ArtifactRef,
        file: &mut File,
        redactor: &Redactor,
    ) -> io::Result<bool> {
        let facts = file.metadata()?;
        let changed = (facts.ctime(), facts.ctime_nsec());
        let searched = (artifact.sha256.clone(), facts.dev(), facts.ino(), facts.size(), changed);
        if let Some(known) = self.contains_secret.lock().get(&searched) {
            return Ok(*known);
        }
        let verdict = search(file, redactor)?;
        file.seek(SeekFrom::Start(0))?;
        let mut verdicts = self.contains_secret.lock();
        if verdicts.len() >= MAX_VERDICTS {
            verdicts.clear();
        }
        verdicts.insert(searched, verdict);
        Ok(verdict)
    }
}

fn search(file: &mut File, redactor: &Redactor) -> io::Result<bool> {
    let mut redacting = redactor.stream();
    let mut piece = vec![0; PIECE];
    loop {
        match file.read(&mut piece)? {
            0 => break,
            length => drop(redacting.push(&piece[..length])),
        }
        if redacting.redacted() {
            return Ok(true);
        }
    }
    redacting.finish();
    Ok(redacting.redacted())
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests arrange files by themselves")]
mod tests {
    use std::io::Write;

    use super::*;

    fn artifact() -> ArtifactRef {
        ArtifactRef {
            id: "art_1".into(),
            mime: "image/png".into(),
            bytes: 3,
            sha256: "abc".into(),
            lines: None,
            field: None,
        }
    }

    #[test]
    fn an_artifact_is_searched_once_and_again_when_its_file_changes() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a");
        std::fs::write(&path, [b"\0".repeat(PIECE * 3), b"DB_PASSWORD=hunter2\0".to_vec()].concat()).unwrap();
        let (verdicts, redactor) = (ArtifactVerdicts::default(), Redactor::default());
        let ask = || {
            let mut file = File::open(&path).unwrap();
            let verdict = verdicts.contains_secret(&artifact(), &mut file, &redactor).unwrap();
            assert_eq!(file.stream_position().unwrap(), 0);
            verdict
        };
        assert!(ask());
        // A verdict that is kept is used: turned round, it is what the next request gets.
        verdicts.contains_secret.lock().values_mut().for_each(|verdict| *verdict = false);
        assert!(!ask());
        assert_eq!(verdicts.contains_secret.lock().len(), 1);
        std::fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(b"more").unwrap();
        assert!(ask(), "another size");
        let new = directory.path().join("b");
        std::fs::copy(&path, &new).unwrap();
        std::fs::rename(&new, &path).unwrap();
        assert!(ask(), "another file");
        assert_eq!(verdicts.contains_secret.lock().len(), 3);
    }
}
