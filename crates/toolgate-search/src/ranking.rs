//! Ranks chunks for a question: BM25 over a chunk's text, its file's text and its path, then what names, definitions and
//! neighbours say. Files are ranked first, since a question is nearly always about a file's subject; the best chunk of each
//! file is shown.

use crate::analysis::{IN_COMMENT, IN_NAME};
use crate::language::FileKind;
use crate::query::{Query, QueryTerm};
use crate::segment::{FileRecord, Posting, Segment};
use crate::terms::{Term, terms};

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
    /// What a term in a defined name counts, in occurrences.
    pub(crate) name: f32,
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
        chunk_b: 0.15,
        file_k: 8.0,
        file_b: 0.3,
        name: 7.0,
        comment: 0.1,
        file: 0.03,
        path: 1.8,
        stem: 0.5,
        others: 0.06,
        definition: 1.2,
        test: 0.6,
        about: 1.0,
        docs: 0.5,
        coverage: 0.6,
        chunk_coverage: 0.15,
        whole_stem: 0.36,
        generated: 0.5,
        counterpart: 0.07,
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
}

/// What is known of a chunk while it is scored.
#[derive(Debug, Clone, Copy, Default)]
struct ChunkTally {
    score: f32,
    terms: u64,
    names: u64,
    has_whole_name: bool,
    has_exact_name: bool,
}

/// What is known of a file while it is scored: as a whole, and by its path.
#[derive(Debug, Clone, Copy, Default)]
struct FileTally {
    body: f32,
    path: f32,
    terms: u64,
    path_terms: u64,
    stem_terms: u64,
}

/// Scores of one segment's documents.
struct SegmentScores {
    chunks: Vec<ChunkTally>,
    files: Vec<FileTally>,
}

/// The best chunk of each of the best files, best first.
pub(crate) fn rank(candidates: &Candidates<'_>, query: &Query, weights: &Weights, limit: usize) -> Vec<Ranked> {
    let averages = Averages::of(candidates);
    let blank = |(segment, _): &(&Segment, &[bool])| SegmentScores {
        chunks: vec![ChunkTally::default(); segment.documents.len()],
        files: vec![FileTally::default(); segment.files.len()],
    };
    let mut scores: Vec<SegmentScores> = candidates.segments.iter().map(blank).collect();
    let add = |(number, term)| add_term(candidates, &averages, weights, (number, term), &mut scores);
    let says: Vec<f32> = query.terms.iter().enumerate().map(add).collect();
    let ranking = FileRanking { query, weights, says: &says };
    let mut files = Vec::new();
    for (number, ((segment, alive), scored)) in candidates.segments.iter().zip(&scores).enumerate() {
        let alive = segment.files.iter().zip(&scored.files).zip(*alive).filter(|(_, alive)| **alive);
        files.extend(alive.filter_map(|((record, tally), _)| ranking.file(number, record, tally, &scored.chunks)));
    }
    sort(&mut files);
    agree(candidates, weights, &mut files);
    files.truncate(limit);
    files
}

