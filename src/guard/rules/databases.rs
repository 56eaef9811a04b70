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
            "keydb-cli",
            "createuser",
            "curl",
        ],
        when: drops,
        hits: &[
            "dropdb x",
            "mysqladmin drop x",
            "redis-cli FLUSHALL",
            "mongo --eval 'db.dropDatabase()'",
            "mongosh --eval 'db.users.deleteMany({})'",
            "redis-cli --scan --pattern 'a:*' | xargs redis-cli del",
            "echo FLUSHALL | redis-cli",
            "redis-cli <<< 'select 1\nflushdb'",
            "redis-cli eval \"redis.call('flushall')\" 0",
            "createuser -s bob",
            "mysqladmin -u root password x",
            "curl -X DELETE localhost:9200/_all",
            "curl -XDELETE 'http://search:9200/logs-*'",
            "mongosh --eval 'db.users.deleteMany()'",
        ],
        misses: &[
            "redis-cli ping",
            "mysqladmin status",
            "dropdb --help",
            "mongosh --eval 'db.users.find()'",
            "echo PING | redis-cli",
            "createuser bob",
            "curl -X DELETE http://localhost:3000/api/items/3",
            "curl localhost:9200/_all",
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

/// Commands of redis that lose everything.
const EMPTIES: &[&str] = &["flushall", "flushdb", "shutdown"];

/// As lines of the input, or called by a script.
fn empties_by_text(call: &Call) -> Option<Span> {
    let script = call.args.iter().find(|arg| {
        let text = arg.text.to_lowercase();
        text.contains("redis.call") && EMPTIES.iter().any(|word| text.contains(word))
    });
    script.map(|arg| arg.span).or_else(|| {
        let (text, span) = call.input_text()?;
        let mut lines = text
            .lines()
            .take(4096)
            .filter_map(|line| line.split_whitespace().next());
        lines
            .any(|first| EMPTIES.iter().any(|word| first.eq_ignore_ascii_case(word)))
            .then_some(span)
    })
}

/// A delete of whole indices of a search server.
fn empties_index(call: &Call) -> Option<Span> {
    let mut methods = call.option_texts(&["-X", "--request"]);
    methods.find(|(method, _)| method.eq_ignore_ascii_case("delete"))?;
    let whole =
        |path: &str| matches!(path, "_all" | "*") || path.ends_with('*') || !path.is_empty() && !path.contains('/');
    let indices = |address: &str| {
        let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
        rest.split_once(":9200/")
            .is_some_and(|(_, path)| whole(path.split('?').next().unwrap_or_default()))
    };
    call.operands().find(|arg| indices(&arg.text)).map(|arg| arg.span)
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
        "mysqladmin" => word(&["drop", "shutdown", "password"]),
        "createuser" => call
            .has(&["-s", "--superuser", "-r", "--createrole", "--replication"])
            .or_else(|| call.short('s')),
        "curl" => empties_index(call),
        "redis-cli" | "valkey-cli" | "keydb-cli" => word(EMPTIES)
            .or_else(|| {
                word(&["del", "unlink"])
                    .filter(|_| call.wrapped_by(&["xargs"]) || call.args.iter().any(|arg| !arg.runs.is_empty()))
            })
            .or_else(|| empties_by_text(call)),
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
                    "deleteMany()",
                    "remove({})",
                    ".dropIndexes(",
                ]
                .iter()
                .any(|call| text.contains(call))
            })
            .map(|arg| arg.span),
    }
}
