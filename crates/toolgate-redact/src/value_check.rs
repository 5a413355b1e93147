//! What a value tells about itself. A rule's regex finds where a secret would stand; whether a secret stands there, or a
//! variable, a type, a path or a placeholder, is decided here. Source code goes through redaction too and is edited
//! afterwards, so a value that is replaced for nothing is a fault as much as one that is missed.

use serde::Deserialize;

/// What a rule expects of the value it found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ValueCheck {
    /// The shape alone is proof.
    #[default]
    Any,
    /// Not a reference to something else and not a placeholder.
    Literal,
    /// As `literal`, and not a number, a path or a word of a programming language.
    Given,
    /// As `given`, with a digit or a symbol; six digits will do.
    Password,
    /// As `given`, with a letter and a digit.
    Token,
    /// As `token`, long and with no pattern to it.
    Random,
    /// Base64 of `user:password`.
    Basic,
    /// The first line of a key's body.
    Body,
}

impl ValueCheck {
    /// Whether `value` is what the rule expects.
    pub(crate) fn accepts(self, value: &[u8]) -> bool {
        match self {
            Self::Any => true,
            Self::Literal => !stands_for_another(value),
            Self::Given => !stands_for_another(value) && !is_number(value) && !is_ordinary(value),
            Self::Password => {
                let telling = value.iter().any(|byte| byte.is_ascii_digit() || is_symbol(*byte));
                let number = value.iter().all(u8::is_ascii_digit) && value.len() >= 6;
                telling && (number || Self::Given.accepts(value))
            }
            Self::Token => {
                value.iter().any(u8::is_ascii_digit)
                    && value.iter().any(u8::is_ascii_alphabetic)
                    && !is_camel_case(value)
                    && Self::Given.accepts(value)
            }
            Self::Random => value.len() >= 12 && Self::Token.accepts(value) && looks_random(value),
            Self::Basic => holds_user_and_password(value),
            Self::Body => value.len() >= 40 || !value.iter().all(u8::is_ascii_alphabetic) || begins_a_key(value),
        }
    }
}

/// References (`${NAME}`, `<token>`, `{{ x }}`, `%s`) and placeholders (`changeme`, `****`, `your-token`).
fn stands_for_another(value: &[u8]) -> bool {
    is_reference(value) || is_placeholder(value)
}

fn is_reference(value: &[u8]) -> bool {
    let Some((&first, rest)) = value.split_first() else { return true };
    let names = !rest.is_empty() && rest.iter().all(|byte| byte.is_ascii_alphabetic() || *byte == b'_');
    match first {
        b'$' if rest.first().is_some_and(|byte| byte.is_ascii_alphabetic() || b"_{(".contains(byte)) => return true,
        b'$' if rest.len() <= 2 => return true,
        b'%' if rest.first().is_some_and(|byte| byte.is_ascii_alphabetic() || b"({".contains(byte)) => return true,
        b'@' | b':' | b'&' | b'*' | b'!' if names => return true,
        b'<' | b'[' | b'{' | b'^' => return true,
        _ => {}
    }
    let brackets =
        [(b'{', b'}'), (b'[', b']')].iter().any(|(open, close)| value.contains(open) && value.contains(close));
    brackets || ["${", "$(", "{{", "#{", "<%", " $"].iter().any(|mark| contains(value, mark))
}

/// Parts that only occur in text that asks for a value, in lower case.
const PLACEHOLDERS: &str = "\
    *** ... … redacted changeme change_me change-me placeholder your_ your- yourpass yourtoken yourkey yoursecret \
    example xxxx dummy replace_me replace-me replaceme insert_ insert- fixme";

/// Whether the value only marks where one belongs.
pub(crate) fn is_placeholder(value: &[u8]) -> bool {
    let lower = value.to_ascii_lowercase();
    let one_character = lower.len() >= 2 && lower.iter().all(|byte| *byte == lower[0]);
    one_character || PLACEHOLDERS.split(' ').any(|part| contains(&lower, part))
}

/// Numbers with their usual trimmings: `4096`, `1_000`, `0x1F`, `30s`, `1.5e3`.
pub(crate) fn is_number(value: &[u8]) -> bool {
    let digits = value.strip_prefix(b"-").unwrap_or(value);
    let hexadecimal = digits.strip_prefix(b"0x").is_some_and(|rest| rest.iter().all(u8::is_ascii_hexdigit));
    let plain = digits.iter().position(|byte| !byte.is_ascii_digit() && !b"._".contains(byte)).unwrap_or(digits.len());
    let unit = &digits[plain..];
    hexadecimal || (plain > 0 && unit.len() <= 2 && unit.iter().all(|byte| byte.is_ascii_alphabetic() || *byte == b'%'))
}

