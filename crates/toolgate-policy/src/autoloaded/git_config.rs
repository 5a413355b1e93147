//! Judges edits of a repository's configuration, setting by setting: one is harmless if it is known to run nothing, to point
//! nowhere and not to change where a push goes. What isn't known isn't harmless. Harmless settings can be applied without the
//! others.

mod edit;
mod syntax;

use std::collections::{BTreeMap, BTreeSet};

use toolgate_contract::RemoteUrl;

use self::syntax::{ParsedConfig, SettingName, parse};

/// Keys that run nothing, by section, with `*` for any subsection.
#[rustfmt::skip]
const ORDINARY: &[(&str, &[&str])] = &[
    ("core", &[
        "repositoryformatversion", "filemode", "bare", "logallrefupdates", "ignorecase", "precomposeunicode", "symlinks",
        "autocrlf", "eol", "safecrlf", "quotepath", "abbrev", "compression", "loosecompression", "preloadindex",
        "untrackedcache", "longpaths", "sparsecheckout", "sparsecheckoutcone", "splitindex", "commitgraph", "multipackindex",
        "checkstat", "trustctime", "fscache", "hidedotfiles", "bigfilethreshold", "packedgitlimit", "packedgitwindowsize",
        "deltabasecachelimit", "whitespace", "commentchar", "commentstring", "notesref", "checkroundtripencoding",
    ]),
    ("extensions", &["objectformat", "worktreeconfig", "refstorage", "compatobjectformat", "relativeworktrees", "partialclone"]),
    ("user", &["name", "email"]),
    ("init", &["defaultbranch"]),
    ("remote.*", &["url", "fetch", "tagopt", "prune", "mirror", "promisor", "partialclonefilter", "gh-resolved"]),
    ("branch", &["autosetupmerge", "autosetuprebase", "sort"]),
    ("branch.*", &[
        "remote", "merge", "rebase", "description", "mergeoptions", "vscode-merge-base", "gh-merge-base",
        "github-pr-owner-number",
    ]),
    ("submodule", &["active", "recurse", "fetchjobs", "propagatebranches"]),
    ("submodule.*", &["url", "active", "update", "ignore", "branch", "shallow", "fetchrecursesubmodules"]),
    ("pull", &["rebase", "ff"]),
    ("push", &["default", "followtags", "autosetupremote", "useforceifincludes", "negotiate", "usebitmaps", "recursesubmodules"]),
    ("fetch", &["prune", "prunetags", "parallel", "writecommitgraph", "output", "showforcedupdates", "negotiationalgorithm", "all"]),
    ("merge", &["conflictstyle", "ff", "renames", "renamelimit", "directoryrenames", "log", "stat", "autostash", "branchdesc"]),
    ("diff", &[
        "renames", "renamelimit", "algorithm", "colormoved", "colormovedws", "mnemonicprefix", "noprefix", "context",
        "interhunkcontext", "indentheuristic", "submodule", "ignoresubmodules", "relative", "statgraphwidth",
        "wserrorhighlight", "suppressblankempty", "dirstat", "autorefreshindex",
    ]),
    ("rebase", &[
        "autosquash", "autostash", "updaterefs", "stat", "missingcommitscheck", "abbreviatecommands", "forkpoint", "rebasemerges",
        "reschedulefailedexec",
    ]),
    ("rerere", &["enabled", "autoupdate"]),
    ("commit", &["verbose", "cleanup", "status"]),
    ("log", &["date", "decorate", "abbrevcommit", "follow", "graphcolors", "excludedecoration", "initialdecorationset"]),
    ("status", &["*"]),
    ("stash", &["showincludeuntracked", "showpatch", "showstat"]),
    ("grep", &["linenumber", "column", "patterntype", "extendedregexp", "fullname", "threads"]),
    ("blame", &["coloring", "date", "showroot", "showemail", "blankboundary"]),
    ("tag", &["sort"]),
    ("versionsort", &["suffix"]),
    ("checkout", &["guess", "workers", "thresholdforparallelism"]),
    ("worktree", &["guessremote", "userelativepaths"]),
    ("apply", &["whitespace", "ignorewhitespace"]),
    ("am", &["keepcr", "threeway"]),
    ("i18n", &["commitencoding", "logoutputencoding"]),
    ("http", &["postbuffer", "lowspeedlimit", "lowspeedtime", "version"]),
    ("lfs", &["repositoryformatversion"]),
    ("pack", &["threads", "window", "windowmemory", "depth", "compression", "writereverseindex", "writebitmaphashcache", "usesparse"]),
    ("repack", &["usedeltabaseoffset", "writebitmaps", "usedeltaislands", "packkeptobjects"]),
    ("feature", &["manyfiles", "experimental"]),
    ("gc", &["auto", "autodetach", "autopacklimit", "writecommitgraph", "packrefs"]),
    ("maintenance", &["auto", "strategy"]),
    ("index", &["version", "threads", "sparse", "skiphash", "recordendofindexentries", "recordoffsettable"]),
    ("advice", &["*"]),
    ("color", &["*"]),
    ("color.*", &["*"]),
    ("column", &["*"]),
];

