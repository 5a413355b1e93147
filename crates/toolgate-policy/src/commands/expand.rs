//! Expands words into arguments.

use super::braces::alternatives;
use super::shell_reader::ShellReader;
use super::shell_state::NAMES;
use super::simple_command::{Argument, Certainty};
use super::syntax::{ExpansionOperator, ShellWord, WordPiece};

/// One argument under construction.
#[derive(Default)]
struct ArgumentBuilder {
    text: String,
    /// The text with quoted characters escaped, to be used as a pattern.
    pattern: String,
    is_pattern: bool,
    is_names: bool,
    unclear: bool,
}

impl ArgumentBuilder {
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

/// Whether a piece of a word may become several words.
fn splits(piece: &WordPiece) -> bool {
    match piece {
        WordPiece::Variable { name, quoted } | WordPiece::Expansion { name, quoted, .. } => {
            // `"$@"` is as many words as there are arguments.
            !quoted || name.contains('@')
        }
        WordPiece::Substitution { quoted, .. } => !quoted,
        WordPiece::Glob(_) | WordPiece::Unread(_) => true,
        WordPiece::Text(_)
        | WordPiece::Brace(_)
        | WordPiece::Tilde(_)
        | WordPiece::Number
        | WordPiece::Process(_)
        | WordPiece::Arithmetic(..) => false,
    }
}

impl<'t> ShellReader<'t> {
    pub(super) fn expand_all(&mut self, words: &'t [ShellWord]) -> Vec<Argument> {
        words.iter().flat_map(|word| self.expand(word)).collect()
    }

    /// The arguments that a word expands to.
    pub(super) fn expand(&mut self, word: &'t ShellWord) -> Vec<Argument> {
        if let [WordPiece::Text(text)] = &word.pieces[..] {
            return vec![Argument::literal(text)];
        }
        if let [WordPiece::Variable { name, quoted: false }] = &word.pieces[..]
            && let Some(value) = self.value(name)
            && !value.contains(['*', '?', '['])
        {
            return value.split_ascii_whitespace().map(Argument::literal).collect();
        }
        self.visit_nested(&word.pieces);
        let Some(alternatives) = alternatives(&word.pieces) else {
            return vec![Argument { splits: true, ..Argument::unclear(&word.written) }];
        };
        alternatives.iter().map(|pieces| self.join(pieces, &word.written)).collect()
    }

    /// One word as one argument, without splitting: the value of an assignment, a here-document.
    pub(super) fn expand_whole(&mut self, word: &'t ShellWord) -> Argument {
        self.visit_nested(&word.pieces);
        self.join(&word.pieces, &word.written)
    }

    fn join(&mut self, pieces: &[WordPiece], written: &str) -> Argument {
        // An empty process substitution, or one with text around it, is a name that only bash knows.
        let is_odd =
            |piece: &WordPiece| matches!(piece, WordPiece::Process(list) if list.0.is_empty() || pieces.len() > 1);
        let mut draft = ArgumentBuilder { unclear: pieces.iter().any(is_odd), ..ArgumentBuilder::default() };
        pieces.iter().for_each(|piece| self.append(piece, &mut draft));
        let argument = match (draft.unclear, draft.is_pattern) {
            (true, _) => Argument::unclear(written),
            (false, true) if draft.is_names => Argument::new(written, Certainty::Names),
            (false, true) => Argument::new(draft.pattern, Certainty::Pattern),
            (false, false) => return Argument::literal(draft.text),
        };
        Argument { splits: pieces.iter().any(splits), ..argument }
    }

