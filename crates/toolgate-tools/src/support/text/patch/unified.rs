//! Parses unified diffs: git's, with extended headers, and plain ones.

use toolgate_contract::LINK_MODE;

use super::header_paths::{DEV_NULL, HeaderPaths, git_pair, name};
use super::{FileOperation, FilePatch, Hunk, ModeChange, PatchFault, PatchFormat, PatchLines};

mod hunk;

const SUBMODULE: u32 = 0o160_000;

/// Whether the headers of a file begin at a line.
pub(super) fn begins_file(lines: &PatchLines<'_>, at: usize) -> bool {
    lines.header(at).starts_with(b"diff --git ") || begins_names(lines, at)
}

fn begins_names(lines: &PatchLines<'_>, at: usize) -> bool {
    lines.header(at).starts_with(b"--- ") && lines.header(at + 1).starts_with(b"+++ ")
}

/// Parses all files of a diff.
pub(super) fn parse<'a>(lines: &PatchLines<'a>) -> Result<Vec<FilePatch<'a>>, PatchFault> {
    let mut files = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let line = lines.header(at);
        if begins_file(lines, at) {
            let headers = DiffHeaders::read(lines, &mut at)?;
            files.push(headers.into_file(lines, &mut at)?);
        } else if line.starts_with(b"@@ -") {
            return Err(PatchFault::malformed(
                at,
                "a hunk without `---` and `+++` lines before it: which file is it for?",
            ));
        } else if line.starts_with(b"diff --cc ") || line.starts_with(b"diff --combined ") {
            return Err(PatchFault::unsupported(at, "a merge's combined diff has no single old version to apply to."));
        } else if is_binary(line) {
            return Err(binary(at));
        } else {
            at += 1;
        }
    }
    Ok(files)
}

fn is_binary(line: &[u8]) -> bool {
    line == b"GIT binary patch" || line.starts_with(b"Binary files ") && line.ends_with(b" differ")
}

fn binary(at: usize) -> PatchFault {
    PatchFault::unsupported(at, "it changes a binary file, and binary patches can't be applied.")
}

/// The headers before a file's hunks.
#[derive(Debug, Default)]
struct DiffHeaders {
    start: usize,
    pair: Option<(String, String)>,
    names: HeaderPaths,
    has_names: bool,
    created: bool,
    deleted: bool,
    moved: HeaderPaths,
    copied: HeaderPaths,
    mode: ModeChange,
    /// The mode in the `index` header, which doesn't change.
    unchanged_mode: Option<u32>,
    /// Which side a plain diff dates to the Unix epoch, which means that the file doesn't exist there.
    dated_nowhere: (bool, bool),
}

impl DiffHeaders {
    fn read(lines: &PatchLines<'_>, at: &mut usize) -> Result<Self, PatchFault> {
        let mut headers = Self { start: *at, ..Self::default() };
        if let Some(pair) = lines.header(*at).strip_prefix(b"diff --git ") {
            headers.pair = git_pair(*at, pair)?;
            *at += 1;
            while headers.read_extended(*at, lines.header(*at))? {
                *at += 1;
            }
            if is_binary(lines.header(*at)) {
                return Err(binary(*at));
            }
        }
        if begins_names(lines, *at) {
            headers.read_names(lines, *at)?;
            *at += 2;
        }
        Ok(headers)
    }

    /// Parses one of git's extended headers; false when the line isn't one.
    fn read_extended(&mut self, at: usize, line: &[u8]) -> Result<bool, PatchFault> {
        let path = |text| name(at, text).map(|(path, _)| Some(path));
        let after = |prefix: &str| line.strip_prefix(prefix.as_bytes());
        if let Some(text) = after("rename from ") {
            self.moved.old = path(text)?;
        } else if let Some(text) = after("rename to ") {
            self.moved.new = path(text)?;
        } else if let Some(text) = after("copy from ") {
            self.copied.old = path(text)?;
        } else if let Some(text) = after("copy to ") {
            self.copied.new = path(text)?;
        } else if let Some(text) = after("old mode ") {
            self.mode.before = Some(mode(at, text)?);
        } else if let Some(text) = after("new mode ") {
            self.mode.after = Some(mode(at, text)?);
        } else if let Some(text) = after("new file mode ") {
            (self.created, self.mode.after) = (true, Some(mode(at, text)?));
        } else if let Some(text) = after("deleted file mode ") {
            (self.deleted, self.mode.before) = (true, Some(mode(at, text)?));
        } else if let Some(text) = after("index ") {
            // `index 0a1b..2c3d 100644`: the mode is here when it doesn't change.
            let last = text.rsplit(|&byte| byte == b' ').next().filter(|mode| mode.len() == 6);
            self.unchanged_mode = last.map(|text| mode(at, text)).transpose()?;
        } else {
            return Ok(after("similarity index ").or(after("dissimilarity index ")).is_some());
        }
        Ok(true)
    }