pub(crate) fn sort(files: &mut [Ranked]) {
    files.sort_by(|a, b| b.score.total_cmp(&a.score).then((a.segment, a.document).cmp(&(b.segment, b.document))));
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
    fn file(&self, segment: usize, record: &FileRecord, tally: &FileTally, chunks: &[ChunkTally]) -> Option<Ranked> {
        if tally.terms | tally.path_terms == 0 {
            return None;
        }
        let weights = self.weights;
        let (best, document, sum) = self.best_chunk(record, chunks);
        let others = (sum - best.score).min(2.0 * best.score);
        let score = best.score + weights.others * others + weights.file * tally.body + weights.path * tally.path;
        let score = score
            * (1.0 + weights.coverage * self.share(tally.terms | tally.path_terms))
            * (1.0 + weights.chunk_coverage * self.share(best.terms))
            * self.name_factor(record, tally)
            * kind_factor(self.query, self.weights, record.kind());
        let (terms, names, path) = (best.terms, best.names, tally.path_terms);
        Some(Ranked { segment, document, score, terms, names, path, is_close: false })
    }

    /// The best chunk of a file, its document, and the sum of all; the document of the path if no chunk has a term.
    fn best_chunk(&self, record: &FileRecord, chunks: &[ChunkTally]) -> (ChunkTally, u32, f32) {
        let named = self.weights.definition * if self.query.is_symbol { SYMBOL } else { 1.0 };
        let (mut best, mut document, mut sum) = (ChunkTally::default(), record.first, 0.0);
        for at in record.first + 1..=record.first + record.chunks {
            let mut chunk = chunks[at as usize];
            if chunk.has_whole_name {
                chunk.score *= named;
            }
            if chunk.has_exact_name {
                chunk.score *= EXACT;
            }
            sum += chunk.score;
            if chunk.score > best.score {
                (best, document) = (chunk, at);
            }
        }
        (best, document, sum)
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

/// Whether a program writes the file, by its name.
fn is_generated(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    ["package-lock.json", "pnpm-lock.yaml", "go.sum"].contains(&name)
        || [".lock", ".min.js", ".min.css", ".map", ".snap", ".svg"].iter().any(|end| name.ends_with(end))
}

/// How long chunks and files are, and how many there are.
struct Averages {
    chunk: f32,
    file: f32,
    files: f32,
    /// The terms of each file, by segment.
    lengths: Vec<Vec<u32>>,
}

impl Averages {
    fn of(candidates: &Candidates<'_>) -> Self {
        let (mut terms, mut chunks, mut files) = (0_u64, 0_u64, 0_u64);
        let mut lengths = Vec::new();
        for (segment, alive) in &candidates.segments {
            let mut of_segment = vec![0_u32; segment.files.len()];
            for document in &segment.documents {
                if alive[document.file as usize] && document.lines > 0 {
                    of_segment[document.file as usize] += document.length;
                    chunks += 1;
                }
            }
            terms += of_segment.iter().map(|length| u64::from(*length)).sum::<u64>();
            files += alive.iter().filter(|alive| **alive).count() as u64;
            lengths.push(of_segment);
        }
        let average = |count: u64| (terms as f32 / count.max(1) as f32).max(1.0);
        Self { chunk: average(chunks), file: average(files), files: files.max(1) as f32, lengths }
    }
}

/// The documents of one segment that have a term.
#[derive(Default)]
struct TermHits {
    chunks: Vec<Posting>,
    /// Each file with how often it has the term.
    files: Vec<(u32, f32)>,
    /// Documents of paths that have it, and of those whose last name has it.
    paths: Vec<u32>,
    stems: Vec<u32>,
}

/// Adds one term to the scores; returns how much it says, which is more the fewer files have it.
fn add_term(
    candidates: &Candidates<'_>,
    averages: &Averages,
    weights: &Weights,
    (number, term): (usize, &QueryTerm),
    scores: &mut [SegmentScores],
) -> f32 {
    let bit = 1_u64 << number;
    let hits: Vec<TermHits> =
        candidates.segments.iter().map(|(segment, alive)| term_hits(segment, alive, term.term, weights)).collect();
    let rarity = |count: usize| {
        let count = count as f32;
        (1.0 + (averages.files - count + 0.5).max(0.0) / (count + 0.5)).ln() * term.weight
    };
    let says = rarity(hits.iter().map(|hits| hits.files.len()).sum());
    let path_says = rarity(hits.iter().map(|hits| hits.paths.len()).sum::<usize>().max(1));
    for (at, ((segment, _), scored)) in candidates.segments.iter().zip(scores).enumerate() {
        for (file, count) in &hits[at].files {
            let length = averages.lengths[at][*file as usize] as f32 / averages.file;
            let tally = &mut scored.files[*file as usize];
            tally.body += says * saturated(*count, length, weights.file_k, weights.file_b);
            tally.terms |= bit;
        }
        for posting in &hits[at].chunks {
            let length = segment.documents[posting.document as usize].length as f32 / averages.chunk;
            let tally = &mut scored.chunks[posting.document as usize];
            tally.score += says * saturated(occurrences(posting, weights), length, weights.chunk_k, weights.chunk_b);
            tally.terms |= bit;
            if posting.places & IN_NAME != 0 {
                tally.names |= bit;
                tally.has_whole_name |= term.is_whole;
                tally.has_exact_name |= term.is_exact;
            }
        }
        for document in &hits[at].paths {
            let posting = &segment.documents[*document as usize];
            let tally = &mut scored.files[posting.file as usize];
            tally.path_terms |= bit;
            tally.path += path_says;
        }
        for document in &hits[at].stems {
            let tally = &mut scored.files[segment.documents[*document as usize].file as usize];
            tally.stem_terms |= bit;
            tally.path += path_says * (weights.stem - 1.0);
        }
    }
    says
}

/// The documents of a segment that have a term and count.
fn term_hits(segment: &Segment, alive: &[bool], term: Term, weights: &Weights) -> TermHits {
    let mut hits = TermHits::default();
    for posting in segment.postings(term) {
        let Some(document) = segment.documents.get(posting.document as usize) else { break };
        if !alive[document.file as usize] {
            continue;
        }
        if document.lines == 0 {
            hits.paths.push(posting.document);
            if posting.places & IN_NAME != 0 {
                hits.stems.push(posting.document);
            }
            continue;
        }
        let count = occurrences(&posting, weights);
        match hits.files.last_mut() {
            Some((file, sum)) if *file == document.file => *sum += count,
            _ => hits.files.push((document.file, count)),
        }
        hits.chunks.push(posting);
    }
    hits
}

/// How often a chunk has a term, where names and comments count more.
fn occurrences(posting: &Posting, weights: &Weights) -> f32 {
    let is = |place: u8| f32::from(u8::from(posting.places & place != 0));
    f32::from(posting.count) + weights.name * is(IN_NAME) + weights.comment * is(IN_COMMENT)
}

fn saturated(occurrences: f32, length: f32, k: f32, b: f32) -> f32 {
    occurrences * (k + 1.0) / (occurrences + k * (1.0 - b + b * length))
}
