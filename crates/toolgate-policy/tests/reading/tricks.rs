//! Commands that were found to look like something that they are not.

use toolgate_contract::Decision::{Allow, Deny};

use crate::world::{judge, policy, word};

#[test]
fn none_of_these_passes_as_plain_reading() {
    let policy = policy("preset = 'read-only'");
    for command in [
        // Functions that take a program's name, wherever they are defined.
        "ls() { touch pwned; }; ls",
        "ls() { touch pwned; }; false && ls() { :; }; ls",
        "for i in *; do ls; ls() { touch pwned; }; done",
        "trap ls EXIT; ls() { touch pwned; }",
        "command_not_found_handle() { touch pwned; }; lsd",
        // Variables that don't keep the value that they appear to have.
        "x=touch; f() { local x=ls; }; f; $x pwned",
        "x=ls; f() { x='touch pwned'; }; while true; do $x; f; done",
        "for d in a b; do cat shadow; \\cd /etc; done",
        "x=/dev/null; f() { ls > $x; }; x=pwned f",
        "x=ls; x=touch eval '$x pwned'",
        "readonly x='touch pwned'\nx=ls\n$x",
        "OPTARG=ls; getopts a: x -a 'touch pwned'; $OPTARG",
        // Expansions that run code.
        "echo ${x:-<(touch pwned)}",
        "echo \"$\\\n(touch pwned)\"",
        "cat <<EOF\nEO\\\nF\ntouch pwned\nEOF",
        "[[ 'a[$(touch pwned)]' -eq 0 ]]",
        "x='a[$(touch pwned)]'; [[ x -eq 0 ]]",
        "[[ -v 'a[$(touch pwned)]' ]]",
        "for ((i=0;i<$(touch pwned;echo 1);i++)); do :; done",
        "read 'x[$(touch pwned)]' <<< 1",
        "declare -a 'x=($(touch pwned))'",
        // A script that isn't where it appears to be.
        "bash -c - 'touch pwned'",
        "bash -c +x 'touch pwned'",
        "echo ls | bash < evil.sh",
        "bash <<< ls < evil.sh",
        "set -o keyword; git diff --no-index GIT_EXTERNAL_DIFF=x a b",
        "sh -c '[[ a > pwned ]]'",
        // Patterns that look like text.
        "cat .[\"e\"]nv",
        "cat .[]e]nv",
        "cat .en{v..v..1}",
        "echo '\"-o\" pwned a.txt' | xargs sort",
        // Programs inside programs.
        "sed 'y/[/x/;s/.*/touch pwned/e;s/]/]/' a.txt",
        "sed 's/[\\]/x/;s/.*/touch pwned/e;s/]/y/' a.txt",
        "sed ':x e touch pwned' a.txt",
        "awk 'BEGIN{print /\"/;system(\"touch pwned\");y=\"\"} #\"'",
        "awk 'BEGIN{print \"a\",\n\"b\" > \"pwned\"}'",
        "OPENSSL_CONF=x openssl version",
        "POSIXLY_CORRECT=1 grep S a.txt -e .env",
        // A flag that belongs to the inner command.
        "command rm -v a",
        "command bash evil -v",
        "command git push -v",
        "command rm a -V",
        "node evil.js --check",
        "cargo run evil --help",
        "pytest --version",
        // Abbreviated and negated options, the last one counts.
        "git apply --stat --appl p",
        "git config --remove-s core",
        "git apply --check --no-check p",
        "git apply --check --no-chec p",
        "git format-patch --stdout --no-stdout HEAD",
        "git clean -n --no-dry-run",
        "xz -t --compr f",
        "sort a --outp=b",
        "tar --list -f a.tar --use-comp=./evil",
        // Old-style bundles.
        "tar tfI a.tar ./evil",
        "tar tIf ./evil a.tar",
        // Files that hold more options.
        "nm @opts",
        "objdump -d @opts",
        "strings @opts",
        "ar t @opts",
        "nm *",
        "ptx -G a out",
        "ptx --traditional a out",
        // Unquoted expansions in tests.
        "[ $x ]",
        "test $(head -1 f)",
        "[ -n $x ]",
        "[ * ]",
        "[ \"$a\" \"$b\" ]",
        "[ ! \"$a\" \"$b\" ]",
        "test \"${a[@]}\"",
        "[[ -v $x ]]",
        "[[ $x -eq 1 ]]",
        "unset \"$x\"",
        "declare -a y=\"$x\"",
        "date $(cat f)",
        // Values that may bring options with them.
        "sort -k $k a.txt",
        "git show --unheard --output=pwned",
        "for i in *; do git log --author \"$i\"; done",
        // The position of an option counts.
        "unix2dos f -i",
        "unzip a.zip -l",
        "terraform fmt a.tf -check",
        // A name that only bash knows.
        "ls > >()rm",
        "ls > a>(cat)",
        "find . -name *",
        "find . -name -del*",
        // Files of the name `-`, and options that write without naming a file.
        "cp a.txt -",
        "tee -",
        "mkdir -",
        "gawk -d '{print}' a.txt",
        "gawk -o '{print}' a.txt",
        "file -p a.txt",
        "wdiff a.txt b.txt",
        "openssl req -new -subject",
        "openssl enc -aes-256-cbc",
        "for i in *; do 7z t a.tar \"$i\"; done",
    ] {
        let verdict = judge(&policy, command);
        assert_eq!(verdict.decision, Deny, "{command}: {}", verdict.decided_by.reason);
    }
}

