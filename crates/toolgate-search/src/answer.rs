//! Turns ranked chunks into places to show. Each file is opened anew through the call's hands, which ask policy again; if
//! its content isn't what was indexed, its lines are found again.

use toolgate_contract::{AlsoFound, FileHands, SearchHit, WorkspacePath};

use crate::analysis::{analyze, decode};
use crate::index_state::content_hash;
use crate::outline::Lines;
use crate::query::Query;
use crate::ranking::Ranked;
use crate::refresh::read_text;
use crate::segment::{ChunkRecord, FileRecord, Segment};
use crate::terms::each_term;

/// Lines of a snippet.
const SNIPPET_LINES: usize = 12;
/// Bytes of a line in a snippet.
const LINE_BYTES: usize = 240;
/// Bytes of a name that is shown.
const NAME_BYTES: usize = 120;

/// A ranked chunk with its file.
pub(crate) struct Found<'a> {
    pub(crate) ranked: Ranked,
    pub(crate) file: &'a FileRecord,
    pub(crate) chunk: ChunkRecord,
    /// Its file's next best chunks.
    pub(crate) others: Vec<ChunkRecord>,
}

impl<'a> Found<'a> {
    /// A chunk of this segment.
    pub(crate) fn new(ranked: Ranked, segment: &'a Segment) -> Self {
        let chunk = segment.documents[ranked.document as usize];
        let others = ranked.others.iter().flatten().map(|document| segment.documents[*document as usize]).collect();
        Self { ranked, file: &segment.files[chunk.file as usize], chunk, others }
    }
}

/// The place to show; none if the file can't be read by now, or by this call.
pub(crate) fn hit(found: &Found<'_>, query: &Query, hands: &dyn FileHands) -> Option<SearchHit> {
    let place = WorkspacePath { root: found.file.root as usize, path: found.file.path.clone() };
    let (bytes, ..) = read_text(hands.open_at(&place).ok()?.file)?;
    let is_indexed = content_hash(&bytes) == found.file.content;
    let chunk = if is_indexed { found.chunk } else { best_chunk(&place.path, &bytes, query)? };
    let Some(text) = decode(&bytes) else {
        return Some(by_path(place, found, query));
    };
    if chunk.lines == 0 && text.is_empty() {
        return Some(by_path(place, found, query));
    }
    let lines = Lines::new(&text);
    let first = (chunk.first as usize).min(lines.len());
    let end = match chunk.lines {
        // Found by its path alone: the beginning says what the file is.
        0 => lines.len().min(SNIPPET_LINES),
        count => (first + count as usize).min(lines.len()),
    };
    let symbol = name(&text, chunk.name);
    let (from, to) = window(&lines, first, end, chunk, query);
    let snippet = (from..to).map(|line| shortened(lines.line(line), LINE_BYTES)).collect::<Vec<_>>().join("\n");
    let why = why(found, symbol.as_deref(), query);
    Some(SearchHit {
        place,
        first: first as u32 + 1,
        last: end.max(first + 1) as u32,
        symbol,
        snippet_line: from as u32 + 1,
        snippet,
        why,
        // Of another content, they would be other lines.
        also: if is_indexed { also(&text, lines.len(), &found.others) } else { Vec::new() },
    })
}

/// Other chunks of the file, by their lines and names.
fn also(text: &str, lines: usize, others: &[ChunkRecord]) -> Vec<AlsoFound> {
    let place = |chunk: &ChunkRecord| {
        let last = (chunk.first + chunk.lines).min(lines as u32);
        AlsoFound { lines: [chunk.first + 1, last], symbol: name(text, chunk.name) }
    };
    others.iter().map(place).collect()
}

/// A file of which only the path is known.
fn by_path(place: WorkspacePath, found: &Found<'_>, query: &Query) -> SearchHit {
    let why = why(found, None, query);
    let (snippet, also) = (String::new(), Vec::new());
    SearchHit { place, first: 1, last: 1, symbol: None, snippet_line: 1, snippet, why, also }
}

/// The chunk of a text that has most of the question's terms.
fn best_chunk(path: &str, bytes: &[u8], query: &Query) -> Option<ChunkRecord> {
    let analysis = analyze(path, bytes);
    let terms = |chunk: &crate::analysis::ChunkAnalysis| {
        query
            .terms
            .iter()
            .filter(|wanted| chunk.terms.binary_search_by_key(&wanted.term, |count| count.term).is_ok())
            .count()
    };
    let best = analysis.chunks.iter().max_by_key(|chunk| (terms(chunk), std::cmp::Reverse(chunk.first)))?;
    (terms(best) > 0).then(|| ChunkRecord {
        file: 0,
        first: best.first,
        lines: best.end - best.first,
        name: best.name,
        name_words: best.name_words,
        length: best.length,
    })
}

/// The name that a chunk has in the text.
fn name(text: &str, (start, length): (u32, u16)) -> Option<String> {
    let name = text.get(start as usize..start as usize + usize::from(length))?.trim();
    (!name.is_empty()).then(|| shortened(name, NAME_BYTES))
}

/// The lines of a chunk to show: those with most of the question's terms, with the line of the definition if it is near.
fn window(lines: &Lines<'_>, first: usize, end: usize, chunk: ChunkRecord, query: &Query) -> (usize, usize) {
    if end - first <= SNIPPET_LINES {
        return (first, end);
    }
    let is_definition = |line: usize| {
        let (start, after) = (lines.start(line), lines.start(line + 1));
        chunk.name.1 > 0 && (start..after).contains(&(chunk.name.0 as usize))
    };
    let found: Vec<u64> = (first..end)
        .map(|line| {
            let mut bits = u64::from(is_definition(line)) << 63;
            each_term(shown_part(lines.line(line)), |term, _| {
                if let Some(at) = query.terms.iter().position(|wanted| wanted.term == term) {
                    bits |= 1 << at.min(62);
                }
            });
            bits
        })
        .collect();
    let score = |from: usize| {
        let bits = found[from..from + SNIPPET_LINES].iter().fold(0, |all, line| all | line);
        (bits.count_ones(), std::cmp::Reverse(from))
    };
    let best = (0..=found.len() - SNIPPET_LINES).max_by_key(|from| score(*from)).unwrap_or(0);
    (first + best, first + best + SNIPPET_LINES)
}

/// The part of a line that is worth looking at.
fn shown_part(line: &str) -> &str {
    &line[..line.floor_char_boundary(2048)]
}

/// A text that is cut if it is longer than this.
fn shortened(text: &str, most: usize) -> String {
    match text.len() > most {
        true => format!("{}…", &text[..text.floor_char_boundary(most)]),
        false => text.to_owned(),
    }
}

/// Why a place was found, in a few words.
fn why(found: &Found<'_>, symbol: Option<&str>, query: &Query) -> String {
    let words = |bits: u64| {
        let mut words: Vec<&str> = Vec::new();
        for (_, term) in query.terms.iter().enumerate().filter(|(at, _)| bits >> at & 1 == 1) {
            if !words.contains(&term.word.as_str()) {
                words.push(&term.word);
            }
        }
        words.join(", ")
    };
    let mut reasons = Vec::new();
    if let (Some(symbol), true) = (symbol, found.ranked.names != 0) {
        reasons.push(format!("defines `{symbol}`"));
    }
    if found.ranked.path != 0 {
        reasons.push(format!("path has {}", words(found.ranked.path)));
    }
    if found.ranked.terms != 0 {
        reasons.push(format!("text has {}", words(found.ranked.terms)));
    }
    if found.ranked.is_close {
        reasons.push("close in meaning".into());
    }
    reasons.join("; ")
}
