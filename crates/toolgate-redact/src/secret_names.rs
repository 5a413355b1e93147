//! Names that say that their value is a secret, whether of an environment variable, a field or a header.

/// Endings of names whose values are secret, in capitals and without separators.
const SECRET: &[&str] = &[
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "SECRET",
    "TOKEN",
    "APIKEY",
    "ACCESSKEY",
    "SECRETKEY",
    "SECRETKEYBASE",
    "PRESHAREDKEY",
    "PRIVATEKEY",
    "SIGNINGKEY",
    "ENCRYPTIONKEY",
    "AUTHKEY",
    "ACCOUNTKEY",
    "MASTERKEY",
    "CREDENTIAL",
    "CREDENTIALS",
    "AUTHORIZATION",
    "COOKIE",
];

/// Endings of names that only look so: positions in a listing, counts, what everyone may know.
const HARMLESS: &[&str] = &[
    "NEXTTOKEN",
    "PREVIOUSTOKEN",
    "PREVTOKEN",
    "PAGETOKEN",
    "CONTINUATIONTOKEN",
    "SYNCTOKEN",
    "CURSORTOKEN",
    "STOPTOKEN",
    "STARTTOKEN",
    "ENDTOKEN",
    "PADTOKEN",
    "EOSTOKEN",
    "BOSTOKEN",
    "UNKTOKEN",
    "MAXTOKEN",
    "MINTOKEN",
    "NUMTOKEN",
];

/// A name in capitals and without separators, so that `apiKey`, `api_key` and `API-KEY` are one.
pub(crate) fn plain(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|letter| letter.to_ascii_uppercase()).collect()
}

/// Whether the value under this name is a secret.
pub(crate) fn names_a_secret(name: &str) -> bool {
    let name = plain(name);
    let ends_with = |endings: &[&str]| endings.iter().any(|ending| name.ends_with(ending));
    ends_with(SECRET) && !ends_with(HARMLESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secrets_and_names_that_look_so() {
        for name in [
            "password",
            "dbPassword",
            "API_KEY",
            "x-api-key",
            "Authorization",
            "client_secret",
            "id_token",
            "SECRET_KEY_BASE",
        ] {
            assert!(names_a_secret(name), "{name}");
        }
        for name in
            ["next_token", "nextPageToken", "max_tokens", "token_count", "secretName", "key", "public_key", "id"]
        {
            assert!(!names_a_secret(name), "{name}");
        }
    }
}
