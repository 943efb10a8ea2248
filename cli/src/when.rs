//! Points in time as people write them: `2h` ago, a date, a date with a time; all UTC.

use std::time::{SystemTime, UNIX_EPOCH};

const DAY_MS: u64 = 86_400_000;

/// A point in time, fixed or seen from now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// Milliseconds since the Unix epoch.
    At(u64),
    /// So many milliseconds before now.
    Ago(u64),
}

impl When {
    /// Milliseconds since the Unix epoch, seen from `now`.
    #[must_use]
    pub fn at(self, now: u64) -> u64 {
        match self {
            Self::At(at) => at,
            Self::Ago(span) => now.saturating_sub(span),
        }
    }
}

/// The time, in milliseconds since the Unix epoch.
#[must_use]
pub fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Reads `30m`, `2h`, `3d`, `2w`, `2026-11-30`, `2026-11-30 17:05`, `2026-11-30T17:05:09Z`.
///
/// # Errors
/// A sentence that says what can be written.
pub fn parse(text: &str) -> Result<When, String> {
    let found = ago(text).map(When::Ago).or_else(|| date(text).map(When::At));
    found.ok_or_else(|| {
        format!("{text:?} is no time: write 30m, 2h, 3d, 2w, 2026-11-30 or '2026-11-30 17:05'")
    })
}

fn ago(text: &str) -> Option<u64> {
    let unit = match text.chars().next_back()? {
        'm' => 60_000,
        'h' => 3_600_000,
        'd' => DAY_MS,
        'w' => 7 * DAY_MS,
        _ => return None,
    };
    let number: u64 = text.get(..text.len() - 1)?.parse().ok()?;
    number.checked_mul(unit)
}

fn date(text: &str) -> Option<u64> {
    let text = text.strip_suffix('Z').unwrap_or(text);
    let (day, time) = text.split_once(['T', ' ']).unwrap_or((text, "00:00"));
    let mut parts = day.split('-').map(|part| part.parse::<u64>().ok());
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    let mut clock = time.split(':').map(|part| part.parse::<u64>().ok());
    let (hour, minute) = (clock.next()??, clock.next()??);
    let second = clock.next().unwrap_or(Some(0))?;
    let sound = (1970..10_000).contains(&year)
        && (1..=12).contains(&month)
        && (1..=month_days(year, month)).contains(&day);
    if !sound || hour > 23 || minute > 59 || second > 59 || parts.next().is_some() || clock.next().is_some() {
        return None;
    }
    Some(days(year, month, day) * DAY_MS + (hour * 3600 + minute * 60 + second) * 1000)
}

fn month_days(year: u64, month: u64) -> u64 {
    match month {
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days since the Unix epoch, after Howard Hinnant's `days_from_civil`.
fn days(year: u64, month: u64, day: u64) -> u64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year / 400, year % 400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;
    use yard_common::Millis;

    #[test]
    fn what_people_write_is_read() {
        let at = |text: &str| match parse(text).unwrap() {
            When::At(at) => Millis(at).utc(),
            When::Ago(span) => format!("{span} ago"),
        };
        assert_eq!(at("2026-11-30"), "2026-11-30 00:00:00");
        assert_eq!(at("2000-02-29T23:59:58Z"), "2000-02-29 23:59:58");
        assert_eq!(at("1970-01-01 00:00"), "1970-01-01 00:00:00");
        assert_eq!((at("2h"), at("1w")), ("7200000 ago".into(), "604800000 ago".into()));
        assert_eq!(When::Ago(5).at(7), 2);
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in [
            "",
            "h",
            "-1h",
            "2026",
            "2026-13-01",
            "2026-02-29",
            "2026-11-30 25:00",
            "\u{e4}h",
            "99999999999999999999d",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
