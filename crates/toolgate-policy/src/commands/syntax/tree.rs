//! What a command is made of.

/// A whole command line, with the bodies of its here-documents beside it.
#[derive(Debug, PartialEq)]
pub(crate) struct Script {
    pub(crate) list: List,
    pub(crate) documents: Vec<Word>,
    /// The names of all functions that are defined somewhere in it.
    pub(crate) functions: Vec<String>,
}

/// Statements, one after the other.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct List(pub(crate) Vec<Statement>);

/// Pipelines joined by `&&` and `||`.
#[derive(Debug, PartialEq)]
pub(crate) struct Statement {
    pub(crate) first: Pipeline,
    pub(crate) rest: Vec<(Join, Pipeline)>,
    pub(crate) background: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Join {
    And,
    Or,
}

/// Commands whose output is the next one's input.
#[derive(Debug, PartialEq)]
pub(crate) struct Pipeline(pub(crate) Vec<Command>);

#[derive(Debug, PartialEq)]
pub(crate) struct Command {
    pub(crate) shape: Shape,
    pub(crate) redirections: Vec<Redirection>,
}

#[derive(Debug, PartialEq)]
pub(crate) enum Shape {
    Simple {
        assignments: Vec<Assignment>,
        words: Vec<Word>,
    },
    /// `{ … }`
    Group(List),
    /// `( … )`
    Subshell(List),
    /// Without words it goes through the shell's own arguments.
    For {
        variable: String,
        words: Option<Vec<Word>>,
        body: List,
    },
    /// `while`, `until` and the arithmetic `for`, whose expressions come as text.
    Loop {
        condition: List,
        arithmetic: Option<(String, Vec<Nested>)>,
        body: List,
    },
    If {
        branches: Vec<(List, List)>,
        otherwise: List,
    },
    Case {
        subject: Word,
        arms: Vec<(Vec<Word>, List)>,
    },
    Function {
        name: String,
        body: Box<Command>,
    },
    /// `[[ … ]]`
    Test(Vec<Word>),
    /// `(( … ))`
    Arithmetic(String, Vec<Nested>),
}

#[derive(Debug, PartialEq)]
pub(crate) struct Assignment {
    pub(crate) name: String,
    /// `+=`
    pub(crate) appends: bool,
    pub(crate) value: Assigned,
}

#[derive(Debug, PartialEq)]
pub(crate) enum Assigned {
    Word(Word),
    Array(Vec<Word>),
}

#[derive(Debug, PartialEq)]
pub(crate) struct Redirection {
    pub(crate) flow: Flow,
    pub(crate) target: Target,
}

/// Which way a redirection goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flow {
    In,
    Out,
    InOut,
    /// `>&`: a descriptor, or a file if it isn't a number.
    Duplicate,
    /// `<&`
    DuplicateIn,
}

#[derive(Debug, PartialEq)]
pub(crate) enum Target {
    File(Word),
    /// `<<<`
    Text(Word),
    /// `<<`, by its number among the script's documents.
    Document(usize),
}

/// One word as it is written, piece by piece.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Word {
    pub(crate) pieces: Vec<Piece>,
    /// As it stands in the command.
    pub(crate) written: String,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Piece {
    /// Text that stands for itself.
    Text(String),
    /// `*`, `?` or `[…]` outside quotes.
    Glob(String),
    /// A set of characters that isn't plain: what it stands for can't be told.
    Unread(String),
    /// `{`, `,` or `}` outside quotes: an alternative, or just itself.
    Brace(char),
    /// `~` or `~name` where a word begins.
    Tilde(String),
    Variable {
        name: String,
        quoted: bool,
    },
    /// `$?`, `$$`, `$#`, `$!`: a number.
    Number,
    Expansion {
        name: String,
        operator: Operator,
        word: Vec<Piece>,
        quoted: bool,
    },
    /// `$(…)` and backquotes.
    Substitution {
        script: Nested,
        quoted: bool,
    },
    /// `<(…)` and `>(…)`.
    Process(Nested),
    /// `$((…))`, with the commands in it.
    Arithmetic(String, Vec<Nested>),
}

/// A command inside a word. Trees of words are compared and copied often, so this one is shared.
pub(crate) type Nested = std::rc::Rc<List>;

/// What `${name…}` does with its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operator {
    /// `:-`, `-`: the word if there is no value.
    Default,
    /// `:=`, `=`: the same, and keeps it.
    Assign,
    /// `:+`, `+`: the word if there is a value.
    Alternative,
    /// Cuts, replaces, or changes case: what comes out is text of no known content.
    Edit,
    /// `${#name}`
    Length,
    /// Indirection, transformation, an index: it may run code.
    Wild,
}

impl Word {
    /// The text, if it holds nothing that a shell would expand.
    pub(crate) fn literal(&self) -> Option<String> {
        let mut text = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text(part) => text.push_str(part),
                Piece::Brace(letter) => text.push(*letter),
                _ => return None,
            }
        }
        Some(text)
    }
}
