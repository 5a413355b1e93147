//! Words as the arguments that they stand for.

use super::braces::alternatives;
use super::part::{Argument, Certainty};
use super::shell::NAMES;
use super::syntax::{Operator, Piece, Word};
use super::walk::Walk;

/// What has been put together of one argument.
#[derive(Default)]
struct Draft {
    text: String,
    /// The same with what is quoted escaped, to be read as a pattern.
    pattern: String,
    is_pattern: bool,
    is_names: bool,
    unclear: bool,
}

impl Draft {
    fn push(&mut self, text: &str) {
        self.text.push_str(text);
        for letter in text.chars() {
            if matches!(letter, '*' | '?' | '[' | ']' | '\\' | '{' | '}') {
                self.pattern.push('\\');
            }
            self.pattern.push(letter);
        }
    }
}

impl<'t> Walk<'t> {
    pub(super) fn expand_all(&mut self, words: &'t [Word]) -> Vec<Argument> {
        words.iter().flat_map(|word| self.expand(word)).collect()
    }

    /// The arguments that a word stands for.
    pub(super) fn expand(&mut self, word: &'t Word) -> Vec<Argument> {
        if let [Piece::Text(text)] = &word.pieces[..] {
            return vec![Argument::literal(text)];
        }
        if let [Piece::Variable { name, quoted: false }] = &word.pieces[..]
            && let Some(value) = self.value(name)
            && !value.contains(['*', '?', '['])
        {
            return value.split_ascii_whitespace().map(Argument::literal).collect();
        }
        self.visit_nested(&word.pieces);
        let Some(alternatives) = alternatives(&word.pieces) else { return vec![Argument::unclear(&word.written)] };
        alternatives.iter().map(|pieces| self.join(pieces, &word.written)).collect()
    }

    /// One word as one argument, without splitting: the value of an assignment, a here-document.
    pub(super) fn expand_whole(&mut self, word: &'t Word) -> Argument {
        self.visit_nested(&word.pieces);
        self.join(&word.pieces, &word.written)
    }

    fn join(&mut self, pieces: &[Piece], written: &str) -> Argument {
        let mut draft = Draft::default();
        pieces.iter().for_each(|piece| self.append(piece, &mut draft));
        match (draft.unclear, draft.is_pattern) {
            (true, _) => Argument::unclear(written),
            (false, true) if draft.is_names => Argument { text: written.to_owned(), certainty: Certainty::Names },
            (false, true) => Argument { text: draft.pattern, certainty: Certainty::Pattern },
            (false, false) => Argument::literal(draft.text),
        }
    }

    fn append(&mut self, piece: &Piece, draft: &mut Draft) {
        match piece {
            Piece::Text(text) => draft.push(text),
            Piece::Brace(letter) => draft.push(letter.encode_utf8(&mut [0; 4])),
            Piece::Glob(glob) => {
                draft.text.push_str(glob);
                draft.pattern.push_str(glob);
                draft.is_pattern = true;
            }
            Piece::Unread(text) => {
                draft.push(text);
                draft.unclear = true;
            }
            Piece::Tilde(user) => match self.home_of(user) {
                Some(home) => draft.push(&home),
                None => draft.unclear = true,
            },
            Piece::Variable { name, .. } if self.shell.loose.contains_key(name) => {
                let loose = &self.shell.loose[name];
                draft.text.push_str(loose);
                draft.pattern.push_str(loose);
                draft.is_pattern = true;
                draft.is_names |= loose == NAMES;
            }
            Piece::Variable { name, quoted } => match self.value(name) {
                Some(value) if *quoted || !value.contains([' ', '\t', '\n', '*', '?', '[']) => draft.push(&value),
                _ => draft.unclear = true,
            },
            Piece::Process(_) => draft.push("/dev/fd/63"),
            Piece::Substitution { script, .. } => match self.is_where_it_stands(script) {
                Some(folder) => draft.push(&folder),
                None => draft.unclear = true,
            },
            Piece::Expansion { name, operator, word, quoted } => self.expansion(name, *operator, word, *quoted, draft),
            Piece::Number => draft.unclear = true,
            Piece::Arithmetic(expression, _) => {
                if !self.is_plain_arithmetic(&expression.replace('$', "")) {
                    self.wild.get_or_insert_with(|| {
                        format!("`$(({expression}))` calculates with variables that aren't known, which can run code")
                    });
                }
                draft.unclear = true;
            }
        }
    }

    fn expansion(&mut self, name: &str, operator: Operator, word: &[Piece], quoted: bool, draft: &mut Draft) {
        let value = self.value(name);
        match (operator, value) {
            (Operator::Wild, _) => {
                self.wild.get_or_insert_with(|| "an expansion in it can run code".into());
                draft.unclear = true;
            }
            (Operator::Default | Operator::Assign, Some(value))
                if !value.is_empty() && (quoted || !value.contains([' ', '\t', '\n', '*', '?', '['])) =>
            {
                draft.push(&value);
            }
            (Operator::Alternative, Some(value)) if !value.is_empty() => {
                word.iter().for_each(|piece| self.append(piece, draft));
            }
            (Operator::Assign, _) => {
                self.shell.set(name, None);
                draft.unclear = true;
            }
            _ => draft.unclear = true,
        }
    }

    /// The value of a variable, if it is known.
    fn value(&self, name: &str) -> Option<String> {
        match (self.shell.variables.get(name), name) {
            (Some(value), _) => value.clone(),
            (None, "HOME") => Some(self.ground.home().to_owned()),
            (None, "PWD") => self.only_folder().map(str::to_owned),
            _ => None,
        }
    }

    /// Where the shell stands, if there is just one place.
    pub(super) fn only_folder(&self) -> Option<&str> {
        match self.shell.folders.as_deref() {
            Some([folder]) => Some(folder),
            _ => None,
        }
    }

    /// Where other users live isn't known, save for one.
    fn home_of(&self, user: &str) -> Option<String> {
        match user {
            "" => Some(self.ground.home().to_owned()),
            "+" => self.only_folder().map(str::to_owned),
            "root" => Some("/root".to_owned()),
            _ => None,
        }
    }

    /// `$(pwd)` is known.
    fn is_where_it_stands(&self, list: &super::syntax::List) -> Option<String> {
        let [statement] = &list.0[..] else { return None };
        let [command] = &statement.first.0[..] else { return None };
        let super::syntax::Shape::Simple { assignments, words } = &command.shape else { return None };
        let is_pwd = assignments.is_empty() && statement.rest.is_empty() && command.redirections.is_empty();
        match &words[..] {
            [word] if is_pwd && word.written == "pwd" => self.only_folder().map(str::to_owned),
            _ => None,
        }
    }

    /// Reads the commands inside words, each in a shell of its own.
    fn visit_nested(&mut self, pieces: &'t [Piece]) {
        for piece in pieces {
            match piece {
                Piece::Substitution { script, .. } | Piece::Process(script) => {
                    let (feeding, input, wild) =
                        (std::mem::replace(&mut self.feeding, 0..0), self.input.take(), self.wild.take());
                    self.level += 1;
                    self.apart(false, |walk| walk.list(script));
                    self.level -= 1;
                    (self.feeding, self.input, self.wild) = (feeding, input, wild);
                }
                Piece::Arithmetic(_, nested) => {
                    nested.iter().for_each(|list| self.apart(false, |walk| walk.list(list)));
                }
                Piece::Expansion { word, .. } => self.visit_nested(word),
                _ => {}
            }
        }
    }
}
