//! Glob patterns over paths, with the semantics of `.gitignore`: a pattern without `/` matches a name at any depth, a
//! pattern with `/` is relative to the root (`./name` anchors a single name), and a match covers everything beneath it.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use toolgate_config::ConfigFault;
use toolgate_contract::unescape_path;

use globset::{Glob, GlobBuilder, GlobSet, GlobSetBuilder};
use regex_automata::meta::{self, Regex};
use regex_automata::util::syntax;

/// How letter case is compared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum CaseFolding {
    /// Exactly: for rules that loosen.
    #[default]
    Exact,
    /// As equal if any file system takes them for equal: for rules that tighten.
    Folded,
}

impl CaseFolding {
    /// A path in the form in which it is compared.
    fn compare(self, path: &str) -> Cow<'_, str> {
        match self {
            Self::Exact => path.into(),
            Self::Folded => fold(path),
        }
    }
}

/// One compiled pattern.
#[derive(Debug, Clone)]
pub(crate) struct PathGlob {
    pattern: String,
    glob: Glob,
    alone: bool,
}

impl PathGlob {
    /// A pattern that also covers everything beneath a match.
    pub(crate) fn new(pattern: &str, letters: CaseFolding) -> Result<Self, ConfigFault> {
        let form = anchored(pattern)?;
        let glob = GlobBuilder::new(&letters.compare(&form)).literal_separator(true).backslash_escape(true).build();
        let glob = glob.map_err(|fault| {
            ConfigFault::new(
                format!("The path pattern `{pattern}` can't be read: {}.", fault.kind()),
                "Use `*`, `?`, `[a-z]`, `{a,b}` and `**`; put `\\` before a character that is meant as it stands.",
            )
        })?;
        Ok(Self { pattern: pattern.to_owned(), glob, alone: false })
    }

    /// A pattern that matches a path but nothing beneath it.
    pub(crate) fn alone(pattern: &str, letters: CaseFolding) -> Result<Self, ConfigFault> {
        Ok(Self { alone: true, ..Self::new(pattern, letters)? })
    }

    /// The pattern as written.
    pub(crate) fn pattern(&self) -> &str {
        &self.pattern
    }
}

/// Many patterns, matched at once with the same case folding. What is beneath a match is found by matching every parent
/// directory of a path: patterns that include "and beneath" would take ten times as long to compile.
#[derive(Debug, Clone, Default)]
pub(crate) struct PathSet {
    letters: CaseFolding,
    covering: IndexedGlobs,
    alone: IndexedGlobs,
}

/// A set of globs, with the index of each one's owner.
#[derive(Debug, Clone, Default)]
struct IndexedGlobs {
    set: GlobSet,
    owners: Vec<usize>,
}

impl PathSet {
    /// Compiles patterns; each match later returns its `usize`.
    pub(crate) fn new<'a>(
        letters: CaseFolding,
        patterns: impl IntoIterator<Item = (usize, &'a PathGlob)>,
    ) -> Result<Self, ConfigFault> {
        let (alone, covering): (Vec<_>, Vec<_>) = patterns.into_iter().partition(|(_, pattern)| pattern.alone);
        Ok(Self { letters, covering: IndexedGlobs::new(&covering)?, alone: IndexedGlobs::new(&alone)? })
    }

    pub(crate) fn is_match(&self, path: &str) -> bool {
        let path = self.letters.compare(tidy(path));
        let covers = |path: &str| self.covering.is_match(path, self.letters);
        self.alone.is_match(&path, self.letters) || covers(&path) || above(&path).any(covers)
    }

    /// The indexes of the patterns that match, each once, in the given order.
    pub(crate) fn matches(&self, path: &str) -> Vec<usize> {
        let path = self.letters.compare(tidy(path));
        let mut found = Vec::new();
        self.alone.add_matches(&path, self.letters, &mut found);
        self.covering.add_matches(&path, self.letters, &mut found);
        above(&path).for_each(|up| self.covering.add_matches(up, self.letters, &mut found));
        found.sort_unstable();
        found.dedup();
        found
    }
}

/// The forms of a path in which a pattern may match it: as it is shown, and for rules that tighten also as the kernel has
/// it. There a byte that is shown as `\xNN` is one character, which `?` matches.
fn forms(path: &str, letters: CaseFolding) -> impl Iterator<Item = Cow<'_, [u8]>> {
    let exact = Some(unescape_path(path)).filter(|exact| letters == CaseFolding::Folded && **exact != *path.as_bytes());
    std::iter::once(path.as_bytes().into()).chain(exact)
}

/// Every parent directory of a path, from the top.
fn above(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(at, _)| &path[..at])
}

