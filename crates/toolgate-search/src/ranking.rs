//! Ranks chunks for a question: BM25 over a chunk's text, its file's text and its path, then what names, definitions and
//! neighbours say. Files are ranked first, since a question is nearly always about a file's subject; the best chunk of each
//! file is shown.

use crate::language::FileKind;
use crate::query::Query;
use crate::segment::{ChunkRecord, FileRecord, Segment};
use crate::tally::{ChunkTally, FileTally, tallied};
use crate::terms::terms;

/// What a definition counts whose whole name is all that was asked for, in any spelling, and once more if it is spelled so: whoever
/// types one identifier wants the place that defines it, also if that is a test, and not those that mention its parts.
const SYMBOL: f32 = 2.0;
const EXACT: f32 = 4.0;

/// How much each signal counts. The numbers were found with `cargo xtask bench search`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Weights {
    /// BM25's saturation and length normalization, for chunks.
    pub(crate) chunk_k: f32,
    pub(crate) chunk_b: f32,
    /// The same for whole files.
    pub(crate) file_k: f32,
    pub(crate) file_b: f32,
    /// What a term in a chunk's own name counts, in occurrences.
    pub(crate) name: f32,
    /// What a term in the name of a definition around it counts.
    pub(crate) outer_name: f32,
    /// What a term in a definition's first line counts, where the place in a file is chosen.
    pub(crate) signature: f32,
    /// The factor of a name of which every word was asked for, where the place in a file is chosen.
    pub(crate) whole_name: f32,
    /// What words of the question count that are one identifier in the code.
    pub(crate) compound: f32,
    /// What a term in a comment counts beside its occurrence.
    pub(crate) comment: f32,
    /// The share of the whole file's score.
    pub(crate) file: f32,
    /// The share of the path's score.
    pub(crate) path: f32,
    /// What a path's last name counts beside its directories.
    pub(crate) stem: f32,
    /// The share of the second-best chunks of the file.
    pub(crate) others: f32,
    /// The factor of a definition whose whole name was asked for.
    pub(crate) definition: f32,
    /// The factor of tests where other code has the question's terms too.
    pub(crate) test: f32,
    /// The factor of the kind of file that a question is about.
    pub(crate) about: f32,
    /// The factor of text for people, where a question isn't about it.
    pub(crate) docs: f32,
    /// What having all of a question's terms counts.
    pub(crate) coverage: f32,
    /// What having all of them in one chunk counts.
    pub(crate) chunk_coverage: f32,
    /// What a file name counts of which every word was asked for.
    pub(crate) whole_stem: f32,
    /// The factor of examples and benchmarks.
    pub(crate) example: f32,
    /// The factor of files that programs write, such as lock files.
    pub(crate) generated: f32,
    /// The share of a better file's score that files named like it get.
    pub(crate) counterpart: f32,
    /// The same for files in its directory.
    pub(crate) siblings: f32,
}

impl Weights {
    pub(crate) const DEFAULT: Self = Self {
        chunk_k: 3.2,
        chunk_b: 0.3,
        file_k: 9.0,
        file_b: 0.4,
        name: 5.6,
        outer_name: 3.0,
        signature: 4.0,
        whole_name: 1.0,
        compound: 0.4,
        comment: 0.1,
        file: 0.03,
        path: 1.8,
        stem: 0.65,
        others: 0.06,
        definition: 1.2,
        test: 0.6,
        about: 1.0,
        docs: 0.5,
        coverage: 1.0,
        chunk_coverage: 0.15,
        whole_stem: 0.2,
        example: 0.6,
        generated: 0.5,
        counterpart: 0.1,
        siblings: 0.04,
    };
}

/// The files that a search may answer with: for each segment, which files count.
pub(crate) struct Candidates<'a> {
    pub(crate) segments: Vec<(&'a Segment, &'a [bool])>,
}

/// A ranked chunk.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Ranked {
    /// Which segment, and which document of it.
    pub(crate) segment: usize,
    pub(crate) document: u32,
    pub(crate) score: f32,
    /// Terms of the question in the chunk, as bits by their order.
    pub(crate) terms: u64,
    /// Terms in names that it defines.
    pub(crate) names: u64,
    /// Terms in its path.
    pub(crate) path: u64,
    /// Whether it is close to the question in meaning, as far as weights tell.
    pub(crate) is_close: bool,
    /// The next best chunks of its file.
    pub(crate) others: [Option<u32>; OTHERS],
}

