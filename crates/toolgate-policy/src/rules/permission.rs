//! Rules about a permission: `permission = "net.connect"`.

use std::fmt;

use toolgate_config::ConfigFault;
use toolgate_contract::Permission;

use super::read_word;

/// Matches every effect that needs the permission.
#[derive(Debug)]
pub(crate) struct PermissionRule {
    permission: Permission,
}

impl PermissionRule {
    pub(crate) fn new(permission: Permission) -> Self {
        Self { permission }
    }

    pub(crate) fn matches(&self, permission: Permission) -> bool {
        self.permission == permission
    }

    pub(crate) fn matches_example(&self, example: &str) -> Result<bool, ConfigFault> {
        let known = "`fs.read`, `fs.write`, `fs.delete`, `proc.exec`, `net.connect`, `git.write`, `agent`";
        Ok(self.matches(read_word(example, "permission", known)?))
    }
}

impl fmt::Display for PermissionRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "permission {}", self.permission)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_are_names_of_permissions() {
        let rule = PermissionRule::new(Permission::FsDelete);
        assert_eq!(rule.matches_example("fs.delete"), Ok(true));
        assert_eq!(rule.matches_example("fs.read"), Ok(false));
        assert!(rule.matches_example("fs.remove").is_err());
    }
}
