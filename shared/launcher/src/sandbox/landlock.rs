//! Landlock, of the Linux kernel.

use std::os::fd::OwnedFd;

use landlock::{
    ABI, Access as _, AccessFs, BitFlags, CompatLevel, Compatible as _, LandlockStatus, PathBeneath, Ruleset,
    RulesetAttr as _, RulesetCreatedAttr as _, RulesetError, RulesetStatus, Scope,
};
use rustix::fs::{FileType, Mode, OFlags};

use super::{Confined, Grant, Right, SandboxError};

/// Least that is worth anything: before it, a file that is out of reach can still be cut to nothing.
const LEAST: ABI = ABI::V3;
/// Newest that is asked for. A kernel that knows less does what it knows.
const NEWEST: ABI = ABI::V9;
/// Since when other processes can be kept out of reach.
const SCOPES: ABI = ABI::V6;
/// Since when sockets in the file system can.
const SOCKETS: ABI = ABI::V9;

/// Restricts the calling thread.
pub(super) fn apply(grants: &[Grant], scoped: bool) -> Result<Confined, SandboxError> {
    let status = ruleset(grants, scoped).and_then(landlock::RulesetCreated::restrict_self);
    let status = status.map_err(|error| match error {
        // The least is not to be had.
        RulesetError::HandleAccesses(_) => SandboxError::Unsupported,
        other => SandboxError::Refused(other.to_string()),
    })?;
    let known = match status.landlock {
        LandlockStatus::Available { effective_abi, .. } if status.ruleset != RulesetStatus::NotEnforced => {
            effective_abi
        }
        _ => return Err(SandboxError::Unsupported),
    };
    Ok(Confined { scoped: scoped && known >= SCOPES, sockets: known >= SOCKETS })
}

fn ruleset(grants: &[Grant], scoped: bool) -> Result<landlock::RulesetCreated, RulesetError> {
    let required = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    let mut all = required
        .handle_access(AccessFs::from_all(LEAST))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(NEWEST))?;
    if scoped {
        all = all.scope(Scope::from_all(NEWEST))?;
    }
    let mut created = all.create()?;
    for grant in grants {
        // What cannot be opened grants nothing: that errs on the safe side.
        let Ok((file, is_folder)) = open(grant) else { continue };
        let rights = rights(grant.right());
        let rights = if is_folder { rights } else { rights & AccessFs::from_file(NEWEST) };
        if !rights.is_empty() {
            created = created.add_rule(PathBeneath::new(file, rights))?;
        }
    }
    Ok(created)
}

/// Opens what is granted, without touching it.
fn open(grant: &Grant) -> rustix::io::Result<(OwnedFd, bool)> {
    let file = rustix::fs::open(grant.path(), OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    let is_folder = FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode) == FileType::Directory;
    Ok((file, is_folder))
}

/// Nobody makes devices: a device node is a way to what lies behind it, whatever its path.
fn rights(right: Right) -> BitFlags<AccessFs> {
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    let change = AccessFs::from_write(NEWEST) & !(AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev);
    match right {
        Right::List => AccessFs::ReadDir.into(),
        Right::Read => read,
        Right::Execute => read | AccessFs::Execute,
        Right::Use => AccessFs::ReadFile | AccessFs::WriteFile,
        Right::Change => read | change,
        Right::ChangeAndExecute => read | change | AccessFs::Execute,
    }
}
