//! Changes of a project's configuration: what a server answers follows from the present one, however late the server itself would
//! notice that it changed.

use serde_json::json;
use toolgate_testkit::TestWorkspace;

use crate::freshness::rounds;
use crate::{payload, world};

/// A project in which a program is right under one configuration and wrong under another.
struct ConfiguredProject {
    server: &'static str,
    program: &'static str,
    arguments: &'static [&'static str],
    /// The program, and other files that stay.
    program_file: &'static str,
    files: &'static [(&'static str, &'static str)],
    /// The configuration, under which the program is right and wrong.
    configuration: &'static str,
    right: &'static str,
    wrong: &'static str,
}

async fn counts(world: &TestWorkspace, path: &str) -> u64 {
    payload(world.perform("lsp_diagnostics", json!({ "path": path, "severity": "error" })).await)["count"]
        .as_u64()
        .unwrap()
}

async fn follows_its_configuration(project: ConfiguredProject) {
    let Some(world) = world(project.server, project.program, project.arguments) else { return };
    for (path, content) in project.files {
        world.file(path, content);
    }
    world.file(project.configuration, project.right);
    assert_eq!(counts(&world, project.program_file).await, 0, "at first");
    for round in 0..rounds().div_ceil(3) {
        world.file(project.configuration, project.wrong);
        assert_ne!(counts(&world, project.program_file).await, 0, "round {round}: the new configuration counts");
        world.file(project.configuration, project.right);
        assert_eq!(counts(&world, project.program_file).await, 0, "round {round}: the old one counts again");
    }
}

/// A Python project whose one mistake a setting hides.
fn python(
    server: &'static str,
    program: &'static str,
    argument: &'static [&'static str],
    [right, wrong]: [&'static str; 2],
) -> ConfiguredProject {
    ConfiguredProject {
        server,
        program,
        arguments: argument,
        program_file: "main.py",
        files: &[("main.py", "x: int = \"a\"\n")],
        configuration: "pyproject.toml",
        right,
        wrong,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ty() {
    let of =
        ["[tool.ty.rules]\ninvalid-assignment = \"ignore\"\n", "[tool.ty.rules]\ninvalid-assignment = \"error\"\n"];
    follows_its_configuration(python("ty", "ty", &["server"], of)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pyright() {
    let of = ["[tool.pyright]\nreportAssignmentType = false\n", "[tool.pyright]\nreportAssignmentType = true\n"];
    follows_its_configuration(python("pyright", "pyright-langserver", &["--stdio"], of)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn basedpyright() {
    let of =
        ["[tool.basedpyright]\nreportAssignmentType = false\n", "[tool.basedpyright]\nreportAssignmentType = true\n"];
    follows_its_configuration(python("basedpyright", "basedpyright-langserver", &["--stdio"], of)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pyrefly() {
    let of = ["[tool.pyrefly.errors]\nbad-assignment = false\n", "[tool.pyrefly.errors]\nbad-assignment = true\n"];
    follows_its_configuration(python("pyrefly", "pyrefly", &["lsp"], of)).await;
}

fn typescript(server: &'static str, program: &'static str, arguments: &'static [&'static str]) -> ConfiguredProject {
    ConfiguredProject {
        server,
        program,
        arguments,
        program_file: "main.ts",
        files: &[("main.ts", "export const x: string = null;\n")],
        configuration: "tsconfig.json",
        right: "{ \"compilerOptions\": { \"strictNullChecks\": false, \"types\": [] } }\n",
        wrong: "{ \"compilerOptions\": { \"strictNullChecks\": true, \"types\": [] } }\n",
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tsc() {
    let program = "typescript-7/node_modules/.bin/tsc";
    follows_its_configuration(typescript("tsc", program, &["--lsp", "--stdio"])).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn typescript_language_server() {
    let name = "typescript-language-server";
    follows_its_configuration(typescript(name, name, &["--stdio"])).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clangd() {
    follows_its_configuration(ConfiguredProject {
        server: "clangd",
        program: "clangd",
        arguments: &["--background-index", "--log=error"],
        program_file: "main.c",
        files: &[("main.c", "#ifndef RIGHT\n#error wrong\n#endif\nint main(void) { return 0; }\n")],
        configuration: "compile_flags.txt",
        right: "-xc\n-DRIGHT\n",
        wrong: "-xc\n",
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn gopls() {
    follows_its_configuration(ConfiguredProject {
        server: "gopls",
        program: "gopls",
        arguments: &[],
        program_file: "main.go",
        files: &[
            ("main.go", "package main\n\nimport \"example.com/x/y\"\n\nfunc main() { y.F() }\n"),
            ("y/y.go", "package y\n\nfunc F() {}\n"),
        ],
        configuration: "go.mod",
        right: "module example.com/x\n\ngo 1.19\n",
        wrong: "module example.com/z\n\ngo 1.19\n",
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rust_analyzer() {
    follows_its_configuration(ConfiguredProject {
        server: "rust-analyzer",
        program: "rust-analyzer",
        arguments: &[],
        program_file: "src/main.rs",
        files: &[("src/main.rs", "#[cfg(feature = \"wrong\")]\npub const X: u8 = \"a\";\n\nfn main() {}\n")],
        configuration: "Cargo.toml",
        right: "[package]\nname = \"x\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[features]\nwrong = []\n[workspace]\n",
        wrong: "[package]\nname = \"x\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[features]\ndefault = [\"wrong\"]\nwrong = []\n[workspace]\n",
    })
    .await;
}
