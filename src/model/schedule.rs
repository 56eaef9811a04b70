//! When a job runs: the texts that say so, and the instants that follow from
//! them. `30m` is once, in half an hour; `every 2h` again and again; five fields,
//! or six with the second last, are cron, in the job's time zone; a date is once,
//! at that time.

use std::str::FromStr;

use chrono::{DateTime, Datelike, NaiveDateTime, TimeZone, Utc};
use chrono_tz::Tz;
use croner::Cron;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::base::Timestamp;

const MINUTE_MS: i64 = 60_000;
/// A year: what is longer is a slip.
const MAX_MINUTES: i64 = 366 * 24 * 60;
/// The original's bounds of how late a repeated run may still begin.
const GRACE_SECONDS: std::ops::RangeInclusive<i64> = 120..=7_200;
/// The same for what runs once.
const ONCE_GRACE_MS: i64 = 120_000;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Schedule {
    Once {
        at: Timestamp,
    },
    Interval {
        minutes: i64,
    },
    Cron {
        expr: String,
        /// Name of the time zone that the fields are read in.
        time_zone: String,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    #[error(
        "`{0}` is no schedule; write a duration (`30m`, `2h`, `1d`) for once, `every 30m`, five cron fields \
         (`0 9 * * *`), or a time (`2030-02-03T14:00`)"
    )]
    Unreadable(String),
    #[error("`{0}` is no time zone; write a name such as `Europe/Berlin` or `UTC`")]
    UnknownZone(String),
    #[error("a period of `{0}` is out of bounds: 1 minute to 366 days")]
    Period(String),
    #[error("the cron fields `{0}` name no time that ever comes")]
    Never(String),
}

/// What a text says, read at `now`; times without an offset are in `zone`.
pub fn parse(text: &str, zone: &str, now: Timestamp) -> Result<Schedule, ScheduleError> {
    let tz = time_zone(zone)?;
    let text = text.trim();
    let unreadable = || ScheduleError::Unreadable(text.chars().take(200).collect());
    let lower = text.to_ascii_lowercase();
    if let Some(period) = lower.strip_prefix("every ") {
        let minutes = duration(period).ok_or_else(unreadable)?;
        return bounded(minutes, text).map(|minutes| Schedule::Interval { minutes });
    }
    if let Some(minutes) = duration(&lower) {
        let minutes = bounded(minutes, text)?;
        let at = Timestamp(now.0.saturating_add(minutes.saturating_mul(MINUTE_MS)));
        return Ok(Schedule::Once { at });
    }
    if is_cron(text) {
        let schedule = Schedule::Cron {
            expr: text.to_owned(),
            time_zone: zone.to_owned(),
        };
        cron(text).ok_or_else(unreadable)?;
        return match schedule.after(now, now) {
            Some(_) => Ok(schedule),
            None => Err(ScheduleError::Never(text.to_owned())),
        };
    }
    let at = instant(text, tz).ok_or_else(unreadable)?;
    Ok(Schedule::Once { at })
}

pub fn time_zone(name: &str) -> Result<Tz, ScheduleError> {
    Tz::from_str(name).map_err(|_| ScheduleError::UnknownZone(name.chars().take(100).collect()))
}

fn bounded(minutes: i64, text: &str) -> Result<i64, ScheduleError> {
    match (1..=MAX_MINUTES).contains(&minutes) {
        true => Ok(minutes),
        false => Err(ScheduleError::Period(text.to_owned())),
    }
}

/// Minutes of `30m`, `2 hours`, `1d`.
fn duration(text: &str) -> Option<i64> {
    let text = text.trim();
    let end = text.find(|letter: char| !letter.is_ascii_digit())?;
    let (number, unit) = text.split_at_checked(end)?;
    let number: i64 = number.parse().ok()?;
    let minutes = match unit.trim() {
        "m" | "min" | "mins" | "minute" | "minutes" => 1,
        "h" | "hr" | "hrs" | "hour" | "hours" => 60,
        "d" | "day" | "days" => 24 * 60,
        _ => return None,
    };
    number.checked_mul(minutes)
}

/// The fields as the reader of cron wants them: seconds, the original's sixth
/// field, come first, and a range that runs past the end becomes two.
fn cron(text: &str) -> Option<Cron> {
    let mut fields: Vec<String> = Vec::new();
    for (field, bounds) in text.split_whitespace().zip(BOUNDS) {
        let items: Option<Vec<String>> = field.split(',').map(|item| cron_item(item, bounds)).collect();
        fields.push(items?.join(","));
    }
    if let Some(seconds) = fields.get(5).cloned() {
        fields.truncate(5);
        // No job runs more than once a minute: where several seconds fit, the first does.
        let once = seconds
            .parse::<u32>()
            .map_or_else(|_| "0".to_owned(), |second| second.to_string());
        Cron::from_str(&format!("{seconds} {}", fields.join(" "))).ok()?;
        fields.insert(0, once);
    }
    Cron::from_str(&fields.join(" ")).ok()
}

