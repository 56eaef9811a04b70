//! When a job runs: the texts that say so, and the instants that follow from
//! them. `30m` is once, in half an hour; `every 2h` again and again; five fields
//! are cron, in the job's time zone; a date is once, at that time.

use std::str::FromStr;

use chrono::{DateTime, NaiveDateTime, TimeZone, Utc};
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
        let expr = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let schedule = Schedule::Cron {
            expr: expr.clone(),
            time_zone: zone.to_owned(),
        };
        Cron::from_str(&expr).map_err(|_| unreadable())?;
        return match schedule.after(now, now) {
            Some(_) => Ok(schedule),
            None => Err(ScheduleError::Never(expr)),
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

/// Five fields of digits and marks; names of days and months are not read, as in
/// the original.
fn is_cron(text: &str) -> bool {
    let fields: Vec<&str> = text.split_whitespace().collect();
    let plain = |field: &&str| {
        field
            .chars()
            .all(|letter| letter.is_ascii_digit() || "*-,/".contains(letter))
    };
    fields.len() == 5 && fields.iter().all(plain)
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

fn shown(at: DateTime<Utc>) -> Option<Timestamp> {
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
                let cron = Cron::from_str(expr).ok()?;
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
