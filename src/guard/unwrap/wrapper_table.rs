//! Programs that run the command behind their own options, as tables: one row
//! a program, from the manual pages of coreutils, util-linux, sudo and others.
//! How a row is read stands beside it in `wrappers` and `runners`.

use crate::guard::options::Grammar;

const PLAIN: Grammar = Grammar::PLAIN;

/// Values: options whose value is the next word.
#[rustfmt::skip]
pub(super) const WRAPPERS: &[Grammar] = &[
    Grammar { names: &["sudo"], valued: &["-C", "-D", "-g", "-h", "-p", "-R", "-r", "-t", "-T", "-U", "-u", "--user", "--group", "--host", "--prompt", "--chdir", "--chroot", "--role", "--type", "--close-from", "--command-timeout", "--other-user"], assignments: true, inert: &["-l", "-v", "-V", "-K", "--list", "--validate", "--version", "--help", "-e", "--edit"], ..PLAIN },
    Grammar { names: &["doas"], valued: &["-C", "-u", "-a"], assignments: true, ..PLAIN },
    Grammar { names: &["run0"], valued: &["-u", "-g", "-D", "--user", "--group", "--chdir", "--unit", "--property", "--setenv", "--nice", "--background", "--machine"], inert: &["-h", "--help", "-V", "--version"], ..PLAIN },
    Grammar { names: &["env", "genv"], valued: &["-u", "-C", "-S", "-iS", "-vS", "-P", "--unset", "--chdir", "--split-string"], assignments: true, ..PLAIN },
    Grammar { names: &["nice", "gnice"], valued: &["-n", "--adjustment"], ..PLAIN },
    Grammar { names: &["ionice"], valued: &["-c", "-n", "--class", "--classdata"], inert: &["-p", "-P", "-u"], ..PLAIN },
    Grammar { names: &["nohup", "setsid", "builtin", "unbuffer", "fakeroot", "fakechroot", "catchsegv", "dbus-run-session", "dbus-launch", "winpty", "chronic", "torsocks", "torify", "eatmydata", "nocache", "ifne", "tsp", "dumb-init", "ssh-agent", "gpg-agent", "with-contenv", "uftrace", "heaptrack", "optirun", "primusrun", "prime-run", "gamemoderun", "mangohud", "steam-run", "wine", "box64", "qemu-x86_64", "qemu-aarch64"], ..PLAIN },
    Grammar { names: &["pkexec", "rlwrap", "proxychains4", "tini", "systemd-inhibit", "cpulimit", "sem", "setuidgid", "softlimit", "nsjail"], valued: &["--user", "-j", "--jobs", "--id", "-a", "-f", "-l", "-p", "-H", "-r", "--who", "--what", "--why", "--mode"], ..PLAIN },
    Grammar { names: &["proxychains"], valued: &["-f"], ..PLAIN },
    Grammar { names: &["timeout", "gtimeout"], valued: &["-k", "-s", "--kill-after", "--signal"], operands: 1, ..PLAIN },
    Grammar { names: &["time", "gtime"], valued: &["-f", "-o", "--format", "--output"], ..PLAIN },
    Grammar { names: &["command"], inert: &["-v", "-V"], ..PLAIN },
    Grammar { names: &["exec"], valued: &["-a"], ..PLAIN },
    Grammar { names: &["stdbuf", "gstdbuf"], valued: &["-i", "-o", "-e", "--input", "--output", "--error"], ..PLAIN },
    Grammar { names: &["chrt"], valued: &["-T", "-P", "-D"], operands: 1, inert: &["-p", "-m"], ..PLAIN },
    Grammar { names: &["taskset"], operands: 1, inert: &["-p"], ..PLAIN },
    Grammar { names: &["caffeinate"], valued: &["-t", "-w"], ..PLAIN },
    Grammar { names: &["strace"], valued: &["-o", "-e", "-s", "-u", "-a", "-E", "-I", "-O", "-P", "-S", "-X", "-b"], inert: &["-p"], ..PLAIN },
    Grammar { names: &["ltrace"], valued: &["-o", "-e", "-s", "-u", "-a", "-A", "-l", "-n", "-x", "-D", "-F"], inert: &["-p"], ..PLAIN },
    Grammar { names: &["valgrind"], ..PLAIN },
    Grammar { names: &["flock"], valued: &["-w", "-E", "--timeout", "--conflict-exit-code"], operands: 1, ..PLAIN },
    Grammar { names: &["chroot"], valued: &["--userspec", "--groups"], operands: 1, ..PLAIN },
    Grammar { names: &["unshare", "nsenter"], valued: &["-t", "-S", "-G", "-w", "-R", "--target", "--wd", "--root", "--setuid", "--setgid"], ..PLAIN },
    Grammar { names: &["setpriv", "runcon", "numactl", "prlimit", "choom"], valued: &["-u", "-r", "-t", "-l", "-N", "-m", "-C", "--reuid", "--regid", "--groups", "--inh-caps", "--bounding-set", "--securebits", "--selinux-label", "--apparmor-profile", "--ruid", "--euid", "--rgid", "--egid"], inert: &["-p", "--pid"], ..PLAIN },
    Grammar { names: &["cgexec"], valued: &["-g"], ..PLAIN },
    Grammar { names: &["setarch", "linux32", "linux64", "x86_64", "i386", "i686", "aarch64", "uname26"], ..PLAIN },
    Grammar { names: &["faketime", "gosu", "su-exec", "envchain", "setlock", "envdir", "chpst", "lckdo"], valued: &["-u", "-e", "-n"], operands: 1, ..PLAIN },
    Grammar { names: &["systemd-run"], valued: &["-p", "-u", "-M", "-H", "-E", "--unit", "--property", "--description", "--slice", "--uid", "--gid", "--setenv", "--on-active", "--on-boot", "--on-calendar", "--on-unit-active", "--working-directory"], ..PLAIN },
    Grammar { names: &["runuser"], valued: &["-u", "-g", "-G", "-s", "-c", "-l", "--command", "--user", "--group", "--shell"], inert: &["-c", "-l", "--command"], ..PLAIN },
    Grammar { names: &["firejail", "proot"], valued: &["-w", "-r", "-b", "-R", "-S"], ..PLAIN },
    Grammar { names: &["bwrap"], valued: &["--dev", "--proc", "--tmpfs", "--dir", "--chdir", "--unsetenv", "--hostname", "--uid", "--gid", "--lock-file", "--sync-fd", "--seccomp", "--remount-ro", "--mqueue", "--cap-add", "--cap-drop", "--perms", "--size", "--args"], paired: &["--bind", "--ro-bind", "--dev-bind", "--bind-try", "--ro-bind-try", "--dev-bind-try", "--symlink", "--setenv", "--file", "--bind-data", "--ro-bind-data", "--overlay-src", "--chmod"], ..PLAIN },
    Grammar { names: &["xvfb-run"], valued: &["-n", "-s", "-e", "-f", "-p", "-w", "--server-args", "--server-num"], ..PLAIN },
    Grammar { names: &["xargs", "gxargs"], valued: &["-I", "-n", "-P", "-d", "-L", "-s", "-a", "-E", "-J", "-R", "-S", "--max-args", "--max-procs", "--delimiter", "--arg-file", "--max-lines", "--max-chars", "--replace"], ..PLAIN },
    Grammar { names: &["busybox", "toybox"], inert: &["--list", "--help", "--install"], ..PLAIN },
    Grammar { names: &["entr"], valued: &[], ..PLAIN },
    Grammar { names: &["watchexec"], valued: &["-w", "-e", "-i", "-f", "-d", "-s", "-o", "--watch", "--exts", "--ignore", "--filter", "--debounce", "--signal", "--on-busy-update"], ..PLAIN },
    Grammar { names: &["sshpass"], valued: &["-p", "-f", "-d", "-P"], ..PLAIN },
    Grammar { names: &["dtach", "abduco"], valued: &["-e", "-r"], operands: 1, ..PLAIN },
    Grammar { names: &["kitty", "foot"], valued: &["-d", "-o", "-c", "-T", "--directory", "--title", "--class", "--config"], ..PLAIN },
    Grammar { names: &["npx", "bunx", "pnpx", "uvx"], valued: &["-p", "-c", "-w", "--package", "--call", "--workspace", "--with", "--python", "--from", "--index-url"], ..PLAIN },
    Grammar { names: &["lima", "k3s", "microk8s", "rke2", "k0s"], ..PLAIN },
];