/// What an edit of a configuration comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitConfigJudgement {
    /// The configuration with the harmless part of the edit.
    pub accepted: Vec<u8>,
    /// The settings whose edit isn't harmless, such as `core.fsmonitor`.
    pub refused: Vec<String>,
}

/// Judges an edit of a repository's configuration. `worktree` is the only value that `core.worktree` may have; most repositories
/// may have none. `approved` are addresses of remotes that somebody agreed to. An error says why nothing can be told about it.
pub fn judge_git_config(
    old: &[u8],
    new: &[u8],
    worktree: Option<&str>,
    approved: &[&RemoteUrl],
) -> Result<GitConfigJudgement, String> {
    let [old, new] = [old, new].map(|text| std::str::from_utf8(text).map_err(|_| "it isn't text".to_owned()));
    let (old, new) = (old?, new?);
    let unreadable = || "it isn't written as git reads it".to_owned();
    let (old_config, new_config) = (parse(old).ok_or_else(unreadable)?, parse(new).ok_or_else(unreadable)?);
    let edit = ConfigEdit::new(&old_config, &new_config, worktree, approved);
    let refused: Vec<String> = edit.refused.iter().map(|name| shown(name)).collect();
    let is_plain = |line: &str| old.lines().any(|known| known == line) || is_plain_line(line);
    let accepted = match refused.is_empty() && new.lines().all(is_plain) {
        true => new.to_owned(),
        false => edit::apply(old, &old_config, &edit.accepted()),
    };
    Ok(GitConfigJudgement { accepted: accepted.into_bytes(), refused })
}

/// The first suspicious thing in a new repository's configuration; none if all of it is ordinary.
pub fn suspicious_in_git_config(text: &[u8], worktree: Option<&str>) -> Option<String> {
    match judge_git_config(b"", text, worktree, &[]) {
        Ok(judged) => judged.refused.into_iter().next().map(|name| format!("`{name}`")),
        Err(reason) => Some(reason),
    }
}

/// All values of one setting, before and after an edit.
#[derive(Debug, Default, PartialEq, Eq)]
struct SettingValues<'a> {
    old: Vec<Option<&'a str>>,
    new: Vec<Option<&'a str>>,
}

/// The settings that an edit changes.
struct ConfigEdit<'a> {
    changed: BTreeMap<&'a SettingName, SettingValues<'a>>,
    refused: BTreeSet<&'a SettingName>,
}

impl<'a> ConfigEdit<'a> {
    fn new(old: &'a ParsedConfig, new: &'a ParsedConfig, worktree: Option<&str>, approved: &[&RemoteUrl]) -> Self {
        let mut changed: BTreeMap<&SettingName, SettingValues<'_>> = BTreeMap::new();
        for entry in &old.entries {
            changed.entry(&entry.name).or_default().old.push(entry.value.as_deref());
        }
        for entry in &new.entries {
            changed.entry(&entry.name).or_default().new.push(entry.value.as_deref());
        }
        changed.retain(|_, values| values.old != values.new);
        let is_refused = |name: &SettingName, values: &SettingValues<'_>| {
            !is_approved(name, values, approved) && (moves_a_push(name, values) || !is_ordinary(name, values, worktree))
        };
        let mut refused: BTreeSet<&SettingName> =
            changed.iter().filter(|(name, values)| is_refused(name, values)).map(|(name, _)| *name).collect();
        // The settings of one remote, or of one branch, belong together.
        let is_kept_whole = |name: &SettingName| {
            let belongs = |other: &&SettingName| {
                (&other.section, &other.subsection) == (&name.section, &name.subsection)
                    && !changed[*other].old.is_empty()
            };
            ["remote", "branch"].contains(&name.section.as_str()) && refused.iter().any(belongs)
        };
        let whole: Vec<&SettingName> = changed.keys().copied().filter(|name| is_kept_whole(name)).collect();
        refused.extend(whole);
        Self { changed, refused }
    }

    /// The harmless changes: the new values of each setting.
    fn accepted(&self) -> BTreeMap<&'a SettingName, Vec<Option<&'a str>>> {
        let accepted = self.changed.iter().filter(|(name, _)| !self.refused.contains(*name));
        accepted.map(|(name, values)| (*name, values.new.clone())).collect()
    }
}

