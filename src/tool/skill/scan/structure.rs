//! What is wrong with a skill as files: programs among them, links that lead out,
//! more than a skill needs.

use std::fs;
use std::path::{Path, PathBuf};

use super::Severity::{self, Critical, High, Medium};
use super::{Report, Verdict};

/// The original's bounds.
const MAX_FILES: usize = 50;
const MAX_TOTAL_BYTES: u64 = 1024 * 1024;
const MAX_FILE_BYTES: usize = 256 * 1024;
/// Entries that are looked at; a folder with more has far too many.
const MAX_LOOKED_AT: usize = 2_000;

/// Endings of files that a machine runs and nobody reads.
const PROGRAMS: [&str; 16] = [
    "exe", "dll", "so", "dylib", "bin", "com", "msi", "dmg", "app", "deb", "rpm", "scr", "pyc", "class", "o", "ko",
];
/// Beginnings of such files, whatever they are called.
const MAGICS: [&[u8]; 6] = [
    b"\x7fELF",
    b"MZ",
    b"\xcf\xfa\xed\xfe",
    b"\xce\xfa\xed\xfe",
    b"\xca\xfe\xba\xbe",
    b"\0asm",
];

type Found = (Severity, String);

fn found(severity: Severity, what: &str) -> Found {
    (severity, format!("structural: {what}"))
}

pub(super) fn file(path: &str, content: &[u8]) -> Vec<Found> {
    let ending = Path::new(path).extension().and_then(|ending| ending.to_str());
    let is_named_so = ending.is_some_and(|ending| PROGRAMS.contains(&ending.to_ascii_lowercase().as_str()));
    // Text that happens to begin with `MZ` is text.
    let is_text = std::str::from_utf8(content).is_ok_and(|text| !text.contains('\0'));
    let is_one = !is_text && MAGICS.iter().any(|magic| content.starts_with(magic));
    let mut all = Vec::new();
    if is_named_so || is_one {
        all.push(found(Critical, "suspicious_binary"));
    }
    if MAX_FILE_BYTES < content.len() {
        all.push(found(Medium, "large_file"));
    }
    all
}

/// Judges the folder of a skill as a whole.
pub fn folder(folder: &Path) -> Report {
    let (mut files, mut bytes, mut all) = (0, 0, Vec::new());
    let mut open = vec![folder.to_owned()];
    let mut looked_at = 0;
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            looked_at += 1;
            let Ok(about) = entry.metadata() else { continue };
            if MAX_LOOKED_AT < looked_at {
                files = MAX_LOOKED_AT;
                open.clear();
                break;
            }
            if about.is_symlink() {
                if leads_out(folder, &entry.path()) {
                    all.push(found(Critical, "symlink_escape"));
                }
            } else if about.is_dir() {
                open.push(entry.path());
            } else {
                files += 1;
                bytes += about.len();
            }
        }
    }
    if MAX_FILES < files {
        all.push(found(Medium, "too_many_files"));
    }
    if MAX_TOTAL_BYTES < bytes {
        all.push(found(High, "oversized"));
    }
    all.dedup();
    Report::of(all)
}

/// Whether a link leads out of the folder; one that leads nowhere does too, since
/// what it names may come to be.
fn leads_out(folder: &Path, link: &Path) -> bool {
    let whole = |path: &Path| -> Option<PathBuf> { path.canonicalize().ok() };
    match (whole(folder), whole(link)) {
        (Some(folder), Some(to)) => !to.starts_with(folder),
        _ => true,
    }
}

impl Report {
    /// Both reports as one.
    pub fn and(&self, other: &Self) -> Self {
        let critical = self.critical + other.critical;
        let (grave, rest) = (self.critical().to_vec(), other.critical().to_vec());
        let verdict = Verdict::max(self.verdict, other.verdict);
        let lesser = |report: &Self| {
            report
                .findings
                .iter()
                .skip(report.critical)
                .cloned()
                .collect::<Vec<_>>()
        };
        let findings = [grave, rest, lesser(self), lesser(other)].concat();
        Self {
            verdict,
            findings,
            critical,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn severities(all: &[Found]) -> Vec<&str> {
        all.iter().map(|(_, finding)| finding.as_str()).collect()
    }

    #[test]
    fn programs_are_known_by_their_name_or_their_beginning() {
        for (path, content) in [
            ("assets/a.EXE", b"x".as_slice()),
            ("assets/a.png", b"\x7fELF\x02\x01\0"),
            ("scripts/run", b"MZ\x90\0"),
        ] {
            assert_eq!(
                severities(&file(path, content)),
                ["structural: suspicious_binary"],
                "{path}"
            );
        }
        for (path, content) in [("scripts/run.sh", "MZ is a country code"), ("assets/a.json", "{}")] {
            assert!(file(path, content.as_bytes()).is_empty(), "{path}");
        }
        let large = vec![b'x'; MAX_FILE_BYTES + 1];
        assert_eq!(severities(&file("assets/a.txt", &large)), ["structural: large_file"]);
    }

    #[test]
    fn a_folder_is_judged_by_its_links_its_number_and_its_size() {
        let home = tempfile::tempdir().unwrap();
        let skill = home.path().join("skill");
        fs::create_dir_all(skill.join("assets")).unwrap();
        fs::write(skill.join("assets/a"), "x").unwrap();
        std::os::unix::fs::symlink("assets/a", skill.join("inside")).unwrap();
        assert_eq!(folder(&skill).verdict, Verdict::Safe);
        for number in 0..MAX_FILES {
            fs::write(skill.join(format!("assets/{number}.md")), "x").unwrap();
        }
        let report = folder(&skill);
        assert_eq!(
            (report.verdict, report.findings),
            (Verdict::Safe, vec!["structural: too_many_files".to_owned()])
        );
        fs::write(skill.join("assets/large"), vec![0; 1024 * 1024]).unwrap();
        assert_eq!(folder(&skill).verdict, Verdict::Caution);
        std::os::unix::fs::symlink("/etc/passwd", skill.join("assets/out")).unwrap();
        let report = folder(&skill);
        assert_eq!(
            (report.verdict, report.critical()),
            (Verdict::Dangerous, ["structural: symlink_escape".to_owned()].as_slice())
        );
    }

    #[test]
    fn a_folder_of_ten_thousand_files_is_not_read_to_its_end() {
        let home = tempfile::tempdir().unwrap();
        for number in 0..10_000 {
            fs::write(home.path().join(number.to_string()), "").unwrap();
        }
        assert_eq!(folder(home.path()).findings, ["structural: too_many_files"]);
    }
}