/// What stands after a name in code or configuration and is no secret.
fn is_ordinary(value: &[u8]) -> bool {
    is_word_of_code(value) || is_type_with_size(value) || is_colour(value) || is_path(value) || is_made_of_names(value)
}

/// Words that a language or a schema gives as a value or a type.
const WORDS: &str = "\
    none null nil undefined true false yes no str string bytes int integer number float bool boolean object any self \
    this required optional buffer symbol unknown void never default empty missing invalid hidden";

fn is_word_of_code(value: &[u8]) -> bool {
    let trimmed = value.strip_suffix(b"?").or(value.strip_suffix(b".")).unwrap_or(value);
    WORDS.split(' ').any(|word| trimmed.eq_ignore_ascii_case(word.as_bytes())) || value.starts_with(b"required|")
}

/// Types and encodings that end in a number, such as `u64`, `uint256`, `sha256`, `base64`, `utf8`.
fn is_type_with_size(value: &[u8]) -> bool {
    const STEMS: &str = "\
        i u f v int uint float bytes byte utf utf- sha sha- md base char varchar string str vec hs rs es hmacsha oauth \
        http ipv x";
    let value = value.strip_prefix(b"&").unwrap_or(value);
    let stem = value.iter().position(u8::is_ascii_digit).unwrap_or(value.len());
    let digits = &value[stem..];
    digits.len() <= 3
        && digits.iter().all(u8::is_ascii_digit)
        && STEMS.split(' ').any(|known| value[..stem].eq_ignore_ascii_case(known.as_bytes()))
}

/// Colours, such as `#d8dee9`.
fn is_colour(value: &[u8]) -> bool {
    matches!(value, [b'#', digits @ ..] if digits.len() <= 8 && digits.iter().all(u8::is_ascii_hexdigit))
}

/// A type's name of several words, such as `V1SecretVolumeSource`: nearly every capital begins a word.
fn is_camel_case(value: &[u8]) -> bool {
    let begins_word = |part: &&[u8]| part[0].is_ascii_uppercase() && part[1..].iter().all(u8::is_ascii_lowercase);
    let words = value.windows(4).filter(begins_word).count();
    let capitals = value.iter().filter(|byte| byte.is_ascii_uppercase()).count();
    let digits = value.iter().filter(|byte| byte.is_ascii_digit()).count();
    words >= 2 && capitals <= words + 1 && digits <= 2 && value.iter().all(u8::is_ascii_alphanumeric)
}

/// Paths and addresses: they begin as one, and no part of them looks random.
pub(crate) fn is_path(value: &[u8]) -> bool {
    let begins = [&b"/"[..], b"./", b"../", b"~/", b"~\\"].iter().any(|start| value.starts_with(start));
    let drive = value.len() > 2 && value[0].is_ascii_alphabetic() && value[1] == b':' && b"\\/".contains(&value[2]);
    let address = contains(value, "://");
    let parts = || value.split(|byte| b"/\\".contains(byte));
    let tame = |part: &[u8]| part.iter().all(|byte| !b"+=".contains(byte)) && !(part.len() >= 16 && is_jumbled(part));
    address || ((begins || drive) && parts().all(tame))
}

/// Several plain words or numbers with something between them: `my-app-secret-v2`, `self.token1`, `2024-01-15`.
fn is_made_of_names(value: &[u8]) -> bool {
    let mut parts = value.split(|byte| b"-_.:/>".contains(byte)).filter(|part| !part.is_empty());
    let dotted = value.contains(&b'.') || contains(value, "::") || contains(value, "->");
    let is_name = |part: &[u8]| {
        let numbers = part.split(|byte| !byte.is_ascii_digit()).filter(|digits| !digits.is_empty());
        let at_end = part.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
        let few = match dotted {
            true => part[0].is_ascii_alphabetic() && numbers.count() <= 1,
            false => numbers.map(<[u8]>::len).sum::<usize>() == at_end && at_end <= 1,
        };
        let number = at_end == part.len();
        part.iter().all(u8::is_ascii_alphanumeric) && (number || few || is_type_with_size(part)) && !is_jumbled(part)
    };
    parts.clone().count() >= 2 && parts.all(is_name)
}

/// Letters of both cases and digits, changing back and forth more often than a name would.
fn is_jumbled(part: &[u8]) -> bool {
    let kind = |byte: &u8| match byte {
        b'0'..=b'9' => 0,
        b'a'..=b'z' => 1,
        b'A'..=b'Z' => 2,
        _ => 3,
    };
    let rises = |pair: &[u8]| kind(&pair[0]) == 2 && kind(&pair[1]) == 1;
    let changes = part.windows(2).filter(|pair| kind(&pair[0]) != kind(&pair[1]) && !rises(pair)).count();
    part.len() >= 8 && changes * 4 > part.len()
}

