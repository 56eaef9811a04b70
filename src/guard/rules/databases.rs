//! Frameworks and tools that reset or drop a whole database.

use super::{HIGH, Rule, Scene};
use crate::guard::Span;
use crate::guard::call::Call;

/// Program and the words that reset a database with it; a word may be the
/// beginning of one.
const RESETS: &[(&[&str], &[&str])] = &[
    (
        &["rails", "rake", "bin/rails"],
        &[
            "db:drop",
            "db:reset",
            "db:schema:load",
            "db:purge",
            "db:migrate:reset",
            "db:truncate_all",
        ],
    ),
    (
        &["php", "artisan", "sail"],
        &["migrate:fresh", "migrate:reset", "migrate:refresh", "db:wipe"],
    ),
    (
        &["python", "django-admin", "manage.py"],
        &["flush", "reset_db", "sqlflush"],
    ),
    (&["prisma"], &["reset", "--force-reset", "--accept-data-loss"]),
    (&["sequelize", "sequelize-cli"], &["db:drop", "db:migrate:undo:all"]),
    (&["typeorm"], &["schema:drop"]),
    (&["knex"], &["--all"]),
    (&["alembic"], &["base"]),
    (&["flask"], &["base"]),
    (&["supabase"], &["reset", "delete"]),
    (&["mix"], &["ecto.drop", "ecto.reset"]),
    (&["diesel"], &["reset"]),
    (&["sqlx", "sea-orm-cli"], &["drop", "reset", "fresh"]),
    (&["dbmate", "migrate", "goose"], &["drop", "reset"]),
    (&["flyway"], &["clean"]),
    (&["liquibase"], &["dropall", "drop-all"]),
    (&["hasura"], &["delete"]),
    (
        &["symfony", "console", "doctrine"],
        &["doctrine:database:drop", "doctrine:schema:drop"],
    ),
    (&["pg_restore"], &["--clean", "-c"]),
    (&["mongorestore"], &["--drop"]),
    (&["influx", "clickhouse-client"], &["delete"]),
    (&["convex", "drizzle-kit"], &["drop"]),
];

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "database-reset",
        key: "reset of a database",
        description: "throws a database with its data away and makes it anew",
        weight: HIGH,
        programs: &[
            "rails",
            "rake",
            "php",
            "artisan",
            "sail",
            "python",
            "django-admin",
            "manage.py",
            "prisma",
            "sequelize",
            "sequelize-cli",
            "typeorm",
            "knex",
            "alembic",
            "flask",
            "supabase",
            "mix",
            "diesel",
            "sqlx",
            "sea-orm-cli",
            "dbmate",
            "migrate",
            "goose",
            "flyway",
            "liquibase",
            "hasura",
            "symfony",
            "console",
            "doctrine",
            "pg_restore",
            "mongorestore",
            "influx",
            "clickhouse-client",
            "convex",
            "drizzle-kit",
        ],
        when: resets,
        hits: &[
            "rails db:drop",
            "bundle exec rake db:reset",
            "php artisan migrate:fresh --seed",
            "python manage.py flush --noinput",
            "npx prisma migrate reset --force",
            "npx sequelize-cli db:drop",
            "alembic downgrade base",
            "mix ecto.reset",
            "supabase db reset",
            "flyway clean",
            "sqlx database drop -y",
        ],
        misses: &[
            "rails db:migrate",
            "php artisan migrate",
            "python manage.py migrate",
            "npx prisma migrate dev",
            "alembic upgrade head",
            "mix ecto.migrate",
            "sqlx migrate run",
            "python flush.py",
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
            "mongosh --eval 'db.users.deleteMany({})'",
            "redis-cli --scan --pattern 'a:*' | xargs redis-cli del",
        ],
        misses: &[
            "redis-cli ping",
            "mysqladmin status",
            "dropdb --help",
            "mongosh --eval 'db.users.find()'",
        ],
    },
];

fn resets(call: &Call, _: &Scene<'_>) -> Option<Span> {
    let (_, words) = RESETS.iter().find(|(names, _)| names.contains(&family(&call.name)))?;
    // `python manage.py flush`, `php artisan db:wipe`: the script says which tool it is.
    let from = match family(&call.name) {
        "python" => 1 + call.args.iter().position(|arg| arg.text.ends_with("manage.py"))?,
        "php" => {
            1 + call
                .args
                .iter()
                .position(|arg| arg.text.ends_with("artisan") || arg.text.ends_with("console"))?
        }
        "knex" => 1 + call.args.iter().position(|arg| arg.text == "migrate:rollback")?,
        "alembic" | "flask" => 1 + call.args.iter().position(|arg| arg.text == "downgrade")?,
        _ => 0,
    };
    let tail = call.args.get(from..)?.iter().take(6);
    let mut hits = tail.filter(|arg| words.contains(&arg.text.to_lowercase().as_str()));
    hits.next().map(|arg| arg.span)
}

fn family(name: &str) -> &str {
    if name.starts_with("python") { "python" } else { name }
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
        "redis-cli" | "valkey-cli" => word(&["flushall", "flushdb", "shutdown"]).or_else(|| {
            word(&["del", "unlink"])
                .filter(|_| call.wrapped_by(&["xargs"]) || call.args.iter().any(|arg| !arg.runs.is_empty()))
        }),
        _ => call
            .args
            .iter()
            .find(|arg| {
                let text = arg.text.as_str();
                [
                    "dropDatabase",
                    ".drop()",
                    ".drop(",
                    "deleteMany({})",
                    "remove({})",
                    ".dropIndexes(",
                ]
                .iter()
                .any(|call| text.contains(call))
            })
            .map(|arg| arg.span),
    }
}
