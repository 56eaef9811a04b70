//! The walls around a command, put up on one thread of the `exec` process.
//!
//! Landlock, the system-call filter and the identity belong to a thread and are
//! inherited by what it starts. The supervising threads stay outside, so that a
//! command can neither signal nor inspect its supervisor.

use std::path::Path;

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, LandlockStatus, PathBeneath, PathFd, Ruleset,
    RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, Scope,
};
use rustix::fs::{FileType, Gid, Stat, Uid, fstat};
use rustix::process::{Resource, Rlimit, geteuid, getrlimit, setrlimit};
use rustix::thread::{
    CapabilitySet, CapabilitySets, configure_capability_in_ambient_set, set_capabilities, set_keep_capabilities,
    set_no_new_privs, set_thread_groups, set_thread_res_gid, set_thread_res_uid,
};
use seccompiler::BpfProgram;

use super::description::Confinement;
use super::syscalls::{self, Allowed};
use crate::environment::command::Mechanism;
use crate::environment::identity::Identity;
use crate::environment::visible::{DEVICES, MACHINE, READABLE, SYSTEM, is_for_all};

/// The newest set of rights this code was written against.
const KNOWN: ABI = ABI::V9;
/// Signals of a command stay inside its own tree from this version on.
const SCOPED_SIGNALS: ABI = ABI::V6;
/// Files can be moved between directories from this version on.
const MOVES: ABI = ABI::V2;
/// Sockets with a path are covered from this version on.
const SOCKET_PATHS: ABI = ABI::V9;

/// What the walls are made of, to put the same ones up around another thread. They
/// are about the files that lay there when they were made.
pub(super) struct Walls {
    ruleset: RulesetCreated,
    programs: [BpfProgram; 2],
}

/// Confines the calling thread for good and says what stands; with it comes what the
/// walls are made of, where there are some. Those that were made before are put up
/// as they are.
pub(super) fn confine(confinement: &Confinement, made: Option<Walls>) -> Result<(String, Option<Walls>), String> {
    limit(confinement)?;
    if let Some(identity) = confinement.identity {
        become_user(identity).map_err(|error| format!("user {} could not be taken: {error}", identity.user))?;
    } else if geteuid().is_root() && confinement.mechanism != Mechanism::None {
        set_capabilities(None, only(CapabilitySet::empty())).map_err(text)?;
    }
    set_no_new_privs(true).map_err(text)?;
    if confinement.mechanism == Mechanism::None {
        return Ok(("no isolation".into(), None));
    }
    let (ruleset, programs) = match made {
        Some(made) => (made.ruleset, Some(made.programs)),
        None => (ruleset(confinement).map_err(text)?, None),
    };
    let again = ruleset.try_clone().map_err(text)?;
    let abi = restrict_files(confinement, ruleset)?;
    let has_own_space = confinement.mechanism == Mechanism::Bubblewrap;
    let programs = match programs {
        Some(programs) => programs,
        None => syscalls::programs(Allowed {
            network: confinement.network,
            unix: has_own_space || abi >= SOCKET_PATHS,
            watches: has_own_space || confinement.identity.is_some_and(|identity| !identity.passes_closed),
        })?,
    };
    for program in &programs {
        seccompiler::apply_filter(program).map_err(|error| format!("system-call filter: {error}"))?;
    }
    let space = if has_own_space {
        "own spaces by bubblewrap, "
    } else {
        ""
    };
    let told = format!("{space}landlock {}, a system-call filter", abi as i32);
    let walls = Walls {
        ruleset: again,
        programs,
    };
    Ok((told, Some(walls)))
}

/// Hard limits can only go down, and these go down for the whole process.
fn limit(confinement: &Confinement) -> Result<(), String> {
    let limits = &confinement.limits;
    let mut lower = vec![
        (Resource::Core, 0),
        (Resource::Nofile, limits.open_files),
        (Resource::Fsize, limits.file_bytes),
        (Resource::Nproc, limits.processes + others(confinement)),
    ];
    if let Some(bytes) = limits.memory_bytes {
        lower.push((Resource::As, bytes));
    }
    for (resource, wanted) in lower {
        let present = getrlimit(resource).maximum.unwrap_or(u64::MAX);
        let value = Some(wanted.min(present));
        setrlimit(
            resource,
            Rlimit {
                current: value,
                maximum: value,
            },
        )
        .map_err(|error| format!("limit {resource:?}: {error}"))?;
    }
    Ok(())
}

