//! The facts that a pipeline stage hands on to the next: where its output
//! comes from and what it may carry.

use super::network::FETCHERS;
use super::{Scene, credentials};
use crate::guard::Span;
use crate::guard::call::Call;
use crate::guard::resolve::{Decoder, Feed, decodes};
use crate::guard::unwrap::{is_shell, reads_commands};

pub(crate) fn feed(call: &Call, scene: &Scene<'_>) -> Feed {
    let decoded = match call.name.as_str() {
        "base64" | "base32" | "base16" | "basenc" | "gbase64" if decodes(call) => Some(Decoder::Base),
        "xxd" if call.short('r').is_some() => Some(Decoder::Hex),
        "tr" => Some(Decoder::Translate),
        "openssl" if call.has(&["-d"]).is_some() => Some(Decoder::Openssl),
        "uudecode" | "rev" => Some(Decoder::Other),
        _ => None,
    };
    let carried = || call.args.iter().find_map(|arg| arg.secret);
    let input = || call.input.as_ref().and_then(|input| input.value.secret);
    let secret = credentials::reads_secret(call, scene)
        .or_else(carried)
        .or_else(input)
        .or_else(|| dumps_environment(call));
    Feed {
        decoded,
        secret,
        printed: prints_secret(call),
        named: names_secret(call, scene),
        shell: is_interactive(call),
        fetched: fetches(call),
        ..Feed::default()
    }
}

fn fetches(call: &Call) -> bool {
    let verb = |wanted: &[&str]| {
        call.operands()
            .next()
            .is_some_and(|verb| wanted.contains(&verb.text.as_str()))
    };
    match call.name.as_str() {
        "nc" | "ncat" => true,
        "aws" => {
            call.args.iter().any(|arg| arg.text.starts_with("s3://"))
                && call.operands().last().is_some_and(|last| last.text == "-")
        }
        "gsutil" => verb(&["cat"]),
        "gh" => verb(&["api"]),
        "dig" | "host" | "nslookup" | "get" | "lwp-request" | "lwp-download" | "xh" | "wget2" => true,
        name => FETCHERS.contains(&name),
    }
}

/// Everything the environment holds: keys and passwords among it.
fn dumps_environment(call: &Call) -> Option<Span> {
    let bare = call.args.is_empty();
    let dumps = match call.name.as_str() {
        "env" => call.args.iter().all(|arg| arg.text == "-0" || arg.text == "--null"),
        "printenv" | "set" => bare,
        "export" => bare || call.args.iter().all(|arg| arg.text == "-p"),
        "declare" | "typeset" => {
            !bare
                && call
                    .args
                    .iter()
                    .all(|arg| matches!(arg.text.as_str(), "-x" | "-p" | "-px" | "-xp"))
        }
        "history" => bare,
        _ => false,
    };
    dumps.then_some(call.span)
}

/// Tools that print a stored secret.
fn prints_secret(call: &Call) -> Option<Span> {
    let has = |words: &[&str]| call.args.iter().any(|arg| words.contains(&arg.text.as_str()));
    let prints = match call.name.as_str() {
        "gpg" | "gpg2" => call.options().any(|arg| arg.text.starts_with("--export-secret")),
        "security" => has(&[
            "find-generic-password",
            "find-internet-password",
            "dump-keychain",
            "export",
        ]),
        "secret-tool" => has(&["lookup", "search"]),
        "pass" | "gopass" => !call.args.is_empty() && !has(&["ls", "list", "insert", "generate", "edit", "git", "rm"]),
        "op" | "bw" => has(&["read", "get"]),
        "vault" => has(&["get", "read"]),
        "kubectl" | "oc" => has(&["get"]) && has(&["secret", "secrets"]),
        "aws" => has(&["aws_secret_access_key", "export-credentials", "get-secret-value"]),
        "git" => has(&["credential"]) && has(&["fill"]),
        "doppler" | "infisical" => has(&["secrets"]),
        "ssh-keygen" => false,
        _ => false,
    };
    prints.then_some(call.span)
}

/// `ls ~/.ssh/*`: the names of secret files, which the next stage may open.
fn names_secret(call: &Call, scene: &Scene<'_>) -> Option<Span> {
    if !call.is(&["ls", "find", "fd", "echo", "printf", "locate"]) {
        return None;
    }
    call.args
        .iter()
        .find(|arg| credentials::is_private(&arg.text, scene))
        .map(|arg| arg.span)
}

/// A shell that takes its commands from whoever talks to it.
fn is_interactive(call: &Call) -> Option<Span> {
    let interactive = call.short('i').is_some()
        || call.redirects.iter().any(|redirect| {
            matches!(
                redirect.operator,
                crate::guard::shell::Operator::Read | crate::guard::shell::Operator::DuplicateIn
            )
        });
    let shell = is_shell(&call.name) && reads_commands(call) && interactive;
    let recorded = call.name == "script"
        && call
            .args
            .iter()
            .any(|arg| arg.text.rsplit('/').next().is_some_and(is_shell));
    (shell || recorded).then_some(call.span)
}
