//! Disks and partitions below the floor.

use super::paths::is_block_device;
use super::{HIGH, Rule, Scene};
use crate::guard::Span;
use crate::guard::call::Call;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "disk-copy",
        key: "disk copy",
        description: "copies raw data with dd",
        weight: HIGH,
        programs: &["dd"],
        when: copies,
        hits: &[
            "dd if=/dev/sda of=backup.img",
            "dd if=./a of=./b",
            "dd if=/dev/zero of=/tmp/zero bs=1M count=1",
        ],
        misses: &["dd --help", "dd if=/dev/urandom of=./blob.bin bs=1k count=4"],
    },
    Rule {
        id: "partition-change",
        key: "partition table change",
        description: "changes the partitions of a disk",
        weight: HIGH,
        programs: &[
            "fdisk",
            "sfdisk",
            "cfdisk",
            "gdisk",
            "sgdisk",
            "parted",
            "diskutil",
            "mkswap",
            "cryptsetup",
            "pvcreate",
            "lvremove",
            "vgremove",
            "zpool",
            "wipefs",
        ],
        when: changes_partition,
        hits: &[
            "parted /dev/sda mklabel gpt",
            "diskutil eraseDisk JHFS+ X disk2",
            "mkswap /dev/sdb1",
            "cryptsetup luksKillSlot /dev/sdb 0",
        ],
        misses: &[
            "cryptsetup luksDump /dev/sdb",
            "fdisk -l",
            "parted -l",
            "diskutil list",
            "wipefs /dev/sda",
        ],
    },
];

/// Filling a new file beside the work with a bounded amount of noise is the
/// everyday use; everything else that reads with `if=` is asked.
fn copies(call: &Call, _: &Scene<'_>) -> Option<Span> {
    let value = |name: &str| {
        call.args
            .iter()
            .find_map(|arg| arg.text.strip_prefix(name).map(|text| (text, arg.span)))
    };
    let (source, span) = value("if=")?;
    let noise = matches!(source, "/dev/zero" | "/dev/urandom" | "/dev/random");
    let beside = value("of=").is_some_and(|(target, _)| !target.starts_with(['/', '~', '$']) && !target.contains(".."));
    let bounded = value("count=").is_some();
    (!(noise && beside && bounded)).then_some(span)
}

fn changes_partition(call: &Call, _: &Scene<'_>) -> Option<Span> {
    let operand = |words: &[&str]| {
        call.operands()
            .any(|arg| words.contains(&arg.text.to_lowercase().as_str()))
    };
    let device = call.operands().any(|arg| is_block_device(&arg.text));
    let changes = match call.name.as_str() {
        "diskutil" => operand(&[
            "erasedisk",
            "erasevolume",
            "partitiondisk",
            "zerodisk",
            "reformat",
            "secureerase",
        ]),
        "parted" => operand(&["mklabel", "mkpart", "rm", "resizepart"]),
        "cryptsetup" => operand(&[
            "luksformat",
            "erase",
            "lukserase",
            "luksremovekey",
            "lukskillslot",
            "luksheaderrestore",
            "reencrypt",
            "convert",
        ]),
        "zpool" => operand(&["destroy", "labelclear"]),
        "fdisk" | "sfdisk" | "cfdisk" | "gdisk" => device && call.has(&["-l", "--list", "-d", "--dump"]).is_none(),
        "sgdisk" => device && call.has(&["-p", "--print"]).is_none(),
        "mkswap" => device,
        "wipefs" => false,
        _ => !call.args.is_empty(),
    };
    changes.then_some(call.span)
}