#[test]
fn these_are_denied_everywhere() {
    let policy = policy("");
    for command in [
        "rm() { :; }; command rm -rf /",
        "rm() { :; }; find / -exec rm -rf {} +",
        "unset -f rm; rm -rf ~",
        "git() { :; }; command git push --force",
        "bash -c - 'rm -rf /'",
        "bash +x -c 'rm -rf /'",
        "find / -delete -name x",
        "find / -name x , -delete",
        "echo x >> .git/c*g",
        "sed -i s/a/b/ .git/conf*",
        "cat /etc/shad?w",
        "rm -rf ${HOME:?}",
        "rm -rf ${HOME:-x}",
        "f() { rm -rf \"$1\"; }; f /",
        "cd /tmp/foo || return; rm -rf *",
        "curl file:///etc/shadow",
        "for i in /*; do rm -rf $i; done",
    ] {
        let verdict = judge(&policy, command);
        assert_eq!(verdict.decision, Deny, "{command}: {}", verdict.decided_by.reason);
    }
}

#[test]
fn everyday_reading_is_no_alarm() {
    let policy = policy("preset = 'read-only'");
    for command in [
        "cat *",
        "stat -c '%s %n' *.txt",
        "for f in src/*.rs; do wc -l \"$f\"; done",
        "for f in *.rs; do head -5 \"$f\"; done",
        "git ls-files | while read -r f; do wc -l \"$f\"; done",
        "find src -name '*.rs' | while read f; do head -1 \"$f\"; done",
        "jq '.payload' a.json",
        "jq '.environment.name' a.json",
        "jq '.devDependencies[\"dotenv\"]' package.json",
        "GIT_PAGER=cat git log -3",
        "PAGER=cat git diff",
        "for ((i=0;i<3;i++)); do echo $i; done",
        "[[ -f a.txt && 3 -gt 2 ]] && echo yes",
        "set -euo pipefail; ls | head",
        "command -v git",
        "command -pv git",
        "command ls -v",
        "[ -n \"$x\" ] && echo set",
        "[ \"$x\" = y ] || echo no",
        "[ \"$(head -1 f)\" = y ] && echo yes",
        "[ -z \"$x\" -a -f a.txt ] && echo yes",
        "test -v HOME && echo yes",
        "tar tf a.tar",
        "tar tvfz a.tar",
        "git apply --check p",
        "git apply --no-check --check p",
        "git log --no-merges --no-color -5",
        "git diff --no-ext-diff --no-textconv",
        "ls --colo=never --almost",
        "sort --rev a.txt",
    ] {
        let verdict = judge(&policy, command);
        assert_eq!(verdict.decision, Allow, "{command}: {} {}", word(&verdict), verdict.decided_by.reason);
    }
}

#[test]
fn what_grows_without_end_is_cut_short() {
    let policy = policy("");
    let doubled = format!("x=aaaaaaaa{}", "; x=\"$x$x\"".repeat(40));
    let loops = "for a in {1..60}; do for b in {1..60}; do for c in {1..60}; do x=1; done; done; done".to_owned();
    let calls: String = (0..15).map(|n| format!("f{} () {{ f{n}; f{n}; f{n}; f{n}; }}; ", n + 1)).collect();
    judge(&policy, &doubled);
    for command in [loops, format!("f0 () {{ x=1; }}; {calls} f15")] {
        assert_ne!(word(&judge(&policy, &command)), "allow", "{}", &command[..40]);
    }
}
