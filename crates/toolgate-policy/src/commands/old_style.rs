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

#[cfg(test)]
mod tests {
    use super::*;

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
