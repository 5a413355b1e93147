//! A part of the index: some files, their chunks, and the chunks of each term. It is made once and never changed; what
//! changes in the workspace goes to a new segment, and the old entries are dead. It holds numbers and paths, no text.

use serde::{Deserialize, Serialize};

use crate::analysis::{ChunkAnalysis, FileAnalysis, TermCount};
use crate::language::FileKind;
use crate::terms::Term;

/// The form of the bytes; another is not read.
const FORM: &[u8; 8] = b"tgindex3";
/// What every form begins with.
const ANY_FORM: &[u8] = b"tgindex";
/// Bytes of a term's entry in the dictionary: five of its hash, four of where its postings begin.
const ENTRY: usize = 9;

/// Bytes of a posting at most, but for terms that are in a chunk dozens of times; of a chunk's record, and of a file's beside
/// its path.
const POSTING: usize = 5;
const CHUNK_RECORD: usize = 13;
const FILE_RECORD: usize = 88;

/// What the file system says of a file. As long as all of it is the same, so is the content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stamp {
    pub(crate) device: u64,
    pub(crate) inode: u64,
    pub(crate) size: u64,
    /// When the content changed, in nanoseconds since 1970.
    pub(crate) modified: i64,
    /// When anything about the file changed.
    pub(crate) changed: i64,
}

/// A file in a segment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileRecord {
    /// The root that it is in.
    pub(crate) root: u32,
    pub(crate) path: String,
    pub(crate) stamp: Stamp,
    /// A hash of its content.
    pub(crate) content: u64,
    /// Whether it was changed so shortly before it was read that another change could have the same times.
    pub(crate) is_young: bool,
    pub(crate) language: u8,
    kind: u8,
    pub(crate) is_whole: bool,
    /// Its first document, which is its path; its chunks follow.
    pub(crate) first: u32,
    /// How many chunks it has.
    pub(crate) chunks: u32,
}

impl FileRecord {
    pub(crate) fn kind(&self) -> FileKind {
        [FileKind::Code, FileKind::Docs, FileKind::Tests][usize::from(self.kind).min(2)]
    }
}

/// A chunk in a segment. The document of a file's path has no lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ChunkRecord {
    /// The file, by its number in the segment.
    pub(crate) file: u32,
    pub(crate) first: u32,
    pub(crate) lines: u32,
    pub(crate) name: (u32, u16),
    pub(crate) name_words: u8,
    pub(crate) length: u32,
}

/// A term in a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Posting {
    pub(crate) document: u32,
    pub(crate) count: u16,
    pub(crate) places: u8,
}

/// A file to put in a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AnalyzedFile {
    pub(crate) root: u32,
    pub(crate) path: String,
    pub(crate) stamp: Stamp,
    pub(crate) content: u64,
    pub(crate) is_young: bool,
    pub(crate) analysis: FileAnalysis,
    /// The vectors of its chunks, one after another; empty without weights.
    pub(crate) vectors: Vec<i8>,
}

/// Which weights vectors were made with, and how many numbers each has; all zero if there are none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct VectorForm {
    pub(crate) model: u64,
    pub(crate) dimensions: u32,
}

/// An immutable part of the index.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) files: Vec<FileRecord>,
    pub(crate) documents: Vec<ChunkRecord>,
    dictionary: Vec<u8>,
    postings: Vec<u8>,
    pub(crate) form: VectorForm,
    vectors: Vec<i8>,
}

/// What is written of a segment before its dictionary and postings.
#[derive(Serialize, Deserialize)]
struct SegmentHead {
    files: Vec<FileRecord>,
    documents: Vec<ChunkRecord>,
    dictionary: u64,
    postings: u64,
    form: VectorForm,
}

/// A posting with its term, while a segment is made: 40 bits of the term above 24 of the document.
type Keyed = (u64, u32);

const DOCUMENT_BITS: u32 = 24;
/// Bits of a posting's places.
const PLACE_BITS: u32 = 4;

