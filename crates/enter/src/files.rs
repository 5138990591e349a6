//! The files that a partition may reach, by Landlock (<https://docs.kernel.org/userspace-api/landlock.html>). The
//! namespaces already show no others; this is the second wall.

use landlock::{
    ABI, Access, AccessFs, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreatedAttr,
    RulesetStatus, path_beneath_rules,
};

/// The rights of Linux 5.19, without which a file could be moved out of its folder.
const LEAST: ABI = ABI::V2;
/// Rights that newer kernels control, too.
const MOST: ABI = ABI::V5;

/// Files below `read` can be read and executed, those below `write` also changed; no other for this thread and all
/// that it starts.
pub fn restrict<'given>(
    read: impl Iterator<Item = &'given str>,
    write: impl Iterator<Item = &'given str>,
) -> Result<(), String> {
    let status = apply(read, write).map_err(|error| format!("Landlock: {error}"))?;
    if status == RulesetStatus::NotEnforced {
        return Err("Landlock: this kernel has none".to_owned());
    }
    Ok(())
}

fn apply<'given>(
    read: impl Iterator<Item = &'given str>,
    write: impl Iterator<Item = &'given str>,
) -> Result<RulesetStatus, landlock::RulesetError> {
    let ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(LEAST))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(MOST))?
        .create()?;
    let status = ruleset
        .add_rules(path_beneath_rules(read, AccessFs::from_read(MOST)))?
        .add_rules(path_beneath_rules(write, AccessFs::from_all(MOST)))?
        .restrict_self()?;
    Ok(status.ruleset)
}
