//! The commands: one a line in `corpus/*.txt`. A comment `# needs: PROGRAM` is about all lines after it.

use std::path::Path;

/// One command of the corpus.
pub(crate) struct CorpusCommand {
    pub(crate) line: String,
    needs: Option<String>,
}

impl CorpusCommand {
    /// The first program that it can't do without and that isn't here: what the file needs, or the command's own first word.
    pub(crate) fn missing_program(&self) -> Option<&str> {
        const MAY_BE_MISSING: &[&str] = &[
            "bc",
            "bzip2",
            "cargo",
            "curl",
            "ed",
            "file",
            "gcc",
            "gdb",
            "getfattr",
            "inotifywait",
            "ip",
            "jq",
            "make",
            "node",
            "npm",
            "openssl",
            "perl",
            "ping",
            "python3",
            "rg",
            "rsync",
            "rustc",
            "script",
            "setfattr",
            "ssh-keygen",
            "strace",
            "unzip",
            "vim",
            "xxd",
            "xz",
            "zip",
        ];
        let own = self.line.split(' ').find(|word| MAY_BE_MISSING.contains(word));
        self.needs.as_deref().into_iter().chain(own).find(|program| !is_installed(program))
    }
}

/// Every command.
pub(crate) fn read() -> Vec<CorpusCommand> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/differential/corpus");
    let mut files: Vec<_> = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let mut commands = Vec::new();
    for file in files {
        let mut needs = None;
        for line in std::fs::read_to_string(file).unwrap().lines() {
            match line.strip_prefix('#') {
                Some(comment) => needs = comment.trim().strip_prefix("needs: ").map(str::to_owned).or(needs),
                None => commands.push(CorpusCommand { line: line.to_owned(), needs: needs.clone() }),
            }
        }
    }
    commands
}

fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(program).exists())
}
