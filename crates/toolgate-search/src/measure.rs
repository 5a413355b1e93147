//! For `cargo xtask bench search` alone: ranks trees that are in memory, such as those of past commits.

use std::sync::Arc;

use crate::analysis::{FileAnalysis, analyze};
use crate::query::Query;
use crate::ranking::{Candidates, Ranked, Weights, rank};
use crate::segment::{AnalyzedFile, Segment, Stamp, VectorForm};

/// A file that was analyzed.
#[derive(Clone)]
pub struct MeasuredFile(Arc<FileAnalysis>);

/// A tree that was indexed.
pub struct MeasuredTree(Segment);

/// A place in a tree.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasuredPlace {
    /// The path.
    pub path: String,
    /// The first line, counted from 1.
    pub first: u32,
    /// The last line.
    pub last: u32,
    /// The first and last lines of other places in the file.
    pub also: Vec<(u32, u32)>,
}

/// Analyzes a file.
pub fn analyzed(path: &str, bytes: &[u8]) -> MeasuredFile {
    MeasuredFile(Arc::new(analyze(path, bytes)))
}

impl MeasuredTree {
    /// Indexes a tree.
    pub fn new(files: impl Iterator<Item = (String, MeasuredFile)>) -> Self {
        let stamp = Stamp { device: 0, inode: 0, size: 0, modified: 0, changed: 0 };
        let file = |(path, file): (String, MeasuredFile)| AnalyzedFile {
            root: 0,
            path,
            stamp,
            content: 0,
            is_young: false,
            analysis: Arc::unwrap_or_clone(file.0),
            vectors: Vec::new(),
        };
        Self(Segment::build(files.map(file).collect(), VectorForm::default()))
    }

    /// The best places for a question.
    pub fn search(&self, question: &str, limit: usize) -> Vec<MeasuredPlace> {
        let all = vec![true; self.0.files.len()];
        let ranked =
            rank(&Candidates { segments: vec![(&self.0, &all)] }, &Query::new(question), &Weights::DEFAULT, limit);
        let lines = |document: u32| {
            let chunk = self.0.documents[document as usize];
            (chunk.first + 1, chunk.first + chunk.lines)
        };
        let place = |ranked: &Ranked| {
            let path = self.0.files[self.0.documents[ranked.document as usize].file as usize].path.clone();
            let (first, last) = lines(ranked.document);
            MeasuredPlace {
                path,
                first,
                last,
                also: ranked.others.iter().flatten().map(|other| lines(*other)).collect(),
            }
        };
        ranked.iter().map(place).collect()
    }

    /// How many bytes the index of the tree takes.
    pub fn bytes(&self) -> usize {
        self.0.to_bytes().map_or(0, |bytes| bytes.len())
    }
}
