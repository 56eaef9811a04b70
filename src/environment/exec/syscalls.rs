//! The system-call filter: what no command of a tenant needs and what would
//! weaken the other walls. Everything not named here stays allowed.

use std::collections::BTreeMap;

use libc::c_long;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};

/// What a command may do that depends on its other walls.
#[derive(Clone, Copy, Debug)]
pub(super) struct Allowed {
    /// IPv4 and IPv6.
    pub(super) network: bool,
    /// Sockets with a path, such as a container daemon's; allowed only where
    /// another wall keeps them inside the workspace.
    pub(super) unix: bool,
    /// Be told of changes in directories. Landlock does not cover it, so it is
    /// allowed only where another wall hides those of other sessions: the names
    /// of their files would be told.
    pub(super) watches: bool,
}

/// Refused with "operation not permitted".
const REFUSED: &[c_long] = &[
    // other processes' memory, descriptors and behaviour
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    // mounts and namespaces
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_unshare,
    libc::SYS_setns,
    // files by handle go round every path rule
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    // the kernel and the machine
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_fanotify_init,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_syslog,
    // memory and queues that commands of different sessions could share
    libc::SYS_shmget,
    libc::SYS_msgget,
    libc::SYS_semget,
    libc::SYS_mq_open,
];

#[cfg(target_arch = "x86_64")]
const REFUSED_HERE: &[c_long] = &[libc::SYS_iopl, libc::SYS_ioperm, libc::SYS_modify_ldt];
#[cfg(not(target_arch = "x86_64"))]
const REFUSED_HERE: &[c_long] = &[];

/// Refused with "no such call", so that programs fall back to older ones:
/// `clone3` hides its flags from a filter, the rings do their work unseen.
const ABSENT: &[c_long] = &[
    libc::SYS_clone3,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
];

/// Absent as well where changes may not be watched; programs then look again now
/// and then.
#[cfg(target_arch = "x86_64")]
const WATCHES: &[c_long] = &[libc::SYS_inotify_init, libc::SYS_inotify_init1];
#[cfg(not(target_arch = "x86_64"))]
const WATCHES: &[c_long] = &[libc::SYS_inotify_init1];

/// The flags of `clone` that make a new namespace.
const NAMESPACES: i32 = libc::CLONE_NEWNS
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWCGROUP;

/// Bits that hold the type of a socket; the rest are flags.
const SOCKET_TYPE_MASK: u64 = 0xf;

/// The programs to load, in order. Two, because one program has one refusal.
pub(super) fn programs(allowed: Allowed) -> Result<[BpfProgram; 2], String> {
    let watches = WATCHES.iter().filter(|_| !allowed.watches);
    let absent = ABSENT.iter().chain(watches).map(|call| (*call, Vec::new())).collect();
    Ok([
        program(refusals(allowed)?, libc::EPERM)?,
        program(absent, libc::ENOSYS)?,
    ])
}

fn program(rules: BTreeMap<c_long, Vec<SeccompRule>>, errno: i32) -> Result<BpfProgram, String> {
    let architecture = std::env::consts::ARCH.try_into().map_err(text)?;
    let refusal = SeccompAction::Errno(errno.unsigned_abs());
    let filter =
        SeccompFilter::new(with_other_numbering(rules), SeccompAction::Allow, refusal, architecture).map_err(text)?;
    filter.try_into().map_err(text)
}

fn refusals(allowed: Allowed) -> Result<BTreeMap<c_long, Vec<SeccompRule>>, String> {
    let mut rules: BTreeMap<c_long, Vec<SeccompRule>> = REFUSED
        .iter()
        .chain(REFUSED_HERE)
        .map(|call| (*call, Vec::new()))
        .collect();
    let namespaces = (0..i32::BITS)
        .map(|bit| 1_i32 << bit)
        .filter(|bit| NAMESPACES & bit != 0);
    let namespaces = namespaces
        .map(|bit| rule(&[(0, has_bits(bit), value(bit))]))
        .collect::<Result<_, _>>()?;
    rules.insert(libc::SYS_clone, namespaces);
    // Limits and priorities of others: only one's own (0) may be set.
    rules.insert(libc::SYS_prlimit64, vec![rule(&[(0, SeccompCmpOp::Ne, 0)])?]);
    rules.insert(libc::SYS_setpriority, vec![rule(&[(1, SeccompCmpOp::Ne, 0)])?]);
    // Typing into a terminal that the command shares with someone.
    let typing = [libc::TIOCSTI, libc::TIOCLINUX];
    let typing = typing
        .iter()
        .map(|request| rule(&[(1, SeccompCmpOp::Eq, *request)]))
        .collect::<Result<_, _>>()?;
    rules.insert(libc::SYS_ioctl, typing);
    rules.insert(libc::SYS_socket, refused_sockets(allowed)?);
    rules.insert(libc::SYS_socketpair, refused_pairs(allowed)?);
    Ok(rules)
}

