//! The syntax tree of a command.

/// An entire command line, with the bodies of its here-documents.
#[derive(Debug, PartialEq)]
pub(crate) struct ShellScript {
    pub(crate) list: CommandList,
    pub(crate) documents: Vec<ShellWord>,
    /// The names of all functions that are defined anywhere in it.
    pub(crate) functions: Vec<String>,
}

/// Statements, one after the other.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct CommandList(pub(crate) Vec<Statement>);

/// Pipelines joined by `&&` and `||`.
#[derive(Debug, PartialEq)]
pub(crate) struct Statement {
    pub(crate) first: Pipeline,
    pub(crate) rest: Vec<(AndOr, Pipeline)>,
    pub(crate) background: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AndOr {
    And,
    Or,
}

/// Commands connected by pipes.
#[derive(Debug, PartialEq)]
pub(crate) struct Pipeline(pub(crate) Vec<ShellCommand>);

#[derive(Debug, PartialEq)]
pub(crate) struct ShellCommand {
    pub(crate) shape: ShellCommandKind,
    pub(crate) redirections: Vec<Redirection>,
}

#[derive(Debug, PartialEq)]
pub(crate) enum ShellCommandKind {
    Simple {
        assignments: Vec<Assignment>,
        words: Vec<ShellWord>,
    },
    /// `{ … }`
    Group(CommandList),
    /// `( … )`
    Subshell(CommandList),
    /// Without words it iterates over the shell's own arguments.
    For {
        variable: String,
        words: Option<Vec<ShellWord>>,
        body: CommandList,
    },
    /// `while`, `until` and the arithmetic `for`, whose expressions are text.
    Loop {
        condition: CommandList,
        arithmetic: Option<(String, Vec<NestedList>)>,
        body: CommandList,
    },
    If {
        branches: Vec<(CommandList, CommandList)>,
        otherwise: CommandList,
    },
    Case {
        subject: ShellWord,
        arms: Vec<(Vec<ShellWord>, CommandList)>,
    },
    Function {
        name: String,
        body: Box<ShellCommand>,
    },
    /// `[[ … ]]`
    Test(Vec<ShellWord>),
    /// `(( … ))`
    Arithmetic(String, Vec<NestedList>),
}

#[derive(Debug, PartialEq)]
pub(crate) struct Assignment {
    pub(crate) name: String,
    /// `+=`
    pub(crate) appends: bool,
    pub(crate) value: AssignedValue,
}

#[derive(Debug, PartialEq)]
pub(crate) enum AssignedValue {
    Word(ShellWord),
    Array(Vec<ShellWord>),
}

#[derive(Debug, PartialEq)]
pub(crate) struct Redirection {
    pub(crate) flow: RedirectionKind,
    pub(crate) target: RedirectionTarget,
}

/// The kind of a redirection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RedirectionKind {
    In,
    Out,
    InOut,
    /// `>&`: a descriptor, or a file if it isn't a number.
    Duplicate,
    /// `<&`
    DuplicateIn,
}

#[derive(Debug, PartialEq)]
pub(crate) enum RedirectionTarget {
    File(ShellWord),
    /// `<<<`
    Text(ShellWord),
    /// `<<`, by its index among the script's documents.
    Document(usize),
}

/// One word as written, piece by piece.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ShellWord {
    pub(crate) pieces: Vec<WordPiece>,
    /// The source text.
    pub(crate) written: String,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum WordPiece {
    /// Literal text.
    Text(String),
    /// `*`, `?` or `[…]` outside quotes.
    Glob(String),
    /// A set of characters that isn't plain: its meaning is unknown.
    Unread(String),
    /// `{`, `,` or `}` outside quotes: an alternative, or literal.
    Brace(char),
    /// `~` or `~name` at the beginning of a word.
    Tilde(String),
    Variable {
        name: String,
        quoted: bool,
    },
    /// `$?`, `$$`, `$#`, `$!`: a number.
    Number,
    Expansion {
        name: String,
        operator: ExpansionOperator,
        word: Vec<WordPiece>,
        quoted: bool,
    },
    /// `$(…)` and backquotes.
    Substitution {
        script: NestedList,
        quoted: bool,
    },
    /// `<(…)` and `>(…)`.
    Process(NestedList),
    /// `$((…))`, with the commands in it.
    Arithmetic(String, Vec<NestedList>),
}

/// A command inside a word. Words are compared and cloned often, so it is shared.
pub(crate) type NestedList = std::rc::Rc<CommandList>;

/// What `${name…}` does with its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExpansionOperator {
    /// `:-`, `-`: the word if there is no value.
    Default,
    /// `:=`, `=`: the word if there is no value, which is also assigned.
    Assign,
    /// `:+`, `+`: the word if there is a value.
    Alternative,
    /// Cuts, replaces, or changes case: the result is unknown text.
    Edit,
    /// `${#name}`
    Length,
    /// Indirection, transformation, an index: it may run code.
    Wild,
}

impl ShellWord {
    /// The text, if a shell would expand nothing in it.
    pub(crate) fn literal(&self) -> Option<String> {
        let mut text = String::new();
        for piece in &self.pieces {
            match piece {
                WordPiece::Text(part) => text.push_str(part),
                WordPiece::Brace(letter) => text.push(*letter),
                _ => return None,
            }
        }
        Some(text)
    }
}
