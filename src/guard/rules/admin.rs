//! Users, firewall and kernel: administration of the machine.

use super::{HIGH, Rule, Scene};
use crate::guard::Span;
use crate::guard::call::{Call, How};

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "account-change",
        key: "change of user accounts or rights",
        description: "changes who may log in or what they may do",
        weight: HIGH,
        programs: &[
            "useradd",
            "usermod",
            "userdel",
            "adduser",
            "deluser",
            "groupadd",
            "groupmod",
            "gpasswd",
            "passwd",
            "chpasswd",
            "visudo",
            "vipw",
            "dscl",
            "newusers",
            "chage",
            "chsh",
            "groupdel",
            "delgroup",
            "addgroup",
            "pw",
            "vigr",
            "pwconv",
            "sysadminctl",
            "grpck",
            "realm",
            "authselect",
            "pam-auth-update",
        ],
        when: |call, _| {
            call.has(&[
                "--help",
                "-h",
                "--version",
                "-S",
                "--status",
                "-c",
                "--check",
                "-list",
                "-read",
                "-search",
                "-l",
            ])
            .is_none()
            .then_some(call.span)
        },
        hits: &[
            "sudo usermod -aG sudo bob",
            "passwd root",
            "useradd -o -u 0 x",
            "echo a:b | chpasswd",
            "sudo visudo",
        ],
        misses: &[
            "useradd --help",
            "cut -d: -f1 /etc/passwd",
            "passwd -S bob",
            "visudo -c",
        ],
    },
    Rule {
        id: "firewall-change",
        key: "change of firewall or access control",
        description: "opens or removes a protection of the machine",
        weight: HIGH,
        programs: &[
            "iptables",
            "ip6tables",
            "nft",
            "ufw",
            "firewall-cmd",
            "setenforce",
            "aa-disable",
            "aa-teardown",
            "spctl",
            "csrutil",
        ],
        when: opens_firewall,
        hits: &["iptables -F", "sudo ufw disable", "setenforce 0", "nft flush ruleset"],
        misses: &["iptables -L", "ufw status", "nft list ruleset", "setenforce 1"],
    },
    Rule {
        id: "network-cut",
        key: "network of the machine taken down",
        description: "cuts the machine, and whoever works on it, off the network",
        weight: HIGH,
        programs: &[
            "ip",
            "ifconfig",
            "ifdown",
            "route",
            "nmcli",
            "rfkill",
            "networksetup",
            "wg-quick",
        ],
        when: cuts_network,
        hits: &[
            "ip link set eth0 down",
            "sudo ip route flush table main",
            "ifconfig eth0 down",
            "route del default",
            "nmcli networking off",
            "rfkill block all",
        ],
        misses: &[
            "ip addr show",
            "ip route get 1.1.1.1",
            "ifconfig eth0",
            "nmcli device status",
            "rfkill list",
            "route -n",
        ],
    },
    Rule {
        id: "boot-change",
        key: "change of how the machine boots",
        description: "changes what the machine boots, or whether it does",
        weight: HIGH,
        programs: &[
            "grub-install",
            "update-grub",
            "grub-mkconfig",
            "efibootmgr",
            "bootctl",
            "bless",
            "mokutil",
        ],
        when: |call, _| match call.name.as_str() {
            "efibootmgr" => call
                .options()
                .find(|arg| arg.text.starts_with('-') && !matches!(arg.text.as_str(), "-v" | "--verbose" | "--help"))
                .map(|arg| arg.span),
            "bootctl" | "bless" | "mokutil" => call
                .args
                .iter()
                .find(|arg| {
                    let verb = arg.text.trim_start_matches('-');
                    [
                        "install",
                        "remove",
                        "set-",
                        "setBoot",
                        "disable-validation",
                        "delete",
                        "reset",
                    ]
                    .iter()
                    .any(|start| verb.starts_with(start))
                })
                .map(|arg| arg.span),
            "grub-mkconfig" => call.has(&["-o", "--output"]),
            _ => call.has(&["--help", "--version", "-V"]).is_none().then_some(call.span),
        },
        hits: &[
            "grub-install /dev/sda",
            "sudo update-grub",
            "efibootmgr -B -b 0001",
            "bootctl remove",
        ],
        misses: &[
            "efibootmgr -v",
            "bootctl status",
            "grub-install --help",
            "mokutil --sb-state",
        ],
    },
    Rule {
        id: "kernel-change",
        key: "change of the running kernel",
        description: "loads code into the kernel, changes it or boots another one",
        weight: HIGH,
        programs: &["insmod", "rmmod", "modprobe", "kexec", "sysctl", "bpftool"],
        when: |call, _| {
            let reads = match call.name.as_str() {
                "sysctl" => {
                    call.short('w').is_none()
                        && !call.operands().any(|arg| arg.text.contains('='))
                        && call.short('p').is_none()
                }
                "modprobe" => call.has(&["-n", "--dry-run", "--show-depends", "-c"]).is_some(),
                "bpftool" => !call
                    .operands()
                    .any(|arg| matches!(arg.text.as_str(), "load" | "attach" | "loadall")),
                _ => call.has(&["--help", "--version"]).is_some(),
            };
            (!reads).then_some(call.span)
        },
        hits: &["insmod x.ko", "modprobe x", "sysctl -w kernel.x=1", "kexec -e"],
        misses: &["sysctl -a", "sysctl kernel.hostname", "lsmod", "modprobe -n x"],
    },
    Rule {
        id: "kernel-file",
        key: "write to a kernel file (/proc, /sys)",
        description: "changes settings of the running kernel or its memory",
        weight: HIGH,
        programs: &[],
        when: |call, _| {
            let kernel = |path: &str| {
                (path.starts_with("/proc/") && !path.starts_with("/proc/self/"))
                    || path.starts_with("/sys/")
                    || matches!(path, "/dev/mem" | "/dev/kmem" | "/dev/port")
            };
            let mut writes = call.writes.iter().filter(|write| write.how != How::Delete);
            writes.find(|write| kernel(&write.path)).map(|write| write.span)
        },
        hits: &[
            "echo 0 > /proc/sys/kernel/randomize_va_space",
            "echo 1 | sudo tee /sys/class/x/y",
            "dd if=x of=/dev/mem",
        ],
        misses: &[
            "cat /proc/cpuinfo > x",
            "echo 500 > /proc/self/oom_score_adj",
            "cat /sys/class/net/eth0/mtu",
        ],
    },
    Rule {
        id: "mount-change",
        key: "change of mounted filesystems or swap",
        description: "takes file systems away or makes them writable",
        weight: HIGH,
        programs: &["mount", "umount", "swapoff"],
        when: |call, _| {
            let changes = match call.name.as_str() {
                "mount" => call
                    .option_texts(&["-o", "--options"])
                    .any(|(text, _)| text.contains("remount")),
                _ => call.short('a').or(call.short('f')).or(call.short('l')).is_some(),
            };
            changes.then_some(call.span)
        },
        hits: &["mount -o remount,rw /", "umount -a", "swapoff -a"],
        misses: &["mount", "mount /dev/sdb1 /mnt", "umount /mnt"],
    },
    Rule {
        id: "host-namespace",
        key: "entry into the host's namespaces (nsenter)",
        description: "leaves the container for the machine that runs it",
        weight: HIGH,
        programs: &["nsenter"],
        when: |call, _| {
            call.option_texts(&["-t", "--target"])
                .find(|(text, _)| *text == "1")
                .map(|(_, arg)| arg.span)
        },
        hits: &["nsenter -t 1 -m -u -i -n sh"],
        misses: &["nsenter -t 4242 -n ip a"],
    },
];

