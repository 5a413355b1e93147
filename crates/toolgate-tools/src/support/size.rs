//! Sizes for people.

use toolgate_contract::counted;

/// A number of bytes as a person reads it: `950 bytes`, `3.4 kB`, `12 MB`.
pub(crate) fn in_words(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["kB", "MB", "GB", "TB"];
    if bytes < 1000 {
        return counted(bytes, "byte");
    }
    let mut size = bytes as f64 / 1000.0;
    let mut unit = 0;
    while size >= 999.5 && unit + 1 < UNITS.len() {
        size /= 1000.0;
        unit += 1;
    }
    match size < 9.95 {
        true => format!("{size:.1} {}", UNITS[unit]),
        false => format!("{size:.0} {}", UNITS[unit]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_short() {
        for (bytes, expected) in [
            (0, "0 bytes"),
            (1, "1 byte"),
            (999, "999 bytes"),
            (1000, "1.0 kB"),
            (9_949, "9.9 kB"),
            (9_960, "10 kB"),
            (999_400, "999 kB"),
            (999_500, "1.0 MB"),
            (12_345_678, "12 MB"),
            (3_400_000_000, "3.4 GB"),
        ] {
            assert_eq!(in_words(bytes), expected);
        }
    }
}
