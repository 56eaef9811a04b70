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
            (matches!(verb.text.as_str(), "delete" | "drain" | "uninstall" | "evict")
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
            let mut verbs = call
                .operands()
                .filter(|arg| !matches!(arg.text.as_str(), "run-all" | "run" | "--"));
            let verb = verbs.next()?;
            let unasked = call.args.iter().any(|arg| {
                matches!(arg.text.trim_start_matches('-'), "auto-approve" | "yes" | "force") || arg.text == "-y"
            });
            let second = verbs.next().map(|arg| arg.text.as_str());
            let state = matches!(
                (verb.text.as_str(), second),
                ("state", Some("rm" | "push" | "replace-provider"))
                    | ("workspace", Some("delete"))
                    | ("stack", Some("rm"))
                    | ("force-unlock", _)
            );
            let destroys = verb.text == "destroy"
                || call
                    .args
                    .iter()
                    .any(|arg| arg.text == "-destroy" && verb.text == "apply");
            (destroys || state || (unasked && matches!(verb.text.as_str(), "apply" | "up" | "deploy")))
                .then_some(verb.span)
        },
        hits: &[
            "terraform destroy -auto-approve",
            "terraform apply -auto-approve",
            "pulumi destroy",
            "terraform state rm aws_x.y",
            "pulumi stack rm dev",
        ],
        misses: &["terraform plan -out=x", "terraform apply tf.plan"],
    },
    Rule {
        id: "cloud-delete",
        key: "delete of cloud resources",
        description: "deletes resources or data in a cloud",
        weight: HIGH,
        programs: &[
            "aws",
            "gcloud",
            "az",
            "gsutil",
            "doctl",
            "heroku",
            "flyctl",
            "fly",
            "gh",
            "glab",
            "mc",
            "s3cmd",
            "s5cmd",
            "hcloud",
            "linode-cli",
            "scw",
            "oci",
            "ibmcloud",
            "aliyun",
            "exo",
            "vercel",
            "netlify",
            "wrangler",
            "firebase",
            "railway",
            "render",
            "cf",
            "eb",
            "sls",
            "serverless",
            "sam",
            "copilot",
            "amplify",
            "eksctl",
            "kops",
            "openstack",
            "nova",
            "civo",
            "upctl",
            "b2",
            "azcopy",
            "bq",
            "neonctl",
            "pscale",
            "turso",
            "planetscale",
            "ansible",
            "hub",
            "minikube",
            "kind",
            "k3d",
            "argocd",
            "flux",
            "istioctl",
            "borg",
            "restic",
            "velero",
            "duplicity",
            "rabbitmqctl",
            "rabbitmqadmin",
            "kafka-topics",
            "kafka-topics.sh",
            "confluent",
        ],
        when: cloud_deletes,
        hits: &[
            "aws s3 rb s3://x --force",
            "aws s3 rm s3://x --recursive",
            "gcloud projects delete x",
            "az group delete -n x",
            "gh repo delete x --yes",
            "aws ec2 terminate-instances --instance-ids i",
            "aws --profile prod s3 rm s3://x --recursive",
            "aws s3 sync a s3://b --delete",
            "gcloud --project p compute instances delete vm",
            "heroku pg:reset DATABASE_URL",
            "vercel rm x",
            "eksctl delete cluster x",
            "sls remove",
            "aws ec2 stop-instances --instance-ids i",
            "aws kms schedule-key-deletion --key-id k",
            "aws s3 mv s3://a s3://b --recursive",
            "gsutil -m rsync -d x gs://b",
            "minikube delete",
            "kind delete cluster",
            "argocd app delete x",
            "flux uninstall",
            "istioctl uninstall --purge",
            "restic forget --prune x",
            "restic -r /srv/b forget abcd",
            "restic prune",
            "borg prune --keep-daily 1 repo",
            "velero backup delete b --confirm",
            "duplicity remove-all-but-n-full 1 --force file:///b",
            "rabbitmqctl delete_queue q",
            "kafka-topics.sh --delete --topic t",
            "ansible all -m file -a 'path=/x state=absent'",
        ],
        misses: &[
            "aws s3 ls",
            "aws s3 cp a s3://b",
            "gcloud config list",
            "gh pr create --title delete",
            "gh api repos/x",
            "aws --profile dev s3 ls",
            "aws s3 rm s3://x/one.txt",
            "az account show",
            "firebase emulators:start",
            "aws ec2 describe-instances",
            "aws s3 mv a.txt s3://b/",
            "minikube start",
            "kind create cluster",
            "restic snapshots",
            "restic forget --keep-last 3 --dry-run",
            "borg prune --dry-run --keep-daily 7 repo",
            "borg create repo::x src",
            "velero backup get",
            "duplicity collection-status file:///b",
            "kafka-topics.sh --list",
            "rabbitmqctl list_queues",
            "flux get all",
            "ansible all -m ping",
        ],
    },
    Rule {
        id: "cloud-rights",
        key: "change of rights in a cloud or cluster",
        description: "gives rights, keys or access to others in a cloud or cluster",
        weight: HIGH,
        programs: &["aws", "gcloud", "az", "kubectl", "oc", "gsutil"],
        when: grants_rights,
        hits: &[
            "aws iam create-access-key --user-name x",
            "aws iam attach-user-policy --user-name x --policy-arn y",
            "aws s3api put-bucket-acl --acl public-read --bucket x",
            "aws ec2 authorize-security-group-ingress --group-id x --cidr 0.0.0.0/0 --protocol tcp --port 22",
            "gcloud projects add-iam-policy-binding p --member=allUsers --role=roles/owner",
            "az role assignment create --assignee x --role Owner",
            "kubectl create clusterrolebinding x --clusterrole=cluster-admin --user=y",
        ],
        misses: &[
            "aws iam list-users",
            "gcloud iam roles list",
            "az role assignment list",
            "kubectl get clusterrolebindings",
            "kubectl create deployment x --image=y",
        ],
    },
    Rule {
        id: "cluster-change",
        key: "stop or forced replacement of cluster resources",
        description: "takes away what runs in a cluster, or enters its machines",
        weight: HIGH,
        programs: &["kubectl", "oc", "helm"],
        when: changes_cluster,
        hits: &[
            "kubectl scale deploy x --replicas=0",
            "kubectl -n prod scale deploy x --replicas=0",
            "kubectl replace --force -f x.yaml",
            "kubectl debug node/x -it --image=alpine",
            "kubectl cordon n",
            "kubectl run x --image=y --privileged",
            "kubectl taint nodes n k=v:NoExecute",
        ],
        misses: &[
            "kubectl scale deploy x --replicas=3",
            "kubectl rollout status deploy/x",
            "kubectl debug pod/x",
            "kubectl apply -f x.yaml",
            "kubectl describe node n",
        ],
    },
];

