//! Variables that make later programs run something else.

use super::{HIGH, Rule};
use crate::guard::Span;
use crate::guard::call::Call;
use crate::guard::resolve::Value;

/// Loaded or run by every program, by every shell, or by an interpreter.
const LOADERS: &[&str] = &[
    "LD_PRELOAD",
    "LD_AUDIT",
    "DYLD_INSERT_LIBRARIES",
    "DYLD_FRAMEWORK_PATH",
    "PYTHONHOME",
    "PYTHONBREAKPOINT",
    "PYTHONINSPECT",
    "PERL5LIB",
    "RUBYLIB",
    "LUA_INIT",
    "PHPRC",
    "PHP_INI_SCAN_DIR",
    "BASHOPTS",
    "OPENSSL_CONF",
    "OPENSSL_ENGINES",
    "OPENSSL_MODULES",
    "GCC_EXEC_PREFIX",
    "COMPILER_PATH",
    "GIT_CONFIG_PARAMETERS",
    "GIT_TEMPLATE_DIR",
    "GIT_EXEC_PATH",
    "EXINIT",
    "VIMINIT",
    "GVIMINIT",
    "WGETRC",
    "CURL_HOME",
    "HOSTALIASES",
    "INPUTRC",
    "SSLKEYLOGFILE",
    "GLIBC_TUNABLES",
    "DOTNET_STARTUP_HOOKS",
    "CORECLR_PROFILER_PATH",
    "ELECTRON_RUN_AS_NODE",
    "BASH_ENV",
    "PROMPT_COMMAND",
    "PYTHONSTARTUP",
    "PERL5OPT",
    "RUBYOPT",
    "PERL5DB",
    "ZDOTDIR",
    "SHELLOPTS",
    "PS4",
    "GCONV_PATH",
];

/// Programs that another program starts by itself.
const COMMANDS: &[&str] = &[
    "PAGER",
    "GIT_PAGER",
    "MANPAGER",
    "EDITOR",
    "VISUAL",
    "GIT_EDITOR",
    "GIT_SEQUENCE_EDITOR",
    "GIT_SSH_COMMAND",
    "GIT_SSH",
    "GIT_EXTERNAL_DIFF",
    "GIT_PROXY_COMMAND",
    "GIT_ASKPASS",
    "SSH_ASKPASS",
    "SUDO_ASKPASS",
    "LESSOPEN",
    "LESSCLOSE",
    "BROWSER",
    "RSYNC_RSH",
    "TAR_OPTIONS",
    "CVS_RSH",
    "SYSTEMD_PAGER",
    "HGEDITOR",
    "KUBE_EDITOR",
    "RUSTC_WRAPPER",
    "RUSTC_WORKSPACE_WRAPPER",
    "CARGO_BUILD_RUSTC_WRAPPER",
    "npm_config_script_shell",
    "FCEDIT",
    "PSQL_EDITOR",
    "PSQL_PAGER",
    "BAT_PAGER",
    "DELTA_PAGER",
    "GH_PAGER",
    "AWS_PAGER",
    "MAILER",
    "GNUPG_PINENTRY",
    "RIPGREP_CONFIG_PATH",
    "MANOPT",
    "MANROFFOPT",
    "FZF_DEFAULT_COMMAND",
];

