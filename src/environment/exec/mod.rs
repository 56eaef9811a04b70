//! The hidden `exec` subcommand: a small supervisor around one command.
//!
//! The server starts its own binary for it. The supervisor confines the shell,
//! passes its end on and leaves only when every descendant is gone, also when the
//! server asks for it or dies. When nothing is left it may be given another command. It runs before any runtime exists,
//! has a socket to the server as its standard input and shares the command's
//! standard output and error.
//!
//! That the server died shows in the end of the socket. A parent-death signal
//! would come when the *thread* that started this process ends, and would kill
//! the supervisor before it has killed the command.

mod confine;
pub(super) mod description;
mod held;
pub(super) mod outputs;
mod shell;
mod syscalls;
mod tree;

use std::fs;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{SigSet, Signal as Caught};
use rustix::io::fcntl_dupfd_cloexec;
use rustix::process::{Pid, Signal, getpid, ioctl_tiocsctty, kill_process_group, set_child_subreaper, setsid};
use rustix::termios::tcsetpgrp;

pub(super) use tree::kill_below;

use confine::Walls;
use description::{Description, Order, Report};
use held::Standing;
use shell::Started;
use tree::{Deaths, Happening, Vigil};

use crate::environment::command::Mechanism;

/// Runs one command as told through standard input. To be called first thing in
/// `main`, while the process has one thread.
pub fn run_exec() -> ExitCode {
    close_inherited();
    make_room();
    // Our allocator turned huge pages off, for this process and its children;
    // that is no business of the command's. A kernel without them refuses.
    let _ = nix::sys::prctl::set_thp_disable(false);
    if held_back().thread_block().is_err() {
        return ExitCode::FAILURE;
    }
    let Ok(server) = io::stdin().as_fd().try_clone_to_owned() else {
        return ExitCode::FAILURE;
    };
    let mut server = UnixStream::from(server);
    match supervise(&mut server) {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            // A server that is gone has nobody left to tell.
            drop(tell(&mut server, &Report::Failed { reason }));
            ExitCode::FAILURE
        }
    }
}

/// Signals that do not come here: the end of its terminal must not end the
/// supervisor before the command, and deaths are waited for. Threads inherit this,
/// and what they start, so that it is lifted for the shell.
fn held_back() -> SigSet {
    SigSet::from_iter([Caught::SIGHUP, tree::DEATH])
}

/// Closes what whoever started the server left open across its start; the
/// command would inherit it with all its rights. Rust's own files are never left
/// open that way, and nothing else is open yet.
fn close_inherited() {
    let names = fs::read_dir("/proc/self/fd")
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.file_name());
    let numbers: Vec<i32> = names.filter_map(|name| name.to_str()?.parse().ok()).collect();
    for number in numbers.into_iter().filter(|number| *number > 2) {
        // The listing's own descriptor is among them and closed already.
        let _ = nix::unistd::close(number);
    }
}

/// Makes the table of descriptors large enough for those that the shell gets.
/// Once there are threads the kernel enlarges it only after all processors have
/// passed a quiet point, which takes some 10 ms: longer than most commands.
fn make_room() {
    let high = shell::BASH_DESCRIPTORS + shell::INHERITED;
    // Where it fails it is enlarged later.
    drop(fcntl_dupfd_cloexec(io::stdin(), high));
}

fn supervise(server: &mut UnixStream) -> Result<(), String> {
    // Out of the server's group, so that a Ctrl-C there reaches the server only.
    setsid().map_err(text)?;
    set_child_subreaper(Some(getpid())).map_err(text)?;
    let deaths = Deaths::open().map_err(text)?;
    let mut next = Some(description::receive(server).map_err(text)?);
    let mut standing = None;
    while let Some((description, stdin)) = next {
        if !carry_out(server, (&description, stdin), &deaths, &mut standing)? {
            break;
        }
        next = another(server);
    }
    Ok(())
}

/// The next command, if this process is wanted for one. If not it says so: the
/// server may be about to order one.
fn another(server: &mut UnixStream) -> Option<Order> {
    let next = next(server);
    if next.is_none() {
        drop(tell(server, &Report::Spoiled));
    }
    next
}

/// With a command come its outputs.
fn next(server: &mut UnixStream) -> Option<Order> {
    server.set_read_timeout(Some(held::PATIENCE)).ok()?;
    let [output, error] = outputs::take_over(&*server).ok()?;
    nix::unistd::dup2_stdout(&output).ok()?;
    nix::unistd::dup2_stderr(&error).ok()?;
    let order = description::receive(server).ok()?;
    server.set_read_timeout(None).ok()?;
    Some(order)
}

