//! What the kernel knows of a process: memory and CPU time.

use std::time::Duration;

use anyhow::{Context, Result};

/// The kernel counts CPU time in hundredths of a second for every program.
const TICK: Duration = Duration::from_millis(10);

/// Memory in bytes, shared pages counted by their share.
pub(crate) fn memory(pid: u32) -> Result<f64> {
    let rollup = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))?;
    let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:"));
    let kib = line.and_then(|line| line.split_whitespace().next());
    let kib: f64 = kib.context("no memory figure")?.parse()?;
    Ok(kib * 1024.0)
}

/// Memory in bytes, shared pages counted in full.
pub(crate) fn resident(pid: u32) -> Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next());
    let kib: f64 = kib.context("no memory figure")?.parse()?;
    Ok(kib * 1024.0)
}

/// CPU time of a process and of its children that are over.
pub(crate) fn cpu(pid: u32) -> Result<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The name may hold spaces; everything after it is numbers. The four times
    // stand at places 14 to 17, counted from 1, the state at 3.
    let (_, after_name) = stat.rsplit_once(") ").context("an unreadable stat")?;
    let times = after_name.split(' ').skip(11).take(4);
    let ticks = times.map(str::parse::<u32>).sum::<Result<u32, _>>()?;
    Ok(TICK * ticks)
}

pub(crate) fn threads(pid: u32) -> Result<usize> {
    Ok(std::fs::read_dir(format!("/proc/{pid}/task"))?.count())
}
