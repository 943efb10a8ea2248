//! Time as an argument: milliseconds since the Unix epoch.

use serde::{Deserialize, Serialize};

/// A point in time, in milliseconds since the Unix epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Millis(pub u64);

impl Millis {
    /// This point plus `span` milliseconds, saturating.
    #[must_use]
    pub fn plus(self, span: u64) -> Self {
        Self(self.0.saturating_add(span))
    }

    /// Milliseconds from `earlier` to this point; 0 when `earlier` lies later.
    #[must_use]
    pub fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// Whole seconds since the Unix epoch, as git writes them.
    #[must_use]
    pub fn seconds(self) -> u64 {
        self.0 / 1000
    }

    /// The date and the time, `YYYY-MM-DD HH:MM:SS`, UTC.
    ///
    /// Days to civil date after Howard Hinnant's `civil_from_days`.
    #[must_use]
    pub fn utc(self) -> String {
        let (days, rest) = (self.seconds() / 86_400, self.seconds() % 86_400);
        let z = days + 719_468;
        let era = z / 146_097;
        let day_of_era = z - era * 146_097;
        let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let shifted = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * shifted + 2) / 5 + 1;
        let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
        let year = year_of_era + era * 400 + u64::from(month <= 2);
        format!("{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}", rest / 3600, rest / 60 % 60, rest % 60)
    }

    /// The time for people who know the day, `HH:MM:SSZ`.
    #[must_use]
    pub fn clock(self) -> String {
        let rest = self.seconds() % 86_400;
        format!("{:02}:{:02}:{:02}Z", rest / 3600, rest / 60 % 60, rest % 60)
    }

    /// When this will be, seen from `now`: `until 21:04:10Z (in 4 min)`, with the date from a day on.
    #[must_use]
    pub fn until(self, now: Self) -> String {
        let left = self.since(now);
        let when = if left < DAY_MS { self.clock() } else { format!("{}Z", self.utc()) };
        match left {
            0 => format!("until {when}"),
            _ => format!("until {when} (in {})", span(left)),
        }
    }
}

const DAY_MS: u64 = 86_400_000;

/// A length of time in its largest unit, rounded up: `45 s`, `4 min`, `3 h`, `2 d`.
#[must_use]
pub fn span(milliseconds: u64) -> String {
    let seconds = milliseconds.div_ceil(1000);
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds.div_ceil(60)),
        7_200..172_800 => format!("{} h", seconds.div_ceil(3_600)),
        _ => format!("{} d", seconds.div_ceil(86_400)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_printed_as_date_does() {
        assert_eq!(Millis(999).utc(), "1970-01-01 00:00:00");
        assert_eq!(Millis(951_782_400_000).utc(), "2000-02-29 00:00:00");
        assert_eq!(Millis(1_796_060_072_000).utc(), "2026-11-30 17:34:32");
        assert_eq!(Millis(1_796_060_072_000).clock(), "17:34:32Z");
    }

    #[test]
    fn the_time_left_is_told_in_one_unit() {
        let until = |left: u64| Millis(1_796_060_072_000 + left).until(Millis(1_796_060_072_000));
        assert_eq!(until(0), "until 17:34:32Z");
        assert_eq!(until(1), "until 17:34:32Z (in 1 s)");
        assert_eq!(until(190_000), "until 17:37:42Z (in 4 min)");
        assert_eq!(until(86_400_000), "until 2026-12-01 17:34:32Z (in 24 h)");
        assert_eq!(span(3 * 86_400_000), "3 d");
    }
}
