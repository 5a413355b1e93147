//! Ranks files by meaning, where there are vectors, and joins that with the ranking by words. Both lists count by rank (reciprocal
//! rank fusion), since their scores have nothing in common.

use std::collections::HashMap;

use crate::language::FileKind;
use crate::query::Query;
use crate::ranking::{Candidates, OTHERS, Ranked, sort};
use crate::static_model::StaticModel;

/// How many files of each list are joined.
pub(crate) const JOINED: usize = 100;
/// Added to a rank before it divides: the usual number, with which the first few count nearly alike.
const RANK_OFFSET: f32 = 60.0;
/// The share of meaning where a question is a sentence, and where it is a name, which is best found as it is written. Both are the shares that
/// semble publishes for the same kind of weights.
const SENTENCE_SHARE: f32 = 0.5;
const NAME_SHARE: f32 = 0.3;

/// The best files by the angle between a question's vector and that of their best chunk.
pub(crate) fn rank_by_meaning(
    candidates: &Candidates<'_>,
    question: &str,
    model: &StaticModel,
    factor: impl Fn(FileKind) -> f32,
) -> Vec<Ranked> {
    let mut wanted = Vec::with_capacity(model.dimensions());
    model.embed(question, &mut wanted);
    let mut found = Vec::new();
    for (number, (segment, alive)) in candidates.segments.iter().enumerate() {
        for (record, _) in segment.files.iter().zip(*alive).filter(|(_, alive)| **alive) {
            let chunks = record.first + 1..=record.first + record.chunks;
            let scored =
                chunks.filter_map(|document| Some((cosine(&wanted, segment.vector(document, model.id)?), document)));
            let Some((score, document)) = scored.max_by(|(a, _), (b, _)| a.total_cmp(b)) else { continue };
            let score = score * factor(record.kind());
            if score > 0.0 {
                let others = [None; OTHERS];
                found.push(Ranked {
                    segment: number,
                    document,
                    score,
                    terms: 0,
                    names: 0,
                    path: 0,
                    is_close: true,
                    others,
                });
            }
        }
    }
    sort(&mut found);
    found.truncate(JOINED);
    found
}

/// One list of two. A file that is in both is shown with the chunk that has the question's words.
pub(crate) fn joined(
    candidates: &Candidates<'_>,
    by_words: Vec<Ranked>,
    by_meaning: &[Ranked],
    query: &Query,
) -> Vec<Ranked> {
    let share = if query.is_symbol { NAME_SHARE } else { SENTENCE_SHARE };
    let file = |ranked: &Ranked| {
        (ranked.segment, candidates.segments[ranked.segment].0.documents[ranked.document as usize].file)
    };
    let points = |rank: usize| 1.0 / (RANK_OFFSET + rank as f32 + 1.0);
    let mut files: HashMap<(usize, u32), Ranked> = HashMap::new();
    for (rank, ranked) in by_words.into_iter().take(JOINED).enumerate() {
        files.insert(file(&ranked), Ranked { score: (1.0 - share) * points(rank), ..ranked });
    }
    for (rank, ranked) in by_meaning.iter().enumerate() {
        let entry = files.entry(file(ranked)).or_insert(Ranked { score: 0.0, ..*ranked });
        entry.score += share * points(rank);
        entry.is_close = true;
    }
    let mut joined: Vec<Ranked> = files.into_values().collect();
    sort(&mut joined);
    joined
}

/// The cosine of the angle between two vectors; 0 if one of them is all zero.
fn cosine(a: &[i8], b: &[i8]) -> f32 {
    let product = |a: &[i8], b: &[i8]| a.iter().zip(b).map(|(a, b)| i32::from(*a) * i32::from(*b)).sum::<i32>() as f32;
    let lengths = (product(a, a) * product(b, b)).sqrt();
    if lengths > 0.0 { product(a, b) / lengths } else { 0.0 }
}
