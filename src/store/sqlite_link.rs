//! One connection of the embedded database. A statement runs where it is asked
//! for, in microseconds and without a hop to another thread; only a COMMIT waits
//! for the disk, and that is the writer's, which has a thread of its own.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::types::Value;
use rusqlite::{Connection, OpenFlags, Statement, ToSql};

use super::{Arg, StoreError};

/// Statements of the product, all kept prepared.
const STATEMENTS: usize = 512;
/// Readers kept for the next read; a read never waits for its turn, so there
/// are as many at once as threads.
const SPARE: usize = 4;

#[derive(Debug)]
pub(super) struct SqliteLink {
    connection: Connection,
    shapes: HashMap<&'static str, Shape>,
}

/// What is asked of a statement once.
#[derive(Debug)]
struct Shape {
    /// Shared by all of its rows.
    columns: Arc<[String]>,
    /// The argument of each parameter: SQLite takes `$2` for a name and numbers
    /// parameters in the order in which their names first appear.
    arguments: Vec<Option<usize>>,
}

impl Shape {
    fn of(statement: &Statement<'_>) -> Self {
        let argument = |parameter| {
            let number: usize = statement.parameter_name(parameter)?.strip_prefix('$')?.parse().ok()?;
            number.checked_sub(1)
        };
        Self {
            columns: statement.column_names().into_iter().map(str::to_owned).collect(),
            arguments: (1..=statement.parameter_count()).map(argument).collect(),
        }
    }

    fn bind(&self, statement: &mut Statement<'_>, args: &[Arg<'_>]) -> Result<(), StoreError> {
        for (parameter, argument) in (1..).zip(&self.arguments) {
            let arg = argument.and_then(|place| args.get(place));
            let arg = arg.ok_or_else(|| StoreError::bug("a statement with a parameter that has no argument"))?;
            statement.raw_bind_parameter(parameter, arg)?;
        }
        Ok(())
    }
}

/// A row with its values; they outlive the statement.
#[derive(Debug)]
pub struct SqliteRow {
    columns: Arc<[String]>,
    values: Vec<Value>,
}

impl SqliteLink {
    /// Opens the file, which is there already, for writing.
    pub(super) fn writer(path: &Path) -> Result<Self, StoreError> {
        // What a savepoint may have to put back stays in memory: every job of a
        // group has one, and a file for it is written and thrown away.
        Self::open(path, "pragma query_only = off; pragma temp_store = memory")
    }

    fn reader(path: &Path) -> Result<Self, StoreError> {
        // There may be many; what is read often is in the system's own cache too.
        Self::open(path, "pragma query_only = on; pragma cache_size = -500")
    }

    fn open(path: &Path, mode: &str) -> Result<Self, StoreError> {
        // Whoever holds a connection is alone with it.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags)?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        // Only a foreign tool can hold the file; ours has one writer.
        connection.busy_timeout(std::time::Duration::from_secs(5))?;
        let settings = "pragma journal_mode = wal; pragma synchronous = full; pragma foreign_keys = on;";
        connection.execute_batch(&format!("{settings} {mode}"))?;
        Ok(Self {
            connection,
            shapes: HashMap::new(),
        })
    }

    /// Runs one statement; answers how many rows it changed.
    pub(super) fn execute(&mut self, sql: &'static str, args: &[Arg<'_>]) -> Result<u64, StoreError> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let shape = self.shapes.entry(sql).or_insert_with(|| Shape::of(&statement));
        shape.bind(&mut statement, args)?;
        let mut rows = statement.raw_query();
        while rows.next()?.is_some() {}
        drop(rows);
        Ok(self.connection.changes())
    }

    /// Runs one statement to its end; answers its rows.
    pub(super) fn rows(&mut self, sql: &'static str, args: &[Arg<'_>]) -> Result<Vec<SqliteRow>, StoreError> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let shape = self.shapes.entry(sql).or_insert_with(|| Shape::of(&statement));
        shape.bind(&mut statement, args)?;
        let mut rows = statement.raw_query();
        let mut all = Vec::new();
        while let Some(row) = rows.next()? {
            let values = (0..shape.columns.len()).map(|place| row.get(place));
            all.push(SqliteRow {
                values: values.collect::<Result<_, _>>()?,
                columns: Arc::clone(&shape.columns),
            });
        }
        Ok(all)
    }

    /// Folds the log into the file, as the last connection.
    pub(super) fn close(self) -> Result<(), StoreError> {
        self.connection.close().map_err(|(_, error)| error.into())
    }
}

impl SqliteRow {
    pub(super) fn get(&self, column: &str) -> Option<&Value> {
        let place = self.columns.iter().position(|name| name == column)?;
        self.values.get(place)
    }
}

