//! The paths that no tool may touch, in any preset. The list is data, `sensitive_paths.toml`, with its own examples. It
//! is compiled into one set of patterns, because every entry of every directory walk is matched against it.

use std::sync::LazyLock;

use serde::Deserialize;
use toolgate_config::ConfigFault;
use toolgate_contract::{Access, ErrorCode, WorkspacePath};

use crate::commands::OUTSIDE;
use crate::path_glob::{CaseFolding, PathGlob, PathPrefilter, PathSet};
use crate::rules::path::AccessSet;

/// One entry of the list, as written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SensitivePath {
    pub(crate) reason: String,
    pub(crate) paths: Vec<String>,
    #[serde(default)]
    except: Vec<String>,
    #[serde(default)]
    pub(crate) access: AccessSet,
    #[serde(default = "sensitive_path")]
    pub(crate) code: ErrorCode,
    #[serde(default)]
    pub(crate) fixed: bool,
    #[serde(default)]
    own: bool,
    #[serde(default)]
    top: bool,
    #[serde(default)]
    outside: bool,
    #[serde(default)]
    alone: bool,
    #[serde(default)]
    pub(crate) certificates: bool,
    #[serde(default)]
    except_outside: Vec<String>,
    #[serde(rename = "match")]
    pub(crate) matches: Vec<String>,
    pub(crate) no_match: Vec<String>,
}

fn sensitive_path() -> ErrorCode {
    ErrorCode::SensitivePath
}

impl SensitivePath {
    /// Whether the entry protects what a file contains, so that a copy of the file is as sensitive.
    fn denies_reading(&self) -> bool {
        !self.fixed && self.access.contains(Access::Read)
    }
}

/// The entire list, ready to match.
#[derive(Debug)]
pub(crate) struct SensitivePaths {
    entries: &'static [SensitivePath],
    /// Each pattern with the index of its entry.
    patterns: Vec<(usize, PathGlob)>,
    set: PathSet,
    /// For each entry: look-alikes that are harmless, everywhere and outside the roots.
    excepts: Vec<(PathSet, PathSet)>,
}

/// A pattern of the list that matched, by its index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SensitiveMatch(usize);

/// The list as written.
static LIST: LazyLock<Vec<SensitivePath>> = LazyLock::new(|| {
    #[derive(Deserialize)]
    struct SensitivePathTable {
        place: Vec<SensitivePath>,
    }
    serde_json::from_str::<SensitivePathTable>(include_str!(concat!(env!("OUT_DIR"), "/sensitive_paths.json")))
        .expect("the built-in list is tested")
        .place
});

/// Nearly every path is harmless, and this says so without matching single patterns.
static PREFILTER: LazyLock<PathPrefilter> = LazyLock::new(|| {
    let patterns = LIST.iter().flat_map(|entry| entry.paths.iter().map(String::as_str));
    PathPrefilter::new(patterns).expect("the built-in list is tested")
});

/// The built-in list.
pub(crate) static SENSITIVE_PATHS: LazyLock<SensitivePaths> =
    LazyLock::new(|| SensitivePaths::new(&LIST).expect("the built-in list is tested"));

/// The entry that covers this path, if any. `lifted` are the paths that configuration exempts.
pub(crate) fn find_sensitive(access: Access, place: &WorkspacePath, lifted: &PathSet) -> Option<SensitiveMatch> {
    let over = |place: &WorkspacePath, counts: fn(&SensitivePath) -> bool| {
        PREFILTER.lets_through(&place.path).then(|| SENSITIVE_PATHS.over(access, place, lifted, counts)).flatten()
    };
    over(place, |_| true).or_else(|| {
        let edited = edited_files(&place.path).filter(|_| !lifted.is_match(&place.path));
        let mut edited = edited.map(|path| WorkspacePath { root: place.root, path });
        edited.find_map(|place| over(&place, SensitivePath::denies_reading))
    })
}

/// The files that an editor may have left this one behind of: a backup (`x~`), Emacs' autosave and lock (`#x#`, `.#x`),
/// Vim's swap file (`.x.swp`, which others write without the dot).
fn edited_files(path: &str) -> impl Iterator<Item = String> {
    let (directory, name) = path.rfind('/').map_or(("", path), |at| path.split_at(at + 1));
    let swapped = name.rsplit_once('.').filter(
        |(_, ending)| matches!(ending.as_bytes(), [b's' | b'S', b'w' | b'W', last] if last.is_ascii_alphabetic()),
    );
    let swapped = swapped.map(|(stem, _)| stem);
    let names = [
        name.strip_suffix('~'),
        name.strip_prefix('#').and_then(|rest| rest.strip_suffix('#')),
        name.strip_prefix(".#"),
        swapped,
        swapped.and_then(|stem| stem.strip_prefix('.')),
    ];
    names.into_iter().flatten().filter(|name| !name.is_empty()).map(move |name| format!("{directory}{name}"))
}

