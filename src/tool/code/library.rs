//! The module `hermes_tools` that a program imports, in Python: one function for
//! each tool, over the two pipes of `environment::line`.

use std::fmt::Write as _;

/// A tool that programs may call.
pub(super) struct Callable {
    pub(super) name: &'static str,
    /// Its parameters as Python writes them; what is `None` is left out.
    signature: &'static str,
    gives: &'static str,
}

/// In the original's order.
pub(super) const CALLABLE: [Callable; 7] = [
    Callable {
        name: "web_search",
        signature: "query, limit=None",
        gives: "dict with `data`",
    },
    Callable {
        name: "web_extract",
        signature: "urls",
        gives: "dict with `results`",
    },
    Callable {
        name: "read_file",
        signature: "path, offset=None, limit=None",
        gives: "dict with `content` and `total_lines`",
    },
    Callable {
        name: "write_file",
        signature: "path, content",
        gives: "dict",
    },
    Callable {
        name: "search_files",
        signature: "pattern, target=None, path=None, file_glob=None, limit=None, offset=None, output_mode=None, \
            context=None",
        gives: "dict with `matches` or `files`",
    },
    Callable {
        name: "patch",
        signature: "path=None, old_string=None, new_string=None, replace_all=None, mode=None, patch=None",
        gives: "dict",
    },
    Callable {
        name: "terminal",
        signature: "command, timeout=None, workdir=None",
        gives: "dict with `output` and `exit_code`",
    },
];

/// Those of them that a session has.
pub(super) fn offered<T: AsRef<str>>(tools: &[T]) -> impl Iterator<Item = &'static Callable> {
    CALLABLE
        .iter()
        .filter(|callable| tools.iter().any(|tool| tool.as_ref() == callable.name))
}

/// What the model is told of them.
pub(super) fn described(tools: &[impl AsRef<str>]) -> String {
    let mut text = String::new();
    for Callable { name, signature, gives } in offered(tools) {
        let _infallible = write!(text, "\n  {name}({signature}) -> {gives}");
    }
    text
}

/// The module for a session with these tools.
pub(super) fn module(tools: &[impl AsRef<str>]) -> String {
    let mut text = HEAD.to_owned();
    for Callable { name, signature, .. } in offered(tools) {
        let _infallible = write!(
            text,
            "\n\ndef {name}({signature}):\n    return _call(\"{name}\", dict(locals()))\n"
        );
    }
    text
}

/// One answer belongs to one request, so only one thread of one process is at it
/// at a time.
const HEAD: &str = r#""""Tools of the agent, for programs that it runs."""
import fcntl
import json
import os
import shlex
import threading
import time

_AT = os.environ["HERMES_RPC_DIR"]
_TOKEN = os.environ["HERMES_RPC_TOKEN"]
_ONE = threading.Lock()


def _exchange(line):
    with _ONE, open(os.path.join(_AT, "lock")) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with open(os.path.join(_AT, "requests"), "wb", buffering=0) as requests:
            left = memoryview(line)
            while left:
                left = left[requests.write(left):]
        answer = bytearray()
        with open(os.path.join(_AT, "answers"), "rb", buffering=0) as answers:
            while not answer.endswith(b"\n"):
                answer += answers.read(65536)
        return answer


def _call(tool, arguments):
    arguments = {name: value for name, value in arguments.items() if value is not None}
    request = json.dumps({"tool": tool, "args": arguments, "token": _TOKEN}) + "\n"
    value = json.loads(_exchange(request.encode()))
    for _ in range(2):
        if isinstance(value, str):
            try:
                value = json.loads(value)
            except ValueError:
                break
    return value


def json_parse(text):
    """JSON, also such that has raw control characters in its strings."""
    return json.loads(text, strict=False)


def shell_quote(text):
    """The text as one word of a shell command."""
    return shlex.quote(str(text))


def retry(fn, max_attempts=3, delay=2):
    """Calls `fn` until it does not raise, waiting twice as long each time."""
    for attempt in range(max_attempts):
        try:
            return fn()
        except Exception:
            if attempt + 1 == max_attempts:
                raise
            time.sleep(delay * 2 ** attempt)
"#;