/// Minute, hour, day, month, day of the week, second.
const BOUNDS: [(u32, u32); 6] = [(0, 59), (0, 23), (1, 31), (1, 12), (0, 7), (0, 59)];

fn cron_item(item: &str, (first, last): (u32, u32)) -> Option<String> {
    if item.is_empty() {
        return None;
    }
    let (range, step) = match item.split_once('/') {
        Some((range, step)) => (range, step.parse::<u32>().ok().filter(|step| 0 < *step)?),
        None => (item, 1),
    };
    let Some((from, to)) = range.split_once('-') else {
        return match (range.parse::<u32>(), step) {
            (Ok(from), step) if item.contains('/') => Some(format!("{from}-{last}/{step}")),
            _ => Some(item.to_owned()),
        };
    };
    let (from, to): (u32, u32) = (from.parse().ok()?, to.parse().ok()?);
    if from <= to {
        return Some(if from == to { from.to_string() } else { item.to_owned() });
    }
    let inside = first..=last;
    if !inside.contains(&from) || !inside.contains(&to) {
        return None;
    }
    // Sunday has two numbers.
    let count = if last == 7 { 7 } else { last - first + 1 };
    let times = (from..=to + count).step_by(usize::try_from(step).ok()?);
    let times: Vec<String> = times.map(|at| ((at - first) % count + first).to_string()).collect();
    Some(times.join(","))
}

/// Five fields of digits and marks, or six with the seconds last; names of days
/// and months are not read, as in the original.
fn is_cron(text: &str) -> bool {
    let fields: Vec<&str> = text.split_whitespace().collect();
    let plain = |field: &&str| {
        field
            .chars()
            .all(|letter| letter.is_ascii_digit() || "*-,/".contains(letter))
    };
    (5..=6).contains(&fields.len()) && fields.iter().all(plain)
}

/// A time, with an offset or in the zone; a date alone is its midnight.
fn instant(text: &str, tz: Tz) -> Option<Timestamp> {
    let looks_like_one = text.contains('T') || text.get(..4)?.bytes().all(|byte| byte.is_ascii_digit());
    if !looks_like_one {
        return None;
    }
    if let Ok(at) = DateTime::parse_from_rfc3339(text) {
        return shown(at.to_utc());
    }
    const FORMS: [&str; 4] = [
        "%Y-%m-%dT%H:%M:%S",
        "%Y-%m-%dT%H:%M",
        "%Y-%m-%d %H:%M:%S",
        "%Y-%m-%d %H:%M",
    ];
    let mut read = FORMS
        .iter()
        .filter_map(|form| NaiveDateTime::parse_from_str(text, form).ok());
    let day = || {
        let day = chrono::NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()?;
        day.and_hms_opt(0, 0, 0)
    };
    let local = read.next().or_else(day)?;
    // An hour that a change of clocks leaves out counts as the next that is there.
    let at = tz
        .from_local_datetime(&local)
        .earliest()
        .or_else(|| tz.from_local_datetime(&(local + chrono::Duration::hours(1))).earliest())?;
    shown(at.to_utc())
}

/// A time that can be written with a year of four digits, of which there is no 0.
fn shown(at: DateTime<Utc>) -> Option<Timestamp> {
    if at.year() < 1 {
        return None;
    }
    Timestamp(at.timestamp_millis()).to_string().parse().ok()
}

