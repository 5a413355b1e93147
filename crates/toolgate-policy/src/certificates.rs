//! Tells public certificates from private keys by content: both are kept in files with the ending `.pem`.

/// What a block of a PEM file may be called (RFC 7468) without being secret.
const PUBLIC: &[&str] = &[
    "CERTIFICATE",
    "TRUSTED CERTIFICATE",
    "X509 CERTIFICATE",
    "X509 CRL",
    "CERTIFICATE REQUEST",
    "NEW CERTIFICATE REQUEST",
    "PUBLIC KEY",
];

/// The length from which a word of base64 outside of a block may be a key.
const KEY_LENGTH: usize = 40;

/// Whether this is a PEM file with public certificates and nothing that could be secret: at least one block, all of them
/// public by name and by content, with comments between them at most.
pub fn holds_only_certificates(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    let (mut blocks, mut lines) = (0, text.lines().map(str::trim));
    while let Some(line) = lines.next() {
        match line.strip_prefix("-----BEGIN ").and_then(|rest| rest.strip_suffix("-----")) {
            Some(name) if PUBLIC.contains(&name) => {
                let end = format!("-----END {name}-----");
                let mut body = String::new();
                loop {
                    match lines.next() {
                        Some(line) if line == end => break,
                        Some(line) if line.bytes().all(is_base64) => body.push_str(line),
                        _ => return false,
                    }
                }
                if !is_public_structure(&body) {
                    return false;
                }
                blocks += 1;
            }
            Some(_) => return false,
            None if !is_comment(line) => return false,
            None => {}
        }
    }
    blocks > 0
}

/// Whether a line between blocks can't be a key.
fn is_comment(line: &str) -> bool {
    let is_key = |word: &str| word.len() >= KEY_LENGTH && word.bytes().all(is_base64);
    let is_hex_key = |word: &str| word.len() >= KEY_LENGTH && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    !line.contains("-----") && !line.to_ascii_uppercase().contains("PRIVATE") && {
        !line.split_whitespace().any(|word| is_key(word) || is_hex_key(word))
    }
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}

/// Whether the content begins as all these do: a DER sequence whose first element is a sequence. In a private key the
/// first element is a number, its version.
fn is_public_structure(body: &str) -> bool {
    const SEQUENCE: u8 = 0x30;
    const LONG_FORM: u8 = 0x80;
    let bytes = decoded_start(body);
    let length = match bytes.get(1) {
        Some(short) if short & LONG_FORM == 0 => 0,
        Some(long) => usize::from(long & !LONG_FORM),
        None => return false,
    };
    bytes.first() == Some(&SEQUENCE) && length <= 4 && bytes.get(2 + length) == Some(&SEQUENCE)
}

/// The first bytes that base64 stands for.
fn decoded_start(body: &str) -> Vec<u8> {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digits = body.bytes().take(16).map_while(|byte| ALPHABET.iter().position(|letter| *letter == byte));
    let digits: Vec<u32> = digits.map(|digit| digit as u32).collect();
    let group = |group: &[u32]| {
        let number = group.iter().fold(0, |number, digit| number << 6 | digit);
        [(number >> 16) as u8, (number >> 8) as u8, number as u8]
    };
    digits.chunks_exact(4).flat_map(group).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The beginnings of a certificate, of a public key and of private keys, as OpenSSL writes them.
    const CERTIFICATE: &str = "MIIDdTCCAl2gAwIBAgILBAAAAAABFUtaw5QwDQYJKoZIhvcNAQEFBQAwVzELMAkG";
    const PUBLIC_KEY: &str = "MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAu1SU1LfVLPHCozMxH2Mo";
    const PKCS8: &str = "MIIEvgIBADANBgkqhkiG9w0BAQEFAASCBKgwggSkAgEAAoIBAQC7VJTUt9Us8cKj";
    const PKCS1: &str = "MIIEogIBAAKCAQEAu1SU1LfVLPHCozMxH2Mo4lgOEePzNm0tRgeLezV6ffAt0gun";
    const EC: &str = "MHcCAQEEIIr2QyYJ8Q5gR5yFv0qkJm3mJ3J1J0J3J5J7J9JbJdJfoAoGCCqGSM49";

    fn block(name: &str, body: &str) -> String {
        format!("-----BEGIN {name}-----\n{body}\n-----END {name}-----\n")
    }

    #[test]
    fn what_holds_only_public_certificates() {
        let certificate = block("CERTIFICATE", CERTIFICATE);
        let comments = "# Issuer: CN=GlobalSign Root CA O=GlobalSign nv-sa OU=Root CA\n# Serial: 4835703278459707669005204\n\
                        # SHA1 Fingerprint: b1:bc:96:8b:d4:f4:9d:62:2a:a8:9a:81:f2:15:01:52:a4:1d:82:9c\n";
        for (text, expected) in [
            (certificate.clone(), true),
            (certificate.replace('\n', "\r\n"), true),
            (format!("{comments}{certificate}\n{comments}{certificate}"), true),
            (block("PUBLIC KEY", PUBLIC_KEY), true),
            (String::new(), false),
            (comments.to_owned(), false),
            (block("PRIVATE KEY", PKCS8), false),
            (block("RSA PRIVATE KEY", PKCS1), false),
            (block("EC PRIVATE KEY", EC), false),
            (block("ENCRYPTED PRIVATE KEY", PKCS8), false),
            (block("OPENSSH PRIVATE KEY", CERTIFICATE), false),
            // Mixed, in either order, or a key under another name.
            (format!("{certificate}{}", block("PRIVATE KEY", PKCS8)), false),
            (format!("{}{certificate}", block("RSA PRIVATE KEY", PKCS1)), false),
            (block("CERTIFICATE", PKCS8), false),
            (block("CERTIFICATE", PKCS1), false),
            (block("PUBLIC KEY", EC), false),
            (format!("{certificate}{PKCS8}\n"), false),
            (format!("{certificate}key: {}\n", "0a".repeat(32)), false),
            (format!("{certificate}# private key below\n"), false),
            // Cut off, or not what it seems.
            (certificate.replace("-----END CERTIFICATE-----", ""), false),
            (format!("{certificate}-----BEGIN PRIVATE KEY-----\n{PKCS8}\n"), false),
            (certificate.replace(CERTIFICATE, "not base64 at all"), false),
            (certificate.replace(CERTIFICATE, ""), false),
        ] {
            assert_eq!(holds_only_certificates(text.as_bytes()), expected, "{text}");
        }
        assert!(!holds_only_certificates(&[certificate.as_bytes(), b"\xff\xfe"].concat()));
    }
}
