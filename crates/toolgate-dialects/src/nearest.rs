//! Names that somebody may have meant.

/// The known names that are most like an unknown one, the nearest first.
pub(crate) fn nearest_names<'a>(unknown: &str, known: &[&'a str], most: usize) -> Vec<&'a str> {
    let mut names: Vec<&str> = known.to_vec();
    names.sort_by_cached_key(|name| strsim::damerau_levenshtein(&unknown.to_lowercase(), &name.to_lowercase()));
    names.truncate(most);
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_comes_first_and_case_matters_least() {
        let known = ["write_file", "read_file", "glob"];
        assert_eq!(nearest_names("Read_File", &known, 2), ["read_file", "write_file"]);
        assert_eq!(nearest_names("globb", &known, 1), ["glob"]);
    }
}
