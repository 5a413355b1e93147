//! Names that somebody may have meant.

/// The known names that are most like an unknown one, the nearest first.
pub(crate) fn nearest_names<'a>(unknown: &str, known: &[&'a str], most: usize) -> Vec<&'a str> {
    let mut names: Vec<&str> = known.to_vec();
    names.sort_by_cached_key(|name| distance(unknown, name));
    names.truncate(most);
    names
}

/// The known name that was probably meant: of three letters, at most one is wrong.
pub(crate) fn meant_name<'a>(unknown: &str, known: &[&'a str]) -> Option<&'a str> {
    let nearest = *nearest_names(unknown, known, 1).first()?;
    (distance(unknown, nearest) <= unknown.chars().count() / 3).then_some(nearest)
}

/// Whether a text names a tool: as a word of its own, not as a part of another name.
pub(crate) fn is_named(tool: &str, text: &str) -> bool {
    text.split(|letter: char| !letter.is_alphanumeric() && letter != '_').any(|word| word == tool)
}

/// How many letters are wrong; their case matters least.
fn distance(one: &str, other: &str) -> usize {
    strsim::damerau_levenshtein(&one.to_lowercase(), &other.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_comes_first_and_case_matters_least() {
        let known = ["write_file", "read_file", "glob"];
        assert_eq!(nearest_names("Read_File", &known, 2), ["read_file", "write_file"]);
        assert_eq!(nearest_names("globb", &known, 1), ["glob"]);
        assert_eq!((meant_name("GLOB", &known), meant_name("blog", &known)), (Some("glob"), None));
    }

    #[test]
    fn a_name_inside_of_another_is_not_named() {
        assert!(is_named("write", "Available tools: read, write.") && !is_named("Bash", "No such tool: Bashh"));
    }
}
