//! Calculating and comparing numbers. A shell evaluates what variables hold, and that may run code.

use super::Argument;
use super::syntax::Word;
use super::walk::Walk;

impl<'t> Walk<'t> {
    /// `[[ … ]]`. Numbers are compared as arithmetic, which runs what variables hold.
    pub(super) fn test(&mut self, words: &'t [Word]) {
        let compares =
            |word: &Word| matches!(word.written.as_str(), "-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge" | "-v");
        let counts = words.iter().any(compares);
        let arguments = self.expand_all(words);
        if counts && arguments.iter().any(Argument::is_unclear) {
            self.wild.get_or_insert_with(|| "it compares numbers that aren't known, which can run code".into());
        }
        self.note_wild();
    }

    pub(super) fn calculate(&mut self, expression: &str) {
        self.forget_names(expression);
        if !self.is_plain_arithmetic(expression) {
            self.wild
                .get_or_insert_with(|| "it calculates with variables that aren't known, which can run code".into());
        }
        self.note_wild();
    }

    pub(super) fn forget_names(&mut self, expression: &str) {
        if expression.contains('=') || expression.contains("++") || expression.contains("--") {
            for name in expression.split(|letter: char| !letter.is_alphanumeric() && letter != '_') {
                if name.starts_with(|letter: char| letter.is_alphabetic() || letter == '_')
                    && !self.shell.variables.contains_key(name)
                {
                    self.shell.set(name, None);
                }
            }
        }
    }

    /// Only numbers, signs, and variables that hold numbers.
    pub(super) fn is_plain_arithmetic(&self, expression: &str) -> bool {
        let names = expression.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
        let mut names =
            names.filter(|name| !name.is_empty() && !name.starts_with(|letter: char| letter.is_ascii_digit()));
        names.all(|name| match self.shell.variables.get(name) {
            Some(Some(value)) => !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()),
            _ => false,
        })
    }
}
