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
use rustix::fs::{Gid, Uid};
use rustix::process::{Resource, Rlimit, geteuid, getrlimit, setrlimit};
use rustix::thread::{
    CapabilitySet, CapabilitySets, configure_capability_in_ambient_set, set_capabilities, set_keep_capabilities,
    set_no_new_privs, set_thread_groups, set_thread_res_gid, set_thread_res_uid,
};

use super::description::Confinement;
use super::syscalls::{Sockets, programs};
use crate::environment::command::Mechanism;
use crate::environment::local::Limits;

/// The newest set of rights this code was written against.
const KNOWN: ABI = ABI::V9;
/// Signals of a command stay inside its own tree from this version on.
const SCOPED_SIGNALS: ABI = ABI::V6;
/// Files can be moved between directories from this version on.
const MOVES: ABI = ABI::V2;
/// Sockets with a path are covered from this version on.
const SOCKET_PATHS: ABI = ABI::V9;

/// Read and executed by every command.
const SYSTEM: &[&str] = &["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];

/// What programs read to start, to resolve names and to know the machine. Named
/// one by one: beside these lie password hashes and other processes.
const READABLE: &[&str] = &[
    "/etc/alternatives",
    "/etc/bash.bashrc",
    "/etc/ca-certificates",
    "/etc/ca-certificates.conf",
    "/etc/crypto-policies",
    "/etc/debian_version",
    "/etc/default/locale",
    "/etc/environment",
    "/etc/fonts",
    "/etc/gai.conf",
    "/etc/gitconfig",
    "/etc/group",
    "/etc/host.conf",
    "/etc/hostname",
    "/etc/hosts",
    "/etc/inputrc",
    "/etc/issue",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/locale.alias",
    "/etc/locale.conf",
    "/etc/localtime",
    "/etc/magic",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/passwd",
    "/etc/perl",
    "/etc/pki/tls/certs",
    "/etc/pki/ca-trust",
    "/etc/profile",
    "/etc/profile.d",
    "/etc/protocols",
    "/etc/python3",
    "/etc/resolv.conf",
    "/etc/services",
    "/etc/shells",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/terminfo",
    "/etc/timezone",
    "/etc/vim",
    "/etc/wgetrc",
    "/proc/cpuinfo",
    "/proc/filesystems",
    "/proc/loadavg",
    "/proc/meminfo",
    "/proc/stat",
    "/proc/sys/fs/file-max",
    "/proc/sys/fs/nr_open",
    "/proc/sys/fs/pipe-max-size",
    "/proc/sys/kernel/cap_last_cap",
    "/proc/sys/kernel/ngroups_max",
    "/proc/sys/kernel/osrelease",
    "/proc/sys/kernel/pid_max",
    "/proc/sys/net/core/somaxconn",
    "/proc/sys/vm/max_map_count",
    "/proc/sys/vm/overcommit_memory",
    "/proc/uptime",
    "/proc/version",
    "/sys/devices/system/cpu",
    "/sys/kernel/mm/transparent_hugepage",
];

const DEVICES: &[&str] = &[
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
];

/// Confines the calling thread for good and says what stands.
pub(super) fn confine(confinement: &Confinement) -> Result<String, String> {
    limit(&confinement.limits, confinement.identity.is_some())?;
    if let Some((user, group)) = confinement.identity {
        become_user(user, group).map_err(|error| format!("user {user} could not be taken: {error}"))?;
    } else if geteuid().is_root() && confinement.mechanism == Mechanism::Landlock {
        set_capabilities(None, only(CapabilitySet::empty())).map_err(text)?;
    }
    set_no_new_privs(true).map_err(text)?;
    match confinement.mechanism {
        Mechanism::Landlock => {
            let abi = restrict_files(confinement)?;
            let sockets = Sockets {
                network: confinement.network,
                unix: abi >= SOCKET_PATHS,
            };
            for program in programs(sockets)? {
                seccompiler::apply_filter(&program).map_err(|error| format!("system-call filter: {error}"))?;
            }
            Ok(format!("landlock {} and a system-call filter", abi as i32))
        }
        Mechanism::Bubblewrap => Ok("bubblewrap and a system-call filter".into()),
        Mechanism::None => Ok("no isolation".into()),
    }
}

/// Hard limits can only go down, and these go down for the whole process.
fn limit(limits: &Limits, has_own_user: bool) -> Result<(), String> {
    let mut lower = vec![
        (Resource::Core, 0),
        (Resource::Nofile, limits.open_files),
        (Resource::Fsize, limits.file_bytes),
    ];
    // The kernel counts processes by user: the server's own would count too.
    if has_own_user {
        lower.push((Resource::Nproc, limits.processes));
    }
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

/// Becomes an unprivileged user. Searching directories stays possible, since
/// the workspace may lie below one that only the server may enter; what may be
/// opened there Landlock decides.
fn become_user(user: u32, group: u32) -> rustix::io::Result<()> {
    let (user, group) = (Uid::from_raw(user), Gid::from_raw(group));
    set_keep_capabilities(true)?;
    set_thread_groups(&[])?;
    set_thread_res_gid(group, group, group)?;
    set_thread_res_uid(user, user, user)?;
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

fn restrict_files(confinement: &Confinement) -> Result<ABI, String> {
    let status = ruleset(confinement)
        .and_then(RulesetCreated::restrict_self)
        .map_err(text)?;
    let abi = match status.landlock {
        LandlockStatus::NotEnabled => return Err("landlock is switched off in this kernel".into()),
        LandlockStatus::NotImplemented => return Err("this kernel has no landlock".into()),
        LandlockStatus::Available { effective_abi, .. } => effective_abi,
    };
    let needed = if confinement.identity.is_some() {
        MOVES
    } else {
        SCOPED_SIGNALS
    };
    if abi < needed {
        return Err(format!(
            "this kernel offers landlock {}, version {} is needed",
            abi as i32, needed as i32
        ));
    }
    Ok(abi)
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
    for path in READABLE {
        rules = allow(rules, Path::new(path), read)?;
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
    let Ok(file) = PathFd::new(path) else { return Ok(rules) };
    let access = if path.is_dir() {
        access
    } else {
        access & AccessFs::from_file(KNOWN)
    };
    rules.add_rule(PathBeneath::new(file, access))
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
