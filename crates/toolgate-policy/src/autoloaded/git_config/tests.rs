//! Edits of git's configuration, and what of them is accepted.

use super::{GitConfigJudgement, judge_git_config, suspicious_in_git_config};

const PLAIN: &str = "[core]\n\tbare = false\n[remote \"origin\"]\n\turl = https://example.com/a.git\n\
                     \tfetch = +refs/heads/*:refs/remotes/origin/*\n[branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n";

/// What an edit comes to: the accepted text, and the refused settings.
fn judged(old: &str, new: &str) -> (String, Vec<String>) {
    let GitConfigJudgement { accepted, refused } = judge_git_config(old.as_bytes(), new.as_bytes(), None, &[]).unwrap();
    (String::from_utf8(accepted).unwrap(), refused)
}

#[test]
fn what_git_writes_by_itself_is_ordinary() {
    for text in [
        "",
        "[core]\n\tworktree = ../../../lib\n",
        "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n",
        "[remote \"origin\"]\n\turl = /work/space\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n[branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n",
        "# mine\n[user]\nname = Ada\nemail=a@example.com ; here\n[advice]\n\tdetachedHead = false\n[submodule \"lib\"]\n\tactive = true\n\turl = https://example.com/lib.git\n\tupdate = checkout\n",
        "[remote \"a\"]\n\turl = \"../with#sign\"\n[remote \"b\"]\n\turl = git@example.com:a/b.git\n[extensions]\n\trefStorage = reftable\n",
        "[rerere]\n\tenabled = true\n[core]\n\tlongpaths = true\n\tsparseCheckout = true\n\tsparseCheckoutCone = true\n[index]\n\tsparse = false\n",
        "[submodule.x]\nupdate = none\n[core]bare\n",
        "[user]\nname = \"a \\\"b\\\" \\\n  c\"\n",
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
        ("[includeIf \"gitdir:/\"]\npath = x\n", "`includeif.gitdir:/.path`"),
        ("[alias]\nst = !sh\n", "`alias.st`"),
        ("[filter \"x\"]\nsmudge = sh\n", "`filter.x.smudge`"),
        ("[diff \"x\"]\ntextconv = sh\n", "`diff.x.textconv`"),
        ("[remote \"o\"]\nurl = ext::sh -c x\n", "`remote.o.url`"),
        ("[remote \"o\"]\nuploadpack = sh\n", "`remote.o.uploadpack`"),
        ("[core] fsmonitor = ./evil\n", "`core.fsmonitor`"),
        ("[core]fsmonitor=./evil", "`core.fsmonitor`"),
        ("[core][user]\nname = x\n[core]\n\r\nfsmonitor = y\r\n", "`core.fsmonitor`"),
        ("[user]\nname = a\\\n[core]\nfsmonitor = x\n", "`user.fsmonitor`"),
        ("[user]\nname = a # \\\n[core]\nfsmonitor = x\n", "`core.fsmonitor`"),
        ("[submodule \"x\"]\nupdate = !sh\n", "`submodule.x.update`"),
        ("[submodule \"x\"]\nupdate = \"!touch x\"\n", "`submodule.x.update`"),
        ("[submodule \"x\"]\nupdate = \"\"!touch\n", "`submodule.x.update`"),
        ("[submodule \"x\"]\nupdate = \\\n!touch\n", "`submodule.x.update`"),
        ("[submodule \"x\"]\nurl = foo://x\n", "`submodule.x.url`"),
        ("[branch \"x\"]\nremote = \"ext::sh\"\n", "`branch.x.remote`"),
        ("[submodule.x]\nupdate = !sh\n", "`submodule.x.update`"),
        ("[credential]\nhelper = sh\n", "`credential.helper`"),
        ("[credential \"https://x\"]\nhelper = sh\n", "`credential.https://x.helper`"),
        ("[url \"ext::sh \"]\ninsteadOf = https://\n", "`url.ext::sh .insteadof`"),
        ("[remote \"o\"]\nreceivepack = sh\n", "`remote.o.receivepack`"),
        ("[remote \"o\"]\nvcs = ext\n", "`remote.o.vcs`"),
        ("[protocol \"ext\"]\nallow = always\n", "`protocol.ext.allow`"),
        ("[gpg]\nprogram = sh\n", "`gpg.program`"),
        ("[gpg \"ssh\"]\nprogram = sh\n", "`gpg.ssh.program`"),
        ("[core]\nattributesFile = x\n", "`core.attributesfile`"),
        ("[core]\neditor = sh\n", "`core.editor`"),
        ("[core]\npager = sh\n", "`core.pager`"),
        ("[merge \"x\"]\ndriver = sh\n", "`merge.x.driver`"),
        ("[sequence]\neditor = sh\n", "`sequence.editor`"),
        ("[diff]\nexternal = sh\n", "`diff.external`"),
        ("[interactive]\ndiffFilter = sh\n", "`interactive.difffilter`"),
    ] {
        assert_eq!(suspicious_in_git_config(text.as_bytes(), Some("../../../lib")).as_deref(), Some(odd), "{text}");
    }
    for text in [
        "\u{feff}[core]\nbare = true\n",
        "bare\n",
        "[core\nbare\n",
        "[core]\nbare true\n",
        "[user]\nname = \"a\n",
        "[user]\nname = \"\\x21touch\"\n",
        "[]\nbare\n",
        "[a.b \"c\"]\nd\n",
        "[core]\nbare\0\n",
    ] {
        assert!(suspicious_in_git_config(text.as_bytes(), None).is_some_and(|odd| !odd.contains('`')), "{text}");
    }
    assert!(suspicious_in_git_config(&[0xff, 0xfe], None).is_some());
}