/// A tool with subcommands behind which a command stands.
pub(super) struct Runner {
    pub(super) names: &'static [&'static str],
    pub(super) verbs: &'static [&'static str],
    pub(super) valued: &'static [&'static str],
    /// Operands of the verb before the command.
    pub(super) operands: usize,
    /// It runs somewhere else: a machine or a container of its own.
    pub(super) elsewhere: bool,
}

const fn runner(
    names: &'static [&'static str],
    verbs: &'static [&'static str],
    valued: &'static [&'static str],
    operands: usize,
) -> Runner {
    Runner {
        names,
        verbs,
        valued,
        operands,
        elsewhere: false,
    }
}

const fn elsewhere(
    names: &'static [&'static str],
    verbs: &'static [&'static str],
    valued: &'static [&'static str],
    operands: usize,
) -> Runner {
    Runner {
        names,
        verbs,
        valued,
        operands,
        elsewhere: true,
    }
}

const PYTHON_TOOL: &[&str] = &[
    "-p",
    "-n",
    "-e",
    "--python",
    "--with",
    "--with-requirements",
    "--name",
    "--extra",
    "--group",
    "--project",
    "--directory",
    "--env-file",
    "--from",
    "--package",
    "--index-url",
];
const NODE_TOOL: &[&str] = &[
    "-p",
    "-w",
    "--package",
    "--workspace",
    "--filter",
    "-F",
    "--prefix",
    "-C",
    "--dir",
];