/// Prompts, which the shell expands each time it shows them.
const PROMPTS: &[&str] = &["PS0", "PS1", "PS2", "PS4", "PROMPT", "RPROMPT"];

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "poisoned-loader",
        key: "environment variable that loads code",
        description: "makes programs that start later load code from elsewhere",
        weight: HIGH,
        programs: &[],
        when: |call, _| {
            assigned(call)
                .find(|(name, value)| loads(name, *value, call))
                .map(|(_, value)| value.span)
        },
        hits: &[
            "LD_PRELOAD=./x.so ls",
            "BASH_ENV=./x.sh bash build.sh",
            "export PROMPT_COMMAND='x'",
            "PROMPT_COMMAND='history -a; x'",
            "PROMPT_COMMAND='echo \"a;\"; ./x' bash -i",
            "PROMPT_COMMAND='history -a $(x)'",
            "NODE_OPTIONS='--require ./x.js' npm t",
            "GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=core.pager GIT_CONFIG_VALUE_0=./x git log",
            "JAVA_TOOL_OPTIONS=-javaagent:x.jar java -jar a.jar",
            "LD_LIBRARY_PATH=. ls",
            "ENV=./x sh -i",
            "MAKEFLAGS='--eval=x:;id' make",
            "PS4='$(id)' bash -x y",
        ],
        misses: &[
            "FOO=1 ls",
            "PROMPT_COMMAND='history -a; history -n'",
            "NODE_OPTIONS=--max-old-space-size=4096 npm t",
            "unset LD_PRELOAD",
            "LD_LIBRARY_PATH=/usr/local/lib ./app",
            "ENV=production npm start",
            "MAKEFLAGS=-j8 make",
            "export PS1='$ '",
            "JAVA_TOOL_OPTIONS=-Xmx2g mvn test",
        ],
    },
    Rule {
        id: "poisoned-command",
        key: "environment variable that runs a command",
        description: "makes another program run a command when it wants a pager, an editor or a connection",
        weight: HIGH,
        programs: &[],
        when: |call, _| {
            let mut pairs = assigned(call);
            pairs
                .find(|(name, value)| COMMANDS.contains(name) && !is_plain_program(value.text))
                .map(|(_, value)| value.span)
        },
        hits: &[
            "export PAGER='sh -c id' && git branch",
            "GIT_SSH_COMMAND='sh -c id' git fetch",
            "EDITOR=./x git commit",
        ],
        misses: &[
            "PAGER=cat git log",
            "GIT_EDITOR=true git rebase --continue",
            "GIT_SSH_COMMAND='ssh -i k' git pull",
            "export EDITOR=vim",
            "PAGER='less -R' man ls",
            "RUSTC_WRAPPER=sccache cargo build",
        ],
    },
    Rule {
        id: "poisoned-path",
        key: "search path led to a writable directory",
        description: "makes the shell find programs in the working directory or in /tmp first",
        weight: HIGH,
        programs: &[],
        when: |call, _| {
            assigned(call)
                .find(|(name, value)| *name == "PATH" && leads_astray(value.text))
                .map(|(_, value)| value.span)
        },
        hits: &["PATH=.:$PATH ls", "export PATH=/tmp/x:$PATH"],
        misses: &["export PATH=\"$HOME/.local/bin:$PATH\"", "PATH=/usr/bin ls"],
    },
];

/// Variables set before the command and by `export` and its like.
fn assigned(call: &Call) -> impl Iterator<Item = (&str, Given<'_>)> {
    let declares = call.is(&["export", "declare", "typeset", "readonly", "local", "setenv"]);
    let before = call.assigned.iter().map(|(name, value)| {
        (
            name.as_str(),
            Given {
                text: &value.text,
                span: value.span,
            },
        )
    });
    let arguments = call.args.iter().filter(move |_| declares).filter_map(|arg: &Value| {
        let (name, text) = arg.text.split_once('=')?;
        Some((name, Given { text, span: arg.span }))
    });
    before.chain(arguments)
}

/// The value of an assignment and where it stands.
#[derive(Clone, Copy)]
struct Given<'v> {
    text: &'v str,
    span: Span,
}