/// Runs a command to the end of its tree; whether another may follow, which needs
/// that nothing of this one is left.
fn carry_out(
    server: &mut UnixStream,
    (description, stdin): (&Description, Option<Vec<u8>>),
    deaths: &Deaths,
    standing: &mut Option<Standing>,
) -> Result<bool, String> {
    // All that may fail comes before the start: nobody would end the command.
    if description.terminal {
        ioctl_tiocsctty(io::stdout()).map_err(text)?;
    }
    let (ground, walls) = match standing.take().filter(|standing| standing.suits(description)) {
        Some(standing) => (Some(standing.ground), standing.walls),
        None => (description.held.then(|| held::Ground::of(description)), None),
    };
    let (mut started, isolation, walls) = first_to_go(|| start(description, stdin.as_deref(), walls))?;
    drop(stdin);
    if description.terminal {
        hand_over(started.pid);
    }
    let_outputs_go();
    let mut timeout = Duration::from_millis(description.timeout_ms);
    if let Some(ground) = ground {
        match held::until_go(server, description, &mut started, &ground) {
            Some(limit) => timeout = limit,
            None => return Ok(false),
        }
        *standing = Some(Standing::new(description, ground, walls));
    }
    let has_own_space = description.confinement.mechanism == Mechanism::Bubblewrap;
    let group = (!has_own_space).then(|| started.pid.as_raw_nonzero().get());
    // When the server is gone this fails; who waits sees it too and stops all.
    drop(tell(server, &Report::Started { group, isolation }));
    let vigil = Vigil {
        shell: started.pid,
        deaths,
        server: Some(server),
    };
    let report = accompany(&started, vigil, description, timeout);
    drop(tell(server, &report));
    Ok(!description.terminal && report.is_of_a_plain_end())
}

/// The terminal is the shell's from now on: what is typed, and its signals. It
/// may have asked for input before, and been stopped for it.
fn hand_over(shell: Pid) {
    let _ = tcsetpgrp(io::stdout(), shell);
    let _ = kill_process_group(shell, Signal::CONT);
}

/// Leaves the outputs to the command alone, so that they end with it and not
/// with this process.
fn let_outputs_go() {
    if let Ok(null) = fs::File::options().write(true).open("/dev/null") {
        // One that stays open ends with this process, as well.
        let _ = nix::unistd::dup2_stdout(&null);
        let _ = nix::unistd::dup2_stderr(&null);
    }
}

/// Starts the shell on a thread of its own that puts the walls up first. The
/// thread ends with this function: one that stayed could be signalled from
/// inside the walls.
fn start(
    description: &Description,
    stdin: Option<&[u8]>,
    walls: Option<Walls>,
) -> Result<(Started, String, Option<Walls>), String> {
    thread::scope(|scope| {
        let confined = scope.spawn(|| {
            let (isolation, walls) = confine::confine(&description.confinement, walls)?;
            held_back().thread_unblock().map_err(text)?;
            let started = shell::start(description, stdin).map_err(|error| format!("shell: {error}"))?;
            Ok((started, isolation, walls))
        });
        confined
            .join()
            .unwrap_or_else(|_| Err("the confined thread failed".into()))
    })
}

/// Starts something that the kernel is to pick when memory ends, rather than this
/// supervisor or the server. Inherited by all the command starts.
fn first_to_go<T>(start: impl FnOnce() -> T) -> T {
    const SCORE: &str = "/proc/self/oom_score_adj";
    /// Half-way up the kernel's scale.
    const HIGH: i32 = 500;
    let own = fs::read_to_string(SCORE)
        .ok()
        .and_then(|score| score.trim().parse::<i32>().ok());
    // Where it is not allowed the kernel's own choice stands.
    let raised = own.filter(|own| *own < HIGH && fs::write(SCORE, HIGH.to_string()).is_ok());
    let started = start();
    if let Some(own) = raised {
        drop(fs::write(SCORE, own.to_string()));
    }
    started
}

/// Waits for the first of end, time-out and stop, then ends the whole tree. Where the
/// command lasts as long as its tree, the end is that of the last process.
fn accompany(started: &Started, mut vigil: Vigil<'_>, description: &Description, timeout: Duration) -> Report {
    let began = Instant::now();
    let mut first = vigil.next(timeout);
    if let Some(Happening::ShellEnded(exit_code)) = first {
        if description.lasts {
            first = vigil.next(timeout.saturating_sub(began.elapsed()));
        }
        if !description.lasts || first == Some(Happening::Childless) {
            // Nearly always nothing is left, and the kernel says so at once. What is
            // about to end, such as the reader of what was printed last, may do so.
            let left_over = !description.lasts && !vigil.is_childless_within(tree::LEFTOVER_GRACE);
            let survived = left_over && vigil.end(tree::LEFTOVER_GRACE);
            return Report::Ended {
                exit_code,
                timed_out: false,
                interrupted: false,
                left_over,
                survived,
                cwd: started.place(),
            };
        }
    }
    let grace = Duration::from_millis(description.grace_ms);
    let timed_out = first.is_none();
    let exit_code = if timed_out { 124 } else { 130 };
    let survived = vigil.end(grace);
    Report::Ended {
        exit_code,
        timed_out,
        interrupted: !timed_out,
        left_over: false,
        survived,
        cwd: None,
    }
}

fn tell(server: &mut UnixStream, report: &Report) -> io::Result<()> {
    let mut line = serde_json::to_vec(report)?;
    line.push(b'\n');
    server.write_all(&line)
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
