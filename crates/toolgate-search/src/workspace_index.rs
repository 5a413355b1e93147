//! The search index of one workspace: what a call asks, and what `toolgate index` shows.

use std::sync::OnceLock;
use std::time::Duration;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use parking_lot::Mutex;
use toolgate_contract::{
    FileHands, SearchAnswer, SearchCoverage, SearchHit, SearchIndex, SearchKind, SearchQuestion, ToolError, counted,
};
use toolgate_journal::{JournalError, SearchStore, SigningKey, StateDirectory};

use crate::answer::{Found, hit};
use crate::index_state::IndexState;
use crate::language::{FileKind, LANGUAGES, language_named};
use crate::meaning::{JOINED, joined, rank_by_meaning};
use crate::query::Query;
use crate::ranking::{Candidates, Ranked, Weights, kind_factor, rank};
use crate::refresh::{Refreshed, refresh};
use crate::segment::FileRecord;
use crate::static_model::{LARGEST_TOKENIZER, LARGEST_WEIGHTS, StaticModel};
use crate::word_scan::scan;

/// How long another process that changes the index is waited for.
const LOCK_WAIT: Duration = Duration::from_secs(1);

/// The limits of an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexLimits {
    /// How long a search may index files before it answers.
    pub wait: Duration,
    /// The most bytes that the index takes.
    pub max_bytes: u64,
}

/// The state of a stored index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexStatus {
    /// Files in it.
    pub files: u64,
    /// Functions, types, sections and windows of lines.
    pub chunks: u64,
    /// Its size on disk.
    pub bytes: u64,
    /// Whether all of it can be found by meaning too.
    pub has_vectors: bool,
    /// Whether a part of it can't be read, so that the next search builds it anew.
    pub is_damaged: bool,
}

/// Reads a file from the directory of the user's weights, by its name, unless it has more bytes than this. The error says why not.
pub type WeightsReader = Box<dyn Fn(&str, u64) -> Result<Vec<u8>, String> + Send + Sync>;

/// The search index of one workspace. It is opened by the first search.
pub struct WorkspaceIndex {
    state_directory: StateDirectory,
    key: Option<SigningKey>,
    limits: IndexLimits,
    weights: Option<WeightsReader>,
    model: OnceLock<Result<StaticModel, String>>,
    state: Mutex<IndexState>,
}

impl WorkspaceIndex {
    /// The index of the workspace with this state directory. Without a key nothing is stored, since nobody could tell it
    /// from an index that a repository brought.
    pub fn new(state_directory: StateDirectory, key: Option<SigningKey>, limits: IndexLimits) -> Self {
        Self { state_directory, key, limits, weights: None, model: OnceLock::new(), state: Mutex::default() }
    }

    /// Finds places by meaning too, with these weights. They are read by the first search.
    #[must_use]
    pub fn with_weights(self, weights: Option<WeightsReader>) -> Self {
        Self { weights, ..self }
    }

    /// The model of the user's weights; none if there are none. Where they can't be used, words alone decide, and that is said.
    fn model(&self, notes: &mut Vec<String>) -> Option<&StaticModel> {
        let weights = self.weights.as_ref()?;
        let read = || {
            StaticModel::read(
                weights("model.safetensors", LARGEST_WEIGHTS)?,
                &weights("tokenizer.json", LARGEST_TOKENIZER)?,
            )
        };
        match self.model.get_or_init(read) {
            Ok(model) => Some(model),
            Err(error) => {
                notes.push(format!("The weights of `search.weights` weren't used: {error}."));
                None
            }
        }
    }

    /// The state of the stored index; none where nothing is stored.
    pub fn status(&self) -> Result<Option<IndexStatus>, JournalError> {
        let Some(store) = self.store()? else { return Ok(None) };
        let mut state = self.state.lock();
        let is_damaged = state.synchronize(&store)?;
        let chunks = state.segments.iter().flat_map(|live| live.segment.files.iter().zip(&live.alive));
        let chunks = chunks.filter(|(_, alive)| **alive).map(|(file, _)| u64::from(file.chunks)).sum();
        let has_vectors = !state.segments.is_empty() && state.segments.iter().all(|live| live.segment.form.model != 0);
        Ok(Some(IndexStatus { files: state.files() as u64, chunks, bytes: store.size()?, has_vectors, is_damaged }))
    }

