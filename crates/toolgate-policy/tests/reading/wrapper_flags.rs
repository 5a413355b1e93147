//! A flag behind the command that a wrapper runs belongs to that command: it changes nothing about the wrapper.

use toolgate_contract::Decision::Deny;

use crate::world::{judge, policy};

/// Wrappers, and builtins that run a command; `{command}` is the command.
const WRAPPERS: &[&str] = &[
    "command {command}",
    "command -p {command}",
    "builtin {command}",
    "exec {command}",
    "exec -a x {command}",
    "time {command}",
    "/usr/bin/time -p {command}",
    "env {command}",
    "env -i A=1 {command}",
    "env -u A {command}",
    "nice {command}",
    "nice -n 5 {command}",
    "ionice -c 3 {command}",
    "nohup {command}",
    "timeout 5 {command}",
    "timeout -s KILL 5 {command}",
    "stdbuf -oL {command}",
    "setsid {command}",
    "setsid -w {command}",
    "chrt -b 0 {command}",
    "taskset -c 0 {command}",
    "taskset 0x1 {command}",
    "xargs {command}",
    "xargs -n 1 {command}",
    "xargs -I{} {command}",
    "sudo {command}",
    "sudo -u me {command}",
    "doas {command}",
    "runuser -u me {command}",
    "runuser -u me -- {command}",
    "pkexec {command}",
    "gosu me {command}",
    "chroot . {command}",
    "nsenter -t 1 {command}",
    "unshare -r {command}",
    "bwrap --ro-bind / / {command}",
    "firejail {command}",
    "systemd-run --user {command}",
    "watch {command}",
    "watch -n 1 {command}",
    "watch -x {command}",
    "entr {command}",
    "entr -r {command}",
    "flock a.lock {command}",
    "flock -n a.lock {command}",
    "parallel {command}",
    "strace {command}",
    "strace -f {command}",
    "ltrace {command}",
    "valgrind {command}",
    "perf stat {command}",
    "script -q out {command}",
    "find . -exec {command} ;",
    "find . -exec {command} +",
    "find . -execdir {command} ;",
    "fd x -x {command}",
    "fd x -X {command}",
    "git bisect run {command}",
    "git -C sub bisect run {command}",
    "busybox {command}",
    "toybox {command}",
    "npx {command}",
    "poetry run {command}",
    "bundle exec {command}",
    "uv run {command}",
    "rustup run stable {command}",
    "direnv exec . {command}",
    "conda run -n x {command}",
    "linux64 {command}",
    "fakeroot {command}",
    "unbuffer {command}",
    "caffeinate {command}",
    "nocorrect {command}",
    "faketime x {command}",
    "sh -c '{command}'",
    "eval {command}",
    "trap '{command}' EXIT",
];

/// Flags that mean something to one wrapper or another.
const FLAGS: &[&str] = &[
    "-v",
    "-V",
    "-l",
    "-L",
    "-h",
    "-n",
    "-t",
    "-p",
    "-c",
    "-x",
    "-s",
    "-u",
    "-i",
    "-S",
    "-0",
    "-e",
    "-a",
    "-q",
    "-k",
    "-I",
    "--help",
    "--version",
    "--list",
    "--dry-run",
    "--check",
    "--no-act",
    "--stat",
    "--test",
    "--verbose",
    "--null",
    "-print",
    "-help",
    "--args",
    "--command",
    "--exec",
    "--shell",
    "--user",
    "--pid",
    "--",
    "-",
];

#[test]
fn a_flag_behind_the_inner_command_changes_nothing() {
    let (workspace, read_only) = (policy(""), policy("preset = 'read-only'"));
    let (mut tried, mut wrong) = (0, Vec::new());
    for wrapper in WRAPPERS {
        for flag in FLAGS {
            for inner in ["rm -rf / F", "rm -rf F /", "git push --force F", "git push F --force"] {
                tried += 1;
                let command = wrapper.replace("{command}", &inner.replace('F', flag)).replace(';', "';'");
                let verdict = judge(&workspace, &command);
                if verdict.decision != Deny && !is_its_own(&command) {
                    wrong.push(format!("workspace {}: {command}", verdict.decision));
                }
            }
            for inner in ["touch a F", "bash evil F", "tee a F", "git push F"] {
                tried += 1;
                let command = wrapper.replace("{command}", &inner.replace('F', flag)).replace(';', "';'");
                let verdict = judge(&read_only, &command);
                if verdict.decision != Deny && !is_its_own(&command) {
                    wrong.push(format!("read-only {}: {command}", verdict.decision));
                }
            }
        }
    }
    assert!(tried > 20_000, "{tried}");
    let shown: Vec<&String> = wrong.iter().take(60).collect();
    assert!(wrong.is_empty(), "{} of {tried} are misread:\n{shown:#?}", wrong.len());
}

/// Whether the flag makes the inner command harmless: `git push --help` pushes nothing.
fn is_its_own(command: &str) -> bool {
    // What follows `--` are operands, and `git push -- --force` names a repository.
    command.contains("push -- --force")
}