fn refused_sockets(allowed: Allowed) -> Result<Vec<SeccompRule>, String> {
    let mut families = Vec::new();
    if allowed.unix {
        families.push(libc::AF_UNIX);
    }
    if allowed.network {
        families.extend([libc::AF_INET, libc::AF_INET6]);
    }
    if families.is_empty() {
        return Ok(Vec::new());
    }
    let conditions: Vec<_> = families
        .iter()
        .map(|family| (0, SeccompCmpOp::Ne, value(*family)))
        .collect();
    Ok(vec![rule(&conditions)?])
}

/// A connected pair is how programs talk to their own children. A datagram one
/// can still be pointed at any address, so it counts as a socket with a path.
fn refused_pairs(allowed: Allowed) -> Result<Vec<SeccompRule>, String> {
    let mut rules = vec![rule(&[(0, SeccompCmpOp::Ne, value(libc::AF_UNIX))])?];
    if !allowed.unix {
        let datagram = value(libc::SOCK_DGRAM);
        rules.push(rule(&[(1, SeccompCmpOp::MaskedEq(SOCKET_TYPE_MASK), datagram)])?);
    }
    Ok(rules)
}

fn rule(conditions: &[(u8, SeccompCmpOp, u64)]) -> Result<SeccompRule, String> {
    let conditions = conditions
        .iter()
        .map(|(argument, operation, value)| {
            SeccompCondition::new(*argument, SeccompCmpArgLen::Dword, operation.clone(), *value)
        })
        .collect::<Result<_, _>>()
        .map_err(text)?;
    SeccompRule::new(conditions).map_err(text)
}

fn has_bits(bits: i32) -> SeccompCmpOp {
    SeccompCmpOp::MaskedEq(value(bits))
}

fn value(number: i32) -> u64 {
    u64::from(number.cast_unsigned())
}

/// The x32 calls share the architecture of the ordinary ones under numbers of
/// their own; without them here a program could pick those.
#[cfg(target_arch = "x86_64")]
fn with_other_numbering(mut rules: BTreeMap<c_long, Vec<SeccompRule>>) -> BTreeMap<c_long, Vec<SeccompRule>> {
    const X32: c_long = 0x4000_0000;
    // Calls whose x32 number is not the ordinary one, from the kernel's table.
    const MOVED: &[(c_long, c_long)] = &[
        (libc::SYS_ioctl, 514),
        (libc::SYS_ptrace, 521),
        (libc::SYS_kexec_load, 528),
        (libc::SYS_process_vm_readv, 539),
        (libc::SYS_process_vm_writev, 540),
    ];
    let twins: Vec<_> = rules
        .iter()
        .map(|(call, rules)| {
            let moved = MOVED
                .iter()
                .find(|(ordinary, _)| ordinary == call)
                .map_or(*call, |(_, moved)| *moved);
            (moved | X32, rules.clone())
        })
        .collect();
    rules.extend(twins);
    rules
}

#[cfg(not(target_arch = "x86_64"))]
fn with_other_numbering(rules: BTreeMap<c_long, Vec<SeccompRule>>) -> BTreeMap<c_long, Vec<SeccompRule>> {
    rules
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filters_compile_in_every_combination_and_stay_small() {
        for network in [false, true] {
            for unix in [false, true] {
                let watches = network;
                let [refused, absent] = programs(Allowed { network, unix, watches }).unwrap();
                // The kernel takes 4096 instructions; a filter runs on every call.
                assert!(refused.len() < 1000, "{} instructions", refused.len());
                assert!(!absent.is_empty());
            }
        }
    }
}
