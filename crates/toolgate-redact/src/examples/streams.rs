//! A stream redacts as the whole does, however its text is cut into chunks, and holds back little.

use proptest::prelude::*;

use super::{ORDINARY, SECRETS, before_and_after, expand};
use crate::*;

pub(super) fn streamed(redactor: &Redactor, bytes: &[u8], cuts: &[usize]) -> (Vec<u8>, bool) {
    let mut stream = redactor.stream();
    let (mut output, mut from) = (Vec::new(), 0);
    for &cut in cuts.iter().chain([&bytes.len()]) {
        let cut = cut.clamp(from, bytes.len());
        output.extend(stream.push(&bytes[from..cut]));
        from = cut;
    }
    output.extend(stream.finish());
    (output, stream.redacted())
}

#[test]
fn byte_by_byte_is_as_good_as_whole() {
    let redactor = Redactor::default();
    for example in SECRETS.iter().chain(ORDINARY) {
        let (text, _) = before_and_after(example);
        let cuts: Vec<usize> = (0..text.len()).collect();
        let (output, redacted) = streamed(&redactor, text.as_bytes(), &cuts);
        let whole = redactor.bytes(text.as_bytes());
        assert_eq!(output, whole.as_ref(), "{text}");
        assert_eq!(redacted, matches!(whole, Cow::Owned(_)));
    }
}

#[test]
fn a_stream_holds_back_little_and_can_be_used_again() {
    let mut stream = Redactor::default().stream();
    assert_eq!(stream.push(b"Compiling toolgate\n"), b"Compiling toolgate\n");
    assert_eq!(stream.push(b"DB_PASSWORD=hun"), b"DB_");
    assert_eq!(stream.push(b"ter2\n"), b"PASSWORD=***REDACTED***\n");
    assert_eq!(stream.push(b"gh"), b"");
    assert_eq!(stream.finish(), b"gh");
    assert_eq!(stream.push(b"p_ a new text\n"), b"p_ a new text\n");
    assert!(stream.redacted());
}

#[test]
fn a_preview_shows_prompts_and_no_beginning_of_a_secret() {
    let redactor = Redactor::new([("A_TOKEN".to_owned(), "0pen-sesame".to_owned())]);
    let hidden = [
        ("\u{1b}[31mghp_", "abc1"),
        ("password: ", "hun"),
        ("DB_PASSWORD=", "hun"),
        ("\u{1b}[31mDB_PASSWORD\u{1b}[m=", "hun"),
        ("{\"token\": \"", "ab"),
        ("password: str = \"", "hun"),
        ("Authorization: Bearer ", "abc"),
        ("curl -u me:", "hun"),
        ("sshpass -p ", "hun"),
        ("ENV X_PASSWORD ", "hun"),
        ("https://me:", "hun"),
        ("-----BEGIN PRIVATE KEY-----\n", "MIIE"),
        ("the answer is ", "0pen"),
        ("the answer is ", "0pen-sesam"),
    ];
    for (before, secret) in hidden {
        let mut stream = redactor.stream();
        let shown = [stream.push(before.as_bytes()), stream.push(secret.as_bytes()), stream.preview()].concat();
        let expected = format!("{before}{REDACTED}");
        assert_eq!(String::from_utf8_lossy(&shown), expected);
        assert!(!stream.redacted(), "a preview changes nothing");
    }
    let prompts = [
        "Password: ",
        "Password:",
        "[sudo] password for ada: ",
        "Enter passphrase for key '/home/ada/.ssh/id_ed25519': ",
        "Use the saved token for ada [y/N]",
        ">>> ",
        "Are you sure (yes/no)? ",
        "the answer is 0pe",
        "Progress 12%",
    ];
    for prompt in prompts {
        let mut stream = redactor.stream();
        let shown = [stream.push(prompt.as_bytes()), stream.preview()].concat();
        assert_eq!(String::from_utf8_lossy(&shown), prompt);
    }
}

#[test]
fn memory_is_bounded_whatever_comes() {
    let endless: [&[u8]; 5] = [
        b"-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC",
        b"Bearer abcdef0123456789",
        b"password",
        b"password: ",
        b" ",
    ];
    for start in endless {
        for filler in [&b"A"[..], b" ", b"password=", b"\n", b"sk-", b"-----BEGIN ", b"\x1b[m", b"A\x1b[m"] {
            let mut stream = Redactor::default().stream();
            let (mut input, mut output) = (start.len(), stream.push(start).len());
            let chunk = filler.repeat(200);
            for _ in 0..20 {
                input += chunk.len();
                output += stream.push(&chunk).len();
                // Between two bytes of text there may be a whole run of colour escapes.
                let most = if filler.contains(&0x1b) { 48 * 1024 } else { 4096 };
                assert!(stream.held() < chunk.len() + most, "{start:?} {filler:?}: {input} in, {output} out");
            }
        }
    }
}

/// Text in which secrets, halves of secrets, keywords and garbage follow each other.
fn mixtures() -> impl Strategy<Value = Vec<u8>> {
    let examples: Vec<Vec<u8>> =
        SECRETS.iter().chain(ORDINARY).map(|example| before_and_after(example).0.into_bytes()).collect();
    let known = [
        &b"0pen-sesame"[..],
        b"0pen-ses",
        b"OPEN-SESAME",
        b"\n",
        b" ",
        b"\"",
        b"\\n",
        b"-----BEGIN ",
        b"password=",
        b"\x1b[01;31m\x1b[K",
        b"\x1b[m",
        b"\x1b[",
        b"\x1b",
    ];
    let example = proptest::sample::select(examples);
    let half = (example.clone(), any::<proptest::sample::Index>())
        .prop_map(|(text, at)| text[..at.index(text.len())].to_vec());
    let piece = prop_oneof![
        3 => example,
        2 => half,
        2 => proptest::sample::select(known.to_vec()).prop_map(<[u8]>::to_vec),
        2 => proptest::collection::vec(any::<u8>(), 0..40),
        1 => "[ -~]{0,80}".prop_map(String::into_bytes),
        1 => (0..700usize).prop_map(|count| vec![b'A'; count]),
    ];
    proptest::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn a_stream_redacts_as_the_whole_would_be(
        text in mixtures(),
        cuts in proptest::collection::vec(0..6000usize, 0..40),
    ) {
        let redactor = Redactor::new([("A_TOKEN".to_owned(), "0pen-sesame".to_owned())]);
        let mut cuts = cuts;
        cuts.sort_unstable();
        let whole = redactor.bytes(&text);
        let (output, redacted) = streamed(&redactor, &text, &cuts);
        prop_assert_eq!(&output, whole.as_ref());
        prop_assert_eq!(redacted, matches!(whole, Cow::Owned(_)));
    }

    #[test]
    fn text_stays_text(text in "\\PC{0,60}(password: \"|token=|https://a:|Bearer |0pen)\\PC{0,600}") {
        let redactor = Redactor::new([("A_TOKEN".to_owned(), "0pen\u{e9}-sesame".to_owned())]);
        prop_assert!(String::from_utf8(redactor.bytes(text.as_bytes()).into_owned()).is_ok());
    }

    #[test]
    fn a_token_is_found_wherever_it_stands(before in "[ -~]{0,90}[ \n]", after in "[ \n][ -~]{0,90}") {
        let token = expand("ghp_{x36}");
        let output = Redactor::default().text(&format!("{before}{token}{after}")).into_owned();
        prop_assert!(!output.contains(&token), "{}", output);
    }
}
