use chrono::{DateTime, TimeDelta, Utc};
use serde::Serialize;

/// A span of time in at most two units: `3m12s`, `2h05m`, `4d`.
pub fn duration(span: TimeDelta) -> String {
    let seconds = span.num_seconds().max(0);
    match seconds {
        0..60 if span.num_milliseconds() < 10_000 => format!("{:.1}s", span.num_milliseconds().max(0) as f64 / 1000.0),
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{}h{:02}m", seconds / 3600, seconds % 3600 / 60),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// How long ago `then` was.
pub fn age(then: DateTime<Utc>, now: DateTime<Utc>) -> String {
    duration(now - then)
}

/// A mark that tells states apart without colour.
pub fn mark(state: &str) -> &'static str {
    match state {
        "succeeded" | "approved" | "passed" => "✔",
        "failed" | "timed_out" | "denied" | "expired" | "rejected" => "✘",
        "running" | "dispatched" | "verifying" | "validating" => "▶",
        "waiting" | "open" | "paused" => "◷",
        "cancelled" | "cancelling" => "■",
        "skipped" => "»",
        "unresolved" => "?",
        _ => "·",
    }
}

/// The word that a wire enum is written as.
pub fn word<T: Serialize>(value: &T) -> String {
    serde_json::to_value(value)
        .ok()
        .and_then(|value| value.as_str().map(str::to_owned))
        .unwrap_or_default()
}

/// A number of bytes: `312 B`, `4.1 KiB`.
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

/// `1 host`, `3 hosts`.
pub fn plural(count: usize, word: &str) -> String {
    if count == 1 {
        format!("1 {word}")
    } else {
        format!("{count} {word}s")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_read_as_people_say_them() {
        for (bytes, text) in [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (5 << 30, "5.0 GiB")] {
            assert_eq!(size(bytes), text);
        }
    }

    #[test]
    fn spans_read_as_people_say_them() {
        for (milliseconds, text) in [
            (0, "0.0s"),
            (1_240, "1.2s"),
            (12_000, "12s"),
            (72_000, "1m12s"),
            (7_500_000, "2h05m"),
            (200_000_000, "2d"),
        ] {
            assert_eq!(duration(TimeDelta::milliseconds(milliseconds)), text);
        }
    }
}
