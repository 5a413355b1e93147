//! Arithmetic and numeric comparisons. A shell evaluates the content of variables, and that may run code.

use super::Argument;
use super::shell_reader::ShellReader;
use super::syntax::ShellWord;

impl<'t> ShellReader<'t> {
    /// Visits `[[ … ]]`. Numbers are compared as arithmetic, which evaluates the content of variables.
    pub(super) fn test(&mut self, words: &'t [ShellWord]) {
        const COMPARING: &[&str] = &["-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-v"];
        let arguments: Vec<Vec<Argument>> = words.iter().map(|word| self.expand(word)).collect();
        let is_number = |at: Option<usize>| match at.and_then(|at| arguments.get(at)).map(Vec::as_slice) {
            Some([argument]) => argument.known().is_some_and(|text| self.is_plain_arithmetic(text)),
            _ => false,
        };
        let numbers = words.iter().enumerate().filter(|(_, word)| COMPARING.contains(&word.written.as_str()));
        let is_plain = |(at, word): (usize, &ShellWord)| {
            is_number(Some(at + 1)) && (word.written == "-v" || is_number(at.checked_sub(1)))
        };
        if !numbers.into_iter().all(is_plain) {
            self.hidden_code.get_or_insert_with(|| "it compares numbers that aren't known, which can run code".into());
        }
        self.note_hidden_code();
    }

    pub(super) fn calculate(&mut self, expression: &str) {
        if !self.is_plain_arithmetic(expression) {
            self.hidden_code
                .get_or_insert_with(|| "it calculates with variables that aren't known, which can run code".into());
        }
        self.forget_names(expression);
        self.note_hidden_code();
    }

    /// The three expressions of an arithmetic `for`. A variable that the first one sets to a number is a number.
    pub(super) fn count(&mut self, expressions: &str) {
        let first = expressions.split(';').next().unwrap_or_default();
        for (name, value) in first.split(',').filter_map(|part| part.split_once('=')) {
            if self.is_plain_arithmetic(value) {
                self.shell.set(name.trim(), Some("0".to_owned()));
            }
        }
        self.calculate(expressions);
    }

    fn forget_names(&mut self, expression: &str) {
        if expression.contains('=') || expression.contains("++") || expression.contains("--") {
            for name in expression.split(|letter: char| !letter.is_alphanumeric() && letter != '_') {
                if name.starts_with(|letter: char| letter.is_alphabetic() || letter == '_') {
                    self.shell.set(name, None);
                }
            }
        }
    }

    /// Whether the expression has only numbers, operators, and variables that contain numbers.
    pub(super) fn is_plain_arithmetic(&self, expression: &str) -> bool {
        if expression.contains(['[', '`', '\'', '"', '\\']) {
            return false;
        }
        let names = expression.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
        let mut names =
            names.filter(|name| !name.is_empty() && !name.starts_with(|letter: char| letter.is_ascii_digit()));
        names.all(|name| match self.shell.variables.get(name) {
            Some(Some(value)) => !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()),
            _ => false,
        })
    }
}