    /// Removes the stored index. Returns how many bytes it took; none if another process changes it right now.
    pub fn clear(&self) -> Result<Option<u64>, JournalError> {
        let Some(store) = self.store()? else { return Ok(Some(0)) };
        let Some(_lock) = store.lock(LOCK_WAIT)? else { return Ok(None) };
        let bytes = store.size()?;
        store.retain(&[])?;
        *self.state.lock() = IndexState::default();
        Ok(Some(bytes))
    }

    fn store(&self) -> Result<Option<SearchStore>, JournalError> {
        self.key.clone().map(|key| self.state_directory.search_store(key)).transpose()
    }

    /// Reads the stored index, and says what is wrong with it.
    fn synchronize(&self, state: &mut IndexState, notes: &mut Vec<String>) -> Option<SearchStore> {
        let opened = self.store().and_then(|store| {
            let is_damaged = store.as_ref().map_or(Ok(false), |store| state.synchronize(store))?;
            Ok((store, is_damaged))
        });
        match opened {
            Ok((store, is_damaged)) => {
                if is_damaged {
                    let what = "A part of the stored index was damaged or not written by this user.";
                    notes.push(format!("{what} It wasn't used, and its files were indexed again."));
                }
                store
            }
            Err(error) => {
                notes.push(format!("The index can't be stored, so it lasts only as long as this program: {error}"));
                None
            }
        }
    }

    /// Stores what is new, unless another process keeps the index locked: then a later search does.
    fn save(state: &mut IndexState, store: &SearchStore) -> Result<(), JournalError> {
        match store.lock(LOCK_WAIT)? {
            Some(_lock) => state.save(store),
            None => Ok(()),
        }
    }
}

impl SearchIndex for WorkspaceIndex {
    fn search(&self, question: &SearchQuestion, hands: &dyn FileHands) -> Result<SearchAnswer, ToolError> {
        let filter = FileFilter::new(question)?;
        let query = Query::new(&question.text);
        if query.terms.is_empty() {
            return Err(ToolError::invalid_args("The query has no words to search for.")
                .with_hint("Say what the code does, or name an identifier. Use `grep` for punctuation."));
        }
        let mut notes = Vec::new();
        let mut state = self.state.lock();
        let store = self.synchronize(&mut state, &mut notes);
        let model = self.model(&mut notes);
        let refreshed = refresh(&mut state, hands, &question.paths, self.limits, model)?;
        let counting = counting(&state, &refreshed, &filter);
        let hits = ranked(&state, &counting, &query, question, model);
        let mut hits = shown(&state, hits, &query, hands, question.limit);
        let pending: Vec<_> =
            refreshed.pending.iter().filter(|place| filter.accepts_path(&place.path)).cloned().collect();
        let (more, scanned) = scan(&pending, &query, hands, question.limit);
        hits.extend(more);
        if refreshed.is_full {
            notes.push("The index has reached `search.max_bytes`; the rest was searched word by word.".into());
        }
        if let Some(store) = store.filter(|_| state.is_changed)
            && let Err(error) = Self::save(&mut state, &store)
        {
            notes.push(format!("The index couldn't be stored: {error}"));
        }
        let coverage = SearchCoverage {
            files: refreshed.files,
            indexed: refreshed.files.saturating_sub(refreshed.pending_count),
            scanned,
        };
        let left = refreshed.pending_count.saturating_sub(scanned);
        if left > 0 {
            let files = counted(left, "file");
            notes.push(format!("{files} not searched yet: search again to go on, or use `grep`."));
        }
        Ok(SearchAnswer { hits: within(hits, question), coverage, notes })
    }
}

/// The files of each segment that a question is about and that are as the index has them.
fn counting(state: &IndexState, refreshed: &Refreshed, filter: &FileFilter) -> Vec<Vec<bool>> {
    let segments = state.segments.iter().zip(&refreshed.seen);
    let of_segment = segments.map(|(live, seen)| {
        let files = live.segment.files.iter().zip(&live.alive).zip(seen);
        files.map(|((file, alive), seen)| *alive && *seen && filter.accepts(file)).collect()
    });
    of_segment.collect()
}

/// The places that the index knows, best first.
fn ranked(
    state: &IndexState,
    counting: &[Vec<bool>],
    query: &Query,
    question: &SearchQuestion,
    model: Option<&StaticModel>,
) -> Vec<Ranked> {
    let segments = state.segments.iter().zip(counting).map(|(live, counting)| (&*live.segment, &**counting)).collect();
    let (candidates, weights) = (Candidates { segments }, Weights::DEFAULT);
    // A few more than asked for, since a file may be gone or hidden by the time it is read.
    let by_words = rank(&candidates, query, &weights, (question.limit + 10).max(JOINED));
    let Some(model) = model else { return by_words };
    let by_meaning = rank_by_meaning(&candidates, &question.text, model, |kind| kind_factor(query, &weights, kind));
    joined(&candidates, by_words, &by_meaning, query)
}

