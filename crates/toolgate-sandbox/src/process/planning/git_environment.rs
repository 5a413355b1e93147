//! Settings of git that commands get through the environment, where a file is mounted over another.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

/// The variable that says how many settings there are in `GIT_CONFIG_KEY_0`, `GIT_CONFIG_VALUE_0` and so on.
const COUNT: &str = "GIT_CONFIG_COUNT";

/// Git recognises an unchanged file by what `stat` says. A mounted file has the size and time of the one that git knows, but another
/// inode; without this, `git reset --hard` would try to replace it.
pub(super) fn compare_times_and_sizes_only(variables: &mut BTreeMap<OsString, OsString>) {
    let count = variables.get(OsStr::new(COUNT)).and_then(|count| count.to_str()?.parse::<usize>().ok()).unwrap_or(0);
    variables.insert(format!("GIT_CONFIG_KEY_{count}").into(), "core.checkStat".into());
    variables.insert(format!("GIT_CONFIG_VALUE_{count}").into(), "minimal".into());
    variables.insert(COUNT.into(), (count + 1).to_string().into());
}