impl ToSql for Arg<'_> {
    fn to_sql(&self) -> rusqlite::Result<rusqlite::types::ToSqlOutput<'_>> {
        match self {
            Arg::Text(text) => text.to_sql(),
            Arg::OptText(text) => text.to_sql(),
            Arg::Owned(text) => text.to_sql(),
            Arg::Int(number) => number.to_sql(),
            Arg::OptInt(number) => number.to_sql(),
        }
    }
}

/// Connections that only read.
#[derive(Debug)]
pub(super) struct Readers {
    path: std::path::PathBuf,
    /// `None` once the database is closed.
    spare: Mutex<Option<Vec<SqliteLink>>>,
}

/// A reader inside its transaction, which ends when it is dropped.
#[derive(Debug)]
pub(super) struct Reading {
    /// `None` only while it is dropped.
    link: Option<SqliteLink>,
    readers: Arc<Readers>,
}

impl Readers {
    pub(super) fn new(path: &Path) -> Arc<Self> {
        Arc::new(Self {
            path: path.to_owned(),
            spare: Mutex::new(Some(Vec::new())),
        })
    }

    /// Begins a read; all its statements see one snapshot.
    pub(super) fn begin(self: &Arc<Self>) -> Result<Reading, StoreError> {
        let spare = match &mut *self.spare() {
            None => return Err(StoreError::unavailable("the store is closed")),
            Some(spare) => spare.pop(),
        };
        let mut link = match spare {
            Some(link) => link,
            None => SqliteLink::reader(&self.path)?,
        };
        link.execute("begin", &[])?;
        Ok(Reading {
            link: Some(link),
            readers: Arc::clone(self),
        })
    }

    /// No read begins any more; those under way come to their end.
    pub(super) fn close(&self) {
        self.spare().take();
    }

    /// Nothing is half-made under this lock.
    fn spare(&self) -> std::sync::MutexGuard<'_, Option<Vec<SqliteLink>>> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reading {
    pub(super) fn link(&mut self) -> Result<&mut SqliteLink, StoreError> {
        self.link
            .as_mut()
            .ok_or_else(|| StoreError::bug("a read after its end"))
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        let Some(mut link) = self.link.take() else { return };
        // A connection that cannot end its transaction is of no more use.
        if link.execute("rollback", &[]).is_ok()
            && let Some(spare) = &mut *self.readers.spare()
            && spare.len() < SPARE
        {
            spare.push(link);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::testing::TempDir;

    #[test]
    fn an_argument_is_bound_by_its_number_wherever_it_stands() {
        let dir = TempDir::new();
        let path = dir.path().join("link.db");
        std::fs::File::create(&path).unwrap();
        let mut link = SqliteLink::writer(&path).unwrap();
        link.execute("create table pair (a text, b integer)", &[]).unwrap();
        let sql = "insert into pair (b, a) values ($2, $1), ($2 + 1, $1)";
        assert_eq!(link.execute(sql, &["x".into(), 7i64.into()]).unwrap(), 2);
        let sql = "update pair set a = $3 where b = $2 and a = $1 returning b, a";
        let rows = link.rows(sql, &["x".into(), 8i64.into(), "y".into()]).unwrap();
        assert_eq!(rows.len(), 1);
        assert_eq!(rows[0].get("a"), Some(&Value::Text("y".to_owned())));
        assert_eq!(rows[0].get("b"), Some(&Value::Integer(8)));
        assert!(link.execute("delete from pair where a = $2", &["x".into()]).is_err());
    }

    #[test]
    fn a_reader_sees_one_snapshot_and_cannot_write() {
        let dir = TempDir::new();
        let path = dir.path().join("link.db");
        std::fs::File::create(&path).unwrap();
        let mut writer = SqliteLink::writer(&path).unwrap();
        writer.execute("create table one (a integer)", &[]).unwrap();
        let readers = Readers::new(&path);
        let count = |reading: &mut Reading| {
            let rows = reading
                .link()
                .unwrap()
                .rows("select count(*) as n from one", &[])
                .unwrap();
            rows[0].get("n").cloned()
        };
        let mut before = readers.begin().unwrap();
        assert_eq!(count(&mut before), Some(Value::Integer(0)));
        writer.execute("insert into one (a) values (1)", &[]).unwrap();
        assert_eq!(count(&mut before), Some(Value::Integer(0)));
        drop(before);
        let mut after = readers.begin().unwrap();
        assert_eq!(count(&mut after), Some(Value::Integer(1)));
        assert!(after.link().unwrap().execute("delete from one", &[]).is_err());
        readers.close();
        assert!(matches!(readers.begin(), Err(StoreError::Unavailable(_))));
    }
}
