//! Commands: lists, pipelines, compound commands, redirections.

use super::parser::{PendingHeredoc, ShellParser, ends_word, is_name, is_name_start};
use super::{
    AndOr, AssignedValue, Assignment, CommandList, Pipeline, Redirection, RedirectionKind, RedirectionTarget,
    ShellCommand, ShellCommandKind, ShellScript, ShellWord, Statement, SyntaxFault, SyntaxResult,
};

/// Words that end a list where a command could begin.
const CLOSERS: &[&str] = &["then", "else", "elif", "fi", "do", "done", "esac", "}"];

/// Parses an entire command line.
pub(crate) fn parse(text: &str) -> SyntaxResult<ShellScript> {
    let mut reader = ShellParser::new(text, 0)?;
    let list = reader.whole()?;
    Ok(ShellScript { list, documents: reader.documents, functions: reader.functions })
}

impl ShellParser<'_> {
    pub(super) fn whole(&mut self) -> SyntaxResult<CommandList> {
        let list = self.list()?;
        match (self.is_done(), self.pending.is_empty()) {
            (false, _) => Err(self.unexpected()),
            (true, false) => Err(SyntaxFault::Unfinished("the body of a here-document")),
            (true, true) => Ok(list),
        }
    }

    /// Parses statements up to the end, a closing parenthesis, `;;`, or a closing word.
    pub(super) fn list(&mut self) -> SyntaxResult<CommandList> {
        let mut statements = Vec::new();
        loop {
            self.skip_lines()?;
            match self.peek() {
                None | Some(b')') => break,
                Some(b';') if self.ends_arm() => break,
                _ if CLOSERS.contains(&self.keyword()) => break,
                _ => {}
            }
            let mut statement = self.statement()?;
            self.skip_blanks();
            match self.peek() {
                Some(b'&') => {
                    self.at += 1;
                    statement.background = true;
                }
                Some(b';') if !self.ends_arm() => self.at += 1,
                None | Some(b'\n' | b')' | b';') => {}
                _ => return Err(self.unexpected()),
            }
            statements.push(statement);
        }
        Ok(CommandList(statements))
    }

    /// `;;`, `;&`: the end of one arm of a `case`.
    fn ends_arm(&self) -> bool {
        matches!((self.peek(), self.peek_at(1)), (Some(b';'), Some(b';' | b'&')))
    }

    /// The next word if it is bare: nothing quoted, nothing expanded.
    fn keyword(&self) -> &str {
        let rest = self.rest();
        let length = rest.bytes().take_while(|byte| !ends_word(*byte)).count();
        let word = &rest[..length];
        if word.bytes().any(|byte| b"'\"\\$`".contains(&byte)) { "" } else { word }
    }

    /// Takes a reserved word if it comes next.
    fn eat_word(&mut self, wanted: &str) -> bool {
        let found = self.keyword() == wanted;
        if found {
            self.at += wanted.len();
        }
        found
    }

    fn expect_word(&mut self, wanted: &'static str) -> SyntaxResult<()> {
        if self.eat_word(wanted) {
            return Ok(());
        }
        Err(if self.is_done() { SyntaxFault::Unfinished(wanted) } else { self.unexpected() })
    }

    fn statement(&mut self) -> SyntaxResult<Statement> {
        let first = self.pipeline()?;
        let mut rest = Vec::new();
        loop {
            self.skip_blanks();
            let join = match (self.peek(), self.peek_at(1)) {
                (Some(b'&'), Some(b'&')) => AndOr::And,
                (Some(b'|'), Some(b'|')) => AndOr::Or,
                _ => break,
            };
            self.at += 2;
            self.skip_lines()?;
            rest.push((join, self.pipeline()?));
        }
        Ok(Statement { first, rest, background: false })
    }

    fn pipeline(&mut self) -> SyntaxResult<Pipeline> {
        self.skip_blanks();
        while self.eat_word("!") || self.eat_word("time") || self.eat_word("coproc") {
            self.skip_blanks();
            if self.eat_word("-p") {
                self.skip_blanks();
            }
        }
        let mut stages = vec![self.command()?];
        loop {
            self.skip_blanks();
            if self.peek() != Some(b'|') || self.peek_at(1) == Some(b'|') {
                break;
            }
            self.at += 1;
            self.eat("&");
            self.skip_lines()?;
            stages.push(self.command()?);
        }
        Ok(Pipeline(stages))
    }

    fn command(&mut self) -> SyntaxResult<ShellCommand> {
        self.skip_blanks();
        let shape = self.deeper(|reader| reader.compound())?;
        let Some(shape) = shape else { return self.simple() };
        let mut redirections = Vec::new();
        loop {
            self.skip_blanks();
            match self.redirection()? {
                Some(redirection) => redirections.push(redirection),
                None => break,
            }
        }
        Ok(ShellCommand { shape, redirections })
    }

    /// Parses a compound command, if one begins here.
    fn compound(&mut self) -> SyntaxResult<Option<ShellCommandKind>> {
        if self.peek() == Some(b'(') {
            return self.parenthesis().map(Some);
        }
        let shape = match self.keyword() {
            "{" => self.group()?,
            "if" => self.conditional()?,
            "for" => self.for_loop()?,
            "while" | "until" => self.conditional_loop()?,
            "case" => self.case()?,
            "function" => {
                self.at += "function".len();
                self.skip_blanks();
                let name = self.take_while(|byte| !ends_word(byte)).to_owned();
                self.skip_blanks();
                let _ = self.eat("()");
                self.function(name)?
            }
            "[[" => self.test()?,
            "select" => return Err(SyntaxFault::Unsupported("`select`")),
            word if CLOSERS.contains(&word) => return Err(self.unexpected()),
            _ => return Ok(None),
        };
        Ok(Some(shape))
    }

    fn parenthesis(&mut self) -> SyntaxResult<ShellCommandKind> {
        if self.peek_at(1) == Some(b'(') && self.is_arithmetic() {
            self.at += 2;
            return self.arithmetic_text().map(|(text, nested)| ShellCommandKind::Arithmetic(text, nested));
        }
        self.at += 1;
        let list = self.list()?;
        match self.eat(")") {
            true => Ok(ShellCommandKind::Subshell(list)),
            false if self.is_done() => Err(SyntaxFault::Unfinished("a closing parenthesis")),
            false => Err(self.unexpected()),
        }
    }

    fn group(&mut self) -> SyntaxResult<ShellCommandKind> {
        self.at += 1;
        let list = self.list()?;
        self.expect_word("}")?;
        Ok(ShellCommandKind::Group(list))
    }

    fn conditional(&mut self) -> SyntaxResult<ShellCommandKind> {
        let mut branches = Vec::new();
        let mut otherwise = CommandList::default();
        self.expect_word("if")?;
        loop {
            let condition = self.list()?;
            self.expect_word("then")?;
            branches.push((condition, self.list()?));
            if self.eat_word("elif") {
                continue;
            }
            if self.eat_word("else") {
                otherwise = self.list()?;
            }
            self.expect_word("fi")?;
            return Ok(ShellCommandKind::If { branches, otherwise });
        }
    }

    fn conditional_loop(&mut self) -> SyntaxResult<ShellCommandKind> {
        self.at += "while".len();
        let condition = self.list()?;
        let body = self.do_group()?;
        Ok(ShellCommandKind::Loop { condition, arithmetic: None, body })
    }

    fn do_group(&mut self) -> SyntaxResult<CommandList> {
        self.expect_word("do")?;
        let body = self.list()?;
        self.expect_word("done")?;
        Ok(body)
    }

    fn for_loop(&mut self) -> SyntaxResult<ShellCommandKind> {
        self.at += "for".len();
        self.skip_blanks();
        if self.eat("((") {
            let arithmetic = Some(self.arithmetic_text()?);
            self.separator()?;
            let body = self.do_group()?;
            return Ok(ShellCommandKind::Loop { condition: CommandList::default(), arithmetic, body });
        }
        let variable = self.take_while(is_name).to_owned();
        if variable.is_empty() {
            return Err(self.unexpected());
        }
        self.skip_lines()?;
        let words = if self.eat_word("in") { Some(self.words()?) } else { None };
        self.separator()?;
        let body = self.do_group()?;
        Ok(ShellCommandKind::For { variable, words, body })
    }

    /// Skips an optional `;` and line ends.
    fn separator(&mut self) -> SyntaxResult<()> {
        self.skip_blanks();
        self.eat(";");
        self.skip_lines()
    }

    /// Parses words up to something that isn't one.
    fn words(&mut self) -> SyntaxResult<Vec<ShellWord>> {
        let mut words = Vec::new();
        loop {
            self.skip_blanks();
            if !self.is_at_word() {
                return Ok(words);
            }
            words.push(self.word()?);
        }
    }

    fn is_at_word(&self) -> bool {
        match self.peek() {
            Some(b'<' | b'>') => self.peek_at(1) == Some(b'('),
            Some(byte) => !ends_word(byte),
            None => false,
        }
    }

    fn case(&mut self) -> SyntaxResult<ShellCommandKind> {
        self.at += "case".len();
        self.skip_blanks();
        if !self.is_at_word() {
            return Err(self.unexpected());
        }
        let subject = self.word()?;
        self.skip_lines()?;
        self.expect_word("in")?;
        let mut arms = Vec::new();
        loop {
            self.skip_lines()?;
            if self.eat_word("esac") {
                return Ok(ShellCommandKind::Case { subject, arms });
            }
            arms.push(self.arm()?);
        }
    }

    fn arm(&mut self) -> SyntaxResult<(Vec<ShellWord>, CommandList)> {
        self.eat("(");
        let mut patterns = Vec::new();
        loop {
            self.skip_blanks();
            if !self.is_at_word() {
                return Err(self.unexpected());
            }
            patterns.push(self.word()?);
            self.skip_blanks();
            if self.eat(")") {
                break;
            }
            if !self.eat("|") {
                return Err(self.unexpected());
            }
        }
        let body = self.list()?;
        if self.ends_arm() {
            self.at += 2;
            self.eat("&");
        }
        Ok((patterns, body))
    }

    fn function(&mut self, name: String) -> SyntaxResult<ShellCommandKind> {
        self.functions.push(name.clone());
        self.skip_lines()?;
        let body = self.deeper(|reader| reader.command())?;
        match body.shape {
            ShellCommandKind::Simple { .. } => Err(SyntaxFault::Unexpected(format!("{name}()"))),
            _ => Ok(ShellCommandKind::Function { name, body: Box::new(body) }),
        }
    }

    /// Parses `[[ … ]]` into its words; operators are words as well.
    fn test(&mut self) -> SyntaxResult<ShellCommandKind> {
        self.at += 2;
        let mut words: Vec<ShellWord> = Vec::new();
        loop {
            self.skip_lines()?;
            if self.eat_word("]]") {
                return Ok(ShellCommandKind::Test(words));
            }
            if words.last().is_some_and(|word| word.written == "=~") {
                words.push(self.regex()?);
                continue;
            }
            match self.peek() {
                None => return Err(SyntaxFault::Unfinished("`]]`")),
                Some(byte) if !self.is_at_word() => {
                    if byte == b';' {
                        return Err(self.unexpected());
                    }
                    self.at += 1;
                }
                _ => words.push(self.word()?),
            }
        }
    }

    /// The right side of `=~`, in which parentheses and bars are literal.
    fn regex(&mut self) -> SyntaxResult<ShellWord> {
        let start = self.at;
        let text = self.take_while(|byte| !matches!(byte, b' ' | b'\t' | b'\n'));
        if text.bytes().any(|byte| matches!(byte, b'$' | b'`' | b'\'' | b'"')) && !text.ends_with('$') {
            self.at = start;
            return self.word();
        }
        if text.trim_end_matches('$').contains(['$', '`']) {
            return Err(SyntaxFault::Unsupported("a pattern that may run code"));
        }
        Ok(ShellWord { pieces: vec![super::WordPiece::Text(text.to_owned())], written: text.to_owned() })
    }

    fn simple(&mut self) -> SyntaxResult<ShellCommand> {
        let (mut assignments, mut words, mut redirections) = (Vec::new(), Vec::new(), Vec::new());
        loop {
            self.skip_blanks();
            if let Some(redirection) = self.redirection()? {
                redirections.push(redirection);
                continue;
            }
            if !self.is_at_word() {
                break;
            }
            if words.is_empty()
                && let Some((length, appends)) = self.assignment_ahead()?
            {
                assignments.push(self.assignment(length, appends)?);
                continue;
            }
            let start = self.at;
            words.push(self.word()?);
            if self.peek() == Some(b'(') {
                let name = &self.text[start..self.at];
                let is_name = words.len() == 1 && assignments.is_empty() && redirections.is_empty();
                if !is_name || !name.bytes().all(|byte| super::parser::is_name(byte) || b"-.:+@".contains(&byte)) {
                    return Err(self.unexpected());
                }
                return self.function_after(name.to_owned());
            }
        }
        if assignments.is_empty() && words.is_empty() && redirections.is_empty() {
            return Err(self.unexpected());
        }
        Ok(ShellCommand { shape: ShellCommandKind::Simple { assignments, words }, redirections })
    }

    /// Parses a function after its name, before the parenthesis.
    fn function_after(&mut self, name: String) -> SyntaxResult<ShellCommand> {
        self.at += 1;
        self.skip_blanks();
        if !self.eat(")") {
            return Err(self.unexpected());
        }
        let shape = self.function(name)?;
        Ok(ShellCommand { shape, redirections: Vec::new() })
    }

    fn assignment(&mut self, length: usize, appends: bool) -> SyntaxResult<Assignment> {
        let name = self.rest()[..length].to_owned();
        self.at += length + if appends { 2 } else { 1 };
        let value = if self.peek() == Some(b'(') {
            self.at += 1;
            AssignedValue::Array(self.array()?)
        } else if self.is_at_word() {
            AssignedValue::Word(self.word()?)
        } else {
            AssignedValue::Word(ShellWord::default())
        };
        Ok(Assignment { name, appends, value })
    }

    fn array(&mut self) -> SyntaxResult<Vec<ShellWord>> {
        let mut words = Vec::new();
        loop {
            self.skip_lines()?;
            words.extend(self.words()?);
            match self.peek() {
                Some(b')') => {
                    self.at += 1;
                    return Ok(words);
                }
                Some(b'\n') => {}
                _ => return Err(self.unexpected()),
            }
        }
    }

    /// Parses a redirection, if one begins here.
    fn redirection(&mut self) -> SyntaxResult<Option<Redirection>> {
        let digits = self.rest().bytes().take_while(u8::is_ascii_digit).count();
        if !matches!(self.peek_at(digits), Some(b'<' | b'>')) {
            if self.rest().starts_with("&>") {
                self.at += 2;
                self.eat(">");
                return self.file(RedirectionKind::Out).map(Some);
            }
            return self.named_descriptor();
        }
        // `<(` and `>(` are words.
        if digits == 0 && self.peek_at(1) == Some(b'(') {
            return Ok(None);
        }
        self.at += digits;
        self.redirection_sign().map(Some)
    }

    fn redirection_sign(&mut self) -> SyntaxResult<Redirection> {
        for (sign, flow) in [
            ("<<<", None),
            ("<<-", None),
            ("<<", None),
            ("<>", Some(RedirectionKind::InOut)),
            ("<&", Some(RedirectionKind::DuplicateIn)),
            (">&", Some(RedirectionKind::Duplicate)),
            (">>", Some(RedirectionKind::Out)),
            (">|", Some(RedirectionKind::Out)),
            ("<", Some(RedirectionKind::In)),
            (">", Some(RedirectionKind::Out)),
        ] {
            if !self.eat(sign) {
                continue;
            }
            return match (sign, flow) {
                (_, Some(flow)) => self.file(flow),
                ("<<<", None) => {
                    Ok(Redirection { flow: RedirectionKind::In, target: RedirectionTarget::Text(self.target_word()?) })
                }
                _ => self.document(sign == "<<-"),
            };
        }
        Err(self.unexpected())
    }

    /// `{name}>file`: the shell chooses the descriptor and sets a variable.
    fn named_descriptor(&self) -> SyntaxResult<Option<Redirection>> {
        let rest = self.rest();
        if rest.starts_with('{') && rest.as_bytes().get(1).copied().is_some_and(is_name_start) {
            let name = rest[1..].bytes().take_while(|byte| is_name(*byte)).count();
            if matches!(&rest.as_bytes()[1 + name..], [b'}', b'<' | b'>', ..]) {
                return Err(SyntaxFault::Unsupported("a named descriptor"));
            }
        }
        Ok(None)
    }

    fn target_word(&mut self) -> SyntaxResult<ShellWord> {
        self.skip_blanks();
        if self.is_at_word() { self.word() } else { Err(self.unexpected()) }
    }

    fn file(&mut self, flow: RedirectionKind) -> SyntaxResult<Redirection> {
        Ok(Redirection { flow, target: RedirectionTarget::File(self.target_word()?) })
    }

    fn document(&mut self, strips_tabs: bool) -> SyntaxResult<Redirection> {
        let word = self.target_word()?;
        let delimiter =
            word.literal().ok_or(SyntaxFault::Unsupported("a here-document whose delimiter isn't plain"))?;
        let expands = delimiter == word.written;
        let number = self.documents.len();
        self.documents.push(ShellWord::default());
        self.pending.push(PendingHeredoc { number, delimiter, expands, strips_tabs });
        Ok(Redirection { flow: RedirectionKind::In, target: RedirectionTarget::Document(number) })
    }
}
