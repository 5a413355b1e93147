//! Option bundles without a dash, as `tar` takes them: `tar tfI a.tar x` is `tar -t -f a.tar -I x`. The values of all
//! letters follow the bundle, in the order of the letters.

use super::simple_command::Argument;

/// The letters of `tar` that take a value, in any version of the program.
const WITH_VALUE: &str = "bCfFgHIKLNsTVWX";

/// Rewrites an old-style bundle as single options. `tar` takes every first word without a dash for one.
pub(super) fn with_dashes(name: &str, arguments: &mut Vec<Argument>) {
    let is_tar = matches!(name, "tar" | "gtar" | "bsdtar");
    let Some(bundle) = arguments.first().and_then(Argument::known).filter(|text| is_tar && !text.starts_with('-'))
    else {
        return;
    };
    let letters: Vec<char> = bundle.chars().collect();
    let mut coming = arguments.drain(..).skip(1).collect::<Vec<_>>().into_iter();
    for letter in letters {
        arguments.push(Argument::literal(format!("-{letter}")));
        if WITH_VALUE.contains(letter) {
            arguments.extend(coming.next());
        }
    }
    arguments.extend(coming);
}

/// The options of `ps` without a dash, and those among them whose value is the next word.
const PS_LETTERS: &str = "acefghjklmnoprstuvwxALMNOSTUVXZ";
const PS_WITH_VALUE: &str = "kopqtOU";

/// The options of `ps` with a dash whose value is the next word.
const PS_DASHED_WITH_VALUE: &str = "CGOUgopqstu";

/// Whether a call of `ps` shows the environments of processes: `e` does without a dash, which with one means all processes.
pub(super) fn shows_environments(name: &str, arguments: &[Argument]) -> bool {
    let mut is_value = false;
    name == "ps"
        && arguments.iter().any(|argument| {
            let is_value_of_last = std::mem::take(&mut is_value);
            let Some(word) = argument.known().filter(|_| !is_value_of_last) else { return false };
            let (letters, with_value) = match word.strip_prefix('-') {
                Some(letters) => (letters, PS_DASHED_WITH_VALUE),
                None => (word, PS_WITH_VALUE),
            };
            is_value = !letters.starts_with('-') && letters.ends_with(|letter| with_value.contains(letter));
            let is_bundle = word.chars().all(|letter| PS_LETTERS.contains(letter));
            is_bundle && word.contains('e')
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ps_shows_environments_with_an_e_that_has_no_dash() {
        let shows = |line: &str| {
            let arguments: Vec<Argument> = line.split_whitespace().map(Argument::literal).collect();
            shows_environments("ps", &arguments)
        };
        for line in ["e", "eww", "auxe", "axe", "-p 1 e", "-u root e", "axo pid,cmd e", "-ef e", "--sort=pid e"] {
            assert!(shows(line), "{line}");
        }
        for line in ["", "aux", "-e", "-ef", "-eo pid,etime", "axo etime", "-o e", "-C node", "-p 1", "--forest"] {
            assert!(!shows(line), "{line}");
        }
        assert!(!shows_environments("echo", &[Argument::literal("e")]));
    }

    #[test]
    fn values_follow_a_bundle_in_the_order_of_its_letters() {
        for (written, expected) in [
            ("tar tf a.tar", "tar -t -f a.tar"),
            ("tar tfI a.tar ./evil", "tar -t -f a.tar -I ./evil"),
            ("tar xzfC a.tgz out b", "tar -x -z -f a.tgz -C out b"),
            ("tar -tf a.tar", "tar -tf a.tar"),
            ("tar tf", "tar -t -f"),
            ("tar", "tar"),
            ("zip a b", "zip a b"),
        ] {
            let mut words = written.split(' ');
            let name = words.next().unwrap();
            let mut arguments: Vec<Argument> = words.map(Argument::literal).collect();
            with_dashes(name, &mut arguments);
            let words = [name].into_iter().chain(arguments.iter().map(|argument| argument.text.as_str()));
            assert_eq!(words.collect::<Vec<_>>().join(" "), expected, "{written}");
        }
    }
}
