//! What is indexed of one file: its chunks, and how often each term is in each of them.

use crate::chunk::cut;
use crate::language::{FileKind, LANGUAGES, Language, kind_of, language_of};
use crate::outline::{Definition, Lines, outline};
use crate::terms::{Term, TermKind, each_term, exact_term};

/// Bytes of a line that are indexed. The rest of a longer one is data, or was made by a program.
const LONGEST_LINE: usize = 2048;
/// Bytes of a file that are indexed.
pub(crate) const LONGEST_TEXT: usize = 4 << 20;
/// Bytes in which a NUL shows that a file isn't text.
const LOOK_AHEAD: usize = 8 << 10;

/// The term is in a name that the chunk defines, or that is defined around it.
pub(crate) const IN_NAME: u8 = 1;
/// The term is in a comment.
pub(crate) const IN_COMMENT: u8 = 2;
/// The term is in the name of what the chunk defines, or is a part of; not only in one around it.
pub(crate) const IN_OWN_NAME: u8 = 4;
/// The term is on a line that begins a definition: among its name, parameters and types.
pub(crate) const IN_SIGNATURE: u8 = 8;

/// A part of a file, as the index has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChunkAnalysis {
    /// The first line, counted from 0.
    pub(crate) first: u32,
    /// The line after the last.
    pub(crate) end: u32,
    /// Where its name is, in bytes of the text; empty if it has none.
    pub(crate) name: (u32, u16),
    /// How many words its name has.
    pub(crate) name_words: u8,
    /// How many terms it has.
    pub(crate) length: u32,
    /// Its terms, in order, with how often each is in it, and where.
    pub(crate) terms: Vec<TermCount>,
}

/// How often a term is in a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TermCount {
    pub(crate) term: Term,
    pub(crate) count: u16,
    /// [`IN_NAME`], [`IN_COMMENT`], [`IN_OWN_NAME`] and [`IN_SIGNATURE`].
    pub(crate) places: u8,
}

/// One file, as the index has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileAnalysis {
    pub(crate) language: u8,
    pub(crate) kind: FileKind,
    /// The terms of its path.
    pub(crate) path: Vec<TermCount>,
    pub(crate) chunks: Vec<ChunkAnalysis>,
    /// Whether all of it is in the index: not so for binary and very large files.
    pub(crate) is_whole: bool,
}

/// Analyses a file.
pub(crate) fn analyze(path: &str, bytes: &[u8]) -> FileAnalysis {
    let language = language_of(path);
    let text = decode(&bytes[..bytes.len().min(LONGEST_TEXT)]);
    let is_whole = text.is_some() && bytes.len() <= LONGEST_TEXT;
    let chunks = text.map_or_else(Vec::new, |text| analyze_text(language, &text));
    let mut scratch = Scratch::default();
    let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
    scratch.add(directory, 0);
    // The last name counts more. It is counted here, since no text has it.
    scratch.add(name, 0);
    scratch.add(name.split('.').next().unwrap_or(name), IN_NAME);
    FileAnalysis { language: language as u8, kind: kind_of(path), path: scratch.counts().0, chunks, is_whole }
}

/// The text of a file; none if it is binary. Bytes that aren't UTF-8 are replaced.
pub(crate) fn decode(bytes: &[u8]) -> Option<std::borrow::Cow<'_, str>> {
    let utf16 = |bytes: &[u8], read: fn([u8; 2]) -> u16| {
        let units = bytes.chunks_exact(2).map(|pair| read([pair[0], pair[1]]));
        Some(std::borrow::Cow::Owned(char::decode_utf16(units).map(|c| c.unwrap_or('\u{FFFD}')).collect()))
    };
    match bytes {
        [0xFF, 0xFE, rest @ ..] => utf16(rest, u16::from_le_bytes),
        [0xFE, 0xFF, rest @ ..] => utf16(rest, u16::from_be_bytes),
        _ if memchr::memchr(0, &bytes[..bytes.len().min(LOOK_AHEAD)]).is_some() => None,
        _ => Some(String::from_utf8_lossy(bytes)),
    }
}

