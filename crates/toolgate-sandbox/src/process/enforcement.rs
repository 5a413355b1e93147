//! What was really enforced, as a value: which tier confines a command, and for each guarantee whether it holds, with the
//! reason.

use serde::{Deserialize, Serialize};
pub use toolgate_contract::Tier;
use toolgate_contract::{Enforced, Guarantee, GuaranteeLevel};

use super::plan::{NetworkPlan, SandboxPlan};

/// What the first process found out while it confined itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SetupFindings {
    /// Whether Landlock restricts files.
    pub(super) landlock: bool,
    /// Whether `/proc` shows the sandbox's own processes alone.
    pub(super) own_proc: bool,
    /// Whether the number of processes is limited.
    pub(super) processes_limited: bool,
    /// Whether inotify instances and watches are limited.
    pub(super) inotify_limited: bool,
    /// Whether decoys are mounted over secrets and watched.
    pub(super) watched: bool,
    /// Whether the host got a netlink socket that lists the Unix sockets of the network namespace.
    pub(super) lists_sockets: bool,
    /// Whether the host is asked about every `connect` of the command, and got the listener for that.
    pub(super) asks_for_connects: bool,
    /// Whether a cgroup limits the memory of all sandboxes together. The host sets this.
    pub(super) memory_limited_together: bool,
}

/// What was really enforced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Enforcement {
    /// The mechanism that confines the command.
    pub tier: Tier,
    /// Every guarantee that applies.
    pub guarantees: Vec<GuaranteeReport>,
}

/// One guarantee, and whether it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuaranteeReport {
    /// The guarantee.
    pub guarantee: Guarantee,
    /// Whether it holds fully, partly or not at all.
    pub holding: GuaranteeLevel,
    /// What enforces it, or why it doesn't hold.
    pub reason: String,
}

impl Enforcement {
    /// The guarantees as they are listed in a reply.
    pub fn enforced(&self) -> Enforced {
        Enforced(self.guarantees.iter().map(|report| (report.guarantee, report.holding)).collect())
    }

    /// How well a guarantee holds; `None` when it doesn't apply.
    pub fn holding(&self, guarantee: Guarantee) -> Option<GuaranteeLevel> {
        self.guarantees.iter().find(|report| report.guarantee == guarantee).map(|report| report.holding)
    }

    pub(super) fn of(plan: &SandboxPlan, findings: &SetupFindings) -> Self {
        if plan.tier == Tier::Open {
            return Self::of_nothing();
        }
        let mut guarantees = vec![
            files(plan, findings),
            process_tree(plan.tier),
            report(Guarantee::Syscalls, GuaranteeLevel::Held, "a seccomp filter refuses dangerous system calls"),
            resources(plan, findings),
            report(
                Guarantee::Environment,
                GuaranteeLevel::Held,
                "the environment is the profile's; nothing is inherited",
            ),
        ];
        guarantees.extend(network(plan));
        guarantees.extend(secrets(plan, findings));
        Self { tier: plan.tier, guarantees }
    }
}

impl Enforcement {
    /// What holds without confinement.
    fn of_nothing() -> Self {
        let open =
            [Guarantee::Filesystem, Guarantee::Network, Guarantee::Syscalls, Guarantee::Resources, Guarantee::Secrets];
        let mut guarantees: Vec<GuaranteeReport> = open
            .map(|guarantee| report(guarantee, GuaranteeLevel::NotHeld, "it was granted to run with no sandbox"))
            .into();
        guarantees.push(process_tree(Tier::Open));
        guarantees.push(report(Guarantee::Environment, GuaranteeLevel::Held, "the environment is the profile's"));
        Self { tier: Tier::Open, guarantees }
    }
}

fn report(guarantee: Guarantee, holding: GuaranteeLevel, reason: impl Into<String>) -> GuaranteeReport {
    GuaranteeReport { guarantee, holding, reason: reason.into() }
}

