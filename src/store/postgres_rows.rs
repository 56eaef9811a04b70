//! What members of a group write in the same words, as rows of one statement: the
//! database starts one plan for all of them, and reads one text. The texts are those
//! of a write by itself; here their parameters become columns of the members' rows.
//!
//! The members are of one tenant, whose name stays a parameter: no row of a statement
//! is another tenant's than the one whose wall it stands behind.

use std::borrow::Cow;

use super::postgres_text::Values;
use super::together::{Part, Together, joined, parameters_written, with, written};

/// A statement that nobody waits for, with its values.
pub(super) type Written = (Cow<'static, str>, Values);

/// Rows that sessions share. They are written last, those of all members at once and
/// in their order, so that no two transactions wait for one another.
const SHARED: &str = "usage_sum";

/// Fewer go one by one: a statement of rows costs its sub-plans before the first row,
/// and with 8 sessions at once, which make groups of three or four, that was a tenth
/// to a sixth of all turns; with 64 and 256 rows win as much.
const MANY: usize = 6;

/// What one writes: its statements, each of several parts.
type Own<'a> = Vec<Vec<&'a Part>>;

/// What members write, each of them in its own order, in as few statements as it takes.
pub(super) fn statements(members: &[Vec<Together>]) -> Vec<Written> {
    let own: Vec<Own<'_>> = members
        .iter()
        .map(|member| member.iter().map(|together| parts(together, false)).collect())
        .collect();
    let mut written: Vec<Written> = Vec::new();
    for same in alike(own) {
        let [first, ..] = same.as_slice() else { continue };
        for place in 0..first.len() {
            let each: Vec<&[&Part]> = same
                .iter()
                .filter_map(|member| Some(member.get(place)?.as_slice()))
                .collect();
            written.extend(in_rows(&each));
        }
    }
    let shared = members.iter().flatten().flat_map(|together| parts(together, true));
    for same in alike(shared.map(|part| vec![vec![part]]).collect()) {
        let each: Vec<&[&Part]> = same.iter().flatten().map(Vec::as_slice).collect();
        written.extend(in_rows(&each));
    }
    written
}

fn parts(together: &Together, shared: bool) -> Vec<&Part> {
    together
        .parts()
        .iter()
        .filter(|part| (part.table == SHARED) == shared)
        .collect()
}

/// Those together that write in the same words, in the order of the first of each.
fn alike(mut left: Vec<Own<'_>>) -> Vec<Vec<Own<'_>>> {
    let mut kinds = Vec::new();
    while let Some(first) = left.first() {
        let words: Vec<_> = first.iter().flatten().map(|part| part.words()).collect();
        let lengths: Vec<usize> = first.iter().map(Vec::len).collect();
        let (same, others) = left.into_iter().partition::<Vec<_>, _>(|member| {
            member.iter().map(Vec::len).eq(lengths.iter().copied())
                && member
                    .iter()
                    .flatten()
                    .map(|part| part.words())
                    .eq(words.iter().copied())
        });
        kinds.push(same);
        left = others;
    }
    kinds
}

/// The same parts of each, as rows of one statement, or each by itself where they are
/// few or have no form for that.
fn in_rows(each: &[&[&Part]]) -> Vec<Written> {
    match each {
        [] => Vec::new(),
        [only] => joined(only).into_iter().collect(),
        few if few.len() < MANY => few.iter().filter_map(|parts| joined(parts)).collect(),
        _ => as_one(each).unwrap_or_else(|| each.iter().filter_map(|parts| joined(parts)).collect()),
    }
}

/// `None` where they cannot be one.
fn as_one(each: &[&[&Part]]) -> Option<Vec<Written>> {
    let [first, ..] = each else { return None };
    let (mut texts, mut values) = (Vec::with_capacity(first.len()), Values::default());
    for (place, part) in first.iter().enumerate() {
        texts.push(of_rows(part.sql, part.values.count(), values.count())?);
        let rows: Vec<&Values> = each
            .iter()
            .filter_map(|parts| Some(&parts.get(place)?.values))
            .collect();
        values.append_rows(&rows)?;
    }
    Some(with(&texts).map(|sql| (Cow::Owned(sql), values)).into_iter().collect())
}

/// A statement's text with rows in the place of its `count` parameters behind the
/// first one; `before` are those of the statements before it.
pub(super) fn of_rows(sql: &str, count: usize, before: usize) -> Option<String> {
    let list = |one: &dyn Fn(usize) -> String| (2..=count).map(one).collect::<Vec<_>>().join(", ");
    let rows = format!(
        "unnest({}) as member({})",
        list(&|number| format!("${}", number + before)),
        list(&|number| format!("p{number}"))
    );
    let named = |number| match number {
        1 => format!("${}", 1 + before),
        _ => format!("member.p{number}"),
    };
    let mut text = String::with_capacity(sql.len() * 2);
    let [front, back] = (1 < count).then(|| around_rows(sql)).flatten()?;
    parameters_written(&front, named, &mut text);
    text.push_str(&rows);
    parameters_written(&back, named, &mut text);
    Some(text)
}

/// What stands before the rows that a statement is made to read, and behind them.
fn around_rows(sql: &str) -> Option<[String; 2]> {
    let (text, conflict) = sql.split_at(sql.find("on conflict").unwrap_or(sql.len()));
    if conflict.contains('$') {
        // No row is in sight there.
        return None;
    }
    let is_update = text.trim_start().starts_with("update ");
    let reads = ["from json_to_recordset(", "from (values "];
    let (front, back) = if let Some(place) = reads.iter().find_map(|read| text.find(read)) {
        // Which of the rows to join first is the planner's to choose, and it may choose
        // to go through the table.
        let (front, read) = (!is_update).then(|| text.split_at(place + "from ".len()))?;
        (front.to_owned(), format!(", lateral {read}"))
    } else if text.contains("select") {
        return None;
    } else if is_update {
        let (change, which) = text.split_once("where ")?;
        let table = written(text);
        // The limit keeps it to a look-up for each member, whatever else would look
        // cheaper while the table is small.
        let held = format!(", lateral (select ctid from {table} where {which} limit 1) as held offset 0)");
        (
            format!("{change}from (select held.ctid as place, member.* from "),
            format!("{held} as member where {table}.ctid = member.place"),
        )
    } else {
        let (front, row) = text.split_once("values (")?;
        let row = row.trim_end().strip_suffix(')').filter(|row| !row.contains('('))?;
        (format!("{front}select {row} from "), " ".to_owned())
    };
    Some([front, back + conflict])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(sql: &str, count: usize) -> Option<String> {
        of_rows(sql, count, 10)
    }

    #[test]
    fn a_row_of_values_becomes_many() {
        assert_eq!(
            rows("insert into a (t, x, y) values ($1, $3, $2)", 3).unwrap(),
            "insert into a (t, x, y) select $11, member.p3, member.p2 from unnest($12, $13) as member(p2, p3) "
        );
        assert_eq!(
            rows(
                "insert into a (t, x) values ($1, $2) on conflict (t) do update set x = excluded.x",
                2
            )
            .unwrap(),
            "insert into a (t, x) select $11, member.p2 from unnest($12) as member(p2) \
             on conflict (t) do update set x = excluded.x"
        );
    }

    #[test]
    fn rows_out_of_a_parameter_are_read_for_each_member() {
        assert_eq!(
            rows(
                "insert into a (t, x, y) select $1, $2, r.y from json_to_recordset($3::json) as r(y text)",
                3
            )
            .unwrap(),
            "insert into a (t, x, y) select $11, member.p2, r.y from unnest($12, $13) as member(p2, p3), \
             lateral json_to_recordset(member.p3::json) as r(y text)"
        );
    }

    #[test]
    fn a_change_of_one_row_becomes_one_of_many() {
        assert_eq!(
            rows("update a set x = coalesce($2, x) where t = $1 and y = $3", 3).unwrap(),
            "update a set x = coalesce(member.p2, x) from (select held.ctid as place, member.* \
             from unnest($12, $13) as member(p2, p3), \
             lateral (select ctid from a where t = $11 and y = member.p3 limit 1) as held offset 0) as member \
             where a.ctid = member.place"
        );
    }

    #[test]
    fn what_has_no_form_for_rows_has_none() {
        for sql in [
            "delete from a where t = $1 and x = $2",
            "insert into a (t, x) values ($1, $2) on conflict (t) do update set x = $2",
            "insert into a (t, x) values ($1, lower($2))",
            "insert into a (t, x) values ($1, $2), ($1, $3)",
            "insert into a (t, x) select $1, x from b where y = $2",
            "update a set y = r.y from json_to_recordset($2::json) as r(y text) where t = $1 and x = r.x",
            "update a set x = (select y from b where z = $2) where t = $1",
        ] {
            assert_eq!(rows(sql, 3), None, "{sql}");
        }
        assert_eq!(rows("insert into a (t) values ($1)", 1), None);
    }
}