impl Schedule {
    /// The first run after `now`; `from` is when the schedule began or ran last.
    pub fn after(&self, from: Timestamp, now: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Once { at } => (now < *at).then_some(*at),
            Self::Interval { minutes } => {
                let period = minutes.saturating_mul(MINUTE_MS).max(MINUTE_MS);
                let passed = now.0.saturating_sub(from.0).max(0) / period;
                Some(Timestamp(from.0.saturating_add(period.saturating_mul(passed + 1))))
            }
            Self::Cron { expr, time_zone } => {
                let tz = self::time_zone(time_zone).ok()?;
                let cron = cron(expr)?;
                let at = DateTime::<Utc>::from_timestamp_millis(now.0)?.with_timezone(&tz);
                let next = cron.find_next_occurrence(&at, false).ok()?;
                Some(Timestamp(next.timestamp_millis()))
            }
        }
    }

    /// How late a run of it may begin and still make sense: half a period.
    pub fn grace_ms(&self, due: Timestamp) -> i64 {
        let period = match self {
            Self::Once { .. } => return ONCE_GRACE_MS,
            Self::Interval { minutes } => minutes.saturating_mul(MINUTE_MS),
            Self::Cron { .. } => self.after(due, due).map_or(0, |next| next.0.saturating_sub(due.0)),
        };
        let half = period / 2_000;
        half.clamp(*GRACE_SECONDS.start(), *GRACE_SECONDS.end()) * 1_000
    }

    /// Runs more than once.
    pub fn repeats(&self) -> bool {
        !matches!(self, Self::Once { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn read(text: &str, zone: &str) -> Schedule {
        parse(text, zone, at("2026-03-28T12:00:00Z")).unwrap()
    }

    #[test]
    fn cron_is_read_in_its_zone_also_when_clocks_change() {
        let schedule = read("30 9 * * *", "Europe/Berlin");
        let before = at("2026-03-28T12:00:00Z");
        let next = schedule.after(before, before).unwrap();
        // Summer time begins on 29 March.
        assert_eq!(next, at("2026-03-29T07:30:00Z"));
        assert_eq!(
            read("0 9 * * 1", "Asia/Seoul").after(before, before),
            Some(at("2026-03-30T00:00:00Z"))
        );
    }

    #[test]
    fn ranges_may_run_past_the_end_and_seconds_come_last() {
        let next = |text, after| read(text, "UTC").after(at(after), at(after)).unwrap();
        let noon = "2026-03-28T12:00:00Z";
        assert_eq!(next("0  22-2 * * *", noon), at("2026-03-28T22:00:00Z"));
        assert_eq!(next("0 22-2 * * *", "2026-03-29T00:30:00Z"), at("2026-03-29T01:00:00Z"));
        assert_eq!(next("0 22-2 * * *", "2026-03-29T02:30:00Z"), at("2026-03-29T22:00:00Z"));
        // A Saturday: from Friday to Monday, each day.
        assert_eq!(next("0 9 * * 5-1", noon), at("2026-03-29T09:00:00Z"));
        assert_eq!(next("0 9 * * 5-1", "2026-03-30T12:00:00Z"), at("2026-04-03T09:00:00Z"));
        assert_eq!(next("0 9 5/10 * *", noon), at("2026-04-05T09:00:00Z"));
        assert_eq!(next("0 9 * * * 30", noon), at("2026-03-29T09:00:30Z"));
        assert_eq!(next("* * * * * */5", noon), at("2026-03-28T12:01:00Z"));
    }

    #[test]
    fn an_interval_keeps_its_beat_however_late_it_is() {
        let schedule = read("every 30m", "UTC");
        let from = at("2026-03-28T12:00:00Z");
        assert_eq!(schedule.after(from, from), Some(at("2026-03-28T12:30:00Z")));
        assert_eq!(
            schedule.after(from, at("2026-03-28T14:10:00Z")),
            Some(at("2026-03-28T14:30:00Z"))
        );
    }

    #[test]
    fn times_without_an_offset_are_in_the_zone() {
        let once = |text, zone| read(text, zone).after(Timestamp(0), Timestamp(0)).unwrap();
        assert_eq!(once("2030-02-03T14:00", "UTC"), at("2030-02-03T14:00:00Z"));
        assert_eq!(once("2030-02-03 14:00", "Asia/Seoul"), at("2030-02-03T05:00:00Z"));
        assert_eq!(
            once("2030-02-03T14:00:00+02:00", "Asia/Seoul"),
            at("2030-02-03T12:00:00Z")
        );
        assert_eq!(once("2030-02-03", "UTC"), at("2030-02-03T00:00:00Z"));
    }

    #[test]
    fn what_is_no_schedule_says_what_is() {
        for text in [
            "",
            "5",
            "-5m",
            "daily",
            "0 9 * * MON",
            "60 9 * * *",
            "2030-13-01",
            "1.5h",
            "0m",
            "every 0m",
            "0 0 30 2 *",
            "1,,2 * * * *",
            "5-70 * * * *",
            "70-5 * * * *",
            "0 9 * * * 2030",
            "0 9 * * * * 2030",
            "0000-01-01",
        ] {
            assert!(parse(text, "UTC", Timestamp(0)).is_err(), "{text}");
        }
        assert!(matches!(
            parse("1h", "Mars/Base", Timestamp(0)),
            Err(ScheduleError::UnknownZone(_))
        ));
    }

    #[test]
    fn the_patience_with_a_late_run_is_half_its_period_within_bounds() {
        let due = at("2026-03-28T12:00:00Z");
        assert_eq!(read("every 1m", "UTC").grace_ms(due), 120_000);
        assert_eq!(read("every 20m", "UTC").grace_ms(due), 600_000);
        assert_eq!(read("0 9 * * *", "UTC").grace_ms(due), 7_200_000);
        assert_eq!(read("2h", "UTC").grace_ms(due), 120_000);
    }
}
