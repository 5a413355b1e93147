//! The text engines against git itself: its diffs must apply byte for byte, what it applies to moved text must come out
//! the same, what it refuses must be refused or explained, and it must be able to apply our diffs.
//!
//! `TOOLGATE_CASES` sets how many random cases are tried, `TOOLGATE_REPO` names a repository whose history is replayed.

#![allow(clippy::disallowed_methods, reason = "a test may run git and keep its files")]

use std::path::Path;
use std::process::{Command, Stdio};

use toolgate_tools::text::patch::{FileOperation, PatchFault, PatchedContent, apply, parse};
use toolgate_tools::text::{MatchTier, unified};

fn cases() -> u64 {
    std::env::var("TOOLGATE_CASES").ok().and_then(|count| count.parse().ok()).unwrap_or(300)
}

fn git(directory: &Path) -> Command {
    let mut command = Command::new("git");
    command.current_dir(directory).env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.envs([("HOME", "/nonexistent"), ("GIT_CONFIG_NOSYSTEM", "1"), ("LC_ALL", "C")]);
    command
}

/// Small, fast and the same on every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 16
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }

    fn one_in(&mut self, chances: usize) -> bool {
        self.below(chances) == 0
    }
}

/// Lines of a file; many repeat, some are awkward.
struct Maker {
    random: Random,
    /// Whether a line may be anything, or only what UTF-8 can hold.
    any_bytes: bool,
    crlf: usize,
}

impl Maker {
    fn new(seed: u64, any_bytes: bool) -> Self {
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let crlf = [0, 0, 2, 1][random.below(4)];
        Self { random, any_bytes, crlf }
    }

    fn line(&mut self) -> Vec<u8> {
        const STOCK: [&[u8]; 14] = [
            b"",
            b"}",
            b"    }",
            b"\treturn x;",
            b"fn main() {",
            b"-- sql comment",
            b"++ plus",
            b"@@ -1,2 +1,2 @@",
            b"--- a/f",
            b"+++ b/f",
            b"diff --git a/f b/f",
            b"trailing  ",
            b"\\ No newline at end of file",
            b"*** End Patch",
        ];
        let mut line = match self.random.below(6) {
            0..=2 => STOCK[self.random.below(STOCK.len())].to_vec(),
            3 if self.any_bytes => (0..self.random.below(12)).map(|_| self.random.next() as u8).collect(),
            _ => format!("line {}", self.random.below(40)).into_bytes(),
        };
        line.retain(|&byte| byte != 0 && byte != b'\n');
        if self.crlf > 0 && self.random.one_in(self.crlf) {
            line.push(b'\r');
        }
        line.push(b'\n');
        line
    }

    fn file(&mut self) -> Vec<Vec<u8>> {
        let most = [1, 6, 40, 200][self.random.below(4)];
        let count = self.random.below(most);
        let mut lines: Vec<_> = (0..count).map(|_| self.line()).collect();
        self.maybe_unterminate(&mut lines);
        lines
    }

    fn maybe_unterminate(&mut self, lines: &mut [Vec<u8>]) {
        if self.random.one_in(4)
            && let Some(last) = lines.last_mut()
        {
            last.pop();
        }
    }

    /// The lines with a few of them changed, added and removed.
    fn changed(&mut self, lines: &[Vec<u8>], changes: usize) -> Vec<Vec<u8>> {
        let mut lines = lines.to_vec();
        for _ in 0..changes {
            let at = self.random.below(lines.len() + 1);
            match self.random.below(3) {
                0 if at < lines.len() => _ = lines.remove(at),
                1 if at < lines.len() => lines[at] = self.line(),
                _ => lines.insert(at, self.line()),
            }
        }
        let count = lines.len();
        for line in lines.iter_mut().take(count.saturating_sub(1)).filter(|line| !line.ends_with(b"\n")) {
            line.push(b'\n');
        }
        self.maybe_unterminate(&mut lines);
        // An empty last line can't be told from none.
        lines.retain(|line| !line.is_empty());
        lines
    }
}

