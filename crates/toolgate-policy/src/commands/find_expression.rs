//! The expression of `find`: which of the files beneath a start its actions reach. A file is told by the tests that it has
//! passed; where these can't be told, it may be any file.

use std::collections::BTreeSet;

use super::simple_command::Argument;

/// A test that lets only some files pass.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum FoundBy {
    /// The name fits this pattern.
    Name(String),
    /// The path, which begins with the start's, fits this pattern.
    Path(String),
    /// Nothing is in it.
    Emptiness,
}

/// What can reach a place in the expression: any file, or only those that one of the tests let pass.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Reach {
    Any,
    Only(BTreeSet<FoundBy>),
}

impl Reach {
    fn nothing() -> Self {
        Self::Only(BTreeSet::new())
    }

    /// Of those, the ones that pass another test. Whichever test is kept, no file is left out.
    fn and(&self, test: FoundBy) -> Self {
        match self {
            Self::Only(tests) if tests.len() < 2 => Self::Only(tests.clone()),
            _ => Self::Only([test].into()),
        }
    }

    fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Only(one), Self::Only(two)) => Self::Only(one.into_iter().chain(two).collect()),
            _ => Self::Any,
        }
    }
}

/// What goes on where a part of the expression is true, and where it is false.
struct Outcome {
    when_true: Reach,
    when_false: Reach,
}

/// The tests of which a file passes one before an action deletes it or runs something on it; none if it may be any file.
pub(super) fn acted_on(arguments: &[Argument]) -> Option<BTreeSet<FoundBy>> {
    let words: Option<Vec<&str>> = arguments.iter().map(Argument::known).collect();
    let mut reader = ExpressionReader { words: words?, at: 0, acted: Reach::nothing() };
    reader.at = reader.words.iter().position(|word| word.starts_with('-') || matches!(*word, "(" | "!" | ","))?;
    reader.list(&Reach::Any)?;
    match reader.acted {
        Reach::Only(tests) if reader.at == reader.words.len() && !tests.is_empty() => Some(tests),
        _ => None,
    }
}

struct ExpressionReader<'a> {
    words: Vec<&'a str>,
    at: usize,
    acted: Reach,
}

impl<'a> ExpressionReader<'a> {
    fn next(&mut self) -> Option<&'a str> {
        let word = self.words.get(self.at).copied();
        self.at += 1;
        word
    }

    fn takes(&mut self, words: &[&str]) -> bool {
        let takes = self.words.get(self.at).is_some_and(|word| words.contains(word));
        self.at += usize::from(takes);
        takes
    }

    /// Parts with `,` between them: each is done for every file.
    fn list(&mut self, reach: &Reach) -> Option<Outcome> {
        let mut outcome = self.any_of(reach)?;
        while self.takes(&[","]) {
            outcome = self.any_of(reach)?;
        }
        Some(outcome)
    }

    fn any_of(&mut self, reach: &Reach) -> Option<Outcome> {
        let mut outcome = self.all_of(reach)?;
        while self.takes(&["-o", "-or"]) {
            let other = self.all_of(&outcome.when_false)?;
            outcome = Outcome { when_true: outcome.when_true.or(other.when_true), when_false: other.when_false };
        }
        Some(outcome)
    }

    fn all_of(&mut self, reach: &Reach) -> Option<Outcome> {
        let mut outcome = self.negated(reach)?;
        while !matches!(self.words.get(self.at), None | Some(&(")" | "," | "-o" | "-or"))) {
            self.takes(&["-a", "-and"]);
            let other = self.negated(&outcome.when_true)?;
            outcome = Outcome { when_true: other.when_true, when_false: outcome.when_false.or(other.when_false) };
        }
        Some(outcome)
    }

    fn negated(&mut self, reach: &Reach) -> Option<Outcome> {
        if self.takes(&["!", "-not"]) {
            let Outcome { when_true, when_false } = self.negated(reach)?;
            return Some(Outcome { when_true: when_false, when_false: when_true });
        }
        if self.takes(&["("]) {
            let outcome = self.list(reach)?;
            return self.takes(&[")"]).then_some(outcome);
        }
        self.primary(reach)
    }

    /// A test, an action, or an option. None where it isn't known how many words it has.
    fn primary(&mut self, reach: &Reach) -> Option<Outcome> {
        let always = || Outcome { when_true: reach.clone(), when_false: Reach::nothing() };
        let either = || Outcome { when_true: reach.clone(), when_false: reach.clone() };
        let passes = |test| Outcome { when_true: reach.and(test), when_false: reach.clone() };
        Some(match self.next()? {
            "-name" | "-iname" => match self.next()? {
                name if names_some(name) => passes(FoundBy::Name(name.to_owned())),
                _ => either(),
            },
            "-path" | "-ipath" | "-wholename" | "-iwholename" => passes(FoundBy::Path(self.next()?.to_owned())),
            "-empty" => passes(FoundBy::Emptiness),
            "-delete" => {
                self.act(reach);
                either()
            }
            "-exec" | "-execdir" | "-ok" | "-okdir" => {
                while !matches!(self.next()?, ";" | "+") {}
                self.act(reach);
                either()
            }
            "-false" => Outcome { when_true: Reach::nothing(), when_false: reach.clone() },
            "-print" | "-print0" | "-ls" | "-prune" | "-true" | "-depth" | "-mount" | "-xdev" | "-noleaf"
            | "-daystart" | "-follow" => always(),
            "-maxdepth" | "-mindepth" | "-printf" => {
                self.next()?;
                always()
            }
            "-nouser" | "-nogroup" | "-readable" | "-writable" | "-executable" => either(),
            "-type" | "-xtype" | "-size" | "-newer" | "-anewer" | "-cnewer" | "-newermt" | "-perm" | "-user"
            | "-group" | "-uid" | "-gid" | "-links" | "-amin" | "-atime" | "-cmin" | "-ctime" | "-mmin" | "-mtime"
            | "-regex" | "-iregex" | "-regextype" => {
                self.next()?;
                either()
            }
            _ => return None,
        })
    }

    fn act(&mut self, reach: &Reach) {
        self.acted = std::mem::replace(&mut self.acted, Reach::Any).or(reach.clone());
    }
}

