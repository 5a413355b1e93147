//! What a file looks like around a change, for clients that show it.

/// The lines of the new version that a unified diff shows.
pub(crate) fn changed_lines(diff: &str) -> String {
    let lines = diff.lines().skip_while(|line| !line.starts_with("@@")).filter(|line| line.starts_with([' ', '+']));
    lines.map(|line| &line[1..]).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lines_of_the_new_version_are_shown() {
        let diff = "--- a\n+++ a\n@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three\n";
        assert_eq!(changed_lines(diff), "one\nTWO\nthree");
    }
}