fn cuts_network(call: &Call, _: &Scene<'_>) -> Option<Span> {
    let word = |words: &[&str]| {
        call.args
            .iter()
            .find(|arg| words.contains(&arg.text.as_str()))
            .map(|arg| arg.span)
    };
    match call.name.as_str() {
        "ip" => word(&["down", "flush", "del", "delete"]),
        "ifconfig" | "wg-quick" => word(&["down"]),
        "route" => word(&["del", "delete", "flush"]),
        "nmcli" => word(&["off", "down", "delete", "disconnect"]),
        "rfkill" => word(&["block"]),
        "networksetup" => word(&["off"]),
        _ => call.operands().next().map(|name| name.span),
    }
}

fn opens_firewall(call: &Call, _: &Scene<'_>) -> Option<Span> {
    let word = |words: &[&str]| {
        call.args
            .iter()
            .find(|arg| words.contains(&arg.text.as_str()))
            .map(|arg| arg.span)
    };
    match call.name.as_str() {
        "iptables" | "ip6tables" => word(&[
            "-F", "--flush", "-X", "-P", "--policy", "-D", "--delete", "-A", "--append", "-I", "--insert",
        ]),
        "nft" => word(&["flush", "delete"]),
        "ufw" => word(&["disable", "reset", "delete", "allow"]),
        "firewall-cmd" => call
            .args
            .iter()
            .find(|arg| {
                arg.text.starts_with("--add-") || arg.text.starts_with("--remove-") || arg.text == "--panic-off"
            })
            .map(|arg| arg.span),
        "setenforce" => word(&["0", "Permissive", "permissive"]),
        "spctl" => word(&["--master-disable", "--global-disable"]),
        "csrutil" => word(&["disable"]),
        _ => Some(call.span),
    }
}