/// How many places of a file are named beside its best.
pub(crate) const OTHERS: usize = 3;
/// What such a place needs of the best one's score.
const OTHER_SHARE: f32 = 0.2;

/// The best chunk of each of the best files, best first.
pub(crate) fn rank(candidates: &Candidates<'_>, query: &Query, weights: &Weights, limit: usize) -> Vec<Ranked> {
    let (scores, says) = tallied(candidates, query, weights);
    let ranking = FileRanking { query, weights, says: &says };
    let mut files = Vec::new();
    for (number, ((segment, alive), scored)) in candidates.segments.iter().zip(&scores).enumerate() {
        let alive = segment.files.iter().zip(&scored.files).zip(*alive).filter(|(_, alive)| **alive);
        files.extend(
            alive.filter_map(|((record, tally), _)| ranking.file((number, segment), record, tally, &scored.chunks)),
        );
    }
    sort(&mut files);
    agree(candidates, weights, &mut files);
    files.truncate(limit);
    files
}

pub(crate) fn sort(files: &mut [Ranked]) {
    files.sort_by(|a, b| b.score.total_cmp(&a.score).then((a.segment, a.document).cmp(&(b.segment, b.document))));
}

/// The chunks of a file that count.
#[derive(Default)]
struct FileChunks {
    score: f32,
    sum: f32,
    /// What is shown: a chunk, its document, and those of the next best. The document of the path if no chunk has a term.
    place: ChunkTally,
    document: u32,
    others: [Option<u32>; OTHERS],
}

/// Ranks files, once every term is counted.
struct FileRanking<'a> {
    query: &'a Query,
    weights: &'a Weights,
    /// How much each term says.
    says: &'a [f32],
}

impl FileRanking<'_> {
    /// The file with its best chunk; none if it has no term of the question.
    fn file(
        &self,
        (number, segment): (usize, &Segment),
        record: &FileRecord,
        tally: &FileTally,
        chunks: &[ChunkTally],
    ) -> Option<Ranked> {
        if tally.terms | tally.path_terms == 0 {
            return None;
        }
        let weights = self.weights;
        let FileChunks { score, sum, place, document, others } = self.chunks(segment, record, chunks);
        let rest = (sum - score).min(2.0 * score);
        let score = score + weights.others * rest + weights.file * tally.body + weights.path * tally.path;
        let score = score
            * (1.0 + weights.coverage * self.share(tally.terms | tally.path_terms))
            * (1.0 + weights.chunk_coverage * self.share(place.terms))
            * self.name_factor(record, tally)
            * kind_factor(self.query, self.weights, record.kind());
        let (terms, names, path) = (place.terms, place.names, tally.path_terms);
        Some(Ranked { segment: number, document, score, terms, names, path, is_close: false, others })
    }

    /// The chunks of a file that count: for its score, the best and the sum of all; to be shown, the best place and the next.
    fn chunks(&self, segment: &Segment, record: &FileRecord, chunks: &[ChunkTally]) -> FileChunks {
        let mut found = FileChunks { document: record.first, ..FileChunks::default() };
        let mut best = [(0.0, None); OTHERS + 1];
        for at in record.first + 1..=record.first + record.chunks {
            let chunk = &chunks[at as usize];
            if chunk.score <= 0.0 {
                continue;
            }
            let named = self.named(chunk);
            found.score = found.score.max(chunk.score * named);
            found.sum += chunk.score * named;
            let place = chunk.place * named * self.declared(chunk, &segment.documents[at as usize]);
            if let Some(rank) = best.iter().position(|(score, _)| place > *score) {
                best[rank..].rotate_right(1);
                best[rank] = (place, Some(at));
            }
        }
        if let (most, Some(document)) = best[0] {
            (found.document, found.place) = (document, chunks[document as usize]);
            let is_near = |(score, document): (f32, Option<u32>)| document.filter(|_| score >= OTHER_SHARE * most);
            found.others = std::array::from_fn(|at| is_near(best[at + 1]));
        }
        found
    }

    /// What a chunk counts for having a name that was asked for.
    fn named(&self, chunk: &ChunkTally) -> f32 {
        let whole = self.weights.definition * if self.query.is_symbol { SYMBOL } else { 1.0 };
        let whole = if chunk.has_whole_name { whole } else { 1.0 };
        if chunk.has_exact_name { whole * EXACT } else { whole }
    }

    /// What a chunk counts as a place for how much of its own name was asked for.
    fn declared(&self, chunk: &ChunkTally, record: &ChunkRecord) -> f32 {
        let words = u32::from(record.name_words).max(1);
        let share = chunk.own_name.count_ones().min(words) as f32 / words as f32;
        1.0 + self.weights.whole_name * share * share
    }

    /// How much of what the question says these terms say.
    fn share(&self, terms: u64) -> f32 {
        let said: f32 =
            self.says.iter().enumerate().filter(|(bit, _)| terms >> bit & 1 == 1).map(|(_, says)| says).sum();
        said / self.says.iter().sum::<f32>().max(1e-6)
    }

    fn name_factor(&self, record: &FileRecord, tally: &FileTally) -> f32 {
        let words = terms(stem_of(&record.path)).len().max(1);
        let whole = if tally.stem_terms.count_ones() as usize >= words { 1.0 + self.weights.whole_stem } else { 1.0 };
        let is_unasked = !self.query.wants_examples && is_example(&record.path);
        let whole = if is_unasked { whole * self.weights.example } else { whole };
        let is_weak = is_generated(&record.path) || record.chunks == 0;
        if is_weak { whole * self.weights.generated } else { whole }
    }
}