/// Options before the verb whose value is the next word.
const GLOBAL: &[&str] = &[
    "--profile",
    "--region",
    "--output",
    "--endpoint-url",
    "--query",
    "--project",
    "--account",
    "--zone",
    "--format",
    "--subscription",
    "--context",
    "--app",
    "-a",
    "-t",
    "--token",
    "-R",
    "--repo",
    "--config",
    "--org",
];

/// The first words that are no options.
fn verbs(call: &Call) -> Vec<&crate::guard::resolve::Value> {
    let mut words = Vec::new();
    let mut skip = false;
    for arg in &call.args {
        let is_value = std::mem::replace(&mut skip, GLOBAL.contains(&arg.text.as_str()));
        if is_value {
            continue;
        }
        if arg.text.starts_with('-') {
            // Behind the verb options come with values that are no verbs.
            if words.len() > 1 {
                break;
            }
            continue;
        }
        words.push(arg);
    }
    words.truncate(5);
    words
}

fn cloud_deletes(call: &Call, _: &Scene<'_>) -> Option<Span> {
    let words = verbs(call);
    let deletes = |text: &str| {
        matches!(
            text,
            "delete"
                | "rb"
                | "destroy"
                | "purge"
                | "remove"
                | "terminate"
                | "delete-all"
                | "rm"
                | "deprovision"
                | "archive"
                | "del"
                | "deallocate"
                | "force_reset"
        ) || [
            "delete-",
            "terminate-",
            "deregister-",
            "purge-",
            "destroy-",
            "schedule-key-",
            "delete_",
            "purge_",
        ]
        .iter()
        .any(|start| text.starts_with(start))
            || [":destroy", ":delete", ":reset", ":purge", ":disable"]
                .iter()
                .any(|end| text.ends_with(end))
    };
    if matches!(call.name.as_str(), "gh" | "glab") && words.first().is_some_and(|first| first.text == "api") {
        return call
            .option_texts(&["-X", "--method"])
            .find(|(text, _)| text.eq_ignore_ascii_case("delete"))
            .map(|(_, arg)| arg.span);
    }
    // One file at a time is everyday; a tree is not.
    let one_by_one = call.is(&["aws", "gsutil", "mc", "s3cmd", "s5cmd", "b2", "azcopy", "gh", "glab"]);
    let recursive = call.has(&["--recursive", "-r", "-R"]).is_some();
    let verb = |wanted: &str| words.iter().any(|word| word.text == wanted);
    let mirrors = call
        .has(&["--delete"])
        .filter(|_| verb("sync"))
        .or_else(|| call.has(&["-d"]).filter(|_| call.name == "gsutil" && verb("rsync")))
        .or_else(|| {
            call.has(&["--delete"])
                .filter(|_| call.name.starts_with("kafka-topics"))
        })
        .or_else(|| backups_lost(call))
        .or_else(|| {
            let moves = recursive && verb("mv") && call.is(&["aws", "gsutil", "mc", "s5cmd"]);
            moves.then_some(call.span)
        });
    if let Some(stopped) = words.iter().find(|word| stops(call, &word.text)) {
        return Some(stopped.span);
    }
    let removes = words.iter().find(|word| {
        let text = word.text.as_str();
        deletes(text) && (!matches!(text, "rm" | "del" | "remove" | "archive") || recursive || !one_by_one)
    });
    removes.map(|word| word.span).or(mirrors)
}

