//! Counts a question's terms: BM25 for each chunk and for each file, and which terms names, paths and chunks have.

use crate::analysis::{IN_COMMENT, IN_NAME, IN_OWN_NAME, IN_SIGNATURE};
use crate::query::{Query, QueryTerm};
use crate::ranking::{Candidates, Weights};
use crate::segment::{Posting, Segment};
use crate::terms::Term;

/// What is known of a chunk while it is scored.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ChunkTally {
    pub(crate) score: f32,
    /// The score by which the place in a file is chosen: what a definition declares counts more than what is in it.
    pub(crate) place: f32,
    pub(crate) terms: u64,
    pub(crate) names: u64,
    /// Terms in its own name.
    pub(crate) own_name: u64,
    pub(crate) has_whole_name: bool,
    pub(crate) has_exact_name: bool,
}

/// What is known of a file while it is scored: as a whole, and by its path.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct FileTally {
    pub(crate) body: f32,
    pub(crate) path: f32,
    pub(crate) terms: u64,
    pub(crate) path_terms: u64,
    pub(crate) stem_terms: u64,
}

/// Scores of one segment's documents.
pub(crate) struct SegmentScores {
    pub(crate) chunks: Vec<ChunkTally>,
    pub(crate) files: Vec<FileTally>,
}

/// Counts every term of a question in every file; returns the scores, and how much each term says.
pub(crate) fn tallied(candidates: &Candidates<'_>, query: &Query, weights: &Weights) -> (Vec<SegmentScores>, Vec<f32>) {
    let averages = Averages::of(candidates);
    let blank = |(segment, _): &(&Segment, &[bool])| SegmentScores {
        chunks: vec![ChunkTally::default(); segment.documents.len()],
        files: vec![FileTally::default(); segment.files.len()],
    };
    let mut scores: Vec<SegmentScores> = candidates.segments.iter().map(blank).collect();
    let add = |(number, term)| add_term(candidates, &averages, weights, (number, term), &mut scores);
    let says = query.terms.iter().enumerate().map(add).collect();
    (scores, says)
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
    // Compounds count where they are, and nothing lacks them.
    let (bit, weight) = match term.is_compound {
        true => (0, term.weight * weights.compound),
        false => (1_u64 << number, term.weight),
    };
    let hits: Vec<TermHits> =
        candidates.segments.iter().map(|(segment, alive)| term_hits(segment, alive, term.term, weights)).collect();
    let rarity = |count: usize| {
        let count = count as f32;
        (1.0 + (averages.files - count + 0.5).max(0.0) / (count + 0.5)).ln() * weight
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
            let score = |count: f32| says * saturated(count, length, weights.chunk_k, weights.chunk_b);
            let count = occurrences(posting, weights);
            let declared = if posting.places & IN_SIGNATURE != 0 { weights.signature } else { 0.0 };
            tally.score += score(count);
            tally.place += score(count + declared);
            tally.terms |= bit;
            if posting.places & IN_NAME != 0 {
                tally.names |= bit;
                let is_word = !term.is_whole && !term.is_exact;
                tally.own_name |= if is_word && posting.places & IN_OWN_NAME != 0 { bit } else { 0 };
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
    if term.is_compound { 0.0 } else { says }
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
    let is = |place: u8| posting.places & place != 0;
    let name = match (is(IN_OWN_NAME), is(IN_NAME)) {
        (true, _) => weights.name,
        (false, true) => weights.outer_name,
        (false, false) => 0.0,
    };
    f32::from(posting.count) + name + if is(IN_COMMENT) { weights.comment } else { 0.0 }
}

fn saturated(occurrences: f32, length: f32, k: f32, b: f32) -> f32 {
    occurrences * (k + 1.0) / (occurrences + k * (1.0 - b + b * length))
}