fn loads(name: &str, value: Given<'_>, call: &Call) -> bool {
    let text = value.text;
    match name {
        "LD_LIBRARY_PATH" | "DYLD_LIBRARY_PATH" => {
            return text
                .split(':')
                .any(|entry| !entry.is_empty() && (!entry.starts_with(['/', '$', '~']) || is_open_to_all(entry)));
        }
        // The start file of a POSIX shell; elsewhere the name means a stage.
        "ENV" => return text.contains('/') && crate::guard::unwrap::is_shell(&call.name),
        "JAVA_TOOL_OPTIONS" | "_JAVA_OPTIONS" | "JDK_JAVA_OPTIONS" | "MAVEN_OPTS" | "GRADLE_OPTS" | "JAVA_OPTS" => {
            return text.contains("-javaagent") || text.contains("-agent") || text.contains("-XX:OnError");
        }
        "MAKEFLAGS" | "GNUMAKEFLAGS" => return text.contains("eval") || text.contains("SHELL="),
        "PYTHONPATH" | "NODE_PATH" | "CLASSPATH" => return text.split(':').any(is_open_to_all),
        _ => {}
    }
    if name.starts_with("GIT_CONFIG_KEY_") {
        return crate::guard::unwrap::runs_program(&text.to_lowercase()) || text.to_lowercase().starts_with("alias.");
    }
    if PROMPTS.contains(&name) {
        return text.contains("$(") || text.contains('`');
    }
    if name == "PROMPT_COMMAND" {
        return !only_shows(text);
    }
    if name == "NODE_OPTIONS" {
        return ["--require", "-r ", "--import", "--loader", "--experimental-loader"]
            .iter()
            .any(|option| value.text.contains(option));
    }
    LOADERS.contains(&name) && !value.text.is_empty()
}

/// Commands of a prompt that show something or keep the history, and no others.
fn only_shows(text: &str) -> bool {
    const RUNS_MORE: &[char] = &['`', '|', '&', '<', '>', '\\'];
    if text.replace("\\033", "").replace("\\007", "").contains(RUNS_MORE) || text.contains("$(") {
        return false;
    }
    let mut quote = None;
    let ends = |letter: char| {
        match (quote, letter) {
            (None, '"' | '\'') => quote = Some(letter),
            (Some(open), _) if open == letter => quote = None,
            _ => {}
        }
        quote.is_none() && matches!(letter, ';' | '\n')
    };
    let mut programs = text.split(ends).map(|command| command.split_whitespace().next());
    programs.all(|program| matches!(program, None | Some("history" | "echo" | "printf" | ":" | "true")))
}

/// A program of the system with plain options: nothing hidden in it.
fn is_plain_program(text: &str) -> bool {
    const KNOWN: &[&str] = &[
        "",
        "cat",
        "less",
        "more",
        "most",
        "bat",
        "delta",
        "vim",
        "vi",
        "nvim",
        "nano",
        "emacs",
        "code",
        "micro",
        "hx",
        "true",
        ":",
        "false",
        "ed",
        "ssh",
        "echo",
        "never",
        "subl",
        "diff-so-fancy",
        "firefox",
        "none",
        "sccache",
        "ccache",
        "cachepot",
        "buildcache",
        "fd",
        "rg",
        "batcat",
        "moar",
        "lesspipe",
        "zed",
        "kak",
        "ne",
        "pico",
        "gvim",
        "idea",
        "google-chrome",
        "chromium",
        "open",
        "xdg-open",
        "wslview",
        "--no-pager",
    ];
    let mut words = text.split_whitespace();
    let program = words.next().unwrap_or_default();
    let name = program
        .strip_prefix("/usr/bin/")
        .or_else(|| program.strip_prefix("/bin/"))
        .unwrap_or(program);
    KNOWN.contains(&name)
        && words
            .all(|word| !word.to_lowercase().contains("proxycommand") && !word.contains(['$', '`', ';', '|', '&', '(']))
}

/// Where every user of the machine may put a file.
fn is_open_to_all(entry: &str) -> bool {
    ["/tmp", "/var/tmp", "/dev/shm"]
        .iter()
        .any(|folder| entry.starts_with(folder))
}

fn leads_astray(path: &str) -> bool {
    let mut entries = path.split(':');
    let first = entries.next().unwrap_or_default();
    first.is_empty() || first.starts_with('.') || is_open_to_all(first)
}