fn analyze_text(language: usize, text: &str) -> Vec<ChunkAnalysis> {
    let language = &LANGUAGES[language];
    let lines = Lines::new(text);
    let definitions = outline(language, &lines);
    let chunks = cut(&lines, &definitions);
    let mut scratch = Scratch::default();
    let mut around: Vec<usize> = Vec::new();
    let mut next = 0;
    let mut heads = definitions.iter().map(|definition| definition.line).peekable();
    let mut analyzed = Vec::with_capacity(chunks.len());
    for chunk in chunks {
        let mut quoted = false;
        for line in chunk.first..chunk.end {
            let text = bounded(lines.line(line));
            let place = comment_place(language.line_comment, text, &mut quoted);
            while heads.next_if(|head| *head < line).is_some() {}
            let is_head = heads.peek() == Some(&line);
            scratch.add(text, if is_head { place | IN_SIGNATURE } else { place });
        }
        let length = scratch.found.len() as u32;
        while next < definitions.len() && definitions[next].line < chunk.end {
            around.push(next);
            next += 1;
        }
        around.retain(|index| definitions[*index].end > chunk.first);
        for index in &around {
            let name = &text[definitions[*index].name.clone()];
            let is_own = chunk.definition == Some(*index);
            scratch.add(name, if is_own { IN_NAME | IN_OWN_NAME } else { IN_NAME });
            if definitions[*index].line >= chunk.first && !is_elsewhere(language, text, &definitions[*index]) {
                scratch.found.push(exact_term(name) << 8 | u64::from(IN_NAME));
            }
        }
        let name = chunk.definition.map_or(0..0, |index| definitions[index].name.clone());
        let name_words = words_of(&text[name.clone()]);
        let name = (name.start as u32, name.len().min(usize::from(u16::MAX)) as u16);
        let (terms, _) = scratch.counts();
        analyzed.push(ChunkAnalysis {
            first: chunk.first as u32,
            end: chunk.end as u32,
            name,
            name_words,
            length,
            terms,
        });
    }
    analyzed
}

/// Whether another file defines what is named here, as by `mod name;`.
fn is_elsewhere(language: &Language, text: &str, definition: &Definition) -> bool {
    let (before, after) = (&text[..definition.name.start], &text[definition.name.end..]);
    language.name == "rust" && before.ends_with("mod ") && after.starts_with(';')
}

/// How many words a name has.
fn words_of(name: &str) -> u8 {
    let mut words = 0_u8;
    each_term(name, |_, kind| words = words.saturating_add(u8::from(kind == TermKind::Word)));
    words
}

/// The part of a line that is indexed.
fn bounded(line: &str) -> &str {
    match line.len() > LONGEST_LINE {
        true => &line[..line.floor_char_boundary(LONGEST_LINE)],
        false => line,
    }
}

/// Whether a line is a comment.
fn comment_place(line_comment: &str, line: &str, quoted: &mut bool) -> u8 {
    let text = line.trim_start();
    let quotes = text.matches("\"\"\"").count();
    let was_quoted = *quoted;
    *quoted ^= quotes % 2 == 1;
    let is_comment = !line_comment.is_empty() && text.starts_with(line_comment)
        || line_comment == "//" && (text.starts_with("/*") || text.starts_with("* "));
    if is_comment || was_quoted || quotes > 0 { IN_COMMENT } else { 0 }
}

/// Terms of one chunk while it is read.
#[derive(Default)]
struct Scratch {
    /// Each term with its places in the lowest bits.
    found: Vec<u64>,
}

impl Scratch {
    fn add(&mut self, text: &str, places: u8) {
        let found = &mut self.found;
        each_term(text, |term, _: TermKind| found.push(term << 8 | u64::from(places)));
    }

    /// The terms in order with their counts, and how many there were; it is empty afterwards.
    fn counts(&mut self) -> (Vec<TermCount>, usize) {
        self.found.sort_unstable();
        let mut counts: Vec<TermCount> = Vec::with_capacity(self.found.len() / 2);
        for found in &self.found {
            let (term, places) = (found >> 8, *found as u8);
            // A name is counted where it is written; here it only gets its mark.
            let more = u16::from(places & IN_NAME == 0);
            match counts.last_mut() {
                Some(last) if last.term == term => {
                    last.count = last.count.saturating_add(more);
                    last.places |= places;
                }
                _ => counts.push(TermCount { term, count: more, places }),
            }
        }
        let total = self.found.len();
        self.found.clear();
        (counts, total)
    }
}
