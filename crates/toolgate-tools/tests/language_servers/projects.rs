//! A small project for each server, in which everything can be asked.

use toolgate_testkit::TestWorkspace;

use crate::world;

/// One language: a server, and a small project in which everything can be asked.
pub(crate) struct Project {
    pub(crate) server: &'static str,
    pub(crate) program: &'static str,
    pub(crate) arguments: &'static [&'static str],
    /// The library, which defines `greet`, and the program, which uses it twice.
    pub(crate) library: (&'static str, &'static str),
    pub(crate) program_file: (&'static str, &'static str),
    pub(crate) others: &'static [(&'static str, &'static str)],
    /// What breaks the program when put in place of the whole file.
    pub(crate) broken: &'static str,
    /// What breaks the program in another file, which of the others or the library it is.
    pub(crate) also_breaks: Option<(&'static str, &'static str)>,
    /// Tools to which it has no answer.
    pub(crate) lacks: &'static [&'static str],
}

impl Project {
    /// What a file of the project holds at first.
    pub(crate) fn content_of(&self, path: &str) -> &'static str {
        let mut files = [self.library, self.program_file].into_iter().chain(self.others.iter().copied());
        files.find(|(known, _)| *known == path).expect("the project has the file").1
    }
}

const PYTHON_LIBRARY: (&str, &str) =
    ("library.py", "def greet(name: str) -> str:\n    \"\"\"Greets somebody.\"\"\"\n    return \"hello \" + name\n");
const PYTHON_PROGRAM: (&str, &str) =
    ("main.py", "from library import greet\n\n\ndef main() -> None:\n    print(\"🦀\", greet(\"ada\"))\n");
const PYTHON_BROKEN: &str = "from library import greet\n\n\ndef main() -> None:\n    print(\"🦀\", greet(42))\n";
const TYPESCRIPT_LIBRARY: (&str, &str) = (
    "library.ts",
    "/** Greets somebody. */\nexport function greet(name: string): string {\n  return 'hello ' + name;\n}\n",
);
const TYPESCRIPT_PROGRAM: (&str, &str) = (
    "main.ts",
    "import { greet } from './library';\n\nexport function main(): string {\n  return '🦀' + greet('ada');\n}\n",
);
const TYPESCRIPT_BROKEN: &str =
    "import { greet } from './library';\n\nexport function main(): string {\n  return '🦀' + greet(42);\n}\n";
const TSCONFIG: &[(&str, &str)] = &[
    (
        "tsconfig.json",
        "{ \"compilerOptions\": { \"strict\": true, \"module\": \"nodenext\", \"moduleResolution\": \"nodenext\", \"types\": [] }, \"include\": [\"*.ts\"] }\n",
    ),
    ("package.json", "{ \"name\": \"x\" }\n"),
];