/// The entry that covers a path which is to be restored: only Toolgate's own files stay protected.
pub(crate) fn find_sensitive_restored(access: Access, place: &WorkspacePath) -> Option<SensitiveMatch> {
    SENSITIVE_PATHS.over(access, place, &PathSet::default(), |entry| entry.own)
}

/// The entry that covers some file that a shell pattern may expand to. A pattern that could match nearly anything
/// matches no entry: the sandbox hides sensitive files from the command.
pub(crate) fn find_sensitive_pattern(
    access: Access,
    place: &WorkspacePath,
    lifted: &PathSet,
) -> Option<SensitiveMatch> {
    let (directory, name) = place.path.rsplit_once('/').unwrap_or(("", &place.path));
    let at = |name: &str| {
        let path = if directory.is_empty() { name.to_owned() } else { format!("{directory}/{name}") };
        find_sensitive(access, &WorkspacePath { root: place.root, path }, lifted)
    };
    let filled = |with: &str| name.replace('\\', "").replace(['*', '?', '[', ']'], with);
    let plainly = ["", "x"].iter().find_map(|with| at(&filled(with)));
    plainly.or_else(|| find_sensitive_example(access, place)).or_else(|| {
        // Names that begin with a dot are few, and most of them are sensitive.
        let glob = globset::Glob::new(name).ok().filter(|_| name.starts_with('.'))?.compile_matcher();
        let examples = LIST.iter().flat_map(|entry| entry.matches.iter()).filter_map(|path| path.rsplit('/').next());
        examples.filter(|example| glob.is_match(example)).find_map(at)
    })
}

/// Matches a shell pattern that names a sensitive path by its last two components: `/etc/shad?w`, `.git/conf*`.
fn find_sensitive_example(access: Access, place: &WorkspacePath) -> Option<SensitiveMatch> {
    let last_two = |path: &str| {
        let names: Vec<&str> = path.rsplit('/').take(2).collect();
        (names.len() == 2).then(|| format!("{}/{}", names[1], names[0]))
    };
    let pattern = last_two(&place.path)?;
    if pattern.chars().filter(|letter| letter.is_alphanumeric()).count() < 4 {
        return None;
    }
    let glob = globset::GlobBuilder::new(&pattern).literal_separator(true).build().ok()?.compile_matcher();
    let examples = LIST.iter().flat_map(|entry| entry.matches.iter());
    let named = examples.filter(|path| last_two(path).is_some_and(|path| glob.is_match(path)));
    let mut hits = named.map(|path| {
        find_sensitive(access, &WorkspacePath { root: place.root, path: path.clone() }, &PathSet::default())
    });
    hits.find_map(|hit| hit)
}

impl SensitivePaths {
    fn new(entries: &'static [SensitivePath]) -> Result<Self, ConfigFault> {
        let (mut patterns, mut excepts) = (Vec::new(), Vec::new());
        for (index, entry) in entries.iter().enumerate() {
            let build = if entry.alone { PathGlob::alone } else { PathGlob::new };
            for path in &entry.paths {
                patterns.push((index, build(path, CaseFolding::Folded)?));
            }
            let harmless = |paths: &[String]| {
                let globs = paths.iter().map(|path| PathGlob::alone(path, CaseFolding::Folded));
                let globs = globs.collect::<Result<Vec<_>, _>>()?;
                PathSet::new(CaseFolding::Folded, globs.iter().map(|glob| (0, glob)))
            };
            excepts.push((harmless(&entry.except)?, harmless(&entry.except_outside)?));
        }
        let set = PathSet::new(CaseFolding::Folded, patterns.iter().enumerate().map(|(at, (_, glob))| (at, glob)))?;
        Ok(Self { entries, patterns, set, excepts })
    }

    fn over(
        &self,
        access: Access,
        place: &WorkspacePath,
        lifted: &PathSet,
        counts: impl Fn(&SensitivePath) -> bool,
    ) -> Option<SensitiveMatch> {
        let is_lifted = lifted.is_match(&place.path);
        let holds = |at: &usize| {
            let index = self.patterns[*at].0;
            let entry = &self.entries[index];
            counts(entry)
                && entry.access.contains(access)
                && !(entry.top && place.root != 0)
                && (!entry.outside || place.root == OUTSIDE)
                && (entry.fixed || !is_lifted)
                && !self.excepts[index].0.is_match(&place.path)
                && !(place.root == OUTSIDE && self.excepts[index].1.is_match(&place.path))
        };
        self.set.matches(&place.path).into_iter().find(holds).map(SensitiveMatch)
    }