/// The kernel counts processes by user. Where the command has no user of its own
/// everything of the server's user counts too: at most all that runs here now.
fn others(confinement: &Confinement) -> u64 {
    if confinement.identity.is_some() {
        return 0;
    }
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let tasks = load
        .split_ascii_whitespace()
        .nth(3)
        .and_then(|tasks| tasks.split_once('/')?.1.parse().ok());
    tasks.unwrap_or_default()
}

/// Becomes an unprivileged user, at most with the power to pass through closed
/// directories; what may be opened there Landlock decides.
fn become_user(identity: Identity) -> rustix::io::Result<()> {
    let (user, group) = (Uid::from_raw(identity.user), Gid::from_raw(identity.group));
    set_keep_capabilities(true)?;
    set_thread_groups(&[])?;
    set_thread_res_gid(group, group, group)?;
    set_thread_res_uid(user, user, user)?;
    if !identity.passes_closed {
        return set_capabilities(None, only(CapabilitySet::empty()));
    }
    set_capabilities(None, only(CapabilitySet::DAC_READ_SEARCH))?;
    configure_capability_in_ambient_set(CapabilitySet::DAC_READ_SEARCH, true)
}

fn only(set: CapabilitySet) -> CapabilitySets {
    CapabilitySets {
        effective: set,
        permitted: set,
        inheritable: set,
    }
}

fn restrict_files(confinement: &Confinement, ruleset: RulesetCreated) -> Result<ABI, String> {
    let status = ruleset.restrict_self().map_err(text)?;
    let abi = ABI::from(status.landlock);
    let needed = match (confinement.mechanism, confinement.identity) {
        // Its own spaces already hide everything; landlock comes on top.
        (Mechanism::Bubblewrap, _) => return Ok(abi),
        (_, Some(_)) => MOVES,
        (_, None) => SCOPED_SIGNALS,
    };
    match status.landlock {
        LandlockStatus::NotEnabled => Err("landlock is switched off in this kernel".into()),
        LandlockStatus::NotImplemented => Err("this kernel has no landlock".into()),
        LandlockStatus::Available { .. } if abi < needed => Err(format!(
            "this kernel offers landlock {}, version {} is needed (or bubblewrap)",
            abi as i32, needed as i32
        )),
        LandlockStatus::Available { .. } => Ok(abi),
    }
}

fn ruleset(confinement: &Confinement) -> Result<RulesetCreated, RulesetError> {
    let everything = AccessFs::from_all(KNOWN);
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    let device = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev;
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(everything)?
        .scope(Scope::from_all(KNOWN))?;
    if !confinement.network {
        rules = rules.handle_access(AccessNet::from_all(KNOWN))?;
    }
    let mut rules = rules.create()?;
    for path in &confinement.writable {
        rules = allow(rules, path, everything)?;
    }
    for path in confinement
        .readable
        .iter()
        .map(AsRef::as_ref)
        .chain(SYSTEM.iter().map(Path::new))
    {
        rules = allow(rules, path, read | AccessFs::Execute)?;
    }
    for path in READABLE.iter().chain(MACHINE).map(Path::new) {
        rules = allow_if(rules, path, read, |stat| is_for_all(stat.st_mode))?;
    }
    if confinement.mechanism == Mechanism::Bubblewrap {
        // Made for this command alone.
        rules = allow(rules, Path::new("/proc"), read | AccessFs::WriteFile)?;
        rules = allow(rules, Path::new("/tmp"), everything)?;
        rules = allow(rules, Path::new("/dev"), everything)?;
    }
    for path in DEVICES {
        rules = allow(rules, Path::new(path), device)?;
    }
    Ok(rules)
}

/// One more rule; a path that does not exist needs none.
fn allow(
    rules: RulesetCreated,
    path: &Path,
    access: landlock::BitFlags<AccessFs>,
) -> Result<RulesetCreated, RulesetError> {
    allow_if(rules, path, access, |_| true)
}

/// The same for what lies there now, if it is as it should be.
fn allow_if(
    rules: RulesetCreated,
    path: &Path,
    access: landlock::BitFlags<AccessFs>,
    as_it_should: impl Fn(&Stat) -> bool,
) -> Result<RulesetCreated, RulesetError> {
    let Ok(file) = PathFd::new(path) else { return Ok(rules) };
    // What is opened is looked at, so that the path is walked once.
    let Some(stat) = fstat(&file).ok().filter(as_it_should) else {
        return Ok(rules);
    };
    let access = if FileType::from_raw_mode(stat.st_mode).is_dir() {
        access
    } else {
        access & AccessFs::from_file(KNOWN)
    };
    rules.add_rule(PathBeneath::new(file, access))
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
