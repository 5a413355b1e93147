//! Where the values of a JSON text are, so that one can be replaced and all others stay as they are. The text has been parsed before,
//! so it is known to be JSON.

use std::ops::Range;

/// Where the value of a field of the outermost object is.
pub(super) fn field(json: &str, name: &str) -> Option<Range<usize>> {
    let scanner = Scanner { bytes: json.as_bytes() };
    let mut at = scanner.space(0);
    if scanner.byte(at) != Some(b'{') {
        return None;
    }
    at = scanner.space(at + 1);
    let mut found = None;
    while scanner.byte(at) == Some(b'"') {
        let key = at..scanner.value_end(at);
        let colon = scanner.space(key.end);
        let start = scanner.space(colon + 1);
        let end = scanner.value_end(start);
        // Of a name that is there twice, the last counts, as for every reader.
        if serde_json::from_str::<String>(&json[key]).is_ok_and(|key| key == name) {
            found = Some(start..end);
        }
        at = scanner.space(end);
        if scanner.byte(at) == Some(b',') {
            at = scanner.space(at + 1);
        }
    }
    found
}

/// Where the items of the array in this range are.
pub(super) fn items(json: &str, array: &Range<usize>) -> Vec<Range<usize>> {
    let scanner = Scanner { bytes: json.as_bytes() };
    let mut items = Vec::new();
    let mut at = scanner.space(array.start + 1);
    while at < array.end && scanner.byte(at) != Some(b']') {
        let end = scanner.value_end(at);
        items.push(at..end);
        at = scanner.space(end);
        if scanner.byte(at) == Some(b',') {
            at = scanner.space(at + 1);
        }
    }
    items
}

struct Scanner<'a> {
    bytes: &'a [u8],
}

impl Scanner<'_> {
    fn byte(&self, at: usize) -> Option<u8> {
        self.bytes.get(at).copied()
    }

    /// The next byte that isn't white space.
    fn space(&self, at: usize) -> usize {
        let rest = self.bytes.get(at..).unwrap_or_default();
        at + rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count()
    }

    /// Where the value ends that begins here.
    fn value_end(&self, start: usize) -> usize {
        let (mut depth, mut in_text, mut at) = (0_usize, false, start);
        while let Some(byte) = self.byte(at) {
            at += 1;
            match (in_text, byte) {
                (true, b'\\') => at += 1,
                (true, b'"') => in_text = false,
                (true, _) => continue,
                (false, b'"') => in_text = true,
                (false, b'{' | b'[') => depth += 1,
                (false, b'}' | b']') if depth == 0 => return at - 1,
                (false, b'}' | b']') => depth -= 1,
                (false, b',') if depth == 0 => return at - 1,
                (false, _) => {
                    let ends = self.byte(at).is_none_or(|next| next.is_ascii_whitespace());
                    if depth == 0 && ends {
                        return at;
                    }
                    continue;
                }
            }
            if depth == 0 && !in_text {
                return at;
            }
        }
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_whatever_is_in_them() {
        let json = r#" { "a" : [1, "x]\"}", {"b":[ ]}, -2.5e3 ,null], "cells":[ ], "n":7 } "#;
        let array = field(json, "a").unwrap();
        let found: Vec<&str> = items(json, &array).into_iter().map(|item| &json[item]).collect();
        assert_eq!(found, ["1", r#""x]\"}""#, r#"{"b":[ ]}"#, "-2.5e3", "null"]);
        assert_eq!(&json[field(json, "n").unwrap()], "7");
        assert!(items(json, &field(json, "cells").unwrap()).is_empty());
        assert_eq!(field(json, "b"), None, "only fields of the outermost object");
    }
}