fn files(plan: &SandboxPlan, findings: &SetupFindings) -> GuaranteeReport {
    let guarantee = Guarantee::Filesystem;
    if plan.tier == Tier::Landlock {
        let gaps = "Landlock doesn't stop chmod, utime and attributes outside the roots, and neither hides nor protects \
                    anything inside what is writable, Toolgate's own state among it";
        return report(guarantee, GuaranteeLevel::Partly, gaps);
    }
    match (findings.own_proc, findings.landlock) {
        (false, _) => report(
            guarantee,
            GuaranteeLevel::Partly,
            "the kernel refused a /proc of its own, so the names of other processes can be seen",
        ),
        (true, true) => report(guarantee, GuaranteeLevel::Held, "by its own mounts and by Landlock"),
        (true, false) => report(
            guarantee,
            GuaranteeLevel::Held,
            "by its own mounts; this kernel has no Landlock, which would be a second layer",
        ),
    }
}

fn process_tree(tier: Tier) -> GuaranteeReport {
    let guarantee = Guarantee::ProcessTree;
    match tier {
        Tier::Namespaces | Tier::Bubblewrap => {
            report(guarantee, GuaranteeLevel::Held, "all its processes end with the first one of their namespace")
        }
        Tier::Landlock | Tier::Open => report(
            guarantee,
            GuaranteeLevel::Partly,
            "without a PID namespace its processes are searched for and killed one by one",
        ),
    }
}

fn resources(plan: &SandboxPlan, findings: &SetupFindings) -> GuaranteeReport {
    let memory = match (plan.limits.memory, findings.memory_limited_together) {
        (_, true) => (GuaranteeLevel::Held, "memory is limited for all commands together"),
        (Some(_), false) => {
            (GuaranteeLevel::Held, "memory is limited for each process, as no memory cgroup can be made here")
        }
        (None, false) => (GuaranteeLevel::Partly, "memory isn't limited"),
    };
    let processes = match (plan.limits.processes.is_none() || findings.processes_limited, plan.tier) {
        (true, _) => (GuaranteeLevel::Held, "processes are limited in number"),
        (false, Tier::Landlock | Tier::Open) => {
            (GuaranteeLevel::Partly, "without a user namespace the number of processes can't be limited")
        }
        (false, Tier::Namespaces | Tier::Bubblewrap) => (
            GuaranteeLevel::Partly,
            "root isn't subject to the limit on processes, and no limit of that size by namespace could be set (it needs \
             Linux 6.14 and more than 300); run Toolgate as an ordinary user",
        ),
    };
    let holding = if (memory.0, processes.0) == (GuaranteeLevel::Held, GuaranteeLevel::Held) {
        GuaranteeLevel::Held
    } else {
        GuaranteeLevel::Partly
    };
    let inotify = if findings.inotify_limited { "" } else { "; inotify instances aren't limited" };
    report(Guarantee::Resources, holding, format!("{}; {}{inotify}", processes.1, memory.1))
}

fn network(plan: &SandboxPlan) -> Option<GuaranteeReport> {
    let reason = match (&plan.network, plan.tier) {
        (NetworkPlan::Shared, _) => return None,
        (NetworkPlan::Listed { .. }, _) => {
            "a network namespace of its own, where ports 53, 80 and 443 of every address lead through the list of hosts"
        }
        (NetworkPlan::Off, Tier::Namespaces | Tier::Bubblewrap) => {
            "a network namespace of its own, with a loopback interface only"
        }
        (NetworkPlan::Off, Tier::Landlock | Tier::Open) => "no sockets can be made at all",
    };
    Some(report(Guarantee::Network, GuaranteeLevel::Held, reason))
}

fn secrets(plan: &SandboxPlan, findings: &SetupFindings) -> Option<GuaranteeReport> {
    let (holding, reason) = match (plan.tier, findings.watched) {
        _ if plan.secret.is_empty() => return None,
        (Tier::Namespaces, true) => {
            (GuaranteeLevel::Held, "decoys stand in for them, and it is known which are opened")
        }
        (Tier::Namespaces, false) => (
            GuaranteeLevel::Partly,
            "they can't be opened, but who tries isn't known, as the kernel gives no more watches",
        ),
        (Tier::Bubblewrap, _) => (GuaranteeLevel::Partly, "they can't be opened, but who tries isn't known"),
        (Tier::Landlock | Tier::Open, _) => {
            (GuaranteeLevel::NotHeld, "without mounts they can't be hidden in the workspace")
        }
    };
    Some(report(Guarantee::Secrets, holding, reason))
}
