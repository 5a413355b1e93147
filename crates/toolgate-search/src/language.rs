//! What a file is, by its path: its language, and whether it is code, documentation or a test.

/// How definitions in a language look and where they end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Syntax {
    /// Blocks in braces; definitions begin with a keyword, such as `fn` or `class`.
    Braces,
    /// Blocks in braces; functions begin with their type or name, as in C and Java.
    TypedBraces,
    /// Blocks by indentation.
    Indentation,
    /// Blocks that end in `end`.
    End,
    /// Sections under headings.
    Headings,
    /// Text without known structure.
    Plain,
}

/// A language.
#[derive(Debug)]
pub(crate) struct Language {
    /// Its name, by which a search is limited to it.
    pub(crate) name: &'static str,
    /// Endings of file names, without the dot.
    extensions: &'static [&'static str],
    pub(crate) syntax: Syntax,
    /// What begins a comment that ends with its line.
    pub(crate) line_comment: &'static str,
    /// Words after which a definition's name comes.
    pub(crate) keywords: &'static [&'static str],
}

impl Language {
    const fn new(
        name: &'static str,
        extensions: &'static [&'static str],
        syntax: Syntax,
        line_comment: &'static str,
        keywords: &'static [&'static str],
    ) -> Self {
        Self { name, extensions, syntax, line_comment, keywords }
    }

    /// Whether lines that begin with `#` choose what is compiled.
    pub(crate) fn has_preprocessor(&self) -> bool {
        matches!(self.name, "c" | "cpp" | "csharp")
    }

    /// Whether three quotes begin a string of several lines.
    pub(crate) fn has_tripled_quotes(&self) -> bool {
        matches!(self.name, "java" | "kotlin" | "scala" | "swift" | "csharp" | "dart")
    }

    /// Whether its blocks are in braces.
    pub(crate) fn has_braces(&self) -> bool {
        matches!(self.syntax, Syntax::Braces | Syntax::TypedBraces)
    }

    /// Whether it is JavaScript or TypeScript.
    pub(crate) fn is_script(&self) -> bool {
        matches!(self.name, "javascript" | "typescript")
    }
}

const SCRIPT: &[&str] = &["function", "class", "interface", "enum", "type", "namespace"];
const TYPES: &[&str] = &["class", "struct", "enum", "union", "namespace", "interface", "record", "trait", "concept"];

/// The languages whose definitions are known. The last has none.
pub(crate) static LANGUAGES: &[Language] = &[
    Language::new(
        "rust",
        &["rs"],
        Syntax::Braces,
        "//",
        &["fn", "struct", "enum", "trait", "impl", "mod", "union", "type", "const", "static", "macro_rules!"],
    ),
    Language::new("python", &["py", "pyi", "pyw"], Syntax::Indentation, "#", &["def", "class"]),
    Language::new("javascript", &["js", "jsx", "mjs", "cjs"], Syntax::Braces, "//", SCRIPT),
    Language::new("typescript", &["ts", "tsx", "mts", "cts"], Syntax::Braces, "//", SCRIPT),
    Language::new("go", &["go"], Syntax::Braces, "//", &["func", "type"]),
    Language::new("java", &["java"], Syntax::TypedBraces, "//", TYPES),
    Language::new("c", &["c", "h"], Syntax::TypedBraces, "//", TYPES),
    Language::new("cpp", &["cc", "cpp", "cxx", "hh", "hpp", "hxx", "ipp"], Syntax::TypedBraces, "//", TYPES),
    Language::new("csharp", &["cs"], Syntax::TypedBraces, "//", TYPES),
    Language::new(
        "kotlin",
        &["kt", "kts"],
        Syntax::Braces,
        "//",
        &["fun", "class", "interface", "object", "val", "typealias", "enum"],
    ),
    Language::new(
        "swift",
        &["swift"],
        Syntax::Braces,
        "//",
        &["func", "class", "struct", "enum", "protocol", "extension", "actor"],
    ),
    Language::new("scala", &["scala", "sc"], Syntax::Braces, "//", &["def", "class", "trait", "object", "type"]),
    Language::new(
        "php",
        &["php"],
        Syntax::Braces,
        "//",
        &["function", "class", "interface", "trait", "enum", "namespace"],
    ),
    Language::new(
        "dart",
        &["dart"],
        Syntax::TypedBraces,
        "//",
        &["class", "enum", "mixin", "extension", "type", "typedef"],
    ),
    Language::new("zig", &["zig"], Syntax::Braces, "//", &["fn", "const", "test"]),
    Language::new("ruby", &["rb", "rake"], Syntax::End, "#", &["def", "class", "module"]),
    Language::new("lua", &["lua"], Syntax::End, "--", &["function"]),
    Language::new(
        "elixir",
        &["ex", "exs"],
        Syntax::End,
        "#",
        &["def", "defp", "defmodule", "defmacro", "defmacrop", "defprotocol", "defimpl", "defguard"],
    ),
    Language::new("bash", &["sh", "bash", "zsh"], Syntax::TypedBraces, "#", &["function"]),
    Language::new("css", &["css", "scss", "less"], Syntax::Plain, "", &[]),
    Language::new("html", &["html", "htm", "vue", "svelte"], Syntax::Plain, "", &[]),
    Language::new("sql", &["sql"], Syntax::Plain, "--", &[]),
    Language::new("toml", &["toml"], Syntax::Plain, "#", &[]),
    Language::new("yaml", &["yaml", "yml"], Syntax::Plain, "#", &[]),
    Language::new("json", &["json", "jsonc"], Syntax::Plain, "", &[]),
    Language::new("markdown", &["md", "markdown", "mdx"], Syntax::Headings, "", &[]),
    Language::new("rst", &["rst"], Syntax::Headings, "", &[]),
    Language::new("text", &["txt", "adoc", "org"], Syntax::Plain, "", &[]),
    Language::new("other", &[], Syntax::Plain, "", &[]),
];

