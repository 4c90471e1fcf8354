//! Powers of root that go around the sandbox: a foot in a container often runs as root.
//!
//! Loading a module, reading the memory of any process for "measurements", making devices: none of it opens a file that
//! Landlock would judge. What is left to a command is what makes it root among the files that it reaches.

use rustix::io::Errno;
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, capability_is_in_bounding_set, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities,
};

/// What a command keeps of them.
const KEPT: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETUID)
    .union(CapabilitySet::NET_BIND_SERVICE);
/// Capabilities that the kernel's interface has room for.
const ALL: u32 = u64::BITS;

/// Takes them from whatever the calling thread starts. A thread that has none gains none by starting something: nothing is
/// to be done then.
pub(super) fn renounce() -> Result<(), Errno> {
    let CapabilitySets { effective, permitted, .. } = capabilities(None)?;
    if permitted.is_empty() {
        return Ok(());
    }
    // What goes through from here to a program that is started: by name, and for root by being root.
    clear_ambient_capability_set()?;
    set_capabilities(None, CapabilitySets { effective, permitted, inheritable: CapabilitySet::empty() })?;
    for number in 0..ALL {
        let one = CapabilitySet::from_bits_retain(1 << number);
        match capability_is_in_bounding_set(one) {
            Ok(true) if !KEPT.contains(one) => remove_capability_from_bounding_set(one)?,
            Ok(_) => {}
            // The kernel knows no more.
            Err(_) => break,
        }
    }
    Ok(())
}
