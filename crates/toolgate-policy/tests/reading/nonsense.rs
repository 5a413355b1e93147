//! Commands that nobody would type: random, mutated, very long, deeply nested. None may make the parser fail, loop or
//! overflow its stack.

use toolgate_policy::Policy;

use crate::world::{commands, judge, policy};

/// A seeded generator, so that every failing input can be reproduced.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub(crate) fn below(&mut self, most: usize) -> usize {
        usize::try_from(self.next() % most.max(1) as u64).unwrap_or(0)
    }
}

/// Tokens with a meaning to a shell.
const SIGNS: &[&str] = &[
    "'",
    "\"",
    "`",
    "$",
    "$(",
    "${",
    "$((",
    "((",
    "))",
    ")",
    "(",
    "{",
    "}",
    "[[",
    "]]",
    "[",
    "]",
    "<<EOF\n",
    "<<<",
    "<(",
    ">",
    ">>",
    "<",
    "|",
    "||",
    "&&",
    "&",
    ";",
    ";;",
    "\n",
    "\\",
    "\\\n",
    "#",
    "!",
    "~",
    "*",
    "?",
    "=",
    "+=",
    "if ",
    "then ",
    "fi ",
    "for i in ",
    "do ",
    "done ",
    "case x in ",
    "esac ",
    "while ",
    "function ",
    "time ",
    "coproc ",
    "eval ",
    "sh -c ",
    "xargs ",
    "sudo ",
    "env ",
    "-",
    "--",
    "rm -rf /",
    "${x@P}",
    "${!x}",
    "$'\\x41'",
    "{a,b}",
    "{1..9}",
    "é",
    "\u{200b}",
    "\r",
    "\0",
    " ",
    "\t",
    "2>&1",
    "EOF\n",
];

pub(crate) fn mutated(random: &mut Random, seeds: &[String]) -> String {
    let mut text = seeds[random.below(seeds.len())].clone();
    for _ in 0..=random.below(4) {
        let ends: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
        let at = ends[random.below(ends.len())];
        match random.below(4) {
            0 => text.insert_str(at, SIGNS[random.below(SIGNS.len())]),
            1 => {
                let other = &seeds[random.below(seeds.len())];
                text.insert_str(at, other);
            }
            2 => text.truncate(at),
            _ => {
                let end = ends[random.below(ends.len())];
                text.replace_range(at.min(end)..at.max(end), "");
            }
        }
    }
    text
}

fn nonsense(random: &mut Random) -> String {
    (0..random.below(30)).map(|_| SIGNS[random.below(SIGNS.len())]).collect()
}

/// How many inputs to try: a few by default, as many as `TOOLGATE_FUZZ` says in a longer run.
fn rounds() -> usize {
    std::env::var("TOOLGATE_FUZZ").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(20_000)
}

fn try_out(policy: &Policy, command: &str) {
    let verdict = judge(policy, command);
    let explained = policy.explain(command, ".");
    let told = verdict.confined || explained.fault.is_none();
    assert!(told, "what can't be read must be confined: {command:?}");
}

#[test]
fn random_and_mutated_commands_are_answered() {
    let (policy, seeds) = (policy(""), commands());
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for _ in 0..rounds() {
        let command = if random.below(4) == 0 { nonsense(&mut random) } else { mutated(&mut random, &seeds) };
        try_out(&policy, &command);
    }
}

#[test]
fn endless_and_bottomless_commands_are_answered() {
    let policy = policy("");
    let repeated = [
        "(",
        ")",
        "{ ",
        "$(",
        "`",
        "\"$(",
        "'",
        "\"",
        "${x:-",
        "$((",
        "((",
        "[[ ",
        "if ",
        "if true; then ",
        "for i in a; do ",
        "while ",
        "case x in x) ",
        "f() { ",
        "<(",
        "a; ",
        "a | ",
        "a && ",
        "a\n",
        "sh -c '",
        "eval ",
        "sudo ",
        "env ",
        "xargs ",
        "{a,b}",
        "{1..9}",
        "<<E ",
        "cat <<E\nE\n",
        "a=1 ",
        "> f ",
        "\\\n",
        "* ",
        "!",
        "time ",
        "\\",
        "$x",
        "~/",
        "a[",
        "x=$(",
        "\u{200b}",
    ];
    for piece in repeated {
        for size in [100, 10_000, 100_000, 1_000_000] {
            try_out(&policy, &piece.repeat(size / piece.len() + 1));
        }
    }
}
