//! SQL that loses data, where SQL is run: clients, their input, and bare
//! statements given as a command.

use super::{HIGH, Rule};
use crate::guard::Span;
use crate::guard::call::Call;

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
        ],
        misses: &[
            "psql -c 'DELETE FROM users WHERE id = 1'",
            "DELETE FROM users WHERE id = 1",
        ],
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
];

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
        sql.contains(' ') && any_statement(sql, loses)
    });
    argument.map(|arg| arg.span).or_else(|| {
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
        loses(&words)
    })
}

/// `--` to the end of the line and `/* … */` hide a decoy `where`.
fn without_comments(sql: &str) -> String {
    let mut plain = String::with_capacity(sql.len());
    let mut rest = sql;
    loop {
        let line = rest.find("--");
        let block = rest.find("/*");
        let (at, end) = match (line, block) {
            (Some(line), block) if block.is_none_or(|block| line < block) => (
                line,
                rest.get(line..).and_then(|tail| tail.find('\n')).map(|end| line + end),
            ),
            (_, Some(block)) => (
                block,
                rest.get(block..)
                    .and_then(|tail| tail.find("*/"))
                    .map(|end| block + end + 2),
            ),
            _ => {
                plain.push_str(rest);
                return plain;
            }
        };
        plain.push_str(rest.get(..at).unwrap_or_default());
        plain.push(' ');
        let Some(end) = end else { return plain };
        rest = rest.get(end..).unwrap_or_default();
    }
}

fn begins(words: &[&str], with: &[&[&str]]) -> bool {
    with.iter()
        .any(|prefix| words.len() >= prefix.len() && words.iter().zip(*prefix).all(|(word, wanted)| word == wanted))
}

fn is_drop(words: &[&str]) -> bool {
    begins(words, &[&["drop", "table"], &["drop", "database"], &["drop", "schema"]])
}

fn is_delete_all(words: &[&str]) -> bool {
    begins(words, &[&["delete", "from"]]) && !words.contains(&"where")
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
