//! Command lines of clusters, clouds and data stores.

use super::{HIGH, Rule, Scene};
use crate::guard::Span;
use crate::guard::call::Call;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "cluster-delete",
        key: "delete of cluster resources",
        description: "deletes what runs in a cluster",
        weight: HIGH,
        programs: &["kubectl", "oc", "helm"],
        when: |call, _| {
            let verb = call.operands().find(|arg| {
                matches!(
                    arg.text.as_str(),
                    "delete" | "drain" | "uninstall" | "apply" | "get" | "exec" | "logs"
                )
            })?;
            (matches!(verb.text.as_str(), "delete" | "drain" | "uninstall")
                && call.option_texts(&["--dry-run"]).next().is_none())
            .then_some(verb.span)
        },
        hits: &[
            "kubectl delete ns prod",
            "kubectl -n x delete pods --all",
            "helm uninstall x",
        ],
        misses: &[
            "kubectl get pods",
            "kubectl logs delete",
            "kubectl delete pod x --dry-run=client",
            "helm list",
        ],
    },
    Rule {
        id: "infrastructure-destroy",
        key: "destroy of infrastructure",
        description: "changes or destroys infrastructure without a question",
        weight: HIGH,
        programs: &["terraform", "tofu", "terragrunt", "pulumi", "cdk"],
        when: |call, _| {
            let verb = call.operands().next()?;
            let unasked = call.args.iter().any(|arg| {
                matches!(arg.text.trim_start_matches('-'), "auto-approve" | "yes" | "force") || arg.text == "-y"
            });
            (verb.text == "destroy" || (unasked && matches!(verb.text.as_str(), "apply" | "up" | "deploy")))
                .then_some(verb.span)
        },
        hits: &[
            "terraform destroy -auto-approve",
            "terraform apply -auto-approve",
            "pulumi destroy",
        ],
        misses: &["terraform plan -out=x", "terraform apply tf.plan"],
    },
    Rule {
        id: "cloud-delete",
        key: "delete of cloud resources",
        description: "deletes resources or data in a cloud",
        weight: HIGH,
        programs: &[
            "aws", "gcloud", "az", "gsutil", "doctl", "heroku", "flyctl", "fly", "gh", "rclone",
        ],
        when: cloud_deletes,
        hits: &[
            "aws s3 rb s3://x --force",
            "aws s3 rm s3://x --recursive",
            "gcloud projects delete x",
            "az group delete -n x",
            "gh repo delete x --yes",
            "aws ec2 terminate-instances --instance-ids i",
        ],
        misses: &[
            "aws s3 ls",
            "aws s3 cp a s3://b",
            "gcloud config list",
            "gh pr create --title delete",
            "gh api repos/x",
        ],
    },
    Rule {
        id: "database-drop",
        key: "drop of a database",
        description: "drops a database or empties a store",
        weight: HIGH,
        programs: &[
            "dropdb",
            "dropuser",
            "mysqladmin",
            "redis-cli",
            "mongo",
            "mongosh",
            "valkey-cli",
        ],
        when: drops,
        hits: &[
            "dropdb x",
            "mysqladmin drop x",
            "redis-cli FLUSHALL",
            "mongo --eval 'db.dropDatabase()'",
        ],
        misses: &[
            "redis-cli ping",
            "mysqladmin status",
            "dropdb --help",
            "mongosh --eval 'db.users.find()'",
        ],
    },
];

fn cloud_deletes(call: &Call, _: &Scene<'_>) -> Option<Span> {
    // Options come with values that are not verbs: only leading words count.
    let words: Vec<_> = call
        .args
        .iter()
        .take_while(|arg| !arg.text.starts_with('-'))
        .take(5)
        .collect();
    let deletes = |text: &str| {
        matches!(text, "delete" | "rb" | "destroy" | "purge" | "apps:destroy")
            || text.starts_with("delete-")
            || text.starts_with("terminate-")
    };
    if call.name == "gh" && words.first().is_some_and(|first| first.text == "api") {
        return call
            .option_texts(&["-X", "--method"])
            .find(|(text, _)| text.eq_ignore_ascii_case("delete"))
            .map(|(_, arg)| arg.span);
    }
    let recursive = call.has(&["--recursive", "-r", "-R"]).is_some();
    let removes = words
        .iter()
        .find(|word| deletes(&word.text) || (recursive && word.text == "rm"));
    removes.map(|word| word.span)
}

fn drops(call: &Call, _: &Scene<'_>) -> Option<Span> {
    let word = |words: &[&str]| {
        call.args
            .iter()
            .find(|arg| words.contains(&arg.text.to_lowercase().as_str()))
            .map(|arg| arg.span)
    };
    match call.name.as_str() {
        "dropdb" | "dropuser" => call.operands().next().map(|name| name.span),
        "mysqladmin" => word(&["drop", "shutdown"]),
        "redis-cli" | "valkey-cli" => word(&["flushall", "flushdb", "shutdown"]),
        _ => call
            .args
            .iter()
            .find(|arg| arg.text.contains("dropDatabase") || arg.text.contains(".drop()"))
            .map(|arg| arg.span),
    }
}
