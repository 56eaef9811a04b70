//! What of the program itself stays in memory. A start runs most of the code once:
//! routes, schemas, rules; a server at rest needs a tenth of it. The kernel
//! keeps what was touched, and sixteen pages around each, until memory is short,
//! so it is let go once the start is over. Only pages that the kernel reads
//! from the program's file are; what is needed again comes back by itself.

use std::fs;

use rustix::mm::{Advice, madvise};

/// Lets the code go that only the start needed. Nothing depends on it: where it
/// does not work the process is some 15 MB larger.
pub(super) fn let_start_go() {
    let (Ok(maps), Ok(program)) = (fs::read_to_string("/proc/self/maps"), fs::read_link("/proc/self/exe")) else {
        return;
    };
    for (start, length) in code_of(&maps, &program.to_string_lossy()) {
        let start = std::ptr::with_exposed_provenance_mut(start);
        // SAFETY: the range is a mapping of this program's code as the kernel lists
        // it, which is never unmapped. Code cannot be written, so no page of it
        // differs from the file, out of which it is read again when it next runs;
        // a file that runs cannot be written either.
        #[allow(unsafe_code, reason = "the proof stands above; there is no safe call for it")]
        let _advised = unsafe { madvise(start, length, Advice::LinuxDontNeed) };
    }
}

/// Start and length in bytes of the mappings that hold the program's code, out of
/// lines such as `55d0-55e0 r-xp 00010000 fe:00 1234  /usr/bin/program`.
fn code_of<'a>(maps: &'a str, program: &'a str) -> impl Iterator<Item = (usize, usize)> + 'a {
    maps.lines().filter_map(move |line| {
        let (range, rest) = line.split_once(' ')?;
        let rest = rest.strip_prefix("r-xp ")?;
        // The path is last and may hold spaces.
        let path = rest.splitn(4, ' ').nth(3)?.trim_start();
        let (start, end) = range.split_once('-')?;
        let start = usize::from_str_radix(start, 16).ok()?;
        let end = usize::from_str_radix(end, 16).ok()?;
        (path == program && start < end).then(|| (start, end - start))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_programs_own_unwritable_code_is_let_go() {
        let maps = "\
00400000-00500000 r--p 00000000 fe:00 6319689                            /opt/my tools/server
00500000-00700000 r-xp 00100000 fe:00 6319689                            /opt/my tools/server
00700000-00900000 rw-p 00300000 fe:00 6319689                            /opt/my tools/server
7f0000000000-7f0000001000 r-xp 00000000 fe:00 77                         /usr/lib/libc.so.6
7f0000002000-7f0000003000 rwxp 00000000 fe:00 6319689                    /opt/my tools/server
7f0000004000-7f0000005000 r-xp 00000000 00:00 0                          [vdso]
broken line";
        let found: Vec<_> = code_of(maps, "/opt/my tools/server").collect();
        assert_eq!(found, [(0x50_0000, 0x20_0000)]);
    }

    #[test]
    fn the_process_goes_on_with_its_code_read_again() {
        let sum = || (1..=100).map(std::hint::black_box).sum::<u32>();
        assert_eq!(sum(), 5050);
        let_start_go();
        assert_eq!(sum(), 5050);
    }
}
