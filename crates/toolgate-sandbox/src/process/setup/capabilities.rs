//! Giving up every capability, and the chance to get one back by executing something.

use rustix::io::Errno;
use rustix::thread::{CapabilitySet, CapabilitySets};

use super::super::setup_step::{SetupFault, SetupStep, StepContext};

/// Drops all capabilities from all sets.
pub(super) fn drop_all() -> Result<(), SetupFault> {
    let step = SetupStep::DropCapabilities;
    // A process that holds none can't take any out of its bounding set, and has no need to: it can't gain any either.
    match rustix::thread::clear_ambient_capability_set() {
        Ok(()) | Err(Errno::INVAL) => {}
        Err(error) => return Err(error).during(step),
    }
    for number in 0..u64::BITS {
        let one = CapabilitySet::from_bits_retain(1 << number);
        match rustix::thread::remove_capability_from_bounding_set(one) {
            Ok(()) => {}
            // Past the last one that this kernel knows.
            Err(Errno::INVAL) => break,
            Err(Errno::PERM) => break,
            Err(error) => return Err(error).during(step),
        }
    }
    let none = CapabilitySet::empty();
    rustix::thread::set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })
        .during(step)
}
