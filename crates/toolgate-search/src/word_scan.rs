//! Searches files that aren't indexed yet, by their words alone, for as long as there is time: what `grep` would find, so
//! that an index that is still being built doesn't hide them.

use std::time::{Duration, Instant};

use toolgate_contract::{FileHands, SearchHit, WorkspacePath};

use crate::analysis::analyze;
use crate::answer::{Found, hit};
use crate::index_state::content_hash;
use crate::query::Query;
use crate::ranking::{Candidates, Weights, rank};
use crate::refresh::read_text;
use crate::segment::{AnalyzedFile, Segment, VectorForm};

/// How long files are searched that way.
const TIME: Duration = Duration::from_secs(2);
/// The most bytes of such a file that are read; longer ones wait for the index.
const LONGEST: usize = 256 << 10;

/// What was found among files that aren't indexed, and how many were looked at.
pub(crate) fn scan(
    pending: &[WorkspacePath],
    query: &Query,
    hands: &dyn FileHands,
    limit: usize,
) -> (Vec<SearchHit>, u64) {
    let end = Instant::now() + TIME;
    let (mut scanned, mut matching) = (0, Vec::new());
    let words: Vec<Vec<u8>> = query.terms.iter().map(|term| term.word.to_lowercase().into_bytes()).collect();
    for place in pending {
        if Instant::now() >= end {
            break;
        }
        let Some((mut bytes, stamp, _)) = hands.open_at(place).ok().and_then(|opened| read_text(opened.file)) else {
            continue;
        };
        bytes.truncate(LONGEST);
        scanned += 1;
        let lower = bytes.to_ascii_lowercase();
        let is_match = |word: &Vec<u8>| memchr::memmem::find(&lower, word).is_some();
        let path = place.path.to_lowercase();
        if words.iter().any(|word| is_match(word) || memchr::memmem::find(path.as_bytes(), word).is_some()) {
            matching.push(AnalyzedFile {
                root: place.root as u32,
                path: place.path.clone(),
                stamp,
                content: content_hash(&bytes),
                is_young: true,
                analysis: analyze(&place.path, &bytes),
                vectors: Vec::new(),
            });
        }
    }
    let segment = Segment::build(matching, VectorForm::default());
    let all = vec![true; segment.files.len()];
    let ranked = rank(&Candidates { segments: vec![(&segment, &all)] }, query, &Weights::DEFAULT, limit);
    let hits = ranked.into_iter().filter_map(|ranked| hit(&Found::new(ranked, &segment), query, hands));
    let hits = hits.map(|hit| SearchHit { why: format!("not indexed yet; {}", hit.why), ..hit }).collect();
    (hits, scanned)
}
