//! What a walk visits, leaves out or never mentions, in ripgrep's order of authority: the caller's globs, ignore files,
//! file types, dot names.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use ignore::Match;
use ignore::overrides::{Override, OverrideBuilder};
use ignore::types::{Types, TypesBuilder};
use toolgate_contract::{EntryKind, LeftOut, ToolError, WalkOptions};

use super::Spot;
use super::rules::Rules;

pub(super) struct Choice {
    pub(super) gitignore: bool,
    hidden: bool,
    max_depth: usize,
    then_left_out: bool,
    globs: Override,
    types: Types,
}

/// What becomes of an entry.
pub(super) enum Fate {
    Visited,
    LeftOut(LeftOut),
    Excluded,
}

impl Choice {
    /// Compiles the options of a walk that starts at `start`.
    pub(super) fn new(options: &WalkOptions, start: &str) -> Result<Self, ToolError> {
        Ok(Self {
            gitignore: options.gitignore,
            hidden: options.hidden,
            max_depth: options.max_depth.unwrap_or(usize::MAX),
            then_left_out: options.then_left_out,
            globs: globs(&options.globs, start)?,
            types: types(&options.types)?,
        })
    }

    pub(super) fn may_enter(&self, depth: usize) -> bool {
        depth < self.max_depth
    }

    pub(super) fn fate(&self, spot: &Spot, name: &[u8], rules: &Rules) -> Fate {
        let (path, is_folder) = (Path::new(OsStr::from_bytes(spot.path())), spot.kind == EntryKind::Folder);
        match self.globs.matched(path, is_folder) {
            Match::Whitelist(_) => return Fate::Visited,
            Match::Ignore(_) => return Fate::Excluded,
            Match::None => {}
        }
        // What belongs to git alone is no part of the work, and no hint should speak of it.
        if name == b".git" && (self.gitignore || !self.hidden) {
            return Fate::Excluded;
        }
        let mut is_wanted = spot.left_out.is_some();
        if self.gitignore && !is_wanted {
            match rules.matched(path, is_folder) {
                Match::Ignore(()) => return self.left_out(LeftOut::Ignored, path, is_folder),
                Match::Whitelist(()) => is_wanted = true,
                Match::None => {}
            }
        }
        match self.types.matched(path, is_folder) {
            Match::Ignore(_) => Fate::Excluded,
            Match::None if !is_wanted && !self.hidden && name.starts_with(b".") => {
                self.left_out(LeftOut::Hidden, path, is_folder)
            }
            _ => Fate::Visited,
        }
    }

    /// Left out, unless nobody will ask for it.
    fn left_out(&self, why: LeftOut, path: &Path, is_folder: bool) -> Fate {
        if self.then_left_out && !self.types.matched(path, is_folder).is_ignore() {
            Fate::LeftOut(why)
        } else {
            Fate::Excluded
        }
    }
}

fn globs(globs: &[String], start: &str) -> Result<Override, ToolError> {
    let mut builder = OverrideBuilder::new(start);
    for glob in globs {
        builder.add(glob).map_err(|fault| {
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
