//! SQL that loses data, where SQL is run: clients, their input, and bare
//! statements given as a command.

use super::{HIGH, Rule};
use crate::guard::Span;
use crate::guard::call::Call;
use crate::guard::resolve::Value;

/// Clients, and the verbs of statements given without a client.
const RUN: &[&str] = &[
    "psql",
    "mysql",
    "mariadb",
    "sqlite3",
    "sqlite",
    "duckdb",
    "sqlcmd",
    "clickhouse-client",
    "clickhouse",
    "cockroach",
    "usql",
    "mycli",
    "pgcli",
    "bq",
    "snowsql",
    "impala-shell",
    "hive",
    "beeline",
    "isql",
    "cqlsh",
    "trino",
    "presto",
    "spark-sql",
    "influx",
    "osqueryi",
    "mssql-cli",
    "litecli",
    "tsql",
    "sqlplus",
    "vsql",
    "ysqlsh",
    "tidb",
    "rqlite",
    "libsql",
    "turso",
    "wrangler",
    "questdb",
    "exapump",
    "drop",
    "delete",
    "truncate",
];

/// SQL longer than this is not searched.
const LONGEST: usize = 64 * 1024;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "sql-drop",
        key: "SQL DROP",
        description: "drops a table or a database",
        weight: HIGH,
        programs: RUN,
        when: |call, _| statement(call, is_drop),
        hits: &[
            "DROP TABLE users",
            "psql -c 'drop database x'",
            "mysql -e 'DROP TABLE a; select 1'",
            "echo 'DROP TABLE x' | sqlite3 db",
            "psql <<E\nDROP SCHEMA s CASCADE;\nE",
            "mysql -e 'drop user x'",
            "psql -c 'ALTER TABLE t DROP COLUMN c'",
            "mysql -e '/*!50000 DROP TABLE x */'",
            "cqlsh -e 'DROP KEYSPACE k'",
            "psql -c 'BEGIN; DROP VIEW v; COMMIT'",
            "psql -f <(echo 'drop table x')",
        ],
        misses: &[
            "echo 'drop the table'",
            "grep -n 'DROP TABLE' s.sql",
            "psql -c 'select 1'",
            "drop index idx_a",
        ],
    },
    Rule {
        id: "sql-delete",
        key: "SQL DELETE without WHERE",
        description: "deletes every row of a table",
        weight: HIGH,
        programs: RUN,
        when: |call, _| statement(call, is_delete_all),
        hits: &[
            "DELETE FROM logs;",
            "psql -c 'DELETE FROM users -- WHERE id = 1'",
            "psql -c 'delete from x; select * from y where z'",
            "psql -c 'delete from x where 1=1'",
            "sqlite3 a.db 'delete from t where true'",
        ],
        misses: &[
            "psql -c 'DELETE FROM users WHERE id = 1'",
            "DELETE FROM users WHERE id = 1",
        ],
    },
    Rule {
        id: "sql-update",
        key: "SQL UPDATE without WHERE",
        description: "changes every row of a table",
        weight: HIGH,
        programs: RUN,
        when: |call, _| statement(call, is_update_all),
        hits: &[
            "psql -c 'update users set admin = true'",
            "mysql -e 'UPDATE t SET a=1 WHERE 1'",
        ],
        misses: &["psql -c 'update t set a = 1 where id = 2'", "psql -c 'select 1'"],
    },
    Rule {
        id: "sql-truncate",
        key: "SQL TRUNCATE",
        description: "empties a table",
        weight: HIGH,
        programs: RUN,
        when: |call, _| statement(call, is_truncate),
        hits: &["TRUNCATE TABLE logs", "mysql -e 'truncate logs'"],
        misses: &["truncate -s 0 file", "grep 'truncate text' x.css"],
    },
    Rule {
        id: "sql-privileges",
        key: "SQL change of users or rights",
        description: "changes who may log into a database and what they may do there",
        weight: HIGH,
        programs: RUN,
        when: |call, _| statement(call, is_privilege),
        hits: &[
            "psql -c 'GRANT ALL PRIVILEGES ON ALL TABLES IN SCHEMA public TO bob'",
            "mysql -e \"GRANT ALL ON *.* TO 'a'@'%'\"",
            "psql -c 'REVOKE ALL ON DATABASE app FROM app'",
            "psql -c \"ALTER USER postgres PASSWORD 'x'\"",
            "psql -c 'CREATE ROLE root SUPERUSER LOGIN'",
            "mysql -e \"SET PASSWORD FOR root = 'x'\"",
            "psql -c 'ALTER SYSTEM SET log_statement = none'",
            "echo 'alter role bob superuser' | psql",
            "psql -c 'BEGIN; GRANT admin TO bob; COMMIT'",
            "sqlcmd -Q \"ALTER LOGIN sa WITH PASSWORD='x'\"",
        ],
        misses: &[
            "psql -c \"SELECT has_table_privilege('bob', 'users', 'select')\"",
            "mysql -e \"SHOW GRANTS FOR 'a'@'%'\"",
            "psql -c \"COMMENT ON TABLE t IS 'grant access to bob'\"",
            "psql -c 'ALTER TABLE t ADD COLUMN grant_to text'",
            "psql -c 'CREATE TABLE users (id int)'",
            "psql -c 'SET search_path TO app'",
        ],
    },
];