/// The diff that git makes of two files.
fn git_diff(directory: &Path, before: &[u8], after: &[u8], options: &[&str]) -> Vec<u8> {
    std::fs::write(directory.join("old"), before).unwrap();
    std::fs::write(directory.join("new"), after).unwrap();
    let output = git(directory)
        .args(["diff", "--no-index", "--no-color", "--no-ext-diff", "--text"])
        .args(options)
        .args(["old", "new"])
        .output()
        .unwrap();
    assert!(output.status.code().is_some_and(|code| code < 2), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// What git makes of a file with a patch; none when it refuses. The patch is for `old`.
fn git_apply(directory: &Path, before: &[u8], patch: &[u8]) -> Option<Vec<u8>> {
    use std::io::Write as _;
    std::fs::write(directory.join("old"), before).unwrap();
    let mut child = git(directory)
        .args(["apply", "--whitespace=nowarn", "-"])
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(patch).unwrap();
    child.wait().unwrap().success().then(|| std::fs::read(directory.join("old")).unwrap_or_default())
}

fn is_plain(applied: &PatchedContent) -> bool {
    applied.reports.iter().all(|report| {
        report.offset == 0 && report.fuzz == 0 && report.tier == MatchTier::Exact && report.note.is_none()
    })
}

/// The patch as one of `old` to `old`, so that applying it changes the file in place.
fn in_place(patch: &[u8]) -> Vec<u8> {
    let mut lines: Vec<&[u8]> = patch.split_inclusive(|&byte| byte == b'\n').collect();
    let first = lines.iter().position(|line| line.starts_with(b"--- ")).unwrap();
    lines.splice(..first + 2, [&b"--- a/old\n"[..], b"+++ b/old\n"]);
    lines.concat()
}

#[test]
fn diffs_made_by_git_apply_byte_for_byte() {
    let directory = tempfile::tempdir().unwrap();
    let options: [&[&str]; 6] =
        [&[], &["-U1"], &["-U8"], &["--no-prefix"], &["--patience", "--function-context"], &["--histogram", "-U2"]];
    let mut hunks = 0;
    for seed in 0..cases() {
        let mut maker = Maker::new(seed, true);
        let before = maker.file();
        let changes = 1 + maker.random.below(12);
        let after = maker.changed(&before, changes).concat();
        let before = before.concat();
        if before == after {
            continue;
        }
        let options = options[maker.random.below(options.len())];
        let patch = git_diff(directory.path(), &before, &after, options);
        let files =
            parse(&patch).unwrap_or_else(|fault| panic!("seed {seed}: {fault}\n{}", String::from_utf8_lossy(&patch)));
        assert_eq!(files.len(), 1, "seed {seed}");
        let applied = apply(&files[0], Some(&before))
            .unwrap_or_else(|fault| panic!("seed {seed}: {fault}\n{}", String::from_utf8_lossy(&patch)));
        assert!(applied.after.as_deref().unwrap_or_default() == after, "seed {seed}: other bytes than git's");
        assert!(is_plain(&applied), "seed {seed}: {:?}", applied.reports);
        hunks += applied.reports.len();
    }
    assert!(hunks > 0);
    eprintln!("{hunks} hunks made by git applied byte for byte");
}

#[derive(Debug, Default)]
struct Tally {
    same: usize,
    other_place: usize,
    only_git: usize,
    only_we: usize,
    neither: usize,
}

#[test]
fn moved_text_is_patched_as_git_does_or_the_difference_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let mut tally = Tally::default();
    for seed in 0..cases() {
        let mut maker = Maker::new(seed + 1_000_000, true);
        let before = maker.file();
        let changes = 1 + maker.random.below(4);
        let after = maker.changed(&before, changes).concat();
        let moved = 1 + maker.random.below(4);
        let target = maker.changed(&before, moved).concat();
        let before = before.concat();
        if before == after || before.is_empty() || after.is_empty() || target.is_empty() {
            continue;
        }
        let patch = in_place(&git_diff(directory.path(), &before, &after, &[]));
        let theirs = git_apply(directory.path(), &target, &patch);
        let files = parse(&patch).unwrap();
        match (theirs, apply(&files[0], Some(&target))) {
            (Some(theirs), Ok(ours)) if Some(&theirs) == ours.after.as_ref() => tally.same += 1,
            (Some(_), Ok(ours)) => {
                assert!(!is_plain(&ours), "seed {seed}: another place than git's must be told");
                tally.other_place += 1;
            }
            (Some(_), Err(fault)) => {
                let told = fault.to_string();
                let reasons = ["more than once", "already applied"];
                assert!(reasons.iter().any(|reason| told.contains(reason)), "seed {seed}: {told}");
                tally.only_git += 1;
            }
            (None, Ok(ours)) => {
                assert!(!is_plain(&ours), "seed {seed}: git refused what we took without a word");
                tally.only_we += 1;
            }
            (None, Err(_)) => tally.neither += 1,
        }
    }
    eprintln!("{tally:?}");
    assert!(tally.same > tally.other_place + tally.only_git, "{tally:?}");
}

#[test]
fn git_applies_our_diffs() {
    let directory = tempfile::tempdir().unwrap();
    for seed in 0..cases() / 2 {
        let mut maker = Maker::new(seed + 2_000_000, false);
        let before = maker.file();
        let changes = 1 + maker.random.below(12);
        let after = maker.changed(&before, changes).concat();
        let before = before.concat();
        if before == after || before.is_empty() || after.is_empty() {
            continue;
        }
        let diff = unified(Some("old"), Some("old"), &before, &after);
        let theirs = git_apply(directory.path(), &before, diff.text.as_bytes());
        assert_eq!(theirs.as_deref(), Some(after.as_slice()), "seed {seed}:\n{}", diff.text);
    }
}

/// Replays a repository's history: each commit's diff on the parent's files gives the commit's files.
#[test]
fn real_history_is_replayed_byte_for_byte() {
    let Ok(repository) = std::env::var("TOOLGATE_REPO") else {
        return toolgate_testkit::skip("no-repository-named", "TOOLGATE_REPO names no repository to replay");
    };
    let directory = Path::new(&repository);
    let output = |arguments: &[&str]| git(directory).args(arguments).output().unwrap().stdout;
    let most = cases().to_string();
    let commits = output(&["rev-list", "--no-merges", "--min-parents=1", "-n", &most, "HEAD"]);
    let (mut files, mut refused) = (0, Vec::new());
    for commit in String::from_utf8(commits).unwrap().lines() {
        let parent = format!("{commit}^");
        let patch = output(&["diff", "--no-color", "--no-ext-diff", "-M", "-C", &parent, commit]);
        let content = |side: &str, path: &str| output(&["show", &format!("{side}:{path}")]);
        match parse(&patch) {
            Ok(parsed) => {
                for file in parsed {
                    let before = (file.operation != FileOperation::Create).then(|| content(&parent, &file.path));
                    let applied = apply(&file, before.as_deref()).unwrap_or_else(|fault| panic!("{commit}: {fault}"));
                    let path = match &file.operation {
                        FileOperation::Move { to } | FileOperation::Copy { to } => to,
                        _ => &file.path,
                    };
                    let after = (file.operation != FileOperation::Delete).then(|| content(commit, path));
                    assert!(applied.after == after, "{commit}: {path}: other bytes than git's");
                    assert!(is_plain(&applied), "{commit}: {path}: {:?}", applied.reports);
                    files += 1;
                }
            }
            Err(PatchFault::Nothing) if patch.is_empty() => {}
            Err(fault @ PatchFault::Unsupported { .. }) => refused.push(format!("{commit}: {fault}")),
            Err(fault) => panic!("{commit}: {fault}"),
        }
    }
    eprintln!("{files} files byte for byte, {} commits refused", refused.len());
    refused.iter().take(10).for_each(|refused| eprintln!("  {refused}"));
}