    fn append(&mut self, piece: &WordPiece, draft: &mut ArgumentBuilder) {
        match piece {
            WordPiece::Text(text) => draft.push(text),
            WordPiece::Brace(letter) => draft.push(letter.encode_utf8(&mut [0; 4])),
            WordPiece::Glob(glob) => {
                draft.text.push_str(glob);
                draft.pattern.push_str(glob);
                draft.is_pattern = true;
            }
            WordPiece::Unread(text) => {
                draft.push(text);
                draft.unclear = true;
            }
            WordPiece::Tilde(user) => match self.home_of(user) {
                Some(home) => draft.push(&home),
                None => draft.unclear = true,
            },
            WordPiece::Variable { name, .. } if self.shell.file_names.contains_key(name) => {
                let file_names = &self.shell.file_names[name];
                draft.text.push_str(file_names);
                draft.pattern.push_str(file_names);
                draft.is_pattern = true;
                draft.is_names |= file_names == NAMES;
            }
            WordPiece::Variable { name, quoted } => match self.value(name) {
                Some(value) if *quoted || !value.contains([' ', '\t', '\n', '*', '?', '[']) => draft.push(&value),
                _ => draft.unclear = true,
            },
            WordPiece::Process(_) => draft.push("/dev/fd/63"),
            WordPiece::Substitution { script, .. } => match self.is_where_it_stands(script) {
                Some(directory) => draft.push(&directory),
                None => draft.unclear = true,
            },
            WordPiece::Expansion { name, operator, word, quoted } => {
                self.expansion(name, *operator, word, *quoted, draft)
            }
            WordPiece::Number => draft.unclear = true,
            WordPiece::Arithmetic(expression, _) => {
                if !self.is_plain_arithmetic(&expression.replace('$', "")) {
                    self.hidden_code.get_or_insert_with(|| {
                        format!("`$(({expression}))` calculates with variables that aren't known, which can run code")
                    });
                }
                draft.unclear = true;
            }
        }
    }

    fn expansion(
        &mut self,
        name: &str,
        operator: ExpansionOperator,
        word: &[WordPiece],
        quoted: bool,
        draft: &mut ArgumentBuilder,
    ) {
        let value = self.value(name);
        match (operator, value) {
            (ExpansionOperator::Wild, _) => {
                self.hidden_code.get_or_insert_with(|| "an expansion in it can run code".into());
                draft.unclear = true;
            }
            (ExpansionOperator::Default | ExpansionOperator::Assign, Some(value))
                if !value.is_empty() && (quoted || !value.contains([' ', '\t', '\n', '*', '?', '['])) =>
            {
                draft.push(&value);
            }
            (ExpansionOperator::Alternative, Some(value)) if !value.is_empty() => {
                word.iter().for_each(|piece| self.append(piece, draft));
            }
            (ExpansionOperator::Assign, _) => {
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
            (None, "HOME") => Some(self.paths.home().to_owned()),
            (None, "PWD") => self.only_directory().map(str::to_owned),
            _ => None,
        }
    }

    /// The working directory, if only one is possible.
    pub(super) fn only_directory(&self) -> Option<&str> {
        match self.shell.directories.as_deref() {
            Some([directory]) => Some(directory),
            _ => None,
        }
    }

    /// The home directory of a user. Only the current user's is known.
    fn home_of(&self, user: &str) -> Option<String> {
        match user {
            "" => Some(self.paths.home().to_owned()),
            "+" => self.only_directory().map(str::to_owned),
            "root" => Some("/root".to_owned()),
            _ => None,
        }
    }

    /// The working directory, if the list is only `pwd`.
    fn is_where_it_stands(&self, list: &super::syntax::CommandList) -> Option<String> {
        let [statement] = &list.0[..] else { return None };
        let [command] = &statement.first.0[..] else { return None };
        let super::syntax::ShellCommandKind::Simple { assignments, words } = &command.shape else { return None };
        let is_pwd = assignments.is_empty() && statement.rest.is_empty() && command.redirections.is_empty();
        match &words[..] {
            [word] if is_pwd && word.written == "pwd" => self.only_directory().map(str::to_owned),
            _ => None,
        }
    }

    /// Analyzes the commands inside words, each in a subshell.
    fn visit_nested(&mut self, pieces: &'t [WordPiece]) {
        for piece in pieces {
            match piece {
                WordPiece::Substitution { script, .. } | WordPiece::Process(script) => {
                    let (upstream, input, hidden_code) =
                        (std::mem::replace(&mut self.upstream, 0..0), self.input.take(), self.hidden_code.take());
                    self.level += 1;
                    self.in_subshell(false, |reader| reader.list(script));
                    self.level -= 1;
                    (self.upstream, self.input, self.hidden_code) = (upstream, input, hidden_code);
                }
                WordPiece::Arithmetic(_, nested) => {
                    nested.iter().for_each(|list| self.in_subshell(false, |reader| reader.list(list)));
                }
                WordPiece::Expansion { word, .. } => self.visit_nested(word),
                _ => {}
            }
        }
    }
}
