//! Numbers of things, in words: "1 file", "2 files".

/// So many of a thing, which is given in the singular.
///
/// ```
/// # use toolgate_contract::counted;
/// assert_eq!(counted(1, "file"), "1 file");
/// assert_eq!(counted(0, "match"), "0 matches");
/// assert_eq!(counted(2, "directory"), "2 directories");
/// ```
pub fn counted(count: impl TryInto<u64>, thing: &str) -> String {
    let count = count.try_into().unwrap_or(u64::MAX);
    format!("{count} {}", noun(count, thing))
}

/// A thing, given in the singular, as it follows this number: for numbers that are written in a way of their own.
///
/// ```
/// # use toolgate_contract::noun;
/// assert_eq!(noun(1, "byte"), "byte");
/// assert_eq!(noun(2048, "byte"), "bytes");
/// ```
pub fn noun(count: impl TryInto<u64>, thing: &str) -> String {
    match count.try_into().unwrap_or(u64::MAX) {
        1 => thing.to_owned(),
        _ => plural(thing),
    }
}

/// The plural of an English noun, by the rules that our words need.
fn plural(thing: &str) -> String {
    let before_last = thing.chars().rev().nth(1);
    match thing.strip_suffix('y') {
        Some(stem) if !before_last.is_some_and(|letter| "aeiou".contains(letter)) => format!("{stem}ies"),
        _ if ["s", "x", "ch", "sh"].iter().any(|end| thing.ends_with(end)) => format!("{thing}es"),
        _ => format!("{thing}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_singular_and_all_others_are_plural() {
        for (count, thing, words) in [
            (1, "call", "1 call"),
            (0, "call", "0 calls"),
            (2, "path", "2 paths"),
            (2, "entry", "2 entries"),
            (2, "day", "2 days"),
            (3, "process", "3 processes"),
            (1, "match", "1 match"),
            (1_000_000, "byte", "1000000 bytes"),
        ] {
            assert_eq!(counted(count, thing), words);
        }
    }
}
