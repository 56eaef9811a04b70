//! Publishing: what everybody can fetch from then on, and what is withdrawn.

use super::{HIGH, MEDIUM, Rule};
use crate::guard::Span;
use crate::guard::call::Call;

const REGISTRIES: &[&str] = &[
    "npm",
    "yarn",
    "pnpm",
    "bun",
    "lerna",
    "cargo",
    "twine",
    "poetry",
    "uv",
    "flit",
    "hatch",
    "pdm",
    "gem",
    "mvn",
    "gradle",
    "gradlew",
    "mix",
    "pod",
    "vsce",
    "ovsx",
    "dotnet",
    "nuget",
    "helm",
    "conda",
    "anaconda",
    "jsr",
    "deno",
    "dart",
    "flutter",
    "sbt",
    "cabal",
    "stack",
    "luarocks",
    "np",
    "semantic-release",
    "release-it",
    "goreleaser",
    "changeset",
    "snapcraft",
    "composer",
    "clojars",
    "lein",
    "ansible-galaxy",
    "cosign",
    "gh",
];

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "withdraw-release",
        key: "withdrawal of a published package",
        description: "takes away what others depend on",
        weight: HIGH,
        programs: REGISTRIES,
        when: |call, _| {
            let verb = verb(call)?;
            matches!(
                verb.text.as_str(),
                "unpublish" | "yank" | "deprecate" | "hex.retire" | "delist"
            )
            .then_some(verb.span)
        },
        hits: &[
            "npm unpublish x --force",
            "cargo yank --version 1.0.0 x",
            "gem yank x -v 1",
        ],
        misses: &["npm view x", "cargo search yank"],
    },
    Rule {
        id: "publish-package",
        key: "publishing of a package or release",
        description: "publishes a package or release for everybody: it cannot be called back",
        weight: MEDIUM,
        programs: REGISTRIES,
        when: publishes,
        hits: &[
            "npm publish",
            "npm publish --access public",
            "yarn npm publish",
            "pnpm -r publish",
            "cargo publish -p x",
            "twine upload dist/*",
            "uv publish",
            "gem push x.gem",
            "mvn -B clean deploy",
            "./gradlew publish",
            "dotnet nuget push x.nupkg",
            "gh release create v1",
            "npx semantic-release",
            "python -m twine upload dist/*",
        ],
        misses: &[
            "npm publish --dry-run",
            "cargo publish --dry-run",
            "cargo package",
            "npm run publish:check",
            "twine check dist/*",
            "mvn test",
            "gh release list",
            "dotnet publish -c Release",
            "poetry build",
            "goreleaser release --snapshot",
        ],
    },
];

fn verb(call: &Call) -> Option<&crate::guard::resolve::Value> {
    call.operands()
        .find(|arg| !arg.text.starts_with('+') && !arg.text.contains('='))
}

fn publishes(call: &Call, _: &crate::guard::rules::Scene<'_>) -> Option<Span> {
    let dry = [
        "--dry-run",
        "-n",
        "--help",
        "-h",
        "--list",
        "--snapshot",
        "--skip-publish",
        "--version",
    ];
    if call.has(&dry).is_some() || call.args.iter().any(|arg| arg.text.starts_with("--dry-run=")) {
        return None;
    }
    let words: Vec<&str> = call.operands().take(4).map(|arg| arg.text.as_str()).collect();
    let publishes = match (call.name.as_str(), words.as_slice()) {
        (
            "npm" | "pnpm" | "bun" | "lerna" | "cargo" | "poetry" | "uv" | "flit" | "hatch" | "pdm" | "deno" | "jsr"
            | "vsce" | "ovsx" | "changeset",
            words,
        ) => {
            words.iter().take(2).any(|word| *word == "publish")
                && !matches!(
                    words.first(),
                    Some(&("run" | "exec" | "x" | "add" | "remove" | "search" | "help" | "test" | "bench"))
                )
        }
        ("yarn", ["publish", ..] | ["npm", "publish", ..]) => true,
        ("twine", ["upload", ..]) => true,
        ("gem", ["push", ..]) => true,
        ("helm", ["push", ..]) => true,
        ("mvn", words) => words
            .iter()
            .any(|word| matches!(*word, "deploy" | "release:perform" | "deploy:deploy-file")),
        ("gradle" | "gradlew", words) => words.iter().any(|word| {
            let task = word.rsplit(':').next().unwrap_or_default();
            task.starts_with("publish") && !task.contains("Local")
        }),
        ("sbt", words) => words
            .iter()
            .any(|word| word.starts_with("publish") && !word.contains("Local") || *word == "release"),
        ("mix", ["hex.publish", ..]) => true,
        ("pod", ["trunk", "push", ..]) => true,
        ("dotnet", ["nuget", "push", ..]) | ("nuget", ["push", ..]) => true,
        ("dart" | "flutter", ["pub", "publish", ..]) => true,
        ("cabal" | "stack" | "luarocks" | "anaconda" | "snapcraft", ["upload", ..]) => true,
        ("ansible-galaxy", ["collection", "publish", ..]) => true,
        ("np" | "semantic-release" | "release-it", _) => true,
        ("goreleaser", ["release", ..]) => true,
        ("lein", ["deploy", ..]) => true,
        ("gh", ["release", "create" | "upload" | "edit", ..]) => true,
        _ => false,
    };
    publishes.then(|| verb(call).map_or(call.span, |verb| verb.span))
}