/// What a kind of file counts for a question.
pub(crate) fn kind_factor(query: &Query, weights: &Weights, kind: FileKind) -> f32 {
    match (query.about, kind) {
        (Some(about), kind) if about == kind => weights.about,
        (_, FileKind::Tests) => weights.test,
        (_, FileKind::Docs) => weights.docs,
        _ => 1.0,
    }
}

/// Files that are named like one of the best, such as its tests, and those beside it, rise.
fn agree(candidates: &Candidates<'_>, weights: &Weights, files: &mut Vec<Ranked>) {
    const LEADERS: usize = 5;
    const FOLLOWERS: usize = 200;
    let path = |ranked: &Ranked| {
        let segment = candidates.segments[ranked.segment].0;
        segment.files[segment.documents[ranked.document as usize].file as usize].path.as_str()
    };
    files.truncate(FOLLOWERS);
    let leaders: Vec<(&str, &str, f32)> =
        files.iter().take(LEADERS).map(|file| (path(file), subject(path(file)), file.score)).collect();
    for (place, file) in files.iter_mut().enumerate() {
        let own = path(file);
        let (mut named, mut beside) = (0.0_f32, 0.0_f32);
        for (at, (other, subject_of, score)) in leaders.iter().enumerate() {
            if at == place {
                continue;
            }
            if *subject_of == subject(own) {
                named = named.max(*score);
            }
            if directory(other) == directory(own) && !directory(own).is_empty() {
                beside = beside.max(*score);
            }
        }
        file.score += weights.counterpart * named + weights.siblings * beside;
    }
    sort(files);
}

fn directory(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(directory, _)| directory)
}

/// A file's name without its ending.
fn stem_of(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.split('.').next().unwrap_or(name)
}

/// What a file is about by its name: `test_gate.py`, `gate_test.go` and `gate.spec.ts` are about `gate`.
fn subject(path: &str) -> &str {
    let stem = stem_of(path);
    let stem = ["test_", "tests_"].iter().find_map(|start| stem.strip_prefix(start)).unwrap_or(stem);
    ["_test", "_tests", "_spec", "Test", "Tests"].iter().find_map(|end| stem.strip_suffix(end)).unwrap_or(stem)
}

/// Whether a file shows how others are used, or measures them, by its directory.
fn is_example(path: &str) -> bool {
    const DIRECTORIES: [&str; 9] =
        ["examples", "example", "_examples", "benches", "bench", "benchmarks", "demo", "demos", "samples"];
    path.rsplit('/').skip(1).any(|directory| DIRECTORIES.contains(&directory))
}

/// Whether a program writes the file, by its name.
fn is_generated(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    ["package-lock.json", "pnpm-lock.yaml", "go.sum"].contains(&name)
        || [".lock", ".min.js", ".min.css", ".map", ".snap", ".svg"].iter().any(|end| name.ends_with(end))
}