impl Segment {
    /// A segment of these files, whose vectors have this form.
    pub(crate) fn build(files: Vec<AnalyzedFile>, form: VectorForm) -> Self {
        let (mut records, mut documents, mut keyed) = (Vec::new(), Vec::new(), Vec::<Keyed>::new());
        let mut vectors = Vec::new();
        for file in files {
            let number = records.len() as u32;
            let (first, chunks) = (documents.len() as u32, file.analysis.chunks.len() as u32);
            let mut add = |chunk: ChunkRecord, terms: &[TermCount]| {
                let document = documents.len() as u64;
                keyed.extend(
                    terms.iter().map(|term| (term.term << DOCUMENT_BITS | document, payload(term.count, term.places))),
                );
                documents.push(chunk);
            };
            let length = file.analysis.path.len() as u32;
            let path = ChunkRecord { file: number, first: 0, lines: 0, name: (0, 0), name_words: 0, length };
            add(path, &file.analysis.path);
            for chunk in &file.analysis.chunks {
                let (first, lines) = (chunk.first, chunk.end - chunk.first);
                let ChunkAnalysis { name, name_words, length, .. } = *chunk;
                add(ChunkRecord { file: number, first, lines, name, name_words, length }, &chunk.terms);
            }
            vectors.extend_from_slice(&file.vectors);
            let AnalyzedFile { root, path, stamp, content, is_young, analysis, .. } = file;
            let FileAnalysis { language, kind, is_whole, .. } = analysis;
            let kind = kind as u8;
            records.push(FileRecord { root, path, stamp, content, is_young, language, kind, is_whole, first, chunks });
        }
        Self { form, vectors, ..Self::from_parts(records, documents, keyed) }
    }

    fn from_parts(files: Vec<FileRecord>, documents: Vec<ChunkRecord>, mut keyed: Vec<Keyed>) -> Self {
        keyed.sort_unstable();
        let (mut dictionary, mut postings) = (Vec::new(), Vec::with_capacity(keyed.len() * 2));
        for of_term in keyed.chunk_by(|(a, _), (b, _)| a >> DOCUMENT_BITS == b >> DOCUMENT_BITS) {
            let term = of_term[0].0 >> DOCUMENT_BITS;
            dictionary.extend_from_slice(&term.to_be_bytes()[3..]);
            dictionary.extend_from_slice(&(postings.len() as u32).to_be_bytes());
            encode_postings(of_term, &mut postings);
        }
        Self { files, documents, dictionary, postings, form: VectorForm::default(), vectors: Vec::new() }
    }

    /// The vector of a chunk, if it was made with these weights.
    pub(crate) fn vector(&self, document: u32, model: u64) -> Option<&[i8]> {
        if self.form.model != model {
            return None;
        }
        let file = self.documents[document as usize].file;
        if self.files[file as usize].first == document {
            // Paths have documents, but no vectors.
            return None;
        }
        let number = (document - (file + 1)) as usize;
        let dimensions = self.form.dimensions as usize;
        self.vectors.get(number * dimensions..(number + 1) * dimensions)
    }