/// Enough digits, enough different bytes, and no words with separators.
fn looks_random(value: &[u8]) -> bool {
    let digits = value.iter().filter(|byte| byte.is_ascii_digit()).count();
    digits >= 2 && entropy(value) >= 3.0
}

/// Shannon entropy in bits for each byte.
fn entropy(value: &[u8]) -> f64 {
    let mut counts = [0u32; 256];
    for &byte in value {
        counts[usize::from(byte)] += 1;
    }
    let total = value.len() as f64;
    counts.iter().filter(|count| **count > 0).map(|count| f64::from(*count) / total).map(|p| -p * p.log2()).sum()
}

/// A character that people put into passwords and that code has no other use for inside a value.
fn is_symbol(byte: u8) -> bool {
    byte.is_ascii_punctuation() && !b"-_.:/'\"".contains(&byte)
}

/// How the usual formats of keys begin, in base64.
fn begins_a_key(value: &[u8]) -> bool {
    [&b"MI"[..], b"MH", b"MC4", b"b3Blb"].iter().any(|start| value.starts_with(start))
}

fn holds_user_and_password(value: &[u8]) -> bool {
    decode_base64(value).is_some_and(|text| {
        text.iter().all(|byte| matches!(byte, b' '..=b'~') || *byte >= 0x80) && text[1..].contains(&b':')
    })
}

fn decode_base64(value: &[u8]) -> Option<Vec<u8>> {
    let digits = value.iter().position(|byte| *byte == b'=').map_or(value, |end| &value[..end]);
    if digits.len() % 4 == 1 || digits.len() < 4 {
        return None;
    }
    let (mut text, mut bits, mut held) = (Vec::with_capacity(digits.len()), 0u32, 0);
    for &digit in digits {
        let six = match digit {
            b'A'..=b'Z' => digit - b'A',
            b'a'..=b'z' => digit - b'a' + 26,
            b'0'..=b'9' => digit - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        (bits, held) = (bits << 6 | u32::from(six), held + 6);
        if held >= 8 {
            held -= 8;
            text.push((bits >> held) as u8);
        }
    }
    Some(text)
}

fn contains(value: &[u8], part: &str) -> bool {
    value.windows(part.len()).any(|window| window == part.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_value_and_what_it_is_not() {
        let cases: &[(ValueCheck, &[&str], &[&str])] = &[
            (
                ValueCheck::Literal,
                &["pw", "4096", "password"],
                &["$PW", "${PW}", "<pw>", "%s", "{{ pw }}", "changeme", "***"],
            ),
            (ValueCheck::Given, &["postgres", "hunter2"], &["4096", "1_000", "0x1F", "30s", "None", "/run/secrets/db"]),
            (
                ValueCheck::Password,
                &["hunter2", "p@ss", "123456", "Tr0ub4dor-3", "$2b$12$abcdefghijk"],
                &["string", "Passwort", "1234", "u8", "user.password1", "required|min:8", "^[a-z]{8,}$", "@password"],
            ),
            (
                ValueCheck::Token,
                &["abc123", "abc123def", "2YotnFZFEjr1zCsicMWpAA", "0d3ecf3c-7f1a-4f0e-9a55-1c1d3f1b2a10"],
                &[
                    "access_token",
                    "V1SecretVolumeSource",
                    "#d8dee9",
                    "Jobs[-1].JobId2",
                    "ed25519.Ed25519PrivateKey",
                    "uint256",
                    "base64",
                    "my-app-secret-v2",
                    "2024-01-15",
                    "=>",
                    "csrf-token-1",
                ],
            ),
            (
                ValueCheck::Random,
                &["wJalrXUtnFEMIK7MDENG2bPxR", "9f86d081884c7d659a2feaa0c55ad015"],
                &["created_at_and_more", "derive_secret_key_v2", "aaaaaaaaaaaaaaaaaaaa1", "settings.tokens.primary2"],
            ),
            (ValueCheck::Basic, &["dXNlcjpwYXNz", "YTpi"], &["authentication", "required", "abc", "dXNlcg=="]),
            (ValueCheck::Body, &["MIIEvQIBADANBgkq"], &["thisIsAnIdentifier"]),
        ];
        for (kind, accepted, refused) in cases {
            for value in *accepted {
                assert!(kind.accepts(value.as_bytes()), "{kind:?} should accept {value}");
            }
            for value in *refused {
                assert!(!kind.accepts(value.as_bytes()), "{kind:?} should refuse {value}");
            }
        }
    }

    #[test]
    fn a_base64_secret_that_begins_with_a_slash_is_no_path() {
        assert!(is_path(b"/home/me/.ssh/id_ed25519"));
        assert!(is_path(b"~/keys/service-account.json"));
        assert!(is_path(b"C:\\keys\\id"));
        assert!(!is_path(b"/K7MDENG2bPxRfiCYwJalrXUtnFEMI"));
        assert!(!is_path(b"/abc+def=="));
    }
}