    pub(crate) fn entry(&self, hit: SensitiveMatch) -> &SensitivePath {
        &self.entries[self.patterns[hit.0].0]
    }

    pub(crate) fn pattern(&self, hit: SensitiveMatch) -> &str {
        self.patterns[hit.0].1.pattern()
    }

    pub(crate) fn all(&self) -> &'static [SensitivePath] {
        self.entries
    }

    /// Whether the entry with this index covers a path in the workspace.
    pub(crate) fn covers(&self, index: usize, path: &str) -> bool {
        let named = |path: &str| {
            self.set.matches(path).iter().any(|at| self.patterns[*at].0 == index)
                && !self.excepts[index].0.is_match(path)
        };
        named(path) || self.entries[index].denies_reading() && edited_files(path).any(|path| named(&path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::{collection::vec, prelude::*, sample::select};

    #[test]
    fn every_example_of_the_list_holds() {
        for (index, entry) in SENSITIVE_PATHS.all().iter().enumerate() {
            assert!(!entry.matches.is_empty() && !entry.no_match.is_empty(), "{} has examples", entry.reason);
            for path in &entry.matches {
                assert!(SENSITIVE_PATHS.covers(index, path), "`{path}` should be covered by: {}", entry.reason);
                let hits = [Access::Read, Access::Write].map(|access| {
                    find_sensitive(access, &WorkspacePath { root: 0, path: path.clone() }, &PathSet::default())
                });
                assert!(entry.outside || hits.iter().any(Option::is_some), "`{path}` should be found");
            }
            for path in &entry.no_match {
                assert!(!SENSITIVE_PATHS.covers(index, path), "`{path}` should not be covered by: {}", entry.reason);
            }
        }
    }

    #[test]
    fn ordinary_projects_are_left_alone() {
        for path in [
            "",
            "src/main.rs",
            "Cargo.toml",
            "package.json",
            "README.md",
            ".gitignore",
            ".github/workflows/ci.yml",
            ".vscode/settings.json",
            "docs/keys.md",
            "src/environment/mod.rs",
            "tests/fixtures/token.json",
            "Dockerfile",
            ".dockerignore",
            "terraform/main.tf",
            "src/auth/credentials.ts",
            ".config/nvim/init.lua",
            "src/main.rs~",
            "#main.rs#",
            ".#main.rs",
            ".main.rs.swp",
            "~",
            "##",
            ".swp",
            ".git/config~",
            "kubeconfig.go",
            "credentials.md",
            "src/credentials/json.rs",
        ] {
            for access in [Access::Read, Access::Write, Access::Delete] {
                let hit = find_sensitive(access, &WorkspacePath::in_workspace(path), &PathSet::default());
                assert_eq!(hit.map(|hit| SENSITIVE_PATHS.pattern(hit)), None, "{access:?} {path}");
            }
        }
    }

    proptest! {
        #[test]
        fn whatever_an_entry_covers_passes_the_prefilter(
            parts in vec(prop_oneof![select(&["a", "X.pem", ".Git", "config", ".ssh", ".env.x", "proc", "1", "environ"])
                .prop_map(str::to_owned), "[a-zK.\u{200b}]{1,5}"], 0..5)
        ) {
            let path = parts.join("/");
            prop_assert!(!SENSITIVE_PATHS.set.is_match(&path) || PREFILTER.lets_through(&path), "{}", path);
        }
    }

    #[test]
    fn an_exception_lifts_sensitive_places_but_never_what_is_fixed() {
        let everything = PathGlob::new("**", CaseFolding::Exact).unwrap();
        let lifted = PathSet::new(CaseFolding::Exact, [(0, &everything)]).unwrap();
        let over = |access, path: &str| find_sensitive(access, &WorkspacePath::in_workspace(path), &lifted).is_some();
        assert!(!over(Access::Read, "certs/ca.pem"));
        for (access, path) in [
            (Access::Read, ".toolgate/runs"),
            (Access::Write, "toolgate.toml"),
            (Access::Delete, ".git/hooks/pre-commit"),
        ] {
            assert!(over(access, path), "{path}");
        }
    }

    #[test]
    fn the_policy_file_may_be_read_and_counts_only_in_the_workspace() {
        let over = |access, root| {
            let place = WorkspacePath { root, path: "toolgate.toml".into() };
            find_sensitive(access, &place, &PathSet::default()).is_some()
        };
        assert!(over(Access::Write, 0) && over(Access::Delete, 0));
        assert!(!over(Access::Read, 0) && !over(Access::Write, 1));
    }
}
