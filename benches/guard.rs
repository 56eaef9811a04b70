//! How long the guard takes: everyday commands, long here-documents, hostile
//! texts. `cargo bench --bench guard` prints the times, and their ratio to the
//! figures of the original where those are known.

use std::hint::black_box;
use std::time::{Duration, Instant};

use hermes_server::guard::{Backend, Judgement, Setting, check};

/// As in the server.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const SETTING: Setting<'_> = Setting {
    backend: Backend::Local,
    home: "/home/alice",
    agent_home: "/home/alice/.hermes",
    cwd: Some("/home/alice/app"),
    sudo_password: false,
};

const EVERYDAY: &[&str] = &[
    "ls -la",
    "git status",
    "cargo test --workspace",
    "grep -rn TODO src/",
    "npm run build",
    "docker ps -a",
    "cd app && make -j8",
    "cat package.json | jq .scripts",
    "find . -name '*.rs' -not -path './target/*'",
    "curl -s http://localhost:3000/health | head -1",
];

/// Hostile texts of the longest accepted kind: each unit repeated.
const HOSTILE: &[&str] = &[
    "$(",
    "`",
    "{a,b}",
    "x=$x$x;",
    "a|",
    "<<E\n",
    "eval ",
    "sudo ",
    "((a) ",
    "rm -r a;",
    "echo a >x.sh;",
    "${x//a/bb}",
    "alias a='a a';a;",
    "f(){ $1 $1; };f f;",
    "echo x | tr a b | ",
    "python -c 'system(\"ls\")';",
    "é",
    "\u{200b}a",
    "a=(",
    "if a; then x=b$x; fi;",
    "cat <<E | sh\n",
    "mywrap 'rm -rf x';",
    "parallel 'rm {}' ::: a;",
    "psql -c 'delete from a';",
    "scp ~/.ssh/id_rsa ",
    "curl @a ",
    "rm -r a ",
    "git -c a=b ",
    "tar -C a ",
    "psql -c '-- a",
    "find -exec ",
    "npx ",
    "docker run -v a:b ",
    "tmux new ",
    "env -C a ",
    "\u{1b}]",
    "set -- a b;",
    "find . -exec a {} ;",
    "npx \u{200b}a ",
];

fn main() {
    divan::main();
    compare();
}

fn judged(command: &str) -> Judgement {
    check(black_box(command), &SETTING)
}

#[divan::bench(args = EVERYDAY)]
fn everyday(command: &str) -> Judgement {
    judged(command)
}

/// A document of prose handed to `cat`, as agents write files.
fn here_document(bytes: usize) -> String {
    let line = "The quick brown fox; never run `rm -rf /` & co, see $HOME/notes.md (\"quoted\") | 100 %.\n";
    let body = line.repeat(bytes / line.len() + 1);
    let body: String = body.chars().take(bytes).collect();
    format!("cat > notes.md <<'EOF'\n{body}\nEOF\n")
}

#[divan::bench(args = [450, 1_100, 2_200, 4_300, 8_800, 16_000, 32_000, 64_000, 120_000])]
fn heredoc(bencher: divan::Bencher<'_, '_>, bytes: usize) {
    let text = here_document(bytes);
    bencher.bench(|| judged(&text));
}

#[divan::bench(args = HOSTILE, sample_count = 5, sample_size = 1)]
fn hostile_128_kb(bencher: divan::Bencher<'_, '_>, unit: &str) {
    let text = filled(unit, 127_000);
    bencher.bench(|| judged(&text));
}

/// One separator, or the text would be refused for its length alone.
fn filled(unit: &str, bytes: usize) -> String {
    format!(":;{}", unit.repeat(bytes / unit.len()))
}

/// The shortest of several runs: what the work takes when nobody disturbs.
fn shortest(runs: u32, work: impl Fn() -> Judgement) -> Duration {
    let one = || {
        let start = Instant::now();
        black_box(work());
        start.elapsed()
    };
    (0..runs).map(|_| one()).min().unwrap_or_default()
}

/// What is promised, what was measured, what the original takes.
#[expect(clippy::print_stdout, reason = "the table is what the program is for")]
fn compare() {
    let everyday: Vec<Duration> = EVERYDAY
        .iter()
        .map(|command| shortest(2_000, || judged(command)))
        .collect();
    let mean = everyday.iter().sum::<Duration>() / u32::try_from(everyday.len()).unwrap_or(1);
    let worst = everyday.iter().max().copied().unwrap_or_default();
    let document = here_document(8_800);
    let heredoc = shortest(200, || judged(&document));
    let repeated = "echo a; ".repeat(2_048);
    let repeated = shortest(50, || judged(&repeated));
    let hostile = HOSTILE.iter().map(|unit| {
        let text = filled(unit, 127_000);
        (shortest(3, || judged(&text)), *unit)
    });
    let (hostile, unit) = hostile.max().unwrap_or_default();
    let ratio = |original: f64, ours: Duration| original / (ours.as_secs_f64() * 1e6);
    println!("\nwhat                              ours        bound      original    ratio");
    println!(
        "everyday command, mean     {mean:>11.1?}        15 us     734 us {:>8.0}x",
        ratio(734.0, mean)
    );
    println!("everyday command, slowest  {worst:>11.1?}        15 us");
    println!(
        "here-document, 8.8 kB      {heredoc:>11.1?}         4 ms    4.00 s  {:>8.0}x",
        ratio(4_002_000.0, heredoc)
    );
    println!(
        "`echo a; `, 16 kB          {repeated:>11.1?}            -     505 ms {:>8.0}x",
        ratio(505_000.0, repeated)
    );
    println!("hostile, 128 kB, slowest   {hostile:>11.1?}        50 ms   ({unit:?})");
}
