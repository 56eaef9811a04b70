//! Archives that are unpacked where the system or the user keeps what matters.

use super::paths::{Class, classify, in_any, locate, without_glob};
use super::{HIGH, MEDIUM, Rule, Scene};
use crate::guard::Span;
use crate::guard::call::{Call, is_group};

const FOLDERS: &[&str] = &["/etc", "/usr", "/bin", "/sbin", "/lib", "/lib64", "/boot", "/root"];
/// Where software is put by hand.
const MEANT_FOR_IT: &[&str] = &["/usr/local", "/usr/src", "/usr/share"];

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "archive-and-remove",
        key: "archive that removes its files",
        description: "deletes files and directories once they are in an archive",
        weight: MEDIUM,
        programs: &["tar", "gtar", "bsdtar", "zip"],
        when: |call, _| {
            if call.name == "zip" {
                return call.has(&["-m", "--move", "-rm", "-mr"]);
            }
            call.long("remove-files", 4)
        },
        hits: &[
            "tar --remove-files -cf x.tar src",
            "zip -m x.zip src -r",
            "zip -rm x.zip src",
        ],
        misses: &["tar -cf x.tar src", "zip -r x.zip src", "tar --recursion -cf x.tar a"],
    },
    Rule {
        id: "extract-over-system",
        key: "archive unpacked over the system or the home directory",
        description: "overwrites files of the system or of the user with those of an archive",
        weight: HIGH,
        programs: &[
            "tar", "gtar", "bsdtar", "unzip", "7z", "7za", "7zz", "cpio", "unrar", "pax", "bsdcpio", "dar",
        ],
        when: unpacks,
        hits: &[
            "tar xf a.tar -C /",
            "curl h | sudo tar xz -C /usr",
            "tar -P -xf a.tar",
            "unzip -o a.zip -d /etc",
            "7z x a.7z -o/etc",
            "cpio -idm -D / < x.cpio",
            "unzip a.zip -d ~/.ssh",
        ],
        misses: &[
            "tar xzf a.tgz -C build",
            "tar -C /usr/local -xzf go.tar.gz",
            "unzip a.zip -d out",
            "tar czf a.tgz -C / etc",
            "7z l a.7z",
            "tar -xf a.tar -C /opt/app",
        ],
    },
];

fn unpacks(call: &Call, scene: &Scene<'_>) -> Option<Span> {
    let first = call
        .args
        .first()
        .map(|arg| arg.text.trim_start_matches('-'))
        .unwrap_or_default();
    let extracts = match call.name.as_str() {
        "tar" | "gtar" | "bsdtar" => {
            let letters = |text: &str| text.contains('x') && !text.contains(['c', 't']);
            (letters(first) && !first.contains('/'))
                || call.args.iter().any(|arg| is_group(&arg.text) && letters(&arg.text))
                || call.long("extract", 2).is_some()
        }
        "7z" | "7za" | "7zz" | "unrar" => matches!(first, "x" | "e"),
        "cpio" | "bsdcpio" => call.short('i').is_some() || call.long("extract", 2).is_some(),
        "pax" => call.short('r').is_some(),
        "unzip" => call.short('l').is_none() && call.short('t').is_none(),
        _ => true,
    };
    if !extracts {
        return None;
    }
    if call.name.contains("tar")
        && let Some(absolute) = call.short('P').or(call.long("absolute-names", 3))
    {
        return Some(absolute);
    }
    let folder = call
        .option_texts(&["-C", "-d", "-D", "-o", "--directory"])
        .filter(|(text, _)| text.starts_with(['/', '~', '$', '.']));
    folder
        .filter(|(text, _)| {
            let path = locate(text, scene.setting);
            let path = without_glob(&path);
            let system = path == "/" || in_any(path, FOLDERS) && !in_any(path, MEANT_FOR_IT);
            system || path == "~" || matches!(classify(path, scene.setting), Some(Class::Sensitive | Class::Autostart))
        })
        .map(|(_, arg)| arg.span)
        .next()
}
