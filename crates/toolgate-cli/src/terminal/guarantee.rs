//! The names of the sandbox's guarantees, as every subcommand shows them.

use anstyle::Style;
use toolgate_contract::{Guarantee, GuaranteeLevel};

use super::{GREEN, RED, YELLOW};

/// A guarantee by its name.
pub(crate) fn guarantee(guarantee: Guarantee) -> &'static str {
    match guarantee {
        Guarantee::Paths | Guarantee::Filesystem => "files",
        Guarantee::Network => "network",
        Guarantee::ProcessTree => "process tree",
        Guarantee::Syscalls => "system calls",
        Guarantee::Resources => "resources",
        Guarantee::Environment => "environment",
        Guarantee::Secrets => "secrets",
        Guarantee::Approvals => "approvals",
        Guarantee::Undo => "undo",
    }
}

/// How well a guarantee holds, as a coloured mark.
pub(crate) fn holding_mark(holding: GuaranteeLevel) -> (&'static str, Style) {
    match holding {
        GuaranteeLevel::Held => ("✓", GREEN),
        GuaranteeLevel::Partly => ("~", YELLOW),
        GuaranteeLevel::NotHeld => ("✗", RED),
    }
}