/// The first places that can be read, as they are now.
fn shown(
    state: &IndexState,
    ranked: Vec<Ranked>,
    query: &Query,
    hands: &dyn FileHands,
    limit: usize,
) -> Vec<SearchHit> {
    let hits = ranked
        .into_iter()
        .filter_map(|ranked| hit(&Found::new(ranked, &state.segments[ranked.segment].segment), query, hands));
    hits.take(limit).collect()
}

/// The first hits, and as much of their text as fits.
fn within(mut hits: Vec<SearchHit>, question: &SearchQuestion) -> Vec<SearchHit> {
    hits.truncate(question.limit);
    let mut left = question.max_bytes;
    for hit in &mut hits {
        if hit.snippet.len() > left {
            let end = hit.snippet[..hit.snippet.floor_char_boundary(left)].rfind('\n').unwrap_or(0);
            hit.snippet.truncate(end);
        }
        left = left.saturating_sub(hit.snippet.len());
    }
    hits
}

/// Which files a question is about.
struct FileFilter {
    include: Option<GlobSet>,
    exclude: Option<GlobSet>,
    language: Option<usize>,
    kind: SearchKind,
}

impl FileFilter {
    fn new(question: &SearchQuestion) -> Result<Self, ToolError> {
        let language = match &question.language {
            None => None,
            Some(name) => Some(language_named(name).ok_or_else(|| {
                let known: Vec<&str> = LANGUAGES.iter().map(|language| language.name).collect();
                ToolError::invalid_args(format!("The language `{name}` isn't known."))
                    .with_hint(format!("Use one of {}, or a glob.", known.join(", ")))
            })?),
        };
        let (exclude, include): (Vec<&String>, Vec<&String>) =
            question.globs.iter().partition(|glob| glob.starts_with('!'));
        Ok(Self { include: globs(&include)?, exclude: globs(&exclude)?, language, kind: question.kind })
    }

    fn accepts(&self, file: &FileRecord) -> bool {
        let is_kind = match self.kind {
            SearchKind::Any => true,
            SearchKind::Code => file.kind() == FileKind::Code,
            SearchKind::Docs => file.kind() == FileKind::Docs,
            SearchKind::Tests => file.kind() == FileKind::Tests,
        };
        is_kind
            && self.language.is_none_or(|language| usize::from(file.language) == language)
            && self.matches(&file.path)
    }

    /// Whether a file that isn't indexed is meant.
    fn accepts_path(&self, path: &str) -> bool {
        let kind = crate::language::kind_of(path);
        let is_kind = match self.kind {
            SearchKind::Any => true,
            SearchKind::Code => kind == FileKind::Code,
            SearchKind::Docs => kind == FileKind::Docs,
            SearchKind::Tests => kind == FileKind::Tests,
        };
        is_kind
            && self.language.is_none_or(|language| crate::language::language_of(path) == language)
            && self.matches(path)
    }

    fn matches(&self, path: &str) -> bool {
        self.include.as_ref().is_none_or(|globs| globs.is_match(path))
            && !self.exclude.as_ref().is_some_and(|globs| globs.is_match(path))
    }
}

/// A set of globs, none if there are none. A glob without `/` matches names in any directory.
fn globs(patterns: &[&String]) -> Result<Option<GlobSet>, ToolError> {
    if patterns.is_empty() {
        return Ok(None);
    }
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        let text = pattern.trim_start_matches('!').trim_start_matches("./");
        let text = if text.contains('/') { text.trim_start_matches('/').to_owned() } else { format!("**/{text}") };
        let glob = GlobBuilder::new(&text).literal_separator(true).build().map_err(|fault| {
            ToolError::invalid_args(format!("`{pattern}` is not a valid glob: {}.", fault.kind()))
                .with_hint("Use `*`, `?`, `[a-z]`, `{a,b}` and `**`.")
        })?;
        set.add(glob);
    }
    let set = set.build().map_err(|fault| ToolError::invalid_args(format!("The globs can't be used: {fault}.")))?;
    Ok(Some(set))
}