/// Whether a pattern says something of the names that fit it: `*.o`, but neither `*` nor `*.*`.
pub(super) fn names_some(pattern: &str) -> bool {
    pattern.chars().any(|letter| letter.is_alphanumeric() || matches!(letter, '~' | '_' | '-' | '#' | '%'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(line: &str) -> Option<Vec<String>> {
        let arguments: Vec<Argument> = line.split(' ').map(Argument::literal).collect();
        let tests = acted_on(&arguments)?.into_iter().map(|test| match test {
            FoundBy::Name(name) | FoundBy::Path(name) => name,
            FoundBy::Emptiness => "empty".to_owned(),
        });
        Some(tests.collect())
    }

    #[test]
    fn an_action_reaches_what_passed_a_test_before_it() {
        for (line, expected) in [
            (". -name *.o -delete", &["*.o"][..]),
            (". -type f -name *.o -delete", &["*.o"]),
            (". -name *.o -o -name *.a -delete", &["*.a"]),
            (". ( -name *.o -o -name *.a ) -delete", &["*.a", "*.o"]),
            (". ( -name *.o -o -name *.a ) -exec rm {} +", &["*.a", "*.o"]),
            (". -path ./x -prune -o -name *.log -delete", &["*.log"]),
            (". -not -path ./.git/* -name *.orig -delete", &["*.orig"]),
            (". -name *.orig ! -path ./.git/* -delete", &["*.orig"]),
            (". -type d -empty -delete", &["empty"]),
            (". -path ./build/* -delete", &["./build/*"]),
            (". -name a -delete -o -name b -exec rm {} ;", &["a", "b"]),
            (". -name a -delete , -name b -delete", &["a", "b"]),
            (". ! ( ! -name a ) -delete", &["a"]),
            (". -name node_modules -prune -exec rm -rf {} +", &["node_modules"]),
        ] {
            assert_eq!(
                found(line).as_deref(),
                Some(&expected.iter().map(|&name| name.to_owned()).collect::<Vec<_>>()[..]),
                "{line}"
            );
        }
    }

    #[test]
    fn whatever_may_be_any_file_is_any_file() {
        for line in [
            ".",
            ". -delete",
            "-delete",
            ". -name * -delete",
            ". -name *.* -delete",
            ". ! -name a -delete",
            ". -not -name a -delete",
            ". -delete -name a",
            ". -name a -o -delete",
            ". -name a , -delete",
            ". -name a -prune -o -delete",
            ". ( -name a -o -true ) -delete",
            ". ( -name a -o -type f ) -delete",
            ". -name a -o -name b -delete -o -delete",
            ". ! ( -name a -o -name b ) -delete",
            ". -mtime +7 -delete",
            ". -name a -unheard -delete",
            ". ( -name a -delete",
            ". -name a ) -delete",
            ". -false -o -delete",
        ] {
            assert_eq!(found(line), None, "{line}");
        }
    }
}
