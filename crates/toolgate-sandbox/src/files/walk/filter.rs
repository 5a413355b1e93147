//! What a walk visits, leaves out or never mentions, in ripgrep's order of precedence: the caller's globs, ignore files, file
//! types, names that begin with a dot.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use ignore::Match;
use ignore::overrides::{Override, OverrideBuilder};
use ignore::types::{Types, TypesBuilder};
use toolgate_contract::{EntryKind, SkipReason, ToolError, WalkOptions, WorkspacePath, unescape_path};

use super::FoundEntry;
use super::ignore_rules::IgnoreRules;

pub(super) struct WalkFilter {
    pub(super) gitignore: bool,
    hidden: bool,
    max_depth: usize,
    then_left_out: bool,
    globs: Override,
    /// Whether a glob has bytes that aren't UTF-8, as they are shown. Then all globs are about paths as they are shown.
    has_escaped_globs: bool,
    types: Types,
}

/// What a walk does with an entry.
pub(super) enum EntryDisposition {
    Visited,
    LeftOut(SkipReason),
    Excluded,
}

impl WalkFilter {
    /// Compiles the options of a walk that starts at `start`.
    pub(super) fn new(options: &WalkOptions, start: &WorkspacePath) -> Result<Self, ToolError> {
        let has_escaped_globs = options.globs.iter().any(|glob| is_escaped(glob));
        Ok(Self {
            has_escaped_globs,
            gitignore: options.gitignore,
            hidden: options.hidden,
            max_depth: options.max_depth.unwrap_or(usize::MAX),
            then_left_out: options.then_left_out,
            globs: globs(&options.globs, start, has_escaped_globs)?,
            types: types(&options.types)?,
        })
    }

    pub(super) fn may_enter(&self, depth: usize) -> bool {
        depth < self.max_depth
    }

    pub(super) fn disposition(&self, entry: &FoundEntry, name: &[u8], rules: &IgnoreRules) -> EntryDisposition {
        let (path, is_directory) = (Path::new(OsStr::from_bytes(entry.path())), entry.kind == EntryKind::Directory);
        let shown = if self.has_escaped_globs { Path::new(&entry.place.path) } else { path };
        match self.globs.matched(shown, is_directory) {
            Match::Whitelist(_) => return EntryDisposition::Visited,
            Match::Ignore(_) => return EntryDisposition::Excluded,
            Match::None => {}
        }
        // Git's own directory isn't part of the work, and no hint should mention it.
        if name == b".git" && (self.gitignore || !self.hidden) {
            return EntryDisposition::Excluded;
        }
        let mut is_wanted = entry.left_out.is_some();
        if self.gitignore && !is_wanted {
            match rules.matched(path, is_directory) {
                Match::Ignore(()) => return self.left_out(SkipReason::Ignored, path, is_directory),
                Match::Whitelist(()) => is_wanted = true,
                Match::None => {}
            }
        }
        match self.types.matched(path, is_directory) {
            Match::Ignore(_) => EntryDisposition::Excluded,
            Match::None if !is_wanted && !self.hidden && name.starts_with(b".") => {
                self.left_out(SkipReason::Hidden, path, is_directory)
            }
            _ => EntryDisposition::Visited,
        }
    }

    /// Reports an entry as left out, unless nobody would look for it.
    fn left_out(&self, why: SkipReason, path: &Path, is_directory: bool) -> EntryDisposition {
        if self.then_left_out && !self.types.matched(path, is_directory).is_ignore() {
            EntryDisposition::LeftOut(why)
        } else {
            EntryDisposition::Excluded
        }
    }
}

/// Whether a glob has an escape of [`unescape_path`] in it.
fn is_escaped(glob: &str) -> bool {
    *unescape_path(glob) != *glob.as_bytes()
}

fn globs(globs: &[String], start: &WorkspacePath, are_about_shown: bool) -> Result<Override, ToolError> {
    let exact = start.bytes();
    let top = if are_about_shown { Path::new(&start.path) } else { Path::new(OsStr::from_bytes(&exact)) };
    let mut builder = OverrideBuilder::new(top);
    for glob in globs {
        // In a glob, a backslash takes away the meaning of what follows; here it stands for itself.
        let text = if is_escaped(glob) { glob.replace("\\x", r"\\x").into() } else { Cow::from(glob) };
        builder.add(&text).map_err(|fault| {
            ToolError::invalid_args(format!("The glob `{glob}` can't be read: {fault}."))
                .with_hint("Use `*`, `?`, `[a-z]`, `{a,b}` and `**`; `!` in front leaves out what matches.")
        })?;
    }
    builder.build().map_err(|fault| ToolError::invalid_args(format!("The globs can't be used together: {fault}.")))
}

fn types(names: &[String]) -> Result<Types, ToolError> {
    if names.is_empty() {
        return Ok(Types::empty());
    }
    let mut builder = TypesBuilder::new();
    builder.add_defaults();
    for name in names {
        builder.select(name);
    }
    builder.build().map_err(|_| unknown_type(names, &builder))
}

fn unknown_type(names: &[String], builder: &TypesBuilder) -> ToolError {
    let known = builder.definitions();
    let is_known = |name: &&String| known.iter().any(|known| known.name() == name.as_str());
    let unknown = names.iter().find(|name| !is_known(name)).map_or("", String::as_str);
    let alike = known.iter().map(|known| known.name()).filter(|name| name.get(..1) == unknown.get(..1));
    let alike: Vec<&str> = alike.take(30).collect();
    ToolError::invalid_args(format!("There is no file type `{unknown}`."))
        .with_hint(format!("Use a glob such as `*.{unknown}` instead. Types that begin alike: {}.", alike.join(", ")))
}
