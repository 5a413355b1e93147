//! Makes commands out of the tables: every program with its options, complete, abbreviated, negated and bundled, with
//! values and operands that would do harm if they were taken for something else.

use toolgate_policy::program_options;

use crate::nonsense::Random;
use crate::world::policy;

/// Every program or subcommand that is installed here, with its options; `true` if one takes a value.
pub(crate) struct Grammar {
    programs: Vec<(&'static str, Vec<(&'static str, bool)>)>,
}

/// Programs that only wait, never end, or take seconds to start.
const SLOW: &[&str] = &[
    "npm",
    "pnpm",
    "yarn",
    "pip",
    "pip3",
    "uv",
    "poetry",
    "conda",
    "docker",
    "podman",
    "kubectl",
    "helm",
    "gh",
    "cargo",
    "rustup",
    "terraform",
    "node",
    "nodejs",
    "systemctl",
    "journalctl",
    "aws",
    "gem",
    "bundle",
    "go",
    "systemd-analyze",
    "yes",
    "sleep",
    "watch",
    "top",
    "vmstat",
    "iostat",
    "mpstat",
    "pidstat",
    "sar",
    "suspend",
    "fg",
];

const BUILTINS: &[&str] = &[
    "[", "test", "echo", "printf", "command", "type", "read", "declare", "export", "local", "unset", "cd", "pwd",
    "set", "trap", "shopt", "hash", "alias", "jobs", "umask", "ulimit", "compgen", "mapfile", "getopts", "eval",
    "exec", "builtin",
];

const OPERANDS: &[&str] = &[
    "a.txt",
    "b.txt",
    "a.tar",
    "a.tgz",
    "a.txt.gz",
    "a.txt.bz2",
    "b.txt.xz",
    "a.o",
    "a.a",
    "a.json",
    "p",
    "f",
    "list",
    "src",
    ".",
    "src/main.rs",
    "HEAD",
    "HEAD~1",
    "main",
    "v1.0",
    "HEAD:a.txt",
    "*",
    "*.txt",
    "src/*",
    "-",
    "--",
    "./evil",
    "evil",
    "@opts",
    "out",
    "sub/out",
    "out.txt",
    "$x",
    "\"$x\"",
    "\"$y\"",
    "$(head -1 f)",
    "'s/o/x/'",
    "1,3p",
    "'w out'",
    "'{print $1}'",
    "one",
    "refs/heads/main",
    "/etc/passwd",
    "../project/a.txt",
    "core",
    "user.name",
    "-v",
    "5",
    "x=1",
    "'a[$(./evil)]'",
    "'--output=out'",
    "-exec ./evil ';'",
    "-delete",
    "-name '*.txt'",
];

const VALUES: &[&str] = &[
    "./evil",
    "evil",
    "out",
    "sub/out",
    "a.txt",
    "1",
    "5",
    "auto",
    "never",
    "always",
    "@opts",
    "'|./evil'",
    "'!./evil'",
    "exec=./evil",
    "x",
    "%H",
    "list",
    "'*'",
    "/tmp/out",
    "../out",
    "core.pager=./evil",
    "-",
];

const WRAPPERS: &[&str] = &[
    "command",
    "env",
    "env -i",
    "nice",
    "nice -n 5",
    "nohup",
    "timeout 5",
    "stdbuf -oL",
    "setsid -w",
    "time",
    "builtin",
    "exec",
    "xargs",
    "printf '%s\\n' a.txt | xargs",
    "find . -maxdepth 1 -name '*.txt' | xargs",
    "git ls-files | xargs",
    "command -p",
    "command -v",
    "echo",
    "type",
    "!",
    "ionice -c 3",
    "taskset 0x1",
    "bash -c '#'",
    "env A=1",
];

impl Grammar {
    pub(crate) fn new() -> Self {
        let is_here = |name: &str| {
            let program = name.split(' ').next().unwrap_or(name);
            BUILTINS.contains(&program) || !SLOW.contains(&program) && is_installed(program)
        };
        let programs = program_options().into_iter().filter(|(name, _)| is_here(name));
        Self { programs: programs.map(|(name, options)| (name, options.into_iter().collect())).collect() }
    }

    /// How many programs and subcommands it makes commands of.
    pub(crate) fn size(&self) -> usize {
        self.programs.len()
    }

