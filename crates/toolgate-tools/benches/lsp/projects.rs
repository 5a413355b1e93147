//! Real projects, and the servers that are asked about them.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A project and its server.
pub(crate) struct BenchProject {
    pub(crate) server: &'static str,
    pub(crate) command: Vec<String>,
    /// Where the sources are.
    source: PathBuf,
    /// Files to put beside them.
    manifest: (&'static str, &'static str),
    /// A symbol, the file that defines it, and how its line begins.
    pub(crate) symbol: &'static str,
    pub(crate) path: &'static str,
    begins: &'static str,
    pub(crate) language: &'static str,
    /// Variables of the server, beside its own.
    pub(crate) environment: Vec<(String, String)>,
}

const PYPROJECT: (&str, &str) = ("pyproject.toml", "[project]\nname = \"pip\"\nversion = \"1\"\n");
const CARGO_TOML: (&str, &str) = (
    "Cargo.toml",
    "[package]\nname = \"regex-syntax\"\nversion = \"0.8.0\"\nedition = \"2021\"\n[features]\ndefault = [\"std\", \"unicode\"]\nstd = []\nunicode = [\"unicode-age\", \"unicode-bool\", \"unicode-case\", \"unicode-gencat\", \"unicode-perl\", \"unicode-script\", \"unicode-segment\"]\nunicode-age = []\nunicode-bool = []\nunicode-case = []\nunicode-gencat = []\nunicode-perl = []\nunicode-script = []\nunicode-segment = []\narbitrary = []\n",
);

/// The projects whose servers are installed here.
pub(crate) fn installed() -> Vec<BenchProject> {
    let servers = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().join("target/language-servers");
    let program = |path: &str| Some(servers.join(path)).filter(|path| path.is_file());
    let pip = std::fs::read_dir(servers.join("python/lib")).ok().and_then(|mut versions| {
        Some(versions.next()?.ok()?.path().join("site-packages/pip")).filter(|path| path.is_dir())
    });
    let python = |server, program: Option<PathBuf>, arguments: &[&str]| {
        Some(BenchProject {
            server,
            command: words(&program?, arguments),
            source: pip.clone()?,
            manifest: PYPROJECT,
            symbol: "InstallationError",
            path: "source/_internal/exceptions.py",
            begins: "class InstallationError",
            language: "python",
            environment: Vec::new(),
        })
    };
    let found = [
        python("ty", program("python/bin/ty"), &["server"]),
        python("pyright", program("node_modules/.bin/pyright-langserver"), &["--stdio"]),
        rust(),
    ];
    found.into_iter().flatten().collect()
}

fn words(program: &Path, arguments: &[&str]) -> Vec<String> {
    [program.display().to_string()].into_iter().chain(arguments.iter().map(|word| (*word).to_owned())).collect()
}

fn rust() -> Option<BenchProject> {
    let said = Command::new("rustup").args(["which", "rust-analyzer"]).output().ok()?;
    let program = PathBuf::from(String::from_utf8(said.stdout).ok()?.trim());
    let bin = program.parent().filter(|_| program.is_file())?.display().to_string();
    let registry = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let registry = registry.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")))?;
    let crates = std::fs::read_dir(registry.join("registry/src")).ok()?.flatten();
    let source =
        crates.flat_map(|index| std::fs::read_dir(index.path()).into_iter().flatten().flatten()).find(|one| {
            one.file_name().to_string_lossy().starts_with("regex-syntax-0.8")
                && one.path().join("src/ast/mod.rs").is_file()
        })?;
    let path = format!("{bin}:/usr/bin:/bin");
    let variables = [("CARGO", format!("{bin}/cargo")), ("RUSTC", format!("{bin}/rustc")), ("PATH", path)];
    Some(BenchProject {
        server: "rust-analyzer",
        command: words(&program, &[]),
        source: source.path().join("src"),
        manifest: CARGO_TOML,
        symbol: "Span",
        path: "src/ast/mod.rs",
        begins: "pub struct Span",
        language: "rust",
        environment: variables.map(|(name, value)| (name.to_owned(), value)).to_vec(),
    })
}

impl BenchProject {
    /// The configuration under which the gate uses this server.
    pub(crate) fn config(&self) -> String {
        let variables: Vec<String> =
            self.environment.iter().map(|(name, value)| format!("{name} = '{value}'")).collect();
        let (server, command, variables) = (self.server, &self.command, variables.join(", "));
        format!("preset = 'full'\n[lsp.servers.{server}]\ncommand = {command:?}\nenv = {{ {variables} }}\n")
    }

    pub(crate) fn copy_to(&self, directory: &Path) {
        let into = directory.join(self.path.split('/').next().unwrap());
        let copied = Command::new("cp").arg("-r").arg(&self.source).arg(into).status().unwrap();
        assert!(copied.success());
        std::fs::write(directory.join(self.manifest.0), self.manifest.1).unwrap();
    }

    fn place(&self) -> (usize, usize) {
        let inner = self.path.split_once('/').unwrap().1;
        let text = std::fs::read_to_string(self.source.join(inner)).unwrap();
        let line = text.lines().position(|line| line.starts_with(self.begins)).expect("the project has the symbol");
        (line, self.begins.len() - self.symbol.len())
    }

    /// The line of the symbol's definition, from 1.
    pub(crate) fn line(&self) -> usize {
        self.place().0 + 1
    }

    /// The position of the symbol's name, as the protocol counts.
    pub(crate) fn position(&self) -> (usize, usize) {
        self.place()
    }
}