/// What a file is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileKind {
    /// Code, and the files that configure and build it.
    Code,
    /// Text for people.
    Docs,
    /// Code that tests other code, and examples of its use.
    Tests,
}

/// The index of a file's language in [`LANGUAGES`].
pub(crate) fn language_of(path: &str) -> usize {
    let name = path.rsplit('/').next().unwrap_or(path);
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension).to_ascii_lowercase();
    let found = LANGUAGES.iter().position(|language| language.extensions.contains(&extension.as_str()));
    let by_name = || match name {
        "Rakefile" | "Gemfile" => LANGUAGES.iter().position(|language| language.name == "ruby"),
        _ => None,
    };
    found.or_else(by_name).unwrap_or(LANGUAGES.len() - 1)
}

/// The index of a language by its name or one of its file endings.
pub(crate) fn language_named(name: &str) -> Option<usize> {
    let name = name.to_ascii_lowercase();
    let name = match name.as_str() {
        "c++" => "cpp",
        "c#" => "csharp",
        "golang" => "go",
        "shell" => "bash",
        other => other,
    };
    LANGUAGES.iter().position(|language| language.name == name || language.extensions.contains(&name))
}

/// What a file is for, by its path.
pub(crate) fn kind_of(path: &str) -> FileKind {
    let lower = path.to_ascii_lowercase();
    let name = lower.rsplit('/').next().unwrap_or(&lower);
    let stem = path.rsplit('/').next().and_then(|name| name.split('.').next()).unwrap_or_default();
    if is_test(&lower, name) || stem.ends_with("Test") || stem.ends_with("Tests") {
        return FileKind::Tests;
    }
    let is_text = matches!(LANGUAGES[language_of(path)].name, "markdown" | "rst" | "text");
    match is_text && name != "cmakelists.txt" && name != "requirements.txt" {
        true => FileKind::Docs,
        false => FileKind::Code,
    }
}

fn is_test(path: &str, name: &str) -> bool {
    const DIRECTORIES: [&str; 9] =
        ["test", "tests", "testing", "__tests__", "spec", "specs", "testdata", "fixtures", "e2e"];
    let stem = name.split('.').next().unwrap_or(name);
    let mut directories = path.rsplit('/').skip(1);
    directories.any(|directory| DIRECTORIES.contains(&directory))
        || ["test_", "tests_"].iter().any(|start| stem.starts_with(start))
        || ["_test", "_tests", "_spec"].iter().any(|end| stem.ends_with(end))
        || [".test.", ".spec."].iter().any(|part| name.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_by_path() {
        for (path, expected) in [
            ("src/app.py", FileKind::Code),
            ("tests/test_app.py", FileKind::Tests),
            ("gin_test.go", FileKind::Tests),
            ("src/app.test.tsx", FileKind::Tests),
            ("src/FooTest.java", FileKind::Tests),
            ("docs/guide.md", FileKind::Docs),
            ("CHANGES.rst", FileKind::Docs),
            ("Cargo.toml", FileKind::Code),
            ("requirements.txt", FileKind::Code),
            // A name such as `latest` only looks like a test.
            ("src/latest.rs", FileKind::Code),
        ] {
            assert_eq!(kind_of(path), expected, "{path}");
        }
    }

    #[test]
    fn languages_by_name_and_ending() {
        assert_eq!(LANGUAGES[language_of("a/B.TSX")].name, "typescript");
        assert_eq!(language_named("rs"), language_named("Rust"));
        assert_eq!(language_named("c++"), Some(language_of("a.cc")));
        assert_eq!(language_named("klingon"), None);
        assert_eq!(LANGUAGES[language_of("Makefile")].name, "other");
    }
}