    /// One command line.
    pub(crate) fn command(&self, random: &mut Random) -> String {
        let first = self.simple(random);
        match random.below(12) {
            0 => format!("{first} | {}", self.simple(random)),
            1 => format!("{first}; {}", self.simple(random)),
            2 => format!("{first} && {} 2>&1", self.simple(random)),
            3 => format!("for i in *; do {first} \"$i\"; done"),
            4 => format!("{} {first}", pick(random, WRAPPERS)),
            5 => test(random),
            _ => first,
        }
    }

    fn simple(&self, random: &mut Random) -> String {
        let (name, options) = &self.programs[random.below(self.programs.len())];
        let mut words = vec![(*name).to_owned()];
        if *name == "tar" && random.below(2) == 0 {
            words.push(letters(random, "txcvzfIOCTXrukp"));
        }
        for _ in 0..random.below(4) {
            match random.below(3) {
                0 => words.push(pick(random, OPERANDS).to_owned()),
                _ if options.is_empty() => {}
                _ => words.push(option(random, options)),
            }
        }
        for _ in 0..random.below(3) {
            words.push(pick(random, OPERANDS).to_owned());
        }
        words.join(" ")
    }
}

/// All examples of the tables, which are commands as well.
pub(crate) fn examples() -> Vec<String> {
    let examples = policy("").examples().into_iter();
    examples.filter(|result| result.name.rule.starts_with("known: ")).map(|result| result.example).collect()
}

fn is_installed(program: &str) -> bool {
    ["/usr/bin", "/bin", "/usr/sbin", "/sbin"]
        .iter()
        .any(|directory| std::path::Path::new(directory).join(program).exists())
}

fn pick<'a>(random: &mut Random, from: &[&'a str]) -> &'a str {
    from[random.below(from.len())]
}

fn letters(random: &mut Random, from: &str) -> String {
    let from: Vec<char> = from.chars().collect();
    (0..=random.below(4)).map(|_| from[random.below(from.len())]).collect()
}

/// An option: complete, abbreviated, negated or bundled with others, with or without a value.
fn option(random: &mut Random, options: &[(&str, bool)]) -> String {
    let (name, takes_value) = options[random.below(options.len())];
    let mut name = name.to_owned();
    if let Some(long) = name.strip_prefix("--") {
        match random.below(6) {
            0 => name = format!("--no-{long}"),
            1 | 2 if long.is_ascii() && long.len() > 1 => name = format!("--{}", &long[..1 + random.below(long.len())]),
            _ => {}
        }
    } else if name.len() == 2 && random.below(3) == 0 {
        let shorts = options.iter().filter(|(other, _)| other.len() == 2).map(|(other, _)| &other[1..]);
        let shorts: Vec<&str> = shorts.collect();
        (0..random.below(3)).for_each(|_| name.push_str(shorts[random.below(shorts.len())]));
    }
    match (takes_value, random.below(3)) {
        (true, 0) => format!("{name}={}", pick(random, VALUES)),
        (true, 1) => format!("{name} {}", pick(random, VALUES)),
        (true, _) if !name.starts_with("--") => format!("{name}{}", pick(random, VALUES)),
        (false, 0) if name.starts_with("--") => format!("{name}={}", pick(random, VALUES)),
        _ => name,
    }
}

/// A test, whose words may become operators.
fn test(random: &mut Random) -> String {
    const WORDS: &[&str] = &[
        "$x",
        "\"$x\"",
        "$y",
        "\"$y\"",
        "\"$(head -1 f)\"",
        "$(head -1 f)",
        "-v",
        "-n",
        "-z",
        "-f",
        "-R",
        "!",
        "=",
        "!=",
        "-eq",
        "-a",
        "-o",
        "a.txt",
        "HOME",
        "*",
        "\"$@\"",
        "'a[$(./evil)]'",
        "1",
        "(",
        ")",
        "-nt",
        "${x}",
        "\"${x:-y}\"",
        "${#x}",
        "$#",
    ];
    let words: Vec<&str> = (0..=random.below(5)).map(|_| pick(random, WORDS)).collect();
    match random.below(4) {
        0 => format!("test {}", words.join(" ")),
        1 => format!("[[ {} ]]", words.join(" ")),
        2 => format!("if [ {} ]; then echo yes; fi", words.join(" ")),
        _ => format!("[ {} ]", words.join(" ")),
    }
}