/// Who may do what, and how the server is set.
fn is_privilege(words: &[&str]) -> bool {
    match words {
        ["grant", rest @ ..] => rest.contains(&"to"),
        ["revoke", rest @ ..] => rest.contains(&"from"),
        ["alter" | "create", "or", "replace", what, ..] | ["alter" | "create", what, ..] => {
            matches!(*what, "user" | "role" | "login" | "group")
                || matches!(words, ["alter", "default", "privileges", ..] | ["alter", "system", ..])
                || matches!(words, ["alter", "table" | "database" | "schema", _, "owner", "to", ..])
        }
        ["set", "password", ..] | ["set", "global" | "persist", ..] | ["rename", "user", ..] => true,
        ["reassign", "owned", ..] => true,
        _ => false,
    }
}

fn statement(call: &Call, loses: fn(&[&str]) -> bool) -> Option<Span> {
    let bare = call.is(&["drop", "delete", "truncate"]);
    if bare {
        let words: Vec<&str> = std::iter::once(&call.program)
            .chain(&call.args)
            .map(|word| word.text.as_str())
            .collect();
        return any_statement(&words.join(" "), loses).then_some(call.span);
    }
    let argument = call.args.iter().find(|arg| {
        // `-e"…"` and `--execute=…` hold the statement in the option's word.
        let attached = if crate::guard::call::is_group(&arg.text) {
            arg.text.get(2..)
        } else {
            None
        };
        let valued = arg
            .text
            .strip_prefix("--")
            .and_then(|rest| rest.split_once('='))
            .map(|(_, sql)| sql);
        let sql = attached.or(valued).unwrap_or(&arg.text);
        let bundled = crate::guard::call::is_group(&arg.text) && {
            // `-Atc'DROP …'`
            let mut starts = arg.text.char_indices().skip(3).take(4).map(|(at, _)| at);
            starts.any(|at| arg.text.get(at..).is_some_and(|sql| any_statement(sql, loses)))
        };
        sql.contains(' ') && (bundled || any_statement(sql, loses))
    });
    let file = || {
        let holds = |arg: &&Value| arg.content.as_deref().is_some_and(|sql| any_statement(sql, loses));
        call.args.iter().find(holds).map(|arg| arg.span)
    };
    argument.map(|arg| arg.span).or_else(file).or_else(|| {
        call.input_text()
            .filter(|(text, _)| any_statement(text, loses))
            .map(|(_, span)| span)
    })
}

