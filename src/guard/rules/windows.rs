//! The Windows shells, which may be called from bash.

use super::{HIGH, Rule, Scene};
use crate::guard::Span;
use crate::guard::call::Call;

const POWERSHELL: &[&str] = &["powershell", "pwsh"];

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "windows-cmd-delete",
        key: "Windows cmd destructive delete",
        description: "deletes files through the Windows command prompt",
        weight: HIGH,
        programs: &["cmd"],
        when: cmd_deletes,
        hits: &["cmd /c del /f /q C:\\tmp\\x", "cmd.exe /k 'rd /s x'"],
        misses: &["cmd /c dir", "echo del x"],
    },
    Rule {
        id: "powershell-encoded",
        key: "PowerShell encoded command execution",
        description: "runs a PowerShell command that is hidden by an encoding",
        weight: HIGH,
        programs: POWERSHELL,
        when: |call, _| {
            let encoded = |text: &str| {
                let lower = text.to_lowercase();
                matches!(lower.as_str(), "-e" | "-ec" | "/e")
                    || (lower.len() >= 3 && "-encodedcommand".starts_with(&lower))
            };
            call.args.iter().find(|arg| encoded(&arg.text)).map(|arg| arg.span)
        },
        hits: &["powershell -EncodedCommand SQBFAFgA", "pwsh -enc x"],
        misses: &["powershell -ExecutionPolicy Bypass", "pwsh x.ps1"],
    },
    Rule {
        id: "powershell-delete",
        key: "Windows PowerShell destructive delete",
        description: "deletes files through PowerShell",
        weight: HIGH,
        programs: POWERSHELL,
        when: powershell_deletes,
        hits: &["pwsh Remove-Item -Recurse C:\\tmp\\x", "powershell -Command 'rm -r x'"],
        misses: &["powershell -File C:\\del-logs\\run.ps1", "pwsh -c 'Get-Item x'"],
    },
];

fn cmd_deletes(call: &Call, _: &Scene<'_>) -> Option<Span> {
    let at = call
        .args
        .iter()
        .position(|arg| matches!(arg.text.to_lowercase().as_str(), "/c" | "/k"))?;
    let rest = call.args.get(at + 1..)?;
    let words = rest.iter().flat_map(|arg| arg.text.split([' ', '&', '|', '(']));
    let deletes = words
        .map(str::to_lowercase)
        .any(|word| matches!(word.as_str(), "del" | "erase" | "rd" | "rmdir"));
    deletes.then_some(call.span)
}

fn powershell_deletes(call: &Call, _: &Scene<'_>) -> Option<Span> {
    const VERBS: &[&str] = &["remove-item", "rmdir", "erase", "del", "rd", "ri", "rm"];
    let is_file = |text: &str| matches!(text.to_lowercase().as_str(), "-file" | "-f");
    let code = call.args.iter().take_while(|arg| !is_file(&arg.text));
    let mut words = code.flat_map(|arg| {
        arg.text
            .split([' ', ';', '|', '{', '(', '\n'])
            .map(move |word| (word, arg.span))
    });
    words
        .find(|(word, _)| VERBS.contains(&word.to_lowercase().as_str()))
        .map(|(_, span)| span)
}