    /// The documents that have a term, in order.
    pub(crate) fn postings(&self, term: Term) -> Postings<'_> {
        let wanted = &term.to_be_bytes()[3..];
        let (mut low, mut high) = (0, self.dictionary.len() / ENTRY);
        while low < high {
            let middle = usize::midpoint(low, high);
            match self.dictionary[middle * ENTRY..middle * ENTRY + 5].cmp(wanted) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => return self.postings_at(middle),
            }
        }
        Postings { bytes: &[], document: 0 }
    }

    fn postings_at(&self, entry: usize) -> Postings<'_> {
        let offset = |entry: usize| {
            let at = entry * ENTRY + 5;
            let bytes = self.dictionary.get(at..at + 4)?.try_into().ok()?;
            Some(u32::from_be_bytes(bytes) as usize)
        };
        let start = offset(entry).unwrap_or(self.postings.len());
        let end = offset(entry + 1).unwrap_or(self.postings.len());
        Postings { bytes: self.postings.get(start..end).unwrap_or_default(), document: 0 }
    }

    /// One segment of the files of several that are still alive. The vectors of all have one form.
    pub(crate) fn merge(parts: &[(&Segment, &[bool])]) -> Self {
        let (mut records, mut documents, mut keyed) = (Vec::new(), Vec::new(), Vec::<Keyed>::new());
        let form = parts.first().map(|(segment, _)| segment.form).unwrap_or_default();
        let mut vectors = Vec::new();
        for (segment, alive) in parts {
            let mut numbers = vec![u32::MAX; segment.documents.len()];
            for (file, _) in segment.files.iter().zip(*alive).filter(|(_, alive)| **alive) {
                let (number, first) = (records.len() as u32, documents.len() as u32);
                let old = file.first as usize..file.first as usize + file.chunks as usize + 1;
                for document in old {
                    vectors.extend_from_slice(segment.vector(document as u32, form.model).unwrap_or_default());
                    numbers[document] = documents.len() as u32;
                    documents.push(ChunkRecord { file: number, ..segment.documents[document] });
                }
                records.push(FileRecord { first, ..file.clone() });
            }
            for entry in 0..segment.dictionary.len() / ENTRY {
                let mut term = [0; 8];
                term[3..].copy_from_slice(&segment.dictionary[entry * ENTRY..entry * ENTRY + 5]);
                let term = u64::from_be_bytes(term) << DOCUMENT_BITS;
                keyed.extend(segment.postings_at(entry).filter_map(|posting| {
                    let number = numbers[posting.document as usize];
                    (number != u32::MAX).then(|| (term | u64::from(number), payload(posting.count, posting.places)))
                }));
            }
        }
        Self { form, vectors, ..Self::from_parts(records, documents, keyed) }
    }

    /// How many bytes it takes.
    pub(crate) fn size(&self) -> usize {
        let files: usize = self.files.iter().map(|file| file.path.len() + FILE_RECORD).sum();
        let documents = self.documents.len() * CHUNK_RECORD;
        self.dictionary.len() + self.postings.len() + self.vectors.len() + documents + files
    }

    /// The bytes to store.
    pub(crate) fn to_bytes(&self) -> Result<Vec<u8>, postcard::Error> {
        let head = SegmentHead {
            files: self.files.clone(),
            documents: self.documents.clone(),
            dictionary: self.dictionary.len() as u64,
            postings: self.postings.len() as u64,
            form: self.form,
        };
        let mut bytes = postcard::to_extend(&head, FORM.to_vec())?;
        bytes.extend_from_slice(&self.dictionary);
        bytes.extend_from_slice(&self.postings);
        bytes.extend(self.vectors.iter().map(|number| *number as u8));
        Ok(bytes)
    }

    /// Whether these bytes are a segment of another version.
    pub(crate) fn is_of_another_form(bytes: &[u8]) -> bool {
        bytes.starts_with(ANY_FORM) && !bytes.starts_with(FORM)
    }

    /// The segment in these bytes; none if they aren't one.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (head, rest) = postcard::take_from_bytes::<SegmentHead>(bytes.strip_prefix(FORM)?).ok()?;
        let (dictionary, rest) = rest.split_at_checked(usize::try_from(head.dictionary).ok()?)?;
        let (postings, vectors) = rest.split_at_checked(usize::try_from(head.postings).ok()?)?;
        let segment = Self {
            files: head.files,
            documents: head.documents,
            dictionary: dictionary.to_vec(),
            postings: postings.to_vec(),
            form: head.form,
            vectors: vectors.iter().map(|byte| *byte as i8).collect(),
        };
        segment.is_sound().then_some(segment)
    }

    /// Whether every number leads somewhere.
    fn is_sound(&self) -> bool {
        let count = self.documents.len() as u64;
        let files = self.files.iter().all(|file| u64::from(file.first) + u64::from(file.chunks) < count);
        let documents = self.documents.iter().all(|document| (document.file as usize) < self.files.len());
        let chunks = self.documents.len().saturating_sub(self.files.len());
        let vectors = chunks.checked_mul(self.form.dimensions as usize) == Some(self.vectors.len());
        files && documents && vectors && self.dictionary.len().is_multiple_of(ENTRY)
    }
}

/// How many bytes a file adds to the index at most: as if no other file had any of its terms.
pub(crate) fn most_bytes(path: &str, analysis: &FileAnalysis, form: VectorForm) -> u64 {
    let chunks = analysis.chunks.len();
    let postings = analysis.path.len() + analysis.chunks.iter().map(|chunk| chunk.terms.len()).sum::<usize>();
    let all = analysis.chunks.iter().flat_map(|chunk| &chunk.terms).chain(&analysis.path);
    let mut terms: Vec<Term> = all.map(|count| count.term).collect();
    terms.sort_unstable();
    terms.dedup();
    let records = path.len() + FILE_RECORD + (chunks + 1) * CHUNK_RECORD;
    (terms.len() * ENTRY + postings * POSTING + records + chunks * form.dimensions as usize) as u64
}