fn any_statement(sql: &str, loses: fn(&[&str]) -> bool) -> bool {
    if sql.len() > LONGEST {
        return false;
    }
    without_comments(sql).to_lowercase().split(';').any(|statement| {
        let words: Vec<&str> = statement.split_whitespace().take(4096).collect();
        // `with x as (…) delete from y`: the verb stands later.
        let nested = words
            .first()
            .is_some_and(|first| matches!(*first, "with" | "explain" | "begin" | "start"));
        loses(&words)
            || nested
                && (1..words.len().min(64)).any(|at| {
                    let verb = words
                        .get(at)
                        .is_some_and(|word| matches!(*word, "delete" | "drop" | "truncate" | "update"));
                    verb && words.get(at..).is_some_and(loses)
                })
    })
}

/// `--` to the end of the line and `/* … */` hide a decoy `where`; what stands
/// in `/*!50000 … */` is run by MySQL. Each byte is looked at once.
fn without_comments(sql: &str) -> String {
    let mut plain = String::with_capacity(sql.len());
    let mut rest = sql;
    while let Some(at) = rest.find(['-', '/']) {
        let (before, tail) = rest.split_at(at);
        plain.push_str(before);
        let comment = if let Some(line) = tail.strip_prefix("--") {
            Some(line.find('\n').and_then(|end| line.get(end..)))
        } else if let Some(block) = tail.strip_prefix("/*") {
            let closed = block.split_once("*/");
            if let Some(code) = closed.and_then(|(inner, _)| inner.strip_prefix('!')) {
                plain.push(' ');
                plain.push_str(code.trim_start_matches(|character: char| character.is_ascii_digit()));
            }
            Some(closed.map(|(_, after)| after))
        } else {
            None
        };
        match comment {
            Some(Some(after)) => {
                plain.push(' ');
                rest = after;
            }
            // A comment without an end takes all that follows.
            Some(None) => return plain,
            None => {
                let (sign, after) = tail.split_at(1);
                plain.push_str(sign);
                rest = after;
            }
        }
    }
    plain.push_str(rest);
    plain
}

fn begins(words: &[&str], with: &[&[&str]]) -> bool {
    with.iter()
        .any(|prefix| words.len() >= prefix.len() && words.iter().zip(*prefix).all(|(word, wanted)| word == wanted))
}

fn is_drop(words: &[&str]) -> bool {
    let harmless = ["constraint", "default", "not", "index", "identity"];
    let drops = |pair: &[&str]| matches!(pair, ["drop", what] if !harmless.contains(what));
    let alters = begins(words, &[&["alter", "table"]]) && words.windows(2).any(drops);
    let what = match words {
        ["drop", what, ..] => *what,
        _ => return alters,
    };
    matches!(
        what,
        "table"
            | "database"
            | "schema"
            | "user"
            | "role"
            | "keyspace"
            | "tablespace"
            | "view"
            | "materialized"
            | "owned"
            | "warehouse"
            | "bucket"
            | "measurement"
            | "login"
            | "server"
            | "publication"
            | "sequence"
            | "type"
            | "extension"
            | "tables"
    )
}

/// A condition that holds for every row is none.
fn is_unconditional(words: &[&str]) -> bool {
    match words.iter().position(|word| *word == "where") {
        None => true,
        Some(at) => {
            let condition: String = words.get(at + 1..).unwrap_or_default().concat();
            let condition = condition.trim_matches(|character| matches!(character, '(' | ')' | ';'));
            matches!(
                condition,
                "1=1" | "true" | "1" | "'1'='1'" | "'a'='a'" | "0=0" | "nottrue=false" | "2>1" | "idisnotnull" | "1<>0"
            )
        }
    }
}

fn is_update_all(words: &[&str]) -> bool {
    begins(words, &[&["update"]]) && words.contains(&"set") && is_unconditional(words)
}

fn is_delete_all(words: &[&str]) -> bool {
    begins(words, &[&["delete", "from"]]) && is_unconditional(words)
}

/// `truncate -s 0 file` is coreutils.
fn is_truncate(words: &[&str]) -> bool {
    match words {
        ["truncate", "table", _, ..] => true,
        ["truncate", name] => {
            !name.starts_with('-') && !name.contains(['/', '.'])
                || name.matches('.').count() == 1 && !name.contains('/')
        }
        ["truncate", name, "cascade" | "restart", ..] => !name.starts_with('-'),
        _ => false,
    }
}
