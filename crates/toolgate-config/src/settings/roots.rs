//! `[[roots]]`: directories beside the workspace, merged so that no layer widens what a stronger one set.

use toolgate_contract::RootAccess;

use crate::config::RootConfig;
use crate::error::{ConfigError, ConfigFault};
use crate::layer::ConfigLayer;
use crate::table::ROOTS;

/// The roots of all layers that may add some. A weaker layer can't write where a stronger one only reads.
pub(super) fn merge_roots(
    layers: &[ConfigLayer],
    is_sensitive: &dyn Fn(&str) -> bool,
    warnings: &mut Vec<String>,
) -> Result<Vec<RootConfig>, ConfigError> {
    let mut roots: Vec<RootConfig> = Vec::new();
    for input in layers {
        let stronger = roots.clone();
        for wanted in &input.config.roots {
            let mut root =
                check_root(wanted, is_sensitive).map_err(|fault| fault.at(&input.source, input.layer, None))?;
            if !ROOTS.rule.lets_loosen(input) {
                warnings.push(input.ignored(&format!("the root `{}`", root.path), false));
                continue;
            }
            let narrower = |known: &&RootConfig| known.access < root.access && is_beneath(&known.path, &root.path);
            if stronger.iter().any(|known| narrower(&known)) {
                warnings.push(input.ignored(&format!("writing in the root `{}`", root.path), true));
                root.access = RootAccess::Read;
            }
            match roots.iter_mut().find(|known| known.path == root.path) {
                Some(known) => known.access = known.access.min(root.access),
                None => roots.push(root),
            }
        }
    }
    Ok(roots)
}

fn check_root(root: &RootConfig, is_sensitive: &dyn Fn(&str) -> bool) -> Result<RootConfig, ConfigFault> {
    let wrong = |why: &str, hint: &str| Err(ConfigFault::new(format!("The root `{}` {why}.", root.path), hint));
    if !root.path.starts_with('/') {
        return wrong("isn't absolute", "Write the whole path, from `/` on.");
    }
    if root.path.split('/').any(|part| matches!(part, "." | "..")) {
        return wrong("has `.` or `..` in it", "Write where it really is.");
    }
    let parts: Vec<_> = root.path.split('/').filter(|part| !part.is_empty()).collect();
    let path = parts.join("/");
    if is_sensitive(&path) {
        return wrong("is a sensitive place", "Choose a directory that holds no credentials.");
    }
    Ok(RootConfig { path: format!("/{path}"), access: root.access })
}

fn is_beneath(directory: &str, path: &str) -> bool {
    path.strip_prefix(directory).is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || directory == "/")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{layer, settings, try_settings, untrusted};
    use toolgate_contract::Layer;

    #[test]
    fn roots_add_up_but_a_weaker_layer_never_widens_one() {
        let user = layer(Layer::User, "roots = [{ path = '/data/' }, { path = '/work', access = 'write' }]");
        let flags = layer(Layer::Flags, "roots = [{ path = '/data/in', access = 'write' }, { path = '/work' }]");
        let (merged, warnings) = settings(vec![user, flags, untrusted("roots = [{ path = '/home' }]")]);
        let read = |path: &str| RootConfig { path: path.into(), access: RootAccess::Read };
        assert_eq!(merged.roots, [read("/data"), read("/work"), read("/data/in")]);
        assert_eq!(warnings.len(), 2, "{warnings:?}");
    }

    #[test]
    fn roots_that_cannot_be_are_refused() {
        for (path, expected) in
            [("data", "isn't absolute"), ("/a/../b", "`..` in it"), ("/home/me/.ssh", "sensitive place")]
        {
            let input = layer(Layer::User, &format!("roots = [{{ path = '{path}' }}]"));
            let said = try_settings(vec![input]).unwrap_err().to_string();
            assert!(said.contains(expected), "{said}");
        }
    }
}