#[test]
fn settings_that_were_there_before_are_nobodys_edit() {
    let old = format!("{PLAIN}[alias]\n\tst = !sh # mine\n[core]\n\thooksPath = .husky\n");
    let new = format!("{old}[branch \"new\"]\n\tremote = origin\n\tmerge = refs/heads/new\n");
    assert_eq!(judged(&old, &new), (new.clone(), vec![]), "what git added lands as git wrote it");
    assert_eq!(judged(&new, &old), (old.clone(), vec![]));
}

#[test]
fn the_harmless_part_of_an_edit_is_applied_without_the_rest() {
    let new = PLAIN.replace("bare = false", "bare = false\n\tfsmonitor = ./evil\n\tlongpaths = true")
        + "[rerere]\n\tenabled = true\n[alias]\n\tx = !sh\n[remote \"fork\"]\n\turl = https://example.com/fork.git\n\tpushurl = ../x\n";
    let (accepted, refused) = judged(PLAIN, &new);
    assert_eq!(refused, ["alias.x", "core.fsmonitor", "remote.fork.pushurl"]);
    let expected = PLAIN.replace("[core]\n", "[core]\n\tlongpaths = true\n")
        + "[remote \"fork\"]\n\turl = https://example.com/fork.git\n[rerere]\n\tenabled = true\n";
    assert_eq!(accepted, expected);
    assert_eq!(judged(PLAIN, &accepted), (accepted.clone(), vec![]), "what was accepted is accepted again");
}

#[test]
fn where_a_push_goes_does_not_change() {
    let evil = |key: &str| vec![key.to_owned()];
    for (new, refused) in [
        (PLAIN.replace("https://example.com/a.git", "https://evil.example/a.git"), evil("remote.origin.url")),
        (PLAIN.replace("\tfetch", "\turl = https://evil.example/a.git\n\tfetch"), evil("remote.origin.url")),
        (PLAIN.replace("\tfetch", "\tpushurl = https://evil.example/a.git\n\tfetch"), evil("remote.origin.pushurl")),
        (
            format!("{PLAIN}[url \"https://evil\"]\n\tpushInsteadOf = https://example.com\n"),
            evil("url.https://evil.pushinsteadof"),
        ),
        (format!("{PLAIN}[remote]\n\tpushDefault = x\n"), evil("remote.pushdefault")),
        (format!("{PLAIN}[branch \"main\"]\n\tpushRemote = x\n"), evil("branch.main.pushremote")),
        (PLAIN.replace("remote = origin", "remote = ../x"), evil("branch.main.remote")),
        (
            PLAIN[..PLAIN.find("[remote").unwrap()].to_owned(),
            vec!["remote.origin.fetch".to_owned(), "remote.origin.url".to_owned()],
        ),
    ] {
        let (accepted, found) = judged(PLAIN, &new);
        assert_eq!(found, refused, "{new}");
        assert!(
            accepted.contains("url = https://example.com/a.git\n\tfetch") && !accepted.contains("evil"),
            "{accepted}"
        );
    }
}

#[test]
fn values_are_written_so_that_git_reads_them_back() {
    let new = "[user]\n\tname = \"A; \\\"B\\\" \\\\ \"\n[alias]\n\tx = y\n[branch \"a\\\"b\"]\n\tdescription = one\\ntwo\n[advice]\n\tx\n";
    let (accepted, refused) = judged("", new);
    assert_eq!(refused, ["alias.x"]);
    let expected =
        "[advice]\n\tx\n[branch \"a\\\"b\"]\n\tdescription = \"one\\ntwo\"\n[user]\n\tname = \"A; \\\"B\\\" \\\\ \"\n";
    assert_eq!(accepted, expected);
    assert_eq!(judged(expected, &format!("{expected}[alias]\n\tx = y\n")).0, expected);
}

#[test]
fn removed_settings_take_an_empty_section_along() {
    let (accepted, refused) = judged(&format!("{PLAIN}[rerere]\n\tenabled = true\n[alias]\n\tx = y\n"), PLAIN);
    assert_eq!((accepted, refused), (format!("{PLAIN}[alias]\n\tx = y\n"), vec!["alias.x".to_owned()]));
}