/// Whether somebody agreed to this address, and there is no other beside it.
fn is_approved(name: &SettingName, values: &SettingValues<'_>, approved: &[&RemoteUrl]) -> bool {
    let is_it = |known: &&RemoteUrl| known.setting == shown(name) && values.new == [Some(known.url.as_str())];
    name.section == "remote" && approved.iter().any(|known| is_it(known) && is_plain_url(&known.url))
}

/// Whether it changes where a push goes: another address for a remote that was there, or another remote for a branch. Removing
/// an address counts, since the next edit could add another one.
fn moves_a_push(name: &SettingName, values: &SettingValues<'_>) -> bool {
    match (name.section.as_str(), name.subsection.is_some(), name.key.as_str()) {
        ("remote", true, "url") => !values.old.is_empty(),
        ("branch", true, "remote") => !values.old.is_empty() && !values.new.is_empty(),
        _ => false,
    }
}

/// Whether a setting is one that is known to be harmless, with every new value.
fn is_ordinary(name: &SettingName, values: &SettingValues<'_>, worktree: Option<&str>) -> bool {
    let section = if name.subsection.is_some() { format!("{}.*", name.section) } else { name.section.clone() };
    let known = ORDINARY.iter().find(|(known, _)| *known == section).map_or(&[][..], |(_, keys)| keys);
    let is_known = known.iter().any(|known| *known == name.key || *known == "*");
    let is_worktree = |value: &Option<&str>| worktree.is_some() && *value == worktree;
    match (section.as_str(), name.key.as_str()) {
        ("core", "worktree") => values.old.is_empty() && values.new.iter().all(is_worktree),
        _ => is_known && values.new.iter().all(|value| is_harmless(&section, &name.key, value.unwrap_or_default())),
    }
}

/// Whether one of the keys above may have this value. Some of these keys run their value.
fn is_harmless(section: &str, key: &str, value: &str) -> bool {
    match (section, key) {
        (_, "url") | ("branch.*", "remote") | ("extensions", "partialclone") => is_plain_url(value),
        ("submodule.*", "update") => ["checkout", "rebase", "merge", "none"].contains(&value),
        ("extensions", "refstorage") => ["files", "reftable"].contains(&value),
        ("branch.*", "description") => true,
        _ => !value.starts_with(['!', '-']) && !value.contains('\n'),
    }
}

/// Whether git fetches from this URL itself. For any other scheme, and for `name::address`, git runs a program of that
/// name.
pub(crate) fn is_plain_url(url: &str) -> bool {
    let scheme = url.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
    let is_known = |scheme: String| ["https", "http", "ssh", "git", "file"].contains(&scheme.as_str());
    !url.contains("::") && !url.starts_with(['-', '!']) && !url.contains('\n') && scheme.is_none_or(is_known)
}

/// Whether a line is in the plainest spelling, which every program reads alike.
fn is_plain_line(line: &str) -> bool {
    let line = line.trim();
    let is_plain_header = || {
        let quotes = line.matches('"').count();
        line.ends_with(']') && !line.contains('\\') && (quotes == 0 && !line.contains('.') || quotes == 2)
    };
    match line.as_bytes().first() {
        None | Some(b'#' | b';') => true,
        Some(b'[') => is_plain_header(),
        Some(_) => {
            let value = line.split_once('=').map_or("", |(_, value)| value.trim());
            let within = value.strip_prefix('"').and_then(|value| value.strip_suffix('"')).unwrap_or(value);
            !within.contains(['"', '\\'])
        }
    }
}

/// A setting as people write it: `core.fsmonitor`, `remote.origin.url`.
fn shown(name: &SettingName) -> String {
    let subsection = name.subsection.as_ref().map_or_else(String::new, |subsection| format!(".{subsection}"));
    format!("{}{subsection}.{}", name.section, name.key)
}

#[cfg(test)]
mod tests;