const PROJECTS: &[Project] = &[
    Project {
        server: "ty",
        program: "ty",
        arguments: &["server"],
        library: PYTHON_LIBRARY,
        program_file: PYTHON_PROGRAM,
        others: &[("pyproject.toml", "[project]\nname = \"x\"\nversion = \"1\"\n")],
        broken: PYTHON_BROKEN,
        also_breaks: Some(("library.py", "def greet(name: int) -> str:\n    return \"hello\"\n")),
        lacks: &[],
    },
    Project {
        server: "pyright",
        program: "pyright-langserver",
        arguments: &["--stdio"],
        library: PYTHON_LIBRARY,
        program_file: PYTHON_PROGRAM,
        others: &[("pyproject.toml", "[project]\nname = \"x\"\nversion = \"1\"\n")],
        broken: PYTHON_BROKEN,
        also_breaks: Some(("library.py", "def greet(name: int) -> str:\n    return \"hello\"\n")),
        lacks: &[],
    },
    Project {
        server: "basedpyright",
        program: "basedpyright-langserver",
        arguments: &["--stdio"],
        library: PYTHON_LIBRARY,
        program_file: PYTHON_PROGRAM,
        others: &[("pyproject.toml", "[project]\nname = \"x\"\nversion = \"1\"\n")],
        broken: PYTHON_BROKEN,
        also_breaks: Some(("library.py", "def greet(name: int) -> str:\n    return \"hello\"\n")),
        lacks: &[],
    },
    Project {
        server: "typescript-language-server",
        program: "typescript-language-server",
        arguments: &["--stdio"],
        library: TYPESCRIPT_LIBRARY,
        program_file: TYPESCRIPT_PROGRAM,
        others: TSCONFIG,
        broken: TYPESCRIPT_BROKEN,
        also_breaks: Some((
            "library.ts",
            "export function greet(name: number): string {\n  return 'hello ' + name;\n}\n",
        )),
        lacks: &[],
    },
    Project {
        server: "tsc",
        program: "typescript-7/node_modules/.bin/tsc",
        arguments: &["--lsp", "--stdio"],
        library: TYPESCRIPT_LIBRARY,
        program_file: TYPESCRIPT_PROGRAM,
        others: TSCONFIG,
        broken: TYPESCRIPT_BROKEN,
        also_breaks: Some((
            "library.ts",
            "export function greet(name: number): string {\n  return 'hello ' + name;\n}\n",
        )),
        lacks: &[],
    },
    Project {
        server: "clangd",
        program: "clangd",
        arguments: &["--background-index", "--log=error"],
        library: (
            "library.c",
            "#include \"library.h\"\n/* Greets somebody. */\nint greet(int name) { return name + 1; }\n",
        ),
        program_file: ("main.c", "#include \"library.h\"\n\nint run(void) { /* 🦀 */ return greet(1); }\n"),
        others: &[("library.h", "int greet(int name);\n"), ("compile_flags.txt", "-xc\n")],
        broken: "#include \"library.h\"\n\nint run(void) { /* 🦀 */ return greet(1, 2, 3); }\n",
        also_breaks: Some(("library.h", "int greet(int name, int other);\n")),
        lacks: &[],
    },
    Project {
        server: "rust-analyzer",
        program: "rust-analyzer",
        arguments: &[],
        library: (
            "src/library.rs",
            "/// Greets somebody.\npub fn greet(name: &str) -> String {\n    name.to_owned()\n}\n",
        ),
        program_file: (
            "src/main.rs",
            "mod library;\nuse library::greet;\n\nfn main() {\n    let text = (\"🦀\", greet(\"ada\"));\n    drop(text);\n}\n",
        ),
        others: &[("Cargo.toml", "[package]\nname = \"x\"\nversion = \"0.1.0\"\nedition = \"2021\"\n")],
        broken: "mod library;\nuse library::greet;\n\nfn main() {\n    let text = (\"🦀\", greet(\"ada\", 1));\n    drop(text);\n}\n",
        also_breaks: Some(("src/library.rs", "pub fn greet(name: &str, _: u8) -> String {\n    name.to_owned()\n}\n")),
        lacks: &[],
    },
    Project {
        server: "pyrefly",
        program: "pyrefly",
        arguments: &["lsp"],
        library: PYTHON_LIBRARY,
        program_file: PYTHON_PROGRAM,
        others: &[("pyproject.toml", "[project]\nname = \"x\"\nversion = \"1\"\n")],
        broken: PYTHON_BROKEN,
        also_breaks: Some(("library.py", "def greet(name: int) -> str:\n    return \"hello\"\n")),
        lacks: &[],
    },
    Project {
        server: "gopls",
        program: "gopls",
        arguments: &[],
        library: (
            "library.go",
            "package main\n\n// Greets somebody.\nfunc greet(name string) string { return \"hello \" + name }\n",
        ),
        program_file: ("main.go", "package main\n\nfunc main() { println(\"🦀\", greet(\"ada\")) }\n"),
        others: &[("go.mod", "module example.com/x\n\ngo 1.19\n")],
        broken: "package main\n\nfunc main() { println(\"🦀\", greet(42)) }\n",
        also_breaks: Some(("library.go", "package main\n\nfunc greet(name int) string { return \"hello\" }\n")),
        lacks: &[],
    },
    Project {
        server: "bash-language-server",
        program: "bash-language-server",
        arguments: &["start"],
        library: ("library.sh", "#!/bin/bash\n# Greets somebody.\ngreet() {\n  echo \"hello $1\"\n}\n"),
        program_file: (
            "main.sh",
            "#!/bin/bash\n# shellcheck source=library.sh\nsource ./library.sh\necho \"🦀 $(greet \"ada\")\"\n",
        ),
        others: &[],
        broken: "#!/bin/bash\n# shellcheck source=library.sh\nsource ./library.sh\nif true; then\n  greet \"ada\"\n",
        also_breaks: None,
        lacks: &["lsp_calls"],
    },
];

pub(crate) fn project(server: &str) -> Option<(TestWorkspace, &'static Project)> {
    let project = PROJECTS.iter().find(|project| project.server == server).unwrap();
    let world = world(project.server, project.program, project.arguments)?;
    for (path, content) in [project.library, project.program_file].iter().chain(project.others) {
        world.file(path, content);
    }
    Some((world, project))
}