    fn read_names(&mut self, lines: &PatchLines<'_>, at: usize) -> Result<(), PatchFault> {
        let (old, old_date) = name(at, &lines.header(at)[4..])?;
        let (new, new_date) = name(at + 1, &lines.header(at + 1)[4..])?;
        if old == DEV_NULL && new == DEV_NULL {
            return Err(PatchFault::malformed(at, "both names are `/dev/null`."));
        }
        self.dated_nowhere = (is_beginning_of_time(old_date), is_beginning_of_time(new_date));
        self.created |= old == DEV_NULL;
        self.deleted |= new == DEV_NULL;
        let named = |name: String| (name != DEV_NULL).then_some(name);
        (self.names, self.has_names) = (HeaderPaths { old: named(old), new: named(new) }, true);
        Ok(())
    }

    /// Parses the hunks and builds the file's record.
    fn into_file<'a>(mut self, lines: &PatchLines<'a>, at: &mut usize) -> Result<FilePatch<'a>, PatchFault> {
        let mut hunks = Vec::new();
        while lines.header(*at).starts_with(b"@@") {
            if !self.has_names {
                return Err(PatchFault::malformed(*at, "a hunk without `---` and `+++` lines before it."));
            }
            hunks.push(hunk::read(lines, at)?);
        }
        if self.pair.is_none() && self.dated_nowhere.0 {
            self.created |= hunks.iter().all(|hunk| hunk.old_count() == 0);
        }
        if self.pair.is_none() && self.dated_nowhere.1 {
            self.deleted |= hunks.iter().all(|hunk| hunk.new_count() == 0);
        }
        self.check(&hunks)?;
        let (path, operation) = self.operation()?;
        let says_nothing = hunks.is_empty() && operation == FileOperation::Update && self.mode == ModeChange::default();
        if says_nothing {
            return Err(PatchFault::malformed(self.start, format!("nothing is changed in `{path}`: it has no hunks.")));
        }
        if self.unchanged_mode == Some(LINK_MODE) {
            self.mode = ModeChange { before: Some(LINK_MODE), after: Some(LINK_MODE) };
        }
        self.check_kind(&operation)?;
        let patch_line = self.start + 1;
        Ok(FilePatch { path, operation, mode: self.mode, format: PatchFormat::Unified, patch_line, hunks })
    }

    /// A new file has no old lines, a deleted one no new ones.
    fn check(&self, hunks: &[Hunk<'_>]) -> Result<(), PatchFault> {
        if self.created && hunks.iter().any(|hunk| hunk.old_count() > 0) {
            return Err(PatchFault::malformed(self.start, "a new file has no old lines to keep or remove."));
        }
        if self.deleted && hunks.iter().any(|hunk| hunk.new_count() > 0) {
            return Err(PatchFault::malformed(self.start, "a deleted file has no lines left."));
        }
        Ok(())
    }

    /// Git deletes a file and creates a link in its place; a mere change of mode can't say that.
    fn check_kind(&self, operation: &FileOperation) -> Result<(), PatchFault> {
        let is_link = |mode: Option<u32>| mode == Some(LINK_MODE);
        match *operation == FileOperation::Update && is_link(self.mode.before) != is_link(self.mode.after) {
            true => Err(PatchFault::malformed(
                self.start,
                "a file becomes a link, or a link a file, only by deleting it and creating it again.",
            )),
            false => Ok(()),
        }
    }

    fn operation(&self) -> Result<(String, FileOperation), PatchFault> {
        let both = |names: &HeaderPaths| names.old.clone().zip(names.new.clone());
        if let Some((from, to)) = both(&self.moved) {
            return Ok((from, FileOperation::Move { to }));
        }
        if let Some((from, to)) = both(&self.copied) {
            return Ok((from, FileOperation::Copy { to }));
        }
        let names = match (&self.pair, self.has_names) {
            (_, true) => self.names.clone(),
            (Some((old, new)), false) => HeaderPaths { old: Some(old.clone()), new: Some(new.clone()) },
            (None, false) => return Err(PatchFault::malformed(self.start, "the two paths can't be separated.")),
        };
        let names = names.without_prefixes(self.pair.as_ref());
        let path = match (names.old, names.new) {
            (Some(old), Some(new)) => HeaderPaths::common_path(old, new),
            (Some(path), None) | (None, Some(path)) => path,
            (None, None) => return Err(PatchFault::malformed(self.start, "the file has no path.")),
        };
        let operation = match (self.created, self.deleted) {
            (true, true) => return Err(PatchFault::malformed(self.start, "the file is both new and deleted.")),
            (true, false) => FileOperation::Create,
            (false, true) => FileOperation::Delete,
            (false, false) => FileOperation::Update,
        };
        Ok((path, operation))
    }
}

fn mode(at: usize, text: &[u8]) -> Result<u32, PatchFault> {
    let mode = std::str::from_utf8(text.trim_ascii()).ok().and_then(|text| u32::from_str_radix(text, 8).ok());
    match mode {
        Some(SUBMODULE) => Err(PatchFault::unsupported(at, "it changes a submodule.")),
        Some(mode) => Ok(mode),
        None => Err(PatchFault::malformed(at, "the mode isn't an octal number.")),
    }
}

fn is_beginning_of_time(date: &[u8]) -> bool {
    let date = date.trim_ascii_start();
    date.starts_with(b"1970-01-01 ") || date.starts_with(b"1969-12-31 ")
}
