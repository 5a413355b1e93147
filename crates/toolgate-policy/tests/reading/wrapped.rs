//! A denied command stays denied in every wrapper.

use toolgate_contract::Decision;

use crate::world::{judge, policy, tables};

/// `C` is the command, `Q` the command as one quoted word.
const WRAPPERS: &[&str] = &[
    "(\nC\n)",
    "{\nC\n}",
    "if true; then\nC\nfi",
    "if false; then\nC\nfi",
    "for i in 1 2; do\nC\ndone",
    "while true; do\nC\ndone",
    "until false; do\nC\ndone",
    "case x in x)\nC\n;; esac",
    "f() {\nC\n}; f",
    "true && {\nC\n}",
    "false || {\nC\n}",
    "! {\nC\n}",
    "ls\nC\n",
    "{\nC\n} | cat",
    "cat /dev/null | {\nC\n}",
    "{\nC\n} &",
    "{\nC\n} 2>&1",
    "{\nC\n} || true",
    "echo \"$(\nC\n)\"",
    "echo $(\nC\n)",
    "cat <(\nC\n)",
    "x=$(\nC\n)",
    "time {\nC\n}",
    "RUST_LOG=debug bash -c Q",
    "sh -c Q",
    "bash -c Q",
    "bash -lc Q",
    "/bin/bash -c Q",
    "zsh -c Q",
    "dash -ec Q",
    "eval Q",
    "sudo sh -c Q",
    "sudo -n -u me bash -c Q",
    "doas sh -c Q",
    "su -c Q",
    "env sh -c Q",
    "env -i A=1 B=2 sh -c Q",
    "nice -n 5 sh -c Q",
    "ionice -c 3 sh -c Q",
    "timeout 5 sh -c Q",
    "timeout -s KILL 5s sh -c Q",
    "nohup sh -c Q",
    "setsid sh -c Q",
    "stdbuf -oL sh -c Q",
    "command sh -c Q",
    "exec sh -c Q",
    "builtin eval Q",
    "xargs sh -c Q",
    "ls | xargs -n 1 sh -c Q",
    "find . -exec sh -c Q ';'",
    "find . -name x -execdir bash -c Q +",
    "watch Q",
    "watch -n 1 Q",
    "parallel Q",
    "ssh example.com Q",
    "busybox sh -c Q",
    "strace -f sh -c Q",
    "flock a.lock -c Q",
    "trap Q EXIT",
    "sh -c \"sh -c Q\"",
    "echo Q | sh",
    "printf '%s' Q | bash",
    "sh <<< Q",
    "bash <<'TOOLGATE_END'\nC\nTOOLGATE_END",
    "unshare -r sh -c Q",
    "chroot . sh -c Q",
    "runuser -u me -- sh -c Q",
    "script -c Q",
    "sudo timeout 5 nice env A=1 bash -c Q",
];

fn wrapped(wrapper: &str, command: &str) -> String {
    let quoted = format!("'{}'", command.replace('\'', r"'\''"));
    match wrapper.contains('Q') {
        // Inside double quotes the quoted word would be expanded again.
        true if wrapper.contains("\"sh -c Q\"") => {
            let inner = format!("sh -c {quoted}");
            format!("sh -c '{}'", inner.replace('\'', r"'\''"))
        }
        true => wrapper.replace('Q', &quoted),
        false => wrapper.replace('C', command),
    }
}

#[test]
fn a_denied_command_stays_denied_in_every_wrapper() {
    let policy = policy("");
    let (mut tried, mut wrong) = (0, Vec::new());
    let dangerous = tables().into_iter().filter(|(name, _)| *name == "dangerous").flat_map(|(_, table)| table.commands);
    for row in dangerous.filter(|row| judge(&policy, &row.run).decision == Decision::Deny) {
        for wrapper in WRAPPERS {
            tried += 1;
            let command = wrapped(wrapper, &row.run);
            let verdict = judge(&policy, &command);
            if verdict.decision != Decision::Deny {
                wrong.push(format!("{command:?}\n    {}: {}", verdict.decision, verdict.decided_by.reason));
            }
        }
    }
    assert!(tried > 20_000, "{tried}");
    let shown: Vec<&String> = wrong.iter().take(60).collect();
    assert!(wrong.is_empty(), "{} of {tried} are not denied any more:\n{shown:#?}", wrong.len());
}
