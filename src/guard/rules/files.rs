//! Writes to files that matter, by whatever means.

use super::paths::{Class, classify, fold, in_any};
use super::{HIGH, MEDIUM, Rule, Scene};
use crate::guard::Span;
use crate::guard::call::{Call, How};

const EVERYONE: &[&str] = &[];

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "redirect-system-config",
        key: "overwrite system config",
        description: "writes into the configuration of the system",
        weight: HIGH,
        programs: EVERYONE,
        when: |call, scene| written(call, scene, How::Redirect, &[Class::System]),
        hits: &["echo x > /etc/hosts", "cat a >> /private/etc/hosts"],
        misses: &["cat /etc/hosts", "echo hi > /private/tmp/x", "echo '> /etc/hosts'"],
    },
    Rule {
        id: "tee-sensitive",
        key: "overwrite system file via tee",
        description: "writes into a system, credential or start file",
        weight: HIGH,
        programs: EVERYONE,
        when: |call, scene| {
            written(
                call,
                scene,
                How::Tee,
                &[Class::System, Class::Sensitive, Class::Agent, Class::Device],
            )
        },
        hits: &[
            "echo x | tee /etc/hosts",
            "echo x | tee -a ~/.ssh/authorized_keys",
            "x | tee \"$HERMES_HOME/.env\"",
            "echo x | tee /dev/sda",
        ],
        misses: &["make 2>&1 | tee build.log", "tee < /etc/hosts"],
    },
    Rule {
        id: "redirect-sensitive",
        key: "overwrite system file via redirection",
        description: "writes into a credential, key or shell start file",
        weight: HIGH,
        programs: EVERYONE,
        when: |call, scene| written(call, scene, How::Redirect, &[Class::Sensitive, Class::Agent]),
        hits: &[
            "echo k >> ~/.ssh/authorized_keys",
            "echo x > /home/alice/.bashrc",
            "echo x > ~/.aws/credentials",
            "echo x >> /home/bob/.bashrc",
            "echo x > ~/.hermes/.env",
        ],
        misses: &[
            "cat ~/.bashrc",
            "cat x < ~/.bashrc",
            "echo x >> ~/.gnupg-backup/x",
            "echo x > ~/.config/nvim/init.lua",
        ],
    },
    Rule {
        id: "tee-project-config",
        key: "overwrite project env/config via tee",
        description: "overwrites the secrets or settings of a project",
        weight: MEDIUM,
        programs: EVERYONE,
        when: |call, scene| written(call, scene, How::Tee, &[Class::Project]),
        hits: &["printenv | tee .env.local", "echo a | tee config.yaml"],
        misses: &["echo a | tee .env.example", "tee notes.md"],
    },
    Rule {
        id: "redirect-project-config",
        key: "overwrite project env/config via redirection",
        description: "overwrites the secrets or settings of a project",
        weight: MEDIUM,
        programs: EVERYONE,
        when: |call, scene| written(call, scene, How::Redirect, &[Class::Project]),
        hits: &[
            "echo a > .env",
            "echo a > '.env'",
            "echo A=1 > app/.env.production",
            "echo m >> config.yaml",
        ],
        misses: &[
            "cat .env > backup.txt",
            "echo x > .env#backup",
            "echo x > config.yaml.bak",
            "echo a > .envrc",
            "cat > .env.example <<E\nE",
        ],
    },
    Rule {
        id: "copy-system-config",
        key: "copy/move file into system config path",
        description: "replaces a file of the system's configuration",
        weight: HIGH,
        programs: EVERYONE,
        when: copied_to_system,
        hits: &[
            "cp evil /etc/hosts",
            "mv x /private/etc/ssh/sshd_config",
            "install -m644 a /etc/cron.d/a",
            "cp x /private/tmp/payload",
            "cp x /ETC/hosts",
        ],
        misses: &["cp /etc/hosts .", "cp a b"],
    },
    Rule {
        id: "copy-project-config",
        key: "overwrite project env/config file",
        description: "replaces the secrets or settings of a project or of the agent",
        weight: MEDIUM,
        programs: EVERYONE,
        when: |call, scene| written(call, scene, How::Copy, &[Class::Project, Class::Agent]),
        hits: &[
            "cp new.yaml config.yaml",
            "mv .env .env.bak",
            "cp x ~/.hermes/config.yaml",
        ],
        misses: &["cp .env /tmp/backup.env", "cp config.yaml x"],
    },
    Rule {
        id: "copy-sensitive",
        key: "copy/move file into sensitive credential/SSH/shell-rc path",
        description: "replaces a credential, key or shell start file",
        weight: HIGH,
        programs: EVERYONE,
        when: |call, scene| written(call, scene, How::Copy, &[Class::Sensitive]),
        hits: &[
            "cp k ~/.ssh/authorized_keys",
            "mv e ~/.bashrc",
            "cp input $HOME/.kube && true",
            "xargs cp /tmp/evil ~/.ssh/authorized_keys < /dev/null",
            "MV k ~/.SSH/ID_RSA",
        ],
        misses: &["cp ~/.ssh/config /tmp/", "cp ~/.aws/token /tmp/copy"],
    },
    Rule {
        id: "edit-system-config",
        key: "in-place edit of system config",
        description: "edits the configuration of the system in place",
        weight: HIGH,
        programs: EVERYONE,
        when: |call, scene| {
            written(call, scene, How::InPlace, &[Class::System])
                .or_else(|| written(call, scene, How::InPlaceScript, &[Class::System]))
        },
        hits: &[
            "sed -i 's/a/b/' /etc/ssh/sshd_config",
            "sed --in-place=.bak s/a/b/ /etc/fstab",
        ],
        misses: &["sed 's/a/b/' /etc/fstab", "sed -i '/etc/d' notes.txt"],
    },
    Rule {
        id: "edit-agent-config",
        key: "in-place edit of Hermes config/env",
        description: "edits the agent's own configuration",
        weight: HIGH,
        programs: EVERYONE,
        when: |call, scene| written(call, scene, How::InPlace, &[Class::Agent]),
        hits: &["sed -i 's/manual/off/' ~/.hermes/config.yaml"],
        misses: &[
            "sed -i 's/a/b/' /srv/app/config.yaml",
            "sed -n 1p ~/.hermes/config.yaml",
        ],
    },
    Rule {
        id: "edit-agent-config-script",
        key: "in-place edit of Hermes config/env (perl/ruby)",
        description: "edits the agent's own configuration",
        weight: HIGH,
        programs: EVERYONE,
        when: |call, scene| written(call, scene, How::InPlaceScript, &[Class::Agent]),
        hits: &["perl -i.bak -pe 's/x/y/' ~/.hermes/config.yaml"],
        misses: &["perl -v"],
    },
    Rule {
        id: "edit-sensitive",
        key: "in-place edit of sensitive credential/SSH/shell-rc path",
        description: "edits a credential, key or shell start file in place",
        weight: HIGH,
        programs: EVERYONE,
        when: |call, scene| written(call, scene, How::InPlace, &[Class::Sensitive]),
        hits: &["sed -i 's/a/b/' ~/.bashrc", "sed --in-place 's/a/b/' ~/.ssh/config"],
        misses: &["sed -n 1p ~/.bashrc", "sed -i 's/a/b/' notes.txt"],
    },
    Rule {
        id: "edit-sensitive-script",
        key: "in-place edit of sensitive credential/SSH/shell-rc path (perl/ruby)",
        description: "edits a credential, key or shell start file in place",
        weight: HIGH,
        programs: EVERYONE,
        when: |call, scene| written(call, scene, How::InPlaceScript, &[Class::Sensitive]),
        hits: &["perl -i -pe 's/pass/pass2/' ~/.netrc"],
        misses: &["perl -i -pe 's/a/b/' notes.txt"],
    },
    Rule {
        id: "output-option-sensitive",
        key: "write to sensitive path via output option",
        description: "writes into a system, credential or start file through an option",
        weight: HIGH,
        programs: EVERYONE,
        when: |call, scene| {
            written(
                call,
                scene,
                How::Output,
                &[Class::System, Class::Sensitive, Class::Agent],
            )
        },
        hits: &[
            "sort -o ~/.profile names.txt",
            "git diff --output=/home/dev/.bashrc HEAD~1",
            "find . -fprint ~/.profile",
            "sed -n 'w /home/dev/.ssh/authorized_keys' key.pub",
            "curl x -o ~/.ssh/authorized_keys",
        ],
        misses: &["sort -o out.txt in.txt", "curl http://x -o out.html", "tree -o t.txt ."],
    },
    Rule {
        id: "write-system-program",
        key: "write to a directory of system programs",
        description: "adds or replaces a program that others run by its name",
        weight: HIGH,
        programs: EVERYONE,
        when: |call, scene| {
            let writes = call.writes.iter().filter(|write| write.how != How::Delete);
            writes
                .into_iter()
                .find(|write| is(&write.path, scene, &[Class::Programs]))
                .map(|write| write.span)
        },
        hits: &[
            "cp x /usr/bin/ls",
            "curl http://x > /usr/local/bin/kubectl",
            "install -m755 a /usr/local/bin/a",
            "tee /bin/sh < x",
        ],
        misses: &[
            "cp /usr/bin/env .",
            "ls /usr/bin",
            "cp x ~/.local/bin/x",
            "cp x /usr/share/doc/x",
        ],
    },
    Rule {
        id: "write-autostart",
        key: "write to autostart location",
        description: "plants something that starts by itself",
        weight: HIGH,
        programs: EVERYONE,
        when: |call, scene| {
            let writes = call.writes.iter().filter(|write| write.how != How::Delete);
            writes
                .into_iter()
                .find(|write| is(&write.path, scene, &[Class::Autostart]))
                .map(|write| write.span)
        },
        hits: &[
            "cp x.service ~/.config/systemd/user/x.service",
            "echo x > .git/hooks/pre-commit",
        ],
        misses: &["ls ~/.config/systemd/user", "cat .git/hooks/pre-commit"],
    },
];

fn is(path: &str, scene: &Scene<'_>, classes: &[Class]) -> bool {
    classify(path, scene.setting).is_some_and(|class| classes.contains(&class))
}

fn written(call: &Call, scene: &Scene<'_>, how: How, classes: &[Class]) -> Option<Span> {
    if call.writes.is_empty() {
        return None;
    }
    call.writes
        .iter()
        .find(|write| write.how == how && is(&write.path, scene, classes))
        .map(|write| write.span)
}

/// `/private/tmp` is a system path of the original for copies only.
fn copied_to_system(call: &Call, scene: &Scene<'_>) -> Option<Span> {
    written(call, scene, How::Copy, &[Class::System]).or_else(|| {
        let mut copies = call.writes.iter().filter(|write| write.how == How::Copy);
        copies
            .find(|write| in_any(&fold(&write.path, scene.setting), &["/private/tmp"]))
            .map(|write| write.span)
    })
}