impl IndexedGlobs {
    fn new(patterns: &[(usize, &PathGlob)]) -> Result<Self, ConfigFault> {
        let mut builder = GlobSetBuilder::new();
        for (_, pattern) in patterns {
            builder.add(pattern.glob.clone());
        }
        let set = builder.build().map_err(|fault| {
            ConfigFault::new(
                format!("The path patterns are too large together: {fault}."),
                "Use fewer or simpler patterns.",
            )
        })?;
        Ok(Self { set, owners: patterns.iter().map(|(owner, _)| *owner).collect() })
    }

    fn is_match(&self, path: &str, letters: CaseFolding) -> bool {
        !self.set.is_empty() && forms(path, letters).any(|form| self.set.is_match(OsStr::from_bytes(&form)))
    }

    fn add_matches(&self, path: &str, letters: CaseFolding, found: &mut Vec<usize>) {
        if !self.set.is_empty() {
            let matches = forms(path, letters).flat_map(|form| self.set.matches(OsStr::from_bytes(&form)));
            found.extend(matches.map(|index| self.owners[index]));
        }
    }
}

/// Many patterns as one, for a quick negative answer: every path that one of them could match, at any depth, passes.
/// Much faster than a [`PathSet`], but it can't tell which pattern matched.
#[derive(Debug)]
pub(crate) struct PathPrefilter(Regex);

impl PathPrefilter {
    /// Takes patterns in which commas occur only within braces.
    pub(crate) fn new<'a>(patterns: impl IntoIterator<Item = &'a str>) -> Result<Self, ConfigFault> {
        let bare = |pattern: &'a str| pattern.trim_start_matches("./").trim_start_matches("**/");
        let any = patterns.into_iter().map(bare).collect::<Vec<_>>().join(",");
        let too_large = |fault: &dyn std::error::Error| {
            ConfigFault::new(format!("The path patterns can't be read as one: {fault}."), "Use simpler patterns.")
        };
        let form = fold(&format!("**/{{{any}}}")).into_owned();
        let glob = GlobBuilder::new(&form).literal_separator(true).backslash_escape(true).build();
        let glob = glob.map_err(|fault| too_large(&fault))?;
        // A glob ends where the path does; a prefilter also lets through what is beneath.
        let beneath = format!("{}(?:/.*)?$", glob.regex().trim_end_matches('$'));
        // As `globset` compiles a glob, but without the automatons that take longer to build than a short call has.
        let quickly_built = meta::Config::new().utf8_empty(false).dfa(false).onepass(false);
        let bytes = syntax::Config::new().utf8(false).dot_matches_new_line(true);
        let built = Regex::builder().configure(quickly_built).syntax(bytes).build(&beneath);
        built.map(Self).map_err(|fault| too_large(&fault))
    }

    pub(crate) fn lets_through(&self, path: &str) -> bool {
        forms(&fold(tidy(path)), CaseFolding::Folded).any(|form| self.0.is_match(&*form))
    }
}

/// The glob for a pattern, relative to the root, without the suffix that only means "and beneath".
fn anchored(pattern: &str) -> Result<String, ConfigFault> {
    refuse_foreign_forms(pattern)?;
    let mut base = pattern;
    while let Some(shorter) = base.strip_suffix("/**").or_else(|| base.strip_suffix('/')) {
        base = shorter;
    }
    let base = base.strip_prefix("./").unwrap_or(base);
    let tied = pattern.trim_end_matches('/').contains('/');
    Ok(if tied || base == "**" { base.to_owned() } else { format!("**/{base}") })
}

fn refuse_foreign_forms(pattern: &str) -> Result<(), ConfigFault> {
    let hint = if pattern.is_empty() || matches!(pattern, "." | "./" | "./**") {
        "Use `**` for everything."
    } else if pattern.starts_with('/') || pattern.starts_with('~') {
        "Write it relative to the workspace; use `./name` for a name that counts only at the top."
    } else if pattern.split('/').any(|part| part == "..") {
        "Leave out `..`: patterns only match paths in the workspace and the other roots."
    } else if pattern.starts_with('!') {
        "Write an `allow` rule, or `sensitive.except`, instead of `!`."
    } else {
        return Ok(());
    };
    Err(ConfigFault::new(format!("The path pattern `{pattern}` isn't supported."), hint))
}

/// A path in the form in which look-alikes are equal: lower case, without the invisible characters that some file
/// systems ignore.
fn fold(path: &str) -> Cow<'_, str> {
    if !path.is_ascii() {
        let visible = path.chars().filter(|letter| !is_invisible(*letter)).flat_map(char::to_lowercase);
        return visible.map(|letter| if letter == 'ſ' { 's' } else { letter }).collect::<String>().into();
    }
    if path.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return path.to_ascii_lowercase().into();
    }
    path.into()
}

