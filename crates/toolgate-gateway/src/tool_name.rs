//! The names under which servers' tools are offered: `SERVER__TOOL` where that is unambiguous, and otherwise a name with a hash
//! of both. A name is never taken apart again, so no choice of names makes one tool look like another.

use toolgate_contract::sha256;

/// Characters of a name. No client takes more than 64.
const LONGEST: usize = 60;

/// Characters of the hash.
const HASH: usize = 12;

/// The name of a server's tool. Different pairs of server and tool have different names, and no built-in tool has such a name,
/// since none has `__` in it.
pub fn tool_name(server: &str, tool: &str) -> String {
    let plain = format!("{server}__{tool}");
    if is_plain(server) && is_plain(tool) && plain.len() <= LONGEST {
        return plain;
    }
    let digest = sha256(format!("{server}\0{tool}"));
    let usable = |character: char| if character.is_ascii_alphanumeric() { character } else { '-' };
    // Three underscores: no plain name has them, so none can equal a hashed one.
    let end = format!("___{}", &digest[..HASH]);
    let beginning: String =
        server.chars().chain(['-']).chain(tool.chars()).map(usable).take(LONGEST - end.len()).collect();
    format!("{beginning}{end}")
}

/// Whether a name can stand beside `__` without making it ambiguous.
fn is_plain(name: &str) -> bool {
    !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
        && !name.contains("__")
        && !name.starts_with('_')
        && !name.ends_with('_')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_are_plain_where_they_can_be() {
        assert_eq!(tool_name("time", "get_current_time"), "time__get_current_time");
        assert_ne!(tool_name("a", "b__c"), tool_name("a__b", "c"));
        for tool in ["weird name/with:chars é", "", "b__c", "_x", &"n".repeat(90)] {
            let name = tool_name("s", tool);
            assert!(name.len() <= 64 && name.contains("___"), "{name}");
        }
    }

    proptest! {
        #[test]
        fn two_tools_never_have_one_name(
            one in "[a-c_-]{1,6}", tool in "[a-c_-]{0,6}|\\PC{0,4}", other in "[a-c_-]{1,6}", another in "[a-c_-]{0,6}|\\PC{0,4}",
        ) {
            let same = (&one, &tool) == (&other, &another);
            prop_assert_eq!(tool_name(&one, &tool) == tool_name(&other, &another), same);
            let name = tool_name(&one, &tool);
            prop_assert!(name.len() <= LONGEST && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte)));
        }
    }
}