fn payload(count: u16, places: u8) -> u32 {
    u32::from(count) << 8 | u32::from(places)
}

/// Each posting is the distance from the one before, times two; odd if its count and places follow, which are otherwise
/// one and none.
fn encode_postings(of_term: &[Keyed], bytes: &mut Vec<u8>) {
    let mut previous = 0;
    for (key, payload) in of_term {
        let document = key & ((1 << DOCUMENT_BITS) - 1);
        let distance = (document - previous) << 1;
        previous = document;
        if *payload == 1 << 8 {
            encode_number(distance, bytes);
        } else {
            encode_number(distance | 1, bytes);
            encode_number(u64::from((payload >> 8) << PLACE_BITS | payload & ((1 << PLACE_BITS) - 1)), bytes);
        }
    }
}

fn encode_number(mut number: u64, bytes: &mut Vec<u8>) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn decode_number(bytes: &mut &[u8]) -> Option<u64> {
    let (mut number, mut shift) = (0_u64, 0);
    loop {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7F) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
        shift += 7;
        if shift > 56 {
            return None;
        }
    }
}

/// Reads the postings of a term.
pub(crate) struct Postings<'a> {
    bytes: &'a [u8],
    document: u32,
}

impl Iterator for Postings<'_> {
    type Item = Posting;

    fn next(&mut self) -> Option<Posting> {
        let distance = decode_number(&mut self.bytes)?;
        self.document += (distance >> 1) as u32;
        let (count, places) = match distance & 1 {
            0 => (1, 0),
            _ => {
                let packed = decode_number(&mut self.bytes)?;
                ((packed >> PLACE_BITS) as u16, (packed & ((1 << PLACE_BITS) - 1)) as u8)
            }
        };
        Some(Posting { document: self.document, count, places })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::analyze;

    const FORM: VectorForm = VectorForm { model: 7, dimensions: 2 };

    /// A file whose chunks have vectors that tell them from all others.
    fn file(path: &str, mark: i8) -> AnalyzedFile {
        let text = (0..200).map(|line| format!("fn number_{line}() {{}}\n")).collect::<String>();
        let analysis = analyze(path, text.as_bytes());
        let vectors = (0..analysis.chunks.len()).flat_map(|chunk| [mark, chunk as i8]).collect();
        let stamp = Stamp { device: 0, inode: 0, size: 0, modified: 0, changed: 0 };
        AnalyzedFile { root: 0, path: path.into(), stamp, content: 0, is_young: false, analysis, vectors }
    }

    /// The vectors of each file, by its path.
    fn vectors(segment: &Segment) -> Vec<(String, Vec<i8>)> {
        let of_file = |file: &FileRecord| {
            let documents = file.first..file.first + file.chunks + 1;
            documents.filter_map(|document| segment.vector(document, FORM.model)).flatten().copied().collect()
        };
        segment.files.iter().map(|file| (file.path.clone(), of_file(file))).collect()
    }

    #[test]
    fn segments_that_are_merged_keep_every_chunk_s_vector() {
        let one = Segment::build(vec![file("a.rs", 1), file("b.rs", 2), file("c.rs", 3)], FORM);
        let other = Segment::build(vec![file("d.rs", 4), file("e.rs", 5)], FORM);
        let merged = Segment::merge(&[(&one, &[true, false, true]), (&other, &[true, true])]);
        let mut expected = vectors(&one);
        expected.remove(1);
        expected.extend(vectors(&other));
        assert!(expected.iter().all(|(_, of_file)| of_file.len() > 2), "files of several chunks: {expected:?}");
        assert_eq!(vectors(&merged), expected);
        assert_eq!(Segment::from_bytes(&merged.to_bytes().unwrap()), Some(merged));
    }

    #[test]
    fn a_segment_of_another_version_is_told_from_a_damaged_one() {
        let mut bytes = Segment::build(vec![file("a.rs", 1)], FORM).to_bytes().unwrap();
        assert!(!Segment::is_of_another_form(&bytes) && !Segment::is_of_another_form(b"damaged"));
        bytes[7] = b'2';
        assert!(Segment::is_of_another_form(&bytes) && Segment::from_bytes(&bytes).is_none());
    }
}