#[rustfmt::skip]
pub(super) const RUNNERS: &[Runner] = &[
    runner(&["uv", "poetry", "pipenv", "pdm", "hatch", "rye", "pixi"], &["run"], PYTHON_TOOL, 0),
    runner(&["uv"], &["x"], PYTHON_TOOL, 0),
    runner(&["pipx"], &["run"], &["--spec", "--python", "--index-url", "--pip-args"], 0),
    runner(&["conda", "mamba", "micromamba"], &["run"], &["-n", "-p", "--name", "--prefix", "--cwd"], 0),
    runner(&["bundle", "rbenv", "pyenv", "nodenv", "asdf"], &["exec"], &[], 0),
    runner(&["mise", "rtx"], &["exec", "x"], &["-C", "--cd", "-j"], 0),
    runner(&["direnv", "aws-vault", "chamber"], &["exec"], &["-d", "--duration", "-r", "--region"], 1),
    runner(&["op", "doppler", "infisical", "dotenv", "dotenvx", "foreman", "teller"], &["run"], &["-e", "-f", "-p", "-c", "--env-file", "--env", "--project", "--config", "--command", "--path"], 0),
    runner(&["heroku"], &["local:run"], &["-e", "--env", "-p"], 0),
    runner(&["nix"], &["run"], &["--option", "-f", "--file"], 1),
    runner(&["npm"], &["exec", "x"], NODE_TOOL, 0),
    runner(&["pnpm", "yarn", "lerna", "rush"], &["exec", "dlx"], NODE_TOOL, 0),
    runner(&["bun"], &["x"], NODE_TOOL, 0),
    runner(&["perf"], &["stat", "record", "trace", "mem", "kvm"], &["-e", "-o", "-C", "-r", "-F", "-c", "-x", "-I", "-D", "--event", "--output", "--repeat", "--freq", "--call-graph"], 0),
    runner(&["rr"], &["record"], &[], 0),
    runner(&["zellij"], &["run"], &["-n", "--name", "-d", "--direction", "--cwd"], 0),
    runner(&["wezterm"], &["start"], &["--cwd", "--class", "--workspace"], 0),
    runner(&["guix"], &["shell", "environment"], &[], usize::MAX),
    runner(&["cmake"], &["env"], &[], 0),
    runner(&["podman"], &["unshare"], &[], 0),
    runner(&["buildah"], &["unshare"], &[], 0),
    runner(&["nsjail"], &["--"], &[], 0),
    elsewhere(&["lxc", "incus", "multipass"], &["exec"], &["--cwd", "--env", "--user", "--group", "--working-directory"], 1),
    elsewhere(&["limactl", "machinectl"], &["shell"], &["--workdir", "--uid", "-E"], 1),
    elsewhere(&["colima"], &["ssh"], &["-p", "--profile"], usize::MAX),
    elsewhere(&["oc"], &["rsh"], &["-n", "-c", "--namespace", "--container", "--shell"], 1),
    elsewhere(&["distrobox", "toolbox"], &["enter", "run"], &["-c", "-n", "--container", "--name"], usize::MAX),
    elsewhere(&["flatpak"], &["run"], &[], usize::MAX),
    elsewhere(&["buildah"], &["run"], &["--user", "-v", "--volume"], 1),
    elsewhere(&["apptainer", "singularity"], &["exec"], &["-B", "--bind", "-H", "--home", "--pwd", "--env", "--overlay"], 1),
];