/// Backups that are forgotten: whoever needs them has nothing else.
fn backups_lost(call: &Call) -> Option<Span> {
    let word = |wanted: fn(&str) -> bool| call.operands().find(|arg| wanted(&arg.text)).map(|arg| arg.span);
    let lost = match call.name.as_str() {
        "restic" => word(|word| matches!(word, "forget" | "prune" | "rewrite")),
        "borg" => word(|word| matches!(word, "prune" | "compact" | "recreate")),
        "duplicity" => word(|word| word.starts_with("remove-") || word == "cleanup"),
        _ => None,
    };
    lost.filter(|_| call.has(&["--dry-run", "-n"]).is_none())
}

/// Verbs that end what runs, in tools whose words of that kind mean nothing else.
fn stops(call: &Call, verb: &str) -> bool {
    match call.name.as_str() {
        "aws" => verb.starts_with("stop-") || verb.starts_with("reboot-"),
        "az" => matches!(verb, "stop" | "restart"),
        "flux" | "istioctl" => verb == "uninstall",
        "railway" => verb == "down",
        // `-a` names the arguments of a module, which is no verb.
        "ansible" => call.args.iter().any(|arg| arg.text.contains("state=absent")),
        "rabbitmqctl" => matches!(verb, "reset" | "stop" | "stop_app"),
        _ => false,
    }
}

fn grants_rights(call: &Call, _: &Scene<'_>) -> Option<Span> {
    let words = verbs(call);
    let any = |wanted: &[&str]| {
        words
            .iter()
            .find(|word| wanted.iter().any(|start| word.text.starts_with(start)))
            .map(|word| word.span)
    };
    let open = call.args.iter().find(|arg| {
        matches!(
            arg.text.as_str(),
            "0.0.0.0/0" | "::/0" | "public-read" | "public-read-write" | "allUsers"
        ) || arg.text.ends_with("=allUsers")
    });
    let open = || open.map(|arg| arg.span);
    match call.name.as_str() {
        "aws" => any(&[
            "create-access-key",
            "attach-user-policy",
            "attach-role-policy",
            "put-user-policy",
            "put-role-policy",
            "create-login-profile",
            "update-assume-role-policy",
            "add-user-to-group",
            "put-bucket-policy",
            "update-login-profile",
            "create-user",
            "deactivate-mfa-device",
        ])
        .or_else(open),
        "gcloud" | "gsutil" => any(&["add-iam-policy-binding", "set-iam-policy"])
            .or_else(|| {
                words
                    .iter()
                    .any(|word| word.text == "keys")
                    .then(|| any(&["create"]))
                    .flatten()
            })
            .or_else(open),
        "az" => {
            let role = words
                .iter()
                .any(|word| matches!(word.text.as_str(), "assignment" | "sp" | "credential"));
            any(&["create", "reset", "create-for-rbac"]).filter(|_| role)
        }
        _ => any(&["create"]).filter(|_| {
            words
                .iter()
                .any(|word| matches!(word.text.as_str(), "clusterrolebinding" | "rolebinding" | "clusterrole"))
                || words.iter().any(|word| word.text == "token")
        }),
    }
}

/// Verbs that change what runs, and those behind which the same words are names.
const CHANGING: &[&str] = &[
    "scale",
    "replace",
    "cordon",
    "taint",
    "debug",
    "run",
    "get",
    "describe",
    "logs",
    "exec",
    "apply",
    "create",
    "rollout",
    "explain",
    "port-forward",
    "cp",
    "label",
    "annotate",
    "edit",
    "patch",
    "top",
    "config",
    "auth",
    "wait",
];

fn changes_cluster(call: &Call, _: &Scene<'_>) -> Option<Span> {
    // What stands before the verb may be the value of an option.
    let verb = call.operands().find(|arg| CHANGING.contains(&arg.text.as_str()))?;
    let has = |start: &str| call.args.iter().any(|arg| arg.text.starts_with(start));
    let changes = match verb.text.as_str() {
        "scale" => has("--replicas=0") || call.option_text(&["--replicas"]).is_some_and(|(count, _)| count == "0"),
        "replace" => has("--force"),
        "cordon" => true,
        "taint" => has("nodes") && call.args.iter().any(|arg| arg.text.contains("NoExecute")),
        "debug" => has("node/"),
        "run" => {
            has("--privileged")
                || call
                    .args
                    .iter()
                    .any(|arg| arg.text.contains("hostPID") || arg.text.contains("privileged"))
        }
        _ => false,
    };
    changes.then_some(verb.span)
}