fn is_invisible(letter: char) -> bool {
    matches!(letter, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// A path as a person might write it, in the normalized form of a [`WorkspacePath`](toolgate_contract::WorkspacePath).
fn tidy(path: &str) -> &str {
    path.strip_prefix("./").unwrap_or(path).trim_end_matches('/')
}

/// A pattern that matches exactly this path.
pub(crate) fn escape(path: &str) -> String {
    let mut pattern = String::with_capacity(path.len());
    for letter in path.chars() {
        if matches!(letter, '*' | '?' | '[' | ']' | '{' | '}' | '\\' | '!') {
            pattern.push('\\');
        }
        pattern.push(letter);
    }
    pattern
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, letters: CaseFolding, path: &str) -> bool {
        let glob = PathGlob::new(pattern, letters).unwrap();
        let set = PathSet::new(letters, [(7, &glob)]).unwrap();
        assert_eq!(set.is_match(path), set.matches(path) == [7], "both ways agree");
        set.is_match(path)
    }

    #[test]
    fn patterns_read_like_gitignore() {
        for (pattern, yes, no) in [
            ("secret", &["secret", "a/b/secret", "a/secret/b/c"][..], &["secrets", "a/my-secret", ""][..]),
            ("*.pem", &["a.pem", "x/a.pem", "x/a.pem/y"], &["a.pem.txt"]),
            ("docs/", &["docs", "docs/a", "x/docs/a"], &["docs2"]),
            ("docs/**", &["docs", "docs/a", "docs/a/b"], &["x/docs/a", "docs2/a"]),
            ("docs/*", &["docs/a", "docs/a/b"], &["docs", "x/docs/a"]),
            ("docs/secret", &["docs/secret", "docs/secret/a"], &["x/docs/secret", "docs/secretive"]),
            ("./top", &["top", "top/a"], &["a/top"]),
            ("**/a/b", &["a/b", "x/y/a/b/c"], &["a/x/b"]),
            ("a/**/b", &["a/b", "a/x/y/b/c"], &["b"]),
            ("{x,y}/z", &["x/z", "y/z/w"], &["z", "w/z"]),
            ("**", &["", "a", "a/b"], &[]),
            ("*", &["", "a", "a/b"], &[]),
            ("?*", &["a", "a/b"], &[""]),
            (r"a\*b", &["a*b"], &["axb"]),
            ("new\nline", &["new\nline/x"], &["new"]),
        ] {
            yes.iter().for_each(|path| assert!(matches(pattern, CaseFolding::Exact, path), "{pattern} ~ {path}"));
            no.iter().for_each(|path| assert!(!matches(pattern, CaseFolding::Exact, path), "{pattern} !~ {path}"));
        }
    }

    #[test]
    fn what_tightens_sees_through_case_and_invisible_letters() {
        for path in [".SSH/x", ".ſsh/x", ".s\u{200b}sh/x", ".ssh"] {
            assert!(matches(".Ssh", CaseFolding::Folded, path), "{path}");
        }
        assert!(!matches(".ssh", CaseFolding::Exact, ".SSH"));
        assert!(matches("Geheim/Öl", CaseFolding::Folded, "geheim/öl/x"));
    }

    #[test]
    fn a_byte_that_is_not_text_is_a_character_that_no_rule_is_dodged_with() {
        for (pattern, path) in [
            ("*.pem", r"a\xff.pem"),
            ("*.pem", r"d\xff/x.pem/y"),
            ("key?.txt", r"key\xff.txt"),
            ("key[!0-9].txt", r"dir/key\xff.txt"),
            (".env*", r"a\xfe/.env\xff"),
            (r"a\\xff", r"a\x5cxff"),
        ] {
            assert!(matches(pattern, CaseFolding::Folded, path), "{pattern} ~ {path}");
        }
        assert!(matches(r"a\\xff", CaseFolding::Exact, r"a\xff"), "as it is shown");
        assert!(!matches(r"a\\xff", CaseFolding::Exact, r"a\x5cxff"), "what loosens is about one file");
        assert!(PathPrefilter::new(["key?"]).unwrap().lets_through(r"key\xff"));
    }

    #[test]
    fn patterns_that_cannot_work_say_what_to_write_instead() {
        for (pattern, expected) in [
            ("/etc", "relative to the workspace"),
            ("~/x", "relative to the workspace"),
            ("a/../b", "Leave out `..`"),
            ("", "Use `**` for everything"),
            (".", "Use `**` for everything"),
            ("!a", "`allow` rule"),
            ("a[", "Use `*`"),
            ("{a", "Use `*`"),
        ] {
            let fault = PathGlob::new(pattern, CaseFolding::Exact).unwrap_err();
            assert!(format!("{fault:?}").contains(expected), "{pattern}: {fault:?}");
        }
    }

    #[test]
    fn an_escaped_path_matches_itself_alone() {
        for path in ["a*b", "a?[x]", "{a,b}", "!x", r"back\slash", r"a\xff", "plain/path.rs"] {
            let pattern = format!("./{}", escape(path));
            assert!(matches(&pattern, CaseFolding::Exact, path), "{pattern}");
        }
        assert!(!matches(&format!("./{}", escape("a*b")), CaseFolding::Exact, "axb"));
    }
}
