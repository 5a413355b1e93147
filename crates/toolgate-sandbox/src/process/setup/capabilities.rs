//! Drops every capability from every set, so that no program that is executed later gets one back.

use rustix::io::Errno;
use rustix::thread::{CapabilitySet, CapabilitySets};

use super::super::setup_step::{SetupFault, SetupStep, StepContext};

/// Drops all capabilities from all sets.
pub(super) fn drop_all() -> Result<(), SetupFault> {
    empty_bounding_set()?;
    drop_own()
}

/// Drops all capabilities from the bounding set, so that no program that is executed gets one. This process keeps its own.
pub(super) fn empty_bounding_set() -> Result<(), SetupFault> {
    let step = SetupStep::DropCapabilities;
    // A process without CAP_SETPCAP can't change its bounding set (EPERM). It needn't: it can't gain a capability either.
    for number in 0..u64::BITS {
        let capability = CapabilitySet::from_bits_retain(1 << number);
        match rustix::thread::remove_capability_from_bounding_set(capability) {
            Ok(()) => {}
            // EINVAL: this kernel has no more capabilities.
            Err(Errno::INVAL | Errno::PERM) => break,
            Err(error) => return Err(error).during(step),
        }
    }
    Ok(())
}

/// Drops the capabilities of this process, and those that it would hand on.
pub(super) fn drop_own() -> Result<(), SetupFault> {
    let step = SetupStep::DropCapabilities;
    match rustix::thread::clear_ambient_capability_set() {
        Ok(()) | Err(Errno::INVAL) => {}
        Err(error) => return Err(error).during(step),
    }
    let none = CapabilitySet::empty();
    rustix::thread::set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })
        .during(step)
}
