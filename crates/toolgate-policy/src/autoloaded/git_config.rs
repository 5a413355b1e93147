//! Parses a repository's configuration far enough to recognize an ordinary one: only keys that are known to run nothing
//! and to point nowhere are accepted, and only in the plainest spelling. Everything that this parser doesn't understand
//! is suspicious.

/// Keys that run nothing, by section, with `*` for any subsection.
#[rustfmt::skip]
const ORDINARY: &[(&str, &[&str])] = &[
    ("core", &[
        "repositoryformatversion", "filemode", "bare", "logallrefupdates", "ignorecase", "precomposeunicode", "symlinks",
        "autocrlf", "eol", "safecrlf", "quotepath", "abbrev", "compression", "preloadindex", "untrackedcache",
    ]),
    ("extensions", &["objectformat", "worktreeconfig", "refstorage", "compatobjectformat", "relativeworktrees"]),
    ("user", &["name", "email"]),
    ("init", &["defaultbranch"]),
    ("remote.*", &["url", "fetch", "tagopt", "prune", "mirror", "promisor", "partialclonefilter"]),
    ("branch.*", &["remote", "merge", "rebase", "description"]),
    ("submodule", &["active", "recurse"]),
    ("submodule.*", &["url", "active", "update"]),
    ("pull", &["rebase", "ff"]),
    ("push", &["default", "followtags", "autosetupremote"]),
    ("fetch", &["prune", "prunetags", "parallel"]),
    ("merge", &["conflictstyle", "ff", "renames"]),
    ("diff", &["renames", "algorithm", "colormoved", "mnemonicprefix", "noprefix"]),
    ("rebase", &["autosquash", "autostash", "updaterefs"]),
    ("commit", &["verbose", "cleanup"]),
    ("gc", &["auto", "autodetach"]),
    ("maintenance", &["auto"]),
    ("index", &["version", "threads"]),
    ("advice", &["*"]),
    ("color", &["*"]),
    ("column", &["*"]),
];

/// The first suspicious thing in a repository's configuration; none if all of it is ordinary. `worktree` is the only
/// value that `core.worktree` may have; most repositories may have none.
pub fn suspicious_in_git_config(text: &[u8], worktree: Option<&str>) -> Option<String> {
    let Ok(text) = std::str::from_utf8(text) else { return Some("it isn't text".into()) };
    let mut section = String::new();
    for line in text.lines().map(str::trim) {
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(header) = line.strip_prefix('[') {
            match header.strip_suffix(']').and_then(section_of) {
                Some(name) => section = name,
                None => return Some(format!("the section `[{header}`")),
            }
        } else if let Some(odd) = odd_in_line(&section, line, worktree) {
            return Some(odd);
        }
    }
    None
}

/// `core`, or `remote.*` for `remote "origin"`.
fn section_of(header: &str) -> Option<String> {
    let is_plain =
        |name: &str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let (name, rest) = header.split_once([' ', '\t']).unwrap_or((header, ""));
    let subsection = rest.trim().strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    match (is_plain(name), rest.trim().is_empty(), subsection) {
        (true, true, _) => Some(name.to_lowercase()),
        (true, false, Some(sub)) if !sub.contains(['"', '\\']) => Some(format!("{}.*", name.to_lowercase())),
        _ => None,
    }
}

fn odd_in_line(section: &str, line: &str, worktree: Option<&str>) -> Option<String> {
    let (key, value) = line.split_once('=').map_or((line, ""), |(key, value)| (key.trim(), value.trim()));
    let key = key.to_lowercase();
    let known = ORDINARY.iter().find(|(name, _)| *name == section).map_or(&[][..], |(_, keys)| keys);
    let is_known = known.iter().any(|name| *name == key || *name == "*");
    let is_plain_key = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let is_plain_value = plain(value).is_some_and(|value| is_harmless(section, &key, value));
    let is_worktree = (section, key.as_str()) == ("core", "worktree") && worktree.is_some_and(|path| path == value);
    let is_odd = !is_worktree && (!is_known || !is_plain_key || !is_plain_value);
    is_odd.then(|| format!("`{}{}{key}`", section.trim_end_matches(".*"), if section.is_empty() { "" } else { "." }))
}

/// A value without its quotes; none if it continues on the next line or consists of several pieces.
fn plain(value: &str) -> Option<&str> {
    let within = value.strip_prefix('"').and_then(|value| value.strip_suffix('"')).unwrap_or(value);
    (!within.contains(['"', '\\'])).then_some(within)
}

/// Whether one of the keys above may have this value. Some of these keys run their value.
fn is_harmless(section: &str, key: &str, value: &str) -> bool {
    match (section, key) {
        (_, "url") | ("branch.*", "remote") => is_plain_url(value),
        ("submodule.*", "update") => ["checkout", "rebase", "merge", "none"].contains(&value),
        ("extensions", "refstorage") => ["files", "reftable"].contains(&value),
        _ => !value.starts_with(['!', '-']),
    }
}

