//! What can be read off one Rust file without a parser: `rustfmt` puts every item's braces where its indentation says.

use std::path::{Path, PathBuf};

/// Names that associated types and derived arguments bear everywhere, so that sharing them says nothing.
const COMMON_NAMES: &[&str] = &["Args", "Output", "Err", "Error", "Item", "Target"];

/// What begins a file's own tests.
const TESTS_BEGIN: &str = "#[cfg(test)]\nmod tests {";

/// A Rust file of a crate.
pub(super) struct SourceFile {
    /// Relative to the repository.
    pub(super) path: PathBuf,
    pub(super) text: String,
}

impl SourceFile {
    pub(super) fn lines(&self) -> usize {
        self.text.lines().count()
    }

    /// Whether it holds only tests.
    pub(super) fn is_tests(&self) -> bool {
        self.path.file_name() == Some(Path::new("tests.rs").as_os_str())
    }

    pub(super) fn without_tests(&self) -> &str {
        self.text.split(TESTS_BEGIN).next().unwrap_or_default()
    }

    pub(super) fn has_module_doc(&self) -> bool {
        self.text.trim_start().starts_with("//!")
    }
}

/// The names of all types that are defined in a text, in order: structs, enums, traits, and types of both kinds.
pub(super) fn type_names(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        let item = without_visibility(line.trim_start());
        let name = ["struct ", "enum ", "trait ", "type "].iter().find_map(|keyword| item.strip_prefix(keyword))?;
        let name = identifier(name.trim_start());
        (name.starts_with(|first: char| first.is_ascii_uppercase()) && !COMMON_NAMES.contains(&name)).then_some(name)
    })
}

/// A function with a body.
#[derive(Debug, PartialEq)]
pub(super) struct FunctionSpan {
    pub(super) name: String,
    /// Counted from one.
    pub(super) first_line: usize,
    /// From the line with `fn` to the brace that closes the body.
    pub(super) lines: usize,
}

/// Every function with a body, nested ones too.
pub(super) fn functions(text: &str) -> Vec<FunctionSpan> {
    let lines: Vec<&str> = text.lines().collect();
    let starts = lines.iter().enumerate().filter_map(|(at, line)| Some((at, function_name(line)?)));
    let spans = starts.filter_map(|(at, name)| {
        let lines = function_length(&lines[at..])?;
        Some(FunctionSpan { name: name.to_owned(), first_line: at + 1, lines })
    });
    spans.collect()
}

/// The length of the function that begins in the first line; a mere declaration has none.
fn function_length(lines: &[&str]) -> Option<usize> {
    let first = lines[0];
    let indentation = &first[..first.len() - first.trim_start().len()];
    if first.ends_with(';') {
        return None;
    }
    if first.ends_with('}') && first.contains('{') {
        return Some(1);
    }
    for (at, line) in lines.iter().enumerate().skip(1) {
        let Some(rest) = line.strip_prefix(indentation) else { continue };
        if rest.starts_with('}') {
            return Some(at + 1);
        }
        // The end of a signature over several lines that has no body, or of one whose result is a list of bounds.
        let ends_signature = rest.starts_with(')') || rest.starts_with("where");
        if ends_signature && rest.ends_with(';') {
            return None;
        }
    }
    None
}

fn function_name(line: &str) -> Option<&str> {
    let mut item = without_visibility(line.trim_start());
    while let Some(rest) =
        ["const ", "async ", "unsafe ", "extern \"C\" "].iter().find_map(|keyword| item.strip_prefix(keyword))
    {
        item = rest;
    }
    let name = identifier(item.strip_prefix("fn ")?);
    (!name.is_empty()).then_some(name)
}

/// What follows `pub`, `pub(crate)` and the like.
fn without_visibility(item: &str) -> &str {
    let Some(rest) = item.strip_prefix("pub") else { return item };
    let rest = match rest.strip_prefix('(') {
        Some(scope) => scope.split_once(')').map_or(rest, |(_, rest)| rest),
        None => rest,
    };
    // A word that merely begins with `pub` is no visibility.
    if rest.starts_with(' ') { rest.trim_start() } else { item }
}

fn identifier(text: &str) -> &str {
    let end = text.find(|character: char| !character.is_alphanumeric() && character != '_').unwrap_or(text.len());
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_definition_of_a_type_is_found() {
        let text = "
pub struct Plain;
pub(crate) enum Scoped<T> {
    type Indented = u8;
    type Output = u8;
pub(in crate::a) trait Deep: Sized {
type lower = u8;
// struct Commented;
structure Nothing;
published struct Nothing;
unsafe trait Unsafe {}
";
        assert_eq!(type_names(text).collect::<Vec<_>>(), ["Plain", "Scoped", "Indented", "Deep"]);
    }

    #[test]
    fn a_function_is_as_long_as_its_indentation_says() {
        let text = "\
fn short() {}
impl X {
    pub(crate) async fn method(
        &self,
    ) -> u8 {
        fn nested() {
            1
        }
    }
    fn declared(&self);
    fn declared_long(
        &self,
    ) -> u8;
    const fn last() {
    }
}
";
        let found: Vec<_> = functions(text).into_iter().map(|one| (one.name, one.first_line, one.lines)).collect();
        let expected = [("short", 1, 1), ("method", 3, 7), ("nested", 6, 3), ("last", 14, 2)]
            .map(|(a, b, c)| (a.to_owned(), b, c));
        assert_eq!(found, expected);
    }

    #[test]
    fn tests_are_left_out_and_module_docs_seen() {
        let of = |path: &str, text: &str| SourceFile { path: path.into(), text: text.into() };
        let file = of("src/a.rs", "//! A doc.\nstruct A;\n#[cfg(test)]\nmod tests {\n    struct B;\n}\n");
        assert_eq!(file.without_tests(), "//! A doc.\nstruct A;\n");
        assert!(file.has_module_doc() && !file.is_tests());
        assert_eq!(file.lines(), 6);
        assert!(!of("src/a.rs", "// Not a doc.\n").has_module_doc());
        assert!(of("src/a/tests.rs", "").is_tests());
    }
}