/// Whether git fetches from this URL itself. For any other scheme, and for `name::address`, git runs a program of that
/// name.
fn is_plain_url(url: &str) -> bool {
    let scheme = url.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
    let is_known = |scheme: String| ["https", "http", "ssh", "git", "file"].contains(&scheme.as_str());
    !url.contains("::") && !url.starts_with(['-', '!']) && scheme.is_none_or(is_known)
}

#[cfg(test)]
mod tests {
    use super::suspicious_in_git_config;

    #[test]
    fn what_git_writes_by_itself_is_ordinary() {
        for text in [
            "",
            "[core]\n\tworktree = ../../../lib\n",
            "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n",
            "[remote \"origin\"]\n\turl = /work/space\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n[branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n",
            "# mine\n[user]\nname = Ada\nemail=a@example.com ; here\n[advice]\n\tdetachedHead = false\n[submodule \"lib\"]\n\tactive = true\n\turl = https://example.com/lib.git\n\tupdate = checkout\n",
            "[remote \"a\"]\n\turl = \"../with#sign\"\n[remote \"b\"]\n\turl = git@example.com:a/b.git\n[extensions]\n\trefStorage = reftable\n",
        ] {
            assert_eq!(suspicious_in_git_config(text.as_bytes(), Some("../../../lib")), None, "{text}");
        }
    }

    #[test]
    fn what_runs_something_or_cannot_be_read_is_not() {
        for (text, odd) in [
            ("[core]\n\tfsmonitor = ./evil\n", "`core.fsmonitor`"),
            ("[core]\nhooksPath = hooks\n", "`core.hookspath`"),
            ("[CORE]\nsshCommand = sh\n", "`core.sshcommand`"),
            ("[core]\nworktree = /\n", "`core.worktree`"),
            ("[core]\nworktree = ../../../lib/.git\n", "`core.worktree`"),
            ("[include]\npath = x\n", "`include.path`"),
            ("[includeIf \"gitdir:/\"]\npath = x\n", "`includeif.path`"),
            ("[alias]\nst = !sh\n", "`alias.st`"),
            ("[filter \"x\"]\nsmudge = sh\n", "`filter.smudge`"),
            ("[diff \"x\"]\ntextconv = sh\n", "`diff.textconv`"),
            ("[remote \"o\"]\nurl = ext::sh -c x\n", "`remote.url`"),
            ("[remote \"o\"]\nuploadpack = sh\n", "`remote.uploadpack`"),
            ("[core] fsmonitor = ./evil\n", "the section `[core] fsmonitor = ./evil`"),
            ("[user]\nname = a\\\n[core]\nfsmonitor = x\n", "`user.name`"),
            ("[submodule \"x\"]\nupdate = !sh\n", "`submodule.update`"),
            ("[submodule \"x\"]\nupdate = \"!touch x\"\n", "`submodule.update`"),
            ("[submodule \"x\"]\nupdate = \"\"!touch\n", "`submodule.update`"),
            ("[submodule \"x\"]\nupdate = \\\n!touch\n", "`submodule.update`"),
            ("[submodule \"x\"]\nupdate =\"\\x21touch\"\n", "`submodule.update`"),
            ("[submodule \"x\"]\nurl = foo://x\n", "`submodule.url`"),
            ("[branch \"x\"]\nremote = \"ext::sh\"\n", "`branch.remote`"),
            ("[submodule.x]\nupdate = none\n", "the section `[submodule.x]`"),
            ("[credential]\nhelper = sh\n", "`credential.helper`"),
            ("[credential \"https://x\"]\nhelper = sh\n", "`credential.helper`"),
            ("[url \"ext::sh \"]\ninsteadOf = https://\n", "`url.insteadof`"),
            ("[remote \"o\"]\nreceivepack = sh\n", "`remote.receivepack`"),
            ("[remote \"o\"]\nvcs = ext\n", "`remote.vcs`"),
            ("[protocol \"ext\"]\nallow = always\n", "`protocol.allow`"),
            ("[gpg]\nprogram = sh\n", "`gpg.program`"),
            ("[gpg \"ssh\"]\nprogram = sh\n", "`gpg.program`"),
            ("[core]\nattributesFile = x\n", "`core.attributesfile`"),
            ("[core]\neditor = sh\n", "`core.editor`"),
            ("[core]\npager = sh\n", "`core.pager`"),
            ("[merge \"x\"]\ndriver = sh\n", "`merge.driver`"),
            ("[sequence]\neditor = sh\n", "`sequence.editor`"),
            ("[diff]\nexternal = sh\n", "`diff.external`"),
            ("[interactive]\ndiffFilter = sh\n", "`interactive.difffilter`"),
            ("\u{feff}[core]\nbare = true\n", "`\u{feff}[core]`"),
            ("bare\n", "`bare`"),
        ] {
            assert_eq!(suspicious_in_git_config(text.as_bytes(), Some("../../../lib")).as_deref(), Some(odd), "{text}");
        }
        assert!(suspicious_in_git_config(&[0xff, 0xfe], None).is_some());
    }
}
